! SPDX-License-Identifier: Apache-2.0
! The Fortran module: pending tasks, ends by a task, many tasks in a call, other tilings, holds of
! tiles, states of devices, rounds over the workers, devices, traces and reports.
module functions
  use filch
  implicit none
  integer, parameter :: dp = c_double
  type(filch_pending_t) :: taken(4)
  integer(c_int), volatile :: ready(4) = 0
  integer, target :: opened = 0, closed = 0
  integer, volatile :: calls = 0
contains
  ! Leaves its handle in taken(k), k being the argument.
  recursive integer(c_int) function pend(task) bind(c) result(code)
    type(filch_call), intent(in) :: task
    integer, pointer :: k
    call c_f_pointer(task%args, k)
    call taken(k)%take(task)
    ready(k) = 1
    code = FILCH_PENDING_VALUE
  end function

  ! 0 if the handle cannot be taken.
  recursive integer(c_int) function pend_not(task) bind(c) result(code)
    type(filch_call), intent(in) :: task
    type(filch_failure_t) :: error
    call taken(4)%take(task, error)
    code = merge(0_c_int, 1_c_int, error%status == FILCH_WRONG_STATE .and. &
                 index(error%text, 'FILCH_CODELET_MAY_PEND') > 0)
  end function

  ! Ends the pending task in taken(1), and tells of a second end.
  recursive integer(c_int) function end_first(task) bind(c) result(code)
    type(filch_call), intent(in) :: task
    type(filch_failure_t) :: error
    call taken(1)%end()
    call taken(1)%end(error=error)
    code = merge(0_c_int, 1_c_int, error%status == FILCH_INVALID_HANDLE .and. &
                 task%view_count == 0 .and. taken(1)%status() == FILCH_INVALID_HANDLE)
  end function

  recursive integer(c_int) function end_job(task) bind(c) result(code) ! at its third call
    type(filch_call), intent(in) :: task
    calls = calls + 1
    if (calls == 3) call filch_finish(task)
    code = 0
  end function

  recursive integer(c_int) function digit(task) bind(c) result(code) ! x becomes 10 x + argument
    type(filch_call), intent(in) :: task
    real(dp), pointer :: x(:)
    integer, pointer :: k
    call filch_view_of(task, 1, x)
    call c_f_pointer(task%args, k)
    x = 10*x + k
    code = 0
  end function

  recursive integer(c_int) function sum_up(task) bind(c) result(code) ! running sums of a column
    type(filch_call), intent(in) :: task
    real(dp), pointer :: x(:, :)
    integer :: i
    call filch_view_of(task, 1, x)
    do i = 2, size(x, 1)
      x(i, :) = x(i, :) + x(i - 1, :)
    end do
    code = 0
  end function

  ! The state of a device is a number; the user counts states that were opened.
  integer(c_int) function open_state(runtime, device, user, state) bind(c) result(code)
    type(c_ptr), value :: runtime, user
    integer(c_int32_t), value :: device
    type(c_ptr), intent(inout) :: state
    integer, pointer :: number, count
    call c_f_pointer(user, count)
    count = count + 1
    allocate (number)
    number = device + 1
    state = c_loc(number)
    code = merge(0_c_int, 1_c_int, c_associated(runtime))
  end function

  integer(c_int) function open_one(runtime, device, user, state) bind(c) result(code)
    type(c_ptr), value :: runtime, user
    integer(c_int32_t), value :: device
    type(c_ptr), intent(inout) :: state
    code = open_state(runtime, device, user, state)
    if (device == 0) return
    call close_state(device, user, state) ! a state that is not made is nobody else's
    closed = closed - 1
    code = 7
  end function

  subroutine close_state(device, user, state) bind(c)
    integer(c_int32_t), value :: device
    type(c_ptr), value :: user, state
    integer, pointer :: number
    call c_f_pointer(state, number)
    if (number /= device + 1 .or. .not. c_associated(user)) error stop 'the state'
    closed = closed + 1
    deallocate (number)
  end subroutine

  recursive integer(c_int) function use_state(task) bind(c) result(code)
    type(filch_call), intent(in) :: task
    integer, pointer :: number, count
    call c_f_pointer(task%state, number)
    call c_f_pointer(task%user, count)
    code = merge(0_c_int, 1_c_int, number == task%device + 1 .and. count == 2)
  end function

  recursive integer(c_int) function fail_at_50(task) bind(c) result(code)
    type(filch_call), intent(in) :: task
    code = merge(3_c_int, 0_c_int, calls == 0 .and. task%lo <= 50 .and. task%hi > 50)
  end function

  subroutine require(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (.not. holds) error stop what
  end subroutine

  subroutine expect(error, status, text)
    type(filch_failure_t), intent(in) :: error
    integer(c_int), intent(in) :: status
    character(*), intent(in) :: text
    call require(error%status == status .and. index(error%text, text) > 0, &
                 'expected: '//text//'; but: '//error%text)
  end subroutine

  ! Waits until the task of taken(k) has its handle.
  subroutine await(k)
    integer, intent(in) :: k
    do while (ready(k) == 0)
      if (filch_job_status(c_null_ptr) == FILCH_OK) exit ! a call, so that ready is read again
    end do
    ready(k) = 0
  end subroutine
end module

program main
  use functions
  implicit none
  type(filch_runtime_t) :: runtime
  type(filch_failure_t) :: error
  type(filch_access) :: none(0)
  integer :: i
  integer, target :: numbers(12) = [(i, i=1, 12)]
  call runtime%create('host:2@any')
  call test_pending()
  call test_pending_refused()
  call test_finish()
  call test_many()
  call test_many_refused()
  call test_partition()
  call test_holds()
  call test_states()
  call test_report()
  call test_trace()
  call test_items()
  call test_devices()
  call runtime%destroy()
  call require(closed == 4, 'every state is released')
  call test_poll()
  print '(a)', 'ok'
contains
  subroutine test_pending()
    type(filch_codelet_t) :: code, ending
    type(filch_graph_t) :: graph
    type(filch_job_t) :: job
    type(filch_job_info) :: info
    call code%create(runtime, 'pend', pend, args_size=c_sizeof(numbers(1)), &
                     flags=int(FILCH_CODELET_MAY_PEND))
    call ending%create(runtime, 'end', end_first)
    call graph%create(runtime)
    call graph%add(code, none, args=c_loc(numbers(1)))
    call graph%submit(job)
    call await(1)
    call job%wait(0.0_dp, error)
    call require(error%status == FILCH_TIMEOUT, 'the task pends')
    call require(taken(1)%status() == FILCH_NOT_READY, 'the task is wanted')
    call job%cancel()
    call require(taken(1)%status() == FILCH_CANCELLED, 'the task is not wanted')
    call taken(1)%end(code=int(FILCH_PENDING_VALUE), error=error)
    call require(error%status == FILCH_INVALID_ARGUMENT, 'not a code')
    call taken(1)%end()
    call job%wait(error=error)
    call require(any(error%status == [FILCH_OK, FILCH_CANCELLED]), 'the job has ended')
    call job%release()
    call graph%submit(job)
    call await(1)
    call taken(1)%end(5, 'the message is too long')
    call job%wait(error=error)
    call expect(error, FILCH_TASK_FAILED, 'the message is too long')
    call require(error%code == 5, 'the code')
    call job%release()
    call graph%submit(job)
    call await(1)
    call end_by_a_task(ending)
    call job%wait()
    call job%info(info)
    call require(info%pending == 0, 'no task pends')
    call job%release()
    call graph%destroy()
  end subroutine

  subroutine end_by_a_task(code)
    type(filch_codelet_t), intent(in) :: code
    type(filch_graph_t) :: graph
    call graph%create(runtime)
    call graph%add(code, none)
    call graph%run()
    call graph%destroy()
  end subroutine

  subroutine test_pending_refused()
    type(filch_codelet_t) :: code
    type(filch_pending_t) :: nothing
    call code%create(runtime, 'pend_not', pend_not)
    call end_by_a_task(code)
    call nothing%end(error=error)
    call require(error%status == FILCH_INVALID_HANDLE, 'no task')
    call require(nothing%status() == FILCH_INVALID_HANDLE, 'no task has no status')
  end subroutine

  subroutine test_finish()
    type(filch_codelet_t) :: code
    type(filch_data_t) :: data
    type(filch_graph_t) :: graph
    type(filch_job_t) :: job
    type(filch_job_info) :: info
    real(dp), target :: x(1)
    integer :: k
    x = 0
    calls = 0
    call code%create(runtime, 'end_job', end_job)
    call data%create(runtime, filch_array(x))
    call graph%create(runtime)
    do k = 1, 10
      call graph%add(code, [filch_rw(data, 1)])
    end do
    call graph%submit(job)
    call job%wait()
    call job%info(info)
    call require(calls == 3 .and. info%skipped == 7, 'seven tasks are skipped')
    call job%release()
    call graph%destroy()
    call data%destroy()
  end subroutine

  subroutine test_many()
    type(filch_codelet_t) :: code
    type(filch_data_t) :: data
    type(filch_graph_t) :: graph
    type(filch_task_t) :: tasks(12)
    type(filch_task_t) :: nothing(0)
    integer(c_int64_t) :: names(12)
    character(5), target :: label = 'many'//c_null_char
    real(dp), target :: x(4)
    integer :: k, added
    x = 0
    call code%create(runtime, 'digit', digit, args_size=c_sizeof(numbers(1)))
    call data%create(runtime, filch_array(x), tile_rows=1)
    call graph%create(runtime)
    do k = 1, 12
      tasks(k) = filch_task_of(code, [filch_rw(data, mod(k - 1, 4) + 1)], args=c_loc(numbers(k)), &
                               label=label, device=1)
    end do
    call graph%add_many(tasks(:5), names(:5), added)
    call require(added == 5, 'five tasks')
    call graph%add_many(tasks(6:), names(6:))
    call graph%add_many(nothing, added=added)
    call require(added == 0, 'no task')
    call require(all(names > 0), 'names')
    call graph%edge(names(1), names(2))
    call graph%seal()
    call graph%run()
    call require(all(x == [(100*k + 10*(k + 4) + k + 8, k=1, 4)]), 'the order of the tasks')
    call graph%destroy()
    call data%destroy()
  end subroutine

  subroutine test_many_refused()
    type(filch_codelet_t) :: code
    type(filch_data_t) :: data
    type(filch_graph_t) :: graph
    type(filch_task_t) :: tasks(3), unset(1)
    integer(c_int64_t) :: names(3)
    real(dp), target :: x(4)
    integer :: k, added
    x = 0
    call code%create(runtime, 'digit', digit, args_size=c_sizeof(numbers(1)))
    call data%create(runtime, filch_array(x), tile_rows=1)
    call graph%create(runtime)
    do k = 1, 3
      tasks(k) = filch_task_of(code, [filch_rw(data, 2*k)], args=c_loc(numbers(k)))
    end do
    call graph%add_many(tasks, names, added, error) ! tile 6 of 4
    call expect(error, FILCH_INVALID_ARGUMENT, 'tasks(3): task #')
    call require(added == 2 .and. all(names(:2) > 0) .and. names(3) == 0, 'two are added')
    call graph%add_many(unset, error=error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'tasks(1): is not of filch_task_of()')
    tasks(3) = filch_task_of(code, [filch_rw(data, 0)], args=c_loc(numbers(3)))
    call graph%add_many(tasks, added=added, error=error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'tasks(3): accesses(1): tile (0, 1)')
    call require(added == 0, 'none is added')
    tasks(3) = filch_task_of(code, [filch_rw(data, 1)], args=c_loc(numbers(3)), label='here')
    call graph%add_many(tasks, error=error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'tasks(3): the label does not end in c_null_char')
    call graph%add_many(tasks(:2), names, error=error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'not the same size')
    call graph%run()
    call require(all(x == [0, 1, 0, 2]), 'what was added runs')
    call graph%destroy()
    call data%destroy()
  end subroutine

  subroutine test_partition()
    type(filch_codelet_t) :: sums
    type(filch_data_t) :: data, columns, parts
    type(filch_graph_t) :: graph
    real(dp), target :: a(8, 6)
    integer :: k
    a = 0
    call sums%create(runtime, 'sum_up', sum_up)
    call data%create(runtime, filch_array(a), tile_rows=8, tile_cols=6)
    call columns%create_partition(data, tile_rows=8, tile_cols=1, label='columns')
    call require(columns%tile_rows == 1 .and. columns%tile_cols == 6, 'six columns')
    call parts%create_partition(data, row_cuts=[1_c_int64_t, 7_c_int64_t], &
                                col_cuts=[2_c_int64_t, 4_c_int64_t])
    call require(parts%tile_rows == 2 .and. parts%tile_cols == 2, 'two by two')
    call graph%create(runtime)
    call graph%add(sums, [filch_r(columns, 1)], error=error)
    call require(error%status == FILCH_WRONG_STATE, 'not partitioned')
    call graph%partition(data, columns)
    call graph%add(sums, [filch_rw(data)], error=error)
    call require(error%status == FILCH_WRONG_STATE, 'partitioned')
    a = 1
    do k = 1, 6
      call graph%add(sums, [filch_rw(columns, 1, k)])
    end do
    call graph%unpartition(data, columns)
    call graph%unpartition(data, columns, error)
    call require(error%status == FILCH_WRONG_STATE, 'not partitioned any more')
    call graph%partition(data, parts)
    call graph%add(sums, [filch_rw(parts, 2, 1)]) ! rows 2 to 8 of columns 1 and 2
    call graph%run()
    call require(all(a(8, :) == [35, 35, 8, 8, 8, 8]), 'sums')
    call graph%destroy()
    call data%destroy(error)
    call require(error%status == FILCH_BUSY, 'has partitions')
    call columns%create_partition(parts, tile_rows=2, error=error)
    call require(error%status == FILCH_UNSUPPORTED, 'a partition of a partition')
    call columns%create_partition(data, tile_rows=-2, error=error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'tile_rows is negative')
    call columns%create_partition(data, row_cuts=[3_c_int64_t], error=error)
    call require(error%status == FILCH_INVALID_ARGUMENT, 'a wrong sum')
    call columns%destroy()
    call parts%destroy()
    call data%destroy()
  end subroutine

  subroutine test_holds()
    type(filch_codelet_t) :: code
    type(filch_data_t) :: data
    type(filch_graph_t) :: graph
    type(filch_job_t) :: job
    type(filch_hold_t) :: hold, second
    type(filch_view) :: view
    real(dp), target :: a(6, 4)
    real(dp), pointer :: x(:)
    a = 0
    call code%create(runtime, 'pend', pend, args_size=c_sizeof(numbers(1)), &
                     flags=int(FILCH_CODELET_MAY_PEND))
    call data%create(runtime, filch_array(a), tile_rows=3, tile_cols=2)
    call graph%create(runtime)
    call graph%add(code, [filch_rw(data, 2, 1)], args=c_loc(numbers(2)))
    call graph%submit(job)
    call await(2)
    call data%acquire_tiles(hold, FILCH_READ, 2, 1, rows=1, cols=1, seconds=0.0_dp, error=error)
    call require(error%status == FILCH_TIMEOUT, 'the tile is in use')
    call require(.not. c_associated(hold%handle), 'nothing is held')
    call data%acquire_tiles(second, FILCH_READWRITE, 1, 2, rows=1, seconds=0.0_dp)
    a(3, 4) = 5
    call second%release()
    call taken(2)%end()
    call data%acquire_tiles(hold, FILCH_READ)
    call data%acquire_tiles(hold, FILCH_READ, error=error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'the hold has tiles already')
    call data%view(1, 2, view)
    call c_f_pointer(view%ptr, x, [3])
    call require(view%row == 0 .and. view%col == 2 .and. view%rows == 3 .and. view%ld == 6 .and. &
                 associated(x, a(1:3, 3)), 'the view of a tile')
    call data%view(3, 1, view, error)
    call require(error%status /= FILCH_OK, 'no third row of tiles')
    call hold%release()
    call hold%release(error)
    call require(error%status == FILCH_INVALID_HANDLE, 'released')
    call job%wait()
    call job%release()
    call graph%destroy()
    call data%acquire_tiles(hold, FILCH_READ, row=0, error=error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'tile (0, 1), but tiles are numbered from 1')
    call data%acquire_tiles(hold, FILCH_READ, rows=0, error=error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'a block has at least 1 row')
    call data%acquire_tiles(hold, FILCH_READ, 1, 1, rows=3, error=error)
    call require(error%status == FILCH_INVALID_ARGUMENT, 'three rows of two')
    call data%destroy()
  end subroutine

  subroutine test_states()
    type(filch_codelet_t) :: code
    type(filch_graph_t) :: graph
    integer :: k
    call code%create(runtime, 'use_state', use_state, open=open_state, close=close_state, &
                     user=c_loc(opened))
    call require(opened == 2 .and. closed == 0, 'two states')
    call graph%create(runtime)
    do k = 1, 20
      call graph%add(code, none)
    end do
    call graph%run()
    call graph%destroy()
    opened = 0
    call code%create(runtime, 'bad', use_state, open=open_one, close=close_state, &
                     user=c_loc(opened), error=error)
    call expect(error, FILCH_TASK_FAILED, 'its open function returned 7')
    call require(error%code == 7 .and. opened == 2 .and. closed == 1, 'one was released')
    call code%create(runtime, 'again', use_state, open=open_state, close=close_state, &
                     user=c_loc(opened))
    closed = 0
  end subroutine

  subroutine test_report()
    type(filch_codelet_t) :: code
    type(filch_graph_t) :: graph, other
    type(filch_job_t) :: job
    type(filch_report) :: report
    type(filch_losses), allocatable :: losses(:)
    character(:), allocatable :: text
    call code%create(runtime, 'pend_not', pend_not)
    call graph%create(runtime)
    call other%create(runtime)
    call graph%add(code, none)
    call graph%submit(job)
    call job%wait()
    call job%report(report, graph, losses)
    call require(report%status == FILCH_OK .and. size(losses) == 2, 'two devices')
    call require(sum(losses%wall_ns) == report%total%wall_ns, 'the sum')
    call job%report(report, other, error=error)
    call require(error%status == FILCH_INVALID_ARGUMENT, 'not the graph')
    call job%report_text(text)
    call require(index(text, 'host:2') + index(text, 'host:1') > 0 .and. index(text, 'OK') > 0, &
                 'a table')
    call job%report_text(text, graph)
    call require(index(text, 'OK') > 0, 'with a path')
    call job%report_text(text, other, error)
    call require(error%status == FILCH_INVALID_ARGUMENT .and. text == '', 'not the graph')
    call job%release()
    call graph%destroy()
    call other%destroy()
  end subroutine

  subroutine test_trace()
    type(filch_codelet_t) :: code
    character(16) :: line
    integer :: unit
    call runtime%report_write('calls-report.html', error)
    call require(error%status == FILCH_WRONG_STATE, 'nothing was recorded')
    call code%create(runtime, 'pend_not', pend_not)
    call runtime%trace_start()
    call end_by_a_task(code)
    call runtime%trace_stop()
    call runtime%trace_write('calls-trace.json')
    call runtime%report_write('calls-report.html')
    open (newunit=unit, file='calls-trace.json', status='old')
    read (unit, '(a)') line
    close (unit, status='delete')
    call require(line(1:1) == '{', 'a trace')
    open (newunit=unit, file='calls-report.html', status='old')
    read (unit, '(a)') line
    close (unit, status='delete')
    call require(line(1:9) == '<!DOCTYPE' .or. line(1:9) == '<!doctype', 'a page')
    call runtime%report_write('nowhere/report.html', error)
    call expect(error, FILCH_IO, 'nowhere/report.html')
    call runtime%trace_write('nowhere/trace.json', error)
    call expect(error, FILCH_IO, 'nowhere/trace.json')
  end subroutine

  subroutine test_items()
    type(filch_codelet_t) :: code
    type(filch_job_t) :: job, rest
    type(filch_item_range), allocatable :: ranges(:)
    type(filch_batch_access) :: nothing(0)
    calls = 0
    call code%create(runtime, 'fail_at_50', fail_at_50)
    call runtime%submit_batch(job, code, 100_c_int64_t, nothing, grain=10_c_int64_t)
    call job%wait(error=error)
    call require(error%status == FILCH_TASK_FAILED .and. error%code == 3, 'item 50')
    call job%items(ranges)
    call require(ranges(1)%lo == 0 .and. ranges(size(ranges))%hi == 100 .and. &
                 any(ranges%status == FILCH_TASK_FAILED), 'fates')
    calls = 1
    call job%resume(rest)
    call rest%wait()
    call rest%items(ranges)
    call require(all(ranges%status == FILCH_OK), 'all has run')
    call job%release()
    call rest%release()
  end subroutine

  subroutine test_devices()
    type(filch_memory_stats) :: stats
    type(filch_link) :: link
    type(filch_usage) :: usage
    type(filch_speeds) :: speeds
    type(filch_speed) :: speed
    type(filch_device_refusal) :: refusal
    type(filch_codelet_t) :: code
    type(filch_data_t) :: data
    type(filch_job_t) :: job
    real(dp), target :: x(4)
    integer(c_int) :: presence
    call runtime%withdraw(2)
    do
      call runtime%presence(2, presence)
      if (presence /= FILCH_PRESENCE_LEAVING) exit
    end do
    call require(presence == FILCH_PRESENCE_WITHDRAWN, 'withdrawn')
    call runtime%readmit(2)
    call runtime%presence(2, presence)
    call require(presence == FILCH_PRESENCE_THERE, 'readmitted')
    call runtime%withdraw(3, error)
    call require(error%status == FILCH_BAD_INDEX, 'no third device')
    call runtime%readmit(0, error)
    call require(error%status == FILCH_BAD_INDEX, 'no device 0')
    call runtime%presence(3, presence, error)
    call require(error%status == FILCH_BAD_INDEX, 'no third device')
    call runtime%memory(1, stats)
    call runtime%memory(3, stats, error)
    call require(error%status == FILCH_BAD_INDEX, 'no third device')
    call runtime%trim(1, 1000_c_int64_t)
    call runtime%trim(1, -1_c_int64_t, error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'keep is negative')
    call runtime%link(0, 2, link)
    call require(logical(link%is_same), 'one memory')
    call runtime%link(-1, 2, link, error)
    call require(error%status == FILCH_BAD_INDEX, 'no device -1')
    call runtime%measure_links()
    call runtime%usage(usage)
    call require(runtime%refused_count() == 0, 'no device is refused')
    call runtime%refused(1, refusal, error)
    call require(error%status == FILCH_BAD_INDEX, 'no device is refused')
    call runtime%speeds(speeds)
    call require(speeds%loaded == FILCH_NOT_FOUND, 'no file of speeds')
    call runtime%save_speeds(error)
    call require(error%status /= FILCH_OK, 'no file to save')
    call code%create(runtime, 'digit', digit, args_size=c_sizeof(numbers(1)))
    call code%speed(2, speed)
    call require(speed%source == FILCH_SPEED_UNKNOWN, 'never run')
    call code%speed(3, speed, error)
    call require(error%status == FILCH_BAD_INDEX, 'no third device')
    x = 0
    call data%create(runtime, filch_array(x), flags=int(FILCH_DATA_MANAGED))
    call data%broadcast(job, [1])
    call job%wait()
    call job%release()
    call data%broadcast(job, [3], error)
    call require(error%status == FILCH_BAD_INDEX, 'no third device')
    call data%broadcast(job, numbers(:0), error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'a broadcast to no device')
    call data%destroy()
  end subroutine

  subroutine test_poll()
    type(filch_runtime_t) :: polled
    type(filch_runtime_desc) :: config
    type(filch_codelet_t) :: code
    type(filch_graph_t) :: graph
    type(filch_job_t) :: job
    logical :: worked
    config%drive = FILCH_DRIVE_POLL
    call polled%create('host:2@any', config)
    call code%create(polled, 'pend', pend, args_size=c_sizeof(numbers(1)), &
                     flags=int(FILCH_CODELET_MAY_PEND))
    call polled%poll_wait(0.001_dp, error=error)
    call require(error%status == FILCH_TIMEOUT, 'nothing to do')
    call graph%create(polled)
    call graph%add(code, none, args=c_loc(numbers(3)))
    call graph%submit(job)
    do while (ready(3) == 0)
      call polled%poll_wait(job=job, worked=worked)
    end do
    call polled%poll(-1.0_dp)
    call require(job%status() == FILCH_NOT_READY, 'pends')
    call taken(3)%end()
    do while (job%status() == FILCH_NOT_READY)
      call polled%poll_wait(1.0_dp, job)
    end do
    call polled%poll(worked=worked)
    call job%wait()
    call job%release()
    call polled%poll_wait(job=job, error=error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'the job is released')
    call polled%destroy()
  end subroutine
end program
