/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/sched/decide/place.c and driver.c: two workers give tasks to a third one, the owner of their data.
 * The owner takes all of its inbox at once, searches for a while, and sleeps. A giver wakes it only
 * where its state says that it sleeps. A task that stays in the inbox of a worker that sleeps is an
 * invalid end state. Sequentially consistent: the orders stand beside the operations.
 *
 * Each of these must be found out: */
/* broken: BROKEN_GIVE */  /* the giver looks at the state before it puts the task there */
/* broken: BROKEN_LOOK */  /* the owner does not look again after it has said that it sleeps */
/* broken: BROKEN_STATE */ /* … or says so after that look */

#define GIVERS 2
#define TASKS 2 /* of each */
#define RUNNING 0
#define ASLEEP 1
#define AWAKE 0
#define ANNOUNCED 1
#define NOTIFIED 2

byte inbox, done, state = RUNNING, event = AWAKE;
bool idle;

inline wake()
{
    atomic {
        won = idle;
        idle = false
    }
    if
    :: won ->
       atomic {
           if
           :: event == ANNOUNCED -> event = NOTIFIED
           :: else
           fi
       }
    :: else
    fi
}

proctype giver()
{
    byte n, seen;
    bool won;
    do
    :: n < TASKS ->
#ifdef BROKEN_GIVE
       seen = state;
       inbox++;
#else
       inbox++;
       seen = state;
#endif
       if
       :: seen == ASLEEP -> wake()
       :: else
       fi;
       n++
    :: else -> break
    od
}

inline drain()
{
    atomic {
        done = done + inbox;
        inbox = 0
    }
}

active proctype owner()
{
    run giver();
    run giver();
    do
    :: done == GIVERS * TASKS -> break
    :: else ->
       if
       :: inbox > 0 -> drain() /* running, or searching */
       :: skip ->              /* it has searched for long enough */
          event = ANNOUNCED;
          idle = true;
#ifndef BROKEN_STATE
          state = ASLEEP;
#endif
          if
#ifndef BROKEN_LOOK
          :: inbox > 0
#endif
          :: else ->
#ifdef BROKEN_STATE
             state = ASLEEP;
#endif
             event == NOTIFIED
          fi;
          event = AWAKE;
          state = RUNNING;
          idle = false
       fi
    od
}
