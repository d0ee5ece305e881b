/* SPDX-License-Identifier: Apache-2.0 */
/* The mailbox of runtime/sync/mailbox.c with two cells: two putters of two notes each, two takers. Every
 * note that was not dropped is taken exactly once, a note is dropped only once the mailbox has been
 * filled, and at the end it is empty.
 *
 * Each of these must be found out: */
/* broken: BROKEN_PUT */  /* put takes its cell without a swap */
/* broken: BROKEN_TAKE */ /* take takes its cell without a swap */
/* broken: BROKEN_FILL */ /* put passes the turn on before the note is there */
/* broken: BROKEN_READ */ /* take passes the turn on before it has read the note */
/* cc: -DSAFETY -DMEMLIM=1500 */
/* pan: -m100000 */

#define CELLS 2
#define NOTES 4

byte head, tail;
byte turn[CELLS];
byte note[CELLS];
byte taken[NOTES + 1]; /* notes are 1 .. NOTES */
bool accepted[NOTES + 1];
byte putting = 2, taking = 2;

proctype putter(byte first)
{
    byte n = first, index, seen;
    bool won;
    do
    :: n < first + 2 ->
       index = head;
       do
       :: seen = turn[index % CELLS];
          if
          :: seen < index -> /* full: dropped */
             assert(head >= CELLS);
             break
          :: seen > index -> index = head
          :: seen == index ->
#ifdef BROKEN_PUT
             won = (head == index);
             if
             :: won -> head = index + 1
             :: else -> index = head
             fi;
#else
             d_step {
                 won = (head == index);
                 if
                 :: won -> head = index + 1
                 :: else -> index = head
                 fi
             }
#endif
             if
             :: won ->
                won = false;
                accepted[n] = true;
#ifdef BROKEN_FILL
                turn[index % CELLS] = index + 1;
                note[index % CELLS] = n;
#else
                note[index % CELLS] = n;
                turn[index % CELLS] = index + 1;
#endif
                break
             :: else
             fi
          fi
       od;
       atomic { n++; seen = 0; index = 0 }
    :: else -> break
    od;
    putting--
}

active [2] proctype taker()
{
    byte index, seen, got;
    bool won, last;
    do
    :: last = (putting == 0);
       index = tail;
       do
       :: seen = turn[index % CELLS];
          if
          :: seen < index + 1 -> got = 0; break
          :: seen > index + 1 -> index = tail
          :: seen == index + 1 ->
#ifdef BROKEN_TAKE
             won = (tail == index);
             if
             :: won -> tail = index + 1
             :: else -> index = tail
             fi;
#else
             d_step {
                 won = (tail == index);
                 if
                 :: won -> tail = index + 1
                 :: else -> index = tail
                 fi
             }
#endif
             if
             :: won ->
                won = false;
#ifdef BROKEN_READ
                turn[index % CELLS] = index + CELLS;
                got = note[index % CELLS];
#else
                got = note[index % CELLS];
                turn[index % CELLS] = index + CELLS;
#endif
                break
             :: else
             fi
          fi
       od;
       if
       :: got != 0 -> d_step { taken[got]++; assert(accepted[got] && taken[got] == 1); got = 0 }
       :: else ->
          if
          :: last -> break
          :: else
          fi
       fi;
       d_step { index = 0; seen = 0; last = false }
    od;
    atomic {
        taking--;
        if
        :: taking == 0 ->
           assert(taken[1] == accepted[1] && taken[2] == accepted[2]);
           assert(taken[3] == accepted[3] && taken[4] == accepted[4]);
           assert(head == tail)
        :: else
        fi
    }
}

init
{
    d_step { turn[0] = 0; turn[1] = 1 }
    atomic { run putter(1); run putter(3) }
}
