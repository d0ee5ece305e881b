#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the C interface of filch with what C++, Python and Fortran make of it.

    wrapped.py            says which functions lack a counterpart without a reason; exit 1 if any
    wrapped.py --table    prints a row a function

A function has a counterpart in a language where the code of the language calls it, comments and
texts aside. Every other function is a line of unwrapped.txt, with the reason.
"""
import ast
import fnmatch
import pathlib
import re
import sys

import headers

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = HERE.parent / "include/filch"
LANGUAGES = ("cpp", "python", "fortran")


def calls_in_cpp(paths):
    """Names of functions that code in C++ calls."""
    text = "\n".join(path.read_text() for path in paths)
    text = re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"", " ", text, flags=re.S)
    return set(re.findall(r"\b(filch_\w+)\s*\(", text))


def calls_in_fortran(paths):
    """Names of functions that code in Fortran calls."""
    text = "\n".join(path.read_text() for path in paths)
    text = re.sub(r"'[^'\n]*'|![^\n]*", " ", text)
    return set(re.findall(r"\b(filch_\w+)\s*\(", text))


def calls_in_python(paths):
    """Names of functions of the library that code in Python uses: attributes of lib."""
    found = set()
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and \
                    node.value.id == "lib":
                found.add(node.attr)
    return found


def calls():
    """Names by language."""
    package = [path for path in (HERE / "python/filch").glob("*.py") if path.name != "c.py"]
    return {
        "cpp": calls_in_cpp((INCLUDE / "cpp").glob("*.hpp")),
        "python": calls_in_python(package),
        "fortran": calls_in_fortran([HERE / "fortran/filch.f90", HERE / "fortran/filch_arrays.f90"]),
    }


def reasons(functions, problems):
    """Reasons by function and language, of unwrapped.txt: NAME LANGUAGES REASON."""
    found = {}
    lines = (HERE / "unwrapped.txt").read_text().splitlines()
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        pattern, languages, reason = (line.split(None, 2) + ["", ""])[:3]
        names = fnmatch.filter(functions, pattern)
        given = LANGUAGES if languages == "all" else languages.split(",")
        if not names or not reason or not set(given) <= set(LANGUAGES):
            problems.append(f"unwrapped.txt:{number}: no function, language or reason: {line}")
            continue
        found.update({(name, language): reason for name in names for language in given})
    return found


def main(arguments):
    if arguments not in ([], ["--table"]):
        print(__doc__, file=sys.stderr)
        return 2
    functions, problems = list(headers.Headers(INCLUDE).functions), []
    excused, called = reasons(functions, problems), calls()
    for name in functions:
        has = {language: name in called[language] for language in LANGUAGES}
        if arguments:
            print(f"{name:34}" + "".join(f"{language + (' yes' if has[language] else ' -'):14}"
                                         for language in LANGUAGES).rstrip())
        for language in LANGUAGES:
            if has[language] and (name, language) in excused:
                problems.append(f"{name} is called in {language}: take it out of unwrapped.txt")
            if not has[language] and (name, language) not in excused:
                problems.append(f"{name} has no counterpart in {language}, and no reason in "
                                "bindings/unwrapped.txt")
    for problem in problems:
        print(problem)
    if not problems:
        counts = ", ".join(f"{sum(name in called[each] for name in functions)} in {each}"
                           for each in LANGUAGES)
        print(f"wrapped: of {len(functions)} functions {counts}")
    return len(problems) > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
