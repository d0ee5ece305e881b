/* SPDX-License-Identifier: Apache-2.0 */
/* Two producers and three consumers over an inbox and a mailbox: every link pushed is drained
 * exactly once, every note that was not dropped is taken exactly once, both with what was written
 * before, and whoever gets several of one producer's gets them in order. A push, a put, a drained
 * link and a taken note are one operation each. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/thread.h"
#include "stress.h"
#include "sync/inbox.h"
#include "sync/mailbox.h"

enum { PRODUCERS = 2, CONSUMERS = 3, CHAIN_MAX = 5 };

typedef struct item {
    fl_link link; /* first, so that a link is its item */
    uint64_t number;
    uint64_t payload;
} item;

typedef struct field {
    stress stress;
    fl_inbox inbox;
    fl_mailbox mailbox;
    uint64_t each; /* items of a producer: its own are self * each onwards */
    item *items;   /* each is pushed to the inbox once and its number put into the mailbox once */
    stress_set drained;
    stress_set noted;
    _Atomic int producing;
} field;

typedef struct member {
    field *field;
    uint64_t self;
    uint64_t done_links, done_notes, dropped,
        opened; /* opened: pushes that found the inbox empty */
    uint64_t batches;
} member;

static int producer_main(void *arg)
{
    member *m = arg;
    field *f = m->field;
    fl_random random;
    fl_random_init(&random, f->stress.seed, m->self);
    uint64_t next = m->self * f->each, end = next + f->each;
    while (next < end) {
        uint64_t length = 1 + stress_below(&random, CHAIN_MAX), first = next;
        for (; next < end && next - first < length; next++) {
            f->items[next].number = next;
            f->items[next].payload = stress_hash(&f->stress, next);
            f->items[next].link.next = &f->items[next + 1].link;
        }
        fl_link *links = &f->items[first].link;
        bool was_empty = next - first == 1
                             ? fl_inbox_push(&f->inbox, links)
                             : fl_inbox_push_chain(&f->inbox, links, &f->items[next - 1].link);
        m->opened += was_empty;
        /* Notes of items that are also in the inbox, as the scheduler puts them. A full mailbox is
         * tried again, so that the count is known, but counts as a drop each time. */
        for (uint64_t note = first; note < next; note++) {
            while (!fl_mailbox_put(&f->mailbox, note)) {
                m->dropped++;
                fl_thread_yield();
            }
        }
    }
    /* Release: the last push and put before the count that ends the consumers. */
    (void)fl_sub_acq_rel(&f->producing, 1);
    return 0;
}

static void check(field *f, stress_set *set, uint64_t number)
{
    if (!stress_set_mark(set, number))
        stress_fail(&f->stress, "received twice, or never sent", number);
    else if (f->items[number].payload != stress_hash(&f->stress, number))
        stress_fail(&f->stress, "received without what was written before", number);
}

/* after[p]: the least number that may still come from producer p. */
static void check_order(field *f, uint64_t *after, uint64_t number)
{
    uint64_t producer = number / f->each;
    if (producer >= PRODUCERS)
        return;
    if (number < after[producer])
        stress_fail(&f->stress, "received out of order", number);
    after[producer] = number + 1;
}

static int consumer_main(void *arg)
{
    member *m = arg;
    field *f = m->field;
    uint64_t links_after[PRODUCERS] = {0}, notes_after[PRODUCERS] = {0}, note, idle = 0;
    for (;;) {
        /* Acquire: nobody produces any more, so empty after that is the end. */
        bool last = fl_load_acquire(&f->producing) == 0;
        bool any = false;
        for (fl_link *link = fl_inbox_drain(&f->inbox), *next; link; link = next) {
            /* Read before the item might be reused. */
            next = link->next;
            item *it = (item *)(void *)link;
            m->batches += !any;
            any = true;
            m->done_links++;
            check_order(f, links_after, it->number);
            check(f, &f->drained, it->number);
        }
        while (fl_mailbox_take(&f->mailbox, &note)) {
            any = true;
            m->done_notes++;
            check_order(f, notes_after, note);
            check(f, &f->noted, note);
        }
        if (!any && last)
            return 0;
        /* Mostly stays on its processor, so that consumers meet at the same cell. */
        if (!any && ++idle % 64 == 0)
            fl_thread_yield();
    }
}

static void judge(field *f, const member *members)
{
    uint64_t count = f->each * PRODUCERS, links = 0, notes = 0, dropped = 0, opened = 0,
             batches = 0;
    for (int i = 0; i < PRODUCERS + CONSUMERS; i++) {
        links += members[i].done_links;
        notes += members[i].done_notes;
        dropped += members[i].dropped;
        opened += members[i].opened;
        batches += members[i].batches;
    }
    if (links != count || stress_set_marked(&f->drained) != count)
        stress_fail(&f->stress, "links drained is not pushed; drained", links);
    if (notes != count || stress_set_marked(&f->noted) != count)
        stress_fail(&f->stress, "notes taken is not put; taken", notes);
    /* Each batch was begun by exactly one push that found the inbox empty. */
    if (opened != batches)
        stress_fail(&f->stress, "pushes that found the inbox empty is not drains; pushes", opened);
    if (!fl_inbox_is_empty(&f->inbox) || !fl_mailbox_is_empty(&f->mailbox))
        stress_fail(&f->stress, "something is left", 0);
    printf("%" PRIu64 " links in %" PRIu64 " batches, %" PRIu64 " notes, %" PRIu64 " drops\n",
           links, batches, notes, dropped);
}

int main(int argc, char **argv)
{
    static field f;
    member members[PRODUCERS + CONSUMERS];
    fl_thread threads[PRODUCERS + CONSUMERS];
    stress_begin(&f.stress, "inbox", argc, argv, 8000000, 80000000);
    f.each = f.stress.operations / 4 / PRODUCERS + 1;
    uint64_t count = f.each * PRODUCERS;
    f.items = stress_alloc((size_t)count + 1, sizeof *f.items);
    stress_set_init(&f.drained, count);
    stress_set_init(&f.noted, count);
    fl_inbox_init(&f.inbox);
    fl_mailbox_init(&f.mailbox);
    atomic_init(&f.producing, PRODUCERS);
    for (uint64_t i = 0; i < PRODUCERS + CONSUMERS; i++) {
        members[i] = (member){.field = &f, .self = i};
        fl_thread_fn run = i < PRODUCERS ? producer_main : consumer_main;
        if (fl_thread_start(&threads[i], run, &members[i]) != FILCH_OK)
            return 2;
    }
    for (int i = 0; i < PRODUCERS + CONSUMERS; i++)
        fl_thread_join(threads[i]);
    judge(&f, members);
    stress_set_fini(&f.drained);
    stress_set_fini(&f.noted);
    free(f.items);
    return stress_end(&f.stress);
}
