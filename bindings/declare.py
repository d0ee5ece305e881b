#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Declares the C interface of filch for Python and Fortran, from the headers in include/filch.

    declare.py            writes python/filch/c.py, fortran/filch_c.f90 and fortran/filch_arrays.f90
    declare.py --check    says whether the files are what it would write; exit 1 if not
    declare.py --layout   prints a C program that compares the layouts with the compiler's
    declare.py --layout-fortran   prints a Fortran program that does so
"""
import pathlib
import sys

import fortran_text
import headers
import python_text

HERE = pathlib.Path(__file__).resolve().parent
OUTPUTS = {
    HERE / "python/filch/c.py": python_text.write,
    HERE / "fortran/filch_c.f90": fortran_text.write,
    HERE / "fortran/filch_arrays.f90": fortran_text.write_arrays,
}


def layout(read):
    """A program in C, which fails where a size, an offset or a constant is not the compiler's."""
    rows = ['#include <stdio.h>', '#include <filch/filch.h>', '#include <filch/multicast.h>',
            '#define SAME(a, b) ((unsigned long long)(a) == (unsigned long long)(b) ? 0 : '
            '(printf("%s is %llu, not %s\\n", #a, (unsigned long long)(a), #b), 1))',
            'int main(void)', '{', '    int bad = 0;']
    for name in read.structs:
        size, _, offsets = read.layout(name)
        rows.append(f"    bad += SAME(sizeof({name}), {size});")
        rows += [f"    bad += SAME(offsetof({name}, {field}), {at});"
                 for field, at in offsets.items()]
    constants = dict(read.constants)
    for names in read.enums.values():
        constants.update(names)
    rows += [f"    bad += SAME({name}, {value}{'ULL' if value > 2 ** 32 else ''});"
             for name, value in constants.items()]
    return "\n".join(rows + ["    return bad != 0;", "}", ""])


def layout_fortran(read):
    """A program in Fortran, which fails where the size of a structure is not the compiler's."""
    rows = ["program layout", "  use filch_c", "  implicit none", "  logical :: is_bad = .false."]
    rows += [f"  type({name}) :: a_{name}" for name in read.structs]
    for name in read.structs:
        size = read.layout(name)[0]
        rows += [f"  if (c_sizeof(a_{name}) /= {size}) call bad('{name}')"]
        if read.structs[name][0].name == "size":
            rows += [f"  if (a_{name}%size /= {size}) call bad('{name}%size')"]
    return "\n".join(rows + ["  if (is_bad) error stop 'layouts differ'", "contains",
                             "  subroutine bad(name)", "    character(*), intent(in) :: name",
                             "    print '(a)', name//' has another size'", "    is_bad = .true.",
                             "  end subroutine", "end program", ""])


def main(arguments):
    read = headers.Headers(HERE.parent / "include/filch")
    if arguments == ["--layout"]:
        print(layout(read), end="")
        return 0
    if arguments == ["--layout-fortran"]:
        print(layout_fortran(read), end="")
        return 0
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    stale = []
    for path, write in OUTPUTS.items():
        text = write(read)
        if not arguments:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            stale.append(str(path.relative_to(HERE.parent)))
    for path in stale:
        print(f"{path} is not what the headers declare: run bindings/declare.py")
    if not stale:
        print(f"declarations: {len(read.functions)} functions, {len(read.structs)} structures")
    return len(stale) > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
