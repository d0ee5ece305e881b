#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tutorial.sh BUILD SCRATCH LIBDIR FAKECUDA NVRTC TWIN: follows the tutorials as a reader would, with filch
# installed in an empty prefix. Blocks marked "sh" of a page run one after the other in one folder,
# with the programs of docs/examples beside. What a block of commands prints must be the block behind it:
# a "text" exactly, an "output" but for times and bytes, a "sketch" but for all numbers. What asks for a
# GPU gets fake ones and a small problem.
set -euo pipefail
build=$1 scratch=$2 libdir=$3 fakecuda=$4 nvrtc=$5 twin=$6
case $scratch in
/?*/?*) ;;
*) echo "not a folder to make and remove: $scratch" && exit 1 ;;
esac
rm -rf "$scratch"
mkdir -p "$scratch"
cmake --install "$build" --prefix "$scratch/prefix" >"$scratch/install.log"

prefix=$scratch/prefix
export PATH=$prefix/bin:$PATH PKG_CONFIG_PATH=$prefix/$libdir/pkgconfig
export LD_LIBRARY_PATH=$prefix/$libdir:$fakecuda FILCH_NVRTC=$nvrtc FILCH_CACHE_DIR=off
unset FILCH_DEVICES FILCH_REPORT FILCH_LOG

# on_fake_gpus PROGRAM: puts a script in its place, which gives runs on GPUs few points and the twin.
on_fake_gpus()
{
    mv "$1" "$1.real"
    cat >"$1" <<SCRIPT
#!/bin/sh
case \${FILCH_DEVICES-cuda} in
*cuda*) shift 2; LD_PRELOAD=$twin exec "\$0.real" 20 4 "\$@" ;;
*) exec "\$0.real" "\$@" ;;
esac
SCRIPT
    chmod +x "$1"
}

# shape LANGUAGE FILE: its lines, with what may differ made alike.
shape()
{
    case $1 in
    text) cat "$2" ;;
    output) sed -E 's/[0-9]+(\.[0-9]+)? (s|ms|MB)\>/N \2/g' "$2" ;;
    sketch) sed -E 's/-?[0-9]+(\.[0-9]+)?/N/g; s/[- ]+/ /g; s/ +$//' "$2" ;;
    esac
}

# compare LANGUAGE: what was printed against the page.
compare()
{
    diff <(shape "$1" expected) <(shape "$1" printed) ||
        { echo "$page, before line $number: the commands above print something else"; exit 1; }
}

follow()
{
    local page=$1 language='' line number=0 count=0
    mkdir "$scratch/$(basename "$page" .md)"
    cp docs/examples/* "$scratch/$(basename "$page" .md)" 2>/dev/null || true
    exec 3<"$page"
    cd "$scratch/$(basename "$page" .md)"
    while IFS= read -r line <&3; do
        number=$((number + 1))
        case $line in
        '```sh' | '```text' | '```output' | '```sketch')
            language=${line#'```'}
            : >block
            ;;
        '```'*)
            case $language in
            sh)
                bash -eu block >printed 2>&1 3<&- ||
                    { cat printed; echo "$page, before line $number: fails"; exit 1; }
                count=$((count + 1))
                [ ! -e heat_gpu ] || [ -e heat_gpu.real ] || on_fake_gpus heat_gpu
                ;;
            text | output | sketch)
                mv block expected
                compare "$language"
                ;;
            esac
            language=
            ;;
        *) [ -z "$language" ] || printf '%s\n' "$line" >>block ;;
        esac
    done
    cd "$OLDPWD"
    [ $count -gt 0 ] || { echo "$page: no commands"; exit 1; }
    echo "$page: $count blocks of commands do what the page says"
}

pages=(docs/tutorial-cpu.md docs/tutorial-gpu.md docs/reading-the-report.md docs/cg.md)
if pkg-config --exists openblas lapacke; then
    pages+=(docs/cholesky.md)
else
    echo "docs/cholesky.md left out (no OpenBLAS or LAPACKE)"
fi
for page in "${pages[@]}"; do
    follow "$page"
done
rm -rf "$scratch"
