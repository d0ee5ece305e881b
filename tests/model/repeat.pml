/* SPDX-License-Identifier: Apache-2.0 */
/* Repetitions (runtime/graph/job/repeat.c): two workers end runs, another thread cancels. What is under
 * core->lock is one atomic step. A run that has ended parks; one thread at a time has the turns, asks
 * the predicate and starts runs. No parked run stays behind; the predicate is asked in order, by one
 * thread at a time, and finds the copy of the value of its run; with lag 0 or 1 no run starts too
 * early; once the job is cancelled each run in progress is marked; nobody uses the repetition once it
 * is over.
 *
 * Each of these must be found out: */
/* broken: BROKEN_GIVE_UP */ /* the turns are given up behind the look for a parked run */
/* broken: BROKEN_TURNS */   /* the thread that ends a run takes the turns whoever has them */
/* broken: BROKEN_CANCEL */  /* the take-over does not look for a cancellation */
/* broken: BROKEN_LAG */     /* a run starts one answer too early */
/* broken: BROKEN_COPY */    /* one copy of the value instead of two */
/* cc: -DSAFETY -DMEMLIM=2500 */
/* pan: -m1000000 */

#define MOST 4 /* runs */
#define NONE 0
#define ASK 1
#define START 2
#define END 3
#ifdef BROKEN_COPY
#define SLOT(of) 0
#else
#define SLOT(of) ((of) % 2)
#endif

byte lag = 9; /* chosen first */
bool is_running = true; /* a run is in progress that no worker is about to end */
bool is_marked;         /* the newest run was cancelled */
bool is_parked, has_turns, is_answered, is_cancelled, is_over;
byte ended, whole, asked;
byte started = 1;
byte stop;    /* 0: goes on */
byte told;    /* the run of the answer to stop; 0: none */
byte inside;  /* threads in the predicate */
byte copy[2]; /* run whose value the copy has */

/* The next step of the thread that has the turns. */
inline choose(turn)
{
    atomic {
        assert(!is_over);
        must_ask = !is_answered && !is_cancelled && asked < whole;
        if
        :: is_parked && stop == 0 && !must_ask && (ended == MOST || is_cancelled) -> stop = 1
        :: else
        fi;
        if
        :: is_parked && stop == 0 && ended < MOST &&
#ifdef BROKEN_LAG
           asked + lag + 1 >= ended
#else
           asked + lag >= ended
#endif
           -> turn = START
        :: else ->
           if
           :: must_ask -> turn = ASK
           :: !must_ask && is_parked && stop != 0 -> turn = END
           :: else -> turn = NONE
           fi
        fi;
        now = asked + 1;
#ifndef BROKEN_GIVE_UP
        has_turns = (turn != NONE);
#endif
    }
#ifdef BROKEN_GIVE_UP
    has_turns = (turn != NONE);
#endif
}

inline ask()
{
    d_step {
        inside++;
        assert(inside == 1 && now == asked + 1 && copy[SLOT(now)] == now)
    }
    /* Meanwhile the next run may end. */
    assert(copy[SLOT(now)] == now);
    atomic {
        inside--;
        asked = now;
        if
        :: is_answered = true;
           told = now;
           if
           :: stop == 0 -> stop = 1
           :: else
           fi
        :: skip
        fi
    }
}

inline start()
{
    skip; /* a new job is made */
    atomic {
        assert(is_parked && !is_over);
        if
#ifndef BROKEN_CANCEL
        :: is_cancelled -> stop = 1
#else
        :: false -> skip
#endif
        :: else ->
           assert(ended == started && asked + lag >= ended);
           assert(told == 0 || started < told + lag);
           is_parked = false;
           is_marked = false;
           started++;
           assert(!is_cancelled || is_marked);
           ok = true
        fi
    }
    if
    :: ok -> is_running = true
    :: else
    fi;
    ok = false
}

active [2] proctype worker()
{
    byte turn, now;
    bool must_ask, takes, ok, goes_on;
end:
    do
    :: atomic { is_running && lag != 9 -> is_running = false }
       /* The run's last task has retired. */
       assert(!is_over);
       copy[SLOT(ended + 1)] = ended + 1;
       atomic {
           ended++;
           if
           :: is_marked -> stop = 1          /* left work out */
           :: stop == 0 -> stop = 1          /* finished early, or failed */
           :: whole++
           fi;
           is_parked = true;
#ifdef BROKEN_TURNS
           takes = true;
#else
           takes = !has_turns;
#endif
           has_turns = true;
           goes_on = takes
       }
       do
       :: goes_on ->
          choose(turn);
          if
          :: turn == NONE -> goes_on = false
          :: turn == ASK -> ask()
          :: turn == START -> start()
          :: turn == END ->
             atomic {
                 assert(!is_over && is_parked && inside == 0);
                 is_over = true;
                 is_parked = false;
                 goes_on = false
             }
          fi
       :: else -> break
       od;
       skip;
       d_step { turn = 0; now = 0; must_ask = false; takes = false }
    od
}

active proctype canceller()
{
    if
    :: atomic {
           !is_over -> is_cancelled = true;
           is_marked = true /* the newest run, parked or not */
       }
    :: true
    fi
}

/* When nobody can go on, the repetition is over. */
active proctype last()
{
    timeout -> assert(is_over && !is_parked && asked <= ended && ended == started)
}

init
{
    if
    :: lag = 0
    :: lag = 1
    fi
}
