/* SPDX-License-Identifier: Apache-2.0 */
/* Look-ahead, runtime/sched/execute/ahead.c: a task with two predecessors, of which each worker
 * has one, through three runs of its graph. Either worker may put the task behind them, or find it
 * ready by a hint, fresh or stale, or as the task that it just made ready. The second predecessor
 * may fail.
 *
 * In each run the task is run or skipped exactly once; it is run only behind predecessors that were
 * begun in this run and do not fail; and it is left as the next run needs it. Marks tell runs apart
 * modulo two here, so that the third run meets those of the first.
 *
 * Each of these must be found out: */
/* broken: BROKEN_RELEASE */ /* the last predecessor does not see that the task was claimed ahead */
/* broken: BROKEN_READY */   /* … or makes it ready without the bit */
/* broken: BROKEN_CLAIM */   /* a claim ahead looks, then writes, without a swap */
/* broken: BROKEN_PENDING */ /* a claim ahead sets pending instead of adding to it */
/* broken: BROKEN_MARK */    /* a task that failed leaves the mark that it had */
/* broken: BROKEN_RUN */     /* whoever follows does not look for which run a mark is */
/* cc: -DSAFETY -DMEMLIM=1500 */
/* pan: -m100000 */

#define RUNS 3
#define OVER 0 /* what a mark says */
#define LANE 1
#define UNFOLLOWABLE 2

/* The task: its word, and the predecessors that have not retired. */
byte epoch = 1;
bool ready, poisoned;
byte pending = 2;

/* Of the predecessors, one a worker. */
byte mark[2], mark_run[2]; /* as sealing leaves them: of no run */
byte begun[2];             /* in which run last */
bool failed;               /* the second one, in this run */

byte hint[2]; /* epochs; 0: none */
byte now = 1, remaining = 3, taken;

inline set_mark(p, what)
{
    d_step { mark[p] = what; mark_run[p] = r % 2 }
}

/* The task is ours: it runs, or is skipped. */
inline take(skips)
{
    d_step {
        taken++;
        assert(taken == 1);
        assert(skips || (begun[0] == r && begun[1] == r && !failed));
        is_mine = true
    }
}

inline retire_one()
{
    d_step {
        remaining--;
        if
        :: remaining == 0 -> /* the run is over, and the next one may begin */
           assert(taken == 1 && pending == 2 && epoch == r + 1 && !ready && !poisoned);
           remaining = 3;
           taken = 0;
           failed = false;
           now++
        :: else
        fi
    }
}

#ifdef BROKEN_RUN
#define IS_FOLLOWABLE(p) (mark[p] != UNFOLLOWABLE)
#else
#define IS_FOLLOWABLE(p) (mark[p] != UNFOLLOWABLE && mark_run[p] == r % 2)
#endif

/* claim_ahead */
inline look_ahead()
{
    if
    :: epoch == r && !ready && !poisoned ->
       if
       :: IS_FOLLOWABLE(0) ->
          if
          :: IS_FOLLOWABLE(1) ->
             d_step {
#ifdef BROKEN_CLAIM
                 won = true;
#else
                 won = (epoch == r && !ready && !poisoned);
#endif
                 if
                 :: won -> epoch = r + 1
                 :: else
                 fi
             }
             if
             :: won ->
                take(false);
#ifdef BROKEN_PENDING
                pending = 2
#else
                pending = pending + 2
#endif
             :: else
             fi
          :: else
          fi
       :: else
       fi
    :: else
    fi;
    won = false
}

/* fl_task_claim, then take_task */
inline use_hint()
{
    if
    :: epoch == hint[me] && pending == 0 ->
       d_step {
           won = (epoch == hint[me]);
           if
           :: won -> skips = poisoned; epoch++; ready = false; poisoned = false
           :: else
           fi
       }
       if
       :: won -> pending = 2; take(skips)
       :: else
       fi
    :: else
    fi;
    d_step { won = false; skips = false; hint[me] = 0 }
}

/* fl_ahead_release; who makes the task ready keeps it (fl_task_own), or gives hints to it. */
inline release(poisons)
{
    d_step {
        if
        :: poisons && epoch == r -> poisoned = true
        :: else
        fi
    }
    d_step { won = (pending == 1); pending-- }
    if
    :: won ->
       d_step {
#ifdef BROKEN_RELEASE
           won = true;
#else
           won = (epoch == r);
#endif
#ifndef BROKEN_READY
           ready = (won -> true : ready)
#endif
       }
       if
       :: !won
       :: won -> /* known to nobody else: no swap */
          skips = poisoned;
          d_step { epoch = r + 1; ready = false; poisoned = false }
          pending = 2;
          take(skips)
       :: won -> hint[0] = r; hint[1] = r
       fi
    :: else
    fi;
    d_step { won = false; skips = false }
}

active [2] proctype worker()
{
    byte me = _pid, r = 1;
    bool won, skips, is_mine, fails, is_over;
    do
    :: r > RUNS -> break
    :: r <= RUNS && now == r ->
       begun[me] = r;
       if
       :: me == 1 -> d_step { fails = true; failed = true }
       :: true    -> set_mark(me, LANE) /* on a device, which others can follow */
       :: true                          /* on the host */
       fi;
       do
       :: true -> look_ahead() /* more often than workers do, who look for what they have there */
       :: hint[me] != 0 -> use_hint()
       :: !is_over ->
          is_over = true;
          if
          :: !fails -> set_mark(me, OVER)
#ifdef BROKEN_MARK
          :: fails
#else
          :: fails -> set_mark(me, UNFOLLOWABLE)
#endif
          fi;
          release(fails);
          retire_one()
       :: is_mine -> is_mine = false; retire_one()
       :: is_over && !is_mine && now > r -> break
       od;
       atomic { r++; fails = false; is_over = false }
    od
}
