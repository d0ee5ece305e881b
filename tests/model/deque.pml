/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/sync/deque.{h,c} and the claim of a task: one owner, two thieves, a ring that grows once.
 *
 * Entries are hints: push 0 and push 2 are both for task 0 in epoch 0, push 3 for its epoch 1. Every
 * entry is taken exactly once, and every task runs exactly once an epoch. The owner's stores to bottom
 * go through a store buffer (total store order); an exchange empties it first.
 *
 * Each of these must be found out: */
/* broken: BROKEN_EXCHANGE */ /* pop stores bottom plainly */
/* broken: BROKEN_LAST */     /* pop takes the last entry without a swap */
/* broken: BROKEN_STEAL */    /* steal moves top without a swap */
/* broken: BROKEN_FULL */     /* push refills a slot that is in use */
/* broken: BROKEN_COPY */     /* growth publishes the ring before it copies */
/* broken: BROKEN_EPOCH */    /* a claim ignores the epoch */
/* broken: BROKEN_CLAIM */    /* a claim looks, then stores */
/* cc: -DSAFETY -DMEMLIM=1500 */
/* pan: -m100000 */

#define PUSHES 4
#define TASK(id) (id == 1 -> 1 : 0)
#define EPOCH(id) (id == 3 -> 1 : 0)
#define MASK(r) (r == 0 -> 1 : 3)
#define SLOT(r, i) (4 * r + ((i) & MASK(r)))

byte top, bottom, ring; /* shared memory */
byte slots[8];          /* ring 0 has two slots, ring 1 four */
bool buffered;          /* the owner has a store to bottom on its way */
byte buffer;
bool stopped;           /* the owner pops no more */
byte finished;          /* thieves that have ended */

bool taken[PUSHES];
bool ready[2] = true; /* the {epoch, state} word of each task */
bool epoch[2];
byte runs[4]; /* by task and epoch */

inline claim(id)
{
    atomic {
        assert(!taken[id]);
        taken[id] = true;
    }
#ifdef BROKEN_CLAIM
    mine = ready[TASK(id)] && epoch[TASK(id)] == EPOCH(id);
    if
    :: mine -> ready[TASK(id)] = false
    :: else
    fi;
#else
    d_step {
#ifdef BROKEN_EPOCH
        mine = ready[TASK(id)];
#else
        mine = ready[TASK(id)] && epoch[TASK(id)] == EPOCH(id);
#endif
        if
        :: mine -> ready[TASK(id)] = false
        :: else
        fi
    }
#endif
    if
    :: mine -> d_step {
        runs[2 * TASK(id) + EPOCH(id)]++;
        assert(runs[2 * TASK(id) + EPOCH(id)] == 1);
        mine = false
    }
    :: else
    fi
}

inline store_bottom(value)
{
    atomic {
        !buffered;
        buffered = true;
        buffer = value
    }
}

active proctype memory()
{
end:
    do
    :: d_step {
        buffered;
        bottom = buffer;
        buffered = false
    }
    od
}

active [2] proctype thief()
{
    byte t, b, r, id;
    bool won, mine, last;
    do
    :: last = stopped;
       t = top;
       b = bottom;
       if
       :: t >= b ->
          if
          :: last -> break
          :: else
          fi
       :: else ->
          r = ring;
          id = slots[SLOT(r, t)];
#ifdef BROKEN_STEAL
          top = t + 1;
          won = true;
#else
          d_step {
              won = (top == t);
              if
              :: won -> top = t + 1
              :: else
              fi
          }
#endif
          if
          :: won -> won = false; claim(id)
          :: else
          fi
       fi;
       d_step { t = 0; b = 0; r = 0; id = 0; last = false }
    od;
    finished++
}

active proctype owner()
{
    byte next, own, seen, t, i, id; /* own: bottom as its owner knows it; seen: top_seen */
    bool won, mine;
    do
    :: next < PUSHES && (next != 3 || runs[0] == 1) -> /* push */
       if
       :: next == 3 -> d_step { epoch[0] = 1; ready[0] = true } /* submitted again */
       :: else
       fi;
#ifndef BROKEN_FULL
       if
       :: own - seen > MASK(ring) ->
          seen = top;
          if
          :: own - seen > MASK(ring) -> /* grow */
             assert(ring == 0);
#ifdef BROKEN_COPY
             ring = 1;
#endif
             i = seen;
             do
             :: i < own -> slots[SLOT(1, i)] = slots[SLOT(0, i)]; i++
             :: else -> break
             od;
             i = 0;
             ring = 1
          :: else
          fi
       :: else
       fi;
#endif
       !buffered; /* the slot's store leaves the buffer after the one before it */
       slots[SLOT(ring, own)] = next;
       own++;
       store_bottom(own);
       next++
    :: own - seen > 0 && (next == PUSHES || next > 0) -> /* pop */
       own--;
#ifdef BROKEN_EXCHANGE
       store_bottom(own);
#else
       atomic { !buffered; bottom = own }
#endif
       t = top;
       seen = t;
       if
       :: t < own -> id = slots[SLOT(ring, own)]; claim(id)
       :: else ->
          won = false;
          if
          :: t == own ->
             id = slots[SLOT(ring, own)];
#ifdef BROKEN_LAST
             won = true;
             top = own + 1;
#else
             d_step {
                 won = (top == t);
                 if
                 :: won -> top = t + 1
                 :: else
                 fi
             }
#endif
             seen = own + 1
          :: else
          fi;
          own++;
          store_bottom(own);
          if
          :: won -> won = false; claim(id)
          :: else
          fi
       fi;
       d_step { t = 0; id = 0 }
    :: next == PUSHES && own - seen == 0 -> break
    od;
    !buffered;
    stopped = true;
    finished == 2;
    d_step {
        assert(taken[0] && taken[1] && taken[2] && taken[3]);
        assert(runs[0] == 1 && runs[1] == 1 && runs[2] == 1 && runs[3] == 0);
        assert(top == bottom)
    }
}
