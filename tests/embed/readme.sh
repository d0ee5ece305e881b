# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the tests of what is installed: README.md's programs, as a reader would build them.

# readme_program NAME NUMBER FOLDER: writes FOLDER/solver.c, docs/examples/NAME.c with README.md's block of C of
# that number in the place of what it quotes; FOLDER/CMakeLists.txt with README.md's two lines of CMake; and
# FOLDER/build.sh with its line of pkg-config. The BLAS is the program's own need.
readme_program()
{
    local name=$1 number=$2 folder=$3 block cmake line
    block=$(awk -v number="$number" '/^```c$/ { inside = ++count == number; next }
        /^```$/ { inside = 0 } inside' README.md)
    cmake=$(sed -n 's/^| CMake | //p' README.md | grep -o '`[^`]*`' | tr -d '`')
    line=$(sed -n 's/^| pkg-config | `\(.*\)` |$/\1/p' README.md)
    if [ -z "$block" ] || [ "$(wc -l <<<"$cmake")" != 2 ] || [[ "$line" != "cc solver.c "* ]]; then
        echo "README.md: no program $number, or no two lines of CMake and one of pkg-config"
        return 1
    fi
    mkdir -p "$folder"
    {
        sed '/README begins here/,$d' "docs/examples/$name.c"
        printf '%s\n' "$block"
        sed '1,/README ends here/d' "docs/examples/$name.c"
    } >"$folder/solver.c"
    cat >"$folder/CMakeLists.txt" <<LISTS
cmake_minimum_required(VERSION 3.16)
project(solver LANGUAGES C)
$(head -n 1 <<<"$cmake")
find_package(PkgConfig REQUIRED)
pkg_check_modules(blas REQUIRED IMPORTED_TARGET openblas lapacke)
add_executable(solver solver.c)
$(tail -n 1 <<<"$cmake")
target_link_libraries(solver PRIVATE PkgConfig::blas m)
LISTS
    printf 'set -eu\ncd "$(dirname "$0")"\n%s $(pkg-config --libs openblas lapacke) -lm "$@"\n' "$line" \
        >"$folder/build.sh"
}
