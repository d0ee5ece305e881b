#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# refuse.sh CXX: what the C++ interface must not compile, with the sentence that says why; and that
# what is right beside it does compile. By the build's compiler, and by Clang where it is installed.
set -euo pipefail
cxx=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
compilers=("$cxx")
for candidate in clang++ clang++-14; do
    if command -v $candidate >/dev/null; then
        compilers+=("$candidate")
        break
    fi
done
count=0

# Each compiler reads the header once. A program without its compiled header does not compile.
for k in "${!compilers[@]}"; do
    mkdir "$scratch/$k"
    ${compilers[k]} -std=c++17 -Iinclude -x c++-header include/filch/filch.hpp \
        -o "$scratch/$k/filch.hpp.gch"
done

# compiles COMPILER: the program of write(), with the compiled header before it.
compiles()
{
    ${compilers[$1]} -std=c++17 -Iinclude -include "$scratch/$1/filch.hpp" -fsyntax-only \
        "$scratch/body.cpp"
}

write()
{
    cat >"$scratch/body.cpp" <<END
#include "filch/filch.hpp"
template <class T> using view = filch::view<T>;
void kernel(view<double>, const double &);
void use(filch::runtime &rt, filch::graph &g, filch::data &x)
{
    (void)rt; (void)g; (void)x;
    $1
}
END
}

accept()
{
    write "$1"
    for k in "${!compilers[@]}"; do
        compiles "$k" || { echo "${compilers[k]} refuses: $1"; exit 1; }
    done
    count=$((count + 1))
}

# refuse BODY SENTENCE
refuse()
{
    write "$1"
    for k in "${!compilers[@]}"; do
        if compiles "$k" 2>"$scratch/log"; then
            echo "${compilers[k]} compiles: $1"
            exit 1
        fi
        grep -qF -e "$2" "$scratch/log" ||
            { cat "$scratch/log"; echo "${compilers[k]} does not say: $2"; exit 1; }
    done
    count=$((count + 1))
}

accept 'g.add("a", [](view<const double>) {}, filch::read(x.tile(0)));'
refuse 'g.add("a", [](view<double>) {}, filch::read(x.tile(0)));' \
    'what a task only reads is a parameter view<const T>'
accept 'g.add("a", [](view<double>) {}, filch::write(x.tile(0)));'
for mode in write readwrite commute reduce; do
    refuse "g.add(\"a\", [](view<const double>) {}, filch::$mode(x.tile(0)));" \
        'what a task writes is a parameter view<T>'
done
accept 'g.add("a", [](filch::views<const double>) {}, filch::read(x.tiles()));'
refuse 'g.add("a", [](filch::views<double>) {}, filch::read(x.tiles()));' \
    'what a task only reads is a parameter view<const T>'
refuse 'g.add("a", [](view<const double>) {}, filch::read(x.tiles()));' \
    'a block of tiles is a parameter views<T>'
refuse 'g.add("a", [](filch::views<const double>) {}, filch::read(x.tile(0)));' \
    'a block of tiles is a parameter views<T>'
halo='const filch_halo halo = {1, 1, 0, 0}; '
accept "$halo g.add(\"a\", [](view<const double>) {}, filch::read(x.block(), halo));"
refuse "$halo g.add(\"a\", [](view<double>) {}, filch::read(x.tile(0), halo));" \
    'what a task only reads is a parameter view<const T>'
refuse "$halo filch::readwrite(x.tile(0), halo);" 'no matching'
refuse 'g.add("a", [](view<const double>) {});' 'a task has one view for every access'
refuse 'g.add("a", [] {}, filch::read(x));' 'a task has one view for every access'
refuse 'g.add("a", [](view<const double>) {}, x);' 'behind the function of a task stand accesses'
refuse 'g.add("a", [](auto) {}, filch::read(x));' "parameters are 'auto'"
refuse 'g.add("a", [n = 0](view<double>) mutable { ++n; }, filch::write(x));' \
    "a lambda without 'mutable'"
refuse 'g.add("a", [](view<double>) { return 1.5; }, filch::write(x));' \
    'the function of a task returns nothing or an int'
refuse 'g.add("a", [](view<double>, double) {}, filch::write(x));' 'arguments are captures'
refuse 'g.add("a", [](view<double>, filch::range) {}, filch::write(x));' \
    'parameters of a task are context, range, then a view for every access'
refuse 'g.add("a", [](view<std::string>) {}, filch::write(x));' 'filch copies elements byte by byte'
refuse 'g.add("a", [](view<float>) {}, filch::scratch<double>(3));' \
    'scratch<T> is a parameter view<T>'
refuse 'g.add("a", 3, filch::write(x));' 'is no function'
refuse 'struct alignas(128) wide { char c[128]; }; (void)filch::scratch<wide>(1);' \
    'scratch memory is aligned to 64 bytes'
accept 'g.add(rt.builtin("axpy_f64"), filch_axpy_args{3}, filch::read(x), filch::write(x));'
for forgotten in x 'x.tile(0)' 'x.tiles()'; do
    refuse "g.add(rt.builtin(\"axpy_f64\"), $forgotten);" 'name the access: filch::read(tile)'
done

accept 'rt.batch(9, [](filch::range, view<double>) {}, filch::write(x)).run();'
refuse '(void)rt.batch(9, [](filch::range, view<double>) {}, filch::read(x));' \
    'what a task only reads is a parameter view<const T>'
refuse '(void)rt.batch(9, [](filch::range, view<double>) {}, filch::write(x.tile(0)));' \
    'accesses of a batch name whole handles'
refuse 'filch::write(x).halo(1, 1);' 'only a read access has a halo'
refuse 'filch::write(x).whole();' 'only a read access sees the whole handle'

accept 'g.add(rt.kernel<kernel>("k"), 2.0, filch::write(x));'
refuse 'g.add(rt.kernel<kernel>("k"), filch::write(x));' 'no matching'
refuse 'g.add(rt.kernel<kernel>("k"), "two", filch::write(x));' 'no matching'
refuse 'g.add(rt.kernel<kernel>("k"), 2.0, filch::read(x));' \
    'what a task only reads is a parameter view<const T>'
accept 'x.reduction(rt.builtin("zero"), rt.builtin("plus"));'
refuse 'x.reduction([](view<double>) {}, [](view<double>, view<const double>) {});' \
    'a reduction takes kernels or codelets'
sparse='auto A = rt.csr(filch::csr_buffer(std::vector<int>{0}, std::vector<int>(), std::vector<double>(), 9)); '
accept "$sparse g.add(\"a\", [](filch::csr_view<const double>) {}, filch::read(A.block(0)));"
accept "$sparse g.add(\"a\", [](filch::csr_view<double>) {}, filch::commute(A.block(0)));"
refuse "$sparse g.add(\"a\", [](filch::csr_view<double>) {}, filch::read(A.block(0)));" \
    'a row block of a csr<V, C, P> is a parameter csr_view<const V, C, P>'
refuse "$sparse g.add(\"a\", [](filch::csr_view<const float>) {}, filch::read(A.block(0)));" \
    'a row block of a csr<V, C, P> is a parameter csr_view<const V, C, P>'
refuse "$sparse g.add(\"a\", [](view<const double>) {}, filch::read(A.block(0)));" \
    'a row block of a csr<V, C, P> is a parameter csr_view<const V, C, P>'
refuse "$sparse g.add(\"a\", [](filch::csr_view<double>) {}, filch::write(A.block(0)));" 'no matching'
refuse 'g.add("a", [](filch::csr_view<const double>) {}, filch::read(x));' \
    'a csr_view is the parameter of a row block'
refuse 'std::vector<short> v; filch::csr_buffer b(v, v, v, 3);' 'integers of 4 or 8 bytes'
refuse 'filch::graph copy = g;' 'delete'
refuse 'std::vector<std::string> v; filch::buffer b(v);' 'filch copies elements byte by byte'
echo "refuse: $count programs, by ${#compilers[@]} compilers"
