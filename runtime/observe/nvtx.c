/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/nvtx.h"

#include <dlfcn.h>

#include "base/atomic.h"
#include "base/config.h"
#include "base/thread.h"
#include "observe/nvtx_abi.h"

enum { FRESH, ATTACHING, ATTACHED };

struct fl_nvtx {
    _Atomic uint32_t state; /* release when ATTACHED: everything else is written */
    void *domain;           /* null: the profiler has no domains */
    /* The profiler's functions. Relaxed: the profiler may fill places at any time, and a function
     * needs no other memory of ours. */
    _Atomic(fl_nvtx_fn) functions[FL_NVTX_TABLES][FL_NVTX_LONGEST];
    /* Places of the functions, as the profiler gets them. */
    fl_nvtx_fn *tables[FL_NVTX_TABLES][FL_NVTX_LONGEST];
};
_Static_assert(sizeof(_Atomic(fl_nvtx_fn)) == sizeof(fl_nvtx_fn), "profilers store plain pointers");

/* The library's only writable state: a profiler asks for the tables through a function that has no
 * argument to tell runtimes by (fl_nvtx_get_record). */
static fl_nvtx nvtx_instance;

static const unsigned lengths[FL_NVTX_TABLES] = FL_NVTX_LENGTHS;

static int get_table(unsigned table, fl_nvtx_fn ***functions, unsigned *count)
{
    if (table >= FL_NVTX_TABLES || lengths[table] == 0) {
        return 0;
    }
    if (functions != NULL) {
        *functions = nvtx_instance.tables[table];
    }
    if (count != NULL) {
        *count = lengths[table];
    }
    return 1;
}

/* NVTX keeps the profiler's version for later use. */
static void set_tool_version(uint32_t version)
{
    (void)version;
}

static const void *get_record(uint32_t record)
{
    static const fl_nvtx_callbacks callbacks = {sizeof callbacks, get_table};
    static const fl_nvtx_version version = {sizeof version, FL_NVTX_VERSION, 0, set_tool_version};
    return record == FL_NVTX_RECORD_CALLBACKS ? (const void *)&callbacks
           : record == FL_NVTX_RECORD_VERSION ? (const void *)&version
                                              : NULL;
}

/* Prepares the tables: function 0 of a table has no place. */
static void fill_tables(fl_nvtx *nvtx)
{
    for (unsigned table = 0; table < FL_NVTX_TABLES; ++table) {
        for (unsigned i = 0; i < lengths[table]; ++i) {
            _Atomic(fl_nvtx_fn) *place = &nvtx->functions[table][i];
            fl_store_relaxed(place, NULL);
            nvtx->tables[table][i] = i != 0 ? (fl_nvtx_fn *)(void *)place : NULL;
        }
    }
}

static fl_nvtx_fn function_of(const fl_nvtx *nvtx, unsigned number)
{
    return fl_load_relaxed(&nvtx->functions[FL_NVTX_TABLE_CORE2][number]);
}

/* Loads the profiler's library, which is never unloaded once it has attached. Returns why that
 * failed, or null. */
static const char *load(const char *path)
{
    void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (library == NULL) {
        const char *reason = dlerror(); /* NOLINT(concurrency-mt-unsafe): a thread's own in glibc */
        return reason != NULL ? reason : "it cannot be loaded, without a reason";
    }
    void *found = dlsym(library, FL_NVTX_ENTRY);
    fl_nvtx_entry entry = NULL;
    *(void **)(void *)&entry = found;
    const char *wrong = found == NULL            ? "it has no " FL_NVTX_ENTRY
                        : entry(get_record) == 0 ? "its " FL_NVTX_ENTRY " returned 0"
                                                 : NULL;
    if (wrong != NULL) {
        dlclose(library);
    }
    return wrong;
}

static uint32_t attach(fl_nvtx *nvtx, const char *path, const fl_log *log)
{
    char shown[256] = "";
    fill_tables(nvtx);
    const char *wrong = load(path);
    if (wrong != NULL) {
        (void)fl_environment_quote(FL_NVTX_VARIABLE, shown, sizeof shown);
        fl_log_write(log, FILCH_LOG_WARNING, "no profiler is attached: %s is %s: %s",
                     FL_NVTX_VARIABLE, shown, wrong);
        return FRESH;
    }
    fl_nvtx_domain_create create = (fl_nvtx_domain_create)function_of(nvtx, FL_NVTX_DOMAIN_CREATE);
    nvtx->domain = create != NULL ? create("filch") : NULL;
    return ATTACHED;
}

const fl_nvtx *fl_nvtx_attach(const fl_log *log)
{
    fl_nvtx *nvtx = &nvtx_instance;
    const char *path = fl_environment_value(FL_NVTX_VARIABLE);
    uint32_t state = FRESH;
    if (path == NULL) {
        return NULL;
    }
    /* Acquire: what the attaching thread wrote. */
    while (!fl_cas_acquire(&nvtx->state, &state, ATTACHING)) {
        if (state == ATTACHED) {
            return nvtx;
        }
        fl_thread_yield();
        state = FRESH;
    }
    state = attach(nvtx, path, log);
    fl_store_release(&nvtx->state, state);
    return state == ATTACHED ? nvtx : NULL;
}

static fl_nvtx_attributes describe(const char *name)
{
    return (fl_nvtx_attributes){.version = FL_NVTX_VERSION,
                                .size = sizeof(fl_nvtx_attributes),
                                .message_type = FL_NVTX_MESSAGE_TEXT,
                                .message = name};
}

void fl_nvtx_push(const fl_nvtx *nvtx, const char *name)
{
    const fl_nvtx_attributes attributes = describe(name);
    fl_nvtx_range_push push = (fl_nvtx_range_push)function_of(nvtx, FL_NVTX_RANGE_PUSH);
    if (push != NULL) {
        (void)push(nvtx->domain, &attributes);
    }
}

void fl_nvtx_pop(const fl_nvtx *nvtx)
{
    fl_nvtx_range_pop pop = (fl_nvtx_range_pop)function_of(nvtx, FL_NVTX_RANGE_POP);
    if (pop != NULL) {
        (void)pop(nvtx->domain);
    }
}

uint64_t fl_nvtx_start(const fl_nvtx *nvtx, const char *name)
{
    const fl_nvtx_attributes attributes = describe(name);
    fl_nvtx_range_start start = (fl_nvtx_range_start)function_of(nvtx, FL_NVTX_RANGE_START);
    return start != NULL ? start(nvtx->domain, &attributes) : 0;
}

void fl_nvtx_end(const fl_nvtx *nvtx, uint64_t range)
{
    fl_nvtx_range_end end = (fl_nvtx_range_end)function_of(nvtx, FL_NVTX_RANGE_END);
    if (end != NULL) {
        end(nvtx->domain, range);
    }
}
