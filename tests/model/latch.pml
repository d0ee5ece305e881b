/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/sync/latch.c: one thread is inside at a time, and no wake-up is lost. Three threads take the latch
 * and give it back. A thread left asleep while nobody else can move is an invalid end state, which the search
 * reports. Every step on the word is a read-modify-write, so stores need no buffers. The condition variable may
 * wake without a signal. The spin before the sleep is a plain swap that fails.
 *
 * Each of these must be found out: */
/* broken: BROKEN_MARK */   /* a thread that was woken takes the latch without marking it for other sleepers */
/* broken: BROKEN_LOCK */   /* the holder signals without the mutex */
/* broken: BROKEN_RECHECK */ /* a sleeper does not look again under the mutex */
/* broken: BROKEN_WAKE */   /* giving back wakes nobody */
/* cc: -DSAFETY -DMEMLIM=1500 */
/* pan: -m100000 */

#define THREADS 3
#define ROUNDS 2
#define FREE 0
#define TAKEN 1
#define AWAITED 2

byte state;
byte inside;
bool locked;
byte waiting;  /* threads in the condition variable */
byte signals;  /* signals for threads that wait */
bool surprise; /* one wait has ended without a signal */

inline lock()
{
    atomic { !locked; locked = true }
}

inline unlock()
{
    locked = false
}

/* Gives the mutex back and waits in one step; takes the mutex again. */
inline sleep()
{
    atomic { waiting++; locked = false }
    if
    :: atomic { signals > 0 -> signals--; waiting-- }
    :: atomic { !surprise && signals < waiting -> surprise = true; waiting-- }
    fi;
    lock()
}

proctype thread()
{
    byte n, seen;
    do
    :: n < ROUNDS ->
       n++;
       if
       :: atomic { state == FREE -> state = TAKEN }
       :: state != FREE ->
#ifdef BROKEN_RECHECK
          atomic { seen = state; state = AWAITED }
          lock();
          if
          :: seen != FREE -> sleep()
          :: else
          fi;
#else
          lock();
#endif
          do
          :: atomic { seen = state; state = AWAITED }
             if
             :: seen == FREE -> break
             :: else
             fi;
             sleep();
#ifdef BROKEN_MARK
             if
             :: atomic { state == FREE -> state = TAKEN; seen = FREE }
             :: atomic { state != FREE -> seen = TAKEN }
             fi;
             if
             :: seen == FREE -> break
             :: else
             fi
#endif
          od;
          unlock()
       fi;
       inside++;
       assert(inside == 1);
       inside--;
       atomic { seen = state; state = FREE }
       if
       :: seen == AWAITED ->
#ifndef BROKEN_WAKE
#ifdef BROKEN_LOCK
          atomic {
              if
              :: waiting > signals -> signals++
              :: else
              fi
          }
#else
          lock();
          atomic {
              if
              :: waiting > signals -> signals++
              :: else
              fi
          }
          unlock()
#endif
#else
          skip
#endif
       :: else
       fi
    :: else -> break
    od
}

init
{
    atomic {
        run thread();
        run thread();
        run thread()
    }
}
