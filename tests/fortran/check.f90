! SPDX-License-Identifier: Apache-2.0
! The Fortran module: what tasks get, what is refused, and how jobs end.
module functions
  use filch
  implicit none
  integer, parameter :: dp = c_double
  integer(c_int), volatile :: gate = 0
contains
  recursive integer(c_int) function increase(task) bind(c) result(code) ! by the argument
    type(filch_call), intent(in) :: task
    real(dp), pointer :: x(:, :), by
    call filch_view_of(task, 1, x)
    call c_f_pointer(task%args, by)
    x = x + by
    code = 0
  end function

  ! The same through a procedure that takes a leading dimension.
  recursive integer(c_int) function increase_ld(task) bind(c) result(code)
    type(filch_call), intent(in) :: task
    real(dp), pointer :: x(:, :), by
    external :: raise
    integer :: ld(0:2)
    call filch_view_of(task, 1, x)
    call c_f_pointer(task%args, by)
    call raise(size(x, 1), size(x, 2), by, x(1, 1), filch_ld(task, 1))
    ld = [filch_ld(task, 0), filch_ld(task, 1), filch_ld(task, 2)]
    code = merge(0_c_int, 1_c_int, all(ld == [0, 9, 0]))
  end function

  recursive integer(c_int) function zero(task) bind(c) result(code)
    type(filch_call), intent(in) :: task
    real(dp), pointer :: x(:)
    call filch_view_of(task, 1, x)
    x = 0
    code = 0
  end function

  recursive integer(c_int) function add(task) bind(c) result(code)
    type(filch_call), intent(in) :: task
    real(dp), pointer :: x(:), y(:)
    call filch_view_of(task, 1, x)
    call filch_view_of(task, 2, y)
    x = x + y
    code = 0
  end function

  recursive integer(c_int) function one_more(task) bind(c) result(code)
    type(filch_call), intent(in) :: task
    real(dp), pointer :: x(:)
    call filch_view_of(task, 1, x)
    x = x + 1
    code = 0
  end function

  recursive integer(c_int) function number(task) bind(c) result(code) ! items: elements of x
    type(filch_call), intent(in) :: task
    integer(c_int32_t), pointer :: x(:)
    integer(c_int64_t) :: i, above
    call filch_view_of(task, 1, x)
    above = filch_rows_above(task, 1)
    do i = task%lo + 1, task%hi
      x(i - above) = int(i)
    end do
    code = 0
  end function

  recursive integer(c_int) function misuse(task) bind(c) result(code) ! 0 if wrong views are null
    type(filch_call), intent(in) :: task
    real(dp), pointer :: x(:), y(:, :)
    real(c_float), pointer :: z(:, :)
    complex(dp), pointer :: c(:)
    code = 1
    call filch_view_of(task, 1, x) ! several columns
    if (associated(x)) return
    call filch_view_of(task, 1, z) ! elements of 8 bytes
    if (associated(z)) return
    call filch_view_of(task, 0, y)
    if (associated(y)) return
    call filch_view_of(task, 3, y)
    if (associated(y)) return
    call filch_view_of(task, 1, y)
    if (.not. associated(y)) return
    call filch_view_of(task, 2, c) ! scratch memory
    if (.not. associated(c)) return
    if (size(c) < 10) return
    c = (1, 2)
    code = 0
  end function

  recursive integer(c_int) function fail(task) bind(c) result(code)
    type(filch_call), intent(in) :: task
    code = filch_fail(task, 41, 'this is the reason')
  end function

  recursive integer(c_int) function block(task) bind(c) result(code)
    type(filch_call), intent(in) :: task
    do while (gate == 0)
      code = filch_job_status(c_null_ptr) ! a call, so that the gate is read again
    end do
    code = merge(0_c_int, 1_c_int, task%view_count == 0)
  end function

  integer(c_int) function is_large(run, value, user) bind(c) result(answer)
    integer(c_int64_t), value :: run
    type(c_ptr), value :: value, user
    real(dp), pointer :: x
    call c_f_pointer(value, x)
    answer = merge(FILCH_REPEAT_STOP, FILCH_REPEAT_AGAIN, x >= 5 .and. run == 5)
    if (c_associated(user)) answer = 9
  end function

  real(c_double) function work(task) bind(c) result(units)
    type(filch_call), intent(in) :: task
    units = real(task%view_count, dp)
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
end module

program check
  use functions
  implicit none
  type(filch_runtime_t) :: runtime
  type(filch_failure_t) :: error
  type(filch_access) :: none(0)
  call runtime%create('host:2@any', error=error)
  call require(error%status == FILCH_OK, 'a runtime')
  call require(runtime%device_count() == 2, 'two devices')
  call test_kinds()
  call test_changes()
  call test_matrices()
  call test_refusals()
  call test_groups()
  call test_temporaries()
  call test_items()
  call test_failures()
  call test_jobs()
  call test_repeat()
  call test_dot()
  call runtime%destroy(error)
  call require(error%status == FILCH_OK, 'destroy')
  call runtime%drain(error=error)
  call expect(error, FILCH_INVALID_HANDLE, 'handle')
  print '(a)', 'check: the module does what it says'
contains

  subroutine take(memory, element, rows, cols)
    type(filch_memory_t), intent(in) :: memory
    integer, intent(in) :: element, rows, cols
    type(filch_data_t) :: data
    call require(memory%element == element .and. memory%rows == rows .and. memory%cols == cols &
                 .and. memory%ld == rows .and. memory%is_regular, 'an array as memory')
    call data%create(runtime, memory, 1)
    call require(data%tile_rows == rows .and. data%tile_cols == 1, 'tiles')
    call data%destroy()
  end subroutine

  subroutine test_kinds()
    real(c_double), target :: r8(3), s8(3, 2)
    real(c_float), target :: r4(3), s4(3, 2)
    complex(c_double_complex), target :: c8(3), d8(3, 2)
    complex(c_float_complex), target :: c4(3), d4(3, 2)
    integer(c_int32_t), target :: i4(3), j4(3, 2)
    integer(c_int64_t), target :: i8(3), j8(3, 2)
    call take(filch_array(r8), 8, 3, 1)
    call take(filch_array(r4), 4, 3, 1)
    call take(filch_array(c8), 16, 3, 1)
    call take(filch_array(c4), 8, 3, 1)
    call take(filch_array(i4), 4, 3, 1)
    call take(filch_array(i8), 8, 3, 1)
    call take(filch_array(s8), 8, 3, 2)
    call take(filch_array(s4), 4, 3, 2)
    call take(filch_array(d8), 16, 3, 2)
    call take(filch_array(d4), 8, 3, 2)
    call take(filch_array(j4), 4, 3, 2)
    call take(filch_array(j8), 8, 3, 2)
    call take(filch_memory(c_loc(r8), c_sizeof(r8(1)), 3), 8, 3, 1)
  end subroutine

  ! Compilers know that tasks change what the caller has assigned.
  subroutine test_changes()
    real(dp), target :: x(1), a(2, 2)
    type(filch_codelet_t) :: code
    type(filch_data_t) :: dx, da
    type(filch_graph_t) :: graph
    call code%create(runtime, 'one_more', one_more)
    call dx%create(runtime, filch_array(x))
    call da%create(runtime, filch_array(a), 1, 1)
    call graph%create(runtime)
    call graph%add(code, [filch_rw(dx)])
    call graph%add(code, [filch_rw(da, 2, 1)])
    x(1) = 10
    a(2, 1) = 70
    call graph%run()
    call require(x(1) == 11 .and. a(2, 1) == 71, 'changed once')
    x(1) = 0
    a(2, 1) = 3
    call graph%run()
    call require(x(1) == 1 .and. a(2, 1) == 4, 'changed twice')
    call graph%destroy()
    call dx%destroy()
    call da%destroy()
  end subroutine

  subroutine test_matrices() ! a part of a matrix, in tiles
    real(dp), target :: a(9, 8), by
    type(filch_codelet_t) :: code, by_ld
    type(filch_data_t) :: data
    type(filch_graph_t) :: graph
    type(filch_access) :: access
    integer :: i, j
    integer(c_int64_t) :: first, second
    a = 0
    call code%create(runtime, 'increase', increase, args_size=c_sizeof(by), work=work)
    call by_ld%create(runtime, 'increase_ld', increase_ld, args_size=c_sizeof(by))
    call data%create(runtime, filch_array(a(2:8, 3:7)), 3, 2, label='part')
    call require(data%tile_rows == 3 .and. data%tile_cols == 3, '3 by 3 tiles')
    call graph%create(runtime)
    do j = 1, 3
      do i = 1, 3
        by = 10*i + j
        call graph%add(code, [filch_rw(data, i, j)], args=c_loc(by), label='tile'//c_null_char, &
                       device=2, priority=1, task=second)
        if (i + j > 2) call graph%edge(first, second)
        first = second
      end do
    end do
    call graph%run()
    call graph%destroy()
    call graph%create(runtime)
    do j = 1, 3
      do i = 1, 3
        by = 10*i + j
        call graph%add(by_ld, [filch_rw(data, i, j)], args=c_loc(by))
      end do
    end do
    call graph%run()
    do j = 1, 8
      do i = 1, 9
        by = 0
        if (i >= 2 .and. i <= 8 .and. j >= 3 .and. j <= 7) &
          by = 2*(10*((i - 2)/3 + 1) + (j - 3)/2 + 1)
        call require(a(i, j) == by, 'the tiles of a part')
      end do
    end do
    call graph%destroy()
    call graph%create(runtime)
    by = 1000
    call graph%add(code, [filch_block(data, FILCH_READWRITE)], args=c_loc(by))
    call graph%add(code, [filch_block(data, FILCH_READWRITE, 2, 2, rows=1, cols=2)], args=c_loc(by))
    call graph%run()
    call require(a(2, 3) == 1022 .and. a(5, 5) == 2044 .and. a(7, 7) == 2046 .and. &
                 a(8, 7) == 1066 .and. a(1, 3) == 0 .and. a(9, 7) == 0, 'blocks of tiles')
    call graph%add(code, [filch_block(data, FILCH_READ, rows=-1)], args=c_loc(by), error=error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'accesses(1): a block has at least 1 row')
    call graph%add(code, [filch_r(data, 1, 1), filch_block(data, FILCH_READ, cols=0)], &
                   args=c_loc(by), error=error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'accesses(2): a block has at least 1 row')
    call graph%add(code, [filch_rw(data, 0, 2)], args=c_loc(by), error=error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'accesses(1): tile (0, 2), but tiles are numbered')
    call graph%add(code, [filch_block(data, FILCH_READ, 2, 1, rows=3)], args=c_loc(by), error=error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'block of 3 x')
    access = filch_tile(data, FILCH_COMMUTE, 2, 3)
    call require(access%row == 1 .and. access%col == 2, 'tiles count from 1')
    call code%create(runtime, 'misuse', misuse)
    call graph%destroy()
    call graph%create(runtime)
    call graph%add(code, [filch_r(data, 1, 1), filch_scratch_of(160_c_size_t)])
    call graph%run()
    call graph%destroy()
    call data%destroy()
  end subroutine

  subroutine test_refusals()
    real(dp), target :: x(10), a(6, 6), by
    type(filch_runtime_t) :: other
    type(filch_codelet_t) :: code
    type(filch_data_t) :: data
    type(filch_graph_t) :: graph
    call data%create(runtime, filch_array(x(1:10:2)), error=error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'not contiguous')
    call data%create(runtime, filch_array(x(10:1:-1)), error=error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'not contiguous')
    call data%create(runtime, filch_array(a(1:5:2, :)), error=error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'not contiguous')
    call data%create(runtime, filch_array(a(:, 1:5:2)), error=error) ! every other column is good
    call expect(error, FILCH_OK, '')
    call data%create(runtime, filch_array(a(:, 6:1:-1)), error=error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'the leading dimension is negative')
    call data%create(runtime, filch_memory(c_loc(a), c_sizeof(by), -3), error=error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'is negative')
    call data%create(runtime, filch_array(a), tile_rows=-3, error=error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'tile_rows is negative')
    call data%create(runtime, filch_array(a), 3, -3, error=error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'tile_cols is negative')
    call graph%create(runtime, open=.true., max_live=-1_c_int64_t, error=error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'max_live is negative')
    call data%create(runtime, filch_array(x(1:0)), error=error)
    call require(error%status == FILCH_INVALID_ARGUMENT, 'an array without elements')
    call data%create(runtime, filch_array(x), tile_rows=11, error=error)
    call require(error%status == FILCH_INVALID_ARGUMENT, 'a tile larger than the array')
    call other%create('hosts', error=error)
    call expect(error, FILCH_PARSE, 'host')
    call code%create(runtime, 'none', error=error)
    call require(error%status == FILCH_INVALID_ARGUMENT, 'a codelet without an implementation')
    call code%create_builtin(runtime, 'gemm', error)
    call require(error%status == FILCH_NOT_FOUND, 'no such kernel')
    call code%create(runtime, 'increase', increase, args_size=c_sizeof(by))
    call data%create(runtime, filch_array(x), tile_rows=5)
    call graph%create(runtime)
    call graph%add(code, [filch_rw(data, 1)], error=error)
    call require(error%status == FILCH_INVALID_ARGUMENT, 'no arguments')
    call graph%add(code, [filch_rw(data, 3)], args=c_loc(by), error=error)
    call require(error%status == FILCH_INVALID_ARGUMENT, 'no such tile')
    call graph%add(code, [filch_rw(data, 1)], args=c_loc(by), label='no end', error=error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'c_null_char')
    call graph%close(error)
    call require(error%status == FILCH_WRONG_STATE, 'a closed graph is not closed')
    call data%reduction(code, code, error)
    call require(error%status == FILCH_INVALID_ARGUMENT, 'codelets with arguments')
    call graph%destroy()
    call data%destroy()
  end subroutine

  subroutine test_groups() ! commuting and reducing tasks, managed data
    real(dp), target :: x(30)
    type(filch_codelet_t) :: neutral, combine, more
    type(filch_data_t) :: data
    type(filch_graph_t) :: graph
    integer :: k
    x = 1
    call neutral%create(runtime, 'zero', zero)
    call combine%create(runtime, 'add', add)
    call more%create(runtime, 'one_more', one_more)
    call data%create(runtime, filch_array(x), tile_rows=10, flags=int(FILCH_DATA_MANAGED))
    call data%reduction(neutral, combine)
    call graph%create(runtime)
    do k = 1, 50
      call graph%add(more, [filch_tile(data, FILCH_REDUCE, 1)])
      call graph%add(more, [filch_tile(data, FILCH_COMMUTE, 3)])
    end do
    call graph%run()
    call data%acquire(FILCH_READ)
    call require(all(x(:10) == 51) .and. all(x(11:20) == 1) .and. all(x(21:) == 51), 'sums')
    call graph%run(error)
    call require(error%status == FILCH_BUSY, 'the host has the data')
    call data%release()
    call data%destroy(error)
    call require(error%status == FILCH_BUSY, 'the graph has the data')
    call graph%destroy()
    call data%destroy()
  end subroutine

  subroutine test_temporaries()
    real(dp), target :: x(10)
    type(filch_codelet_t) :: begins, more, sum
    type(filch_data_t) :: data, steps
    type(filch_graph_t) :: graph
    integer :: k
    x = 1
    call begins%create(runtime, 'zero', zero)
    call more%create(runtime, 'one_more', one_more)
    call sum%create(runtime, 'add', add)
    call data%create(runtime, filch_array(x))
    call steps%create(runtime, filch_memory(c_null_ptr, 8_c_size_t, 20), tile_rows=10, &
                      flags=int(FILCH_DATA_TEMPORARY), label='steps')
    call graph%create(runtime)
    call graph%add(more, [filch_rw(steps, 2)], error=error)
    call expect(error, FILCH_WRONG_STATE, 'a temporary')
    do k = 1, 2
      call graph%add(begins, [filch_w(steps, 2)])
      call graph%add(more, [filch_rw(steps, 2)])
      call graph%add(sum, [filch_rw(data, 1), filch_r(steps, 2)])
      call graph%discard(steps)
    end do
    call graph%run()
    call graph%run()
    call require(all(x == 5), 'temporaries')
    call graph%discard(data, error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'is not a temporary')
    call steps%acquire(FILCH_READ, error)
    call expect(error, FILCH_UNSUPPORTED, 'a temporary')
    call graph%destroy()
    call steps%destroy()
    call data%destroy()
  end subroutine

  subroutine test_items() ! batches and divisible tasks
    integer(c_int32_t), target :: x(1000)
    type(filch_codelet_t) :: code
    type(filch_data_t) :: data
    type(filch_graph_t) :: graph
    type(filch_job_t) :: job
    type(filch_job_info) :: info
    integer(c_int64_t), parameter :: n = 1000, grain = 7
    integer :: i
    call code%create(runtime, 'number', number)
    call data%create(runtime, filch_array(x))
    x = 0
    call runtime%run_batch(code, n, [filch_items(data, FILCH_WRITE)], grain=grain)
    call require(all(x == [(i, i=1, 1000)]), 'items of a batch')
    x = 0
    call runtime%submit_batch(job, code, n, [filch_items(data, FILCH_WRITE)])
    call job%wait()
    call job%info(info)
    call require(info%total == n .and. info%done == n, 'totals')
    call job%release()
    call require(all(x == [(i, i=1, 1000)]), 'items of a job')
    x = 0
    call graph%create(runtime)
    call graph%add(code, [filch_rw(data)], items=n, grain=grain)
    call graph%run()
    call require(all(x == [(i, i=1, 1000)]), 'items of a task')
    call runtime%run_batch(code, n, [filch_items(data, FILCH_WRITE, scale=2_c_int64_t)], &
                           error=error)
    call require(error%status == FILCH_INVALID_ARGUMENT, 'elements outside the handle')
    call graph%destroy()
    call data%destroy()
  end subroutine

  subroutine test_failures()
    type(filch_codelet_t) :: code
    type(filch_graph_t) :: graph
    type(filch_job_t) :: job
    call code%create(runtime, 'fail', fail)
    call graph%create(runtime)
    call graph%add(code, none, label='here'//c_null_char)
    call graph%run(error)
    call expect(error, FILCH_TASK_FAILED, 'this is the reason')
    call require(error%code == 41 .and. error%label == 'here' .and. error%device(:5) == 'host:', &
                 'code, label and device')
    call graph%submit(job)
    call job%wait(error=error)
    call expect(error, FILCH_TASK_FAILED, 'this is the reason')
    call job%release()
    call graph%destroy()
  end subroutine

  subroutine test_repeat()
    type(filch_codelet_t) :: code
    type(filch_data_t) :: data
    type(filch_graph_t) :: graph
    type(filch_job_t) :: job
    type(filch_repeat_desc) :: until
    real(dp), target :: x(1)
    x = 0
    call code%create(runtime, 'one_more', one_more)
    call data%create(runtime, filch_array(x))
    call graph%create(runtime)
    call graph%add(code, [filch_rw(data, 1)])
    until%predicate = c_funloc(is_large)
    until%value = c_loc(x)
    until%value_bytes = int(c_sizeof(x), c_int32_t)
    call graph%repeat(until, job)
    call job%wait()
    call job%release()
    call require(x(1) == 5, 'five runs')
    until%lag = 2
    call graph%repeat(until, job, error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'lag is over 1')
    call graph%destroy()
    call data%destroy()
  end subroutine

  subroutine test_dot()
    type(filch_graph_t) :: graph
    character(len=20) :: line
    integer :: unit
    call graph%create(runtime)
    call graph%write_dot('check-graph.dot')
    open (newunit=unit, file='check-graph.dot', status='old')
    read (unit, '(a)') line
    close (unit, status='delete')
    call require(line(1:8) == 'digraph ', 'a graph for Graphviz')
    call graph%write_dot('nowhere/graph.dot', error)
    call expect(error, FILCH_IO, 'nowhere/graph.dot')
    call graph%destroy()
  end subroutine

  subroutine test_jobs()
    type(filch_codelet_t) :: code
    type(filch_graph_t) :: graph
    type(filch_job_t) :: job
    type(filch_device_info) :: info
    integer(c_int) :: status
    call code%create(runtime, 'block', block)
    call graph%create(runtime, open=.true., max_live=2_c_int64_t)
    call graph%submit(job)
    call graph%add(code, none)
    call graph%wait_below(2_c_int64_t)
    call graph%wait_below(1_c_int64_t, 0.0_dp, error)
    call require(error%status == FILCH_TIMEOUT, 'a task is live')
    call graph%wait_below(0_c_int64_t, error=error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'count is 0')
    call graph%wait_below(-1_c_int64_t, error=error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'count is negative')
    call job%wait(0.0_dp, error)
    call require(error%status == FILCH_TIMEOUT, 'the job runs')
    call runtime%drain(0.0_dp, error)
    call require(error%status == FILCH_TIMEOUT, 'a job runs')
    call runtime%destroy(error)
    call expect(error, FILCH_BUSY, 'running')
    call job%cancel()
    gate = 1
    call graph%close()
    call job%wait(error=error)
    status = job%status()
    call require(status == FILCH_OK .or. status == FILCH_CANCELLED, 'the end')
    call job%release(error)
    call graph%destroy()
    call runtime%device(2, info)
    call require(info%index == 1 .and. info%name(1) == 'h', 'the second device')
    call runtime%device(3, info, error)
    call require(error%status == FILCH_BAD_INDEX, 'no third device')
  end subroutine
end program
