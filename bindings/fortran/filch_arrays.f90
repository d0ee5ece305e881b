! SPDX-License-Identifier: Apache-2.0
! Arrays as data of filch, and views as arrays, for each kind of number and one or two dimensions.
! Written by bindings/declare.py; not to be edited.
module filch_arrays
  use filch_c
  implicit none
  private
  public :: filch_array, filch_memory, filch_memory_t, filch_view_of, filch_ld, filch_rows_above, &
    filch_cols_left, filch_csr_of, filch_csr_pointers, filch_csr_columns, filch_csr_values

  ! Where an array lies; made by filch_array() and filch_memory().
  type :: filch_memory_t
    type(c_ptr) :: ptr = c_null_ptr
    integer(c_int64_t) :: element = 0
    integer(c_int64_t) :: rows = 0
    integer(c_int64_t) :: cols = 0
    integer(c_int64_t) :: ld = 0
    logical :: is_regular = .true. ! columns are contiguous, and whole elements apart
  end type

  ! filch_array(array): an array as data, not copied. The array is a target, which lives as long as
  ! the handle; a part of a matrix is good if its columns are contiguous. Its intent tells compilers
  ! that the array changes later, when tasks run.
  interface filch_array
    module procedure array_r8_1, array_r8_2, array_r4_1, array_r4_2, array_c8_1, array_c8_2, &
      array_c4_1, array_c4_2, array_i4_1, array_i4_2, array_i8_1, array_i8_2
  end interface

  ! call filch_view_of(task, k, x): makes the pointer x, of one or two dimensions, a view of the
  ! k-th access, valid during the call. x is null if there is no such access, if its elements have
  ! another size, or if there are several columns and x has one dimension. A pointer of two
  ! dimensions has gaps between its columns, and must not be declared contiguous. Of an access with
  ! a halo x begins with the halo: filch_rows_above() and filch_cols_left() tell where.
  interface filch_view_of
    module procedure view_r8_1, view_r8_2, view_r4_1, view_r4_2, view_c8_1, view_c8_2, view_c4_1, &
      view_c4_2, view_i4_1, view_i4_2, view_i8_1, view_i8_2
  end interface

  ! call filch_csr_pointers(task, k, x), and so on: makes the pointer x the pointers, columns or
  ! values of the k-th access, which is to a row block of a sparse matrix; valid during the call.
  ! Row i of the block has the entries x(i) to x(i + 1) - 1 of a matrix with base 1. x is null if
  ! there is no such access, or its numbers have another size. Values change where the access writes.
  interface filch_csr_pointers
    module procedure csr_pointers_i4, csr_pointers_i8
  end interface
  interface filch_csr_columns
    module procedure csr_columns_i4, csr_columns_i8
  end interface
  interface filch_csr_values
    module procedure csr_values_r8, csr_values_r4, csr_values_c8, csr_values_c4, csr_values_i4, &
      csr_values_i8
  end interface

contains

  ! Memory as data: rows times cols elements of so many bytes, a column ld elements from the next.
  function filch_memory(ptr, element, rows, cols, ld) result(of)
    type(c_ptr), intent(in) :: ptr
    integer(c_size_t), intent(in) :: element
    integer, intent(in) :: rows
    integer, intent(in), optional :: cols, ld
    type(filch_memory_t) :: of
    of = filch_memory_t(ptr, element, rows, 1, rows)
    if (present(cols)) of%cols = cols
    if (present(ld)) of%ld = ld
  end function

  ! The leading dimension of the k-th view, for BLAS and LAPACK beside x(1, 1): elements from a column
  ! to the next. Of scratch memory the bytes. 0 without such a view, and where it is too large for
  ! the kind.
  recursive function filch_ld(task, k) result(ld)
    type(filch_call), intent(in) :: task
    integer, intent(in) :: k
    integer :: ld
    type(filch_view), pointer :: views(:)
    ld = 0
    if (k < 1 .or. k > task%view_count) return
    call c_f_pointer(task%views, views, [task%view_count])
    if (views(k)%ld <= huge(ld)) ld = int(views(k)%ld)
  end function

  ! The row block of a sparse matrix of the k-th access. Its size is 0 without such an access.
  recursive function filch_csr_of(task, k) result(block)
    type(filch_call), intent(in) :: task
    integer, intent(in) :: k
    type(filch_csr_block) :: block
    type(filch_view), pointer :: views(:)
    if (k >= 1 .and. k <= task%view_count) then
      call c_f_pointer(task%views, views, [task%view_count])
      if (filch_csr_view(c_null_ptr, views(k), block) == FILCH_OK) return
    end if
    block%size = 0
  end function

  ! Rows of the handle above the k-th view; 0 without such a view.
  recursive function filch_rows_above(task, k) result(rows)
    type(filch_call), intent(in) :: task
    integer, intent(in) :: k
    integer(c_int64_t) :: rows
    type(filch_view), pointer :: views(:)
    rows = 0
    if (k < 1 .or. k > task%view_count) return
    call c_f_pointer(task%views, views, [task%view_count])
    rows = views(k)%row
  end function

  ! Columns of the handle to the left of the k-th view; 0 without such a view.
  recursive function filch_cols_left(task, k) result(cols)
    type(filch_call), intent(in) :: task
    integer, intent(in) :: k
    integer(c_int64_t) :: cols
    type(filch_view), pointer :: views(:)
    cols = 0
    if (k < 1 .or. k > task%view_count) return
    call c_f_pointer(task%views, views, [task%view_count])
    cols = views(k)%col
  end function

  pure function distance(first, second) result(bytes)
    type(c_ptr), intent(in) :: first, second
    integer(c_int64_t) :: bytes
    bytes = transfer(second, 0_c_int64_t) - transfer(first, 0_c_int64_t)
  end function

  ! Columns begin so many bytes one after the other: whole elements, if they are regular.
  subroutine set_ld(of, bytes)
    type(filch_memory_t), intent(inout) :: of
    integer(c_int64_t), intent(in) :: bytes
    of%ld = bytes / of%element
    of%is_regular = of%is_regular .and. mod(bytes, of%element) == 0
  end subroutine

  ! The k-th view, if its elements have so many bytes; an address of null else.
  recursive function typed_view(task, k, bytes, dimensions) result(view)
    type(filch_call), intent(in) :: task
    integer, intent(in) :: k, bytes, dimensions
    type(filch_view) :: view
    type(filch_view), pointer :: views(:)
    if (k < 1 .or. k > task%view_count) return
    call c_f_pointer(task%views, views, [task%view_count])
    view = views(k)
    if (view%element == 1 .and. bytes > 1) then ! scratch memory
      view%rows = view%rows / bytes
      view%ld = view%rows
    else if (view%element /= bytes) then
      view%ptr = c_null_ptr
    end if
    if (dimensions == 1 .and. view%cols /= 1) view%ptr = c_null_ptr
  end function

  function array_r8_1(array) result(of)
    real(c_double), intent(inout), target :: array(:)
    type(filch_memory_t) :: of
    of%element = storage_size(array) / 8
    of%rows = size(array, kind=c_int64_t)
    of%cols = 1
    of%ld = of%rows
    if (of%rows > 0) of%ptr = c_loc(array(1))
    if (of%rows > 1) of%is_regular = distance(c_loc(array(1)), c_loc(array(2))) == of%element
  end function

  function array_r8_2(array) result(of)
    real(c_double), intent(inout), target :: array(:, :)
    type(filch_memory_t) :: of
    of%element = storage_size(array) / 8
    of%rows = size(array, 1, kind=c_int64_t)
    of%cols = size(array, 2, kind=c_int64_t)
    of%ld = of%rows
    if (of%rows == 0 .or. of%cols == 0) return
    of%ptr = c_loc(array(1, 1))
    if (of%rows > 1) of%is_regular = distance(c_loc(array(1, 1)), c_loc(array(2, 1))) == of%element
    if (of%cols > 1) call set_ld(of, distance(c_loc(array(1, 1)), c_loc(array(1, 2))))
  end function

  recursive subroutine view_r8_1(task, k, x)
    type(filch_call), intent(in) :: task
    integer, intent(in) :: k
    real(c_double), pointer, intent(out) :: x(:)
    type(filch_view) :: view
    view = typed_view(task, k, storage_size(x) / 8, 1)
    nullify(x)
    if (c_associated(view%ptr)) call c_f_pointer(view%ptr, x, [view%rows])
  end subroutine

  recursive subroutine view_r8_2(task, k, x)
    type(filch_call), intent(in) :: task
    integer, intent(in) :: k
    real(c_double), pointer, intent(out) :: x(:, :)
    real(c_double), pointer :: all(:, :)
    type(filch_view) :: view
    view = typed_view(task, k, storage_size(x) / 8, 2)
    nullify(x)
    if (.not. c_associated(view%ptr)) return
    call c_f_pointer(view%ptr, all, [view%ld, view%cols])
    x => all(1:view%rows, :)
  end subroutine

  function array_r4_1(array) result(of)
    real(c_float), intent(inout), target :: array(:)
    type(filch_memory_t) :: of
    of%element = storage_size(array) / 8
    of%rows = size(array, kind=c_int64_t)
    of%cols = 1
    of%ld = of%rows
    if (of%rows > 0) of%ptr = c_loc(array(1))
    if (of%rows > 1) of%is_regular = distance(c_loc(array(1)), c_loc(array(2))) == of%element
  end function

  function array_r4_2(array) result(of)
    real(c_float), intent(inout), target :: array(:, :)
    type(filch_memory_t) :: of
    of%element = storage_size(array) / 8
    of%rows = size(array, 1, kind=c_int64_t)
    of%cols = size(array, 2, kind=c_int64_t)
    of%ld = of%rows
    if (of%rows == 0 .or. of%cols == 0) return
    of%ptr = c_loc(array(1, 1))
    if (of%rows > 1) of%is_regular = distance(c_loc(array(1, 1)), c_loc(array(2, 1))) == of%element
    if (of%cols > 1) call set_ld(of, distance(c_loc(array(1, 1)), c_loc(array(1, 2))))
  end function

  recursive subroutine view_r4_1(task, k, x)
    type(filch_call), intent(in) :: task
    integer, intent(in) :: k
    real(c_float), pointer, intent(out) :: x(:)
    type(filch_view) :: view
    view = typed_view(task, k, storage_size(x) / 8, 1)
    nullify(x)
    if (c_associated(view%ptr)) call c_f_pointer(view%ptr, x, [view%rows])
  end subroutine

  recursive subroutine view_r4_2(task, k, x)
    type(filch_call), intent(in) :: task
    integer, intent(in) :: k
    real(c_float), pointer, intent(out) :: x(:, :)
    real(c_float), pointer :: all(:, :)
    type(filch_view) :: view
    view = typed_view(task, k, storage_size(x) / 8, 2)
    nullify(x)
    if (.not. c_associated(view%ptr)) return
    call c_f_pointer(view%ptr, all, [view%ld, view%cols])
    x => all(1:view%rows, :)
  end subroutine

  function array_c8_1(array) result(of)
    complex(c_double_complex), intent(inout), target :: array(:)
    type(filch_memory_t) :: of
    of%element = storage_size(array) / 8
    of%rows = size(array, kind=c_int64_t)
    of%cols = 1
    of%ld = of%rows
    if (of%rows > 0) of%ptr = c_loc(array(1))
    if (of%rows > 1) of%is_regular = distance(c_loc(array(1)), c_loc(array(2))) == of%element
  end function

  function array_c8_2(array) result(of)
    complex(c_double_complex), intent(inout), target :: array(:, :)
    type(filch_memory_t) :: of
    of%element = storage_size(array) / 8
    of%rows = size(array, 1, kind=c_int64_t)
    of%cols = size(array, 2, kind=c_int64_t)
    of%ld = of%rows
    if (of%rows == 0 .or. of%cols == 0) return
    of%ptr = c_loc(array(1, 1))
    if (of%rows > 1) of%is_regular = distance(c_loc(array(1, 1)), c_loc(array(2, 1))) == of%element
    if (of%cols > 1) call set_ld(of, distance(c_loc(array(1, 1)), c_loc(array(1, 2))))
  end function

  recursive subroutine view_c8_1(task, k, x)
    type(filch_call), intent(in) :: task
    integer, intent(in) :: k
    complex(c_double_complex), pointer, intent(out) :: x(:)
    type(filch_view) :: view
    view = typed_view(task, k, storage_size(x) / 8, 1)
    nullify(x)
    if (c_associated(view%ptr)) call c_f_pointer(view%ptr, x, [view%rows])
  end subroutine

  recursive subroutine view_c8_2(task, k, x)
    type(filch_call), intent(in) :: task
    integer, intent(in) :: k
    complex(c_double_complex), pointer, intent(out) :: x(:, :)
    complex(c_double_complex), pointer :: all(:, :)
    type(filch_view) :: view
    view = typed_view(task, k, storage_size(x) / 8, 2)
    nullify(x)
    if (.not. c_associated(view%ptr)) return
    call c_f_pointer(view%ptr, all, [view%ld, view%cols])
    x => all(1:view%rows, :)
  end subroutine

  function array_c4_1(array) result(of)
    complex(c_float_complex), intent(inout), target :: array(:)
    type(filch_memory_t) :: of
    of%element = storage_size(array) / 8
    of%rows = size(array, kind=c_int64_t)
    of%cols = 1
    of%ld = of%rows
    if (of%rows > 0) of%ptr = c_loc(array(1))
    if (of%rows > 1) of%is_regular = distance(c_loc(array(1)), c_loc(array(2))) == of%element
  end function

  function array_c4_2(array) result(of)
    complex(c_float_complex), intent(inout), target :: array(:, :)
    type(filch_memory_t) :: of
    of%element = storage_size(array) / 8
    of%rows = size(array, 1, kind=c_int64_t)
    of%cols = size(array, 2, kind=c_int64_t)
    of%ld = of%rows
    if (of%rows == 0 .or. of%cols == 0) return
    of%ptr = c_loc(array(1, 1))
    if (of%rows > 1) of%is_regular = distance(c_loc(array(1, 1)), c_loc(array(2, 1))) == of%element
    if (of%cols > 1) call set_ld(of, distance(c_loc(array(1, 1)), c_loc(array(1, 2))))
  end function

  recursive subroutine view_c4_1(task, k, x)
    type(filch_call), intent(in) :: task
    integer, intent(in) :: k
    complex(c_float_complex), pointer, intent(out) :: x(:)
    type(filch_view) :: view
    view = typed_view(task, k, storage_size(x) / 8, 1)
    nullify(x)
    if (c_associated(view%ptr)) call c_f_pointer(view%ptr, x, [view%rows])
  end subroutine

  recursive subroutine view_c4_2(task, k, x)
    type(filch_call), intent(in) :: task
    integer, intent(in) :: k
    complex(c_float_complex), pointer, intent(out) :: x(:, :)
    complex(c_float_complex), pointer :: all(:, :)
    type(filch_view) :: view
    view = typed_view(task, k, storage_size(x) / 8, 2)
    nullify(x)
    if (.not. c_associated(view%ptr)) return
    call c_f_pointer(view%ptr, all, [view%ld, view%cols])
    x => all(1:view%rows, :)
  end subroutine

  function array_i4_1(array) result(of)
    integer(c_int32_t), intent(inout), target :: array(:)
    type(filch_memory_t) :: of
    of%element = storage_size(array) / 8
    of%rows = size(array, kind=c_int64_t)
    of%cols = 1
    of%ld = of%rows
    if (of%rows > 0) of%ptr = c_loc(array(1))
    if (of%rows > 1) of%is_regular = distance(c_loc(array(1)), c_loc(array(2))) == of%element
  end function

  function array_i4_2(array) result(of)
    integer(c_int32_t), intent(inout), target :: array(:, :)
    type(filch_memory_t) :: of
    of%element = storage_size(array) / 8
    of%rows = size(array, 1, kind=c_int64_t)
    of%cols = size(array, 2, kind=c_int64_t)
    of%ld = of%rows
    if (of%rows == 0 .or. of%cols == 0) return
    of%ptr = c_loc(array(1, 1))
    if (of%rows > 1) of%is_regular = distance(c_loc(array(1, 1)), c_loc(array(2, 1))) == of%element
    if (of%cols > 1) call set_ld(of, distance(c_loc(array(1, 1)), c_loc(array(1, 2))))
  end function

  recursive subroutine view_i4_1(task, k, x)
    type(filch_call), intent(in) :: task
    integer, intent(in) :: k
    integer(c_int32_t), pointer, intent(out) :: x(:)
    type(filch_view) :: view
    view = typed_view(task, k, storage_size(x) / 8, 1)
    nullify(x)
    if (c_associated(view%ptr)) call c_f_pointer(view%ptr, x, [view%rows])
  end subroutine

  recursive subroutine view_i4_2(task, k, x)
    type(filch_call), intent(in) :: task
    integer, intent(in) :: k
    integer(c_int32_t), pointer, intent(out) :: x(:, :)
    integer(c_int32_t), pointer :: all(:, :)
    type(filch_view) :: view
    view = typed_view(task, k, storage_size(x) / 8, 2)
    nullify(x)
    if (.not. c_associated(view%ptr)) return
    call c_f_pointer(view%ptr, all, [view%ld, view%cols])
    x => all(1:view%rows, :)
  end subroutine

  function array_i8_1(array) result(of)
    integer(c_int64_t), intent(inout), target :: array(:)
    type(filch_memory_t) :: of
    of%element = storage_size(array) / 8
    of%rows = size(array, kind=c_int64_t)
    of%cols = 1
    of%ld = of%rows
    if (of%rows > 0) of%ptr = c_loc(array(1))
    if (of%rows > 1) of%is_regular = distance(c_loc(array(1)), c_loc(array(2))) == of%element
  end function

  function array_i8_2(array) result(of)
    integer(c_int64_t), intent(inout), target :: array(:, :)
    type(filch_memory_t) :: of
    of%element = storage_size(array) / 8
    of%rows = size(array, 1, kind=c_int64_t)
    of%cols = size(array, 2, kind=c_int64_t)
    of%ld = of%rows
    if (of%rows == 0 .or. of%cols == 0) return
    of%ptr = c_loc(array(1, 1))
    if (of%rows > 1) of%is_regular = distance(c_loc(array(1, 1)), c_loc(array(2, 1))) == of%element
    if (of%cols > 1) call set_ld(of, distance(c_loc(array(1, 1)), c_loc(array(1, 2))))
  end function

  recursive subroutine view_i8_1(task, k, x)
    type(filch_call), intent(in) :: task
    integer, intent(in) :: k
    integer(c_int64_t), pointer, intent(out) :: x(:)
    type(filch_view) :: view
    view = typed_view(task, k, storage_size(x) / 8, 1)
    nullify(x)
    if (c_associated(view%ptr)) call c_f_pointer(view%ptr, x, [view%rows])
  end subroutine

  recursive subroutine view_i8_2(task, k, x)
    type(filch_call), intent(in) :: task
    integer, intent(in) :: k
    integer(c_int64_t), pointer, intent(out) :: x(:, :)
    integer(c_int64_t), pointer :: all(:, :)
    type(filch_view) :: view
    view = typed_view(task, k, storage_size(x) / 8, 2)
    nullify(x)
    if (.not. c_associated(view%ptr)) return
    call c_f_pointer(view%ptr, all, [view%ld, view%cols])
    x => all(1:view%rows, :)
  end subroutine

  recursive subroutine csr_pointers_i4(task, k, x)
    type(filch_call), intent(in) :: task
    integer, intent(in) :: k
    integer(c_int32_t), pointer, intent(out) :: x(:)
    type(filch_csr_block) :: block
    block = filch_csr_of(task, k)
    nullify(x)
    if (block%size /= 0 .and. block%pointer_bytes == storage_size(x) / 8) &
      call c_f_pointer(block%pointers, x, [block%rows + 1])
  end subroutine

  recursive subroutine csr_pointers_i8(task, k, x)
    type(filch_call), intent(in) :: task
    integer, intent(in) :: k
    integer(c_int64_t), pointer, intent(out) :: x(:)
    type(filch_csr_block) :: block
    block = filch_csr_of(task, k)
    nullify(x)
    if (block%size /= 0 .and. block%pointer_bytes == storage_size(x) / 8) &
      call c_f_pointer(block%pointers, x, [block%rows + 1])
  end subroutine

  recursive subroutine csr_columns_i4(task, k, x)
    type(filch_call), intent(in) :: task
    integer, intent(in) :: k
    integer(c_int32_t), pointer, intent(out) :: x(:)
    type(filch_csr_block) :: block
    block = filch_csr_of(task, k)
    nullify(x)
    if (block%size /= 0 .and. block%column_bytes == storage_size(x) / 8) &
      call c_f_pointer(block%columns, x, [block%nnz])
  end subroutine

  recursive subroutine csr_columns_i8(task, k, x)
    type(filch_call), intent(in) :: task
    integer, intent(in) :: k
    integer(c_int64_t), pointer, intent(out) :: x(:)
    type(filch_csr_block) :: block
    block = filch_csr_of(task, k)
    nullify(x)
    if (block%size /= 0 .and. block%column_bytes == storage_size(x) / 8) &
      call c_f_pointer(block%columns, x, [block%nnz])
  end subroutine

  recursive subroutine csr_values_r8(task, k, x)
    type(filch_call), intent(in) :: task
    integer, intent(in) :: k
    real(c_double), pointer, intent(out) :: x(:)
    type(filch_csr_block) :: block
    block = filch_csr_of(task, k)
    nullify(x)
    if (block%size /= 0 .and. block%element == storage_size(x) / 8) &
      call c_f_pointer(block%values, x, [block%nnz])
  end subroutine

  recursive subroutine csr_values_r4(task, k, x)
    type(filch_call), intent(in) :: task
    integer, intent(in) :: k
    real(c_float), pointer, intent(out) :: x(:)
    type(filch_csr_block) :: block
    block = filch_csr_of(task, k)
    nullify(x)
    if (block%size /= 0 .and. block%element == storage_size(x) / 8) &
      call c_f_pointer(block%values, x, [block%nnz])
  end subroutine

  recursive subroutine csr_values_c8(task, k, x)
    type(filch_call), intent(in) :: task
    integer, intent(in) :: k
    complex(c_double_complex), pointer, intent(out) :: x(:)
    type(filch_csr_block) :: block
    block = filch_csr_of(task, k)
    nullify(x)
    if (block%size /= 0 .and. block%element == storage_size(x) / 8) &
      call c_f_pointer(block%values, x, [block%nnz])
  end subroutine

  recursive subroutine csr_values_c4(task, k, x)
    type(filch_call), intent(in) :: task
    integer, intent(in) :: k
    complex(c_float_complex), pointer, intent(out) :: x(:)
    type(filch_csr_block) :: block
    block = filch_csr_of(task, k)
    nullify(x)
    if (block%size /= 0 .and. block%element == storage_size(x) / 8) &
      call c_f_pointer(block%values, x, [block%nnz])
  end subroutine

  recursive subroutine csr_values_i4(task, k, x)
    type(filch_call), intent(in) :: task
    integer, intent(in) :: k
    integer(c_int32_t), pointer, intent(out) :: x(:)
    type(filch_csr_block) :: block
    block = filch_csr_of(task, k)
    nullify(x)
    if (block%size /= 0 .and. block%element == storage_size(x) / 8) &
      call c_f_pointer(block%values, x, [block%nnz])
  end subroutine

  recursive subroutine csr_values_i8(task, k, x)
    type(filch_call), intent(in) :: task
    integer, intent(in) :: k
    integer(c_int64_t), pointer, intent(out) :: x(:)
    type(filch_csr_block) :: block
    block = filch_csr_of(task, k)
    nullify(x)
    if (block%size /= 0 .and. block%element == storage_size(x) / 8) &
      call c_f_pointer(block%values, x, [block%nnz])
  end subroutine
end module
