! SPDX-License-Identifier: Apache-2.0
! Sparse matrices in Fortran: products by blocks, changes of values, refusals.
module kernels
  use filch
  implicit none
  integer, parameter :: dp = c_double
contains
  ! y := A x for a row block; all of x.
  recursive integer(c_int) function multiply(task) bind(c) result(code)
    type(filch_call), intent(in) :: task
    integer(c_int32_t), pointer :: starts(:), columns(:)
    real(dp), pointer :: values(:), x(:), y(:)
    integer :: i, k
    code = 1
    call filch_csr_pointers(task, 1, starts)
    call filch_csr_columns(task, 1, columns)
    call filch_csr_values(task, 1, values)
    call filch_view_of(task, 2, x)
    call filch_view_of(task, 3, y)
    if (starts(1) /= 1 .or. size(starts) /= size(y) + 1) return
    do i = 1, size(y)
      y(i) = 0
      do k = starts(i), starts(i + 1) - 1
        y(i) = y(i) + values(k)*x(columns(k))
      end do
    end do
    code = 0
  end function

  ! Values become their rows' numbers in the matrix. Pointers of 8 bytes, counted from 0.
  recursive integer(c_int) function number(task) bind(c) result(code)
    type(filch_call), intent(in) :: task
    type(filch_csr_block) :: block
    integer(c_int64_t), pointer :: starts(:)
    integer(c_int32_t), pointer :: wrong(:)
    real(c_float), pointer :: values(:)
    real(dp), pointer :: wide(:)
    integer(c_int64_t) :: i, k
    code = 1
    block = filch_csr_of(task, 1)
    call filch_csr_pointers(task, 1, wrong) ! 4 bytes
    if (associated(wrong)) return
    call filch_csr_columns(task, 2, wrong) ! no such access
    if (associated(wrong)) return
    call filch_csr_values(task, 1, wide) ! 8 bytes
    if (associated(wide)) return
    call filch_csr_pointers(task, 1, starts)
    call filch_csr_values(task, 1, values)
    if (starts(1) /= 0 .or. block%base /= 0) return
    do i = 1, block%rows
      do k = starts(i) + 1, starts(i + 1)
        values(k) = real(block%row + i)
      end do
    end do
    code = 0
  end function

  ! A dense view is no row block.
  recursive integer(c_int) function dense(task) bind(c) result(code)
    type(filch_call), intent(in) :: task
    type(filch_csr_block) :: block
    real(dp), pointer :: values(:)
    block = filch_csr_of(task, 1)
    call filch_csr_values(task, 1, values)
    code = merge(0, 1, block%size == 0 .and. .not. associated(values))
  end function
end module

program csr
  use kernels
  implicit none
  type(filch_runtime_t) :: runtime
  type(filch_codelet_t) :: multiplies, numbers, denses
  integer, parameter :: n = 37
  integer, target :: starts(n + 1), columns(3*n)
  real(dp), target :: values(3*n), x(n), y(n), expected(n)
  call runtime%create('host:2@any')
  call multiplies%create(runtime, 'multiply', multiply)
  call numbers%create(runtime, 'number', number)
  call denses%create(runtime, 'dense', dense)
  call make()
  call test_product()
  call test_values()
  call test_refusals()
  call runtime%destroy()
  print '(a)', 'csr: products, values, refusals'
contains
  subroutine require(is_good, what)
    logical, intent(in) :: is_good
    character(*), intent(in) :: what
    if (.not. is_good) error stop what
  end subroutine

  subroutine expect(error, status, part)
    type(filch_failure_t), intent(in) :: error
    integer, intent(in) :: status
    character(*), intent(in) :: part
    if (error%status == status) then
      if (index(error%text, part) /= 0) return
      print '(a)', error%text
    end if
    error stop part
  end subroutine

  ! Row i has mod(i, 4) entries from column i on.
  subroutine make()
    integer :: i, k, count
    count = 0
    do i = 1, n
      starts(i) = count + 1
      x(i) = i - 5
      expected(i) = 0
      do k = 1, mod(i, 4)
        count = count + 1
        columns(count) = mod(i + k, n) + 1
        values(count) = 10*i + k
        expected(i) = expected(i) + values(count)*(columns(count) - 5)
      end do
    end do
    starts(n + 1) = count + 1
  end subroutine

  subroutine multiply_by(a)
    type(filch_data_t), intent(in) :: a
    type(filch_data_t) :: dx, dy
    type(filch_graph_t) :: graph
    type(filch_csr_block) :: block
    integer :: i, height, rows
    call a%row_block(1, block)
    height = int(block%rows)
    call dx%create(runtime, filch_array(x))
    call dy%create(runtime, filch_array(y), tile_rows=height)
    call graph%create(runtime)
    rows = 0
    do i = 1, a%tile_rows
      call a%row_block(i, block)
      call require(block%row == rows .and. .not. c_associated(block%values), 'blocks')
      rows = rows + int(block%rows)
      call graph%add(multiplies, [filch_r(a, i), filch_r(dx), filch_w(dy, i)])
    end do
    call require(rows == n, 'rows')
    y = -1
    call graph%run()
    call require(all(y == expected), 'the product')
    call graph%destroy()
    call dx%destroy()
    call dy%destroy()
  end subroutine

  subroutine test_product()
    type(filch_data_t) :: a
    integer :: entries
    entries = starts(n + 1) - 1
    call a%create_csr(runtime, filch_array(starts), filch_array(columns(:entries)), &
                      filch_array(values(:entries)), cols=n, tile_rows=5, label='A')
    call require(a%tile_rows == 8 .and. a%tile_cols == 1, 'the number of blocks')
    call multiply_by(a)
    call a%destroy()
    call a%create_csr(runtime, filch_array(starts), filch_array(columns(:entries)), &
                      filch_array(values(:entries)), cols=n)
    call require(a%tile_rows == 1, 'one block')
    call multiply_by(a)
    call a%destroy()
  end subroutine

  subroutine test_values()
    type(filch_data_t) :: a, dx
    type(filch_graph_t) :: graph
    type(filch_view) :: view
    type(filch_csr_block) :: block
    integer(c_int64_t), target :: pointers(4) = [0, 2, 2, 3]
    integer, target :: ends(3) = [0, 4, 1]
    real(c_float), target :: ones(3) = 1
    real(c_float), pointer :: changed(:)
    call a%create_csr(runtime, filch_array(pointers), filch_array(ends), filch_array(ones), &
                      cols=5, base=0, row_cuts=[2_c_int64_t, 1_c_int64_t])
    call dx%create(runtime, filch_array(x))
    call graph%create(runtime)
    call graph%add(numbers, [filch_rw(a, 1)])
    call graph%add(numbers, [filch_tile(a, FILCH_COMMUTE, 2)])
    call graph%add(denses, [filch_r(dx)])
    call graph%run()
    call a%acquire(FILCH_READ)
    call require(filch_data_view(a%handle, 1_c_int32_t, 0_c_int32_t, view) == FILCH_OK, 'a view')
    call require(filch_csr_view(c_null_ptr, view, block) == FILCH_OK, 'a block')
    call c_f_pointer(block%values, changed, [block%nnz])
    call require(size(changed) == 1 .and. changed(1) == 3 .and. all(ones == 1), 'values')
    call a%release()
    call graph%destroy()
    call dx%destroy()
    call a%destroy()
  end subroutine

  subroutine test_refusals()
    type(filch_data_t) :: a
    type(filch_graph_t) :: graph
    type(filch_failure_t) :: error
    type(filch_csr_block) :: block
    integer, target :: pointers(3) = [1, 3, 4], ends(3) = [1, 2, 3], none(0)
    real(dp), target :: ones(3) = 1
    call a%create_csr(runtime, filch_array(pointers), filch_array(ends), filch_array(ones), &
                      cols=2, error=error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'row 1: columns[2] is 3')
    call a%create_csr(runtime, filch_array(pointers), filch_array(ends), filch_array(ones(:2)), &
                      cols=3, error=error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'columns: 3, values: 2')
    call a%create_csr(runtime, filch_array(none), filch_array(ends), filch_array(ones), &
                      cols=3, error=error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'no pointers')
    call a%create_csr(runtime, filch_array(pointers), filch_array(ends), filch_array(ones), &
                      cols=-1, error=error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'cols is negative')
    call a%create_csr(runtime, filch_array(pointers), filch_array(ends), filch_array(ones), &
                      cols=3, blocks=-1, error=error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'blocks is negative')
    call a%create_csr(runtime, filch_array(pointers), filch_array(ends), filch_array(ones), &
                      cols=3, tile_rows=-1, error=error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'tile_rows is negative')
    call a%create_csr(runtime, filch_array(pointers), filch_array(ends), filch_array(ones), &
                      cols=3, base=-1, error=error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'base is not 0 or 1')
    call a%create_csr(runtime, filch_array(starts(1:5:2)), filch_array(ends), filch_array(ones), &
                      cols=3, error=error)
    call expect(error, FILCH_INVALID_ARGUMENT, 'not contiguous')
    call a%create_csr(runtime, filch_array(pointers), filch_array(ends), filch_array(ones), cols=3)
    call graph%create(runtime)
    call graph%read_only(a)
    call graph%add(numbers, [filch_rw(a, 1)], error=error)
    call expect(error, FILCH_WRONG_STATE, 'filch_graph_read_only')
    call graph%destroy()
    call graph%read_only(a, error)
    call expect(error, FILCH_INVALID_HANDLE, 'the graph is null')
    call a%row_block(0, block, error)
    call expect(error, FILCH_BAD_INDEX, 'block')
    call a%row_block(2, block, error)
    call expect(error, FILCH_BAD_INDEX, 'there is no block 1 of 1')
    call a%destroy()
  end subroutine
end program
