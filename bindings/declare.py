#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Declares the C interface of filch for Python, from the headers in include/filch.

    declare.py            writes python/filch/c.py
    declare.py --check    says whether the file is what it would write; exit 1 if not
    declare.py --layout   prints a C program that compares the layouts with the compiler's
"""
import pathlib
import sys

import headers
import python_text

HERE = pathlib.Path(__file__).resolve().parent
OUTPUTS = {
    HERE / "python/filch/c.py": python_text.write,
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


def main(arguments):
    read = headers.Headers(HERE.parent / "include/filch")
    if arguments == ["--layout"]:
        print(layout(read), end="")
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
