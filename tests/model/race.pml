/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks run twice (runtime/sync/race.c, execute/backup.c; fl_job_keep): an owner that runs two pieces one
 * after the other in one race, each the only one of its job, and two workers that may run each
 * again. Runs end with a result, or without one, as where the device is lost. Each piece is
 * committed exactly once; a job's memory is not another's while somebody runs its piece, or reads
 * what it consists of; and in the end nothing is kept and the race is free.
 *
 * Each of these must be found out: */
/* broken: BROKEN_JOIN */  /* a second run begins without a swap */
/* broken: BROKEN_LEAVE */ /* the race is decided without a swap */
/* broken: BROKEN_KEEP */  /* a second run does not keep the job */
/* broken: BROKEN_LOOK */  /* no second look at the race behind the hazard */
/* broken: BROKEN_QUIET */ /* a job is used again although a hazard names it */
/* broken: BROKEN_LOSER */ /* who won lets go of what the other one needs */
/* broken: BROKEN_BAD */   /* a run without a result counts although the other one goes on */
/* cc: -DSAFETY -DMEMLIM=2500 */
/* pan: -m1000000 */

#define PIECES 2
#define THIEVES 2

#define FREE 0
#define ALONE 1
#define BOTH 2
#define LEFT 3
#define DECIDED 4

byte state, turn;         /* the word */
byte refs;                /* of the one job object */
byte life;                /* which job it is: 1 .. PIECES */
bool hazard[THIEVES];
byte running;             /* runs of the present job's piece */
byte commits[PIECES + 1];

inline unref()
{
    d_step { assert(refs > 0); refs-- }
}

/* In outcome: 1 won, 2 lost, 3 withdrew. */
inline leave(second, good, seen, seen_turn, outcome)
{
#ifdef BROKEN_LEAVE
    seen = state;
    seen_turn = turn;
    d_step {
#else
    d_step {
        seen = state;
        seen_turn = turn;
#endif
        if
        :: seen == BOTH && good -> state = DECIDED; outcome = 1
#ifdef BROKEN_BAD
        :: seen == BOTH && !good && second -> state = ALONE; outcome = 1
        :: seen == BOTH && !good && !second -> state = LEFT; outcome = 1
#else
        :: seen == BOTH && !good && second -> state = ALONE; outcome = 3
        :: seen == BOTH && !good && !second -> state = LEFT; outcome = 3
#endif
        :: seen == DECIDED -> state = FREE; turn = seen_turn + 1; outcome = 2
        :: else -> state = FREE; turn = seen_turn + 1; outcome = 1
        fi
    }
}

/* What follows for the job that the run was of. */
inline finish(mine, outcome, seen)
{
    d_step { assert(life == mine); running-- }
    if
    :: outcome == 1 ->
       d_step { commits[mine]++; assert(commits[mine] == 1) }
#ifdef BROKEN_LOSER
       if
       :: seen == BOTH -> unref()
       :: else
       fi;
#endif
       unref() /* the job's own: it is complete */
    :: else ->
#ifndef BROKEN_LOSER
       unref() /* what was kept */
#else
       if
       :: outcome == 3 -> unref()
       :: else
       fi
#endif
    fi
}

active proctype owner()
{
    byte piece = 1, seen, seen_turn, outcome;
    bool good;
    do
    :: piece <= PIECES ->
       /* The job object may be used again, and the race. */
#ifdef BROKEN_QUIET
       atomic { (refs == 0 && state == FREE) -> life = piece; refs = 1 }
#else
       atomic {
           (refs == 0 && state == FREE && !hazard[0] && !hazard[1]) -> life = piece; refs = 1
       }
#endif
       d_step { assert(running == 0); running++ }
       state = ALONE;
       if
       :: good = true
       :: good = false
       fi;
       leave(false, good, seen, seen_turn, outcome);
       finish(piece, outcome, seen);
       d_step { piece++; seen = 0; seen_turn = 0; outcome = 0; good = false }
    :: else -> break
    od
}

proctype thief(byte me)
{
    byte word_turn, mine, seen, seen_turn, outcome, tries;
    bool good, is_kept, joined, is_there;
    do
    :: tries < PIECES ->
       atomic { tries++; is_there = (state == ALONE); word_turn = turn }
       if
       :: is_there ->
          mine = life; /* the name that the race has of the job */
          hazard[me] = true;
#ifndef BROKEN_LOOK
          is_there = (state == ALONE && turn == word_turn);
#endif
          if
          :: is_there ->
             assert(life == mine); /* it may be read */
             d_step {
                 is_kept = (refs > 0);
#ifndef BROKEN_KEEP
                 if
                 :: is_kept -> refs++
                 :: else
                 fi
#endif
             }
             if
             :: is_kept ->
#ifdef BROKEN_JOIN
                joined = (state == ALONE && turn == word_turn);
                if
                :: joined -> d_step { running++; state = BOTH }
                :: else
                fi;
#else
                d_step {
                    joined = (state == ALONE && turn == word_turn);
                    if
                    :: joined -> state = BOTH; running++
                    :: else
                    fi
                }
#endif
                hazard[me] = false;
                if
                :: joined ->
                   if
                   :: good = true
                   :: good = false
                   fi;
                   leave(true, good, seen, seen_turn, outcome);
                   finish(mine, outcome, seen)
                :: else ->
#ifndef BROKEN_KEEP
                   unref()
#endif
                   skip
                fi
             :: else -> hazard[me] = false
             fi
          :: else -> hazard[me] = false
          fi
       :: else
       fi;
       d_step {
           word_turn = 0; mine = 0; seen = 0; seen_turn = 0; outcome = 0;
           good = false; is_kept = false; joined = false; is_there = false
       }
    :: else -> break
    od
}

/* When nobody is left. */
active proctype last()
{
    timeout ->
    assert(state == FREE && refs == 0 && running == 0);
    assert(commits[1] == 1 && commits[2] == 1)
}

init
{
    atomic { run thief(0); run thief(1) }
}
