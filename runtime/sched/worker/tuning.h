/* SPDX-License-Identifier: Apache-2.0 */
/* The constants that the scheduler's rules go by, as one table: type, name, value, unit, source of
 * the value, one sentence. filch-bench config --tuning prints it. Sizes of structures are beside
 * the structures. */
#ifndef FL_SCHED_WORKER_TUNING_H
#define FL_SCHED_WORKER_TUNING_H

#include <stdint.h>

/* Costs of the host, and moves between cores */
#define FL_TUNING_COSTS(X)                                                                         \
    X(double, FL_HANDOFF_NS, 300.0, "ns", "measured: docs/performance.md",                         \
      "Time to give a task to an awake worker: the lines of the queue, the task and its views.")   \
    X(double, FL_THEFT_NS, 1000.0, "ns", "measured: docs/performance.md",                          \
      "Time of a host thread to find another worker's tasks, or a divided task, and to move the "  \
      "cache lines.")                                                                              \
    X(double, FL_WAKE_UP_NS, 10000.0, "ns", "measured: docs/performance.md",                       \
      "Time to wake a sleeping worker: the system call, and the time until its thread runs. Less " \
      "queued work wakes nobody.")                                                                 \
    X(double, FL_WAKE_UP_DEAREST, 16.0, "wake-ups", "estimate",                                    \
      "Largest multiple of the cost of a wake-up that a worker lets idle cores owe, after "        \
      "wake-ups in vain.")                                                                         \
    X(double, FL_SHARED_L2_NS, 0.02, "ns a byte", "caches of servers",                             \
      "Move of a byte between cores with a common L2 cache.")                                      \
    X(double, FL_SHARED_L3_NS, 0.06, "ns a byte", "caches of servers",                             \
      "Move of a byte between cores with a common L3 cache.")                                      \
    X(double, FL_APART_NS, 0.065, "ns a byte", "measured: docs/performance.md",                    \
      "Move of a byte between cores of one NUMA node without a common cache.")                     \
    X(double, FL_OTHER_NODE_NS, 0.15, "ns a byte", "caches of servers",                            \
      "Move of a byte between cores of two NUMA nodes.")                                           \
    X(double, FL_ROOT_LOOK_NS, 40.0, "ns", "measured: docs/performance.md",                        \
      "Time to find a root's core; one thread does so for all roots while the cores wait.")

/* Measured speeds (speed.h) */
#define FL_TUNING_SPEEDS(X)                                                                        \
    X(uint32_t, FL_SPEED_PERIOD, 64, "items", "rule of thumb",                                     \
      "One item in so many is timed once a regime has its samples.")                               \
    X(uint32_t, FL_SPEED_PERIOD_LONG, 512, "items", "rule of thumb",                               \
      "The same of brief items, and of short items on a GPU, whose timing takes driver calls.")    \
    X(uint32_t, FL_SPEED_REGIME, 3, "samples", "rule of thumb",                                    \
      "Outliers in a row that agree and make a new regime.")                                       \
    X(uint32_t, FL_SPEED_REGIME_OLD, 2, "samples", "rule of thumb",                                \
      "Samples in a row that overrule old evidence: a prior, or samples that are all older than "  \
      "FL_SPEED_AGED_NS.")                                                                         \
    X(double, FL_SPEED_AGREE, 1.5, "ratio", "rule of thumb",                                       \
      "Outliers agree where the largest is at most so many times the smallest.")                   \
    X(uint32_t, FL_SPEED_MAD_FILLED, 5, "samples", "rule of thumb",                                \
      "Samples from which a deviation tells anything; before, the median alone holds off a bad "   \
      "sample.")                                                                                   \
    X(double, FL_SPEED_MAD_LIMIT, 5.0, "deviations", "rule of thumb",                              \
      "Median absolute deviations beyond which a sample is an outlier.")                           \
    X(double, FL_SPEED_GRAIN, (1.0 / 16.0), "of the time", "rule of thumb",                        \
      "Times that differ by this part measure alike: no deviation is less, and a line of a wider " \
      "range of works is taken though it is so much slower.")                                      \
    X(double, FL_SPEED_AGED_NS, 10000000000.0, "ns", "rule of thumb",                              \
      "Half-life of a sample's weight.")                                                           \
    X(double, FL_SPEED_AGED_LEAST, 2.25, "samples", "rule of thumb",                               \
      "Least weight of all samples but the newest: one alone does not decide.")                    \
    X(double, FL_SPEED_APART, 2.0, "ratio", "rule of thumb",                                       \
      "Works are apart from this ratio on: only works apart tell a fixed part, and a speed holds " \
      "for no item whose work is apart from the works that showed it.")                            \
    X(uint32_t, FL_SPEED_FIT_PERIOD, 4, "samples", "rule of thumb",                                \
      "Samples between two looks for a fixed part.")                                               \
    X(double, FL_SPEED_FIT_GAIN, 1.25, "ratio", "rule of thumb",                                   \
      "A fixed part is believed where a unit of work costs so many times as much in small items.") \
    X(double, FL_SPEED_WORK_LEAST, (1.0 / 16.0), "of the time", "rule of thumb",                   \
      "Least part of a large item's time that a fixed part leaves to its work.")                   \
    X(double, FL_MEAN_WEIGHT, (1.0 / 8.0), "weight", "rule of thumb",                              \
      "Weight of the newest value in a running mean: of the spread of speeds, and of the time of " \
      "a theft.")                                                                                  \
    X(double, FL_SPEED_DISAGREE, 2.0, "ratio", "rule of thumb",                                    \
      "Measurements disagree with a prior by this factor.")

/* Exploration of devices measured slow */
#define FL_TUNING_EXPLORATION(X)                                                                   \
    X(double, FL_EXPLORE_ITEMS, 64.0, "items", "rule of thumb",                                    \
      "A slow device is tried again after so many times the time of one item there, at least.")    \
    X(double, FL_EXPLORE_LEAST_NS, 1000000.0, "ns", "rule of thumb",                               \
      "Least time between two explorations.")                                                      \
    X(double, FL_EXPLORE_GROWTH, 64.0, "ratio", "rule of thumb",                                   \
      "Largest growth of the time between two explorations that found nothing.")                   \
    X(double, FL_FASTER, 2.0, "ratio", "rule of thumb",                                            \
      "A device is clearly faster, and gets the work or a trial, where it takes less than one so " \
      "many-th of the time.")

/* Predictions */
#define FL_TUNING_PREDICTIONS(X)                                                                  \
    X(uint32_t, FL_LOOK_AGAIN_NS, 20000u, "ns", "rule of thumb",                                  \
      "Least time until a worker looks again at a choice that was refused, at an item without "   \
      "memory, or at copies that an offline device waits for.")                                   \
    X(double, FL_TIE, 1e-12, "of the time", "rounding of doubles",                                \
      "Finishes that differ by less are equal.")                                                  \
    X(double, FL_WORK_USUAL_NS, 1000.0, "ns a unit", "estimate",                                  \
      "A unit of work on a device with a score of 1 where no speed was measured.")                \
    X(double, FL_SCORE_LEAST, 1e-9, "score", "estimate", "In place of a score of 0.")             \
    X(double, FL_LINK_USUAL, 16e9, "bytes a s", "estimate",                                       \
      "Rate of a link with the host, for a policy, where none was measured.")                     \
    X(double, FL_HOST_COPY_RATE, 8.0, "bytes a ns", "estimate", "Rate at which the host copies.") \
    X(uint32_t, FL_SAMPLED_PARTS, 8u, "parts", "a bound on the time of one decision",             \
      "Roots, tiles or parts of a rest that are looked at and stand for all.")                    \
    X(uint32_t, FL_MISSING_JOBS, 8u, "jobs", "a bound on the time of one decision",               \
      "Jobs among which the job of a victim's tasks is looked for.")                              \
    X(uint32_t, FL_MISSING_SLABS, 4096u, "slabs", "a bound on the time of one decision",          \
      "Slabs of tasks that are looked at for a victim's job.")                                    \
    X(uint32_t, FL_TASKS_SEEN, 32u, "tasks", "a bound on the time of one decision",               \
      "Tasks that one decision looks at, at most: urgent tasks, users of a tile, entries of a "   \
      "victim's deque.")

/* Earliest finish (decide/eft.h) and the shared ready queue (shared_queue.h) */
#define FL_TUNING_EARLIEST_FINISH(X)                                                              \
    X(double, FL_SLOW_MARGIN, 0.5, "of the time", "rule of thumb",                                \
      "A slow device is to end a task earlier than it must by this part of its time: not all "    \
      "that is left can run at once.")                                                            \
    X(uint32_t, FL_EFT_LEFT_FOR_OTHERS, 2u, "tasks", "rule of thumb",                             \
      "Ready tasks that a slow device leaves to the others.")                                     \
    X(uint32_t, FL_EFT_MOST_WEIGHED, 512u, "tasks", "a bound on the time of one decision",        \
      "Tasks times devices that one choice weighs.")                                              \
    X(uint32_t, FL_EFT_LEAST_URGENT, 8u, "tasks", "a bound on the time of one decision",          \
      "Least number of urgent tasks that one choice weighs.")                                     \
    X(uint32_t, FL_EFT_MOST_SLACK, 16u, "tasks", "a bound on the time of one decision",           \
      "Tasks with slack that one choice weighs, from the least urgent on.")                       \
    X(double, FL_LOOK_AGAIN_OF_TIME, 4.0, "parts", "rule of thumb",                               \
      "A device that left work to another device looks again after one so many-th of the time "   \
      "that the work takes.")                                                                     \
    X(double, FL_EFT_FOLLOWED_NS, 10000000.0, "ns", "measured: docs/performance.md",              \
      "A GPU's task shorter than this has the next task behind it: microseconds pass between an " \
      "end that the host sees and a launch.")                                                     \
    X(double, FL_SHARED_QUEUE_LEAST_NS, 6000.0, "ns", "measured: docs/performance.md",            \
      "Tasks measured shorter are not weighed: an empty task of a GPU measures nearly as much.")  \
    X(uint32_t, FL_ALIKE_TASKS, 24u, "tasks", "rule of thumb",                                    \
      "Tasks in a row with about equal times that say devices are alike again.")                  \
    X(double, FL_LOCK_NS, 20000.0, "ns", "measured: docs/performance.md",                         \
      "Least length of tasks, a device, that are weighed: the lock then costs at most a "         \
      "hundredth. A tenth of it on GPUs, which compute while their workers take the lock.")       \
    X(double, FL_WIDE_ENOUGH, 256.0, "tasks a device", "measured: docs/performance.md",           \
      "Graphs so wide leave enough in all deques.")                                               \
    X(double, FL_WIDE_ENOUGH_ALIKE, 64.0, "tasks a device", "measured: docs/performance.md",      \
      "The same of devices that are alike and of one memory, as slices of a GPU.")                \
    X(double, FL_LONGER_ALIKE, 5.0, "ratio", "measured: docs/performance.md",                     \
      "Tasks of such devices are to last so many times as long.")                                 \
    X(double, FL_WIDE_ENOUGH_HASTY, 4.0, "tasks a device", "measured: docs/performance.md",       \
      "Of graphs so wide no short task is put behind another.")

/* Chunks of ranges: batches (chunk.c) and divisible tasks (divide.c) */
#define FL_TUNING_CHUNKS(X)                                                                       \
    X(double, FL_CHUNK_OF_REST, 0.0025, "of the share", "measured: docs/performance.md",          \
      "A chunk is this part of what is left of the device's share.")                              \
    X(double, FL_CHUNK_DISPATCHES, 200.0, "dispatches", "measured: docs/performance.md",          \
      "A chunk lasts at least so long where enough chunks are left: its dispatch then costs "     \
      "little.")                                                                                  \
    X(double, FL_PIECE_DISPATCHES, 50.0, "dispatches", "measured: docs/performance.md",           \
      "The same of a piece of a divisible task.")                                                 \
    X(double, FL_CHUNKS_OF_REST, 16.0, "chunks", "measured: docs/performance.md",                 \
      "Chunks that have to be left, also of what all devices have left: a device that turns out " \
      "slow holds nobody up.")                                                                    \
    X(double, FL_CHUNK_FLOOR_DISPATCHES, 20.0, "dispatches", "measured: docs/performance.md",     \
      "Least length of a chunk.")                                                                 \
    X(double, FL_CHUNK_FLOOR_FIXED, 8.0, "fixed parts", "measured: docs/performance.md",          \
      "Least length of a chunk, in times that an item takes whatever its work.")                  \
    X(double, FL_CHUNKS_OF_REST_DEAR, 4.0, "chunks", "measured: docs/performance.md",             \
      "Chunks that have to be left where each wastes time of the device: a fixed part, or on "    \
      "slices the last blocks, which leave part of a slice idle.")                                \
    X(double, FL_CHUNK_LEAST_FIXED, 2.0, "fixed parts", "measured: docs/performance.md",          \
      "Least rest, in fixed parts, for which FL_CHUNK_FLOOR_FIXED holds.")                        \
    X(double, FL_CHUNK_GROWTH, 8.0, "ratio", "rule of thumb",                                     \
      "Largest work of a chunk over the largest work that was ever timed.")                       \
    X(double, FL_CHUNK_STEP, 4.0, "ratio", "rule of thumb",                                       \
      "Largest work of a chunk over the last chunk of the range: items need not cost alike.")     \
    X(double, FL_CHUNK_FIRST_DISPATCHES, 2.0, "dispatches", "rule of thumb",                      \
      "Length of the first chunk of a range.")                                                    \
    X(uint32_t, FL_UNSEEN_LEAST, 2u, "chunks", "rule of thumb",                                   \
      "Chunks in flight on a device until the first one of a range, or of a codelet of unknown "  \
      "speed, is over.")                                                                          \
    X(double, FL_UNSEEN_NS, 50000.0, "ns", "rule of thumb",                                       \
      "Predicted time of the chunks in flight until then, while the host learns of it.")          \
    X(uint32_t, FL_CHUNK_ASKED_EACH, 8u, "chunks", "a bound on the time of one decision",         \
      "The time that all devices still need is computed anew each so many chunks.")               \
    X(uint32_t, FL_CHUNK_DEVICES, 4u, "devices", "a bound on the time of one decision",           \
      "Devices that a chunk looks at for that, in the mean.")                                     \
    X(uint32_t, FL_PROBES_OF_REST, 64u, "parts", "rule of thumb",                                 \
      "Part of a GPU's share that is its first chunk where no speed was measured.")               \
    X(uint32_t, FL_PIECE_PROBES_OF_REST, 1024u, "parts", "rule of thumb",                         \
      "The same of a divisible task.")                                                            \
    X(double, FL_NEAR_END_CHUNKS, 2.0, "chunks", "measured: docs/performance.md",                 \
      "With fewer chunks left of a device's share, one at a time is in flight.")                  \
    X(uint32_t, FL_TRUSTED, 4u, "samples", "rule of thumb",                                       \
      "Samples from which a mean tells anything and decides about the end: one of them may be "   \
      "wrong.")                                                                                   \
    X(uint32_t, FL_CHUNKS_IN_MEMORY, 8u, "chunks", "rule of thumb",                               \
      "Chunks that have to fit into a device's memory at once.")                                  \
    X(uint32_t, FL_ROOTS_AHEAD, 4u, "roots", "measured: docs/performance.md",                     \
      "Roots whose lines are fetched ahead.")                                                     \
    X(double, FL_PIECE_LATENCY_NS, 10000.0, "ns", "measured: docs/performance.md",                \
      "Time on a GPU from the end of a piece, as its worker sees it, to the begin of the next "   \
      "piece.")                                                                                   \
    X(uint32_t, FL_DIVIDE_WOKEN, 2, "workers", "rule of thumb",                                   \
      "Workers that are woken at once for a divided task.")                                       \
    X(int, FL_RACE_TRIES, 4, "tries", "rule of thumb",                                            \
      "Looks at a queue or a division of which other workers take what was seen.")                \
    X(uint32_t, FL_POLICY_PIECES, 32u, "pieces a device", "rule of thumb",                        \
      "Pieces or chunks where a policy does not say.")                                            \
    X(double, FL_RESIDENT_THREADS, 2048.0, "threads", "1,024 to 2,048 by architecture",           \
      "Threads that a multiprocessor holds.")                                                     \
    X(double, FL_FULL_TIMES, 1.8, "ratio", "measured: docs/performance.md",                       \
      "Times its resident threads that fill a device: blocks of the next kernel replace those "   \
      "that end.")

/* Placement on cores, slow devices, theft */
#define FL_TUNING_PLACEMENT(X)                                                                   \
    X(uint32_t, FL_LOOKS_A_ROOT, 4, "looks", "rule of thumb",                                    \
      "Least time of a root for each core, in FL_ROOT_LOOK_NS, for which roots are placed.")     \
    X(uint32_t, FL_ROOT_SHARES, 2u, "shares", "rule of thumb",                                   \
      "Times its even share of the roots that a core may have.")                                 \
    X(double, FL_LEFT_FROM_NS, 20000.0, "ns", "rule of thumb",                                   \
      "A task longer than this is left to a faster device.")                                     \
    X(double, FL_SLOW_FROM, 1.5, "ratio", "rule of thumb",                                       \
      "A device is slow, and devices are unlike, where one takes so many times as long as the "  \
      "fastest.")                                                                                \
    X(uint32_t, FL_SLOW_UNTIL, 64u, "tasks", "rule of thumb",                                    \
      "Timed tasks in a row that say a device is not slow.")                                     \
    X(double, FL_STEAL_LEAST_NS, 150.0, "ns", "measured: docs/performance.md",                   \
      "Least time of a theft between cores; the time is measured.")                              \
    X(double, FL_STEAL_MOST_NS, 3000.0, "ns", "measured: docs/performance.md",                   \
      "Largest time of a theft between cores.")                                                  \
    X(double, FL_STEAL_LONG, 2.0, "ratio", "rule of thumb",                                      \
      "A task is not far shorter than a theft if so many tasks are longer.")                     \
    X(double, FL_STEAL_HAUL_NS, 50000.0, "ns", "rule of thumb",                                  \
      "Time of the tasks of one theft; a single task may last longer.")                          \
    X(uint32_t, FL_STEAL_MOST, 64, "tasks", "rule of thumb", "Tasks of one theft.")              \
    X(double, FL_STEAL_HALF_DONE, 0.5, "of an item", "mean of a uniform distribution",           \
      "What is left of a victim's present item.")                                                \
    X(double, FL_STEAL_SEEN, 0.25, "of an item", "rule of thumb",                                \
      "A core is away from its inbox when it was seen for this part of its tasks' time at one "  \
      "task.")                                                                                   \
    X(double, FL_STEAL_GONE_NS, 40000.0, "ns", "rule of thumb",                                  \
      "A searching core that has not stepped for so long was preempted.")                        \
    X(double, FL_STEAL_UNKNOWN_NS, 1e12, "ns", "estimate",                                       \
      "Time left of a victim of unknown speed: worth stealing from.")                            \
    X(uint32_t, FL_STEAL_PARTS, 2u, "parts", "rule of thumb",                                    \
      "Of the work of a failed or offline device, a thief takes one of so many parts a device.") \
    X(uint32_t, FL_VICTIMS_SEARCHED, 4u, "victims", "a bound on the time of one decision",       \
      "Victims of one look of a searching core.")

/* Locality window, look-ahead, queue depth */
#define FL_TUNING_LOCALITY(X)                                                                      \
    X(uint32_t, FL_LOCALITY_RECENT, 64u, "items", "rule of thumb",                                 \
      "Items for which an event counts as recent: after an eviction memory is short, after a "     \
      "copy copies are frequent.")                                                                 \
    X(uint32_t, FL_LOCALITY_HAULS, 16u, "items", "rule of thumb",                                  \
      "Items until copies from the host's memory count as rare.")                                  \
    X(uint32_t, FL_LOCALITY_KEPT, 32u, "tasks", "measured: docs/performance.md",                   \
      "Ready tasks that a device keeps to choose from, and whose operands it fetches ahead, "      \
      "while tiles come from the host's memory.")                                                  \
    X(uint32_t, FL_LOCALITY_KEPT_FEW, 4u, "tasks", "measured: docs/performance.md",                \
      "Ready tasks that a device keeps while tiles come from other devices.")                      \
    X(uint32_t, FL_LOCALITY_KEPT_LEAST, 1u, "tasks", "measured: docs/performance.md",              \
      "Ready tasks that a slow device keeps, or any device while another one is hungry.")          \
    X(uint64_t, FL_FETCH_BYTES, ((uint64_t)128 << 20), "bytes", "2 ms of a link",                  \
      "Bytes fetched ahead at once.")                                                              \
    X(uint32_t, FL_FETCH_PEERS, 4u, "ratio", "estimate",                                           \
      "Times as many bytes from other devices, whose links are faster.")                           \
    X(uint32_t, FL_FETCH_PART, 16u, "parts", "rule of thumb",                                      \
      "Part of a device's memory that is fetched ahead.")                                          \
    X(uint32_t, FL_FETCH_TASKS_PRESSED, 2u, "tasks", "rule of thumb",                              \
      "Tasks with operands fetched ahead where memory is short; they share FL_FETCH_PART evenly.") \
    X(double, FL_DEPTH_NS, 100000.0, "ns", "measured: docs/performance.md",                        \
      "Work in flight that keeps a GPU busy while its worker looks elsewhere.")                    \
    X(uint32_t, FL_DEPTH_OF_LANE, 2u, "items", "measured: docs/performance.md",                    \
      "Items in flight a lane: one computes, one waits behind it and starts without the host.")    \
    X(uint32_t, FL_DEPTH_PRESSED, 2u, "items", "rule of thumb",                                    \
      "Items in flight beyond one a lane where memory is short: their operands stay.")             \
    X(uint32_t, FL_DEPTH_WRITE_BACK, 2u, "ratio", "rule of thumb",                                 \
      "Times the items that may compute that may be in flight with items whose results go home.")  \
    X(double, FL_SHORT_NS, 12000.0, "ns", "measured: docs/performance.md",                         \
      "A short item: it is over soon after its launch. An empty item measures 5 us, with its "     \
      "events. On a core: short items share events of a trace.")                                   \
    X(uint32_t, FL_SHORT_IN_ROW, 64u, "items", "measured: docs/performance.md",                    \
      "Short items in a row on a lane that share one mark.")

/* Speculative execution and graph launches */
#define FL_TUNING_SPECULATION(X)                                                      \
    X(double, FL_RESTART_NS, 2000.0, "ns", "estimate",                                \
      "Time to begin a backup run, and to copy a few cache lines home.")              \
    X(uint32_t, FL_RESTART_REFUSED_NS, 1000000u, "ns", "rule of thumb",               \
      "Time until a device that refused a backup run is asked again.")                \
    X(double, FL_GRAPH_LONGEST_NS, 50000.0, "ns", "measured: docs/performance.md",    \
      "Longer tasks hide their launches: their graphs are not launched whole.")       \
    X(uint32_t, FL_GRAPH_LEAST_REST, 4u, "runs", "rule of thumb",                     \
      "Runs until a graph that could not be made is tried again, doubled each time.") \
    X(uint32_t, FL_GRAPH_MOST_REST, 4096u, "runs", "rule of thumb",                   \
      "Largest number of runs between two tries.")                                    \
    X(uint32_t, FL_GRAPH_FIRST, 10u, "runs", "measured: docs/performance.md",         \
      "Runs before a graph is made: making it costs as much as 7 to 10 runs (6 us a node).")

/* Polling, naps, spinning */
#define FL_TUNING_POLLING(X)                                                                       \
    X(uint32_t, FL_POLL_EARLY_NS, 5000u, "ns", "measured: docs/performance.md",                    \
      "A worker wakes so long before the predicted end of an item.")                               \
    X(uint32_t, FL_POLL_NS, 2000u, "ns", "measured: docs/performance.md",                          \
      "Least time between two polls then.")                                                        \
    X(uint32_t, FL_POLL_MOST_NS, 2000000u, "ns", "rule of thumb",                                  \
      "Largest time between two polls, of items in flight and of the host's events: a prediction " \
      "may be far too long.")                                                                      \
    X(uint32_t, FL_POLL_OF_ITEM, 64, "parts", "rule of thumb",                                     \
      "Part of the time it has polled by which the next poll is later.")                           \
    X(uint32_t, FL_POLL_OF_LATE, 4, "parts", "rule of thumb",                                      \
      "Part of the time an item is late after which it is polled again.")                          \
    X(uint32_t, FL_POLL_OF_WAIT, 8, "parts", "rule of thumb",                                      \
      "Part of the time waited after which the next poll is due where no prediction helps: no "    \
      "time is known, a sleep is long, or the host's events are awaited.")                         \
    X(uint32_t, FL_POLL_BLIND_NS, 50000u, "ns", "rule of thumb",                                   \
      "Longest time between two polls for an end that nothing predicts: of copies, and of items "  \
      "larger than every timed item.")                                                             \
    X(uint32_t, FL_SPIN_NAPS, 4, "parts", "rule of thumb",                                         \
      "Beside a busy device a sleep longer than this part of the spinning time is not spun.")      \
    X(uint32_t, FL_SPIN_GPU, 5u, "parts", "measured: docs/performance.md",                         \
      "Part of FILCH_SPIN_US that a GPU's worker spins.")                                          \
    X(uint32_t, FL_TIMER_SLACK_NS, 1000u, "ns", "rule of thumb",                                   \
      "Slack of the timers of a GPU's worker.")                                                    \
    X(double, FL_SEARCH_LEAST_NS, 500.0, "ns", "measured: docs/performance.md",                    \
      "Least time between two looks of a searching core: each look takes cache lines from cores "  \
      "that work.")                                                                                \
    X(double, FL_SEARCH_MOST_NS, 4000.0, "ns", "measured: docs/performance.md",                    \
      "Largest first time between two looks; else the time of a task.")                            \
    X(uint32_t, FL_SEARCH_GROWTH, 4u, "ratio", "rule of thumb",                                    \
      "Largest growth of that time, doubled after each look in vain.")                             \
    X(uint32_t, FL_EVENTS_LEAST_NS, 10000u, "ns", "rule of thumb",                                 \
      "Least time between two polls of the host's events.")                                        \
    X(uint32_t, FL_POLL_MODE_NAP_NS, 1000000u, "ns", "rule of thumb",                              \
      "Longest nap of a thread that waits in poll mode beside threads that drive workers.")        \
    X(uint32_t, FL_NAP_LEAST_NS, 50000u, "ns", "rule of thumb",                                    \
      "Shortest sleep of an idle worker while jobs run, and of a thread that waits in poll mode.") \
    X(uint32_t, FL_NAP_MOST_NS, 10000000u, "ns", "rule of thumb",                                  \
      "Longest sleep of an idle worker while jobs run.")                                           \
    X(uint32_t, FL_NAP_LATE, 256u, "parts", "rule of thumb",                                       \
      "Part by which each such sleep is longer on a virtual clock.")                               \
    X(uint32_t, FL_NAP_FETCH_NS, 5000u, "ns", "rule of thumb",                                     \
      "Sleep of a host's worker between looks whether operands have come.")                        \
    X(uint32_t, FL_LAUNCHES_A_LOOK, 64u, "launches", "measured: docs/performance.md",              \
      "Launches after which earlier items are probably over.")

/* Time accounting */
#define FL_TUNING_ACCOUNTING(X)                                                               \
    X(uint32_t, FL_CLOCK_PERIOD, 8u, "tasks", "measured: docs/performance.md",                \
      "One in so many launches reads the clock, and one in so many timed tasks measures its " \
      "dispatch, with three looks at the clock.")                                             \
    X(uint32_t, FL_BOUND_ROUNDS, 96u, "rounds", "a bound on the time of one decision",        \
      "Rounds of prices for the bound of a report.")                                          \
    X(uint32_t, FL_BOUND_LOOKS, 98304u, "times", "a bound on the time of one decision",       \
      "Looks at a time in all rounds.")                                                       \
    X(int, FL_BOUND_SHARPNESS, 7, "power of two", "rule of thumb",                            \
      "A kind goes to devices by the power -2^7 of its cost over the least cost: else loads " \
      "jump.")                                                                                \
    X(double, FL_BOUND_STEP, 0.5, "power", "rule of thumb",                                   \
      "Prices change by this power of the load over the mean at first.")                      \
    X(int, FL_LEDGER_TRIES, 64, "tries", "rule of thumb",                                     \
      "Tries to read a ledger while its owner changes it.")                                   \
    X(uint32_t, FL_PREEMPT_LEAST_NS, 100000u, "ns", "rule of thumb",                          \
      "Least time without the core that counts as preempted.")

#define FL_TUNING(X)             \
    FL_TUNING_COSTS(X)           \
    FL_TUNING_SPEEDS(X)          \
    FL_TUNING_EXPLORATION(X)     \
    FL_TUNING_PREDICTIONS(X)     \
    FL_TUNING_EARLIEST_FINISH(X) \
    FL_TUNING_CHUNKS(X)          \
    FL_TUNING_PLACEMENT(X)       \
    FL_TUNING_LOCALITY(X)        \
    FL_TUNING_SPECULATION(X)     \
    FL_TUNING_POLLING(X)         \
    FL_TUNING_ACCOUNTING(X)

#define FL_TUNING_DEFINE(type, name, value, unit, source, sentence) static const type name = value;
FL_TUNING(FL_TUNING_DEFINE)

#endif
