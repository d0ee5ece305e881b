# SPDX-License-Identifier: Apache-2.0
"""The declarations in Fortran, by ISO_C_BINDING, and what is alike for every kind of array."""
import textwrap

SCALARS = {
    "bool": "logical(c_bool)", "int": "integer(c_int)", "int32_t": "integer(c_int32_t)",
    "uint32_t": "integer(c_int32_t)", "int64_t": "integer(c_int64_t)",
    "uint64_t": "integer(c_int64_t)", "size_t": "integer(c_size_t)", "double": "real(c_double)",
}

HEAD = """! SPDX-License-Identifier: Apache-2.0
! The C interface of filch: the names and the meanings of the headers. Written by
! bindings/declare.py; not to be edited.
!
! Handles and pointers to memory are type(c_ptr); unsigned numbers are signed numbers of equal size.
! A structure that begins with its size has the size and the defaults of its initializer. Where C
! may have a null pointer, an argument is optional. Texts end in c_null_char. A constant whose name
! is a type's, too, has _VALUE behind it.
module filch_c
  use, intrinsic :: iso_c_binding
  implicit none
  public
"""


def _wrapped(text, indent):
    """A statement on lines of at most 100 columns."""
    lines = textwrap.wrap(text, 97 - indent, break_long_words=False, break_on_hyphens=False)
    return (" &\n" + " " * (indent + 2)).join([" " * indent + lines[0]] + lines[1:]).split("\n")


def _scalar(read, name):
    name = read.aliases.get(name, name)
    return "integer(c_int)" if name in read.enums else SCALARS.get(name)


def _constant(name, value, taken):
    if name.lower() in taken:
        name += "_VALUE"
    kind = "c_int"
    if value >= 2 ** 63:
        kind, value = "c_int64_t", value - 2 ** 64
    elif value >= 2 ** 31:
        kind, value = "c_int32_t", value - 2 ** 32
    return f"  integer({kind}), parameter :: {name} = {value}_{kind}"


def _component(read, struct, field, size):
    name, of = field.name, field.type
    shape = f"({field.length})" if field.length else ""
    if of.pointers:
        return f"    type(c_ptr) :: {name}{shape} = c_null_ptr"
    if of.name in read.callbacks:
        return f"    type(c_funptr) :: {name}{shape} = c_null_funptr"
    if of.name == "char":
        return f"    character(kind=c_char) :: {name}{shape} = c_null_char"
    if of.name in read.structs:
        return f"    type({of.name}) :: {name}{shape}"
    kind = _scalar(read, of.name)
    value = size if name == "size" and field is struct[0] else field.initial or 0
    value = {"logical(c_bool)": ".false._c_bool", "real(c_double)": "0.0_c_double"}.get(kind, value)
    return f"    {kind} :: {name}{shape} = {value}"


def _is_array(parameters, k):
    """An array has its number of elements behind it."""
    after = parameters[k + 1] if k + 1 < len(parameters) else None
    return after is not None and after.name in ("count", "capacity") and not after.type.pointers


def _argument(read, parameters, k, is_callback):
    """Declaration of an argument. What filch gives to a function of the caller's is never null."""
    each = parameters[k]
    of, name = each.type, each.name
    optional = "" if is_callback else ", optional"
    intent = "intent(in)" if of.is_const else "intent(inout)"
    if of.pointers == 0:
        if of.name in read.callbacks:
            return f"type(c_funptr), value :: {name}"
        if of.name in read.structs:
            return f"type({of.name}), value :: {name}"
        return f"{_scalar(read, of.name)}, value :: {name}"
    if of.pointers == 2:
        return f"type(c_ptr), intent(inout){optional} :: {name}"
    if of.name == "char" and not is_callback:
        return f"character(kind=c_char), intent(in), optional :: {name}(*)"
    if of.name in read.structs:
        shape = "(*)" if _is_array(parameters, k) else ""
        return f"type({of.name}), {intent}{optional} :: {name}{shape}"
    if of.name in ("void", "char", "FILE") or of.name in read.opaque:
        return f"type(c_ptr), value :: {name}"
    return f"{_scalar(read, of.name)}, {intent}{optional} :: {name}"


def _interface(read, function, is_callback):
    names = ", ".join(each.name for each in function.parameters)
    is_void = function.result.name == "void" and not function.result.pointers
    kind = "subroutine" if is_void else "function"
    head = f"{kind} {function.name}({names}) bind(c)" + ("" if is_void else " result(answer)")
    rows = _wrapped(head, 4) + ["      import"]
    for k in range(len(function.parameters)):
        rows.append("      " + _argument(read, function.parameters, k, is_callback))
    if function.result.pointers:
        rows.append("      type(c_ptr) :: answer")
    elif not is_void:
        rows.append(f"      {_scalar(read, function.result.name)} :: answer")
    return rows + [f"    end {kind}"]


def write(read):
    """Returns the text of the module filch_c."""
    taken = set(read.structs) | set(read.functions) | set(read.callbacks)
    rows = [HEAD]
    for name, names in read.enums.items():
        rows.append(f"  ! {name}")
        rows += [_constant(constant, value, taken) for constant, value in names.items()]
        rows.append("")
    rows += [_constant(constant, value, taken) for constant, value in read.constants.items()]
    for name, fields in read.structs.items():
        size = read.layout(name)[0]
        rows += ["", f"  type, bind(c) :: {name}"]
        rows += [_component(read, fields, field, size) for field in fields]
        rows.append("  end type")
    rows += ["", "  abstract interface"]
    for callback in read.callbacks.values():
        rows += _interface(read, callback, is_callback=True)
    rows += ["  end interface", "", "  interface"]
    for function in read.functions.values():
        rows += _interface(read, function, is_callback=False)
    return "\n".join(rows + ["  end interface", "end module", ""])


# --- Arrays ---

KINDS = {
    "r8": "real(c_double)", "r4": "real(c_float)", "c8": "complex(c_double_complex)",
    "c4": "complex(c_float_complex)", "i4": "integer(c_int32_t)", "i8": "integer(c_int64_t)",
}

ARRAYS_HEAD = """! SPDX-License-Identifier: Apache-2.0
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
    module procedure {arrays}
  end interface

  ! call filch_view_of(task, k, x): makes the pointer x, of one or two dimensions, a view of the
  ! k-th access, valid during the call. x is null if there is no such access, if its elements have
  ! another size, or if there are several columns and x has one dimension. A pointer of two
  ! dimensions has gaps between its columns, and must not be declared contiguous. Of an access with
  ! a halo x begins with the halo: filch_rows_above() and filch_cols_left() tell where.
  interface filch_view_of
    module procedure {views}
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
    module procedure {values}
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
"""

ARRAY = """
  function array_{kind}_1(array) result(of)
    {type}, intent(inout), target :: array(:)
    type(filch_memory_t) :: of
    of%element = storage_size(array) / 8
    of%rows = size(array, kind=c_int64_t)
    of%cols = 1
    of%ld = of%rows
    if (of%rows > 0) of%ptr = c_loc(array(1))
    if (of%rows > 1) of%is_regular = distance(c_loc(array(1)), c_loc(array(2))) == of%element
  end function

  function array_{kind}_2(array) result(of)
    {type}, intent(inout), target :: array(:, :)
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

  recursive subroutine view_{kind}_1(task, k, x)
    type(filch_call), intent(in) :: task
    integer, intent(in) :: k
    {type}, pointer, intent(out) :: x(:)
    type(filch_view) :: view
    view = typed_view(task, k, storage_size(x) / 8, 1)
    nullify(x)
    if (c_associated(view%ptr)) call c_f_pointer(view%ptr, x, [view%rows])
  end subroutine

  recursive subroutine view_{kind}_2(task, k, x)
    type(filch_call), intent(in) :: task
    integer, intent(in) :: k
    {type}, pointer, intent(out) :: x(:, :)
    {type}, pointer :: all(:, :)
    type(filch_view) :: view
    view = typed_view(task, k, storage_size(x) / 8, 2)
    nullify(x)
    if (.not. c_associated(view%ptr)) return
    call c_f_pointer(view%ptr, all, [view%ld, view%cols])
    x => all(1:view%rows, :)
  end subroutine
"""

CSR = """
  recursive subroutine csr_{what}_{kind}(task, k, x)
    type(filch_call), intent(in) :: task
    integer, intent(in) :: k
    {type}, pointer, intent(out) :: x(:)
    type(filch_csr_block) :: block
    block = filch_csr_of(task, k)
    nullify(x)
    if (block%size /= 0 .and. block%{bytes} == storage_size(x) / 8) &
      call c_f_pointer(block%{what}, x, [block%{count}])
  end subroutine
"""


def _csr_arrays():
    """Procedures that find the arrays of row blocks."""
    parts = [("pointers", "pointer_bytes", "rows + 1", ("i4", "i8")),
             ("columns", "column_bytes", "nnz", ("i4", "i8")),
             ("values", "element", "nnz", KINDS)]
    return "".join(
        CSR.replace("{what}", what).replace("{bytes}", size).replace("{count}", count)
        .replace("{kind}", kind).replace("{type}", KINDS[kind])
        for what, size, count, kinds in parts for kind in kinds)


def write_arrays(_):
    """Returns the text of the module filch_arrays."""
    def names(kind):
        listed = ", ".join(f"{kind}_{each}_{rank}" for each in KINDS for rank in (1, 2))
        return "\n".join(_wrapped("module procedure " + listed, 4)).strip()[17:]
    head = ARRAYS_HEAD.replace("{arrays}", names("array")).replace("{views}", names("view"))
    values = "module procedure " + ", ".join(f"csr_values_{each}" for each in KINDS)
    head = head.replace("    module procedure {values}", "\n".join(_wrapped(values, 4)))
    body = "".join(ARRAY.replace("{kind}", kind).replace("{type}", each)
                   for kind, each in KINDS.items())
    return head + body + _csr_arrays() + "end module\n"
