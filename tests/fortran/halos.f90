! SPDX-License-Identifier: Apache-2.0
! Halos of tiles that tasks read: what a function sees, where that begins, and what is refused.
module functions
  use filch
  implicit none
  integer, parameter :: dp = c_double
  integer, parameter :: REACH = 2
  ! What look() saw: rows above, columns to the left, rows, columns, first and last element.
  integer :: seen(6)
contains
  recursive integer(c_int) function look(task) bind(c) result(code)
    type(filch_call), intent(in) :: task
    integer(c_int32_t), pointer :: x(:, :)
    call filch_view_of(task, 1, x)
    code = 1
    if (filch_cols_left(task, 0) /= 0 .or. filch_cols_left(task, 2) /= 0) return
    seen = [int(filch_rows_above(task, 1)), int(filch_cols_left(task, 1)), shape(x), x(1, 1), &
            x(size(x, 1), size(x, 2))]
    code = 0
  end function

  ! v: means of u within reach. u begins with a halo, but at the edge.
  recursive integer(c_int) function smooth(task) bind(c) result(code)
    type(filch_call), intent(in) :: task
    real(dp), pointer :: u(:), v(:)
    integer :: i, at, above
    call filch_view_of(task, 1, u)
    call filch_view_of(task, 2, v)
    above = int(filch_rows_above(task, 2) - filch_rows_above(task, 1))
    do i = 1, size(v)
      at = above + i
      v(i) = mean(u(max(at - REACH, 1):min(at + REACH, size(u))))
    end do
    code = 0
  end function

  pure recursive function mean(of) result(value)
    real(dp), intent(in) :: of(:)
    real(dp) :: value
    value = sum(of)/size(of)
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

program halos
  use functions
  implicit none
  type(filch_runtime_t) :: runtime
  type(filch_failure_t) :: error
  call runtime%create('host:2@any')
  call test_views()
  call test_smoothing()
  call test_refusals()
  call runtime%destroy()
  print '(a)', 'halos: views, a smoothing, refusals'
contains

  ! Every tile, and the block from there to the end, of the inner part of a matrix.
  subroutine test_views()
    integer(c_int32_t), target :: a(12, 9)
    type(filch_data_t) :: data
    type(filch_codelet_t) :: code
    type(filch_halo), target :: around(7)
    integer :: i, j, k
    a = reshape([(i, i=1, size(a))], shape(a))
    around = [filch_halo(), filch_halo(1, 0, 0, 0), filch_halo(0, 1, 0, 0), filch_halo(0, 0, 1, 0), &
              filch_halo(0, 0, 0, 1), filch_halo(4, 1, 3, 9), &
              filch_halo(huge(0_c_int64_t), huge(0_c_int64_t), 2, 2)]
    call code%create(runtime, 'look', look)
    call data%create(runtime, filch_array(a(2:11, 2:8)), tile_rows=3, tile_cols=2)
    call require(data%tile_rows == 4 .and. data%tile_cols == 4, '4 by 4 tiles')
    do k = 1, size(around)
      do j = 1, 4
        do i = 1, 4
          call view(a, data, code, around(k), i, j)
          call view(a, data, code, around(k), i, j, 5 - i, 5 - j)
        end do
      end do
    end do
    call data%destroy()
  end subroutine

  subroutine view(a, data, code, around, i, j, rows, cols)
    integer(c_int32_t), intent(in) :: a(:, :)
    type(filch_data_t), intent(in) :: data
    type(filch_codelet_t), intent(in) :: code
    type(filch_halo), intent(in), target :: around
    integer, intent(in) :: i, j
    integer, intent(in), optional :: rows, cols
    type(filch_graph_t) :: graph
    integer :: top, left, bottom, right ! of what is seen; from 1, within the part
    bottom = 3*i
    right = 2*j
    if (present(rows)) bottom = 3*(i + rows - 1)
    if (present(cols)) right = 2*(j + cols - 1)
    top = int(max(3*i - 2 - around%rows_before, 1_c_int64_t))
    left = int(max(2*j - 1 - around%cols_before, 1_c_int64_t))
    bottom = int(min(bottom, 10) + min(around%rows_after, int(10 - min(bottom, 10), c_int64_t)))
    right = int(min(right, 7) + min(around%cols_after, int(7 - min(right, 7), c_int64_t)))
    seen = -1
    call graph%create(runtime)
    call graph%add(code, [filch_r_halo(data, around, i, j, rows, cols)])
    call graph%run()
    call graph%destroy()
    call require(all(seen == [top - 1, left - 1, bottom - top + 1, right - left + 1, &
                              a(top + 1, left + 1), a(bottom + 1, right + 1)]), 'a view')
  end subroutine

  ! Sweeps, against a loop: one halo for all tasks, the last tile smaller than it.
  subroutine test_smoothing()
    real(dp), target :: x(64), y(64)
    real(dp) :: expected(64)
    type(filch_data_t) :: data(0:1)
    type(filch_codelet_t) :: code
    type(filch_graph_t) :: graph
    type(filch_halo), target :: around
    integer :: i, k, sweep
    x = [(real(mod(i*i, 17), dp), i=1, size(x))]
    y = 0
    expected = x
    around%rows_before = REACH
    around%rows_after = REACH
    call code%create(runtime, 'smooth', smooth)
    call data(0)%create(runtime, filch_array(x), tile_rows=9)
    call data(1)%create(runtime, filch_array(y), tile_rows=9)
    call graph%create(runtime)
    do sweep = 0, 5
      associate (from => data(mod(sweep, 2)), into => data(mod(sweep + 1, 2)))
        do k = 1, from%tile_rows
          call graph%add(code, [filch_r_halo(from, around, k), filch_w(into, k)])
        end do
      end associate
      expected = [(mean(expected(max(i - REACH, 1):min(i + REACH, size(x)))), i=1, size(x))]
    end do
    around = filch_halo(100, 100, 100, 100) ! copied by then
    call graph%run()
    call require(all(abs(x - expected) < 1e-12_dp), 'the smoothing')
    call graph%destroy()
    call data(0)%destroy()
    call data(1)%destroy()
  end subroutine

  subroutine test_refusals()
    real(dp), target :: x(9)
    type(filch_data_t) :: data, temporary
    type(filch_codelet_t) :: code
    type(filch_graph_t) :: graph
    type(filch_access) :: access
    type(filch_halo), target :: one, wrong(4)
    type(filch_halo), pointer :: none
    integer :: k
    one = filch_halo(1, 1, 0, 0)
    call code%create(runtime, 'look', look)
    call data%create(runtime, filch_array(x), tile_rows=3)
    call graph%create(runtime)
    access = filch_r_halo(data, one, 2)
    access%mode = FILCH_WRITE
    call graph%add(code, [access], error=error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'access 0: only what is read has a halo')
    wrong = [filch_halo(-1, 0, 0, 0), filch_halo(0, -1, 0, 0), filch_halo(0, 0, -1, 0), &
             filch_halo(0, 0, 0, -1)]
    do k = 1, 4
      call graph%add(code, [filch_r(data, 1), filch_r_halo(data, wrong(k), 2)], error=error)
      call expect(error, FILCH_INVALID_ARGUMENT, 'accesses(2): a number of the halo is negative')
    end do
    call graph%add(code, [filch_r_halo(data, one, 0)], error=error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'accesses(1): tile (0, 1), but tiles are numbered')
    call graph%add(code, [filch_r_halo(data, one, 1, rows=0)], error=error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'accesses(1): a block has at least 1 row')
    call graph%add(code, [filch_r_halo(data, one, 2, rows=3)], error=error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'block of 3 x')
    call graph%add(code, [filch_r_halo(data, one, 2), filch_w(data, 3)], error=error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'one to write it')
    call temporary%create(runtime, filch_memory(c_null_ptr, 8_c_size_t, 9), tile_rows=3, &
                          flags=int(FILCH_DATA_TEMPORARY), label='t')
    call graph%add(code, [filch_r_halo(temporary, one, 2)], error=error)
    call expect(error, FILCH_UNSUPPORTED, 'a halo of several tiles of ''t''')
    nullify(none)
    access = filch_r_halo(data, none, 2)
    call require(.not. c_associated(access%halo), 'no halo')
    call graph%destroy()
    call temporary%destroy()
    call data%destroy()
  end subroutine
end program
