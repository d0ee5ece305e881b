# SPDX-License-Identifier: Apache-2.0
"""The C interface of filch, for ctypes: the names and the meanings of include/filch/*.h.

Written by bindings/declare.py; not to be edited. Handles and pointers to memory are c_void_p. A
structure that begins with its size is made with the size and the defaults of its initializer.
"""
import ctypes as _c

# filch_status
FILCH_OK = 0
FILCH_INVALID_ARGUMENT = 1
FILCH_INVALID_HANDLE = 2
FILCH_WRONG_RUNTIME = 3
FILCH_WRONG_STATE = 4
FILCH_BUSY = 5
FILCH_OUT_OF_MEMORY = 6
FILCH_OVERFLOW = 7
FILCH_PARSE = 8
FILCH_DATA = 9
FILCH_NOT_FOUND = 10
FILCH_UNKNOWN_ORDINAL = 11
FILCH_BAD_INDEX = 12
FILCH_DUPLICATE_DEVICE = 13
FILCH_UNSUPPORTED = 14
FILCH_NO_DEVICE = 15
FILCH_CYCLE = 16
FILCH_ALIAS = 17
FILCH_TOO_LARGE = 18
FILCH_NOT_READY = 19
FILCH_TIMEOUT = 20
FILCH_CANCELLED = 21
FILCH_TASK_FAILED = 22
FILCH_SKIPPED = 23
FILCH_FORKED = 24
FILCH_IO = 25
FILCH_SYSTEM = 26
FILCH_BACKEND = 27
FILCH_DEVICE_LOST = 28
FILCH_INTERNAL = 29
FILCH_NO_DRIVER = 30
FILCH_DRIVER_STUB = 31
FILCH_DRIVER_TOO_OLD = 32
FILCH_DRIVER_BROKEN = 33
FILCH_NO_COMPILER = 34
FILCH_COMPILE = 35
FILCH_IMAGE = 36
FILCH_NO_DEVICE_MEMORY = 37
FILCH_COMPILER_BROKEN = 38
FILCH_DEADLOCK = 39

# filch_log_level
FILCH_LOG_DEFAULT = 0
FILCH_LOG_ERROR = 1
FILCH_LOG_WARNING = 2
FILCH_LOG_INFO = 3
FILCH_LOG_DEBUG = 4

# filch_allocator_kind
FILCH_ALLOCATOR_DEFAULT = 0
FILCH_ALLOCATOR_JEMALLOC = 1
FILCH_ALLOCATOR_SYSTEM = 2

# filch_policy
FILCH_POLICY_DEFAULT = 0
FILCH_POLICY_STEAL = 1
FILCH_POLICY_STATIC = 2
FILCH_POLICY_CUSTOM = 3

# filch_drive
FILCH_DRIVE_DEFAULT = 0
FILCH_DRIVE_THREADS = 1
FILCH_DRIVE_POLL = 2

# filch_score
FILCH_SCORE_DEFAULT = 0
FILCH_SCORE_PEAK = 1
FILCH_SCORE_PEAK_DOUBLE = 2
FILCH_SCORE_BANDWIDTH = 3
FILCH_SCORE_MEMORY = 4
FILCH_SCORE_BLEND = 5
FILCH_SCORE_CAPACITY = 6

# filch_cuda_context
FILCH_CUDA_CONTEXT_DEFAULT = 0
FILCH_CUDA_CONTEXT_PRIMARY = 1
FILCH_CUDA_CONTEXT_PRIVATE = 2

# filch_arena
FILCH_ARENA_DEFAULT = 0
FILCH_ARENA_JEMALLOC = 1
FILCH_ARENA_PAGES = 2
FILCH_ARENA_POOL = 3
FILCH_ARENA_PLAIN = 4

# filch_cuda_schedule
FILCH_CUDA_SCHEDULE_DEFAULT = 0
FILCH_CUDA_SCHEDULE_AUTO = 1
FILCH_CUDA_SCHEDULE_SPIN = 2
FILCH_CUDA_SCHEDULE_YIELD = 3
FILCH_CUDA_SCHEDULE_BLOCKING = 4

# filch_bind
FILCH_BIND_DEFAULT = 0
FILCH_BIND_CORES = 1
FILCH_BIND_NONE = 2

# filch_codelet_flags
FILCH_CODELET_RESTARTABLE = 1
FILCH_CODELET_MAY_PEND = 2

# filch_data_flags
FILCH_DATA_MANAGED = 1
FILCH_DATA_NO_BUFFER = 2
FILCH_DATA_ON_DEVICE = 4
FILCH_DATA_PIN = 8
FILCH_DATA_ORDERED = 16
FILCH_DATA_TEMPORARY = 32

# filch_access_mode
FILCH_READ = 1
FILCH_WRITE = 2
FILCH_READWRITE = 3
FILCH_SCRATCH = 4
FILCH_COMMUTE = 7
FILCH_REDUCE = 11

# filch_on_failure
FILCH_FAILURE_SKIP = 0
FILCH_FAILURE_CANCEL = 1

# filch_map_kind
FILCH_MAP_WHOLE = 0
FILCH_MAP_AFFINE = 1
FILCH_MAP_CALLBACK = 2

# filch_broadcast_way
FILCH_BROADCAST_DEFAULT = 0
FILCH_BROADCAST_CHAIN = 1
FILCH_BROADCAST_TREE = 2
FILCH_BROADCAST_DIRECT = 3

# filch_backend
FILCH_BACKEND_HOST = 1
FILCH_BACKEND_CUDA = 2
FILCH_BACKEND_SIM = 3

# filch_device_feature
FILCH_DEVICE_ECC = 1
FILCH_DEVICE_INTEGRATED = 2
FILCH_DEVICE_MIG = 4
FILCH_DEVICE_SLICE = 8
FILCH_DEVICE_CLUSTERS = 16

# filch_presence
FILCH_PRESENCE_THERE = 0
FILCH_PRESENCE_LEAVING = 1
FILCH_PRESENCE_WITHDRAWN = 2
FILCH_PRESENCE_LOST = 3

# filch_graph_kind
FILCH_GRAPH_CLOSED = 0
FILCH_GRAPH_OPEN = 1

# filch_priorities
FILCH_PRIORITIES_RANK = 0
FILCH_PRIORITIES_CALLER = 1

# filch_policy_kind
FILCH_POLICY_THEFT = 0
FILCH_POLICY_TASK = 1
FILCH_POLICY_CHUNK = 2

# filch_policy_batches
FILCH_POLICY_BATCHES_SHARED_OUT = 0
FILCH_POLICY_BATCHES_PLACED = 1
FILCH_POLICY_BATCHES_COMMON = 2

# filch_policy_flags
FILCH_POLICY_TRUE_TIMES = 1

# filch_repeat_answer
FILCH_REPEAT_AGAIN = 0
FILCH_REPEAT_STOP = 1

# filch_speed_source
FILCH_SPEED_UNKNOWN = 0
FILCH_SPEED_PRIOR = 1
FILCH_SPEED_MEASURED = 2

FILCH_MEMORY_FIT = 18446744073709551615
FILCH_MEMORY_HALF = 18446744073709551614
FILCH_TO_END = 4294967295
FILCH_LINK_HOST = 4294967295
FILCH_ANY_DEVICE = 0
FILCH_KERNEL_MISFIT = -1
FILCH_PENDING = -2137615459
FILCH_POLICY_AUTO = 4294967295
FILCH_POLICY_ANYONE = 4294967294
FILCH_POLICY_NOBODY = 4294967293
FILCH_REPEAT_VALUE_BYTES = 256

# Types of functions. A null pointer to a function is the type called without an argument.
filch_allocator_alloc_fn = _c.CFUNCTYPE(
    _c.c_void_p, _c.c_size_t, _c.c_size_t, _c.c_void_p)
filch_allocator_free_fn = _c.CFUNCTYPE(
    None, _c.c_void_p, _c.c_size_t, _c.c_size_t, _c.c_void_p)
filch_log_fn = _c.CFUNCTYPE(
    None, _c.c_int, _c.c_char_p, _c.c_void_p)
filch_device_rate_fn = _c.CFUNCTYPE(
    _c.c_double, _c.c_void_p, _c.c_void_p)
filch_host_fn = _c.CFUNCTYPE(
    _c.c_int, _c.c_void_p)
filch_work_fn = _c.CFUNCTYPE(
    _c.c_double, _c.c_void_p)
filch_host_open_fn = _c.CFUNCTYPE(
    _c.c_int, _c.c_void_p, _c.c_uint32, _c.c_void_p, _c.c_void_p)
filch_host_close_fn = _c.CFUNCTYPE(
    None, _c.c_uint32, _c.c_void_p, _c.c_void_p)
filch_complete_fn = _c.CFUNCTYPE(
    None, _c.c_void_p, _c.c_int, _c.c_void_p)
filch_map_fn = _c.CFUNCTYPE(
    None, _c.c_uint64, _c.c_uint64, _c.c_void_p, _c.c_void_p, _c.c_void_p)
filch_shape_fn = _c.CFUNCTYPE(
    _c.c_int, _c.c_void_p, _c.c_void_p)
filch_enqueue_fn = _c.CFUNCTYPE(
    _c.c_int, _c.c_void_p, _c.c_void_p, _c.c_void_p)
filch_lane_open_fn = _c.CFUNCTYPE(
    _c.c_int, _c.c_void_p, _c.c_void_p, _c.c_void_p)
filch_lane_close_fn = _c.CFUNCTYPE(
    None, _c.c_void_p, _c.c_void_p, _c.c_void_p)
filch_build_fn = _c.CFUNCTYPE(
    _c.c_int, _c.c_void_p, _c.c_void_p)
filch_scope_fn = _c.CFUNCTYPE(
    _c.c_int, _c.c_void_p, _c.c_void_p)
filch_place_fn = _c.CFUNCTYPE(
    _c.c_uint32, _c.c_void_p, _c.c_void_p)
filch_chunk_fn = _c.CFUNCTYPE(
    _c.c_uint32, _c.c_void_p, _c.c_void_p)
filch_steal_fn = _c.CFUNCTYPE(
    _c.c_uint32, _c.c_void_p, _c.c_void_p, _c.c_void_p)
filch_repeat_fn = _c.CFUNCTYPE(
    _c.c_int, _c.c_uint64, _c.c_void_p, _c.c_void_p)


class filch_error(_c.Structure):
    _fields_ = [
        ("size", _c.c_size_t),
        ("status", _c.c_int),
        ("native_code", _c.c_int32),
        ("line", _c.c_int64),
        ("native_name", _c.c_char * 48),
        ("call", _c.c_char * 48),
        ("device", _c.c_char * 48),
        ("label", _c.c_char * 64),
        ("text", _c.c_char * 256),
    ]

    def __init__(self, **members):
        super().__init__(size=_c.sizeof(filch_error))
        for name, value in members.items():
            if not hasattr(self, name):
                raise TypeError("filch_error has no member " + name)
            setattr(self, name, value)


class filch_allocator(_c.Structure):
    _fields_ = [
        ("alloc", filch_allocator_alloc_fn),
        ("free", filch_allocator_free_fn),
        ("user", _c.c_void_p),
    ]


class filch_runtime_desc(_c.Structure):
    _fields_ = [
        ("size", _c.c_size_t),
        ("devices", _c.c_char_p),
        ("scores", _c.c_void_p),
        ("score_count", _c.c_size_t),
        ("policy", _c.c_int),
        ("drive", _c.c_int),
        ("log", filch_log_fn),
        ("log_user", _c.c_void_p),
        ("log_level", _c.c_int),
        ("allocator_kind", _c.c_int),
        ("allocator", _c.c_void_p),
        ("trace", _c.c_bool),
        ("reserved", _c.c_uint32),
        ("score", _c.c_int),
        ("rate", filch_device_rate_fn),
        ("rate_user", _c.c_void_p),
        ("cuda_context", _c.c_int),
        ("cuda_schedule", _c.c_int),
        ("memory_limit", _c.c_uint64),
        ("allow_multicast", _c.c_bool),
        ("custom_policy", _c.c_void_p),
        ("speeds", _c.c_char_p),
        ("bind", _c.c_int),
    ]

    def __init__(self, **members):
        super().__init__(size=_c.sizeof(filch_runtime_desc))
        for name, value in members.items():
            if not hasattr(self, name):
                raise TypeError("filch_runtime_desc has no member " + name)
            setattr(self, name, value)


class filch_setting(_c.Structure):
    _fields_ = [
        ("size", _c.c_size_t),
        ("name", _c.c_char_p),
        ("type", _c.c_char_p),
        ("default_value", _c.c_char_p),
        ("help", _c.c_char_p),
    ]

    def __init__(self, **members):
        super().__init__(size=_c.sizeof(filch_setting))
        for name, value in members.items():
            if not hasattr(self, name):
                raise TypeError("filch_setting has no member " + name)
            setattr(self, name, value)


class filch_usage(_c.Structure):
    _fields_ = [
        ("size", _c.c_size_t),
        ("host_bytes", _c.c_uint64),
        ("task_bytes", _c.c_uint64),
        ("tasks_live", _c.c_uint64),
        ("jobs_running", _c.c_uint64),
    ]

    def __init__(self, **members):
        super().__init__(size=_c.sizeof(filch_usage))
        for name, value in members.items():
            if not hasattr(self, name):
                raise TypeError("filch_usage has no member " + name)
            setattr(self, name, value)


class filch_view(_c.Structure):
    _fields_ = [
        ("ptr", _c.c_void_p),
        ("rows", _c.c_uint64),
        ("cols", _c.c_uint64),
        ("ld", _c.c_uint64),
        ("row", _c.c_uint64),
        ("col", _c.c_uint64),
        ("element", _c.c_uint64),
    ]


class filch_call(_c.Structure):
    _fields_ = [
        ("views", _c.c_void_p),
        ("view_count", _c.c_uint32),
        ("device", _c.c_uint32),
        ("team", _c.c_uint32),
        ("reserved", _c.c_uint32),
        ("args", _c.c_void_p),
        ("lo", _c.c_uint64),
        ("hi", _c.c_uint64),
        ("runtime", _c.c_void_p),
        ("opaque", _c.c_void_p),
        ("user", _c.c_void_p),
        ("state", _c.c_void_p),
    ]


class filch_codelet_desc(_c.Structure):
    _fields_ = [
        ("size", _c.c_size_t),
        ("name", _c.c_char_p),
        ("host", filch_host_fn),
        ("cuda", _c.c_void_p),
        ("work", filch_work_fn),
        ("cost", filch_work_fn),
        ("arg_size", _c.c_uint32),
        ("flags", _c.c_uint32),
        ("user", _c.c_void_p),
        ("open", filch_host_open_fn),
        ("close", filch_host_close_fn),
    ]

    def __init__(self, **members):
        super().__init__(size=_c.sizeof(filch_codelet_desc))
        for name, value in members.items():
            if not hasattr(self, name):
                raise TypeError("filch_codelet_desc has no member " + name)
            setattr(self, name, value)


class filch_data_desc(_c.Structure):
    _fields_ = [
        ("size", _c.c_size_t),
        ("ptr", _c.c_void_p),
        ("element", _c.c_uint64),
        ("rows", _c.c_uint64),
        ("cols", _c.c_uint64),
        ("ld", _c.c_uint64),
        ("tile_rows", _c.c_uint64),
        ("tile_cols", _c.c_uint64),
        ("label", _c.c_char_p),
        ("flags", _c.c_uint32),
        ("reserved", _c.c_uint32),
        ("row_cuts", _c.c_void_p),
        ("col_cuts", _c.c_void_p),
        ("row_cut_count", _c.c_uint32),
        ("col_cut_count", _c.c_uint32),
        ("device", _c.c_uint32),
        ("reserved2", _c.c_uint32),
    ]

    def __init__(self, **members):
        super().__init__(size=_c.sizeof(filch_data_desc))
        for name, value in members.items():
            if not hasattr(self, name):
                raise TypeError("filch_data_desc has no member " + name)
            setattr(self, name, value)


class filch_tiles(_c.Structure):
    _fields_ = [
        ("size", _c.c_size_t),
        ("row0", _c.c_uint32),
        ("row1", _c.c_uint32),
        ("col0", _c.c_uint32),
        ("col1", _c.c_uint32),
    ]

    def __init__(self, **members):
        super().__init__(size=_c.sizeof(filch_tiles))
        for name, value in members.items():
            if not hasattr(self, name):
                raise TypeError("filch_tiles has no member " + name)
            setattr(self, name, value)


class filch_tiling(_c.Structure):
    _fields_ = [
        ("size", _c.c_size_t),
        ("rows", _c.c_uint64),
        ("cols", _c.c_uint64),
    ]

    def __init__(self, **members):
        super().__init__(size=_c.sizeof(filch_tiling))
        for name, value in members.items():
            if not hasattr(self, name):
                raise TypeError("filch_tiling has no member " + name)
            setattr(self, name, value)


class filch_halo(_c.Structure):
    _fields_ = [
        ("rows_before", _c.c_uint64),
        ("rows_after", _c.c_uint64),
        ("cols_before", _c.c_uint64),
        ("cols_after", _c.c_uint64),
    ]


class filch_access(_c.Structure):
    _fields_ = [
        ("data", _c.c_void_p),
        ("row", _c.c_uint32),
        ("col", _c.c_uint32),
        ("mode", _c.c_int),
        ("reserved", _c.c_uint32),
        ("bytes", _c.c_uint64),
        ("rows", _c.c_uint32),
        ("cols", _c.c_uint32),
        ("halo", _c.c_void_p),
    ]


class filch_submit_desc(_c.Structure):
    _fields_ = [
        ("size", _c.c_size_t),
        ("on_complete", filch_complete_fn),
        ("user", _c.c_void_p),
        ("label", _c.c_char_p),
        ("on_failure", _c.c_int),
        ("cuda_wait_count", _c.c_uint32),
        ("cuda_waits", _c.c_void_p),
        ("cuda_signal", _c.c_void_p),
        ("cuda_signal_device", _c.c_uint32),
        ("reserved", _c.c_uint32),
    ]

    def __init__(self, **members):
        super().__init__(size=_c.sizeof(filch_submit_desc))
        for name, value in members.items():
            if not hasattr(self, name):
                raise TypeError("filch_submit_desc has no member " + name)
            setattr(self, name, value)


class filch_device_stats(_c.Structure):
    _fields_ = [
        ("tiles", _c.c_uint64),
        ("stolen_in", _c.c_uint64),
        ("stolen_out", _c.c_uint64),
        ("items", _c.c_uint64),
        ("work", _c.c_double),
        ("busy_s", _c.c_double),
        ("idle_s", _c.c_double),
        ("speed", _c.c_double),
        ("bytes_in", _c.c_uint64),
        ("bytes_out", _c.c_uint64),
        ("bytes_peer", _c.c_uint64),
        ("evicted", _c.c_uint64),
        ("bytes_evicted", _c.c_uint64),
        ("moved", _c.c_uint64),
        ("pending", _c.c_uint64),
    ]


class filch_job_info(_c.Structure):
    _fields_ = [
        ("size", _c.c_size_t),
        ("status", _c.c_int),
        ("device_count", _c.c_uint32),
        ("total", _c.c_uint64),
        ("done", _c.c_uint64),
        ("failed", _c.c_uint64),
        ("skipped", _c.c_uint64),
        ("seconds", _c.c_double),
        ("bytes", _c.c_uint64),
        ("evicted", _c.c_uint64),
        ("moved", _c.c_uint64),
        ("pending", _c.c_uint64),
        ("runs", _c.c_uint64),
    ]

    def __init__(self, **members):
        super().__init__(size=_c.sizeof(filch_job_info))
        self.status = FILCH_NOT_READY
        for name, value in members.items():
            if not hasattr(self, name):
                raise TypeError("filch_job_info has no member " + name)
            setattr(self, name, value)


class filch_item_range(_c.Structure):
    _fields_ = [
        ("lo", _c.c_uint64),
        ("hi", _c.c_uint64),
        ("status", _c.c_int),
        ("code", _c.c_int32),
    ]


class filch_batch_access(_c.Structure):
    _fields_ = [
        ("data", _c.c_void_p),
        ("mode", _c.c_int),
        ("map", _c.c_int),
        ("offset", _c.c_uint64),
        ("scale", _c.c_uint64),
        ("before", _c.c_uint64),
        ("after", _c.c_uint64),
        ("fn", filch_map_fn),
        ("user", _c.c_void_p),
    ]


class filch_batch_desc(_c.Structure):
    _fields_ = [
        ("size", _c.c_size_t),
        ("codelet", _c.c_void_p),
        ("args", _c.c_void_p),
        ("n", _c.c_uint64),
        ("grain", _c.c_uint64),
        ("accesses", _c.c_void_p),
        ("access_count", _c.c_uint32),
        ("reserved", _c.c_uint32),
    ]

    def __init__(self, **members):
        super().__init__(size=_c.sizeof(filch_batch_desc))
        for name, value in members.items():
            if not hasattr(self, name):
                raise TypeError("filch_batch_desc has no member " + name)
            setattr(self, name, value)


class filch_resume_desc(_c.Structure):
    _fields_ = [
        ("size", _c.c_size_t),
        ("devices", _c.c_void_p),
        ("device_count", _c.c_uint32),
        ("reserved", _c.c_uint32),
    ]

    def __init__(self, **members):
        super().__init__(size=_c.sizeof(filch_resume_desc))
        for name, value in members.items():
            if not hasattr(self, name):
                raise TypeError("filch_resume_desc has no member " + name)
            setattr(self, name, value)


class filch_broadcast_desc(_c.Structure):
    _fields_ = [
        ("size", _c.c_size_t),
        ("devices", _c.c_void_p),
        ("device_count", _c.c_uint32),
        ("one_tile", _c.c_bool),
        ("row", _c.c_uint32),
        ("col", _c.c_uint32),
        ("way", _c.c_int),
        ("reserved", _c.c_uint32),
        ("piece", _c.c_uint64),
    ]

    def __init__(self, **members):
        super().__init__(size=_c.sizeof(filch_broadcast_desc))
        for name, value in members.items():
            if not hasattr(self, name):
                raise TypeError("filch_broadcast_desc has no member " + name)
            setattr(self, name, value)


class filch_csr_desc(_c.Structure):
    _fields_ = [
        ("size", _c.c_size_t),
        ("rows", _c.c_uint64),
        ("cols", _c.c_uint64),
        ("nnz", _c.c_uint64),
        ("pointers", _c.c_void_p),
        ("columns", _c.c_void_p),
        ("values", _c.c_void_p),
        ("element", _c.c_uint64),
        ("pointer_bytes", _c.c_uint32),
        ("column_bytes", _c.c_uint32),
        ("base", _c.c_uint32),
        ("flags", _c.c_uint32),
        ("tile_rows", _c.c_uint64),
        ("row_cuts", _c.c_void_p),
        ("row_cut_count", _c.c_uint32),
        ("blocks", _c.c_uint32),
        ("label", _c.c_char_p),
    ]

    def __init__(self, **members):
        super().__init__(size=_c.sizeof(filch_csr_desc))
        self.pointer_bytes = 4
        self.column_bytes = 4
        for name, value in members.items():
            if not hasattr(self, name):
                raise TypeError("filch_csr_desc has no member " + name)
            setattr(self, name, value)


class filch_csr_block(_c.Structure):
    _fields_ = [
        ("size", _c.c_size_t),
        ("rows", _c.c_uint64),
        ("cols", _c.c_uint64),
        ("nnz", _c.c_uint64),
        ("row", _c.c_uint64),
        ("entry", _c.c_uint64),
        ("column_lo", _c.c_uint64),
        ("column_hi", _c.c_uint64),
        ("element", _c.c_uint64),
        ("pointer_bytes", _c.c_uint32),
        ("column_bytes", _c.c_uint32),
        ("base", _c.c_uint32),
        ("block_lo", _c.c_uint32),
        ("block_hi", _c.c_uint32),
        ("reserved", _c.c_uint32),
        ("pointers", _c.c_void_p),
        ("columns", _c.c_void_p),
        ("values", _c.c_void_p),
    ]

    def __init__(self, **members):
        super().__init__(size=_c.sizeof(filch_csr_block))
        for name, value in members.items():
            if not hasattr(self, name):
                raise TypeError("filch_csr_block has no member " + name)
            setattr(self, name, value)


class filch_shape(_c.Structure):
    _fields_ = [
        ("grid", _c.c_uint32 * 3),
        ("block", _c.c_uint32 * 3),
        ("cluster", _c.c_uint32 * 3),
        ("shared_bytes", _c.c_uint32),
    ]


class filch_lane(_c.Structure):
    _fields_ = [
        ("stream", _c.c_void_p),
        ("context", _c.c_void_p),
        ("cuda_device", _c.c_int32),
        ("device", _c.c_uint32),
        ("lane", _c.c_uint32),
        ("lanes", _c.c_uint32),
        ("multiprocessors", _c.c_uint32),
        ("reserved", _c.c_uint32),
    ]


class filch_cuda_desc(_c.Structure):
    _fields_ = [
        ("size", _c.c_size_t),
        ("source", _c.c_char_p),
        ("image", _c.c_void_p),
        ("image_bytes", _c.c_size_t),
        ("entry", _c.c_char_p),
        ("options", _c.c_char_p),
        ("shape", filch_shape),
        ("shape_of", filch_shape_fn),
        ("enqueue", filch_enqueue_fn),
        ("open", filch_lane_open_fn),
        ("close", filch_lane_close_fn),
        ("user", _c.c_void_p),
        ("waits", _c.c_bool),
    ]

    def __init__(self, **members):
        super().__init__(size=_c.sizeof(filch_cuda_desc))
        for name, value in members.items():
            if not hasattr(self, name):
                raise TypeError("filch_cuda_desc has no member " + name)
            setattr(self, name, value)


class filch_probe(_c.Structure):
    _fields_ = [
        ("size", _c.c_size_t),
        ("runtime", _c.c_void_p),
        ("context", _c.c_void_p),
        ("stream", _c.c_void_p),
        ("cuda_device", _c.c_int32),
        ("ordinal", _c.c_uint32),
        ("device", _c.c_uint32),
        ("capability", _c.c_uint32),
        ("multiprocessors", _c.c_uint32),
        ("reserved", _c.c_uint32),
    ]

    def __init__(self, **members):
        super().__init__(size=_c.sizeof(filch_probe))
        for name, value in members.items():
            if not hasattr(self, name):
                raise TypeError("filch_probe has no member " + name)
            setattr(self, name, value)


class filch_probe_desc(_c.Structure):
    _fields_ = [
        ("size", _c.c_size_t),
        ("build", filch_build_fn),
        ("user", _c.c_void_p),
        ("ordinal", _c.c_uint32),
        ("is_retry", _c.c_bool),
    ]

    def __init__(self, **members):
        super().__init__(size=_c.sizeof(filch_probe_desc))
        for name, value in members.items():
            if not hasattr(self, name):
                raise TypeError("filch_probe_desc has no member " + name)
            setattr(self, name, value)


class filch_device_info(_c.Structure):
    _fields_ = [
        ("size", _c.c_size_t),
        ("name", _c.c_char * 64),
        ("model", _c.c_char * 64),
        ("backend", _c.c_int),
        ("index", _c.c_uint32),
        ("ordinal", _c.c_uint32),
        ("place", _c.c_uint32),
        ("team", _c.c_uint32),
        ("reserved", _c.c_uint32),
        ("score", _c.c_double),
        ("memory_total", _c.c_uint64),
        ("memory_free", _c.c_uint64),
        ("affinity", _c.c_uint64 * 16),
        ("uuid", _c.c_char * 48),
        ("pci", _c.c_char * 16),
        ("capability", _c.c_uint32),
        ("multiprocessors", _c.c_uint32),
        ("clock_khz", _c.c_uint32),
        ("memory_khz", _c.c_uint32),
        ("memory_bits", _c.c_uint32),
        ("single_lanes", _c.c_uint32),
        ("double_lanes", _c.c_uint32),
        ("features", _c.c_uint32),
        ("numa_node", _c.c_int32),
        ("compute_lanes", _c.c_uint32),
        ("bandwidth", _c.c_double),
        ("l2_bytes", _c.c_uint64),
        ("budget", _c.c_uint64),
        ("true_speed", _c.c_double),
        ("block_shared", _c.c_uint64),
    ]

    def __init__(self, **members):
        super().__init__(size=_c.sizeof(filch_device_info))
        self.backend = FILCH_BACKEND_HOST
        for name, value in members.items():
            if not hasattr(self, name):
                raise TypeError("filch_device_info has no member " + name)
            setattr(self, name, value)


class filch_device_refusal(_c.Structure):
    _fields_ = [
        ("size", _c.c_size_t),
        ("name", _c.c_char * 64),
        ("backend", _c.c_int),
        ("ordinal", _c.c_uint32),
        ("error", filch_error),
    ]

    def __init__(self, **members):
        super().__init__(size=_c.sizeof(filch_device_refusal))
        self.backend = FILCH_BACKEND_HOST
        for name, value in members.items():
            if not hasattr(self, name):
                raise TypeError("filch_device_refusal has no member " + name)
            setattr(self, name, value)


class filch_memory_stats(_c.Structure):
    _fields_ = [
        ("size", _c.c_size_t),
        ("arena", _c.c_int),
        ("padding", _c.c_uint32),
        ("budget", _c.c_uint64),
        ("mapped", _c.c_uint64),
        ("mapped_peak", _c.c_uint64),
        ("requested", _c.c_uint64),
        ("requested_peak", _c.c_uint64),
        ("cached", _c.c_uint64),
        ("pending", _c.c_uint64),
        ("takes", _c.c_uint64),
        ("gives", _c.c_uint64),
        ("shortages", _c.c_uint64),
    ]

    def __init__(self, **members):
        super().__init__(size=_c.sizeof(filch_memory_stats))
        for name, value in members.items():
            if not hasattr(self, name):
                raise TypeError("filch_memory_stats has no member " + name)
            setattr(self, name, value)


class filch_link(_c.Structure):
    _fields_ = [
        ("size", _c.c_size_t),
        ("is_same", _c.c_bool),
        ("has_access", _c.c_bool),
        ("has_atomics", _c.c_bool),
        ("rank", _c.c_int32),
        ("bandwidth", _c.c_double),
    ]

    def __init__(self, **members):
        super().__init__(size=_c.sizeof(filch_link))
        for name, value in members.items():
            if not hasattr(self, name):
                raise TypeError("filch_link has no member " + name)
            setattr(self, name, value)


class filch_graph_desc(_c.Structure):
    _fields_ = [
        ("size", _c.c_size_t),
        ("kind", _c.c_int),
        ("priorities", _c.c_int),
        ("priority_min", _c.c_int32),
        ("priority_max", _c.c_int32),
        ("label", _c.c_char_p),
        ("max_live", _c.c_uint64),
    ]

    def __init__(self, **members):
        super().__init__(size=_c.sizeof(filch_graph_desc))
        for name, value in members.items():
            if not hasattr(self, name):
                raise TypeError("filch_graph_desc has no member " + name)
            setattr(self, name, value)


class filch_task_desc(_c.Structure):
    _fields_ = [
        ("size", _c.c_size_t),
        ("codelet", _c.c_void_p),
        ("args", _c.c_void_p),
        ("accesses", _c.c_void_p),
        ("access_count", _c.c_uint32),
        ("priority", _c.c_int32),
        ("label", _c.c_char_p),
        ("affinity", _c.c_uint32),
        ("reserved", _c.c_uint32),
        ("items", _c.c_uint64),
        ("grain", _c.c_uint64),
    ]

    def __init__(self, **members):
        super().__init__(size=_c.sizeof(filch_task_desc))
        for name, value in members.items():
            if not hasattr(self, name):
                raise TypeError("filch_task_desc has no member " + name)
            setattr(self, name, value)


class filch_gemm_args(_c.Structure):
    _fields_ = [
        ("alpha", _c.c_double),
        ("beta", _c.c_double),
        ("transpose_a", _c.c_bool),
        ("transpose_b", _c.c_bool),
    ]


class filch_syrk_args(_c.Structure):
    _fields_ = [
        ("alpha", _c.c_double),
        ("beta", _c.c_double),
        ("transpose", _c.c_bool),
        ("reserved", _c.c_uint32),
    ]


class filch_potrf_trtri_args(_c.Structure):
    _fields_ = [
        ("inverts", _c.c_bool),
        ("reserved", _c.c_uint32),
    ]


class filch_mandelbrot_args(_c.Structure):
    _fields_ = [
        ("left", _c.c_double),
        ("right", _c.c_double),
        ("low", _c.c_double),
        ("high", _c.c_double),
        ("rows", _c.c_uint64),
        ("limit", _c.c_uint32),
        ("reserved", _c.c_uint32),
    ]


class filch_nbody_args(_c.Structure):
    _fields_ = [
        ("step", _c.c_double),
        ("softening", _c.c_double),
    ]


class filch_axpy_args(_c.Structure):
    _fields_ = [
        ("alpha", _c.c_double),
    ]


class filch_sums_args(_c.Structure):
    _fields_ = [
        ("piece", _c.c_uint64),
    ]


class filch_kernel(_c.Structure):
    _fields_ = [
        ("name", _c.c_char_p),
        ("host", filch_host_fn),
        ("work", filch_work_fn),
        ("cuda", _c.c_void_p),
        ("view_count", _c.c_uint32),
        ("arg_size", _c.c_uint32),
        ("is_batch", _c.c_bool),
    ]


class filch_pending(_c.Structure):
    _fields_ = [
        ("opaque", _c.c_void_p),
        ("serial", _c.c_uint64),
    ]


class filch_policy_item(_c.Structure):
    _fields_ = [
        ("size", _c.c_size_t),
        ("kind", _c.c_int),
        ("device", _c.c_uint32),
        ("owner", _c.c_uint32),
        ("level", _c.c_uint32),
        ("name", _c.c_char_p),
        ("work", _c.c_double),
        ("first", _c.c_uint64),
        ("last", _c.c_uint64),
        ("grains", _c.c_uint32),
        ("rest", _c.c_uint32),
    ]

    def __init__(self, **members):
        super().__init__(size=_c.sizeof(filch_policy_item))
        for name, value in members.items():
            if not hasattr(self, name):
                raise TypeError("filch_policy_item has no member " + name)
            setattr(self, name, value)


class filch_policy_desc(_c.Structure):
    _fields_ = [
        ("size", _c.c_size_t),
        ("name", _c.c_char_p),
        ("user", _c.c_void_p),
        ("place", filch_place_fn),
        ("chunk", filch_chunk_fn),
        ("steal", filch_steal_fn),
        ("batches", _c.c_int),
        ("flags", _c.c_uint32),
    ]

    def __init__(self, **members):
        super().__init__(size=_c.sizeof(filch_policy_desc))
        for name, value in members.items():
            if not hasattr(self, name):
                raise TypeError("filch_policy_desc has no member " + name)
            setattr(self, name, value)


class filch_policy_counts(_c.Structure):
    _fields_ = [
        ("size", _c.c_size_t),
        ("name", _c.c_char * 32),
        ("policy", _c.c_int),
        ("reserved", _c.c_uint32),
        ("places", _c.c_uint64),
        ("places_refused", _c.c_uint64),
        ("chunks", _c.c_uint64),
        ("chunks_refused", _c.c_uint64),
        ("steals", _c.c_uint64),
        ("steals_refused", _c.c_uint64),
    ]

    def __init__(self, **members):
        super().__init__(size=_c.sizeof(filch_policy_counts))
        for name, value in members.items():
            if not hasattr(self, name):
                raise TypeError("filch_policy_counts has no member " + name)
            setattr(self, name, value)


class filch_repeat_desc(_c.Structure):
    _fields_ = [
        ("size", _c.c_size_t),
        ("predicate", filch_repeat_fn),
        ("user", _c.c_void_p),
        ("value", _c.c_void_p),
        ("value_bytes", _c.c_uint32),
        ("lag", _c.c_uint32),
        ("max_runs", _c.c_uint64),
    ]

    def __init__(self, **members):
        super().__init__(size=_c.sizeof(filch_repeat_desc))
        for name, value in members.items():
            if not hasattr(self, name):
                raise TypeError("filch_repeat_desc has no member " + name)
            setattr(self, name, value)


class filch_losses(_c.Structure):
    _fields_ = [
        ("wall_ns", _c.c_uint64),
        ("busy_ns", _c.c_uint64),
        ("dispatch_ns", _c.c_uint64),
        ("data_ns", _c.c_uint64),
        ("spoiled_ns", _c.c_uint64),
        ("starved_ns", _c.c_uint64),
        ("held_ns", _c.c_uint64),
        ("tail_ns", _c.c_uint64),
        ("other_ns", _c.c_uint64),
        ("estimated_ns", _c.c_uint64),
        ("refused_held", _c.c_uint64),
        ("refused_empty", _c.c_uint64),
        ("refused_unable", _c.c_uint64),
        ("refused_raced", _c.c_uint64),
        ("refused_dear", _c.c_uint64),
        ("restarts", _c.c_uint64),
        ("restarts_won", _c.c_uint64),
        ("restarts_lost", _c.c_uint64),
        ("restarts_refused", _c.c_uint64),
        ("divided", _c.c_uint64),
        ("pieces", _c.c_uint64),
        ("slow_ns", _c.c_uint64),
        ("unrated_ns", _c.c_uint64),
        ("preempted_ns", _c.c_uint64),
        ("unshared_ns", _c.c_uint64),
    ]


class filch_report(_c.Structure):
    _fields_ = [
        ("size", _c.c_size_t),
        ("status", _c.c_int),
        ("device_count", _c.c_uint32),
        ("measured_count", _c.c_uint32),
        ("known_count", _c.c_uint32),
        ("wall_ns", _c.c_uint64),
        ("area_ns", _c.c_uint64),
        ("path_ns", _c.c_uint64),
        ("bound_ns", _c.c_uint64),
        ("efficiency", _c.c_double),
        ("total", filch_losses),
    ]

    def __init__(self, **members):
        super().__init__(size=_c.sizeof(filch_report))
        for name, value in members.items():
            if not hasattr(self, name):
                raise TypeError("filch_report has no member " + name)
            setattr(self, name, value)


class filch_speed(_c.Structure):
    _fields_ = [
        ("size", _c.c_size_t),
        ("source", _c.c_int),
        ("samples", _c.c_uint32),
        ("ns_per_unit", _c.c_double),
        ("fixed_ns", _c.c_double),
        ("spread", _c.c_double),
        ("most_work", _c.c_double),
        ("timed", _c.c_uint64),
        ("changes", _c.c_uint32),
        ("prior_refuted", _c.c_bool),
    ]

    def __init__(self, **members):
        super().__init__(size=_c.sizeof(filch_speed))
        for name, value in members.items():
            if not hasattr(self, name):
                raise TypeError("filch_speed has no member " + name)
            setattr(self, name, value)


class filch_speeds(_c.Structure):
    _fields_ = [
        ("size", _c.c_size_t),
        ("loaded", _c.c_int),
        ("saved", _c.c_int),
        ("records", _c.c_uint64),
        ("used", _c.c_uint64),
        ("saves", _c.c_uint64),
    ]

    def __init__(self, **members):
        super().__init__(size=_c.sizeof(filch_speeds))
        for name, value in members.items():
            if not hasattr(self, name):
                raise TypeError("filch_speeds has no member " + name)
            setattr(self, name, value)


class filch_multicast_desc(_c.Structure):
    _fields_ = [
        ("size", _c.c_size_t),
        ("devices", _c.c_void_p),
        ("device_count", _c.c_uint32),
        ("reserved", _c.c_uint32),
        ("bytes", _c.c_uint64),
        ("label", _c.c_char_p),
    ]

    def __init__(self, **members):
        super().__init__(size=_c.sizeof(filch_multicast_desc))
        for name, value in members.items():
            if not hasattr(self, name):
                raise TypeError("filch_multicast_desc has no member " + name)
            setattr(self, name, value)


class filch_granularity(_c.Structure):
    _fields_ = [
        ("size", _c.c_size_t),
        ("minimum", _c.c_uint64),
        ("recommended", _c.c_uint64),
    ]

    def __init__(self, **members):
        super().__init__(size=_c.sizeof(filch_granularity))
        for name, value in members.items():
            if not hasattr(self, name):
                raise TypeError("filch_granularity has no member " + name)
            setattr(self, name, value)


# Results and parameters of the functions.
FUNCTIONS = {
    "filch_status_name": (_c.c_char_p, [
        _c.c_int,
    ]),
    "filch_status_message": (_c.c_char_p, [
        _c.c_int,
    ]),
    "filch_setting_at": (_c.c_int, [
        _c.c_size_t,
        _c.POINTER(filch_setting),
    ]),
    "filch_version": (_c.c_uint32, [
    ]),
    "filch_runtime_create": (_c.c_int, [
        _c.POINTER(filch_runtime_desc),
        _c.POINTER(filch_error),
        _c.POINTER(_c.c_void_p),
    ]),
    "filch_runtime_drain": (_c.c_int, [
        _c.c_void_p,
        _c.c_double,
    ]),
    "filch_runtime_destroy": (_c.c_int, [
        _c.c_void_p,
    ]),
    "filch_runtime_abort": (_c.c_int, [
        _c.c_void_p,
    ]),
    "filch_runtime_poll": (_c.c_int, [
        _c.c_void_p,
        _c.c_double,
        _c.c_void_p,
    ]),
    "filch_runtime_poll_wait": (_c.c_int, [
        _c.c_void_p,
        _c.c_void_p,
        _c.c_double,
        _c.c_void_p,
    ]),
    "filch_runtime_error": (_c.c_int, [
        _c.c_void_p,
        _c.POINTER(filch_error),
    ]),
    "filch_runtime_usage": (_c.c_int, [
        _c.c_void_p,
        _c.POINTER(filch_usage),
    ]),
    "filch_codelet_create": (_c.c_int, [
        _c.c_void_p,
        _c.POINTER(filch_codelet_desc),
        _c.POINTER(_c.c_void_p),
    ]),
    "filch_call_set_text": (_c.c_int, [
        _c.POINTER(filch_call),
        _c.c_char_p,
    ]),
    "filch_call_finish": (_c.c_int, [
        _c.POINTER(filch_call),
    ]),
    "filch_data_create": (_c.c_int, [
        _c.c_void_p,
        _c.POINTER(filch_data_desc),
        _c.POINTER(_c.c_void_p),
    ]),
    "filch_data_destroy": (_c.c_int, [
        _c.c_void_p,
    ]),
    "filch_data_acquire": (_c.c_int, [
        _c.c_void_p,
        _c.c_int,
    ]),
    "filch_data_release": (_c.c_int, [
        _c.c_void_p,
    ]),
    "filch_data_reduction": (_c.c_int, [
        _c.c_void_p,
        _c.c_void_p,
        _c.c_void_p,
    ]),
    "filch_data_partition": (_c.c_int, [
        _c.c_void_p,
        _c.POINTER(filch_data_desc),
        _c.POINTER(_c.c_void_p),
    ]),
    "filch_data_acquire_tiles": (_c.c_int, [
        _c.c_void_p,
        _c.POINTER(filch_tiles),
        _c.c_int,
        _c.c_double,
        _c.POINTER(_c.c_void_p),
    ]),
    "filch_hold_release": (_c.c_int, [
        _c.c_void_p,
    ]),
    "filch_data_view": (_c.c_int, [
        _c.c_void_p,
        _c.c_uint32,
        _c.c_uint32,
        _c.POINTER(filch_view),
    ]),
    "filch_data_tiles": (_c.c_int, [
        _c.c_void_p,
        _c.POINTER(filch_tiling),
    ]),
    "filch_job_wait": (_c.c_int, [
        _c.c_void_p,
        _c.c_double,
    ]),
    "filch_job_status": (_c.c_int, [
        _c.c_void_p,
    ]),
    "filch_job_cancel": (_c.c_int, [
        _c.c_void_p,
    ]),
    "filch_job_stats": (_c.c_int, [
        _c.c_void_p,
        _c.POINTER(filch_job_info),
        _c.POINTER(filch_device_stats),
        _c.c_uint32,
    ]),
    "filch_job_error": (_c.c_int, [
        _c.c_void_p,
        _c.POINTER(filch_error),
    ]),
    "filch_job_items": (_c.c_int, [
        _c.c_void_p,
        _c.POINTER(filch_item_range),
        _c.c_size_t,
        _c.c_void_p,
    ]),
    "filch_job_release": (_c.c_int, [
        _c.c_void_p,
    ]),
    "filch_batch_submit": (_c.c_int, [
        _c.c_void_p,
        _c.POINTER(filch_batch_desc),
        _c.POINTER(filch_submit_desc),
        _c.POINTER(_c.c_void_p),
    ]),
    "filch_batch_run": (_c.c_int, [
        _c.c_void_p,
        _c.POINTER(filch_batch_desc),
        _c.POINTER(filch_submit_desc),
        _c.POINTER(filch_error),
    ]),
    "filch_job_resume": (_c.c_int, [
        _c.c_void_p,
        _c.POINTER(filch_resume_desc),
        _c.POINTER(filch_submit_desc),
        _c.POINTER(_c.c_void_p),
    ]),
    "filch_data_broadcast": (_c.c_int, [
        _c.c_void_p,
        _c.POINTER(filch_broadcast_desc),
        _c.POINTER(filch_submit_desc),
        _c.POINTER(_c.c_void_p),
    ]),
    "filch_csr_create": (_c.c_int, [
        _c.c_void_p,
        _c.POINTER(filch_csr_desc),
        _c.POINTER(_c.c_void_p),
    ]),
    "filch_csr_at": (_c.c_int, [
        _c.c_void_p,
        _c.c_uint32,
        _c.POINTER(filch_csr_block),
    ]),
    "filch_csr_view": (_c.c_int, [
        _c.c_void_p,
        _c.POINTER(filch_view),
        _c.POINTER(filch_csr_block),
    ]),
    "filch_device_probe": (_c.c_int, [
        _c.c_void_p,
        _c.c_char_p,
        _c.POINTER(filch_probe_desc),
        _c.POINTER(filch_probe),
    ]),
    "filch_device_scope": (_c.c_int, [
        _c.c_void_p,
        _c.c_uint32,
        filch_scope_fn,
        _c.c_void_p,
    ]),
    "filch_device_count": (_c.c_uint32, [
        _c.c_void_p,
    ]),
    "filch_device_at": (_c.c_int, [
        _c.c_void_p,
        _c.c_uint32,
        _c.POINTER(filch_device_info),
    ]),
    "filch_device_refused_count": (_c.c_uint32, [
        _c.c_void_p,
    ]),
    "filch_device_refused_at": (_c.c_int, [
        _c.c_void_p,
        _c.c_uint32,
        _c.POINTER(filch_device_refusal),
    ]),
    "filch_device_by_ordinal": (_c.c_int, [
        _c.c_void_p,
        _c.c_int,
        _c.c_uint32,
        _c.c_void_p,
    ]),
    "filch_device_next": (_c.c_int, [
        _c.c_void_p,
        _c.c_void_p,
    ]),
    "filch_device_best_memory": (_c.c_int, [
        _c.c_void_p,
        _c.c_void_p,
    ]),
    "filch_device_best_score": (_c.c_int, [
        _c.c_void_p,
        _c.c_void_p,
    ]),
    "filch_device_choose": (_c.c_int, [
        _c.c_void_p,
        filch_device_rate_fn,
        _c.c_void_p,
        _c.c_void_p,
    ]),
    "filch_device_memory": (_c.c_int, [
        _c.c_void_p,
        _c.c_uint32,
        _c.POINTER(filch_memory_stats),
    ]),
    "filch_device_trim": (_c.c_int, [
        _c.c_void_p,
        _c.c_uint32,
        _c.c_uint64,
    ]),
    "filch_device_withdraw": (_c.c_int, [
        _c.c_void_p,
        _c.c_uint32,
    ]),
    "filch_device_readmit": (_c.c_int, [
        _c.c_void_p,
        _c.c_uint32,
    ]),
    "filch_device_presence": (_c.c_int, [
        _c.c_void_p,
        _c.c_uint32,
        _c.c_void_p,
    ]),
    "filch_device_link": (_c.c_int, [
        _c.c_void_p,
        _c.c_uint32,
        _c.c_uint32,
        _c.POINTER(filch_link),
    ]),
    "filch_device_measure_links": (_c.c_int, [
        _c.c_void_p,
    ]),
    "filch_graph_create": (_c.c_int, [
        _c.c_void_p,
        _c.POINTER(filch_graph_desc),
        _c.POINTER(_c.c_void_p),
    ]),
    "filch_graph_add": (_c.c_int, [
        _c.c_void_p,
        _c.POINTER(filch_task_desc),
        _c.c_void_p,
    ]),
    "filch_graph_add_many": (_c.c_int, [
        _c.c_void_p,
        _c.POINTER(filch_task_desc),
        _c.c_size_t,
        _c.c_void_p,
        _c.c_void_p,
    ]),
    "filch_graph_wait_below": (_c.c_int, [
        _c.c_void_p,
        _c.c_uint64,
        _c.c_double,
    ]),
    "filch_graph_edge": (_c.c_int, [
        _c.c_void_p,
        _c.c_uint64,
        _c.c_uint64,
    ]),
    "filch_graph_partition": (_c.c_int, [
        _c.c_void_p,
        _c.c_void_p,
        _c.c_void_p,
    ]),
    "filch_graph_unpartition": (_c.c_int, [
        _c.c_void_p,
        _c.c_void_p,
        _c.c_void_p,
    ]),
    "filch_graph_read_only": (_c.c_int, [
        _c.c_void_p,
        _c.c_void_p,
    ]),
    "filch_graph_discard": (_c.c_int, [
        _c.c_void_p,
        _c.c_void_p,
    ]),
    "filch_graph_seal": (_c.c_int, [
        _c.c_void_p,
    ]),
    "filch_graph_write_dot": (_c.c_int, [
        _c.c_void_p,
        _c.c_char_p,
    ]),
    "filch_graph_submit": (_c.c_int, [
        _c.c_void_p,
        _c.POINTER(filch_submit_desc),
        _c.POINTER(_c.c_void_p),
    ]),
    "filch_graph_run": (_c.c_int, [
        _c.c_void_p,
        _c.POINTER(filch_submit_desc),
        _c.POINTER(filch_error),
    ]),
    "filch_graph_close": (_c.c_int, [
        _c.c_void_p,
    ]),
    "filch_graph_destroy": (_c.c_int, [
        _c.c_void_p,
    ]),
    "filch_kernel_at": (_c.POINTER(filch_kernel), [
        _c.c_size_t,
    ]),
    "filch_kernel_find": (_c.POINTER(filch_kernel), [
        _c.c_char_p,
    ]),
    "filch_codelet_create_builtin": (_c.c_int, [
        _c.c_void_p,
        _c.c_char_p,
        _c.POINTER(_c.c_void_p),
    ]),
    "filch_call_pend": (_c.c_int, [
        _c.POINTER(filch_call),
        _c.POINTER(filch_pending),
    ]),
    "filch_pending_end": (_c.c_int, [
        filch_pending,
        _c.c_int,
        _c.c_char_p,
    ]),
    "filch_pending_status": (_c.c_int, [
        filch_pending,
    ]),
    "filch_policy_item_get": (_c.c_int, [
        _c.c_void_p,
        _c.POINTER(filch_policy_item),
    ]),
    "filch_policy_devices": (_c.c_uint32, [
        _c.c_void_p,
    ]),
    "filch_policy_can_run": (_c.c_bool, [
        _c.c_void_p,
        _c.c_uint32,
    ]),
    "filch_policy_queued": (_c.c_uint64, [
        _c.c_void_p,
        _c.c_uint32,
    ]),
    "filch_policy_load": (_c.c_double, [
        _c.c_void_p,
        _c.c_uint32,
    ]),
    "filch_policy_seconds": (_c.c_double, [
        _c.c_void_p,
        _c.c_uint32,
    ]),
    "filch_policy_missing": (_c.c_uint64, [
        _c.c_void_p,
        _c.c_uint32,
    ]),
    "filch_policy_transfer": (_c.c_double, [
        _c.c_void_p,
        _c.c_uint32,
    ]),
    "filch_runtime_policy": (_c.c_int, [
        _c.c_void_p,
        _c.POINTER(filch_policy_counts),
    ]),
    "filch_graph_repeat": (_c.c_int, [
        _c.c_void_p,
        _c.POINTER(filch_repeat_desc),
        _c.POINTER(filch_submit_desc),
        _c.POINTER(_c.c_void_p),
    ]),
    "filch_job_report": (_c.c_int, [
        _c.c_void_p,
        _c.c_void_p,
        _c.POINTER(filch_report),
        _c.POINTER(filch_losses),
        _c.c_uint32,
    ]),
    "filch_report_print": (_c.c_int, [
        _c.c_void_p,
        _c.c_void_p,
        _c.c_void_p,
    ]),
    "filch_report_write": (_c.c_int, [
        _c.c_void_p,
        _c.c_char_p,
    ]),
    "filch_codelet_speed": (_c.c_int, [
        _c.c_void_p,
        _c.c_uint32,
        _c.POINTER(filch_speed),
    ]),
    "filch_runtime_speeds": (_c.c_int, [
        _c.c_void_p,
        _c.POINTER(filch_speeds),
    ]),
    "filch_runtime_save_speeds": (_c.c_int, [
        _c.c_void_p,
    ]),
    "filch_trace_start": (_c.c_int, [
        _c.c_void_p,
    ]),
    "filch_trace_stop": (_c.c_int, [
        _c.c_void_p,
    ]),
    "filch_trace_write": (_c.c_int, [
        _c.c_void_p,
        _c.c_char_p,
    ]),
    "filch_multicast_granularity": (_c.c_int, [
        _c.c_void_p,
        _c.POINTER(filch_multicast_desc),
        _c.POINTER(filch_granularity),
    ]),
    "filch_multicast_create": (_c.c_int, [
        _c.c_void_p,
        _c.POINTER(filch_multicast_desc),
        _c.POINTER(_c.c_void_p),
    ]),
    "filch_multicast_add": (_c.c_int, [
        _c.c_void_p,
        _c.c_uint32,
    ]),
    "filch_multicast_bind": (_c.c_int, [
        _c.c_void_p,
        _c.c_uint32,
        _c.c_uint64,
        _c.c_uint64,
        _c.c_void_p,
    ]),
    "filch_multicast_bind_address": (_c.c_int, [
        _c.c_void_p,
        _c.c_uint32,
        _c.c_uint64,
        _c.c_void_p,
        _c.c_uint64,
    ]),
    "filch_multicast_unbind": (_c.c_int, [
        _c.c_void_p,
        _c.c_uint32,
        _c.c_uint64,
        _c.c_uint64,
    ]),
    "filch_multicast_map": (_c.c_int, [
        _c.c_void_p,
        _c.c_void_p,
    ]),
    "filch_multicast_unmap": (_c.c_int, [
        _c.c_void_p,
    ]),
    "filch_multicast_destroy": (_c.c_int, [
        _c.c_void_p,
    ]),
}


def declare(library):
    """Gives every function of a loaded library its types."""
    for name, (result, parameters) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = parameters
