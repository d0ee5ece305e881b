/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the fake driver. One mutex guards everything; executors take it to find work and drop it
 * while they run work. An entry point is fake_begin … fake_end, which lock and unlock. */
#ifndef FAKECUDA_FAKE_H
#define FAKECUDA_FAKE_H

#include <pthread.h>

#include "backend/cuda/driver/api.h"
#include "fakecuda.h"
#include "names.h"

/* The entry points, under the names that they are exported by. */
#define FAKE_PROTOTYPE(member, symbol, version, since, parameters) \
    FAKECUDA_API CUresult FAKE_NAME(member) parameters;
FAKE_CALLS(FAKE_PROTOTYPE)
#undef FAKE_PROTOTYPE

#define FAKE_DEVICES 64
#define FAKE_PARAMS 64
#define FAKE_MULTIPROCESSORS 1024

typedef enum fake_kind {
    FAKE_CONTEXT = 1,
    FAKE_STREAM,
    FAKE_EVENT,
    FAKE_MODULE,
    FAKE_FUNCTION,
    FAKE_GRAPH,
    FAKE_NODE,
    FAKE_EXEC,
    FAKE_GREEN,
    FAKE_DESC,
    FAKE_POOL,
    FAKE_KINDS
} fake_kind;

typedef struct fake_context fake_context;
typedef struct fake_stream fake_stream;
typedef struct fake_green fake_green;
typedef struct fake_work fake_work;

/* First member of every object. Objects are never freed, so that a handle tells what it was. */
typedef struct fake_object {
    fake_kind kind;
    bool is_alive;
    uint32_t index, place; /* of all that were made; in fake_object_at */
    fake_context *context; /* that it belongs to; null for contexts and graphs */
} fake_object;

typedef struct fake_device {
    char name[128];
    int sms, major, minor, clock_khz, numa, compute_mode;
    unsigned primary_flags;
    int granularity, groups;
    bool is_mig, is_integrated, has_ecc;
    uint64_t memory, used, occupied; /* bytes; used by anybody, by another process */
    double speed;
    char pci[32];
    unsigned char uuid[16];
    struct {
        int attribute, value;
    } overrides[32];
    uint32_t override_count;
    fake_context *primary;
    CUresult poison; /* of the last primary context: it outlives it */
    uint32_t retained;
} fake_device;

typedef struct fake_link {
    bool has_peer, has_atomics;
    int rank;
    double gbps;
} fake_link;

typedef struct fake_failure {
    char call[48];
    uint64_t nth, count, seen;
    int result, device;
    bool is_sticky;
    struct fake_failure *next;
} fake_failure;

struct fake_context {
    fake_object object;
    int device;
    unsigned flags;
    bool is_primary;
    CUresult poison;
    fake_context *peers[FAKE_DEVICES];
    uint32_t peer_count;
};

/* One record of an event: what waits for it holds it, whatever becomes of the event. */
typedef struct fake_record {
    uint32_t references;
    bool is_done;
    uint64_t time_ns;
} fake_record;

typedef struct fake_allocation {
    uintptr_t address; /* given out; PROT_NONE */
    char *bytes;       /* where the host reaches it; null once freed */
    size_t size, mapped;
    fake_context *context; /* null: a pool's, or a mapping, of the memory of … */
    int device;
    struct fake_memory *memory; /* mappings: of what */
    uint64_t offset;            /* and where in that */
    uint64_t reach;             /* without a context: bits of the devices that may use it */
    struct fake_pool *pool;
    fake_stream *born; /* of a pool: may be used once this one has finished … */
    uint64_t born_after;
    uint32_t pending; /* queued work that uses it */
} fake_allocation;

/* Physical memory, or a multicast object, behind a CUmemGenericAllocationHandle. Never freed, as
 * handles tell what they were. */
typedef struct fake_memory {
    uint64_t handle;
    bool is_alive;
    int device;     /* -1: a multicast object */
    int descriptor; /* of the pages; -1: none any more */
    size_t size;
    uint32_t mappings, bindings; /* of it */
    struct fake_team *team;      /* of a multicast object */
} fake_memory;

/* Something that a stream or a graph runs, immutable once made. run is called without the lock; its
 * result poisons the context where it is not 0. */
struct fake_work {
    uint32_t references;
    const char *call; /* "kernel", "copy", "fill", "host" */
    fake_context *context;
    uint64_t duration_ns;
    CUresult (*run)(fake_work *work, const fake_stream *stream);
    void (*drop)(fake_work *work);
    const fake_object *function; /* of a kernel; else null */
    uintptr_t uses[FAKE_PARAMS]; /* addresses of allocations */
    uint32_t use_count;
};

/* One entry of a stream's queue; a graph launch has several works. */
typedef struct fake_op {
    struct fake_op *next;
    fake_work **works;
    size_t work_count, work_next;
    fake_record *waits;
    fake_record *records;
    uint64_t end_ns; /* when the running work may end; 0: not begun */
} fake_op;

typedef struct fake_node fake_node;

typedef struct fake_nodes {
    fake_node **items;
    size_t count, capacity;
} fake_nodes;

typedef struct fake_graph {
    fake_object object;
    fake_nodes nodes;
} fake_graph;

struct fake_node {
    fake_object object;
    fake_graph *graph;
    fake_work *work; /* null: empty */
    fake_nodes behind;
};

typedef struct fake_exec {
    fake_object object;
    const fake_graph *graph; /* that it was made of */
    fake_work **works;
    uint32_t *behind_first; /* of node i: behind[behind_first[i] .. behind_first[i + 1]) */
    uint32_t *behind;
    size_t count;
} fake_exec;

struct fake_stream {
    fake_object object;
    fake_green *green;
    unsigned flags;
    int priority;
    fake_op *first, **last;
    bool is_busy;
    uint64_t queued, finished;
};

typedef struct fake_event {
    fake_object object;
    unsigned flags;
    fake_record *last; /* null: never recorded */
} fake_event;

typedef struct fake_kernel_info {
    char name[256];
    bool knows_params;
    uint32_t param_count;
    size_t offset[FAKE_PARAMS], bytes[FAKE_PARAMS];
    int max_threads, registers, shared_bytes;
    int cluster; /* blocks of the clusters that it was compiled for; 0: none */
} fake_kernel_info;

typedef struct fake_image {
    int arch; /* 90 */
    bool is_ptx;
    fake_kernel_info *kernels;
    size_t count, capacity;
} fake_image;

typedef struct fake_twin {
    char name[256];
    fakecuda_twin plain;
    filch_host_fn filch;
    uint32_t view_count;
    bool is_batch;
    uint32_t param_count;
    size_t param_bytes[FAKE_PARAMS];
    struct fake_twin *next;
} fake_twin;

typedef struct fake_module {
    fake_object object;
    fake_image image;
} fake_module;

typedef struct fake_function {
    fake_object object;
    fake_module *module;
    const fake_kernel_info *info;
    fake_twin twin;
    int dynamic_bytes;
    bool allows_wide_clusters;
} fake_function;

struct fake_green {
    fake_object object;
    uint32_t split, count; /* multiprocessors, of a split */
    uint64_t members[FAKE_MULTIPROCESSORS / 64];
};

typedef struct fake_desc {
    fake_object object;
    int device;
    uint32_t split, count;
    uint64_t members[FAKE_MULTIPROCESSORS / 64];
} fake_desc;

typedef struct fake_entry {
    fake_context *context;
    bool was_pushed;
} fake_entry;

typedef struct fake_thread {
    fake_entry entries[32];
    uint32_t depth;
    struct fake_thread *next;
} fake_thread;

typedef struct fake_config {
    int driver;
    bool is_stub, fills;
    uint32_t threads;
    uint64_t kernel_ns, copy_ns, refusal_ns, seed;
    double copy_gbps;
    char missing[32][48];
    uint32_t missing_count;
    fake_device devices[FAKE_DEVICES];
    fake_link links[FAKE_DEVICES][FAKE_DEVICES];
    uint32_t device_count;
    fake_failure *failures;
} fake_config;

typedef struct fake_state {
    pthread_mutex_t lock;
    pthread_cond_t finished; /* something that was queued */
    pthread_cond_t runnable; /* is something, or will be: for executors */
    fake_config config;
    bool is_configured, is_bad, is_initialised;
    uint32_t visible[FAKE_DEVICES]; /* ordinal -> device */
    uint32_t visible_count;
    bool is_held, is_ending;
    pthread_t executors[64];
    uint32_t executor_count;
    fake_twin *twins;
    uint32_t splits;
} fake_state;

extern fake_state fake;

/* What an entry point needs; flags of fake_begin. */
#define FAKE_ANY 0u     /* nothing, not even cuInit */
#define FAKE_READY 1u   /* cuInit */
#define FAKE_CURRENT 2u /* a living current context that is not poisoned */
#define FAKE_SERIAL 4u  /* serializes a device: not in the steady state */
#define FAKE_ENDING 8u  /* takes something down: a poisoned context is no obstacle */

/* Locks. On failure the entry point must do nothing but fake_end with that result. */
CUresult fake_begin(const char *call, unsigned needs);
/* After a begin that failed: a failure for good is that of another context than the current one. */
void fake_blame(fake_context *context);
/* The same for a call that names a device, which failures may ask for. */
CUresult fake_begin_device(const char *call, unsigned needs, CUdevice device);
/* Unlocks, and gives result back. */
CUresult fake_end(CUresult result);

/* record.c: all with the lock held. */
__attribute__((format(printf, 2, 3))) CUresult fake_violate(CUresult result, const char *format,
                                                            ...);
void fake_count(const char *call);
void fake_count_graph(size_t nodes, uint64_t longest);
/* Of a copy between memories; null: the host's. */
void fake_count_bytes(const fake_allocation *from, const fake_allocation *to, uint64_t bytes);
/* The result that a failure asks for, or 0; sets *sticky. */
CUresult fake_failure_check(const char *call, int device, bool *sticky);
/* The entry point that the calling thread is in, for violations. */
const char *fake_call_name(void);
void fake_call_set(const char *call);
bool fake_is_steady(void);
/* At the process's end: the rest of the violations. */
void fake_leaks_check(void);
void fake_context_leaks(const fake_context *context, const char *when);

/* config.c */
void fake_config_default(fake_config *config);
bool fake_config_parse(fake_config *config, const char *text_or_file, char *error, size_t bytes);
void fake_config_drop(fake_config *config);
bool fake_configure_once(void);

/* handle.c: handles encode kind and index, so that anything else is told apart. */
void *fake_object_make(fake_kind kind, size_t bytes, fake_context *context);
void fake_object_end(fake_object *object);
void *fake_handle(const void *object);
/* Null, and a violation, for what is not a living object of the kind. */
void *fake_find(fake_kind kind, const void *handle);
/* The living objects, and streams that are not alive but have work, as long as the lock is held. */
fake_object *fake_object_at(fake_kind kind, uint32_t place);
uint32_t fake_object_count(fake_kind kind);
/* The first of them of the index'th that was made and those after it, or null: for loops that let
 * go of the lock. */
fake_object *fake_object_from(fake_kind kind, uint32_t index);
const char *fake_kind_name(fake_kind kind);
/* The object, if its context is the calling thread's current one; else null and a violation. */
void *fake_find_current(fake_kind kind, const void *handle);

/* device.c */
fake_device *fake_device_get(CUdevice device); /* null: no such ordinal */
const fake_link *fake_link_get(CUdevice from, CUdevice to);
int fake_device_attribute(const fake_device *device, int attribute, int *value);

/* context.c */
fake_thread *fake_thread_get(void);
fake_context *fake_current(void); /* null: none */
fake_device *fake_context_device(const fake_context *context);
bool fake_context_reaches(const fake_context *context, const fake_context *memory);
void fake_context_end(fake_context *context);
void fake_threads_check(void);

/* memory.c */
fake_allocation *fake_allocation_find(uintptr_t address, bool *was_freed);
/* The bytes as the host reaches them; null and a violation when they are not all in one living
 * allocation that the context reaches. *allocation may be null. */
char *fake_memory_reach(const fake_context *context, CUdeviceptr pointer, size_t bytes,
                        fake_allocation **allocation);
bool fake_is_device_pointer(uintptr_t address);
bool fake_is_pinned(uintptr_t address, size_t bytes);
/* Whether pinned memory begins or ends within. */
bool fake_is_split(uintptr_t address, size_t bytes);
/* Adds to the queued work that uses the pinned memory at the address, if it is such. */
void fake_pinned_use(uintptr_t address, int change);
size_t fake_memory_live(const fake_context *context);
size_t fake_pinned_live(const fake_context *context);
void fake_memory_end(fake_context *context);

/* Address space that nobody reads or writes, or MAP_FAILED. The sanitizers are not told of it: the
 * thread sanitizer goes over all that is mapped and unmapped. */
void *fake_reserve(size_t bytes);
void fake_unreserve(void *at, size_t bytes);

/* Larger blocks start as zeroes. */
#define FAKE_FILL_MOST ((size_t)16 << 20)
/* Fills the first bytes of new pages with NaNs, if so configured. Writing to the file takes a third
 * of the time of writing to its mapping, where each page faults and is cleared first. */
void fake_fill(int descriptor, size_t bytes);

void fake_block_insert(fake_allocation *block);
void fake_block_remove(const fake_allocation *block);
/* The first block that ends above the address, or null. */
fake_allocation *fake_block_after(uintptr_t address);
/* Memory for a block of a size, or null; it belongs to nobody yet. */
fake_allocation *fake_block_make(size_t size);
/* Gives its memory back, and to the device what it took; its address stays known as freed. */
void fake_block_end(fake_allocation *block);
/* What a block of a size takes of the device. */
size_t fake_block_round(size_t size);
/* Whether work of the context may use the block. */
bool fake_block_reached(const fake_context *context, const fake_allocation *block);

/* virtual.c */
enum { FAKE_VIRTUAL_GRAIN = 2 << 20 };
fake_memory *fake_memory_make(int device, size_t size);
/* Null, and a violation, for what is no living memory, or no living multicast object. */
fake_memory *fake_memory_find(uint64_t handle, bool is_multicast);
/* Gives back the pages of what was released and is not used any more. */
void fake_memory_settle(fake_memory *memory);
bool fake_is_reserved(uintptr_t address);
/* Of "handle", "multicast", "reservation", "mapping". */
size_t fake_virtual_live(const char *kind);

/* multicast.c */
/* Whether the object may be mapped: all devices were added. Else a violation. */
bool fake_team_is_whole(const fake_memory *multicast);
/* It is released: what is bound is a violation, and let go. */
void fake_team_end(fake_memory *multicast);

/* work.c */
void fake_work_init(fake_work *work, const char *call, fake_context *context);
void fake_work_use(fake_work *work, const fake_allocation *allocation);
/* The same for pinned memory of the host's. */
void fake_work_use_pinned(fake_work *work, const void *address);
void fake_work_hold(fake_work *work);
void fake_work_drop(fake_work *work);
/* Enqueues on the stream. Takes over the reference. */
void fake_submit(fake_stream *stream, fake_work *work);
/* The same for many works in order. */
void fake_submit_many(fake_stream *stream, fake_work **works, size_t count);
void fake_submit_record(fake_stream *stream, fake_record *record);
void fake_submit_wait(fake_stream *stream, fake_record *record);
void fake_record_drop(fake_record *record);
/* Ends an op that was taken out of its queue. */
void fake_op_end(fake_op *op);
uint64_t fake_now(void);

/* executor.c */
void fake_executors_start(void);
void fake_executors_end(void);
/* Waits, with the lock, until the stream has finished what was queued by now. */
void fake_stream_wait(fake_stream *stream);
/* Until all streams of the context (null: all) are idle. */
void fake_context_wait(const fake_context *context);
/* Until those of poisoned contexts are: nothing more runs there, but it is still queued, and filch
 * has no way to wait for it. */
void fake_poisoned_settle(void);
bool fake_stream_is_idle(const fake_stream *stream);
const fake_stream *fake_running_stream(void);

/* stream.c */
fake_stream *fake_stream_make(fake_context *context, unsigned flags, int priority);
/* A living stream of the current context's; null and a violation for any other. */
fake_stream *fake_stream_get(CUstream handle);

/* elf.c, image.c: false, and a reason, for what is no image. */
bool fake_elf_read(const void *image, fake_image *out, char *error, size_t bytes);
bool fake_is_elf(const void *image);
bool fake_text_read(const char *image, fake_image *out, char *error, size_t bytes);
fake_kernel_info *fake_image_add(fake_image *image, const char *name, size_t length);
void fake_image_drop(fake_image *image);

/* launch.c */
/* Counts a launch, or an edge, after which a kernel may begin before the one before it has ended.
 */
CUresult fake_programmatic(const fake_context *context);

typedef struct fake_kernel_call {
    CUfunction function;
    unsigned grid[3], block[3], cluster[3];
    unsigned shared_bytes;
    void **params;
    void **extra;
} fake_kernel_call;
/* Work that runs the kernel, or null and *result. */
fake_work *fake_kernel_make(const fake_context *context, const fake_kernel_call *call,
                            CUresult *result);

/* graph.c */
bool fake_nodes_add(fake_nodes *nodes, fake_node *node);
fake_node *fake_graph_add(fake_graph *graph, fake_work *work, const fake_nodes *behind);

#endif
