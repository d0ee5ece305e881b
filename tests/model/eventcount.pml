/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/sync/eventcount.c: no wake-up is lost. Two wakers publish work and notify; the sleeper does all of
 * it, or sleeps. A sleeper left waiting while nobody else can move is an invalid end state, which the
 * search reports. One of the sleeps may end at its time limit; the others have none, so a limit hides
 * nothing. Stores to work and to the announcement go through store buffers (total store order), which a
 * fence, a swap or a lock empties.
 *
 * Each of these must be found out: */
/* broken: BROKEN_FENCE_SLEEPER */ /* announce without its fence */
/* broken: BROKEN_FENCE_WAKER */   /* notify without its fence */
/* broken: BROKEN_RECHECK */       /* the sleeper looks for work before it announces */
/* broken: BROKEN_LOCK */          /* the waker signals without the lock */
/* broken: BROKEN_RESET */         /* sleep does not look at the state again under the lock */
/* cc: -DSAFETY -DMEMLIM=1500 */
/* pan: -m100000 */

#define WAKERS 2
#define POSTS 2
#define AWAKE 0
#define ANNOUNCED 1
#define NOTIFIED 2

byte state;          /* shared memory: the event's word, and each waker's count of posts */
byte posted[WAKERS];
byte done[WAKERS];   /* the sleeper's own */
bool locked, waiting, signalled;

bool state_buffered; /* the sleeper's store to state on its way */
byte state_buffer;
bool post_buffered[WAKERS];
bool limit_used;

#define WORK (posted[0] != done[0] || posted[1] != done[1])
#define ALL (done[0] == POSTS && done[1] == POSTS)

active proctype memory()
{
end:
    do
    :: d_step { state_buffered; state = state_buffer; state_buffered = false }
    :: d_step { post_buffered[0]; posted[0]++; post_buffered[0] = false }
    :: d_step { post_buffered[1]; posted[1]++; post_buffered[1] = false }
    od
}

inline lock()
{
    atomic { !locked; locked = true }
}

proctype waker(byte self)
{
    byte n;
    bool won;
    do
    :: n < POSTS ->
       atomic { !post_buffered[self]; post_buffered[self] = true }
#ifndef BROKEN_FENCE_WAKER
       !post_buffered[self];
#endif
       if
       :: state == ANNOUNCED ->
          atomic { /* the swap empties the buffer too */
              !post_buffered[self];
              won = (state == ANNOUNCED);
              if
              :: won -> state = NOTIFIED
              :: else
              fi
          }
          if
          :: won ->
             won = false;
#ifndef BROKEN_LOCK
             lock();
#endif
             atomic {
                 if
                 :: waiting -> waiting = false; signalled = true
                 :: else
                 fi
             }
#ifndef BROKEN_LOCK
             locked = false
#endif
          :: else
          fi
       :: else
       fi;
       n++
    :: else -> break
    od
}

inline announce()
{
    atomic { !state_buffered; state_buffered = true; state_buffer = ANNOUNCED }
#ifndef BROKEN_FENCE_SLEEPER
    !state_buffered
#endif
}

/* The sleeper reads its own buffered store first. */
#define STATE_OWN (state_buffered -> state_buffer : state)

inline sleep()
{
    if
    :: STATE_OWN == ANNOUNCED ->
       atomic { !state_buffered; lock() }
       do
#ifdef BROKEN_RESET
       :: true ->
#else
       :: state == ANNOUNCED ->
#endif
          atomic { waiting = true; locked = false } /* the wait lets go of the lock as it begins */
          if
          :: atomic { signalled -> signalled = false }
          :: atomic { !limit_used && !signalled -> limit_used = true; waiting = false; late = true }
          fi;
          lock();
          if
          :: late -> late = false; break
          :: else
          fi;
#ifdef BROKEN_RESET
          break
#endif
       :: state != ANNOUNCED -> break
       od;
       locked = false
    :: else
    fi;
    d_step { state = AWAKE }
}

active proctype sleeper()
{
    bool late;
    run waker(0);
    run waker(1);
    do
    :: ALL -> break
    :: else ->
       if
       :: posted[0] != done[0] -> done[0]++
       :: posted[1] != done[1] -> done[1]++
       :: !WORK ->
#ifdef BROKEN_RECHECK
          if
          :: WORK -> skip
          :: !WORK -> announce(); sleep()
          fi
#else
          announce();
          if
          :: WORK ->
             atomic { !state_buffered; state_buffered = true; state_buffer = AWAKE } /* cancel */
          :: !WORK -> sleep()
          fi
#endif
       fi
    od
}
