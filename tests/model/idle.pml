/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/sched/drive/driver.c and scheduler.c: the idle bits in front of the event counts. Two wakers each post
 * twice, the second time with work, and wake the worker if its bit is set; the first post stands for what
 * wakes everybody without having work for all (a job's start or end). The worker does all the work, or
 * sleeps; one that sleeps while nobody else can move is an invalid end state. Sequentially consistent: the
 * orders that this needs stand beside the operations.
 *
 * Each of these must be found out: */
/* broken: BROKEN_ORDER */ /* the bit before the announcement: a waker between them leaves no bit */
/* broken: BROKEN_LOOK */  /* no second look for work */

#define WAKERS 2
#define AWAKE 0
#define ANNOUNCED 1
#define NOTIFIED 2

byte state, work, done;
bool idle;

inline notify()
{
    atomic {
        if
        :: state == ANNOUNCED -> state = NOTIFIED
        :: else
        fi
    }
}

proctype waker()
{
    byte n;
    bool won;
    do
    :: n < 2 ->
       if
       :: n == 1 -> work++
       :: else
       fi;
       if
       :: idle ->
          atomic { won = idle; idle = false };
          if
          :: won -> notify()
          :: else
          fi
       :: else
       fi;
       n++
    :: else -> break
    od
}

active proctype worker()
{
    run waker();
    run waker();
    do
    :: done == WAKERS -> break
    :: else ->
       if
       :: atomic { work > 0 -> work--; done++ }
       :: else ->
#ifdef BROKEN_ORDER
          idle = true;
          state = ANNOUNCED;
#else
          state = ANNOUNCED;
          idle = true;
#endif
          if
#ifndef BROKEN_LOOK
          :: work > 0
#endif
          :: else -> state == NOTIFIED
          fi;
          state = AWAKE;
          idle = false
       fi
    od
}
