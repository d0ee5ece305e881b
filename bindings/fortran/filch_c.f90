! SPDX-License-Identifier: Apache-2.0
! The C interface of filch: the names and the meanings of the headers. Written by
! bindings/declare.py; not to be edited.
!
! Handles and pointers to memory are type(c_ptr); unsigned numbers are signed numbers of equal size.
! A structure that begins with its size has the size and the defaults of its initializer. Where C
! may have a null pointer, an argument is optional. Texts end in c_null_char. A constant whose name
! is a type's, too, has _VALUE behind it.
module filch_c
  use, intrinsic :: iso_c_binding
  implicit none
  public

  ! filch_status
  integer(c_int), parameter :: FILCH_OK = 0_c_int
  integer(c_int), parameter :: FILCH_INVALID_ARGUMENT = 1_c_int
  integer(c_int), parameter :: FILCH_INVALID_HANDLE = 2_c_int
  integer(c_int), parameter :: FILCH_WRONG_RUNTIME = 3_c_int
  integer(c_int), parameter :: FILCH_WRONG_STATE = 4_c_int
  integer(c_int), parameter :: FILCH_BUSY = 5_c_int
  integer(c_int), parameter :: FILCH_OUT_OF_MEMORY = 6_c_int
  integer(c_int), parameter :: FILCH_OVERFLOW = 7_c_int
  integer(c_int), parameter :: FILCH_PARSE = 8_c_int
  integer(c_int), parameter :: FILCH_DATA = 9_c_int
  integer(c_int), parameter :: FILCH_NOT_FOUND = 10_c_int
  integer(c_int), parameter :: FILCH_UNKNOWN_ORDINAL = 11_c_int
  integer(c_int), parameter :: FILCH_BAD_INDEX = 12_c_int
  integer(c_int), parameter :: FILCH_DUPLICATE_DEVICE = 13_c_int
  integer(c_int), parameter :: FILCH_UNSUPPORTED = 14_c_int
  integer(c_int), parameter :: FILCH_NO_DEVICE = 15_c_int
  integer(c_int), parameter :: FILCH_CYCLE = 16_c_int
  integer(c_int), parameter :: FILCH_ALIAS = 17_c_int
  integer(c_int), parameter :: FILCH_TOO_LARGE = 18_c_int
  integer(c_int), parameter :: FILCH_NOT_READY = 19_c_int
  integer(c_int), parameter :: FILCH_TIMEOUT = 20_c_int
  integer(c_int), parameter :: FILCH_CANCELLED = 21_c_int
  integer(c_int), parameter :: FILCH_TASK_FAILED = 22_c_int
  integer(c_int), parameter :: FILCH_SKIPPED = 23_c_int
  integer(c_int), parameter :: FILCH_FORKED = 24_c_int
  integer(c_int), parameter :: FILCH_IO = 25_c_int
  integer(c_int), parameter :: FILCH_SYSTEM = 26_c_int
  integer(c_int), parameter :: FILCH_BACKEND = 27_c_int
  integer(c_int), parameter :: FILCH_DEVICE_LOST = 28_c_int
  integer(c_int), parameter :: FILCH_INTERNAL = 29_c_int
  integer(c_int), parameter :: FILCH_NO_DRIVER = 30_c_int
  integer(c_int), parameter :: FILCH_DRIVER_STUB = 31_c_int
  integer(c_int), parameter :: FILCH_DRIVER_TOO_OLD = 32_c_int
  integer(c_int), parameter :: FILCH_DRIVER_BROKEN = 33_c_int
  integer(c_int), parameter :: FILCH_NO_COMPILER = 34_c_int
  integer(c_int), parameter :: FILCH_COMPILE = 35_c_int
  integer(c_int), parameter :: FILCH_IMAGE = 36_c_int
  integer(c_int), parameter :: FILCH_NO_DEVICE_MEMORY = 37_c_int
  integer(c_int), parameter :: FILCH_COMPILER_BROKEN = 38_c_int
  integer(c_int), parameter :: FILCH_DEADLOCK = 39_c_int

  ! filch_log_level
  integer(c_int), parameter :: FILCH_LOG_DEFAULT = 0_c_int
  integer(c_int), parameter :: FILCH_LOG_ERROR = 1_c_int
  integer(c_int), parameter :: FILCH_LOG_WARNING = 2_c_int
  integer(c_int), parameter :: FILCH_LOG_INFO = 3_c_int
  integer(c_int), parameter :: FILCH_LOG_DEBUG = 4_c_int

  ! filch_allocator_kind
  integer(c_int), parameter :: FILCH_ALLOCATOR_DEFAULT = 0_c_int
  integer(c_int), parameter :: FILCH_ALLOCATOR_JEMALLOC = 1_c_int
  integer(c_int), parameter :: FILCH_ALLOCATOR_SYSTEM = 2_c_int

  ! filch_policy
  integer(c_int), parameter :: FILCH_POLICY_DEFAULT = 0_c_int
  integer(c_int), parameter :: FILCH_POLICY_STEAL = 1_c_int
  integer(c_int), parameter :: FILCH_POLICY_STATIC = 2_c_int
  integer(c_int), parameter :: FILCH_POLICY_CUSTOM = 3_c_int

  ! filch_drive
  integer(c_int), parameter :: FILCH_DRIVE_DEFAULT = 0_c_int
  integer(c_int), parameter :: FILCH_DRIVE_THREADS = 1_c_int
  integer(c_int), parameter :: FILCH_DRIVE_POLL = 2_c_int

  ! filch_score
  integer(c_int), parameter :: FILCH_SCORE_DEFAULT = 0_c_int
  integer(c_int), parameter :: FILCH_SCORE_PEAK = 1_c_int
  integer(c_int), parameter :: FILCH_SCORE_PEAK_DOUBLE = 2_c_int
  integer(c_int), parameter :: FILCH_SCORE_BANDWIDTH = 3_c_int
  integer(c_int), parameter :: FILCH_SCORE_MEMORY = 4_c_int
  integer(c_int), parameter :: FILCH_SCORE_BLEND = 5_c_int
  integer(c_int), parameter :: FILCH_SCORE_CAPACITY = 6_c_int

  ! filch_cuda_context
  integer(c_int), parameter :: FILCH_CUDA_CONTEXT_DEFAULT = 0_c_int
  integer(c_int), parameter :: FILCH_CUDA_CONTEXT_PRIMARY = 1_c_int
  integer(c_int), parameter :: FILCH_CUDA_CONTEXT_PRIVATE = 2_c_int

  ! filch_arena
  integer(c_int), parameter :: FILCH_ARENA_DEFAULT = 0_c_int
  integer(c_int), parameter :: FILCH_ARENA_JEMALLOC = 1_c_int
  integer(c_int), parameter :: FILCH_ARENA_PAGES = 2_c_int
  integer(c_int), parameter :: FILCH_ARENA_POOL = 3_c_int
  integer(c_int), parameter :: FILCH_ARENA_PLAIN = 4_c_int

  ! filch_cuda_schedule
  integer(c_int), parameter :: FILCH_CUDA_SCHEDULE_DEFAULT = 0_c_int
  integer(c_int), parameter :: FILCH_CUDA_SCHEDULE_AUTO = 1_c_int
  integer(c_int), parameter :: FILCH_CUDA_SCHEDULE_SPIN = 2_c_int
  integer(c_int), parameter :: FILCH_CUDA_SCHEDULE_YIELD = 3_c_int
  integer(c_int), parameter :: FILCH_CUDA_SCHEDULE_BLOCKING = 4_c_int

  ! filch_bind
  integer(c_int), parameter :: FILCH_BIND_DEFAULT = 0_c_int
  integer(c_int), parameter :: FILCH_BIND_CORES = 1_c_int
  integer(c_int), parameter :: FILCH_BIND_NONE = 2_c_int

  ! filch_codelet_flags
  integer(c_int), parameter :: FILCH_CODELET_RESTARTABLE = 1_c_int
  integer(c_int), parameter :: FILCH_CODELET_MAY_PEND = 2_c_int

  ! filch_data_flags
  integer(c_int), parameter :: FILCH_DATA_MANAGED = 1_c_int
  integer(c_int), parameter :: FILCH_DATA_NO_BUFFER = 2_c_int
  integer(c_int), parameter :: FILCH_DATA_ON_DEVICE = 4_c_int
  integer(c_int), parameter :: FILCH_DATA_PIN = 8_c_int
  integer(c_int), parameter :: FILCH_DATA_ORDERED = 16_c_int
  integer(c_int), parameter :: FILCH_DATA_TEMPORARY = 32_c_int

  ! filch_access_mode
  integer(c_int), parameter :: FILCH_READ = 1_c_int
  integer(c_int), parameter :: FILCH_WRITE = 2_c_int
  integer(c_int), parameter :: FILCH_READWRITE = 3_c_int
  integer(c_int), parameter :: FILCH_SCRATCH = 4_c_int
  integer(c_int), parameter :: FILCH_COMMUTE = 7_c_int
  integer(c_int), parameter :: FILCH_REDUCE = 11_c_int

  ! filch_on_failure
  integer(c_int), parameter :: FILCH_FAILURE_SKIP = 0_c_int
  integer(c_int), parameter :: FILCH_FAILURE_CANCEL = 1_c_int

  ! filch_map_kind
  integer(c_int), parameter :: FILCH_MAP_WHOLE = 0_c_int
  integer(c_int), parameter :: FILCH_MAP_AFFINE = 1_c_int
  integer(c_int), parameter :: FILCH_MAP_CALLBACK = 2_c_int

  ! filch_broadcast_way
  integer(c_int), parameter :: FILCH_BROADCAST_DEFAULT = 0_c_int
  integer(c_int), parameter :: FILCH_BROADCAST_CHAIN = 1_c_int
  integer(c_int), parameter :: FILCH_BROADCAST_TREE = 2_c_int
  integer(c_int), parameter :: FILCH_BROADCAST_DIRECT = 3_c_int

  ! filch_backend
  integer(c_int), parameter :: FILCH_BACKEND_HOST = 1_c_int
  integer(c_int), parameter :: FILCH_BACKEND_CUDA = 2_c_int
  integer(c_int), parameter :: FILCH_BACKEND_SIM = 3_c_int

  ! filch_device_feature
  integer(c_int), parameter :: FILCH_DEVICE_ECC = 1_c_int
  integer(c_int), parameter :: FILCH_DEVICE_INTEGRATED = 2_c_int
  integer(c_int), parameter :: FILCH_DEVICE_MIG = 4_c_int
  integer(c_int), parameter :: FILCH_DEVICE_SLICE = 8_c_int
  integer(c_int), parameter :: FILCH_DEVICE_CLUSTERS = 16_c_int

  ! filch_presence
  integer(c_int), parameter :: FILCH_PRESENCE_THERE = 0_c_int
  integer(c_int), parameter :: FILCH_PRESENCE_LEAVING = 1_c_int
  integer(c_int), parameter :: FILCH_PRESENCE_WITHDRAWN = 2_c_int
  integer(c_int), parameter :: FILCH_PRESENCE_LOST = 3_c_int

  ! filch_graph_kind
  integer(c_int), parameter :: FILCH_GRAPH_CLOSED = 0_c_int
  integer(c_int), parameter :: FILCH_GRAPH_OPEN = 1_c_int

  ! filch_priorities
  integer(c_int), parameter :: FILCH_PRIORITIES_RANK = 0_c_int
  integer(c_int), parameter :: FILCH_PRIORITIES_CALLER = 1_c_int

  ! filch_policy_kind
  integer(c_int), parameter :: FILCH_POLICY_THEFT = 0_c_int
  integer(c_int), parameter :: FILCH_POLICY_TASK = 1_c_int
  integer(c_int), parameter :: FILCH_POLICY_CHUNK = 2_c_int

  ! filch_policy_batches
  integer(c_int), parameter :: FILCH_POLICY_BATCHES_SHARED_OUT = 0_c_int
  integer(c_int), parameter :: FILCH_POLICY_BATCHES_PLACED = 1_c_int
  integer(c_int), parameter :: FILCH_POLICY_BATCHES_COMMON = 2_c_int

  ! filch_policy_flags
  integer(c_int), parameter :: FILCH_POLICY_TRUE_TIMES = 1_c_int

  ! filch_repeat_answer
  integer(c_int), parameter :: FILCH_REPEAT_AGAIN = 0_c_int
  integer(c_int), parameter :: FILCH_REPEAT_STOP = 1_c_int

  ! filch_speed_source
  integer(c_int), parameter :: FILCH_SPEED_UNKNOWN = 0_c_int
  integer(c_int), parameter :: FILCH_SPEED_PRIOR = 1_c_int
  integer(c_int), parameter :: FILCH_SPEED_MEASURED = 2_c_int

  integer(c_int64_t), parameter :: FILCH_MEMORY_FIT = -1_c_int64_t
  integer(c_int64_t), parameter :: FILCH_MEMORY_HALF = -2_c_int64_t
  integer(c_int32_t), parameter :: FILCH_TO_END = -1_c_int32_t
  integer(c_int32_t), parameter :: FILCH_LINK_HOST = -1_c_int32_t
  integer(c_int), parameter :: FILCH_ANY_DEVICE = 0_c_int
  integer(c_int), parameter :: FILCH_KERNEL_MISFIT = -1_c_int
  integer(c_int), parameter :: FILCH_PENDING_VALUE = -2137615459_c_int
  integer(c_int32_t), parameter :: FILCH_POLICY_AUTO = -1_c_int32_t
  integer(c_int32_t), parameter :: FILCH_POLICY_ANYONE = -2_c_int32_t
  integer(c_int32_t), parameter :: FILCH_POLICY_NOBODY = -3_c_int32_t
  integer(c_int), parameter :: FILCH_REPEAT_VALUE_BYTES = 256_c_int

  type, bind(c) :: filch_error
    integer(c_size_t) :: size = 488
    integer(c_int) :: status = 0
    integer(c_int32_t) :: native_code = 0
    integer(c_int64_t) :: line = 0
    character(kind=c_char) :: native_name(48) = c_null_char
    character(kind=c_char) :: call(48) = c_null_char
    character(kind=c_char) :: device(48) = c_null_char
    character(kind=c_char) :: label(64) = c_null_char
    character(kind=c_char) :: text(256) = c_null_char
  end type

  type, bind(c) :: filch_allocator
    type(c_funptr) :: alloc = c_null_funptr
    type(c_funptr) :: free = c_null_funptr
    type(c_ptr) :: user = c_null_ptr
  end type

  type, bind(c) :: filch_runtime_desc
    integer(c_size_t) :: size = 152
    type(c_ptr) :: devices = c_null_ptr
    type(c_ptr) :: scores = c_null_ptr
    integer(c_size_t) :: score_count = 0
    integer(c_int) :: policy = 0
    integer(c_int) :: drive = 0
    type(c_funptr) :: log = c_null_funptr
    type(c_ptr) :: log_user = c_null_ptr
    integer(c_int) :: log_level = 0
    integer(c_int) :: allocator_kind = 0
    type(c_ptr) :: allocator = c_null_ptr
    logical(c_bool) :: trace = .false._c_bool
    integer(c_int32_t) :: reserved = 0
    integer(c_int) :: score = 0
    type(c_funptr) :: rate = c_null_funptr
    type(c_ptr) :: rate_user = c_null_ptr
    integer(c_int) :: cuda_context = 0
    integer(c_int) :: cuda_schedule = 0
    integer(c_int64_t) :: memory_limit = 0
    logical(c_bool) :: allow_multicast = .false._c_bool
    type(c_ptr) :: custom_policy = c_null_ptr
    type(c_ptr) :: speeds = c_null_ptr
    integer(c_int) :: bind = 0
  end type

  type, bind(c) :: filch_setting
    integer(c_size_t) :: size = 40
    type(c_ptr) :: name = c_null_ptr
    type(c_ptr) :: type = c_null_ptr
    type(c_ptr) :: default_value = c_null_ptr
    type(c_ptr) :: help = c_null_ptr
  end type

  type, bind(c) :: filch_usage
    integer(c_size_t) :: size = 40
    integer(c_int64_t) :: host_bytes = 0
    integer(c_int64_t) :: task_bytes = 0
    integer(c_int64_t) :: tasks_live = 0
    integer(c_int64_t) :: jobs_running = 0
  end type

  type, bind(c) :: filch_view
    type(c_ptr) :: ptr = c_null_ptr
    integer(c_int64_t) :: rows = 0
    integer(c_int64_t) :: cols = 0
    integer(c_int64_t) :: ld = 0
    integer(c_int64_t) :: row = 0
    integer(c_int64_t) :: col = 0
    integer(c_int64_t) :: element = 0
  end type

  type, bind(c) :: filch_call
    type(c_ptr) :: views = c_null_ptr
    integer(c_int32_t) :: view_count = 0
    integer(c_int32_t) :: device = 0
    integer(c_int32_t) :: team = 0
    integer(c_int32_t) :: reserved = 0
    type(c_ptr) :: args = c_null_ptr
    integer(c_int64_t) :: lo = 0
    integer(c_int64_t) :: hi = 0
    type(c_ptr) :: runtime = c_null_ptr
    type(c_ptr) :: opaque = c_null_ptr
    type(c_ptr) :: user = c_null_ptr
    type(c_ptr) :: state = c_null_ptr
  end type

  type, bind(c) :: filch_codelet_desc
    integer(c_size_t) :: size = 80
    type(c_ptr) :: name = c_null_ptr
    type(c_funptr) :: host = c_null_funptr
    type(c_ptr) :: cuda = c_null_ptr
    type(c_funptr) :: work = c_null_funptr
    type(c_funptr) :: cost = c_null_funptr
    integer(c_int32_t) :: arg_size = 0
    integer(c_int32_t) :: flags = 0
    type(c_ptr) :: user = c_null_ptr
    type(c_funptr) :: open = c_null_funptr
    type(c_funptr) :: close = c_null_funptr
  end type

  type, bind(c) :: filch_data_desc
    integer(c_size_t) :: size = 112
    type(c_ptr) :: ptr = c_null_ptr
    integer(c_int64_t) :: element = 0
    integer(c_int64_t) :: rows = 0
    integer(c_int64_t) :: cols = 0
    integer(c_int64_t) :: ld = 0
    integer(c_int64_t) :: tile_rows = 0
    integer(c_int64_t) :: tile_cols = 0
    type(c_ptr) :: label = c_null_ptr
    integer(c_int32_t) :: flags = 0
    integer(c_int32_t) :: reserved = 0
    type(c_ptr) :: row_cuts = c_null_ptr
    type(c_ptr) :: col_cuts = c_null_ptr
    integer(c_int32_t) :: row_cut_count = 0
    integer(c_int32_t) :: col_cut_count = 0
    integer(c_int32_t) :: device = 0
    integer(c_int32_t) :: reserved2 = 0
  end type

  type, bind(c) :: filch_tiles
    integer(c_size_t) :: size = 24
    integer(c_int32_t) :: row0 = 0
    integer(c_int32_t) :: row1 = 0
    integer(c_int32_t) :: col0 = 0
    integer(c_int32_t) :: col1 = 0
  end type

  type, bind(c) :: filch_tiling
    integer(c_size_t) :: size = 24
    integer(c_int64_t) :: rows = 0
    integer(c_int64_t) :: cols = 0
  end type

  type, bind(c) :: filch_halo
    integer(c_int64_t) :: rows_before = 0
    integer(c_int64_t) :: rows_after = 0
    integer(c_int64_t) :: cols_before = 0
    integer(c_int64_t) :: cols_after = 0
  end type

  type, bind(c) :: filch_access
    type(c_ptr) :: data = c_null_ptr
    integer(c_int32_t) :: row = 0
    integer(c_int32_t) :: col = 0
    integer(c_int) :: mode = 0
    integer(c_int32_t) :: reserved = 0
    integer(c_int64_t) :: bytes = 0
    integer(c_int32_t) :: rows = 0
    integer(c_int32_t) :: cols = 0
    type(c_ptr) :: halo = c_null_ptr
  end type

  type, bind(c) :: filch_submit_desc
    integer(c_size_t) :: size = 64
    type(c_funptr) :: on_complete = c_null_funptr
    type(c_ptr) :: user = c_null_ptr
    type(c_ptr) :: label = c_null_ptr
    integer(c_int) :: on_failure = 0
    integer(c_int32_t) :: cuda_wait_count = 0
    type(c_ptr) :: cuda_waits = c_null_ptr
    type(c_ptr) :: cuda_signal = c_null_ptr
    integer(c_int32_t) :: cuda_signal_device = 0
    integer(c_int32_t) :: reserved = 0
  end type

  type, bind(c) :: filch_device_stats
    integer(c_int64_t) :: tiles = 0
    integer(c_int64_t) :: stolen_in = 0
    integer(c_int64_t) :: stolen_out = 0
    integer(c_int64_t) :: items = 0
    real(c_double) :: work = 0.0_c_double
    real(c_double) :: busy_s = 0.0_c_double
    real(c_double) :: idle_s = 0.0_c_double
    real(c_double) :: speed = 0.0_c_double
    integer(c_int64_t) :: bytes_in = 0
    integer(c_int64_t) :: bytes_out = 0
    integer(c_int64_t) :: bytes_peer = 0
    integer(c_int64_t) :: evicted = 0
    integer(c_int64_t) :: bytes_evicted = 0
    integer(c_int64_t) :: moved = 0
    integer(c_int64_t) :: pending = 0
  end type

  type, bind(c) :: filch_job_info
    integer(c_size_t) :: size = 96
    integer(c_int) :: status = FILCH_NOT_READY
    integer(c_int32_t) :: device_count = 0
    integer(c_int64_t) :: total = 0
    integer(c_int64_t) :: done = 0
    integer(c_int64_t) :: failed = 0
    integer(c_int64_t) :: skipped = 0
    real(c_double) :: seconds = 0.0_c_double
    integer(c_int64_t) :: bytes = 0
    integer(c_int64_t) :: evicted = 0
    integer(c_int64_t) :: moved = 0
    integer(c_int64_t) :: pending = 0
    integer(c_int64_t) :: runs = 0
  end type

  type, bind(c) :: filch_item_range
    integer(c_int64_t) :: lo = 0
    integer(c_int64_t) :: hi = 0
    integer(c_int) :: status = 0
    integer(c_int32_t) :: code = 0
  end type

  type, bind(c) :: filch_batch_access
    type(c_ptr) :: data = c_null_ptr
    integer(c_int) :: mode = 0
    integer(c_int) :: map = 0
    integer(c_int64_t) :: offset = 0
    integer(c_int64_t) :: scale = 0
    integer(c_int64_t) :: before = 0
    integer(c_int64_t) :: after = 0
    type(c_funptr) :: fn = c_null_funptr
    type(c_ptr) :: user = c_null_ptr
  end type

  type, bind(c) :: filch_batch_desc
    integer(c_size_t) :: size = 56
    type(c_ptr) :: codelet = c_null_ptr
    type(c_ptr) :: args = c_null_ptr
    integer(c_int64_t) :: n = 0
    integer(c_int64_t) :: grain = 0
    type(c_ptr) :: accesses = c_null_ptr
    integer(c_int32_t) :: access_count = 0
    integer(c_int32_t) :: reserved = 0
  end type

  type, bind(c) :: filch_resume_desc
    integer(c_size_t) :: size = 24
    type(c_ptr) :: devices = c_null_ptr
    integer(c_int32_t) :: device_count = 0
    integer(c_int32_t) :: reserved = 0
  end type

  type, bind(c) :: filch_broadcast_desc
    integer(c_size_t) :: size = 48
    type(c_ptr) :: devices = c_null_ptr
    integer(c_int32_t) :: device_count = 0
    logical(c_bool) :: one_tile = .false._c_bool
    integer(c_int32_t) :: row = 0
    integer(c_int32_t) :: col = 0
    integer(c_int) :: way = 0
    integer(c_int32_t) :: reserved = 0
    integer(c_int64_t) :: piece = 0
  end type

  type, bind(c) :: filch_csr_desc
    integer(c_size_t) :: size = 112
    integer(c_int64_t) :: rows = 0
    integer(c_int64_t) :: cols = 0
    integer(c_int64_t) :: nnz = 0
    type(c_ptr) :: pointers = c_null_ptr
    type(c_ptr) :: columns = c_null_ptr
    type(c_ptr) :: values = c_null_ptr
    integer(c_int64_t) :: element = 0
    integer(c_int32_t) :: pointer_bytes = 4
    integer(c_int32_t) :: column_bytes = 4
    integer(c_int32_t) :: base = 0
    integer(c_int32_t) :: flags = 0
    integer(c_int64_t) :: tile_rows = 0
    type(c_ptr) :: row_cuts = c_null_ptr
    integer(c_int32_t) :: row_cut_count = 0
    integer(c_int32_t) :: blocks = 0
    type(c_ptr) :: label = c_null_ptr
  end type

  type, bind(c) :: filch_csr_block
    integer(c_size_t) :: size = 120
    integer(c_int64_t) :: rows = 0
    integer(c_int64_t) :: cols = 0
    integer(c_int64_t) :: nnz = 0
    integer(c_int64_t) :: row = 0
    integer(c_int64_t) :: entry = 0
    integer(c_int64_t) :: column_lo = 0
    integer(c_int64_t) :: column_hi = 0
    integer(c_int64_t) :: element = 0
    integer(c_int32_t) :: pointer_bytes = 0
    integer(c_int32_t) :: column_bytes = 0
    integer(c_int32_t) :: base = 0
    integer(c_int32_t) :: block_lo = 0
    integer(c_int32_t) :: block_hi = 0
    integer(c_int32_t) :: reserved = 0
    type(c_ptr) :: pointers = c_null_ptr
    type(c_ptr) :: columns = c_null_ptr
    type(c_ptr) :: values = c_null_ptr
  end type

  type, bind(c) :: filch_shape
    integer(c_int32_t) :: grid(3) = 0
    integer(c_int32_t) :: block(3) = 0
    integer(c_int32_t) :: cluster(3) = 0
    integer(c_int32_t) :: shared_bytes = 0
  end type

  type, bind(c) :: filch_lane
    type(c_ptr) :: stream = c_null_ptr
    type(c_ptr) :: context = c_null_ptr
    integer(c_int32_t) :: cuda_device = 0
    integer(c_int32_t) :: device = 0
    integer(c_int32_t) :: lane = 0
    integer(c_int32_t) :: lanes = 0
    integer(c_int32_t) :: multiprocessors = 0
    integer(c_int32_t) :: reserved = 0
  end type

  type, bind(c) :: filch_cuda_desc
    integer(c_size_t) :: size = 136
    type(c_ptr) :: source = c_null_ptr
    type(c_ptr) :: image = c_null_ptr
    integer(c_size_t) :: image_bytes = 0
    type(c_ptr) :: entry = c_null_ptr
    type(c_ptr) :: options = c_null_ptr
    type(filch_shape) :: shape
    type(c_funptr) :: shape_of = c_null_funptr
    type(c_funptr) :: enqueue = c_null_funptr
    type(c_funptr) :: open = c_null_funptr
    type(c_funptr) :: close = c_null_funptr
    type(c_ptr) :: user = c_null_ptr
    logical(c_bool) :: waits = .false._c_bool
  end type

  type, bind(c) :: filch_probe
    integer(c_size_t) :: size = 56
    type(c_ptr) :: runtime = c_null_ptr
    type(c_ptr) :: context = c_null_ptr
    type(c_ptr) :: stream = c_null_ptr
    integer(c_int32_t) :: cuda_device = 0
    integer(c_int32_t) :: ordinal = 0
    integer(c_int32_t) :: device = 0
    integer(c_int32_t) :: capability = 0
    integer(c_int32_t) :: multiprocessors = 0
    integer(c_int32_t) :: reserved = 0
  end type

  type, bind(c) :: filch_probe_desc
    integer(c_size_t) :: size = 32
    type(c_funptr) :: build = c_null_funptr
    type(c_ptr) :: user = c_null_ptr
    integer(c_int32_t) :: ordinal = 0
    logical(c_bool) :: is_retry = .false._c_bool
  end type

  type, bind(c) :: filch_device_info
    integer(c_size_t) :: size = 456
    character(kind=c_char) :: name(64) = c_null_char
    character(kind=c_char) :: model(64) = c_null_char
    integer(c_int) :: backend = FILCH_BACKEND_HOST
    integer(c_int32_t) :: index = 0
    integer(c_int32_t) :: ordinal = 0
    integer(c_int32_t) :: place = 0
    integer(c_int32_t) :: team = 0
    integer(c_int32_t) :: reserved = 0
    real(c_double) :: score = 0.0_c_double
    integer(c_int64_t) :: memory_total = 0
    integer(c_int64_t) :: memory_free = 0
    integer(c_int64_t) :: affinity(16) = 0
    character(kind=c_char) :: uuid(48) = c_null_char
    character(kind=c_char) :: pci(16) = c_null_char
    integer(c_int32_t) :: capability = 0
    integer(c_int32_t) :: multiprocessors = 0
    integer(c_int32_t) :: clock_khz = 0
    integer(c_int32_t) :: memory_khz = 0
    integer(c_int32_t) :: memory_bits = 0
    integer(c_int32_t) :: single_lanes = 0
    integer(c_int32_t) :: double_lanes = 0
    integer(c_int32_t) :: features = 0
    integer(c_int32_t) :: numa_node = 0
    integer(c_int32_t) :: compute_lanes = 0
    real(c_double) :: bandwidth = 0.0_c_double
    integer(c_int64_t) :: l2_bytes = 0
    integer(c_int64_t) :: budget = 0
    real(c_double) :: true_speed = 0.0_c_double
    integer(c_int64_t) :: block_shared = 0
  end type

  type, bind(c) :: filch_device_refusal
    integer(c_size_t) :: size = 568
    character(kind=c_char) :: name(64) = c_null_char
    integer(c_int) :: backend = FILCH_BACKEND_HOST
    integer(c_int32_t) :: ordinal = 0
    type(filch_error) :: error
  end type

  type, bind(c) :: filch_memory_stats
    integer(c_size_t) :: size = 96
    integer(c_int) :: arena = 0
    integer(c_int32_t) :: padding = 0
    integer(c_int64_t) :: budget = 0
    integer(c_int64_t) :: mapped = 0
    integer(c_int64_t) :: mapped_peak = 0
    integer(c_int64_t) :: requested = 0
    integer(c_int64_t) :: requested_peak = 0
    integer(c_int64_t) :: cached = 0
    integer(c_int64_t) :: pending = 0
    integer(c_int64_t) :: takes = 0
    integer(c_int64_t) :: gives = 0
    integer(c_int64_t) :: shortages = 0
  end type

  type, bind(c) :: filch_link
    integer(c_size_t) :: size = 24
    logical(c_bool) :: is_same = .false._c_bool
    logical(c_bool) :: has_access = .false._c_bool
    logical(c_bool) :: has_atomics = .false._c_bool
    integer(c_int32_t) :: rank = 0
    real(c_double) :: bandwidth = 0.0_c_double
  end type

  type, bind(c) :: filch_graph_desc
    integer(c_size_t) :: size = 40
    integer(c_int) :: kind = 0
    integer(c_int) :: priorities = 0
    integer(c_int32_t) :: priority_min = 0
    integer(c_int32_t) :: priority_max = 0
    type(c_ptr) :: label = c_null_ptr
    integer(c_int64_t) :: max_live = 0
  end type

  type, bind(c) :: filch_task_desc
    integer(c_size_t) :: size = 72
    type(c_ptr) :: codelet = c_null_ptr
    type(c_ptr) :: args = c_null_ptr
    type(c_ptr) :: accesses = c_null_ptr
    integer(c_int32_t) :: access_count = 0
    integer(c_int32_t) :: priority = 0
    type(c_ptr) :: label = c_null_ptr
    integer(c_int32_t) :: affinity = 0
    integer(c_int32_t) :: reserved = 0
    integer(c_int64_t) :: items = 0
    integer(c_int64_t) :: grain = 0
  end type

  type, bind(c) :: filch_gemm_args
    real(c_double) :: alpha = 0.0_c_double
    real(c_double) :: beta = 0.0_c_double
    logical(c_bool) :: transpose_a = .false._c_bool
    logical(c_bool) :: transpose_b = .false._c_bool
  end type

  type, bind(c) :: filch_syrk_args
    real(c_double) :: alpha = 0.0_c_double
    real(c_double) :: beta = 0.0_c_double
    logical(c_bool) :: transpose = .false._c_bool
    integer(c_int32_t) :: reserved = 0
  end type

  type, bind(c) :: filch_potrf_trtri_args
    logical(c_bool) :: inverts = .false._c_bool
    integer(c_int32_t) :: reserved = 0
  end type

  type, bind(c) :: filch_mandelbrot_args
    real(c_double) :: left = 0.0_c_double
    real(c_double) :: right = 0.0_c_double
    real(c_double) :: low = 0.0_c_double
    real(c_double) :: high = 0.0_c_double
    integer(c_int64_t) :: rows = 0
    integer(c_int32_t) :: limit = 0
    integer(c_int32_t) :: reserved = 0
  end type

  type, bind(c) :: filch_nbody_args
    real(c_double) :: step = 0.0_c_double
    real(c_double) :: softening = 0.0_c_double
  end type

  type, bind(c) :: filch_axpy_args
    real(c_double) :: alpha = 0.0_c_double
  end type

  type, bind(c) :: filch_sums_args
    integer(c_int64_t) :: piece = 0
  end type

  type, bind(c) :: filch_kernel
    type(c_ptr) :: name = c_null_ptr
    type(c_funptr) :: host = c_null_funptr
    type(c_funptr) :: work = c_null_funptr
    type(c_ptr) :: cuda = c_null_ptr
    integer(c_int32_t) :: view_count = 0
    integer(c_int32_t) :: arg_size = 0
    logical(c_bool) :: is_batch = .false._c_bool
  end type

  type, bind(c) :: filch_pending
    type(c_ptr) :: opaque = c_null_ptr
    integer(c_int64_t) :: serial = 0
  end type

  type, bind(c) :: filch_policy_item
    integer(c_size_t) :: size = 64
    integer(c_int) :: kind = 0
    integer(c_int32_t) :: device = 0
    integer(c_int32_t) :: owner = 0
    integer(c_int32_t) :: level = 0
    type(c_ptr) :: name = c_null_ptr
    real(c_double) :: work = 0.0_c_double
    integer(c_int64_t) :: first = 0
    integer(c_int64_t) :: last = 0
    integer(c_int32_t) :: grains = 0
    integer(c_int32_t) :: rest = 0
  end type

  type, bind(c) :: filch_policy_desc
    integer(c_size_t) :: size = 56
    type(c_ptr) :: name = c_null_ptr
    type(c_ptr) :: user = c_null_ptr
    type(c_funptr) :: place = c_null_funptr
    type(c_funptr) :: chunk = c_null_funptr
    type(c_funptr) :: steal = c_null_funptr
    integer(c_int) :: batches = 0
    integer(c_int32_t) :: flags = 0
  end type

  type, bind(c) :: filch_policy_counts
    integer(c_size_t) :: size = 96
    character(kind=c_char) :: name(32) = c_null_char
    integer(c_int) :: policy = 0
    integer(c_int32_t) :: reserved = 0
    integer(c_int64_t) :: places = 0
    integer(c_int64_t) :: places_refused = 0
    integer(c_int64_t) :: chunks = 0
    integer(c_int64_t) :: chunks_refused = 0
    integer(c_int64_t) :: steals = 0
    integer(c_int64_t) :: steals_refused = 0
  end type

  type, bind(c) :: filch_repeat_desc
    integer(c_size_t) :: size = 48
    type(c_funptr) :: predicate = c_null_funptr
    type(c_ptr) :: user = c_null_ptr
    type(c_ptr) :: value = c_null_ptr
    integer(c_int32_t) :: value_bytes = 0
    integer(c_int32_t) :: lag = 0
    integer(c_int64_t) :: max_runs = 0
  end type

  type, bind(c) :: filch_losses
    integer(c_int64_t) :: wall_ns = 0
    integer(c_int64_t) :: busy_ns = 0
    integer(c_int64_t) :: dispatch_ns = 0
    integer(c_int64_t) :: data_ns = 0
    integer(c_int64_t) :: spoiled_ns = 0
    integer(c_int64_t) :: starved_ns = 0
    integer(c_int64_t) :: held_ns = 0
    integer(c_int64_t) :: tail_ns = 0
    integer(c_int64_t) :: other_ns = 0
    integer(c_int64_t) :: estimated_ns = 0
    integer(c_int64_t) :: refused_held = 0
    integer(c_int64_t) :: refused_empty = 0
    integer(c_int64_t) :: refused_unable = 0
    integer(c_int64_t) :: refused_raced = 0
    integer(c_int64_t) :: refused_dear = 0
    integer(c_int64_t) :: restarts = 0
    integer(c_int64_t) :: restarts_won = 0
    integer(c_int64_t) :: restarts_lost = 0
    integer(c_int64_t) :: restarts_refused = 0
    integer(c_int64_t) :: divided = 0
    integer(c_int64_t) :: pieces = 0
    integer(c_int64_t) :: slow_ns = 0
    integer(c_int64_t) :: unrated_ns = 0
    integer(c_int64_t) :: preempted_ns = 0
    integer(c_int64_t) :: unshared_ns = 0
  end type

  type, bind(c) :: filch_report
    integer(c_size_t) :: size = 264
    integer(c_int) :: status = 0
    integer(c_int32_t) :: device_count = 0
    integer(c_int32_t) :: measured_count = 0
    integer(c_int32_t) :: known_count = 0
    integer(c_int64_t) :: wall_ns = 0
    integer(c_int64_t) :: area_ns = 0
    integer(c_int64_t) :: path_ns = 0
    integer(c_int64_t) :: bound_ns = 0
    real(c_double) :: efficiency = 0.0_c_double
    type(filch_losses) :: total
  end type

  type, bind(c) :: filch_speed
    integer(c_size_t) :: size = 64
    integer(c_int) :: source = 0
    integer(c_int32_t) :: samples = 0
    real(c_double) :: ns_per_unit = 0.0_c_double
    real(c_double) :: fixed_ns = 0.0_c_double
    real(c_double) :: spread = 0.0_c_double
    real(c_double) :: most_work = 0.0_c_double
    integer(c_int64_t) :: timed = 0
    integer(c_int32_t) :: changes = 0
    logical(c_bool) :: prior_refuted = .false._c_bool
  end type

  type, bind(c) :: filch_speeds
    integer(c_size_t) :: size = 40
    integer(c_int) :: loaded = 0
    integer(c_int) :: saved = 0
    integer(c_int64_t) :: records = 0
    integer(c_int64_t) :: used = 0
    integer(c_int64_t) :: saves = 0
  end type

  type, bind(c) :: filch_multicast_desc
    integer(c_size_t) :: size = 40
    type(c_ptr) :: devices = c_null_ptr
    integer(c_int32_t) :: device_count = 0
    integer(c_int32_t) :: reserved = 0
    integer(c_int64_t) :: bytes = 0
    type(c_ptr) :: label = c_null_ptr
  end type

  type, bind(c) :: filch_granularity
    integer(c_size_t) :: size = 24
    integer(c_int64_t) :: minimum = 0
    integer(c_int64_t) :: recommended = 0
  end type

  abstract interface
    function filch_allocator_alloc_fn(size, align, user) bind(c) result(answer)
      import
      integer(c_size_t), value :: size
      integer(c_size_t), value :: align
      type(c_ptr), value :: user
      type(c_ptr) :: answer
    end function
    subroutine filch_allocator_free_fn(pointer, size, align, user) bind(c)
      import
      type(c_ptr), value :: pointer
      integer(c_size_t), value :: size
      integer(c_size_t), value :: align
      type(c_ptr), value :: user
    end subroutine
    subroutine filch_log_fn(level, text, user) bind(c)
      import
      integer(c_int), value :: level
      type(c_ptr), value :: text
      type(c_ptr), value :: user
    end subroutine
    function filch_device_rate_fn(info, user) bind(c) result(answer)
      import
      type(filch_device_info), intent(in) :: info
      type(c_ptr), value :: user
      real(c_double) :: answer
    end function
    function filch_host_fn(call) bind(c) result(answer)
      import
      type(filch_call), intent(in) :: call
      integer(c_int) :: answer
    end function
    function filch_work_fn(call) bind(c) result(answer)
      import
      type(filch_call), intent(in) :: call
      real(c_double) :: answer
    end function
    function filch_host_open_fn(runtime, device, user, state) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      integer(c_int32_t), value :: device
      type(c_ptr), value :: user
      type(c_ptr), intent(inout) :: state
      integer(c_int) :: answer
    end function
    subroutine filch_host_close_fn(device, user, state) bind(c)
      import
      integer(c_int32_t), value :: device
      type(c_ptr), value :: user
      type(c_ptr), value :: state
    end subroutine
    subroutine filch_complete_fn(job, status, user) bind(c)
      import
      type(c_ptr), value :: job
      integer(c_int), value :: status
      type(c_ptr), value :: user
    end subroutine
    subroutine filch_map_fn(lo, hi, first, last, user) bind(c)
      import
      integer(c_int64_t), value :: lo
      integer(c_int64_t), value :: hi
      integer(c_int64_t), intent(inout) :: first
      integer(c_int64_t), intent(inout) :: last
      type(c_ptr), value :: user
    end subroutine
    function filch_shape_fn(call, shape) bind(c) result(answer)
      import
      type(filch_call), intent(in) :: call
      type(filch_shape), intent(inout) :: shape
      integer(c_int) :: answer
    end function
    function filch_enqueue_fn(call, lane, state) bind(c) result(answer)
      import
      type(filch_call), intent(in) :: call
      type(filch_lane), intent(in) :: lane
      type(c_ptr), value :: state
      integer(c_int) :: answer
    end function
    function filch_lane_open_fn(lane, user, state) bind(c) result(answer)
      import
      type(filch_lane), intent(in) :: lane
      type(c_ptr), value :: user
      type(c_ptr), intent(inout) :: state
      integer(c_int) :: answer
    end function
    subroutine filch_lane_close_fn(lane, user, state) bind(c)
      import
      type(filch_lane), intent(in) :: lane
      type(c_ptr), value :: user
      type(c_ptr), value :: state
    end subroutine
    function filch_build_fn(probe, user) bind(c) result(answer)
      import
      type(filch_probe), intent(in) :: probe
      type(c_ptr), value :: user
      integer(c_int) :: answer
    end function
    function filch_scope_fn(lane, user) bind(c) result(answer)
      import
      type(filch_lane), intent(in) :: lane
      type(c_ptr), value :: user
      integer(c_int) :: answer
    end function
    function filch_place_fn(view, user) bind(c) result(answer)
      import
      type(c_ptr), value :: view
      type(c_ptr), value :: user
      integer(c_int32_t) :: answer
    end function
    function filch_chunk_fn(view, user) bind(c) result(answer)
      import
      type(c_ptr), value :: view
      type(c_ptr), value :: user
      integer(c_int32_t) :: answer
    end function
    function filch_steal_fn(view, amount, user) bind(c) result(answer)
      import
      type(c_ptr), value :: view
      integer(c_int32_t), intent(inout) :: amount
      type(c_ptr), value :: user
      integer(c_int32_t) :: answer
    end function
    function filch_repeat_fn(run, value, user) bind(c) result(answer)
      import
      integer(c_int64_t), value :: run
      type(c_ptr), value :: value
      type(c_ptr), value :: user
      integer(c_int) :: answer
    end function
  end interface

  interface
    function filch_status_name(status) bind(c) result(answer)
      import
      integer(c_int), value :: status
      type(c_ptr) :: answer
    end function
    function filch_status_message(status) bind(c) result(answer)
      import
      integer(c_int), value :: status
      type(c_ptr) :: answer
    end function
    function filch_setting_at(index, setting) bind(c) result(answer)
      import
      integer(c_size_t), value :: index
      type(filch_setting), intent(inout), optional :: setting
      integer(c_int) :: answer
    end function
    function filch_version() bind(c) result(answer)
      import
      integer(c_int32_t) :: answer
    end function
    function filch_runtime_create(config, error, runtime) bind(c) result(answer)
      import
      type(filch_runtime_desc), intent(in), optional :: config
      type(filch_error), intent(inout), optional :: error
      type(c_ptr), intent(inout), optional :: runtime
      integer(c_int) :: answer
    end function
    function filch_runtime_drain(runtime, seconds) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      real(c_double), value :: seconds
      integer(c_int) :: answer
    end function
    function filch_runtime_destroy(runtime) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      integer(c_int) :: answer
    end function
    function filch_runtime_abort(runtime) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      integer(c_int) :: answer
    end function
    function filch_runtime_poll(runtime, seconds, worked) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      real(c_double), value :: seconds
      logical(c_bool), intent(inout), optional :: worked
      integer(c_int) :: answer
    end function
    function filch_runtime_poll_wait(runtime, job, seconds, worked) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      type(c_ptr), value :: job
      real(c_double), value :: seconds
      logical(c_bool), intent(inout), optional :: worked
      integer(c_int) :: answer
    end function
    function filch_runtime_error(runtime, error) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      type(filch_error), intent(inout), optional :: error
      integer(c_int) :: answer
    end function
    function filch_runtime_usage(runtime, usage) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      type(filch_usage), intent(inout), optional :: usage
      integer(c_int) :: answer
    end function
    function filch_codelet_create(runtime, desc, codelet) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      type(filch_codelet_desc), intent(in), optional :: desc
      type(c_ptr), intent(inout), optional :: codelet
      integer(c_int) :: answer
    end function
    function filch_call_set_text(call, text) bind(c) result(answer)
      import
      type(filch_call), intent(in), optional :: call
      character(kind=c_char), intent(in), optional :: text(*)
      integer(c_int) :: answer
    end function
    function filch_call_finish(call) bind(c) result(answer)
      import
      type(filch_call), intent(in), optional :: call
      integer(c_int) :: answer
    end function
    function filch_data_create(runtime, desc, data) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      type(filch_data_desc), intent(in), optional :: desc
      type(c_ptr), intent(inout), optional :: data
      integer(c_int) :: answer
    end function
    function filch_data_destroy(data) bind(c) result(answer)
      import
      type(c_ptr), value :: data
      integer(c_int) :: answer
    end function
    function filch_data_acquire(data, mode) bind(c) result(answer)
      import
      type(c_ptr), value :: data
      integer(c_int), value :: mode
      integer(c_int) :: answer
    end function
    function filch_data_release(data) bind(c) result(answer)
      import
      type(c_ptr), value :: data
      integer(c_int) :: answer
    end function
    function filch_data_reduction(data, init, combine) bind(c) result(answer)
      import
      type(c_ptr), value :: data
      type(c_ptr), value :: init
      type(c_ptr), value :: combine
      integer(c_int) :: answer
    end function
    function filch_data_partition(parent, tiling, child) bind(c) result(answer)
      import
      type(c_ptr), value :: parent
      type(filch_data_desc), intent(in), optional :: tiling
      type(c_ptr), intent(inout), optional :: child
      integer(c_int) :: answer
    end function
    function filch_data_acquire_tiles(data, tiles, mode, seconds, hold) bind(c) result(answer)
      import
      type(c_ptr), value :: data
      type(filch_tiles), intent(in), optional :: tiles
      integer(c_int), value :: mode
      real(c_double), value :: seconds
      type(c_ptr), intent(inout), optional :: hold
      integer(c_int) :: answer
    end function
    function filch_hold_release(hold) bind(c) result(answer)
      import
      type(c_ptr), value :: hold
      integer(c_int) :: answer
    end function
    function filch_data_view(data, row, col, view) bind(c) result(answer)
      import
      type(c_ptr), value :: data
      integer(c_int32_t), value :: row
      integer(c_int32_t), value :: col
      type(filch_view), intent(inout), optional :: view
      integer(c_int) :: answer
    end function
    function filch_data_tiles(data, tiling) bind(c) result(answer)
      import
      type(c_ptr), value :: data
      type(filch_tiling), intent(inout), optional :: tiling
      integer(c_int) :: answer
    end function
    function filch_job_wait(job, seconds) bind(c) result(answer)
      import
      type(c_ptr), value :: job
      real(c_double), value :: seconds
      integer(c_int) :: answer
    end function
    function filch_job_status(job) bind(c) result(answer)
      import
      type(c_ptr), value :: job
      integer(c_int) :: answer
    end function
    function filch_job_cancel(job) bind(c) result(answer)
      import
      type(c_ptr), value :: job
      integer(c_int) :: answer
    end function
    function filch_job_stats(job, info, devices, count) bind(c) result(answer)
      import
      type(c_ptr), value :: job
      type(filch_job_info), intent(inout), optional :: info
      type(filch_device_stats), intent(inout), optional :: devices(*)
      integer(c_int32_t), value :: count
      integer(c_int) :: answer
    end function
    function filch_job_error(job, error) bind(c) result(answer)
      import
      type(c_ptr), value :: job
      type(filch_error), intent(inout), optional :: error
      integer(c_int) :: answer
    end function
    function filch_job_items(job, ranges, capacity, count) bind(c) result(answer)
      import
      type(c_ptr), value :: job
      type(filch_item_range), intent(inout), optional :: ranges(*)
      integer(c_size_t), value :: capacity
      integer(c_size_t), intent(inout), optional :: count
      integer(c_int) :: answer
    end function
    function filch_job_release(job) bind(c) result(answer)
      import
      type(c_ptr), value :: job
      integer(c_int) :: answer
    end function
    function filch_batch_submit(runtime, desc, submit, job) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      type(filch_batch_desc), intent(in), optional :: desc
      type(filch_submit_desc), intent(in), optional :: submit
      type(c_ptr), intent(inout), optional :: job
      integer(c_int) :: answer
    end function
    function filch_batch_run(runtime, desc, submit, error) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      type(filch_batch_desc), intent(in), optional :: desc
      type(filch_submit_desc), intent(in), optional :: submit
      type(filch_error), intent(inout), optional :: error
      integer(c_int) :: answer
    end function
    function filch_job_resume(job, desc, submit, rest) bind(c) result(answer)
      import
      type(c_ptr), value :: job
      type(filch_resume_desc), intent(in), optional :: desc
      type(filch_submit_desc), intent(in), optional :: submit
      type(c_ptr), intent(inout), optional :: rest
      integer(c_int) :: answer
    end function
    function filch_data_broadcast(data, broadcast, submit, job) bind(c) result(answer)
      import
      type(c_ptr), value :: data
      type(filch_broadcast_desc), intent(in), optional :: broadcast
      type(filch_submit_desc), intent(in), optional :: submit
      type(c_ptr), intent(inout), optional :: job
      integer(c_int) :: answer
    end function
    function filch_csr_create(runtime, desc, matrix) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      type(filch_csr_desc), intent(in), optional :: desc
      type(c_ptr), intent(inout), optional :: matrix
      integer(c_int) :: answer
    end function
    function filch_csr_at(matrix, at, block) bind(c) result(answer)
      import
      type(c_ptr), value :: matrix
      integer(c_int32_t), value :: at
      type(filch_csr_block), intent(inout), optional :: block
      integer(c_int) :: answer
    end function
    function filch_csr_view(matrix, view, block) bind(c) result(answer)
      import
      type(c_ptr), value :: matrix
      type(filch_view), intent(in), optional :: view
      type(filch_csr_block), intent(inout), optional :: block
      integer(c_int) :: answer
    end function
    function filch_device_probe(runtime, label, desc, probe) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      character(kind=c_char), intent(in), optional :: label(*)
      type(filch_probe_desc), intent(in), optional :: desc
      type(filch_probe), intent(inout), optional :: probe
      integer(c_int) :: answer
    end function
    function filch_device_scope(runtime, device, fn, user) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      integer(c_int32_t), value :: device
      type(c_funptr), value :: fn
      type(c_ptr), value :: user
      integer(c_int) :: answer
    end function
    function filch_device_count(runtime) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      integer(c_int32_t) :: answer
    end function
    function filch_device_at(runtime, index, info) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      integer(c_int32_t), value :: index
      type(filch_device_info), intent(inout), optional :: info
      integer(c_int) :: answer
    end function
    function filch_device_refused_count(runtime) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      integer(c_int32_t) :: answer
    end function
    function filch_device_refused_at(runtime, index, refusal) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      integer(c_int32_t), value :: index
      type(filch_device_refusal), intent(inout), optional :: refusal
      integer(c_int) :: answer
    end function
    function filch_device_by_ordinal(runtime, backend, ordinal, index) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      integer(c_int), value :: backend
      integer(c_int32_t), value :: ordinal
      integer(c_int32_t), intent(inout), optional :: index
      integer(c_int) :: answer
    end function
    function filch_device_next(runtime, index) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      integer(c_int32_t), intent(inout), optional :: index
      integer(c_int) :: answer
    end function
    function filch_device_best_memory(runtime, index) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      integer(c_int32_t), intent(inout), optional :: index
      integer(c_int) :: answer
    end function
    function filch_device_best_score(runtime, index) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      integer(c_int32_t), intent(inout), optional :: index
      integer(c_int) :: answer
    end function
    function filch_device_choose(runtime, rate, user, index) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      type(c_funptr), value :: rate
      type(c_ptr), value :: user
      integer(c_int32_t), intent(inout), optional :: index
      integer(c_int) :: answer
    end function
    function filch_device_memory(runtime, index, stats) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      integer(c_int32_t), value :: index
      type(filch_memory_stats), intent(inout), optional :: stats
      integer(c_int) :: answer
    end function
    function filch_device_trim(runtime, index, keep) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      integer(c_int32_t), value :: index
      integer(c_int64_t), value :: keep
      integer(c_int) :: answer
    end function
    function filch_device_withdraw(runtime, index) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      integer(c_int32_t), value :: index
      integer(c_int) :: answer
    end function
    function filch_device_readmit(runtime, index) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      integer(c_int32_t), value :: index
      integer(c_int) :: answer
    end function
    function filch_device_presence(runtime, index, presence) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      integer(c_int32_t), value :: index
      integer(c_int), intent(inout), optional :: presence
      integer(c_int) :: answer
    end function
    function filch_device_link(runtime, from, to, link) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      integer(c_int32_t), value :: from
      integer(c_int32_t), value :: to
      type(filch_link), intent(inout), optional :: link
      integer(c_int) :: answer
    end function
    function filch_device_measure_links(runtime) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      integer(c_int) :: answer
    end function
    function filch_graph_create(runtime, desc, graph) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      type(filch_graph_desc), intent(in), optional :: desc
      type(c_ptr), intent(inout), optional :: graph
      integer(c_int) :: answer
    end function
    function filch_graph_add(graph, desc, task) bind(c) result(answer)
      import
      type(c_ptr), value :: graph
      type(filch_task_desc), intent(in), optional :: desc
      integer(c_int64_t), intent(inout), optional :: task
      integer(c_int) :: answer
    end function
    function filch_graph_add_many(graph, descs, count, tasks, added) bind(c) result(answer)
      import
      type(c_ptr), value :: graph
      type(filch_task_desc), intent(in), optional :: descs(*)
      integer(c_size_t), value :: count
      integer(c_int64_t), intent(inout), optional :: tasks
      integer(c_size_t), intent(inout), optional :: added
      integer(c_int) :: answer
    end function
    function filch_graph_wait_below(graph, count, seconds) bind(c) result(answer)
      import
      type(c_ptr), value :: graph
      integer(c_int64_t), value :: count
      real(c_double), value :: seconds
      integer(c_int) :: answer
    end function
    function filch_graph_edge(graph, before, after) bind(c) result(answer)
      import
      type(c_ptr), value :: graph
      integer(c_int64_t), value :: before
      integer(c_int64_t), value :: after
      integer(c_int) :: answer
    end function
    function filch_graph_partition(graph, parent, child) bind(c) result(answer)
      import
      type(c_ptr), value :: graph
      type(c_ptr), value :: parent
      type(c_ptr), value :: child
      integer(c_int) :: answer
    end function
    function filch_graph_unpartition(graph, parent, child) bind(c) result(answer)
      import
      type(c_ptr), value :: graph
      type(c_ptr), value :: parent
      type(c_ptr), value :: child
      integer(c_int) :: answer
    end function
    function filch_graph_read_only(graph, data) bind(c) result(answer)
      import
      type(c_ptr), value :: graph
      type(c_ptr), value :: data
      integer(c_int) :: answer
    end function
    function filch_graph_discard(graph, data) bind(c) result(answer)
      import
      type(c_ptr), value :: graph
      type(c_ptr), value :: data
      integer(c_int) :: answer
    end function
    function filch_graph_seal(graph) bind(c) result(answer)
      import
      type(c_ptr), value :: graph
      integer(c_int) :: answer
    end function
    function filch_graph_write_dot(graph, path) bind(c) result(answer)
      import
      type(c_ptr), value :: graph
      character(kind=c_char), intent(in), optional :: path(*)
      integer(c_int) :: answer
    end function
    function filch_graph_submit(graph, submit, job) bind(c) result(answer)
      import
      type(c_ptr), value :: graph
      type(filch_submit_desc), intent(in), optional :: submit
      type(c_ptr), intent(inout), optional :: job
      integer(c_int) :: answer
    end function
    function filch_graph_run(graph, submit, error) bind(c) result(answer)
      import
      type(c_ptr), value :: graph
      type(filch_submit_desc), intent(in), optional :: submit
      type(filch_error), intent(inout), optional :: error
      integer(c_int) :: answer
    end function
    function filch_graph_close(graph) bind(c) result(answer)
      import
      type(c_ptr), value :: graph
      integer(c_int) :: answer
    end function
    function filch_graph_destroy(graph) bind(c) result(answer)
      import
      type(c_ptr), value :: graph
      integer(c_int) :: answer
    end function
    function filch_kernel_at(index) bind(c) result(answer)
      import
      integer(c_size_t), value :: index
      type(c_ptr) :: answer
    end function
    function filch_kernel_find(name) bind(c) result(answer)
      import
      character(kind=c_char), intent(in), optional :: name(*)
      type(c_ptr) :: answer
    end function
    function filch_codelet_create_builtin(runtime, name, codelet) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      character(kind=c_char), intent(in), optional :: name(*)
      type(c_ptr), intent(inout), optional :: codelet
      integer(c_int) :: answer
    end function
    function filch_call_pend(call, pending) bind(c) result(answer)
      import
      type(filch_call), intent(in), optional :: call
      type(filch_pending), intent(inout), optional :: pending
      integer(c_int) :: answer
    end function
    function filch_pending_end(pending, code, text) bind(c) result(answer)
      import
      type(filch_pending), value :: pending
      integer(c_int), value :: code
      character(kind=c_char), intent(in), optional :: text(*)
      integer(c_int) :: answer
    end function
    function filch_pending_status(pending) bind(c) result(answer)
      import
      type(filch_pending), value :: pending
      integer(c_int) :: answer
    end function
    function filch_policy_item_get(view, item) bind(c) result(answer)
      import
      type(c_ptr), value :: view
      type(filch_policy_item), intent(inout), optional :: item
      integer(c_int) :: answer
    end function
    function filch_policy_devices(view) bind(c) result(answer)
      import
      type(c_ptr), value :: view
      integer(c_int32_t) :: answer
    end function
    function filch_policy_can_run(view, device) bind(c) result(answer)
      import
      type(c_ptr), value :: view
      integer(c_int32_t), value :: device
      logical(c_bool) :: answer
    end function
    function filch_policy_queued(view, device) bind(c) result(answer)
      import
      type(c_ptr), value :: view
      integer(c_int32_t), value :: device
      integer(c_int64_t) :: answer
    end function
    function filch_policy_load(view, device) bind(c) result(answer)
      import
      type(c_ptr), value :: view
      integer(c_int32_t), value :: device
      real(c_double) :: answer
    end function
    function filch_policy_seconds(view, device) bind(c) result(answer)
      import
      type(c_ptr), value :: view
      integer(c_int32_t), value :: device
      real(c_double) :: answer
    end function
    function filch_policy_missing(view, device) bind(c) result(answer)
      import
      type(c_ptr), value :: view
      integer(c_int32_t), value :: device
      integer(c_int64_t) :: answer
    end function
    function filch_policy_transfer(view, device) bind(c) result(answer)
      import
      type(c_ptr), value :: view
      integer(c_int32_t), value :: device
      real(c_double) :: answer
    end function
    function filch_runtime_policy(runtime, counts) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      type(filch_policy_counts), intent(inout), optional :: counts
      integer(c_int) :: answer
    end function
    function filch_graph_repeat(graph, repeat, submit, job) bind(c) result(answer)
      import
      type(c_ptr), value :: graph
      type(filch_repeat_desc), intent(in), optional :: repeat
      type(filch_submit_desc), intent(in), optional :: submit
      type(c_ptr), intent(inout), optional :: job
      integer(c_int) :: answer
    end function
    function filch_job_report(job, graph, report, devices, count) bind(c) result(answer)
      import
      type(c_ptr), value :: job
      type(c_ptr), value :: graph
      type(filch_report), intent(inout), optional :: report
      type(filch_losses), intent(inout), optional :: devices(*)
      integer(c_int32_t), value :: count
      integer(c_int) :: answer
    end function
    function filch_report_print(job, graph, file) bind(c) result(answer)
      import
      type(c_ptr), value :: job
      type(c_ptr), value :: graph
      type(c_ptr), value :: file
      integer(c_int) :: answer
    end function
    function filch_report_write(runtime, path) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      character(kind=c_char), intent(in), optional :: path(*)
      integer(c_int) :: answer
    end function
    function filch_codelet_speed(codelet, device, speed) bind(c) result(answer)
      import
      type(c_ptr), value :: codelet
      integer(c_int32_t), value :: device
      type(filch_speed), intent(inout), optional :: speed
      integer(c_int) :: answer
    end function
    function filch_runtime_speeds(runtime, speeds) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      type(filch_speeds), intent(inout), optional :: speeds
      integer(c_int) :: answer
    end function
    function filch_runtime_save_speeds(runtime) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      integer(c_int) :: answer
    end function
    function filch_trace_start(runtime) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      integer(c_int) :: answer
    end function
    function filch_trace_stop(runtime) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      integer(c_int) :: answer
    end function
    function filch_trace_write(runtime, path) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      character(kind=c_char), intent(in), optional :: path(*)
      integer(c_int) :: answer
    end function
    function filch_multicast_granularity(runtime, desc, granularity) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      type(filch_multicast_desc), intent(in), optional :: desc
      type(filch_granularity), intent(inout), optional :: granularity
      integer(c_int) :: answer
    end function
    function filch_multicast_create(runtime, desc, multicast) bind(c) result(answer)
      import
      type(c_ptr), value :: runtime
      type(filch_multicast_desc), intent(in), optional :: desc
      type(c_ptr), intent(inout), optional :: multicast
      integer(c_int) :: answer
    end function
    function filch_multicast_add(multicast, device) bind(c) result(answer)
      import
      type(c_ptr), value :: multicast
      integer(c_int32_t), value :: device
      integer(c_int) :: answer
    end function
    function filch_multicast_bind(multicast, device, offset, bytes, address) bind(c) &
      result(answer)
      import
      type(c_ptr), value :: multicast
      integer(c_int32_t), value :: device
      integer(c_int64_t), value :: offset
      integer(c_int64_t), value :: bytes
      type(c_ptr), intent(inout), optional :: address
      integer(c_int) :: answer
    end function
    function filch_multicast_bind_address(multicast, device, offset, address, bytes) bind(c) &
      result(answer)
      import
      type(c_ptr), value :: multicast
      integer(c_int32_t), value :: device
      integer(c_int64_t), value :: offset
      type(c_ptr), value :: address
      integer(c_int64_t), value :: bytes
      integer(c_int) :: answer
    end function
    function filch_multicast_unbind(multicast, device, offset, bytes) bind(c) result(answer)
      import
      type(c_ptr), value :: multicast
      integer(c_int32_t), value :: device
      integer(c_int64_t), value :: offset
      integer(c_int64_t), value :: bytes
      integer(c_int) :: answer
    end function
    function filch_multicast_map(multicast, address) bind(c) result(answer)
      import
      type(c_ptr), value :: multicast
      type(c_ptr), intent(inout), optional :: address
      integer(c_int) :: answer
    end function
    function filch_multicast_unmap(multicast) bind(c) result(answer)
      import
      type(c_ptr), value :: multicast
      integer(c_int) :: answer
    end function
    function filch_multicast_destroy(multicast) bind(c) result(answer)
      import
      type(c_ptr), value :: multicast
      integer(c_int) :: answer
    end function
  end interface
end module
