/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for few live tasks of an open graph (runtime/sched/execute/pressure.c): two workers, two tasks
 * that wait inside their functions until no other task is live, and a thread of the host that waits
 * until none is. The task that begins first adds a child, which is ready at once, or stands behind the
 * task. A worker that waits helps. Everybody ends:
 * a wait that sleeps is woken, and a wait in vain says so, only if no task could go on without it.
 *
 * Each of these must be found out: */
/* broken: BROKEN_LEFT */     /* a worker that leaves the job does not look for waits in tasks */
/* broken: BROKEN_ANNOUNCE */ /* a look reads the counts, then announces the wait */
/* broken: BROKEN_PRESS */    /* ends between the announcement and the number needed are forgotten */
/* broken: BROKEN_ORDER */    /* a look sums up the tasks made ready before the tasks ended */
/* broken: BROKEN_APART */    /* the tasks that are live come from counts of their own */
/* broken: BROKEN_READIED */  /* a task is counted as ready after another worker can run it */
/* broken: BROKEN_VAIN */     /* no wait is ever in vain */
/* cc: -DSAFETY -DMEMLIM=3000 -DCOLLAPSE */
/* pan: -m1000000 */

#define TASKS 3
#define DEPTH 1                /* waits on a worker's stack */
#define BIG 20
#define HOST 4                 /* index of the host's wait; 2 * worker + depth for the others */

byte ready_waiters = 2, ready_children;
byte total = 2;                /* tasks added */
byte readied = 2;              /* ready when added; each worker counts those it makes ready */
byte readied_by[2], ended[2], suspended;
byte pressed, waits, nested;
bool exists[5];                /* the wait exists */
bool moved[5];                 /* the turn has moved since the wait's last look */
byte going = 2;                /* tasks that are ready, or run and do not wait */

#define turn_all \
    moved[0] = exists[0]; moved[1] = exists[1]; moved[2] = exists[2]; moved[3] = exists[3]; \
    moved[4] = exists[4]

/* A task has ended or waits. */
inline count_down()
{
    d_step {
        last = (pressed == 1);
        if
        :: pressed != 0 -> pressed--
        :: else
        fi
    }
    if
    :: last -> d_step { last = false; turn_all }
    :: else
    fi
}

inline announce()
{
    d_step {
        if
        :: pressed == 0 -> pressed = BIG
        :: else
        fi;
        base = pressed
    }
}

/* is_on: the wait goes on. */
inline look(is_nested)
{
    do
    :: true ->
#ifndef BROKEN_ANNOUNCE
       announce();
#endif
       before = total;
#ifdef BROKEN_ORDER
       in = readied + readied_by[0] + readied_by[1];
#endif
       out = ended[0] + ended[1];
       d_step {
           sleeping = suspended;
           was_vain = (going == 0 && total - ended[0] - ended[1] - suspended > 0)
       }
#ifdef BROKEN_ANNOUNCE
       announce();
#endif
       d_step {
#ifndef BROKEN_ORDER
           in = readied + readied_by[0] + readied_by[1];
#endif
           is_vain = (is_nested && in <= out + sleeping);
           if
           :: is_nested -> live = out + sleeping
           :: else -> live = out
           fi;
#ifdef BROKEN_APART
           before = 1;
           live = total - ended[0] - ended[1] - is_nested * suspended;
#else
           before = (before > live -> before - live : 0);
           live = total - live;
#endif
           again = (live != 0 && is_vain && before == 0);
           is_vain = (is_vain && live != 0 && !again);
#ifdef BROKEN_VAIN
           is_vain = false;
           again = false;
#endif
           assert(!is_vain || was_vain);
           was_vain = false;
           in = 0;
           out = 0;
           sleeping = 0;
           before = 0
       }
       d_step {
#ifdef BROKEN_PRESS
           gone = 0;
#else
           gone = base - pressed;
#endif
           is_on = (live != 0 && !is_vain);
           is_on = (is_on && !again);
           again = again || (is_on && (pressed == 0 || pressed > base || gone >= live));
           if
           :: is_on && !again && pressed > live - gone -> pressed = live - gone
           :: else
           fi;
           live = 0;
           base = 0;
           gone = 0;
           is_vain = false
       }
       if
       :: again -> again = false
       :: else -> break
       fi
    od
}

inline end_wait(is_nested)
{
    d_step { nested = nested - is_nested; waits--; last = (waits == 0) }
    if
    :: last ->
       pressed = 0;
       d_step {
           last = false;
           if
           :: waits != 0 -> turn_all
           :: else
           fi
       }
    :: else
    fi
}

#define ALL_ENDED (ended[0] + ended[1] == TASKS)
#define MINE (2 * _pid + depth - 1)

active [2] proctype worker()
{
    byte depth, base, live, in, out, gone, before, sleeping;
    bool is_behind[3];         /* the child of the waiting task at the depth stands behind it */
    bool in_job, is_on, again, is_vain, was_vain, last;
    do
    :: ALL_ENDED -> break
    :: depth > 0 && moved[MINE] ->
       moved[MINE] = false;
       look(true);
       if
       :: is_on -> is_on = false
       :: else ->
          d_step { exists[MINE] = false; moved[MINE] = false }
          end_wait(true);
          d_step { suspended--; going++; depth--; in_job = true }
          if
          :: is_behind[depth] ->
#ifdef BROKEN_READIED
             d_step { ready_children++; going++ }
             readied_by[_pid]++
#else
             readied_by[_pid]++;
             d_step { ready_children++; going++; is_behind[depth] = false }
#endif
          :: else
          fi;
          d_step { ended[_pid]++; going-- }
          count_down()
       fi
    :: d_step { ready_children > 0 -> ready_children--; in_job = true } ->
       d_step { ended[_pid]++; going-- }
       count_down()
    :: d_step { depth < DEPTH && ready_waiters > 0 -> ready_waiters--; in_job = true } ->
       /* The task adds the child, under the graph's lock, and waits. */
       is_behind[depth] = false;
       if
       :: d_step { total == TASKS -> skip }
       :: d_step { total < TASKS -> total++; is_behind[depth] = true }
       :: d_step {
              total < TASKS -> total++;
              readied++;
              going++;
              ready_children++
          }
       fi;
       waits++;
       d_step { nested++; depth++ }
       d_step { suspended++; going-- }
       count_down();
       d_step { exists[MINE] = true; moved[MINE] = true }
    :: in_job && ready_children == 0 && ready_waiters == 0 ->
       in_job = false;
#ifndef BROKEN_LEFT
       if
       :: nested != 0 -> d_step { turn_all }
       :: else
       fi
#endif
    /* Without a job, and nothing to do, the worker sleeps. */
    od
}

active proctype host()
{
    byte base, live, in, out, gone, before, sleeping;
    bool is_on = true, again, is_vain, was_vain, last;
    d_step { waits++; exists[HOST] = true; moved[HOST] = true }
    do
    :: moved[HOST] ->
       moved[HOST] = false;
       look(false);
       if
       :: is_on -> skip
       :: else -> break
       fi
    od;
    end_wait(false);
    assert(ALL_ENDED)
}
