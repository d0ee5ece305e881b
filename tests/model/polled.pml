/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/sched/drive/scheduler.c, fl_sched_poll_wait: threads of the host drive two workers, and sleep
 * where there is nothing to do. The host posts a task into an inbox. A step ends the item that the
 * worker ran before, takes a task from its deque or inbox, or steals from the other's deque, and runs
 * it. The end of an item may queue two tasks in the deque, of which the worker tells nobody; or it
 * hands a task to worker 0, tells, and reports no work, as steps may that hand work on. One item may
 * be long: it goes on until the other worker has nothing to do. A thread misses a worker that another
 * thread holds. After any round a thread may leave for good, as long as another one stays: its time
 * has come, or it has done some work. A nap ends by itself, so that it is no state here. All items
 * end: threads that sleep for ever while one is left are an invalid end state, which the search
 * reports. Memory is sequentially consistent here: all who sleep and all who tell have full fences
 * between.
 *
 * Each of these must be found out: */
/* broken: BROKEN_SEEN */    /* the turn is read behind the look for work */
/* broken: BROKEN_LOCK */    /* the teller does not take the lock */
/* broken: BROKEN_POST */    /* the host does not move the turn */
/* broken: BROKEN_MISSED */  /* a round that missed a worker tells enough to sleep */
/* broken: BROKEN_DRIVERS */ /* so does a round beside another thread's */
/* broken: BROKEN_LEAVE */   /* a thread that has done work and leaves does not move the turn */
/* broken: BROKEN_OWN */     /* from the second round in vain on, a thread's own turns are no news */
/* cc: -DSAFETY -DMEMLIM=3000 -DCOLLAPSE */
/* pan: -m1000000 */

#define THREADS 2
#ifndef POSTS
#define POSTS 1
#endif

byte posts = POSTS;            /* tasks that the host has yet to post */
byte left = POSTS;             /* tasks that have not ended */
byte inbox[2], deque[2];
bool ran[2], held[2];          /* the worker ran an item that has not ended; a thread steps it */
bool has_handed, was_long;
byte grown;
bool moved[THREADS];           /* the turn has moved since the thread saw it */
byte drivers, listeners, staying = THREADS;
bool locked, asleep[THREADS];

#define GROWS 2

#define MET (left == 0)

inline tell()
{
    if
    :: listeners != 0 ->
#ifndef BROKEN_LOCK
       atomic { !locked; locked = true };
#endif
       d_step { asleep[0] = false; asleep[1] = false };
#ifndef BROKEN_LOCK
       locked = false
#endif
    :: else
    fi
}

inline move_turn()
{
    d_step { moved[0] = true; moved[1] = true };
    tell()
}

/* In a step: what a thread's own step moves. */
inline move_own_turn()
{
    d_step {
        moved[1 - self] = true;
#ifdef BROKEN_OWN
        moved[self] = moved[self] || !was_vain
#else
        moved[self] = true
#endif
    }
    tell()
}

inline step()
{
    if
    :: atomic { ran[w] && w == 1 && !has_handed ->
                ran[w] = false; has_handed = true; inbox[0]++ };
       move_own_turn()
    :: atomic {
          if
          :: ran[w] && grown < GROWS -> grown++; left = left + 2; deque[w] = deque[w] + 2
          :: true
          fi;
          left = left - ran[w];
          ran[w] = false;
          if
          :: deque[w] != 0 -> deque[w]--; ran[w] = true
          :: deque[w] == 0 && inbox[w] != 0 -> inbox[w]--; ran[w] = true
          :: deque[w] == 0 && inbox[w] == 0 && deque[1 - w] != 0 -> deque[1 - w]--; ran[w] = true
          :: else
          fi;
          goes_on = goes_on || ran[w]
       };
       if
       :: MET -> tell()
       :: atomic { ran[w] && !was_long && staying > 1 -> was_long = true; staying-- };
          atomic { !ran[1 - w] && inbox[1 - w] + deque[0] + deque[1] == 0 -> staying++ }
       :: !MET
       fi
    fi
}

inline round()
{
    d_step { goes_on = false; has_missed = false; w = 0 };
    do
    :: w < 2 ->
       if
       :: atomic { !held[w] -> held[w] = true };
          step();
          d_step { held[w] = false; w++ }
       :: atomic { held[w] -> has_missed = true; w++ }
       fi
    :: else -> break
    od;
    atomic { w = 0; worked = worked || goes_on }
}

inline sleep()
{
    listeners++;
    atomic { !locked; locked = true };
    do
    :: MET || moved[self] -> break
    :: else ->
       atomic { locked = false; asleep[self] = true };
       !asleep[self];
       atomic { !locked; locked = true }
    od;
    atomic { locked = false; listeners-- }
}

inline leave()
{
#ifndef BROKEN_LEAVE
    if
    :: worked -> move_turn()
    :: else
    fi;
#endif
    atomic { drivers--; are_others = (drivers != 0) }
}

inline rest()
{
#ifdef BROKEN_DRIVERS
    are_others = false;
#endif
#ifdef BROKEN_MISSED
    has_missed = false;
#endif
    if
    :: !moved[self] && !are_others && !has_missed -> sleep()
    :: else /* a nap */
    fi
}

proctype thread(byte self)
{
    byte w;
    bool goes_on, worked, has_missed, are_others, has_left;
#ifdef BROKEN_OWN
    bool was_vain;
#endif
    do
    :: MET || has_left -> break
    :: else ->
       d_step { worked = false; drivers++ };
       do
       :: true ->
#ifndef BROKEN_SEEN
          moved[self] = false;
#endif
          round();
#ifdef BROKEN_SEEN
          moved[self] = false;
#endif
          if
          :: atomic { staying > 1 -> staying--; has_left = true; break }
          :: goes_on && !MET
          :: !goes_on || MET -> break
          fi
       od;
       leave();
       if
       :: !has_left && !MET -> rest()
       :: else
       fi;
#ifdef BROKEN_OWN
       was_vain = !worked;
#endif
       d_step { goes_on = false; has_missed = false; are_others = false }
    od
}

proctype host()
{
    do
    :: posts != 0 ->
       posts--;
       if
       :: inbox[0]++
       :: inbox[1]++
       fi;
#ifndef BROKEN_POST
       move_turn()
#endif
    :: else -> break
    od
}

init
{
    atomic {
        run host();
        run thread(0);
        run thread(1)
    }
}
