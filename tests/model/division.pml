/* SPDX-License-Identifier: Apache-2.0 */
/* Divisible tasks (runtime/sync/division.c, divide.c): an owner that runs two tasks one after the
 * other in one division, and two workers that join as they like. Whoever has a part takes grains,
 * leaves them to the others, or, as where a piece fails or the job is cancelled, leaves out what is
 * left. Each grain is run once, or left out and known to be; each task ends once, when nobody runs
 * any of it; and who has left touches nothing of it. The second task is one of a device that runs
 * tiles by itself: its owner has a grain in hand when it opens the division, and what the task uses
 * is held from then on until it has ended.
 *
 * Each of these must be found out: */
/* broken: BROKEN_JOIN */  /* a part is taken where there is none */
/* broken: BROKEN_LEAVE */ /* a part is given up without a swap */
/* broken: BROKEN_END */   /* the last one leaves although there is a rest */
/* broken: BROKEN_FLAGS */ /* how the task ended is looked at before who else has a part */
/* broken: BROKEN_TASK */  /* which task it is was read before joining */
/* broken: BROKEN_TURN */  /* who joins does not move the turn on */
/* broken: BROKEN_TAKE */  /* a grain is taken without a swap */
/* broken: BROKEN_HOLD */  /* who opened it lets go when its first grain is over */
/* broken: BROKEN_FIRST */ /* others may have the grain that the owner has in hand, too */
/* cc: -DSAFETY -DCOLLAPSE -DMEMLIM=2500 */
/* pan: -m1000000 */

#define TASKS 2
#define GRAINS 2
#define THIEVES 2
#define JOINS 1 /* of each thief */

byte parts, turn;     /* the word */
byte lo, hi;          /* the range, a word as well */
bool cut;             /* the flags */
byte task;            /* 1 .. TASKS */
byte inside[TASKS + 1]; /* who has a grain in hand */
byte ran[(TASKS + 1) * GRAINS];
bool is_over[TASKS + 1];
bool held[TASKS + 1];

/* What is told of the end of a task is what became of it. */
inline retire(t, seen_cut)
{
    d_step {
        assert(!is_over[t] && inside[t] == 0);
        is_over[t] = true;
        held[t] = false;
        assert(ran[t * GRAINS] <= 1 && ran[t * GRAINS + 1] <= 1);
        assert(seen_cut || (ran[t * GRAINS] == 1 && ran[t * GRAINS + 1] == 1))
    }
}

/* Of one with a part in task t, to its end. */
inline work(t)
{
    do
    :: true ->
        /* The next grain. */
#ifdef BROKEN_TAKE
        grain = lo;
        has = grain < hi;
        if
        :: has -> lo = grain + 1
        :: else
        fi;
#else
        d_step {
            grain = lo;
            has = grain < hi;
            if
            :: has -> lo++
            :: else
            fi
        }
#endif
        if
        :: has ->
            assert(!is_over[t] && held[t]);
            d_step { inside[t]++; ran[t * GRAINS + grain]++ }
            inside[t]--
        :: else
        fi
    :: true ->
        /* Nothing more of it is to begin. */
        d_step {
            has = lo < hi;
            lo = hi
        }
        if
        :: has -> cut = true
        :: else
        fi
    :: true ->
        /* The part is given up. */
#ifdef BROKEN_FLAGS
        seen_cut = cut;
#endif
        d_step { seen_parts = parts; seen_turn = turn }
        if
        :: seen_parts > 1 ->
#ifdef BROKEN_LEAVE
            parts = seen_parts - 1;
            break
#else
            d_step {
                has = parts == seen_parts && turn == seen_turn;
                if
                :: has -> parts--
                :: else
                fi
            }
            if
            :: has -> break
            :: else
            fi
#endif
        :: else ->
#ifdef BROKEN_END
            has = false;
#else
            has = lo < hi;
#endif
            if
            :: has -> skip /* it stays */
            :: else ->
#ifndef BROKEN_FLAGS
                seen_cut = cut;
#endif
                d_step {
                    has = parts == seen_parts && turn == seen_turn;
                    if
                    :: has -> parts--
                    :: else
                    fi
                }
                if
                :: has -> retire(t, seen_cut); break
                :: else
                fi
            fi
        fi
    od
}

active proctype owner()
{
    byte grain, seen_parts, seen_turn, t = 1;
    bool has, seen_cut;
    do
    :: t <= TASKS && parts == 0 ->
        task = t;
        cut = false;
        d_step {
            held[t] = true;
            lo = 0;
            hi = GRAINS;
            if
            :: t == TASKS ->
                inside[t]++;
                ran[t * GRAINS]++;
#ifndef BROKEN_FIRST
                lo = 1
#endif
            :: else
            fi
        }
        d_step { parts = 1; turn++ }
        if
        :: t == TASKS ->
            inside[t]--;
#ifdef BROKEN_HOLD
            held[t] = false
#endif
        :: else
        fi;
        work(t);
        t++
    :: t > TASKS -> break
    od
}

active [THIEVES] proctype thief()
{
    byte grain, seen_parts, seen_turn, t, joins;
    bool has, seen_cut;
    do
    :: joins < JOINS ->
        d_step { seen_parts = parts; seen_turn = turn }
#ifdef BROKEN_TASK
        t = task;
#endif
#ifdef BROKEN_JOIN
        has = true;
#else
        has = seen_parts != 0;
#endif
        d_step {
#ifdef BROKEN_TASK
            has = has && parts != 0;
#else
            has = has && parts == seen_parts && turn == seen_turn;
#endif
            if
            :: has ->
                parts++;
#ifndef BROKEN_TURN
                turn++
#endif
            :: else
            fi
        }
        if
        :: has ->
#ifndef BROKEN_TASK
            t = task;
#endif
            joins++;
            work(t)
        :: else
        fi
    :: joins == JOINS || (is_over[1] && is_over[TASKS]) -> break
    od
}
