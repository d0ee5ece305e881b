! SPDX-License-Identifier: Apache-2.0
! Conjugate gradients for the Poisson equation on a grid of g^3 points, the matrix in CSR, beside
! plain loops with OpenMP (plain_cg.inc, which makes the matrix, too). cg [G [ITERATIONS [REPEATS]]]
module problem
  use filch
  implicit none
  integer, parameter :: dp = c_double
contains
  recursive integer(c_int) function multiply(task) bind(c) result(code) ! A, p near by; q, p . q
    type(filch_call), intent(in) :: task
    integer, pointer, contiguous :: starts(:), columns(:)
    real(dp), pointer, contiguous :: values(:), p_b(:), q_b(:), part(:)
    call filch_csr_pointers(task, 1, starts)
    call filch_csr_columns(task, 1, columns)
    call filch_csr_values(task, 1, values)
    call filch_view_of(task, 2, p_b)
    call filch_view_of(task, 3, q_b)
    call filch_view_of(task, 4, part)
    call multiply_rows(size(q_b), starts, columns, values, int(filch_rows_above(task, 2)), p_b, &
                       int(filch_rows_above(task, 3)), q_b, part(1))
    code = 0
  end function

  recursive integer(c_int) function update(task) bind(c) result(code) ! x, r, p, q; p . q, r . r
    type(filch_call), intent(in) :: task
    real(dp), pointer, contiguous :: x_b(:), r_b(:), p_b(:), q_b(:), part(:), pq(:), rr(:)
    call filch_view_of(task, 1, x_b); call filch_view_of(task, 2, r_b)
    call filch_view_of(task, 3, p_b); call filch_view_of(task, 4, q_b)
    call filch_view_of(task, 5, part); call filch_view_of(task, 6, pq)
    call filch_view_of(task, 7, rr)
    call update_rows(size(x_b), sum(rr)/sum(pq), x_b, r_b, p_b, q_b, part(1))
    code = 0
  end function

  recursive integer(c_int) function direct(task) bind(c) result(code) ! p, r; r . r after and before
    type(filch_call), intent(in) :: task
    real(dp), pointer, contiguous :: p_b(:), r_b(:), new(:), old(:)
    call filch_view_of(task, 1, p_b); call filch_view_of(task, 2, r_b)
    call filch_view_of(task, 3, new); call filch_view_of(task, 4, old)
    call direct_rows(size(p_b), sum(new)/sum(old), p_b, r_b)
    code = 0
  end function

  ! Loops, with arrays as arguments: compilers take these for arrays that do not overlap.
  recursive subroutine multiply_rows(n, starts, columns, values, p_above, p_b, q_above, q_b, total)
    integer, intent(in) :: n, starts(n + 1), columns(*), p_above, q_above ! rows above p_b, q_b
    real(dp), intent(in) :: values(*), p_b(p_above + 1:*)
    real(dp), intent(out) :: q_b(n), total
    real(dp) :: value
    integer :: i, k
    total = 0
    do i = 1, n
      value = 0
      do k = starts(i), starts(i + 1) - 1
        value = value + values(k)*p_b(columns(k))
      end do
      q_b(i) = value
      total = total + value*p_b(q_above + i)
    end do
  end subroutine

  recursive subroutine update_rows(n, alpha, x_b, r_b, p_b, q_b, total)
    integer, intent(in) :: n
    real(dp), intent(in) :: alpha, p_b(n), q_b(n)
    real(dp), intent(inout) :: x_b(n), r_b(n), total
    integer :: i
    total = 0
    do i = 1, n
      x_b(i) = x_b(i) + alpha*p_b(i)
      r_b(i) = r_b(i) - alpha*q_b(i)
      total = total + r_b(i)**2
    end do
  end subroutine

  recursive subroutine direct_rows(n, beta, p_b, r_b)
    integer, intent(in) :: n
    real(dp), intent(in) :: beta, r_b(n)
    real(dp), intent(inout) :: p_b(n)
    p_b = r_b + beta*p_b
  end subroutine

  subroutine add_iteration(graph, code, a, v, pq, old, new) ! a task a block for each of three steps
    type(filch_graph_t), intent(in) :: graph
    type(filch_codelet_t), intent(in) :: code(3)
    type(filch_data_t), intent(in) :: a, v(4), pq, old, new ! v: x, r, p, q
    type(filch_csr_block) :: at
    integer :: b
    do b = 1, a%tile_rows
      call a%row_block(b, at) ! its columns are in some tiles of p
      call graph%add(code(1), [filch_r(a, b), filch_block(v(3), FILCH_READ, int(at%block_lo) + 1, &
                                                          rows=int(at%block_hi - at%block_lo)), &
                               filch_w(v(4), b), filch_w(pq, b)])
    end do
    do b = 1, a%tile_rows
      call graph%add(code(2), [filch_rw(v(1), b), filch_rw(v(2), b), filch_r(v(3), b), &
                               filch_r(v(4), b), filch_w(new, b), filch_block(pq, FILCH_READ), &
                               filch_block(old, FILCH_READ)])
    end do
    do b = 1, a%tile_rows
      call graph%add(code(3), [filch_rw(v(3), b), filch_r(v(2), b), filch_block(new, FILCH_READ), &
                               filch_block(old, FILCH_READ)])
    end do
  end subroutine
end module

program cg
  use problem
  implicit none
  integer, allocatable, target :: starts(:), columns(:)
  real(dp), allocatable, target :: values(:), x(:), r(:), p(:), q(:)
  real(dp), allocatable, target :: parts(:, :) ! of sums, one a block
  type(filch_runtime_t) :: runtime
  type(filch_codelet_t) :: code(3)
  type(filch_data_t) :: a, v(4), sums(3)
  type(filch_graph_t) :: graph ! ten iterations, run again and again
  integer :: k, rows, height, g
  g = argument(1, 40, 400)
  call make(g)
  call runtime%create('host')
  height = (rows - 1)/min(16*runtime%device_count(), g, rows/4000 + 1) + 1 ! a plane or more
  call a%create_csr(runtime, filch_array(starts), filch_array(columns), filch_array(values), &
                    rows, tile_rows=height)
  call v(1)%create(runtime, filch_array(x), tile_rows=height)
  call v(2)%create(runtime, filch_array(r), tile_rows=height)
  call v(3)%create(runtime, filch_array(p), tile_rows=height)
  call v(4)%create(runtime, filch_array(q), tile_rows=height)
  allocate (parts(a%tile_rows, 3))
  do k = 1, 3
    call sums(k)%create(runtime, filch_array(parts(:, k)), tile_rows=1)
  end do
  call code(1)%create(runtime, 'multiply', multiply)
  call code(2)%create(runtime, 'update', update)
  call code(3)%create(runtime, 'direct', direct)
  call graph%create(runtime)
  do k = 0, 9
    call add_iteration(graph, code, a, v, sums(1), sums(2 + mod(k, 2)), sums(3 - mod(k, 2)))
  end do
  call measure()
  call runtime%destroy()
contains
  subroutine solve(most)
    integer, intent(in) :: most
    parts(:, 2) = real(rows, dp)/size(parts, 1)
    do k = 0, most - 1, 10
      if (sum(parts(:, 2)) > 1e-20_dp*rows) call graph%run()
    end do
  end subroutine
  include 'plain_cg.inc' ! argument(), make(), measure()
end program
