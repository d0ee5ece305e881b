! SPDX-License-Identifier: Apache-2.0
! Without an interface, as BLAS and LAPACK are: adds a number to rows x cols elements, whose columns
! begin ld elements one after the other.
recursive subroutine raise(rows, cols, by, a, ld)
  use iso_c_binding
  implicit none
  integer, intent(in) :: rows, cols, ld
  real(c_double), intent(in) :: by
  real(c_double), intent(inout) :: a(ld, *)
  a(:rows, :cols) = a(:rows, :cols) + by
end subroutine
