/* SPDX-License-Identifier: Apache-2.0 */
/* The end of pending tasks (runtime/sync/ending.c, sched/execute/pending.c): a worker runs functions one
 * after the other with one record, two enders hold a handle of any run, and another worker retires
 * what the enders hand over. A function returns pending, or with a code of its own. Each run ends
 * exactly once, with the code of the ender that was told so; the retiring thread finds the item and
 * the code; nobody touches the record of a run that is over.
 *
 * Each of these must be found out: */
/* broken: BROKEN_CLAIM */  /* a claim without a swap */
/* broken: BROKEN_SERIAL */ /* a claim does not look at the serial */
/* broken: BROKEN_GIVE */   /* the ender looks for RETURNED, then sets GIVEN */
/* broken: BROKEN_RETURN */ /* the worker looks for GIVEN, then sets RETURNED */
/* broken: BROKEN_ITEM */   /* the worker writes the item once it has let the task go */
/* broken: BROKEN_CODE */   /* the ender writes the code once it has given the end */
/* broken: BROKEN_OWN */    /* a function that returns a code does not claim the end */
/* cc: -DSAFETY -DMEMLIM=2500 */
/* pan: -m1000000 */

#define RUNS 2

byte serial = 1;               /* the word */
bool claimed, given, returned;
byte item, code;               /* of the run: what the worker, and the ender, have written */
bool is_free = true;           /* the record may serve the next call */
bool is_out[RUNS + 2];         /* a handle of the run was taken */
byte inbox;                    /* 1: the record stands in the inbox */
byte told[RUNS + 2];           /* the ender that was told to have ended the run, + 1 */
byte ends[RUNS + 2];           /* times that the run ended */

/* Retires the task of the caller's; the code is an ender's. */
inline retire()
{
    d_step {
        assert(item == serial);
        assert(code != 0 && told[serial] == code);
        ends[serial]++;
        assert(ends[serial] == 1)
    }
    item = 0;
    code = 0;
    d_step { serial++; claimed = false; given = false; returned = false }
    is_free = true
}

/* mine: a serial; ok: whether the claim succeeded. */
inline claim(mine, ok)
{
#ifdef BROKEN_CLAIM
    ok = (serial == mine && !claimed);
    if
    :: ok -> claimed = true
    :: else
    fi
#else
    d_step {
#ifdef BROKEN_SERIAL
        ok = !claimed;
#else
        ok = (serial == mine && !claimed);
#endif
        if
        :: ok -> claimed = true
        :: else
        fi
    }
#endif
}

active proctype worker()
{
    byte now = 1;
    bool ok, seen;
    do
    :: now <= RUNS ->
       is_free -> is_free = false;
       assert(serial == now);
       is_out[now] = true; /* the function takes the handle */
       if
       :: true ->
          /* It returns a code. */
#ifdef BROKEN_OWN
          ok = true;
#else
          claim(now, ok);
#endif
          if
          :: ok ->
             d_step {
                 ends[now]++;
                 assert(ends[now] == 1)
             }
             d_step { serial++; claimed = false; given = false; returned = false }
             is_free = true
          :: else -> skip
          fi
       :: ok = false
       fi;
       if
       :: !ok ->
          /* It returned pending, or an ender was quicker. */
#ifndef BROKEN_ITEM
          item = now;
#endif
#ifdef BROKEN_RETURN
          seen = given;
          returned = true;
#else
          d_step { seen = given; returned = true }
#endif
#ifdef BROKEN_ITEM
          item = now;
#endif
          if
          :: seen -> retire()
          :: else
          fi
       :: else
       fi;
       d_step { now++; ok = false; seen = false }
    :: else -> break
    od
}

proctype ender(byte me)
{
    byte mine, tries;
    bool ok, seen;
    do
    :: tries < RUNS ->
       tries++;
       /* A handle of a run that goes on, or is over long ago. */
       if
       :: is_out[1] -> mine = 1
       :: is_out[2] -> mine = 2
       fi;
       claim(mine, ok);
       if
       :: ok ->
          d_step {
              assert(serial == mine);
              assert(told[mine] == 0);
              told[mine] = me
          }
#ifndef BROKEN_CODE
          code = me;
#endif
#ifdef BROKEN_GIVE
          seen = returned;
          given = true;
#else
          d_step { seen = returned; given = true }
#endif
#ifdef BROKEN_CODE
          code = me;
#endif
          if
          :: seen -> d_step { assert(inbox == 0); inbox = 1 }
          :: else
          fi
       :: else
       fi;
       d_step { ok = false; seen = false; mine = 0 }
    :: else -> break
    od
}

active proctype retirer()
{
end:
    do
    :: d_step { inbox == 1 -> inbox = 0 }
       retire()
    od
}

/* When nobody is left: what was told to be ended has ended. */
active proctype last()
{
    byte i;
    timeout ->
    for (i : 1 .. RUNS) {
        assert(told[i] == 0 || ends[i] == 1);
        assert(!is_out[i] || ends[i] == 1 || told[i] == 0)
    }
    assert(inbox == 0)
}

init
{
    atomic { run ender(1); run ender(2) }
}
