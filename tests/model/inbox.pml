/* SPDX-License-Identifier: Apache-2.0 */
/* The inbox of runtime/sync/inbox.c: two pushers, one of them of a chain, and two drainers. Every link
 * is drained exactly once, and one pusher's in order; a push that found the inbox empty begins each
 * batch that is drained.
 *
 * Each of these must be found out: */
/* broken: BROKEN_PUSH */  /* push stores the head without a swap */
/* broken: BROKEN_DRAIN */ /* drain reads the head, then stores null */
/* broken: BROKEN_CHAIN */ /* push_chain does not turn the chain over */
/* cc: -DSAFETY -DMEMLIM=1500 */
/* pan: -m100000 */

#define LINKS 5 /* numbered from 1; 0 is null. 1 and 2 by pusher 0; the chain 3 4 and 5 by pusher 1 */

byte head;
byte next[LINKS + 1];
byte drained[LINKS + 1];
byte pushing = 2, draining = 2, opened, batches;

inline push(first, last)
{
    h = head;
    do
    :: next[last] = h;
#ifdef BROKEN_PUSH
       head = first;
       won = true;
#else
       d_step {
           won = (head == h);
           if
           :: won -> head = first
           :: else -> h = head
           fi
       }
#endif
       if
       :: won -> break
       :: else
       fi
    od;
    atomic { opened = opened + (h == 0); h = 0; won = false }
}

active proctype pusher_single()
{
    byte h;
    bool won;
    push(1, 1);
    push(2, 2);
    pushing--
}

/* push_chain(3 -> 4) turned over, so that 4 is on top, then 5. */
active proctype pusher_chain()
{
    byte h;
    bool won;
#ifdef BROKEN_CHAIN
    next[3] = 4;
    push(3, 4);
#else
    next[4] = 3;
    push(4, 3);
#endif
    push(5, 5);
    pushing--
}

active [2] proctype drainer()
{
    byte link, back, ahead, after_single, after_chain;
    bool last;
    do
    :: last = (pushing == 0);
       if
       :: head != 0 ->
#ifdef BROKEN_DRAIN
          link = head;
          head = 0;
#else
          d_step { link = head; head = 0 }
#endif
          batches = batches + (link != 0);
          /* Turns the chain over. */
          do
          :: link != 0 -> ahead = next[link]; next[link] = back; back = link; link = ahead
          :: else -> break
          od;
          do
          :: back != 0 ->
             d_step {
                 drained[back]++;
                 assert(drained[back] == 1);
                 if
                 :: back <= 2 -> assert(back > after_single); after_single = back
                 :: else -> assert(back > after_chain); after_chain = back
                 fi;
                 back = next[back]
             }
          :: else -> break
          od;
          ahead = 0
       :: else ->
          if
          :: last -> break
          :: else
          fi
       fi
    od;
    atomic {
        draining--;
        if
        :: draining == 0 ->
           assert(drained[1] + drained[2] + drained[3] + drained[4] + drained[5] == LINKS);
           assert(head == 0 && opened == batches)
        :: else
        fi
    }
}
