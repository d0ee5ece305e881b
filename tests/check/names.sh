#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Public names follow docs/names.md: new names are in the headers, old names nowhere; a structure that begins
# with its size has an initializer; a program in C++ compiles with every initializer.
set -euo pipefail
cd "$(dirname "$0")/../.."
headers=include/filch failed=0

fail()
{
    echo "$1"
    failed=1
}

names=$(grep -ohE '\b(filch|FILCH)_[A-Za-z0-9_]+' $headers/*.h | sort -u)
old=$(sed -n 's/^| `\([A-Za-z_]*\)` |.*/\1/p' docs/names.md)
new=$(sed -n 's/^| `[A-Za-z_]*` | `\([A-Za-z_]*\)` | .*|$/\1/p' docs/names.md)
[ -n "$old" ] && [ -n "$new" ]
for name in $new; do
    grep -qx "$name" <<<"$names" || fail "docs/names.md: $name is not in the headers"
done
for name in $old; do
    places=$(git grep -lw "$name" -- '*.c' '*.h' '*.cpp' '*.md' ':!docs/names.md' || true)
    [ -z "$places" ] || fail "$name, a former name, is in $(tr '\n' ' ' <<<"$places")"
done

sized=$(awk '/^typedef struct filch_[a-z_]* \{/ { name = $3; getline; if ($0 ~ /^ *size_t size;/) print name }' \
    $headers/*.h)
[ -n "$sized" ]
program=$(mktemp -d)
trap 'rm -rf "$program"' EXIT
{
    echo '#include <filch/filch.h>'
    echo '#include <filch/multicast.h>'
    echo 'int main() {'
    for name in $sized; do
        macro=$(tr '[:lower:]' '[:upper:]' <<<"$name")_INIT
        grep -qx "$macro" <<<"$names" || fail "$name has no $macro"
        echo "$name a_$name = $macro; (void)a_$name;"
    done
    echo 'filch_data *A = nullptr; int i = 1, j = 2;'
    echo 'const filch_access a[] = {FILCH_R(A, i, j), FILCH_W(A, i, j), FILCH_RW(A, i, j)}; (void)a;'
    echo 'return 0; }'
} >"$program/names.cpp"
c++ -std=c++11 -Wall -Wextra -Wpedantic -Werror -Iinclude -fsyntax-only "$program/names.cpp" ||
    fail "the initializers do not compile in C++"
sed 's/main()/main(void)/; s/nullptr/NULL/' "$program/names.cpp" >"$program/names.c"
cc -std=c11 -Wall -Wextra -Wpedantic -Wconversion -Werror -Iinclude -fsyntax-only "$program/names.c" ||
    fail "the initializers do not compile in C"
[ $failed -eq 0 ] && echo "names: $(wc -w <<<"$new") renamed, $(wc -w <<<"$sized") with an initializer"
exit $failed
