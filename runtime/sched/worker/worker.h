/* SPDX-License-Identifier: Apache-2.0 */
/* The worker of one device: a state machine that never blocks. Drivers (driver.c) call its step
 * from a pinned thread, from filch_poll, or under a virtual clock. */
#ifndef FL_SCHED_WORKER_WORKER_H
#define FL_SCHED_WORKER_WORKER_H

#include "backend/backend.h"
#include "graph/build/capacity.h"
#include "graph/job/job.h"
#include "memory/tiles/replica.h"
#include "observe/trace.h"
#include "sched/model/speed.h"
#include "sched/worker/share.h"
#include "sync/deque.h"
#include "sync/division.h"
#include "sync/eventcount.h"
#include "sync/inbox.h"
#include "sync/mailbox.h"
#include "sync/race.h"

#define FL_MOST_VIEWS 256
_Static_assert(FL_MOST_VIEWS <= FL_MOST_STAGED, "any of them may be staged");

typedef struct fl_sched fl_sched;

/* What a worker has to look at in each step beside its work. */
enum {
    FL_DUTY_POLL_EVENTS = 1, /* it keeps the vigil (host_events.c) */
    FL_DUTY_WITHDRAWN = 2,   /* the host has withdrawn its device */
    FL_DUTY_LEFT = 4,        /* its device has left, as its description says */
    FL_DUTY_OFFLINE = FL_DUTY_WITHDRAWN | FL_DUTY_LEFT
};

/* Chunks of one worker that may be run twice, in flight at a time; of more the rest cannot. */
#define FL_RACES 8

/* Divisible tasks that a worker has begun, and are not over, at a time; more are run in one call.
 */
#define FL_DIVISIONS 4
_Static_assert(FL_MEMBER_WORDS * 64 >= FL_DEVICE_LIMIT, "any device may take part");

/* One run of such a chunk (speculate.c). */
typedef struct fl_backup_run {
    fl_race *race;  /* of this worker; of a second run, of the one that has the first */
    uint32_t first; /* the worker of the first run */
    uint64_t word;  /* of a second run that has not joined yet: the race as it was seen */
    bool is_taken, is_second;
    bool has_lost; /* the other run counts */
    char *shadow;  /* what it writes on the host; null: it writes nothing, or has none yet */
    size_t private_bytes;
    fl_block *blocks; /* the same on a GPU, linked by next */
} fl_backup_run;

/* What a worker runs at once. */
typedef struct fl_item {
    filch_job *job;
    fl_task *task;   /* null: a chunk of a batch */
    uint32_t lo, hi; /* grains of the chunk; of a divisible task's piece, where it is divided */
    bool skip;       /* poisoned, or the job is cancelled: retire without running */
    bool timed;
    bool is_graph;      /* task null, but no chunk: all of a graph at once */
    bool is_claimed;    /* of a task that was picked: it is, and skip tells the rest */
    bool is_ahead;      /* put on the device before its predecessors were over */
    bool is_refused;    /* the device could not do it: worker->error says why */
    int code;           /* what the host function returned */
    double work;        /* declared units, when timed */
    uint64_t start;     /* when timed */
    uint64_t ns;        /* how long it took, when timed */
    uint64_t own;       /* of that, of a chunk: what came after the ends of those before it; … */
    uint64_t fair;      /* … and a part alike for the work of those that ran together */
    fl_backup_run *run; /* of a chunk: not null where it may be run twice. Of a task: anything */
} fl_item;

/* What a tile in flight may depend on in other places; if it depends on more, it is not put on its
 * device before the rest is past. */
#define FL_FOREIGN 8

/* Copies home of one tile's results, each on a lane of its own; of more, those that came first are
 * waited for when they are started. */
#define FL_HOMES 4

/* A tile in flight on an asynchronous device. */
typedef struct fl_in_flight {
    fl_item item;
    uint64_t launched;
    double expected;    /* predicted ns; 0: unknown */
    fl_marker arriving; /* a copy that the device waits for before it; 0: none, or it came … */
    uint64_t arrived;   /* … which was seen then */
    uint32_t lane;
    bool is_timed;    /* counted in offload->timed */
    bool is_ahead;    /* in the ring of those whose successors are to be looked at */
    uint32_t next;    /* in a list of flights */
    bool has_failed;  /* although it runs: worker->late says why */
    bool is_admitted; /* what it uses is pinned … */
    fl_staged staged; /* … but for these operands, where it is a chunk */
    uint32_t home_count;
    fl_marker homes[FL_HOMES]; /* of the copies that bring home what it wrote */
    uint32_t foreign_count;
    fl_marker foreign[FL_FOREIGN]; /* it is good if none of these failed */
} fl_in_flight;

/* Launched tasks whose successors a worker remembers to look at. */
#define FL_LOOKAHEAD 64

/* Ready tasks among which a worker chooses where tiles have to be brought. */
#define FL_LOCALITY_WINDOW 128

typedef struct fl_local_task {
    fl_task *task;    /* ours alone */
    bool is_claimed;  /* it was when it came */
    bool is_poisoned; /* so it is to be skipped; where it is not claimed, its word tells */
    bool is_fetched;  /* what it lacks was fetched ahead */
} fl_local_task;

/* What a chunk took of its device's time, and did in it. */
typedef struct fl_chunk_time {
    double ns, work;
} fl_chunk_time;

/* What a worker needs for devices with memory of their own, and for tiles of the host's that may
 * have to be brought home first. */
typedef struct fl_offload {
    fl_waits waits;
    fl_operand operands[FL_MOST_VIEWS];
    uint32_t operand_count;
    bool is_admitted; /* they are reserved, and no flight's yet */
    bool is_tight;    /* the place was cleared for the next tile */
    void *params[FL_MOST_VIEWS + 2];
    uint32_t param_bytes[FL_MOST_VIEWS + 2];
    uint64_t range[2];
    fl_block *scratch[FL_LANE_LIMIT];  /* for the scratch accesses of a lane's tiles, or null */
    uint32_t lane_load[FL_LANE_LIMIT]; /* tiles in flight */
    uint32_t lane_last;                /* chosen last */
    uint32_t timed;                    /* tiles in flight whose time is taken */
    fl_chunk_time
        stints[FL_LANE_LIMIT]; /* of the last chunks, as many as there are lanes: a ring */
    uint32_t stint_count;      /* ever, of one job … */
    uint64_t stint_of;         /* … with this number; 0: of none yet */
    /* Flights whose tasks' successors are to be looked at, oldest first: a ring. */
    uint32_t ahead[FL_LOOKAHEAD];
    uint32_t ahead_first, ahead_count;
    /* Where tiles have to be brought (locality.c): in the order in which they came. */
    fl_local_task near[FL_LOCALITY_WINDOW];
    bool window_lacks; /* some may lack something: look */
    uint32_t window_count;
    /* The newest of the copies of what was fetched ahead, from the host's memory and from others';
     * 0: they are past. */
    fl_marker fetched[2];
    uint32_t choosy;  /* tiles of work until copies count as rare … */
    uint32_t hauls;   /* … those from the host's memory alone … */
    uint32_t pressed; /* … and memory as enough */
    uint64_t evicted; /* in the place, when last looked at */
} fl_offload;

/* Tiles that wait for nested work to finish: one a level of nesting. */
typedef struct fl_frame {
    fl_item item;
    const filch_job *goal; /* what the tile waits for */
    struct fl_frame *outer;
    uint32_t depth;            /* 1: outermost */
    int64_t floors[FL_LEVELS]; /* the worker's deques end here when the wait begins */
} fl_frame;

/* Waits nested deeper than this take only work of their own job, and of those that it stands behind
 * (nested_wait.h), or that the worker has already: each other tile may wait in turn, and the stack
 * is finite. */
#define FL_DEEP_WAIT 16

/* A victim from which nothing was taken, since it would be done first by the predictions. */
typedef struct fl_watch {
    uint32_t victim;
    uint64_t steps; /* it had made … */
    uint64_t since; /* … at this time; 0: no watch */
} fl_watch;

/* When a device that is held off from tasks is tried all the same (explore.c). */
typedef struct fl_explore {
    double best;          /* least that tile_ns ever was; 0: it says nothing yet */
    uint64_t at;          /* when a task was timed last */
    uint64_t next, after; /* not before this time, and so long after the last trial */
    uint32_t count;       /* tasks timed, up to what makes a mean */
    bool is_on;           /* the next timed task is the trial's */
    bool is_suspected;    /* the last one was much faster, but one alone is not believed */
} fl_explore;

/* Whether a device with memory of its own is behind others (slow.h). */
typedef struct fl_slow {
    _Atomic uint32_t is_on;
    bool is_far;    /* no other device's memory is linked to it, while others' are */
    uint32_t alike; /* timed tasks in a row by which it is not slow, up to some */
    /* What the last one took, over what it takes the fastest device, bits of a double that the
     * worker sets; and by the scores. Relaxed: an estimate. */
    _Atomic uint64_t times;
    double by_score;
    _Atomic uint32_t given; /* claimed tasks that came from such and are not begun; an estimate */
} fl_slow;

/* Where devices are many (victims.h): whom to look at first, and where to go on. */
#define FL_KNOWN 8
typedef struct fl_victim_order {
    uint32_t at; /* positions behind our own that were looked at in turn */
    uint32_t known_count, known_next;
    uint32_t known[FL_KNOWN];
} fl_victim_order;

typedef enum fl_act {
    FL_ACT_RUN,  /* synchronous device: worker->tile is to be run by the driver, then step again */
    FL_ACT_MORE, /* something was done: step again */
    FL_ACT_WAIT  /* nothing until worker->wake_at, or until notified */
} fl_act;

/* What the worker of a core does beside its work. */
typedef enum fl_worker_state {
    FL_WORKER_RUNNING,   /* it looks into its inbox after the present task */
    FL_WORKER_SEARCHING, /* it has nothing to do, and looks around */
    FL_WORKER_ASLEEP     /* it is to be woken */
} fl_worker_state;

/* Kinds of tasks whose means a core's worker remembers. */
#define FL_KIND_SLOTS 8u
#define FL_KIND_SHIFT 29 /* leaves a number below that of 32 bits */

typedef struct fl_kind {
    const filch_codelet *codelet; /* a name, never followed */
    uint64_t mean;                /* bits of a double, ns */
} fl_kind;

typedef struct fl_worker {
    /* Read by thieves and releasers. */
    fl_deque levels[FL_LEVELS];
    _Alignas(64) _Atomic uint32_t level_mask; /* levels that may hold entries; the owner's */
    /* Bits of a double: recent mean of a task, of a core one of the present kind; 0: unknown. */
    _Atomic uint64_t item_ns;
    /* Relaxed, an estimate: bytes of the main tile of a recent task (graph/task/task.h). */
    _Atomic uint32_t cargo;
    /* An fl_worker_state, where the scheduler keeps writers; else FL_WORKER_RUNNING. On a line of
     * its own, which seldom changes: releasers read it. */
    _Alignas(64) _Atomic uint32_t state;
    /* Ever made; relaxed: tells a busy worker from a stuck one. Apart, as it changes most often. */
    _Alignas(64) _Atomic uint64_t steps;
    fl_inbox inbox;
    fl_inbox moved; /* claimed tasks that found no room on another device */
    fl_mailbox mailbox;
    fl_ledger ledger;
    _Alignas(64) _Atomic(filch_job *) hazard;
    fl_eventcount event;
    _Atomic uint32_t held;     /* poll mode: a thread runs this worker */
    _Atomic uint32_t is_lost;  /* the device does not answer; only ever set, by the owner */
    _Atomic uint32_t duties;   /* FL_DUTY_*; those of being away change under sched->slots_lock */
    _Atomic uint32_t nested;   /* waits inside tiles on the owner's stack; release, by the owner */
    _Atomic uint32_t is_quiet; /* away, and nothing is in flight any more */
    _Atomic uint32_t racing;   /* first runs in flight here that may be raced; the owner's */
    fl_race races[FL_RACES];
    _Atomic uint32_t open; /* of the divisions; a hint: changed by who opens or ends one, relaxed */
    fl_division divisions[FL_DIVISIONS];

    /* Constant: a line of their own, as all threads read it. */
    _Alignas(64) fl_sched *sched;
    fl_device *device;
    uint32_t index;

    /* The owner's. */
    _Alignas(64) uint64_t roster; /* sched's when the worker, away, last looked at what it has */
    uint32_t queued; /* entries pushed less entries popped: at least what the deques hold */
    uint32_t mask;   /* copy of level_mask */
    bool pushed;     /* entries were made available since idle workers were last looked for */
    double owed_ns;  /* time that sleeping cores could have worked for this one (wake.c) */
    uint64_t robbed; /* of the present job, when one was woken for that last */
    double dear_ns;  /* owed before the next one is woken */
    bool in_step;
    fl_task *next_task; /* ready, known to nobody else, to be run next */
    fl_task *adopted;   /* claimed by a theft, to be run next */
    bool adopted_poisoned;
    bool is_dividing; /* asynchronous: a piece of a task is in flight, so nothing else is begun */
    fl_link
        *kept; /* claimed tasks, none poisoned, that could not run when picked: to be run next */
    const filch_graph *graph; /* whose job is current */
    filch_job *job; /* whose retired tiles are counted in retired; current for busy time */
    fl_share *share;
    int64_t retired;
    uint64_t busy_since;
    bool has_item;
    fl_item item; /* synchronous: the one running */
    fl_frame *frames;
    fl_in_flight *flights; /* asynchronous: flight_count of them */
    uint32_t flight_count, free_flight, in_flight;
    uint32_t computing;           /* of those in flight, not yet past on their lane */
    uint64_t long_ns;             /* predicted, of those that compute and are not short */
    uint32_t homing, homing_last; /* computed, their results on the way home; oldest first … */
    uint32_t homing_count;        /* … and how many */
    uint64_t clock;               /* at one of the last launches */
    uint32_t clock_age;           /* launches since */
    uint64_t last_done;           /* when a tile was last seen past */
    fl_offload *offload;          /* null where all devices share the host's memory */
    bool is_fetching;             /* synchronous: the tile waits for its operands */
    bool has_stalled;             /* a tile waits for others to give memory back */
    bool is_hungry;               /* it is one of sched->hungry */
    fl_item stalled;
    uint32_t piece;      /* of a chunk that is too large for the memory, grains at once; 0: all */
    uint64_t stalled_at; /* when that was last tried */
    filch_error loss;    /* how the device was lost */
    filch_error late;    /* of the tile that failed last while in flight */
    filch_error error;   /* of the tile that was refused last */
    uint64_t wake_at;
    uint64_t idle_since; /* 0: not idle; ledger.is_gap: a dispatch began that is measured */
    uint64_t ready_at;   /* when a refused theft would pay; FL_TIME_NEVER: not by itself */
    uint64_t nap_ns;     /* last time slept without being asked for; 0: has just worked */
    fl_watch watch;      /* one victim of the last refusals */
    fl_watch next_watch; /* whom to watch after the theft being tried */
    fl_explore trial;
    fl_slow lag;
    fl_victim_order victim_order; /* whom to look at first in the next one */
    double brought_ns;            /* to bring what the last stolen task needed */
    filch_job *completed;         /* whose last tile was counted in this step; linked by next */
    fl_backup_run runs[FL_RACES]; /* one a race, and for second runs any */
    uint64_t spoil_at; /* no second run begins before: the last one could not be put here */
    char *shadow;      /* of a run that is over, for the next one; or null */
    size_t private_bytes;
    filch_view *views; /* FL_MOST_VIEWS of them; those of the innermost running tile */
    char *scratch;
    size_t scratch_bytes;
    _Atomic(fl_trace_ring *) trace; /* null: not recording */
    /* How long the worker has seen work that it could steal, since it last stole some, and when it
     * was last seen to be idle beside such work; 0: since then it ran something (steal.c). */
    double waited_ns;
    uint64_t waited_at;
    double theft_ns; /* cores: recent mean of what a theft took, from the look on */
    /* Cores: the kind of task that tile_ns is of, and the means of kinds that the worker ran
     * before, by their codelets: thieves predict by what the worker is at (place.c). */
    const filch_codelet *kind;
    fl_kind kinds[FL_KIND_SLOTS];
} fl_worker;

filch_status fl_worker_init(fl_worker *worker, fl_sched *sched, fl_device *device, uint32_t index);
void fl_worker_fini(fl_worker *worker);

/* Retires, fills the window, says what is next. Never blocks. Only the worker's driver. */
fl_act fl_worker_step(fl_worker *worker);
/* Runs worker->tile on the calling thread. */
void fl_worker_run(fl_worker *worker);
/* Retires the tile that was run, without picking another. */
void fl_worker_settle(fl_worker *worker);
/* Makes a hint to a ready task available on this worker; the owner only. */
void fl_worker_push(fl_worker *worker, fl_task *task);
/* Whether the job, or one it waits for, is what the calling task belongs to. */
bool fl_worker_is_inside(const fl_worker *worker, const filch_job *job);

/* --- Parts, in files of their own --- */

/* A task that the worker has claimed already, in pick.c. */
bool fl_pick_claimed(fl_worker *worker, fl_item *item);
/* A tile from a range of any active job: the device's own share, in pick.c. */
bool fl_pick_range(fl_worker *worker, fl_item *item);
/* A tile from the ranges of a job that the caller keeps alive: the device's own, else another's. */
bool fl_pick_goal(fl_worker *worker, filch_job *job, fl_item *item);
/* Takes work from another worker (steal.c); sets ready_at. True: look again, there is some. */
bool fl_worker_steal(fl_worker *worker);
/* Where devices differ, or a policy places tasks (placement.c): true, the task, which is ready, was
 * dealt with. */
bool fl_worker_sends(fl_worker *worker, fl_task *task);
/* Trials (explore.c). A task was timed, and is believed to have taken ns: the new mean. */
double fl_explore_mean(fl_worker *worker, const fl_item *item, double mean, double ns);
/* Whether a theft that is refused by the mean is to be tried; of the task that it gave. */
bool fl_explore_is_due(const fl_worker *worker, double mean);
void fl_explore_begin(fl_worker *worker, double mean, const fl_task *task);
/* Whether the worker is to keep a task, of its own, that it would leave to another: to see whether
 * its device still is as slow as it was. */
bool fl_explore_keeps(const fl_worker *worker, const fl_worker *other, const fl_task *task);
/* Whether by prediction the task is better left to another device, one that computes by itself. */
bool fl_worker_is_outdone(const fl_worker *worker, const fl_worker *other, const fl_task *task);
/* Hazard pointer to the job in a slot; null when the slot is empty. */
filch_job *fl_worker_visit(fl_worker *worker, uint32_t slot);
void fl_worker_leave(fl_worker *worker);
/* Declared work of grains [lo, hi) of a batch. */
double fl_batch_work(const fl_worker *worker, const filch_job *job, uint32_t lo, uint32_t hi);
/* ns per unit of work of a batch on a device where it works now; 0 when nothing is known. */
double fl_batch_ns(const fl_sched *sched, const filch_job *job, uint32_t device);
/* Notes what the current job's chunk, which is over, says of the items after it. */
void fl_batch_learn(const fl_worker *worker, const fl_item *item);
/* ns per unit of work of a codelet on a device: measured, or guessed from another device's measure
 * and the scores; 0 when nothing is known. */
double fl_sched_ns(const fl_sched *sched, const filch_codelet *codelet, uint32_t device);
/* Asynchronous devices (in_flight.c): the step, and its beginning and end. */
filch_status fl_in_flight_init(fl_worker *worker);
void fl_in_flight_fini(fl_worker *worker);
fl_act fl_in_flight_step(fl_worker *worker);
/* The same where the device was withdrawn. */
fl_act fl_in_flight_rest(fl_worker *worker);
/* The tile runs, but its results are no good: it will retire as one that failed. */
void fl_in_flight_fail(fl_worker *worker, fl_in_flight *flight, const filch_error *error);
/* The tile is over when that copy is past, too. */
void fl_in_flight_add_home(fl_worker *worker, fl_in_flight *flight, fl_marker home);
/* All pieces of a divided task are over: what they wrote is valid from now on, and the tile, which
 * is all of it, retires when that has come home where it is wanted; then nothing is held for it any
 * more. There is a free flight. */
void fl_in_flight_conclude(fl_worker *worker, const fl_item *item);

/* depth.c. Tiles in flight of a device that computes, at most: what hides the launch latency of
 * short ones. */
#define FL_IN_FLIGHT_COMPUTING 256u
/* Tiles in flight that keep the device busy. */
uint32_t fl_depth_of(const fl_worker *worker);
/* Whether one more tile can be put on the device. */
/* Whether a launch keeps the worker, on a virtual clock, on which no time passes in a step. */
bool fl_depth_is_held(const fl_worker *worker);
bool fl_depth_has_room(const fl_worker *worker, uint32_t window);
/* Of a device that computes, and has something in flight: when to look at it again
 * (poll_interval.c). */
uint64_t fl_poll_interval_next(const fl_worker *worker);
/* Looks for copies that ready tasks wait for, or those in flight do. */
#define FL_ARRIVAL_NS 50000u
/* What a tile in flight counts for in long_ns. */
uint64_t fl_depth_part(const fl_in_flight *flight);

/* A tile that is not measured longer than this (an empty one measures 5 us, events included) is
 * over soon after its launch, however many are in flight: the more, the less often the host has to
 * wait to see them end. */
#define FL_SHORT_NS 12000.0

/* Devices with memory of their own (offload.c). Finds the tile's operands, starts to bring them to
 * the worker's device, and fills worker->views; false: worker->error says why not. */
bool fl_offload_fetch(fl_worker *worker, const fl_item *item);
/* What a tile costs a device that only pretends. */
double fl_item_cost(const fl_worker *worker, const fl_item *item);
/* Only that, of the tile's operands: worker->views, and offload->operands. */
bool fl_offload_list(fl_worker *worker, const fl_item *item);
/* Whether the device is one that runs tiles by itself, in memory of its own. */
static inline bool fl_worker_computes(const fl_worker *w)
{
    return !w->device->is_synchronous && w->device->backend->mark != NULL && w->offload != NULL;
}
/* Puts the tile on a lane; false as above. */
bool fl_offload_launch(fl_worker *worker, fl_in_flight *flight, uint32_t tag);
/* Of a task that was run in pieces, which are over: makes what it wrote valid, and sends it home
 * with the flight. False: that failed. */
bool fl_offload_commit_pieces(fl_worker *worker, fl_in_flight *flight);
/* Of the tile whose operands were fetched last: a copy to the worker's device that it waits for; 0:
 * none that is known to be under way. */
fl_marker fl_offload_arriving(const fl_worker *worker);
/* The function, parameters and geometry of a kernel's tile, whose operands were fetched; false as
 * above. */
bool fl_offload_fill(fl_worker *worker, fl_item *item, fl_launch *launch);
/* Has the tile of a gate brought to the host's memory, and noted as valid there alone where the
 * gate writes it; the flight is over when it is there. False: it cannot be, and nothing is under
 * way. */
bool fl_offload_move(fl_worker *worker, fl_in_flight *flight);
/* The tile ran on the host: what it wrote is valid there alone, until it is copied to a GPU whose
 * buffer is to have it; where that fails so does the tile. */
void fl_offload_commit_host(fl_worker *worker, fl_item *item);
/* Whether a tile has operands that may be in another memory. */
bool fl_offload_concerns(const fl_item *item);
/* What is known of the future while a tile is put on its device (next_use.c): members of
 * fl_foresight, of which this is the user. */
typedef struct fl_outlook {
    const fl_worker *worker;
    const fl_item *item;
    bool is_ahead; /* it is not put there yet, nor claimed */
} fl_outlook;
void fl_next_use_prepare(void *user);
uint64_t fl_next_use(void *user, const filch_data *data, uint32_t tile, uint32_t place,
                     bool *is_read);
/* Of what fl_offload_launch began before it failed: nothing is in flight or reserved any more.
 * Blocks. */
void fl_offload_abandon(fl_worker *worker);
/* The tile of the flight, which was launched, is about to retire: what it used may be evicted. */
void fl_offload_release(fl_worker *worker, fl_in_flight *flight);
/* Gives the lanes' scratch memory back; nothing is in flight. */
void fl_offload_drop_scratch(fl_worker *worker);
/* Nothing of the worker's is in flight: evicts all that can be. False: that was tried before, or
 * others use the place. */
bool fl_offload_clear(fl_worker *worker);

/* Starts to bring what a task of ours will use, and lets go of it. False: that is not possible now.
 */
bool fl_offload_fetch_ahead(fl_worker *worker, fl_task *task, bool is_claimed);

/* Where tiles have to be brought, or memory is short (locality.c). A task is about to be put on the
 * device: looks whether something is missing there. */
void fl_locality_expect(fl_worker *worker, const fl_task *task);
/* Of a device with memory of its own: nothing it ran is over yet, and nothing was missing. */
bool fl_locality_is_new(const fl_worker *worker);
/* Whether a task that the worker has made ready is better left to it, which chooses by what is
 * there: something would have to be brought, or memory is short. */
bool fl_locality_keeps(const fl_worker *worker, const fl_task *task);
/* A tile of work was: looks whether something had to leave. */
void fl_locality_note(fl_worker *worker);
/* Keeps what is ready here to itself, in part. True: the next task is one that is kept so. */
bool fl_locality_gather(fl_worker *worker);
/* Whether none of them has all it needs, while every lane has something to run. */
bool fl_locality_waits(fl_worker *worker);
/* Nothing can be put on the device now: fetches what comes next. */
void fl_locality_fetch(fl_worker *worker);
/* How many roots of the `rest` in a range the worker takes at once; those beyond the first it adds,
 * and then takes one of all. */
uint32_t fl_locality_room(const fl_worker *worker, uint32_t rest);
void fl_locality_add(fl_worker *worker, fl_task *task);
void fl_locality_take(fl_worker *worker, fl_item *item);
/* Replays (replay.c). Takes the whole graph of a job that is about to begin, where it is known well
 * enough to be put on the device by one call, with what it uses; to be put there at once. */
bool fl_graph_launch_pick(fl_worker *worker, filch_job *job, fl_item *item);
/* Puts it there, as fl_offload_launch. */
bool fl_graph_launch_launch(fl_worker *worker, fl_in_flight *flight, uint32_t tag);
/* It has retired: what it used may be evicted. */
void fl_graph_launch_release(fl_worker *worker, const filch_graph *graph);
/* The graph is destroyed. */
void fl_graph_launch_drop(filch_graph *graph);
/* The run of a closed graph is over: how long it took, for the choice whether to replay it. */
void fl_graph_launch_note(const filch_job *job);

/* The step where the device was lost (failed.c): worker->loss says how, and nothing is in flight.
 */
fl_act fl_failed_step(fl_worker *worker);
/* Whether a device other than the worker's that was not lost (now: nor withdrawn) can run the task
 * of a live hint, of which only the set of devices may be read. */
bool fl_hint_is_for_others(const fl_worker *worker, uint64_t hint, bool now);
typedef bool (*fl_hint_fn)(const fl_worker *worker, uint64_t hint);
typedef void (*fl_settle_fn)(fl_worker *worker, fl_task *task, bool poisoned);
/* Looks at all that is left in the worker's deques: what does not stay there is claimed and
 * settled. True: something stays. */
bool fl_deques_settle(fl_worker *worker, fl_hint_fn stays, fl_settle_fn settle);

/* The parts of a step where the device was withdrawn (offline.c). Gives away what others can run
 * and nobody but the worker knows of, and ends what there is nothing to run of. */
void fl_offline_settle(fl_worker *worker);
/* A tile that has to end here all the same. */
bool fl_offline_pick(fl_worker *worker, fl_item *item);
/* Gives a task that the caller has claimed, and that is ready, to a device that is there. False:
 * none can run it. */
bool fl_offline_give(fl_worker *worker, fl_task *task);
/* Nothing is in flight: there is nothing to do until the worker is woken. */
fl_act fl_offline_rest(fl_worker *worker);
/* A device that leaves and returns as its description says: has it gone or back by now; returns
 * when that changes next. */
uint64_t fl_offline_turn(fl_worker *worker);

/* Looking ahead (lookahead.c). The task was put on a lane: its successors may follow it. */
void fl_lookahead_launched(fl_worker *worker, uint32_t index, fl_marker marker);
/* It has retired; skipped is failed. */
void fl_lookahead_retired(fl_task *task, bool failed);
/* Takes a task whose predecessors are all over or on a lane: it may be put behind them. */
bool fl_lookahead_pick(fl_worker *worker, fl_item *item);
/* What the task's predecessors have on lanes, into worker->offload->waits. */
bool fl_lookahead_waits(fl_worker *worker, const fl_task *task);
/* One predecessor of a closed graph's task, in the run that was epoch `run` before, is over. True:
 * the task is ready, and the caller's to offer. */
bool fl_lookahead_release(fl_task *task, uint32_t run, bool poisoned);

/* Of a task that was claimed ahead: its predecessors. */
typedef enum fl_lookahead_state {
    FL_LOOKAHEAD_WAITS,
    FL_LOOKAHEAD_OVER,
    FL_LOOKAHEAD_FAILED
} fl_lookahead_state;
fl_lookahead_state fl_lookahead_look(const fl_task *task);

/* Devices that have no room for a task although it was given to them (full.c). Gives a task that
 * the caller has claimed, and that is ready, to another device that has room for it by what is
 * known. False: there is none. */
bool fl_full_move(fl_worker *worker, fl_task *task);
/* What others gave so to this one is picked next. */
void fl_full_gather(fl_worker *worker);
/* Takes over what was sent so to workers that nobody can drive, as they wait in tasks further down
 * the stack of the thread that drives this one. False: there is nothing. */
bool fl_full_relieve(fl_worker *worker);

/* Whether a device other than the worker's may still run grains of the batch: it answers, and had
 * room for those that it took; under FILCH_POLICY_STATIC none does. */
bool fl_full_others(const fl_worker *worker, const filch_job *job);
/* A chunk that the caller took last from its range, of which a grain has no room on the device, is
 * left to others, with the rest of the range. False: there are none. */
bool fl_full_leave(fl_worker *worker, const fl_item *item);
/* Whether that was so, and others are left. */
static inline bool fl_full_is_out(const fl_worker *w, const filch_job *job)
{
    return FL_UNLIKELY(fl_load_relaxed(&fl_job_share(job, w->index)->is_out) != 0) &&
           fl_full_others(w, job);
}

/* Chunks run twice (speculate.c). A chunk of a codelet that allows it is about to run here: gives
 * it memory to write to, and tells other workers of it, where that is possible. On a GPU it gets
 * that with its operands, and they are told when it was launched. */
void fl_speculate_offer(fl_worker *worker, fl_item *item);
/* On a GPU, of a chunk that was offered, or a second run: there is not the memory for it to write
 * to. True: it can go on without. */
bool fl_speculate_forgo(fl_item *item);
/* The same: it was launched; or it was not. */
void fl_speculate_launched(fl_worker *worker, fl_item *item);
void fl_speculate_refused(fl_worker *worker, fl_item *item);
/* A run of a GPU's is past, and has not failed: if it counts, its results are sent to their place,
 * and the tile is one as any. */
void fl_speculate_settle(fl_worker *worker, fl_in_flight *flight);
/* There is nothing else to do: a chunk in flight elsewhere that would be done here first, to be run
 * here, too. False: none; worker->ready_at is no later than when there may be one. */
bool fl_speculate_pick(fl_worker *worker, fl_item *item);
/* What a run that has memory of its own is to write, in place of the chunk's views. */
void fl_speculate_views(const fl_item *item, filch_view *views);
/* Such a run is over; flight: on a GPU, where it has a result; else null. True: it counts, and its
 * results are in their place, or on their way; else it has lost, and fl_speculate_drop is to
 * follow, behind which the job may be another's. */
bool fl_speculate_decide(fl_worker *worker, fl_item *item, fl_in_flight *flight);
void fl_speculate_drop(fl_worker *worker, fl_item *item);
/* Of a job that ends: time wasted on a device by runs that go on beyond it. */
void fl_speculate_end(fl_share *share, uint64_t end);

/* What such runs write to (private_output.c), on the host and where devices share its memory: takes
 * it (false: there is none, or the chunk's mapping is wrong, which will be told when it runs),
 * gives it back, also that on a GPU, and copies from it to where the chunk's results go. publish:
 * where these may be in other memories; false: they cannot be had, as worker->error says. */
bool fl_private_take(fl_worker *worker, const fl_item *item, fl_backup_run *run);
void fl_private_give(fl_worker *worker, fl_backup_run *run);
void fl_private_copy(fl_worker *worker, const fl_item *item);
bool fl_private_publish(fl_worker *worker, const fl_item *item);
/* On a GPU: the memory is the run's, of the operands that were launched just now; and is sent to
 * where the results of the flight go, which may fail it. */
void fl_private_hold(fl_worker *worker, fl_backup_run *run);
void fl_private_send(fl_worker *worker, fl_in_flight *flight);

/* Divisible tasks (divide.c). A picked task that has items: true, the tile, of all or of some of
 * them, can be run; false: it is seen to. */
bool fl_divide_admit(fl_worker *worker, fl_item *item);
/* There is nothing to steal: takes part in a task that is being divided, if that pays; sets
 * ready_at. True: look again, there is some. */
bool fl_divide_join(fl_worker *worker);
/* The task's tile, a piece of it, is over, or what was to come next will not. True: so is the task,
 * and the tile says how; it has been noted. */
bool fl_divide_retire(fl_worker *worker, fl_item *item);
/* Of a task with items, ours or a closed graph's that runs: whether the worker would divide it. */
bool fl_divide_is_due(const fl_worker *worker, const fl_task *task);
/* On a device that runs tiles by itself, of one with items whose operands were fetched: true, what
 * is to be launched is a piece, and when the driver has it fl_divide_launched is to be called; or
 * fl_divide_refused. */
bool fl_divide_begin(fl_worker *worker, fl_in_flight *flight);
void fl_divide_launched(fl_worker *worker, fl_in_flight *flight);
void fl_divide_refused(const fl_item *item);
/* A part that the worker has, and that is not in flight: it is the caller's to take. Null: none. */
fl_task *fl_divide_part(fl_worker *worker);
/* Whether the device may have a piece of the task, which is being divided. */
bool fl_divide_is_here(const fl_worker *worker, const fl_task *task);
/* Gives the worker's part in the task, which is not `adopted` any more, up. False: it is the only
 * one, and something is left; so the task's link is in nobody's list. */
bool fl_divide_drop(fl_worker *worker, fl_task *task);
/* Of a tile of a task with items, that has a part in the task: its work, … */
double fl_divide_work(const fl_item *item);
/* … its items, … */
void fl_divide_range(const fl_item *item, uint64_t *lo, uint64_t *hi);
/* … and, of one that took ns, how long the whole task would. */
double fl_divide_whole(const fl_item *item, double ns);
/* Of a task that the caller has, or a part of: whether others may have parts, too, and run some of
 * it. */
static inline bool fl_task_is_divided(const fl_task *task)
{
    return task->has_items && fl_task_items(task)->division != NULL;
}

/* Reductions (reduce.c). A picked task that reduces or combines: true, the tile can be run, though
 * it may have become another; false: it is seen to. */
bool fl_reduce_admit(fl_worker *worker, fl_item *item);
/* A tile whose task has to do with reductions is over. True: that was not all of the task. */
bool fl_reduce_retire(fl_worker *worker, const fl_item *item);
/* Whether the combining task, which is running, runs for the last time. */
bool fl_combines_last(const fl_task *task);

/* Where the time of jobs goes (account.c). The job begins, or has ended: notes what the workers are
 * at.
 */
void fl_account_begin(fl_sched *sched, filch_job *job);
void fl_account_end(fl_sched *sched, filch_job *job);
/* The current job's tile is about to retire, and was timed. */
void fl_account_timed(fl_worker *worker, const fl_item *item);
/* The same of one that failed and was not. All that is in flight is lost with its device. */
void fl_account_spoiled(fl_worker *worker, const fl_item *item);
void fl_account_lost(fl_worker *worker);
/* Shows a tile that was timed in the trace, where one records. */
void fl_account_record(const fl_worker *worker, const fl_item *item, const filch_codelet *codelet);
/* A flight was put on the device; is past there, without having been timed: how long it took, by
 * what is known; is about to retire. */
void fl_account_launched(fl_worker *worker, const fl_in_flight *flight);
uint64_t fl_account_guess(const fl_worker *worker, const fl_in_flight *flight);
/* Sets own and fair of a tile that poll just told of. Both are all of its time for tasks, which are
 * timed by samples. */
void fl_account_divide(fl_worker *worker, fl_item *item);
void fl_account_land(fl_worker *worker, const fl_in_flight *flight);
/* The current job is dropped, at time t: `retired` tiles of it are not counted off yet. */
void fl_account_flush(fl_worker *worker, uint64_t t);
/* Whether or not the current job waits for data, or for memory, from now on. */
void fl_account_wait(fl_worker *worker, bool waits);
/* There is nothing to do: worker->ready_at says why. */
void fl_account_idle(fl_worker *worker);
/* The dispatch that was being measured is over, or is none. */
void fl_account_end_gap(fl_worker *worker, bool counts);

/* Shared by the steps (worker.c). */
/* The tile that has waited for nested work since then goes on. */
void fl_worker_resume(fl_worker *worker, uint64_t since);
/* Entries were pushed in this step: wakes an idle worker for them where that pays (wake.c). */
void fl_worker_wake_others(fl_worker *worker);
/* The worker is at a chunk of that job from here on. */
void fl_worker_turn(fl_worker *worker, filch_job *job);
/* A task's tile is over: notes a failure, and how long it took. */
void fl_worker_note(fl_worker *worker, const fl_item *item);
/* Fills *tile with a task that the caller owns. */
void fl_worker_take(fl_worker *worker, fl_task *task, bool poisoned, fl_item *item);
bool fl_worker_pick(fl_worker *worker, fl_item *item);
/* Everything that others put into the inbox becomes part of the deques. */
void fl_worker_drain(fl_worker *worker);
/* A picked tile: true, it can be run, though it may have become another. */
static inline bool fl_item_admit(fl_worker *w, fl_item *item)
{
    const fl_task *task = item->task;
    if (FL_LIKELY(task == NULL ||
                  !(task->reduces || task->combines || task->begins || task->has_items))) {
        return true;
    }
    return (!fl_task_has_partials(task) || fl_reduce_admit(w, item)) &&
           (!item->task->has_items || fl_divide_admit(w, item));
}
void fl_worker_retire(fl_worker *worker, fl_item *item);
void fl_worker_flush(fl_worker *worker);
void fl_worker_begin_idle(fl_worker *worker);
void fl_worker_end_idle(fl_worker *worker);
/* A gate, for which there is nothing to do: it is over, as one that failed where its predecessors
 * did. */
static inline void fl_item_pass(fl_item *item)
{
    if (fl_task_passes(item->task)) {
        item->code = item->skip ? -1 : 0;
        item->skip = true;
    }
}
/* Null for a gate. */
const filch_codelet *fl_item_codelet(const fl_item *item);
/* Has the tile timed; of a chunk the work is known already. */
void fl_item_set_timed(fl_item *item, const filch_codelet *codelet);

/* The ring to record in, or null. It lives as long as the runtime, so a copy may be used after
 * recording was stopped. Acquire: the ring was set up before it was published. */
static inline fl_trace_ring *fl_trace_of(const fl_worker *w)
{
    return fl_load_acquire(&w->trace);
}

/* Relaxed: who finds out late leaves work where the worker, lost, deals with it. */
static inline bool fl_worker_has_failed(const fl_worker *w)
{
    return fl_load_relaxed(&w->is_lost) != 0;
}

/* Whether the device is withdrawn for now. Relaxed: as above. */
static inline bool fl_worker_is_offline(const fl_worker *w)
{
    return (fl_load_relaxed(&w->duties) & FL_DUTY_OFFLINE) != 0;
}

/* Whether the device starts nothing, now or ever again. */
static inline bool fl_worker_is_unavailable(const fl_worker *w)
{
    return fl_worker_has_failed(w) || fl_worker_is_offline(w);
}

const fl_core *fl_worker_core(const fl_worker *worker);
/* Whether the device can run the task, and has room for it. A gate runs anywhere. */
static inline bool fl_worker_can_run(const fl_worker *w, const fl_task *task)
{
    return task->is_gate || (fl_codelet_runs_on(task->codelet, w->index) &&
                             (FL_LIKELY(!task->is_large) ||
                              fl_capacity_has_room(fl_worker_core(w), task, w->index)));
}

/* Whether tiles have to be brought, or memory is short (locality.c). */
static inline bool fl_locality_chooses(const fl_worker *w)
{
    return w->offload != NULL && (w->offload->choosy | w->offload->pressed) != 0;
}

/* Whether the tile is a chunk that its codelet lets be run twice. */
static inline bool fl_item_may_race(const fl_item *item, const filch_codelet *codelet)
{
    return item->task == NULL && codelet->flags != 0 && !item->skip;
}

static inline fl_speed *fl_codelet_speed(const filch_codelet *codelet, uint32_t device)
{
    return (fl_speed *)(uintptr_t)codelet->speeds + device;
}

#endif
