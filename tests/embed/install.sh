#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# install.sh BUILD SCRATCH LIBDIR: installs the build into an empty prefix, looks at what is there,
# and builds and runs README.md's programs and others against it through find_package and through pkg-config.
set -euo pipefail
. tests/embed/readme.sh
build=$1
scratch=$2
libdir=$3
prefix=$scratch/prefix
rm -rf "$scratch"
mkdir -p "$scratch"

cmake --install "$build" --prefix "$prefix" >"$scratch/install.log"

# Headers: those of include/filch and no other.
diff <(cd include && find . -type f | sort) <(cd "$prefix/include" && find . -type f | sort)
for library in filch filch_system; do
    [ -f "$prefix/$libdir/lib$library.so" ]
    dynamic=$(readelf -d "$prefix/$libdir/lib$library.so")
    if ! grep -q "SONAME.*\[lib$library\.so\.0\]" <<<"$dynamic"; then
        echo "lib$library.so has the wrong soname"
        exit 1
    fi
    # Nothing of the build tree is left in what is installed, and no BLAS is linked.
    if grep -E 'RPATH|RUNPATH|blas|lapack|libstdc' <<<"$dynamic"; then
        exit 1
    fi
done
[ -z "$(find "$prefix" -name '*.a')" ]

# The drop-in BLAS finds its parts where they are installed.
for library in filch_blas filch_blas64 filch_blas_engine; do
    [ -f "$prefix/$libdir/lib$library.so" ]
    if readelf -d "$prefix/$libdir/lib$library.so" | grep -E 'RPATH|RUNPATH|blas\.so\.|lapack|libstdc'; then
        exit 1
    fi
done
"$prefix/bin/filch-run" sh -c 'grep -q libfilch_blas.so /proc/$$/maps'

echo "== find_package"
cmake -S tests/embed/consumer -B "$scratch/cmake" -DCMAKE_PREFIX_PATH="$prefix" >"$scratch/cmake.log"
cmake --build "$scratch/cmake"
"$scratch/cmake/consumer"
[ ! -e "$scratch/cmake/CMakeFiles/consumer_cpp.dir" ] || "$scratch/cmake/consumer_cpp"
[ ! -e "$scratch/cmake/CMakeFiles/consumer_fortran.dir" ] || "$scratch/cmake/consumer_fortran"

echo "== pkg-config"
PKG_CONFIG_PATH=$prefix/$libdir/pkgconfig
export PKG_CONFIG_PATH
number=0
for name in cholesky smooth; do
    number=$((number + 1))
    pkg-config --exists openblas lapacke || continue
    readme_program $name $number "$scratch/readme-$name"
    cmake -S "$scratch/readme-$name" -B "$scratch/readme-$name/build" -DCMAKE_PREFIX_PATH="$prefix" >"$scratch/cmake.log"
    cmake --build "$scratch/readme-$name/build"
    "$scratch/readme-$name/build/solver"
    sh "$scratch/readme-$name/build.sh" -o by-pkg-config
    LD_LIBRARY_PATH=$prefix/$libdir "$scratch/readme-$name/by-pkg-config"
done
# The build was configured for another prefix: the file finds the real one from where it lies.
flags=$(pkg-config --cflags --libs filch)
# shellcheck disable=SC2086 # words
${CC:-cc} -std=c11 -Wall -Wextra -Wpedantic -Werror tests/embed/consumer/consumer.c \
    -o "$scratch/consumer" $flags
LD_LIBRARY_PATH=$prefix/$libdir "$scratch/consumer"
if command -v "${CXX:-c++}" >/dev/null; then
    # shellcheck disable=SC2086 # words
    ${CXX:-c++} -x c++ -std=c++17 -Wall -Wextra -Wpedantic -Werror \
        tests/embed/consumer/consumer.c -o "$scratch/consumer-cxx" $flags
    LD_LIBRARY_PATH=$prefix/$libdir "$scratch/consumer-cxx"
    # The C++ interface, in another language standard than the one that it is tested in elsewhere.
    # shellcheck disable=SC2086 # words
    ${CXX:-c++} -std=c++20 -Wall -Wextra -Wpedantic -Werror docs/examples/cholesky.cpp \
        -o "$scratch/cholesky-cxx" $flags
    LD_LIBRARY_PATH=$prefix/$libdir "$scratch/cholesky-cxx"
fi
if command -v gfortran >/dev/null; then
    fortran=$(pkg-config --variable=fortrandir filch)
    # shellcheck disable=SC2086 # words
    gfortran -J "$scratch" "$fortran"/filch_c.f90 "$fortran"/filch_arrays.f90 "$fortran"/filch.f90 \
        docs/examples/tour.f90 -o "$scratch/tour-fortran" $flags
    LD_LIBRARY_PATH=$prefix/$libdir "$scratch/tour-fortran"
fi
# A program with nothing but the drop-in: its calls arrive there, and have no next BLAS.
flags=$(pkg-config --libs filch_blas)
# shellcheck disable=SC2086 # words
${CC:-cc} -std=c11 tests/blas/alone.c -o "$scratch/alone" $flags -lm
LD_LIBRARY_PATH=$prefix/$libdir FILCH_BLAS_NEXT=/nonexistent "$scratch/alone"
flags=$(pkg-config --libs filch_blas64)
# shellcheck disable=SC2086 # words
${CC:-cc} -std=c11 tests/blas/alone.c -o "$scratch/alone64" $flags -lm
readelf -d "$scratch/alone64" | grep -q 'NEEDED.*\[libfilch_blas64\.so\]'
