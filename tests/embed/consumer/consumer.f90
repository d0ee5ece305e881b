! SPDX-License-Identifier: Apache-2.0
! A program of another project: runs a task on each core.
module functions
  use filch
  implicit none
contains
  integer(c_int) function twice(task) bind(c) result(code)
    type(filch_call), intent(in) :: task
    real(c_double), pointer :: x(:)
    call filch_view_of(task, 1, x)
    x = 2*x
    code = 0
  end function
end module

program consumer
  use functions
  implicit none
  type(filch_runtime_t) :: runtime
  type(filch_codelet_t) :: code
  type(filch_data_t) :: data
  type(filch_graph_t) :: graph
  real(c_double), target :: x(100)
  integer :: i
  x = 1
  call runtime%create('host')
  call code%create(runtime, 'twice', twice)
  call data%create(runtime, filch_array(x), tile_rows=10)
  call graph%create(runtime)
  do i = 1, data%tile_rows
    call graph%add(code, [filch_rw(data, i)])
  end do
  call graph%run()
  call runtime%destroy()
  if (any(abs(x - 2) > 0)) error stop 'the array is not twice what it was'
end program
