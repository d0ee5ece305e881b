! SPDX-License-Identifier: Apache-2.0
! The code of docs/fortran.md, beside the programs of its own.
module functions
  use filch
  implicit none
  type(filch_pending_t), volatile :: pending(4)
  logical, volatile :: is_taken(4) = .false.
contains
  recursive integer(c_int) function axpy(task) bind(c) result(code)
    type(filch_call), intent(in) :: task
    real(c_double), pointer :: x(:), y(:), a
    call filch_view_of(task, 1, x)
    call filch_view_of(task, 2, y)
    call c_f_pointer(task%args, a)
    y = y + a*x
    code = 0
  end function

  recursive integer(c_int) function root(task) bind(c) result(code)
    type(filch_call), intent(in) :: task
    real(c_double), pointer :: x(:)
    call filch_view_of(task, 1, x)
    if (any(x < 0)) then
      code = filch_fail(task, 3, 'a negative number')
      return
    end if
    x = sqrt(x)
    code = 0
  end function

  recursive integer(c_int) function receive(task) bind(c) result(code)
    type(filch_call), intent(in) :: task
    type(filch_pending_t) :: mine
    integer, pointer :: tag
    call c_f_pointer(task%args, tag)
    call mine%take(task)
    call start_receive(task, tag, mine) ! another thread will find the request done
    code = FILCH_PENDING_VALUE
  end function

  ! Stands for a library that receives messages.
  recursive subroutine start_receive(task, tag, mine)
    type(filch_call), intent(in) :: task
    integer, intent(in) :: tag
    type(filch_pending_t), intent(in) :: mine
    real(c_double), pointer :: x(:)
    call filch_view_of(task, 1, x)
    x = tag
    pending(tag) = mine
    is_taken(tag) = .true.
  end subroutine

  recursive integer(c_int) function search(task) bind(c) result(code)
    type(filch_call), intent(in) :: task
    real(c_double), pointer :: x(:)
    call filch_view_of(task, 1, x)
    if (any(x == 700)) call filch_finish(task) ! the rest of the job is skipped
    code = 0
  end function

  integer(c_int) function open_space(runtime, device, user, state) bind(c) result(code)
    type(c_ptr), value :: runtime, user
    integer(c_int32_t), value :: device
    type(c_ptr), intent(inout) :: state
    real(c_double), pointer :: space(:)
    code = merge(0, 1, c_associated(runtime) .and. .not. c_associated(user) .and. device >= 0)
    allocate (space(250))
    state = c_loc(space)
  end function

  subroutine close_space(device, user, state) bind(c)
    integer(c_int32_t), value :: device
    type(c_ptr), value :: user, state
    real(c_double), pointer :: space(:)
    call c_f_pointer(state, space, [250])
    deallocate (space)
    if (device < 0 .or. c_associated(user)) error stop 'another device'
  end subroutine

  recursive integer(c_int) function reverse(task) bind(c) result(code)
    type(filch_call), intent(in) :: task
    real(c_double), pointer :: x(:), space(:)
    call filch_view_of(task, 1, x)
    call c_f_pointer(task%state, space, [250])
    space = x
    x = space(250:1:-1)
    code = 0
  end function

  recursive integer(c_int) function smooth(task) bind(c) result(code)
    type(filch_call), intent(in) :: task
    real(c_double), pointer :: x(:), y(:)
    integer(c_int64_t) :: i, above
    call filch_view_of(task, 1, x) ! begins an element before, but at the edge
    call filch_view_of(task, 2, y)
    above = filch_rows_above(task, 1)
    do i = max(task%lo + 1, 2_c_int64_t), min(task%hi, 999_c_int64_t)
      y(i - task%lo) = (x(i - 1 - above) + x(i + 1 - above))/2
    end do
    code = 0
  end function

  recursive integer(c_int) function smooth_tile(task) bind(c) result(code)
    type(filch_call), intent(in) :: task
    real(c_double), pointer :: x(:), y(:)
    integer :: j, k
    call filch_view_of(task, 1, x) ! begins an element before, but at the edge
    call filch_view_of(task, 2, y)
    do j = 1, size(y)
      k = j + int(filch_rows_above(task, 2) - filch_rows_above(task, 1))
      y(j) = (x(max(k - 1, 1)) + x(min(k + 1, size(x))))/2
    end do
    code = 0
  end function

  recursive integer(c_int) function multiply(task) bind(c) result(code) ! A; y; some of x
    type(filch_call), intent(in) :: task
    integer, pointer :: starts(:), columns(:)
    real(c_double), pointer :: values(:), x(:), y(:)
    integer :: i, k, above
    call filch_csr_pointers(task, 1, starts)
    call filch_csr_columns(task, 1, columns)
    call filch_csr_values(task, 1, values)
    call filch_view_of(task, 2, y)
    call filch_view_of(task, 3, x)
    above = int(filch_rows_above(task, 3))
    do i = 1, size(y)
      y(i) = 0
      do k = starts(i), starts(i + 1) - 1
        y(i) = y(i) + values(k)*x(columns(k) - above)
      end do
    end do
    code = 0
  end function

  subroutine begin(x, y)
    real(c_double), intent(inout), target :: x(:), y(:)
    type(filch_runtime_t) :: runtime
    type(filch_codelet_t) :: code
    type(filch_data_t) :: dx, dy
    type(filch_graph_t) :: graph
    real(c_double), target :: a
    integer :: i
    a = 2
    call runtime%create('host') ! as FILCH_DEVICES would have it
    call code%create(runtime, 'axpy', axpy, args_size=c_sizeof(a))
    call dx%create(runtime, filch_array(x), tile_rows=250)
    call dy%create(runtime, filch_array(y), tile_rows=250)
    call graph%create(runtime)
    do i = 1, dx%tile_rows
      call graph%add(code, [filch_r(dx, i), filch_rw(dy, i)], args=c_loc(a))
    end do
    call graph%run() ! as often as wanted
    call runtime%destroy() ! and all that was made from it
  end subroutine

  subroutine failures(runtime, dx)
    type(filch_runtime_t), intent(in) :: runtime
    type(filch_data_t), intent(in) :: dx
    type(filch_graph_t) :: graph
    type(filch_codelet_t) :: code
    type(filch_failure_t) :: error
    call code%create(runtime, 'root', root)
    call graph%create(runtime)
    call graph%add(code, [filch_rw(dx, 1)])
    call graph%run(error)
    if (error%status == FILCH_TASK_FAILED) print *, error%text, error%code
    if (error%code /= 3) error stop 'the code of the task'
  end subroutine

  subroutine batches(runtime, dx, dy)
    type(filch_runtime_t), intent(in) :: runtime
    type(filch_data_t), intent(in) :: dx, dy
    type(filch_codelet_t) :: code
    integer(c_int64_t), parameter :: n = 1000, one = 1
    call code%create(runtime, 'smooth', smooth)
    call runtime%run_batch(code, n, [filch_items(dx, FILCH_READ, before=one, after=one), &
                                     filch_items(dy, FILCH_READWRITE)], grain=50_c_int64_t)
  end subroutine

  subroutine halos(runtime, dx, dy)
    type(filch_runtime_t), intent(in) :: runtime
    type(filch_data_t), intent(in) :: dx, dy
    type(filch_codelet_t) :: code
    type(filch_graph_t) :: graph
    type(filch_halo), target :: halo
    integer :: i
    call code%create(runtime, 'smooth_tile', smooth_tile)
    call graph%create(runtime)
    halo = filch_halo(rows_before=1, rows_after=1) ! and cols_before=, cols_after=
    do i = 1, dx%tile_rows
      call graph%add(code, [filch_r_halo(dx, halo, i), filch_w(dy, i)])
    end do
    call graph%run()
  end subroutine

  ! Differences of neighbours in a circle, by a sparse matrix.
  subroutine sparse(runtime, x, y)
    type(filch_runtime_t), intent(in) :: runtime
    type(filch_data_t), intent(in) :: x, y
    integer, target :: starts(1001), columns(2000)
    real(c_double), target :: values(2000)
    type(filch_data_t) :: a
    type(filch_csr_block) :: block
    type(filch_codelet_t) :: code
    type(filch_graph_t) :: graph
    integer :: i
    starts = [(2*i - 1, i=1, 1001)]
    columns = [(i, mod(i, 1000) + 1, i=1, 1000)]
    values = [(-1, 1, i=1, 1000)]
    call code%create(runtime, 'multiply', multiply)
    call graph%create(runtime)
    call a%create_csr(runtime, filch_array(starts), filch_array(columns), filch_array(values), &
                      cols=1000, tile_rows=250)
    do i = 1, a%tile_rows
      call a%row_block(i, block) ! its columns are in some tiles of x
      call graph%add(code, [filch_r(a, i), filch_w(y, i), &
                            filch_block(x, FILCH_READ, int(block%block_lo) + 1, &
                                        rows=int(block%block_hi - block%block_lo))])
    end do
    call graph%run()
  end subroutine

  subroutine received(runtime, dx)
    type(filch_runtime_t), intent(in) :: runtime
    type(filch_data_t), intent(in) :: dx
    type(filch_codelet_t) :: code
    type(filch_graph_t) :: graph
    type(filch_job_t) :: job
    type(filch_pending_t) :: one
    integer, target :: tags(4) = [1, 2, 3, 4]
    integer :: i
    call code%create(runtime, 'receive', receive, args_size=c_sizeof(tags(1)), &
                     flags=int(FILCH_CODELET_MAY_PEND))
    call graph%create(runtime)
    do i = 1, dx%tile_rows
      call graph%add(code, [filch_w(dx, i)], args=c_loc(tags(i)))
    end do
    call graph%submit(job)
    do i = 1, 4
      do while (.not. is_taken(i))
      end do
      one = pending(i)
      call one%end() ! or call one%end(3, 'the message is too long')
    end do
    call job%wait()
    call job%release()
  end subroutine

  subroutine searched(runtime, dx)
    type(filch_runtime_t), intent(in) :: runtime
    type(filch_data_t), intent(in) :: dx
    type(filch_codelet_t) :: code
    type(filch_graph_t) :: graph
    type(filch_task_t) :: tasks(4)
    integer :: i
    call code%create(runtime, 'search', search)
    call graph%create(runtime)
    tasks = [(filch_task_of(code, [filch_r(dx, i)]), i=1, 4)]
    call graph%add_many(tasks)
    call graph%run()
  end subroutine

  subroutine reversed(runtime, dx)
    type(filch_runtime_t), intent(in) :: runtime
    type(filch_data_t), intent(in) :: dx
    type(filch_codelet_t) :: code
    type(filch_graph_t) :: graph
    integer :: i
    call code%create(runtime, 'reverse', reverse, open=open_space, close=close_space)
    call graph%create(runtime)
    do i = 1, dx%tile_rows
      call graph%add(code, [filch_rw(dx, i)])
    end do
    call graph%run()
  end subroutine

  subroutine in_other_tiles(runtime, a, rows, columns)
    type(filch_runtime_t), intent(in) :: runtime
    real(c_double), intent(inout), target :: a(:, :)
    type(filch_codelet_t), intent(in) :: rows, columns
    type(filch_data_t) :: da, parts
    type(filch_graph_t) :: graph
    integer :: i
    call da%create(runtime, filch_array(a), tile_rows=5, tile_cols=10)
    call parts%create_partition(da, tile_rows=10, tile_cols=1)
    call graph%create(runtime)
    do i = 1, da%tile_rows
      call graph%add(rows, [filch_rw(da, i)])
    end do
    call graph%partition(da, parts)
    do i = 1, parts%tile_cols
      call graph%add(columns, [filch_rw(parts, 1, i)])
    end do
    call graph%unpartition(da, parts)
    call graph%run()
  end subroutine

  recursive integer(c_int) function double_it(task) bind(c) result(code)
    type(filch_call), intent(in) :: task
    real(c_double), pointer :: x(:, :)
    call filch_view_of(task, 1, x)
    x = 2*x
    code = 0
  end function

  subroutine report(runtime, dx)
    type(filch_runtime_t), intent(in) :: runtime
    type(filch_data_t), intent(in) :: dx
    type(filch_codelet_t) :: code
    type(filch_graph_t) :: graph
    type(filch_job_t) :: job
    character(:), allocatable :: text
    call code%create(runtime, 'search', search)
    call graph%create(runtime)
    call runtime%trace_start()
    call graph%add(code, [filch_r(dx, 1)])
    call graph%submit(job)
    call job%wait()
    call job%report_text(text, graph)
    print '(a)', text ! where the time went
    call runtime%report_write('tour-report.html') ! for a browser: all jobs since trace_start()
    call job%release()
  end subroutine

  subroutine held(dx, x)
    type(filch_data_t), intent(in) :: dx
    real(c_double), intent(in) :: x(:)
    type(filch_hold_t) :: hold
    call dx%acquire_tiles(hold, FILCH_READ, 2, rows=2) ! behind the jobs so far
    print *, sum(x(251:750))
    call hold%release()
  end subroutine

  subroutine jobs(runtime, dx)
    type(filch_runtime_t), intent(in) :: runtime
    type(filch_data_t), intent(in) :: dx
    type(filch_graph_t) :: graph
    type(filch_job_t) :: job
    type(filch_codelet_t) :: code
    integer :: i
    call code%create(runtime, 'root', root)
    call graph%create(runtime, open=.true.)
    call graph%submit(job)
    do i = 1, dx%tile_rows ! tasks may run at once
      call graph%add(code, [filch_rw(dx, i)])
    end do
    call graph%close()
    call job%wait() ! or call job%wait(seconds, error)
    call job%release()
  end subroutine
end module

program tour
  use functions
  implicit none
  type(filch_runtime_t) :: runtime
  type(filch_data_t) :: dx, dy
  type(filch_codelet_t) :: rows
  real(c_double), target :: x(1000), y(1000), a(10, 10)
  integer :: i, k
  x = [(i, i=1, 1000)]
  y = 0
  call begin(x, y)
  if (any(y /= 2*x)) error stop 'axpy'
  call runtime%create('host:2')
  call dx%create(runtime, filch_array(x), tile_rows=250)
  call dy%create(runtime, filch_array(y), tile_rows=250)
  call batches(runtime, dx, dy)
  if (any(y(2:999) /= x(2:999))) error stop 'smooth'
  y = 0
  call halos(runtime, dx, dy)
  if (any(y /= [1.5_c_double, x(2:999), 999.5_c_double])) error stop 'halos'
  call sparse(runtime, dx, dy)
  if (any(y /= [(1, i=1, 999), -999])) error stop 'sparse'
  call received(runtime, dy)
  if (any(y /= [((i, k=1, 250), i=1, 4)])) error stop 'received'
  call searched(runtime, dx)
  call reversed(runtime, dx)
  if (x(1) /= 250 .or. x(1000) /= 751) error stop 'reversed'
  call reversed(runtime, dx)
  call rows%create(runtime, 'double_it', double_it)
  a = 1
  call in_other_tiles(runtime, a, rows, rows)
  if (any(a /= 4)) error stop 'in other tiles'
  call report(runtime, dx)
  open (newunit=k, file='tour-report.html', status='old')
  close (k, status='delete')
  call held(dx, x)
  call jobs(runtime, dx)
  if (any(x /= [(sqrt(real(i, c_double)), i=1, 1000)])) error stop 'root'
  x(7) = -1
  call failures(runtime, dx)
  call runtime%destroy()
end program
