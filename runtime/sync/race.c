/* SPDX-License-Identifier: Apache-2.0 */
#include "sync/race.h"

#include "base/bits.h"

static uint64_t word_of(uint64_t turn, uint32_t device, fl_race_state state)
{
    return turn << 32 | (uint64_t)device << 16 | (uint64_t)state;
}

static uint64_t turn_of(uint64_t word)
{
    return word >> 32;
}

bool fl_race_is_free(const fl_race *race)
{
    /* Acquire: the last run of the previous work item is done with the race. */
    return fl_race_state_of(fl_load_acquire(&race->word)) == FL_RACE_FREE;
}

void fl_race_begin(fl_race *race, const fl_race_piece *piece)
{
    uint64_t turn = turn_of(fl_load_relaxed(&race->word)); /* free: only the owner changes it */
    /* Relaxed: the word publishes the members. A reader of the previous work item may see the new
     * members early, but then finds the word changed. */
    fl_store_relaxed(&race->job, piece->job);
    fl_store_relaxed(&race->codelet, piece->codelet);
    fl_store_relaxed(&race->grains, (uint64_t)piece->hi << 32 | piece->lo);
    fl_store_relaxed(&race->work, fl_double_bits(piece->work));
    fl_store_relaxed(&race->since, piece->since);
    fl_store_relaxed(&race->second, 0);
    /* Release: the members above and the data read by the work item, to the joining device. */
    fl_store_release(&race->word, word_of(turn, 0, FL_RACE_ALONE));
}

uint64_t fl_race_look(const fl_race *race, fl_race_piece *piece)
{
    uint64_t word = fl_load_acquire(&race->word); /* acquire: the word before the members */
    uint64_t grains = fl_load_relaxed(&race->grains);
    *piece = (fl_race_piece){
        .job = fl_load_relaxed(&race->job),
        .codelet = fl_load_relaxed(&race->codelet),
        .lo = (uint32_t)grains,
        .hi = (uint32_t)(grains >> 32),
        .work = fl_bits_double(fl_load_relaxed(&race->work)),
        .since = fl_load_relaxed(&race->since),
    };
    return word;
}

bool fl_race_is_at(const fl_race *race, uint64_t word)
{
    return fl_load_seq_cst(&race->word) == word; /* order: see the header */
}

bool fl_race_join(fl_race *race, uint64_t word, uint32_t device)
{
    /* Acquire: the data seen by the first run's owner. Release: tells the run that decides the race
     * about the caller's hold on the job. */
    return fl_race_state_of(word) == FL_RACE_ALONE &&
           fl_cas_acq_rel(&race->word, &word, word_of(turn_of(word), device, FL_RACE_BOTH));
}

static uint64_t word_after(uint64_t word, bool is_second, bool is_good)
{
    uint64_t turn = turn_of(word);
    if (fl_race_state_of(word) != FL_RACE_BOTH) {
        return word_of((turn + 1) & UINT32_MAX, 0, FL_RACE_FREE);
    }
    uint32_t device = fl_race_second_of(word);
    return is_good     ? word_of(turn, device, FL_RACE_DECIDED)
           : is_second ? word_of(turn, 0, FL_RACE_ALONE)
                       : word_of(turn, device, FL_RACE_LEFT);
}

fl_race_end fl_race_leave(fl_race *race, bool is_second, bool is_good, uint64_t *before)
{
    uint64_t word = fl_load_acquire(&race->word);
    uint64_t after;
    do {
        after = word_after(word, is_second, is_good);
        /* Seq_cst: before the reads of the hazards by the next user of the job's memory, against
         * fl_race_is_at. Includes the acquire and release that the two runs need of their peer. */
    } while (!fl_cas_seq_cst(&race->word, &word, after));
    *before = word;
    switch (fl_race_state_of(word)) {
    case FL_RACE_DECIDED:
        return FL_RACE_LOST;
    case FL_RACE_BOTH:
        return is_good ? FL_RACE_WON : FL_RACE_WITHDREW;
    default:
        return FL_RACE_WON;
    }
}
