! SPDX-License-Identifier: Apache-2.0
! filch for Fortran: runtimes, codelets, data, graphs and jobs as types, over the C interface, which
! the module filch_c declares and this module has, too.
!
! Numbers of tiles, of accesses and of devices begin with 1. Every procedure that can fail has an
! optional argument error: it receives what failed, or FILCH_OK. Without it a failure ends the
! program by ERROR STOP with filch's text, as a failing ALLOCATE does without STAT.
!
! Thread safety is that of the C functions. Objects are handles, to be copied freely; they end with
! destroy() or release(), or with their runtime.
module filch
  use filch_c
  use filch_arrays
  implicit none
  public
  private :: settle, refuse, text_of, c_text, at_least_one, batch_desc, wrong_access, wrong_memory
  private :: wrong_csr, fill_csr, is_negative, fill_task, fill_cuts
  integer(c_int32_t), parameter, private :: NO_TILES = -2 ! rows or cols of a block, below 1

  ! A failure: status (FILCH_OK: none), the own code of the task, the driver or the system, a
  ! sentence, and the names of the task, codelet or handle, and of the device concerned.
  type :: filch_failure_t
    integer(c_int) :: status = FILCH_OK
    integer(c_int32_t) :: code = 0
    character(:), allocatable :: text, label, device
  end type

  type :: filch_runtime_t
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: create => runtime_create
    procedure :: drain => runtime_drain
    procedure :: destroy => runtime_destroy
    procedure :: abort => runtime_abort
    procedure :: device_count => runtime_device_count
    procedure :: device => runtime_device
    procedure :: refused_count => runtime_refused_count
    procedure :: refused => runtime_refused
    procedure :: memory => runtime_memory
    procedure :: trim => runtime_trim
    procedure :: withdraw => runtime_withdraw
    procedure :: readmit => runtime_readmit
    procedure :: presence => runtime_presence
    procedure :: link => runtime_link
    procedure :: measure_links => runtime_measure_links
    procedure :: usage => runtime_usage
    procedure :: speeds => runtime_speeds
    procedure :: save_speeds => runtime_save_speeds
    procedure :: run_batch => runtime_run_batch
    procedure :: submit_batch => runtime_submit_batch
    procedure :: poll => runtime_poll
    procedure :: poll_wait => runtime_poll_wait
    procedure :: trace_start => runtime_trace_start
    procedure :: trace_stop => runtime_trace_stop
    procedure :: trace_write => runtime_trace_write
    procedure :: report_write => runtime_report_write
  end type

  type :: filch_codelet_t
    type(c_ptr) :: handle = c_null_ptr
    type(c_ptr) :: runtime = c_null_ptr
  contains
    procedure :: create => codelet_create
    procedure :: create_builtin => codelet_create_builtin
    procedure :: speed => codelet_speed
  end type

  type :: filch_data_t
    type(c_ptr) :: handle = c_null_ptr
    type(c_ptr) :: runtime = c_null_ptr
    integer :: tile_rows = 0 ! rows of tiles
    integer :: tile_cols = 0 ! columns of tiles
  contains
    procedure :: create => data_create
    procedure :: create_csr => data_create_csr
    procedure :: create_partition => data_create_partition
    procedure :: row_block => data_row_block
    procedure :: reduction => data_reduction
    procedure :: acquire => data_acquire
    procedure :: release => data_release
    procedure :: acquire_tiles => data_acquire_tiles
    procedure :: view => data_view
    procedure :: broadcast => data_broadcast
    procedure :: destroy => data_destroy
  end type

  ! Tiles that the host may touch, by data%acquire_tiles().
  type :: filch_hold_t
    type(c_ptr) :: handle = c_null_ptr
    type(c_ptr) :: runtime = c_null_ptr
  contains
    procedure :: release => hold_release
  end type

  ! A task for graph%add_many(), made by filch_task_of().
  type :: filch_task_t
    type(filch_task_desc) :: desc
    type(filch_access), allocatable :: accesses(:)
  end type

  ! A task that ends after its function has returned; a value, to be copied freely.
  type :: filch_pending_t
    type(filch_pending) :: handle
  contains
    procedure :: take => pending_take
    procedure :: end => pending_end
    procedure :: status => pending_status
  end type

  type :: filch_graph_t
    type(c_ptr) :: handle = c_null_ptr
    type(c_ptr) :: runtime = c_null_ptr
  contains
    procedure :: create => graph_create
    procedure :: add => graph_add
    procedure :: add_many => graph_add_many
    procedure :: edge => graph_edge
    procedure :: read_only => graph_read_only
    procedure :: partition => graph_partition
    procedure :: unpartition => graph_unpartition
    procedure :: seal => graph_seal
    procedure :: run => graph_run
    procedure :: submit => graph_submit
    procedure :: repeat => graph_repeat
    procedure :: discard => graph_discard
    procedure :: write_dot => graph_write_dot
    procedure :: wait_below => graph_wait_below
    procedure :: close => graph_close
    procedure :: destroy => graph_destroy
  end type

  type :: filch_job_t
    type(c_ptr) :: handle = c_null_ptr
    type(c_ptr) :: runtime = c_null_ptr
  contains
    procedure :: wait => job_wait
    procedure :: status => job_status
    procedure :: cancel => job_cancel
    procedure :: info => job_info
    procedure :: items => job_items
    procedure :: resume => job_resume
    procedure :: report => job_report
    procedure :: report_text => job_report_text
    procedure :: release => job_release
  end type

contains

  ! --- Failures ---

  ! A text of C's.
  recursive function text_of(from) result(text)
    character(kind=c_char), intent(in) :: from(:)
    character(:), allocatable :: text
    integer :: i, length
    length = 0
    do while (length < size(from))
      if (from(length + 1) == c_null_char) exit
      length = length + 1
    end do
    allocate (character(length) :: text)
    do i = 1, length
      text(i:i) = from(i)
    end do
  end function

  ! A text of C's, of unknown length.
  recursive function c_text(from) result(text)
    type(c_ptr), intent(in) :: from
    character(:), allocatable :: text
    character(kind=c_char), pointer :: all(:)
    call c_f_pointer(from, all, [256])
    text = text_of(all)
  end function

  ! Tells a status: to the caller, or with the end of the program. details are those of the runtime
  ! where the caller has none.
  recursive subroutine settle(status, runtime, error, details)
    integer(c_int), intent(in) :: status
    type(c_ptr), intent(in) :: runtime
    type(filch_failure_t), intent(out), optional :: error
    type(filch_error), intent(in), optional :: details
    type(filch_error) :: record
    type(filch_failure_t) :: made
    if (status == FILCH_OK) return
    if (present(details)) then
      record = details
    else if (c_associated(runtime)) then
      if (filch_runtime_error(runtime, record) /= FILCH_OK) record = filch_error()
      if (record%status /= status) record = filch_error()
    end if
    made%status = status
    made%code = record%native_code
    made%text = text_of(record%text)
    if (made%text == '') made%text = c_text(filch_status_message(status))
    made%label = text_of(record%label)
    made%device = text_of(record%device)
    if (.not. present(error)) &
      error stop 'filch: '//c_text(filch_status_name(status))//': '//made%text
    error = made
  end subroutine

  ! Refuses a call that the C interface has not seen.
  recursive subroutine refuse(text, error)
    character(*), intent(in) :: text
    type(filch_failure_t), intent(out), optional :: error
    if (.not. present(error)) error stop 'filch: INVALID_ARGUMENT: '//text
    error = filch_failure_t(FILCH_INVALID_ARGUMENT, 0, text, '', '')
  end subroutine

  ! Fails the running task, with a code of the caller's, not 0, and a reason. A task's function ends
  ! with: code = filch_fail(task, 3, 'a negative number')
  recursive function filch_fail(task, code, text) result(failed)
    type(filch_call), intent(in) :: task
    integer, intent(in) :: code
    character(*), intent(in) :: text
    integer(c_int) :: failed
    failed = filch_call_set_text(task, text//c_null_char)
    failed = code
  end function

  ! Ends the rest of the running function's job as success; what has not begun is skipped.
  recursive subroutine filch_finish(task, error)
    type(filch_call), intent(in) :: task
    type(filch_failure_t), intent(out), optional :: error
    call settle(filch_call_finish(task), task%runtime, error)
  end subroutine

  ! --- Pending tasks ---

  ! Takes the running task, whose function then returns FILCH_PENDING_VALUE, and whose codelet has
  ! flags=int(FILCH_CODELET_MAY_PEND).
  recursive subroutine pending_take(this, task, error)
    class(filch_pending_t), intent(inout) :: this
    type(filch_call), intent(in) :: task
    type(filch_failure_t), intent(out), optional :: error
    call settle(filch_call_pend(task, this%handle), task%runtime, error)
  end subroutine

  ! Ends the task, from any thread: as success, or as failed with a code that is not 0 and a reason.
  ! FILCH_INVALID_HANDLE: it has ended already.
  recursive subroutine pending_end(this, code, text, error)
    class(filch_pending_t), intent(in) :: this
    integer, intent(in), optional :: code
    character(*), intent(in), optional :: text
    type(filch_failure_t), intent(out), optional :: error
    integer(c_int) :: given, status
    given = 0
    if (present(code)) given = code
    if (present(text)) then
      status = filch_pending_end(this%handle, given, text//c_null_char)
    else
      status = filch_pending_end(this%handle, given)
    end if
    call settle(status, c_null_ptr, error)
  end subroutine

  ! FILCH_NOT_READY; FILCH_CANCELLED: the job was cancelled or finished early, and waits for the
  ! end; FILCH_INVALID_HANDLE: the task has ended.
  recursive function pending_status(this) result(status)
    class(filch_pending_t), intent(in) :: this
    integer(c_int) :: status
    status = filch_pending_status(this%handle)
  end function

  ! --- Runtimes ---

  ! Makes a runtime. devices is a specification such as 'host:2' or 'cuda,host'; config has all
  ! else, as filch_runtime_desc does in C.
  subroutine runtime_create(this, devices, config, error)
    class(filch_runtime_t), intent(inout) :: this
    character(*), intent(in), optional :: devices
    type(filch_runtime_desc), intent(in), optional :: config
    type(filch_failure_t), intent(out), optional :: error
    type(filch_runtime_desc) :: desc
    type(filch_error) :: details
    character(:), allocatable, target :: text
    if (present(config)) desc = config
    if (present(devices)) then
      text = devices//c_null_char
      desc%devices = c_loc(text)
    end if
    call settle(filch_runtime_create(desc, details, this%handle), c_null_ptr, error, details)
  end subroutine

  ! Waits until no job runs, or so many seconds; FILCH_TIMEOUT.
  subroutine runtime_drain(this, seconds, error)
    class(filch_runtime_t), intent(in) :: this
    real(c_double), intent(in), optional :: seconds
    type(filch_failure_t), intent(out), optional :: error
    real(c_double) :: limit
    limit = -1
    if (present(seconds)) limit = seconds
    call settle(filch_runtime_drain(this%handle, limit), this%handle, error)
  end subroutine

  ! Ends an idle runtime and all that was made from it.
  subroutine runtime_destroy(this, error)
    class(filch_runtime_t), intent(inout) :: this
    type(filch_failure_t), intent(out), optional :: error
    integer(c_int) :: status
    status = filch_runtime_destroy(this%handle)
    call settle(status, this%handle, error)
    if (status == FILCH_OK) this%handle = c_null_ptr
  end subroutine

  ! Cancels all jobs, and ends the runtime.
  subroutine runtime_abort(this, error)
    class(filch_runtime_t), intent(inout) :: this
    type(filch_failure_t), intent(out), optional :: error
    integer(c_int) :: status
    status = filch_runtime_abort(this%handle)
    call settle(status, this%handle, error)
    if (status == FILCH_OK) this%handle = c_null_ptr
  end subroutine

  function runtime_device_count(this) result(count)
    class(filch_runtime_t), intent(in) :: this
    integer :: count
    count = filch_device_count(this%handle)
  end function

  ! Describes a device, from 1.
  subroutine runtime_device(this, number, info, error)
    class(filch_runtime_t), intent(in) :: this
    integer, intent(in) :: number
    type(filch_device_info), intent(out) :: info
    type(filch_failure_t), intent(out), optional :: error
    call settle(filch_device_at(this%handle, number - 1, info), this%handle, error)
  end subroutine

  ! Number of devices that were left out as unusable.
  function runtime_refused_count(this) result(count)
    class(filch_runtime_t), intent(in) :: this
    integer :: count
    count = filch_device_refused_count(this%handle)
  end function

  ! Describes a device that was left out, from 1.
  subroutine runtime_refused(this, number, refusal, error)
    class(filch_runtime_t), intent(in) :: this
    integer, intent(in) :: number
    type(filch_device_refusal), intent(out) :: refusal
    type(filch_failure_t), intent(out), optional :: error
    call settle(filch_device_refused_at(this%handle, number - 1, refusal), this%handle, error)
  end subroutine

  ! What filch holds of the memory of a device, from 1.
  subroutine runtime_memory(this, device, stats, error)
    class(filch_runtime_t), intent(in) :: this
    integer, intent(in) :: device
    type(filch_memory_stats), intent(out) :: stats
    type(filch_failure_t), intent(out), optional :: error
    call settle(filch_device_memory(this%handle, device - 1, stats), this%handle, error)
  end subroutine

  ! Hands unused memory back to a device, from 1, but for so many bytes, 0 unless given.
  subroutine runtime_trim(this, device, keep, error)
    class(filch_runtime_t), intent(in) :: this
    integer, intent(in) :: device
    integer(c_int64_t), intent(in), optional :: keep
    type(filch_failure_t), intent(out), optional :: error
    integer(c_int64_t) :: bytes
    bytes = 0
    if (present(keep)) bytes = keep
    if (bytes < 0) then
      call refuse('keep is negative', error)
      return
    end if
    call settle(filch_device_trim(this%handle, device - 1, bytes), this%handle, error)
  end subroutine

  ! Asks a device, from 1, to begin no more work, until readmit().
  subroutine runtime_withdraw(this, device, error)
    class(filch_runtime_t), intent(in) :: this
    integer, intent(in) :: device
    type(filch_failure_t), intent(out), optional :: error
    call settle(filch_device_withdraw(this%handle, device - 1), this%handle, error)
  end subroutine

  ! Brings a withdrawn device back.
  subroutine runtime_readmit(this, device, error)
    class(filch_runtime_t), intent(in) :: this
    integer, intent(in) :: device
    type(filch_failure_t), intent(out), optional :: error
    call settle(filch_device_readmit(this%handle, device - 1), this%handle, error)
  end subroutine

  ! Whether a device, from 1, takes part: FILCH_PRESENCE_THERE and so on.
  subroutine runtime_presence(this, device, presence, error)
    class(filch_runtime_t), intent(in) :: this
    integer, intent(in) :: device
    integer(c_int), intent(out) :: presence
    type(filch_failure_t), intent(out), optional :: error
    presence = FILCH_PRESENCE_THERE
    call settle(filch_device_presence(this%handle, device - 1, presence), this%handle, error)
  end subroutine

  ! Describes the link from a device's memory to another's; devices from 1, 0: the host's memory.
  subroutine runtime_link(this, from, to, link, error)
    class(filch_runtime_t), intent(in) :: this
    integer, intent(in) :: from, to
    type(filch_link), intent(out) :: link
    type(filch_failure_t), intent(out), optional :: error
    integer(c_int32_t) :: ends(2)
    ends = [from, to] - 1
    where (ends == -1) ends = FILCH_LINK_HOST
    call settle(filch_device_link(this%handle, ends(1), ends(2), link), this%handle, error)
  end subroutine

  ! Measures the bandwidth between every two memories, by copies.
  subroutine runtime_measure_links(this, error)
    class(filch_runtime_t), intent(in) :: this
    type(filch_failure_t), intent(out), optional :: error
    call settle(filch_device_measure_links(this%handle), this%handle, error)
  end subroutine

  ! Saves the speeds measured so far in the file of speeds, as the end of the runtime does.
  subroutine runtime_save_speeds(this, error)
    class(filch_runtime_t), intent(in) :: this
    type(filch_failure_t), intent(out), optional :: error
    call settle(filch_runtime_save_speeds(this%handle), this%handle, error)
  end subroutine

  ! What the runtime holds.
  subroutine runtime_usage(this, usage, error)
    class(filch_runtime_t), intent(in) :: this
    type(filch_usage), intent(out) :: usage
    type(filch_failure_t), intent(out), optional :: error
    call settle(filch_runtime_usage(this%handle, usage), this%handle, error)
  end subroutine

  ! The state of the file of speeds.
  subroutine runtime_speeds(this, speeds, error)
    class(filch_runtime_t), intent(in) :: this
    type(filch_speeds), intent(out) :: speeds
    type(filch_failure_t), intent(out), optional :: error
    call settle(filch_runtime_speeds(this%handle, speeds), this%handle, error)
  end subroutine

  ! Runs the workers of a runtime whose config has drive=FILCH_DRIVE_POLL: for so many seconds, a
  ! round over the workers unless given; negative: until nothing can be done now. worked: a further
  ! call may find more.
  recursive subroutine runtime_poll(this, seconds, worked, error)
    class(filch_runtime_t), intent(in) :: this
    real(c_double), intent(in), optional :: seconds
    logical, intent(out), optional :: worked
    type(filch_failure_t), intent(out), optional :: error
    logical(c_bool) :: any_work
    real(c_double) :: limit
    limit = 0
    if (present(seconds)) limit = seconds
    any_work = .false.
    call settle(filch_runtime_poll(this%handle, limit, any_work), this%handle, error)
    if (present(worked)) worked = any_work
  end subroutine

  ! Waits in such a runtime until some work can be done, and does a round of it; also until the job
  ! is complete, or so many seconds; FILCH_TIMEOUT.
  recursive subroutine runtime_poll_wait(this, seconds, job, worked, error)
    class(filch_runtime_t), intent(in) :: this
    real(c_double), intent(in), optional :: seconds
    type(filch_job_t), intent(in), optional :: job
    logical, intent(out), optional :: worked
    type(filch_failure_t), intent(out), optional :: error
    logical(c_bool) :: any_work
    real(c_double) :: limit
    type(c_ptr) :: until
    limit = -1
    if (present(seconds)) limit = seconds
    until = c_null_ptr
    if (present(job)) until = job%handle
    any_work = .false.
    if (present(job) .and. .not. c_associated(until)) then
      call refuse('the job is released', error)
      return
    end if
    call settle(filch_runtime_poll_wait(this%handle, until, limit, any_work), this%handle, error)
    if (present(worked)) worked = any_work
  end subroutine

  ! Starts recording a trace.
  subroutine runtime_trace_start(this, error)
    class(filch_runtime_t), intent(in) :: this
    type(filch_failure_t), intent(out), optional :: error
    call settle(filch_trace_start(this%handle), this%handle, error)
  end subroutine

  ! Stops recording; what was recorded stays, and a later start appends.
  subroutine runtime_trace_stop(this, error)
    class(filch_runtime_t), intent(in) :: this
    type(filch_failure_t), intent(out), optional :: error
    call settle(filch_trace_stop(this%handle), this%handle, error)
  end subroutine

  ! Writes what was recorded, as JSON for Perfetto.
  subroutine runtime_trace_write(this, path, error)
    class(filch_runtime_t), intent(in) :: this
    character(*), intent(in) :: path
    type(filch_failure_t), intent(out), optional :: error
    call settle(filch_trace_write(this%handle, path//c_null_char), this%handle, error)
  end subroutine

  ! Writes a report of what was recorded, one HTML file for a browser.
  subroutine runtime_report_write(this, path, error)
    class(filch_runtime_t), intent(in) :: this
    character(*), intent(in) :: path
    type(filch_failure_t), intent(out), optional :: error
    call settle(filch_report_write(this%handle, path//c_null_char), this%handle, error)
  end subroutine

  ! Runs a batch to its end: the codelet's function for parts of the items 0 to n - 1, from task%lo
  ! to task%hi - 1. accesses are made by filch_items().
  subroutine runtime_run_batch(this, codelet, n, accesses, args, grain, error)
    class(filch_runtime_t), intent(in) :: this
    type(filch_codelet_t), intent(in) :: codelet
    integer(c_int64_t), intent(in) :: n
    type(filch_batch_access), intent(in) :: accesses(:)
    type(c_ptr), intent(in), optional :: args
    integer(c_int64_t), intent(in), optional :: grain
    type(filch_failure_t), intent(out), optional :: error
    type(filch_error) :: details
    type(filch_batch_desc) :: desc
    type(filch_batch_access), target :: list(size(accesses))
    integer(c_int) :: status
    list = accesses
    call batch_desc(desc, codelet, n, list, args, grain)
    status = filch_batch_run(this%handle, desc, error=details)
    call settle(status, this%handle, error, details)
  end subroutine

  ! Starts a batch. To be followed by job%wait() and job%release().
  subroutine runtime_submit_batch(this, job, codelet, n, accesses, args, grain, error)
    class(filch_runtime_t), intent(in) :: this
    type(filch_job_t), intent(inout) :: job
    type(filch_codelet_t), intent(in) :: codelet
    integer(c_int64_t), intent(in) :: n
    type(filch_batch_access), intent(in) :: accesses(:)
    type(c_ptr), intent(in), optional :: args
    integer(c_int64_t), intent(in), optional :: grain
    type(filch_failure_t), intent(out), optional :: error
    type(filch_batch_desc) :: desc
    type(filch_batch_access), target :: list(size(accesses))
    list = accesses
    call batch_desc(desc, codelet, n, list, args, grain)
    job%runtime = this%handle
    call settle(filch_batch_submit(this%handle, desc, job=job%handle), this%handle, error)
  end subroutine

  subroutine batch_desc(desc, codelet, n, accesses, args, grain)
    type(filch_batch_desc), intent(inout) :: desc
    type(filch_codelet_t), intent(in) :: codelet
    integer(c_int64_t), intent(in) :: n
    type(filch_batch_access), intent(in), target :: accesses(:)
    type(c_ptr), intent(in), optional :: args
    integer(c_int64_t), intent(in), optional :: grain
    desc%codelet = codelet%handle
    desc%n = n
    desc%access_count = size(accesses)
    if (size(accesses) > 0) desc%accesses = c_loc(accesses)
    if (present(args)) desc%args = args
    if (present(grain)) desc%grain = grain
  end subroutine

  ! --- Codelets ---

  ! Makes a codelet of a function with the interface filch_host_fn, a CUDA implementation, or both.
  ! args_size: bytes of the arguments by value. work: units of work of a call. open and close make
  ! and release the state of each device that runs host functions, task%state: open now, close at
  ! the end of the runtime. user: task%user, which both get, too.
  subroutine codelet_create(this, runtime, name, host, args_size, work, cuda, flags, open, close, &
                            user, error)
    class(filch_codelet_t), intent(inout) :: this
    type(filch_runtime_t), intent(in) :: runtime
    character(*), intent(in) :: name
    procedure(filch_host_fn), optional :: host
    integer(c_size_t), intent(in), optional :: args_size
    procedure(filch_work_fn), optional :: work
    type(filch_cuda_desc), intent(in), target, optional :: cuda
    integer, intent(in), optional :: flags
    procedure(filch_host_open_fn), optional :: open
    procedure(filch_host_close_fn), optional :: close
    type(c_ptr), intent(in), optional :: user
    type(filch_failure_t), intent(out), optional :: error
    type(filch_codelet_desc) :: desc
    character(:), allocatable, target :: text
    text = name//c_null_char
    desc%name = c_loc(text)
    if (present(host)) desc%host = c_funloc(host)
    if (present(args_size)) desc%arg_size = int(args_size, c_int32_t)
    if (present(work)) desc%work = c_funloc(work)
    if (present(cuda)) desc%cuda = c_loc(cuda)
    if (present(flags)) desc%flags = flags
    if (present(open)) desc%open = c_funloc(open)
    if (present(close)) desc%close = c_funloc(close)
    if (present(user)) desc%user = user
    this%runtime = runtime%handle
    call settle(filch_codelet_create(runtime%handle, desc, this%handle), runtime%handle, error)
  end subroutine

  ! The measured speed of the codelet on a device, from 1.
  subroutine codelet_speed(this, device, speed, error)
    class(filch_codelet_t), intent(in) :: this
    integer, intent(in) :: device
    type(filch_speed), intent(out) :: speed
    type(filch_failure_t), intent(out), optional :: error
    call settle(filch_codelet_speed(this%handle, int(device - 1, c_int32_t), speed), &
                this%runtime, error)
  end subroutine

  ! Makes a codelet of one of filch's own kernels, e.g. 'gemm_f64'.
  subroutine codelet_create_builtin(this, runtime, name, error)
    class(filch_codelet_t), intent(inout) :: this
    type(filch_runtime_t), intent(in) :: runtime
    character(*), intent(in) :: name
    type(filch_failure_t), intent(out), optional :: error
    this%runtime = runtime%handle
    call settle(filch_codelet_create_builtin(runtime%handle, name//c_null_char, this%handle), &
                runtime%handle, error)
  end subroutine

  ! --- Data ---

  ! Makes a handle: x%create(runtime, filch_array(a), tile_rows=100). The array is not copied; it is
  ! a target, and lives as long as the handle. flags: FILCH_DATA_MANAGED and so on. A handle without
  ! an array, as with FILCH_DATA_TEMPORARY, is of filch_memory(c_null_ptr, element, rows, cols).
  subroutine data_create(this, runtime, memory, tile_rows, tile_cols, flags, label, device, error)
    class(filch_data_t), intent(inout) :: this
    type(filch_runtime_t), intent(in) :: runtime
    type(filch_memory_t), intent(in) :: memory
    integer, intent(in), optional :: tile_rows, tile_cols, flags, device
    character(*), intent(in), optional :: label
    type(filch_failure_t), intent(out), optional :: error
    type(filch_data_desc) :: desc
    type(filch_tiling) :: tiling
    character(:), allocatable, target :: text
    integer(c_int) :: status
    text = wrong_memory(memory, tile_rows, tile_cols)
    if (text /= '') then
      call refuse(text, error)
      return
    end if
    desc%ptr = memory%ptr
    desc%element = memory%element
    desc%rows = memory%rows
    desc%cols = memory%cols
    desc%ld = memory%ld
    if (present(tile_rows)) desc%tile_rows = tile_rows
    if (present(tile_cols)) desc%tile_cols = tile_cols
    if (present(flags)) desc%flags = flags
    if (present(device)) desc%device = device - 1
    if (present(label)) then
      text = label//c_null_char
      desc%label = c_loc(text)
    end if
    status = filch_data_create(runtime%handle, desc, this%handle)
    call settle(status, runtime%handle, error)
    if (status /= FILCH_OK) return
    status = filch_data_tiles(this%handle, tiling)
    this%runtime = runtime%handle
    this%tile_rows = int(tiling%rows)
    this%tile_cols = int(tiling%cols)
  end subroutine

  ! What is wrong with an array or its tiles, and would be a huge number for C; empty: nothing.
  function wrong_memory(memory, tile_rows, tile_cols) result(text)
    type(filch_memory_t), intent(in) :: memory
    integer, intent(in), optional :: tile_rows, tile_cols
    character(:), allocatable :: text
    text = ''
    if (present(tile_rows)) then
      if (tile_rows < 0) text = 'tile_rows is negative'
    end if
    if (present(tile_cols)) then
      if (tile_cols < 0) text = 'tile_cols is negative'
    end if
    if (.not. memory%is_regular) text = 'the elements of a column of the array are not contiguous'
    if (memory%rows < 0 .or. memory%cols < 0) text = 'the number of rows or columns is negative'
    if (memory%ld < 0) text = 'the leading dimension is negative'
  end function

  ! Makes a handle of a sparse matrix in compressed rows, whose arrays are checked and copied:
  ! pointers of rows + 1 integers, columns, and as many values. base: what they count from, 1 unless
  ! given. Cut into blocks of tile_rows rows, of the heights row_cuts, or into so many blocks of
  ! about equal numbers of entries; this%tile_rows is the number of blocks. Block i is tile i.
  subroutine data_create_csr(this, runtime, pointers, columns, values, cols, base, tile_rows, &
                             row_cuts, blocks, flags, label, error)
    class(filch_data_t), intent(inout) :: this
    type(filch_runtime_t), intent(in) :: runtime
    type(filch_memory_t), intent(in) :: pointers, columns, values
    integer, intent(in) :: cols
    integer, intent(in), optional :: base, tile_rows, blocks, flags
    integer(c_int64_t), intent(in), optional :: row_cuts(:)
    character(*), intent(in), optional :: label
    type(filch_failure_t), intent(out), optional :: error
    type(filch_csr_desc) :: desc
    type(filch_tiling) :: tiling
    integer(c_int64_t), allocatable, target :: heights(:)
    character(:), allocatable, target :: text
    integer(c_int) :: status
    text = wrong_csr(pointers, columns, values, cols, tile_rows, blocks)
    if (text /= '') then
      call refuse(text, error)
      return
    end if
    call fill_csr(desc, pointers, columns, values)
    desc%cols = cols
    desc%base = 1
    if (present(base)) desc%base = base
    if (present(tile_rows)) desc%tile_rows = tile_rows
    if (present(blocks)) desc%blocks = blocks
    if (present(flags)) desc%flags = flags
    if (present(row_cuts)) then
      heights = row_cuts
      desc%row_cuts = c_loc(heights)
      desc%row_cut_count = size(heights)
    end if
    if (present(label)) then
      text = label//c_null_char
      desc%label = c_loc(text)
    end if
    status = filch_csr_create(runtime%handle, desc, this%handle)
    call settle(status, runtime%handle, error)
    if (status /= FILCH_OK) return
    status = filch_data_tiles(this%handle, tiling)
    this%runtime = runtime%handle
    this%tile_rows = int(tiling%rows)
    this%tile_cols = 1
  end subroutine

  ! The arrays of a description.
  subroutine fill_csr(desc, pointers, columns, values)
    type(filch_csr_desc), intent(inout) :: desc
    type(filch_memory_t), intent(in) :: pointers, columns, values
    desc%rows = pointers%rows - 1
    desc%nnz = columns%rows
    desc%pointers = pointers%ptr
    desc%columns = columns%ptr
    desc%pointer_bytes = int(pointers%element, c_int32_t)
    desc%column_bytes = int(columns%element, c_int32_t)
    desc%element = values%element
    desc%values = values%ptr
  end subroutine

  ! What is wrong with the arrays or the numbers of a sparse matrix; empty: nothing that C does not
  ! find.
  function wrong_csr(pointers, columns, values, cols, tile_rows, blocks) result(text)
    type(filch_memory_t), intent(in) :: pointers, columns, values
    integer, intent(in) :: cols
    integer, intent(in), optional :: tile_rows, blocks
    character(:), allocatable :: text
    character(120) :: line
    text = ''
    if (present(tile_rows)) then
      if (tile_rows < 0) text = 'tile_rows is negative'
    end if
    if (present(blocks)) then
      if (blocks < 0) text = 'blocks is negative'
    end if
    if (cols < 0) text = 'cols is negative'
    if (.not. (pointers%is_regular .and. columns%is_regular .and. values%is_regular)) &
      text = 'the elements of an array of the matrix are not contiguous'
    if (pointers%cols /= 1 .or. columns%cols /= 1 .or. values%cols /= 1) &
      text = 'an array of the matrix has more than one column'
    if (pointers%rows < 1) text = 'there are no pointers: rows + 1 are needed'
    if (columns%rows /= values%rows) then
      write (line, '(2(a,i0))') 'columns: ', columns%rows, ', values: ', values%rows
      text = trim(line)
    end if
  end function

  ! Makes a handle that cuts the array of another, whole, into other tiles, for graph%partition().
  subroutine data_create_partition(this, parent, tile_rows, tile_cols, row_cuts, col_cuts, label, &
                                   error)
    class(filch_data_t), intent(inout) :: this
    type(filch_data_t), intent(in) :: parent
    integer, intent(in), optional :: tile_rows, tile_cols
    integer(c_int64_t), intent(in), optional :: row_cuts(:), col_cuts(:)
    character(*), intent(in), optional :: label
    type(filch_failure_t), intent(out), optional :: error
    type(filch_data_desc) :: desc
    type(filch_tiling) :: tiling
    integer(c_int64_t), allocatable, target :: heights(:), widths(:)
    character(:), allocatable, target :: text
    integer(c_int) :: status
    text = wrong_memory(filch_memory_t(), tile_rows, tile_cols)
    if (text /= '') then
      call refuse(text, error)
      return
    end if
    if (present(tile_rows)) desc%tile_rows = tile_rows
    if (present(tile_cols)) desc%tile_cols = tile_cols
    call fill_cuts(row_cuts, heights, desc%row_cuts, desc%row_cut_count)
    call fill_cuts(col_cuts, widths, desc%col_cuts, desc%col_cut_count)
    if (present(label)) then
      text = label//c_null_char
      desc%label = c_loc(text)
    end if
    status = filch_data_partition(parent%handle, desc, this%handle)
    call settle(status, parent%runtime, error)
    if (status /= FILCH_OK) return
    status = filch_data_tiles(this%handle, tiling)
    this%runtime = parent%runtime
    this%tile_rows = int(tiling%rows)
    this%tile_cols = int(tiling%cols)
  end subroutine

  ! Sizes of tiles as members of a description, which point to a copy.
  subroutine fill_cuts(cuts, copy, at, count)
    integer(c_int64_t), intent(in), optional :: cuts(:)
    integer(c_int64_t), allocatable, target, intent(inout) :: copy(:)
    type(c_ptr), intent(inout) :: at
    integer(c_int32_t), intent(inout) :: count
    if (.not. present(cuts)) return
    copy = cuts
    at = c_loc(copy)
    count = size(copy)
  end subroutine

  ! Describes row block i, from 1, of a sparse matrix. Members count as in C: block%row rows and
  ! block%entry entries are in front of it; columns block%column_lo + 1 to block%column_hi are used,
  ! and of a vector cut as the rows tiles block%block_lo + 1 to block%block_hi.
  subroutine data_row_block(this, i, block, error)
    class(filch_data_t), intent(in) :: this
    integer, intent(in) :: i
    type(filch_csr_block), intent(out) :: block
    type(filch_failure_t), intent(out), optional :: error
    call settle(filch_csr_at(this%handle, int(i - 1, c_int32_t), block), this%runtime, error)
  end subroutine

  ! Defines the addition of FILCH_REDUCE accesses, by codelets without arguments.
  subroutine data_reduction(this, init, combine, error)
    class(filch_data_t), intent(in) :: this
    type(filch_codelet_t), intent(in) :: init, combine
    type(filch_failure_t), intent(out), optional :: error
    call settle(filch_data_reduction(this%handle, init%handle, combine%handle), this%runtime, error)
  end subroutine

  ! Lets the host touch a managed handle's array; to be followed by release().
  subroutine data_acquire(this, mode, error)
    class(filch_data_t), intent(in) :: this
    integer(c_int), intent(in) :: mode
    type(filch_failure_t), intent(out), optional :: error
    call settle(filch_data_acquire(this%handle, mode), this%runtime, error)
  end subroutine

  subroutine data_release(this, error)
    class(filch_data_t), intent(in) :: this
    type(filch_failure_t), intent(out), optional :: error
    call settle(filch_data_release(this%handle), this%runtime, error)
  end subroutine

  ! Lets the host touch rows x cols tiles from the tile (row, col) on, behind the jobs so far;
  ! without rows or cols all tiles from there on. Waits so many seconds at most; FILCH_BUSY or
  ! FILCH_TIMEOUT. To be followed by hold%release().
  subroutine data_acquire_tiles(this, hold, mode, row, col, rows, cols, seconds, error)
    class(filch_data_t), intent(in) :: this
    type(filch_hold_t), intent(inout) :: hold
    integer(c_int), intent(in) :: mode
    integer, intent(in), optional :: row, col, rows, cols
    real(c_double), intent(in), optional :: seconds
    type(filch_failure_t), intent(out), optional :: error
    type(filch_tiles) :: tiles
    type(filch_access) :: block
    character(:), allocatable :: wrong
    real(c_double) :: limit
    block = filch_block(this, mode, row, col, rows, cols)
    wrong = wrong_access([block])
    if (wrong /= '') wrong = wrong(index(wrong, ':') + 2:) ! without the number of the access
    if (c_associated(hold%handle)) wrong = 'the hold has tiles already'
    if (wrong /= '') then
      call refuse(wrong, error)
      return
    end if
    tiles%row0 = block%row
    tiles%col0 = block%col
    if (present(rows)) tiles%row1 = block%row + rows
    if (present(cols)) tiles%col1 = block%col + cols
    limit = -1
    if (present(seconds)) limit = seconds
    hold%runtime = this%runtime
    call settle(filch_data_acquire_tiles(this%handle, tiles, mode, limit, hold%handle), &
                this%runtime, error)
  end subroutine

  ! Ends the host's use of the tiles.
  subroutine hold_release(this, error)
    class(filch_hold_t), intent(inout) :: this
    type(filch_failure_t), intent(out), optional :: error
    integer(c_int) :: status
    status = filch_hold_release(this%handle)
    call settle(status, this%runtime, error)
    if (status /= FILCH_INVALID_HANDLE) this%handle = c_null_ptr ! released all the same
  end subroutine

  ! Describes where the tile (row, col), from 1, is in the host's memory: view%ptr and so on.
  subroutine data_view(this, row, col, view, error)
    class(filch_data_t), intent(in) :: this
    integer, intent(in) :: row, col
    type(filch_view), intent(out) :: view
    type(filch_failure_t), intent(out), optional :: error
    call settle(filch_data_view(this%handle, int(row - 1, c_int32_t), int(col - 1, c_int32_t), &
                                view), this%runtime, error)
  end subroutine

  ! Sends a managed handle to devices, numbers from 1; to every one unless given. To be followed by
  ! job%wait() and job%release().
  subroutine data_broadcast(this, job, devices, error)
    class(filch_data_t), intent(in) :: this
    type(filch_job_t), intent(inout) :: job
    integer, intent(in), optional :: devices(:)
    type(filch_failure_t), intent(out), optional :: error
    type(filch_broadcast_desc) :: desc
    integer(c_int32_t), allocatable, target :: indices(:)
    if (present(devices)) then
      indices = devices - 1
      if (size(indices) == 0) then
        call refuse('a broadcast to no device', error)
        return
      end if
      desc%devices = c_loc(indices)
      desc%device_count = size(indices)
    end if
    job%runtime = this%runtime
    call settle(filch_data_broadcast(this%handle, desc, job=job%handle), this%runtime, error)
  end subroutine

  ! Ends the handle; the array stays as it is.
  subroutine data_destroy(this, error)
    class(filch_data_t), intent(inout) :: this
    type(filch_failure_t), intent(out), optional :: error
    integer(c_int) :: status
    status = filch_data_destroy(this%handle)
    call settle(status, this%runtime, error)
    if (status == FILCH_OK) this%handle = c_null_ptr
  end subroutine

  ! --- Accesses ---

  pure function at_least_one(number) result(from_zero)
    integer, intent(in), optional :: number
    integer(c_int32_t) :: from_zero
    from_zero = 0
    if (present(number)) from_zero = number - 1
  end function

  ! An access in a mode, e.g. FILCH_COMMUTE, to the tile (row, col), from 1.
  pure function filch_tile(data, mode, row, col) result(access)
    type(filch_data_t), intent(in) :: data
    integer(c_int), intent(in) :: mode
    integer, intent(in), optional :: row, col
    type(filch_access) :: access
    access%data = data%handle
    access%row = at_least_one(row)
    access%col = at_least_one(col)
    access%mode = mode
  end function

  ! Reads the tile.
  pure function filch_r(data, row, col) result(access)
    type(filch_data_t), intent(in) :: data
    integer, intent(in), optional :: row, col
    type(filch_access) :: access
    access = filch_tile(data, FILCH_READ, row, col)
  end function

  ! Overwrites every element of the tile.
  pure function filch_w(data, row, col) result(access)
    type(filch_data_t), intent(in) :: data
    integer, intent(in), optional :: row, col
    type(filch_access) :: access
    access = filch_tile(data, FILCH_WRITE, row, col)
  end function

  ! Reads and writes the tile.
  pure function filch_rw(data, row, col) result(access)
    type(filch_data_t), intent(in) :: data
    integer, intent(in), optional :: row, col
    type(filch_access) :: access
    access = filch_tile(data, FILCH_READWRITE, row, col)
  end function

  ! An access in a mode to rows x cols tiles from the tile (row, col) on, which are one view. Without
  ! rows or cols all tiles from there on. graph%add refuses rows or cols below 1.
  pure function filch_block(data, mode, row, col, rows, cols) result(access)
    type(filch_data_t), intent(in) :: data
    integer(c_int), intent(in) :: mode
    integer, intent(in), optional :: row, col, rows, cols
    type(filch_access) :: access
    access = filch_tile(data, mode, row, col)
    access%rows = FILCH_TO_END
    access%cols = FILCH_TO_END
    if (present(rows)) access%rows = merge(rows, NO_TILES, rows > 0)
    if (present(cols)) access%cols = merge(cols, NO_TILES, cols > 0)
  end function

  ! Reads rows x cols tiles, 1 x 1 unless given, from the tile (row, col) on, with a halo around
  ! them, cut to the handle: they are one view, which begins with the halo. The halo is a target, and
  ! stays as it is until graph%add has returned, which refuses negative numbers. Null: no halo.
  function filch_r_halo(data, halo, row, col, rows, cols) result(access)
    type(filch_data_t), intent(in) :: data
    type(filch_halo), pointer, intent(in) :: halo
    integer, intent(in), optional :: row, col, rows, cols
    type(filch_access) :: access
    access = filch_tile(data, FILCH_READ, row, col)
    if (present(rows)) access%rows = merge(rows, NO_TILES, rows > 0)
    if (present(cols)) access%cols = merge(cols, NO_TILES, cols > 0)
    if (associated(halo)) access%halo = c_loc(halo)
  end function

  ! Whether a halo has a negative number, which would be a huge one for C; null: no halo.
  function is_negative(halo)
    type(c_ptr), intent(in) :: halo
    logical :: is_negative
    type(filch_halo), pointer :: at
    is_negative = .false.
    if (.not. c_associated(halo)) return
    call c_f_pointer(halo, at)
    is_negative = min(at%rows_before, at%rows_after, at%cols_before, at%cols_after) < 0
  end function

  ! What is wrong with the first access that names no tile or no halo, numbers counted from 1; empty:
  ! none.
  function wrong_access(list) result(text)
    type(filch_access), intent(in) :: list(:)
    character(:), allocatable :: text
    character(120) :: line
    integer :: k
    text = ''
    do k = 1, size(list)
      if (list(k)%mode == FILCH_SCRATCH) cycle
      if (list(k)%row < 0 .or. list(k)%col < 0) then
        write (line, '(3(a,i0),a)') 'accesses(', k, '): tile (', list(k)%row + 1, ', ', &
          list(k)%col + 1, '), but tiles are numbered from 1'
      else if (list(k)%rows == NO_TILES .or. list(k)%cols == NO_TILES) then
        write (line, '(a,i0,a)') 'accesses(', k, &
          '): a block has at least 1 row and 1 column of tiles'
      else if (is_negative(list(k)%halo)) then
        write (line, '(a,i0,a)') 'accesses(', k, '): a number of the halo is negative'
      else
        cycle
      end if
      text = trim(line)
      return
    end do
  end function

  ! Private memory of a call.
  pure function filch_scratch_of(bytes) result(access)
    integer(c_size_t), intent(in) :: bytes
    type(filch_access) :: access
    access%mode = FILCH_SCRATCH
    access%bytes = bytes
  end function

  ! An access of a batch: item i, from 0, uses scale elements from offset + scale i on, and as many
  ! neighbours as before and after say; whole: every call sees all.
  pure function filch_items(data, mode, scale, offset, before, after, whole) result(access)
    type(filch_data_t), intent(in) :: data
    integer(c_int), intent(in) :: mode
    integer(c_int64_t), intent(in), optional :: scale, offset, before, after
    logical, intent(in), optional :: whole
    type(filch_batch_access) :: access
    access%data = data%handle
    access%mode = mode
    access%map = FILCH_MAP_AFFINE
    access%scale = 1
    if (present(whole)) then
      if (whole) access%map = FILCH_MAP_WHOLE
      if (whole) access%scale = 0
    end if
    if (present(scale)) access%scale = scale
    if (present(offset)) access%offset = offset
    if (present(before)) access%before = before
    if (present(after)) access%after = after
  end function

  ! --- Graphs ---

  ! Makes a graph, which is built and then run as often as wanted; open: one that runs, once
  ! submitted, while tasks are added. max_live: add() waits while so many tasks of an open graph are
  ! live.
  subroutine graph_create(this, runtime, open, max_live, error)
    class(filch_graph_t), intent(inout) :: this
    type(filch_runtime_t), intent(in) :: runtime
    logical, intent(in), optional :: open
    integer(c_int64_t), intent(in), optional :: max_live
    type(filch_failure_t), intent(out), optional :: error
    type(filch_graph_desc) :: desc
    if (present(open)) desc%kind = merge(FILCH_GRAPH_OPEN, FILCH_GRAPH_CLOSED, open)
    if (present(max_live)) then
      if (max_live < 0) then
        call refuse('max_live is negative', error)
        return
      end if
      desc%max_live = max_live
    end if
    this%runtime = runtime%handle
    call settle(filch_graph_create(runtime%handle, desc, this%handle), runtime%handle, error)
  end subroutine

  ! Adds a task. args: address of the arguments by value, which are copied. label: ends in
  ! c_null_char, is not copied and lives as long as the graph. device: the preferred device, from 1.
  ! items: the task is divisible. task: receives the task's name, for edge().
  subroutine graph_add(this, codelet, accesses, args, label, priority, device, items, grain, task, &
                       error)
    class(filch_graph_t), intent(in) :: this
    type(filch_codelet_t), intent(in) :: codelet
    type(filch_access), intent(in) :: accesses(:)
    type(c_ptr), intent(in), optional :: args
    character(*), intent(in), target, optional :: label
    integer, intent(in), optional :: priority, device
    integer(c_int64_t), intent(in), optional :: items, grain
    integer(c_int64_t), intent(out), optional :: task
    type(filch_failure_t), intent(out), optional :: error
    type(filch_task_desc) :: desc
    type(filch_access), target :: list(size(accesses))
    character(:), allocatable :: wrong
    list = accesses
    wrong = wrong_access(list)
    if (present(label)) then
      if (index(label, c_null_char) == 0) wrong = 'the label does not end in c_null_char'
    end if
    if (wrong /= '') then
      call refuse(wrong, error)
      return
    end if
    call fill_task(desc, codelet, args, label, priority, device, items, grain)
    desc%access_count = size(list)
    if (size(list) > 0) desc%accesses = c_loc(list)
    call settle(filch_graph_add(this%handle, desc, task), this%runtime, error)
  end subroutine

  ! Members of a task's description other than its accesses.
  subroutine fill_task(desc, codelet, args, label, priority, device, items, grain)
    type(filch_task_desc), intent(inout) :: desc
    type(filch_codelet_t), intent(in) :: codelet
    type(c_ptr), intent(in), optional :: args
    character(*), intent(in), target, optional :: label
    integer, intent(in), optional :: priority, device
    integer(c_int64_t), intent(in), optional :: items, grain
    desc%codelet = codelet%handle
    if (present(args)) desc%args = args
    if (present(priority)) desc%priority = priority
    if (present(device)) desc%affinity = device
    if (present(items)) desc%items = items
    if (present(grain)) desc%grain = grain
    if (present(label)) desc%label = c_loc(label)
  end subroutine

  ! A task for graph%add_many(), with the arguments of graph%add(). What args points to is copied by
  ! add_many(), and stays as it is until then. label: a target, which lives as long as the graph.
  function filch_task_of(codelet, accesses, args, label, priority, device, items, grain) &
    result(task)
    type(filch_codelet_t), intent(in) :: codelet
    type(filch_access), intent(in) :: accesses(:)
    type(c_ptr), intent(in), optional :: args
    character(*), intent(in), target, optional :: label
    integer, intent(in), optional :: priority, device
    integer(c_int64_t), intent(in), optional :: items, grain
    type(filch_task_t) :: task
    call fill_task(task%desc, codelet, args, label, priority, device, items, grain)
    task%accesses = accesses
    task%desc%access_count = size(accesses)
    if (present(label)) then
      if (index(label, c_null_char) == 0) task%desc%reserved = 1 ! refused by add_many()
    end if
  end function

  ! Adds tasks made by filch_task_of(), in their order. names: receives their names, for edge().
  ! added: number of the tasks that are in the graph, on failure those in front of the refused one.
  subroutine graph_add_many(this, tasks, names, added, error)
    class(filch_graph_t), intent(in) :: this
    type(filch_task_t), intent(in), target :: tasks(:)
    integer(c_int64_t), intent(out), optional :: names(:)
    integer, intent(out), optional :: added
    type(filch_failure_t), intent(out), optional :: error
    type(filch_task_desc) :: descs(size(tasks))
    integer(c_int64_t) :: made(size(tasks) + 1)
    integer(c_size_t) :: count
    character(:), allocatable :: wrong
    character(40) :: line
    integer(c_int) :: status
    integer :: k
    count = 0
    made = 0
    if (present(added)) added = 0
    if (present(names)) then
      names = 0
      if (size(names) /= size(tasks)) then
        call refuse('names and tasks have not the same size', error)
        return
      end if
    end if
    do k = 1, size(tasks)
      wrong = 'is not of filch_task_of()'
      if (allocated(tasks(k)%accesses)) wrong = wrong_access(tasks(k)%accesses)
      if (tasks(k)%desc%reserved /= 0) wrong = 'the label does not end in c_null_char'
      if (wrong /= '') then
        write (line, '(a,i0,a)') 'tasks(', k, '): '
        call refuse(trim(line)//' '//wrong, error)
        return
      end if
      descs(k) = tasks(k)%desc
      if (descs(k)%access_count > 0) descs(k)%accesses = c_loc(tasks(k)%accesses)
    end do
    status = filch_graph_add_many(this%handle, descs, size(tasks, kind=c_size_t), made(1), count)
    if (present(added)) added = int(count)
    if (present(names)) names = made(:size(names))
    if (status /= FILCH_OK) &
      call settle(status, this%runtime, error, refusal_of_many(this%runtime, status))
  end subroutine

  ! The newest failure, of filch_graph_add_many(): "descs[2]" is "tasks(3)" here.
  function refusal_of_many(runtime, status) result(record)
    type(c_ptr), intent(in) :: runtime
    integer(c_int), intent(in) :: status
    type(filch_error) :: record
    character(:), allocatable :: text
    character(24) :: place
    integer :: at, last, k
    if (.not. c_associated(runtime)) return
    if (filch_runtime_error(runtime, record) /= FILCH_OK) record = filch_error()
    if (record%status /= status) record = filch_error()
    text = text_of(record%text)
    last = index(text, ']')
    if (index(text, 'descs[') /= 1 .or. last == 0) return
    read (text(7:last - 1), *, iostat=k) at
    if (k /= 0) return
    write (place, '(a,i0,a)') 'tasks(', at + 1, ')'
    text = trim(place)//text(last + 1:)
    record%text = c_null_char
    do k = 1, min(len(text), size(record%text) - 1)
      record%text(k) = text(k:k)
    end do
  end function

  ! Makes a task wait for another.
  subroutine graph_edge(this, before, after, error)
    class(filch_graph_t), intent(in) :: this
    integer(c_int64_t), intent(in) :: before, after
    type(filch_failure_t), intent(out), optional :: error
    call settle(filch_graph_edge(this%handle, before, after), this%runtime, error)
  end subroutine

  ! Promises that the graph only reads a handle: tasks that write it are refused at once.
  subroutine graph_read_only(this, data, error)
    class(filch_graph_t), intent(in) :: this
    type(filch_data_t), intent(in) :: data
    type(filch_failure_t), intent(out), optional :: error
    call settle(filch_graph_read_only(this%handle, data%handle), this%runtime, error)
  end subroutine

  ! Lets tasks added from now on use data in the tiles of parts, of parts%create_partition(data),
  ! until unpartition() or the end of the building.
  subroutine graph_partition(this, data, parts, error)
    class(filch_graph_t), intent(in) :: this
    type(filch_data_t), intent(in) :: data, parts
    type(filch_failure_t), intent(out), optional :: error
    call settle(filch_graph_partition(this%handle, data%handle, parts%handle), this%runtime, error)
  end subroutine

  ! Lets tasks added from now on use data in its own tiles again.
  subroutine graph_unpartition(this, data, parts, error)
    class(filch_graph_t), intent(in) :: this
    type(filch_data_t), intent(in) :: data, parts
    type(filch_failure_t), intent(out), optional :: error
    call settle(filch_graph_unpartition(this%handle, data%handle, parts%handle), this%runtime, &
                error)
  end subroutine

  ! Ends the building of a closed graph, as the first run does; FILCH_CYCLE.
  subroutine graph_seal(this, error)
    class(filch_graph_t), intent(in) :: this
    type(filch_failure_t), intent(out), optional :: error
    call settle(filch_graph_seal(this%handle), this%runtime, error)
  end subroutine

  ! Runs the graph to its end. A failed job: the first failure, FILCH_TASK_FAILED.
  subroutine graph_run(this, error)
    class(filch_graph_t), intent(in) :: this
    type(filch_failure_t), intent(out), optional :: error
    type(filch_error) :: details
    integer(c_int) :: status
    status = filch_graph_run(this%handle, error=details)
    call settle(status, this%runtime, error, details)
  end subroutine

  ! Starts the graph. To be followed by job%wait() and job%release().
  subroutine graph_submit(this, job, error)
    class(filch_graph_t), intent(in) :: this
    type(filch_job_t), intent(inout) :: job
    type(filch_failure_t), intent(out), optional :: error
    job%runtime = this%runtime
    call settle(filch_graph_submit(this%handle, job=job%handle), this%runtime, error)
  end subroutine

  ! Runs a closed graph again and again, as one job, until the predicate or a task says stop. To be
  ! followed by job%wait() and job%release().
  subroutine graph_repeat(this, until, job, error)
    class(filch_graph_t), intent(in) :: this
    type(filch_repeat_desc), intent(in) :: until
    type(filch_job_t), intent(inout) :: job
    type(filch_failure_t), intent(out), optional :: error
    job%runtime = this%runtime
    call settle(filch_graph_repeat(this%handle, until, job=job%handle), this%runtime, error)
  end subroutine

  ! Writes a closed graph to a file in the language of Graphviz.
  subroutine graph_write_dot(this, path, error)
    class(filch_graph_t), intent(in) :: this
    character(*), intent(in) :: path
    type(filch_failure_t), intent(out), optional :: error
    call settle(filch_graph_write_dot(this%handle, path//c_null_char), this%runtime, error)
  end subroutine

  ! Waits until fewer than count tasks of an open graph are live, or so many seconds; FILCH_TIMEOUT.
  ! Inside a task, which does not count itself, other tasks run meanwhile.
  subroutine graph_wait_below(this, count, seconds, error)
    class(filch_graph_t), intent(in) :: this
    integer(c_int64_t), intent(in) :: count
    real(c_double), intent(in), optional :: seconds
    type(filch_failure_t), intent(out), optional :: error
    real(c_double) :: limit
    if (count < 0) then
      call refuse('count is negative', error)
      return
    end if
    limit = -1
    if (present(seconds)) limit = seconds
    call settle(filch_graph_wait_below(this%handle, count, limit), this%runtime, error)
  end subroutine

  ! Discards the contents of a temporary (FILCH_DATA_TEMPORARY) behind the tasks so far.
  subroutine graph_discard(this, data, error)
    class(filch_graph_t), intent(in) :: this
    type(filch_data_t), intent(in) :: data
    type(filch_failure_t), intent(out), optional :: error
    call settle(filch_graph_discard(this%handle, data%handle), this%runtime, error)
  end subroutine

  ! No more tasks follow in an open graph.
  subroutine graph_close(this, error)
    class(filch_graph_t), intent(in) :: this
    type(filch_failure_t), intent(out), optional :: error
    call settle(filch_graph_close(this%handle), this%runtime, error)
  end subroutine

  subroutine graph_destroy(this, error)
    class(filch_graph_t), intent(inout) :: this
    type(filch_failure_t), intent(out), optional :: error
    integer(c_int) :: status
    status = filch_graph_destroy(this%handle)
    call settle(status, this%runtime, error)
    if (status == FILCH_OK) this%handle = c_null_ptr
  end subroutine

  ! --- Jobs ---

  ! Waits for the job, or so many seconds; FILCH_TIMEOUT. FILCH_TASK_FAILED has the first failure,
  ! FILCH_CANCELLED the label of the job.
  subroutine job_wait(this, seconds, error)
    class(filch_job_t), intent(in) :: this
    real(c_double), intent(in), optional :: seconds
    type(filch_failure_t), intent(out), optional :: error
    type(filch_error) :: details
    real(c_double) :: limit
    integer(c_int) :: status
    limit = -1
    if (present(seconds)) limit = seconds
    status = filch_job_wait(this%handle, limit)
    if (status == FILCH_TASK_FAILED .or. status == FILCH_CANCELLED) then
      if (filch_job_error(this%handle, details) == FILCH_OK) then
        call settle(status, this%runtime, error, details)
        return
      end if
    end if
    call settle(status, this%runtime, error)
  end subroutine

  ! FILCH_NOT_READY while the job runs; then its result.
  function job_status(this) result(status)
    class(filch_job_t), intent(in) :: this
    integer(c_int) :: status
    status = filch_job_status(this%handle)
  end function

  ! Asks the job to start nothing more.
  subroutine job_cancel(this, error)
    class(filch_job_t), intent(in) :: this
    type(filch_failure_t), intent(out), optional :: error
    call settle(filch_job_cancel(this%handle), this%runtime, error)
  end subroutine

  ! Totals of the job.
  subroutine job_info(this, info, error)
    class(filch_job_t), intent(in) :: this
    type(filch_job_info), intent(out) :: info
    type(filch_failure_t), intent(out), optional :: error
    call settle(filch_job_stats(this%handle, info, count=0_c_int32_t), this%runtime, error)
  end subroutine

  ! Fate of the items of a complete batch: ranges in ascending order, in members from 0 as in C.
  subroutine job_items(this, ranges, error)
    class(filch_job_t), intent(in) :: this
    type(filch_item_range), allocatable, intent(out) :: ranges(:)
    type(filch_failure_t), intent(out), optional :: error
    integer(c_size_t) :: count
    integer(c_int) :: status
    count = 0
    status = filch_job_items(this%handle, capacity=0_c_size_t, count=count)
    allocate (ranges(count))
    if (status == FILCH_OK) status = filch_job_items(this%handle, ranges, count, count)
    call settle(status, this%runtime, error)
  end subroutine

  ! Runs the unfinished items of a complete batch. To be followed by rest%wait() and rest%release().
  subroutine job_resume(this, rest, error)
    class(filch_job_t), intent(in) :: this
    type(filch_job_t), intent(inout) :: rest
    type(filch_failure_t), intent(out), optional :: error
    rest%runtime = this%runtime
    call settle(filch_job_resume(this%handle, rest=rest%handle), this%runtime, error)
  end subroutine

  ! How the devices spent their time; with the graph that the job ran also its longest path. losses:
  ! one element a device.
  subroutine job_report(this, report, graph, losses, error)
    class(filch_job_t), intent(in) :: this
    type(filch_report), intent(out) :: report
    type(filch_graph_t), intent(in), optional :: graph
    type(filch_losses), allocatable, intent(out), optional :: losses(:)
    type(filch_failure_t), intent(out), optional :: error
    type(c_ptr) :: of
    integer(c_int) :: status
    of = c_null_ptr
    if (present(graph)) of = graph%handle
    status = filch_job_report(this%handle, of, report, count=0_c_int32_t)
    if (status == FILCH_OK .and. present(losses)) then
      allocate (losses(report%device_count))
      status = filch_job_report(this%handle, of, report, losses, report%device_count)
    end if
    call settle(status, this%runtime, error)
  end subroutine

  ! The report as a text of several lines: where the time went, and what to change first.
  subroutine job_report_text(this, text, graph, error)
    class(filch_job_t), intent(in) :: this
    character(:), allocatable, intent(out) :: text
    type(filch_graph_t), intent(in), optional :: graph
    type(filch_failure_t), intent(out), optional :: error
    type(c_ptr), target :: memory
    integer(c_size_t), target :: bytes
    character(kind=c_char), pointer :: all(:)
    type(c_ptr) :: of, stream
    integer(c_int) :: status
    interface ! streams of the C library that collect text in memory
      function open_memstream(text, bytes) bind(c) result(stream)
        import
        type(c_ptr), value :: text, bytes
        type(c_ptr) :: stream
      end function
      function fclose(stream) bind(c) result(answer)
        import
        type(c_ptr), value :: stream
        integer(c_int) :: answer
      end function
      subroutine free(memory) bind(c)
        import
        type(c_ptr), value :: memory
      end subroutine
    end interface
    text = ''
    memory = c_null_ptr
    bytes = 0
    of = c_null_ptr
    if (present(graph)) of = graph%handle
    stream = open_memstream(c_loc(memory), c_loc(bytes))
    if (.not. c_associated(stream)) then
      call settle(FILCH_OUT_OF_MEMORY, c_null_ptr, error)
      return
    end if
    status = filch_report_print(this%handle, of, stream)
    if (fclose(stream) /= 0 .and. status == FILCH_OK) status = FILCH_OUT_OF_MEMORY
    if (status == FILCH_OK) then
      call c_f_pointer(memory, all, [bytes])
      text = text_of(all)
    end if
    call free(memory)
    call settle(status, this%runtime, error)
  end subroutine

  ! Gives the job back; a running job goes on to its end.
  subroutine job_release(this, error)
    class(filch_job_t), intent(inout) :: this
    type(filch_failure_t), intent(out), optional :: error
    integer(c_int) :: status
    status = filch_job_release(this%handle)
    call settle(status, this%runtime, error)
    if (status == FILCH_OK) this%handle = c_null_ptr
  end subroutine
end module
