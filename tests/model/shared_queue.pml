/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/sched/execute/shared_queue.c and driver.c: the shared ready queue and sleep. Two workers
 * have never looked at the queue. A third thread has a graph's tasks go there, and puts one there
 * behind a gate. The task is for the fast worker; the slow one leaves it. Whoever finds nothing, or
 * leaves what is there, says so under the lock, and sleeps until it is woken. The task that stays
 * there while both sleep is an invalid end state.
 *
 * Each of these must be found out: */
/* broken: BROKEN_TELL */ /* nobody is told when the first graph's tasks go to the shared queue */
/* broken: BROKEN_LOOK */ /* a worker does not look again after it has announced that it is idle */
/* broken: BROKEN_WAIT */ /* a worker that finds nothing does not say so */

#define FAST 0
#define SLOW 1
#define AWAKE 0
#define ANNOUNCED 1
#define NOTIFIED 2

bool locked, boarding, on_board, taken;
bool waiting[2], idle[2];
byte event[2];

inline lock()
{
    atomic { !locked -> locked = true }
}

inline unlock()
{
    locked = false
}

inline wake(who)
{
    atomic {
        won = idle[who];
        idle[who] = false
    }
    if
    :: won ->
       atomic {
           if
           :: event[who] == ANNOUNCED -> event[who] = NOTIFIED
           :: else
           fi
       }
    :: else
    fi
}

/* A step: the fast worker takes the task, the slow one leaves it, and wakes the fast one. */
inline look(self)
{
    if
    :: boarding ->
       lock();
       leaves = false;
       if
       :: on_board && self == FAST -> on_board = false; taken = true
       :: on_board && self == SLOW -> leaves = true
       :: else
       fi;
#ifndef BROKEN_WAIT
       waiting[self] = !taken;
#endif
       unlock();
       if
       :: leaves -> wake(FAST)
       :: else
       fi
    :: else
    fi
}

proctype worker(byte self)
{
    bool won, leaves;
    do
    :: taken -> break
    :: else ->
       look(self);
       event[self] = ANNOUNCED;
       idle[self] = true;
#ifndef BROKEN_LOOK
       look(self);
#endif
       if
       :: taken -> break
       :: else -> (event[self] == NOTIFIED || taken)
       fi;
       event[self] = AWAKE;
       idle[self] = false
    od
}

active proctype graph()
{
    bool won;
    byte called = 2;
    run worker(FAST);
    run worker(SLOW);
    boarding = true; /* under the lock; nobody needs that here */
#ifndef BROKEN_TELL
    wake(FAST);
    wake(SLOW);
#endif
    lock();
    on_board = true;
    if
    :: waiting[FAST] && idle[FAST] -> called = FAST; waiting[FAST] = false
    :: else ->
       if
       :: waiting[SLOW] && idle[SLOW] -> called = SLOW; waiting[SLOW] = false
       :: else
       fi
    fi;
    unlock();
    if
    :: called != 2 -> wake(called)
    :: else
    fi
}
