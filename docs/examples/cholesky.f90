! SPDX-License-Identifier: Apache-2.0
! Tile Cholesky, A = L L^T, in Fortran. Tasks are added in program order; the tiles read and written
! say which task waits for which. Beside a plain loop with OpenMP. cholesky [N [TILE]]
module tiles
  use filch
  implicit none
  integer, parameter :: dp = c_double
contains
  ! A := L with A = L L^T. A failure has a code and a text, and reaches whoever runs the graph.
  recursive integer(c_int) function potrf(task) bind(c) result(code)
    type(filch_call), intent(in) :: task
    real(dp), pointer :: a(:, :)
    integer :: j, k
    call filch_view_of(task, 1, a)
    do j = 1, size(a, 2)
      do k = 1, j - 1
        a(j:, j) = a(j:, j) - a(j, k)*a(j:, k)
      end do
      if (.not. a(j, j) > 0) then
        code = filch_fail(task, int(filch_rows_above(task, 1)) + j, 'the matrix is not definite')
        return
      end if
      a(j:, j) = a(j:, j)/sqrt(a(j, j))
    end do
    code = 0
  end function

  ! A := A L^-T
  recursive integer(c_int) function trsm(task) bind(c) result(code)
    type(filch_call), intent(in) :: task
    real(dp), pointer :: l(:, :), a(:, :)
    integer :: j, k
    call filch_view_of(task, 1, l)
    call filch_view_of(task, 2, a)
    do j = 1, size(a, 2)
      do k = 1, j - 1
        a(:, j) = a(:, j) - a(:, k)*l(j, k)
      end do
      a(:, j) = a(:, j)/l(j, j)
    end do
    code = 0
  end function

  ! C := C - A B^T
  recursive integer(c_int) function gemm(task) bind(c) result(code)
    type(filch_call), intent(in) :: task
    real(dp), pointer :: a(:, :), b(:, :), c(:, :)
    call filch_view_of(task, 1, a)
    call filch_view_of(task, 2, b)
    call filch_view_of(task, 3, c)
    c = c - matmul(a, transpose(b))
    code = 0
  end function

  subroutine factor(runtime, matrix, tile, error)
    type(filch_runtime_t), intent(in) :: runtime
    real(dp), intent(inout), target :: matrix(:, :)
    integer, intent(in) :: tile
    type(filch_failure_t), intent(out) :: error
    type(filch_codelet_t) :: diagonal, panel, rest
    type(filch_data_t) :: a
    type(filch_graph_t) :: graph
    integer :: i, j, k
    call diagonal%create(runtime, 'potrf', potrf)
    call panel%create(runtime, 'trsm', trsm)
    call rest%create(runtime, 'gemm', gemm)
    call a%create(runtime, filch_array(matrix), tile, tile, label='A')
    call graph%create(runtime)
    do k = 1, a%tile_rows
      call graph%add(diagonal, [filch_rw(a, k, k)])
      do i = k + 1, a%tile_rows
        call graph%add(panel, [filch_r(a, k, k), filch_rw(a, i, k)])
      end do
      do i = k + 1, a%tile_rows
        do j = k + 1, i
          call graph%add(rest, [filch_r(a, i, k), filch_r(a, j, k), filch_rw(a, i, j)])
        end do
      end do
    end do
    call graph%run(error) ! error has what failed, or FILCH_OK
    call graph%destroy()
    call a%destroy()
  end subroutine

  ! The same by one loop, column by column.
  subroutine factor_plain(a)
    real(dp), intent(inout) :: a(:, :)
    integer :: j, k
    do k = 1, size(a, 2)
      a(k:, k) = a(k:, k)/sqrt(a(k, k))
      !$omp parallel do schedule(dynamic, 8)
      do j = k + 1, size(a, 2)
        a(j:, j) = a(j:, j) - a(j, k)*a(j:, k)
      end do
    end do
  end subroutine
end module

program cholesky
  use tiles
  implicit none
  type(filch_runtime_t) :: runtime
  type(filch_failure_t) :: error
  real(dp), allocatable, target :: a(:, :)
  real(dp), allocatable :: b(:, :)
  real(dp) :: worst
  integer(c_int64_t) :: times(3), rate
  integer :: n, tile, i, j
  character(16) :: text
  n = 500
  tile = 96 ! the last tiles are smaller
  if (command_argument_count() > 0) call get_command_argument(1, text)
  if (command_argument_count() > 0) read (text, *) n
  if (command_argument_count() > 1) call get_command_argument(2, text)
  if (command_argument_count() > 1) read (text, *) tile
  allocate (a(n, n))
  do j = 1, n
    do i = 1, n
      a(i, j) = 1/(1 + abs(real(i - j, dp))) + merge(2, 0, i == j)
    end do
  end do
  b = a
  call runtime%create('host') ! the tasks are host functions
  call system_clock(times(1), rate)
  call factor(runtime, a, tile, error)
  if (error%status /= FILCH_OK) error stop 'the matrix is definite, and has a factor'
  call system_clock(times(2))
  call factor_plain(b)
  call system_clock(times(3))
  worst = 0
  do j = 1, n
    worst = max(worst, maxval(abs(a(j:, j) - b(j:, j))))
    if (any(a(j:, j) /= a(j:, j))) error stop 'a NaN'
  end do
  print '(a,i0,2(a,f0.1),a,es8.1)', 'n = ', n, ': filch ', 1e3_dp*(times(2) - times(1))/rate, &
    ' ms, plain loop ', 1e3_dp*(times(3) - times(2))/rate, ' ms; largest difference ', worst
  if (worst > 1e-12_dp) error stop 'the factors differ'
  a(n/2, n/2) = -1
  call factor(runtime, a, tile, error)
  print '(a,a,i0,a)', error%text, ' (pivot ', error%code, ')'
  if (error%status /= FILCH_TASK_FAILED) error stop 'such a matrix has no factor'
  call runtime%destroy()
end program
