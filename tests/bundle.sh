# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034 # those who source this use more of it
# Sourced by tests/run and bench/run. A bundle is what a GPU machine needs that can install and
# build nothing: one file of filch-bench, test programs and the libraries that they link, next to a
# checkout of the sources, from which the matrices and the scripts come. The C and C++ runtime
# libraries are the machine's own.

bundle_file=filch-gpu.tar.gz
bundle_limit_mib=60

# bundle_make DIR BUILD: from a release build.
bundle_make()
{
    local dir=$1 build=$2 stage program library
    stage=$(mktemp -d)
    mkdir -p "$dir" "$stage/bin" "$stage/lib"
    (cd "$build/tests" && find . -maxdepth 1 -type f -executable) | sed 's|^./||' |
        while read -r program; do
            case $program in
            test_gpu_* | test_unit_kernels | blas_time | blas_client)
                strip -o "$stage/bin/$program" "$build/tests/$program"
                ;;
            esac
        done
    strip -o "$stage/bin/filch-bench" "$build/bench/filch-bench"
    cp "$build"/kernels/blas/libfilch_blas*.so "$stage/lib/"
    for program in "$stage"/bin/* "$stage"/lib/*; do
        ldd "$program"
    done | awk '$3 ~ /^\// { print $3 }' | sort -u | while read -r library; do
        case ${library##*/} in
        libc.so* | libm.so* | libdl.so* | librt.so* | libpthread.so* | ld-linux* | libgcc_s.so* | \
            libstdc++.so* | libcuda.so* | libnvrtc*) ;;
        *) cp -L "$library" "$stage/lib/" ;;
        esac
    done
    strip --strip-unneeded "$stage"/lib/* 2>/dev/null || true
    cp "$build/kernels/blas/filch-run" "$stage/bin/"
    tar -C "$stage" -c bin lib | gzip -9 >"$dir/$bundle_file"
    rm -r "$stage"
    echo "Bundle  $bundle_file, $(du -m "$dir/$bundle_file" | cut -f1) MiB"
    if [ "$(du -m "$dir/$bundle_file" | cut -f1)" -gt $bundle_limit_mib ]; then
        echo "The bundle is larger than $bundle_limit_mib MiB." >&2
        return 1
    fi
}

# bundle_main DIR: the same with the build before it.
bundle_main()
{
    setup_need build bench
    setup_want tests
    setup_build release
    bundle_make "$1" build/release
}

# bundle_open DIR: sets gpu_bin and LD_LIBRARY_PATH; the files go away with the script.
bundle_open()
{
    if [ ! -f "$1/$bundle_file" ]; then
        echo "There is no $bundle_file in the folder given." >&2
        return 1
    fi
    gpu_stage=$(mktemp -d)
    trap 'rm -r "$gpu_stage"' EXIT
    tar -C "$gpu_stage" -xzf "$1/$bundle_file"
    gpu_bin=$gpu_stage/bin
    export LD_LIBRARY_PATH=$gpu_stage/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}

# --- Running one item after another, whatever becomes of each ---

gpu_out=
gpu_only=.
gpu_passed=0
gpu_failed=()
gpu_skipped=()
gpu_left=()
gpu_seconds= # no item begins later; empty: any may
gpu_list=    # items are listed in place of being run
gpu_part=

gpu_last_line()
{
    grep -v '^[[:space:]]*$' "$gpu_out/$1.log" | tail -n 1
}

# gpu_item NAME SECONDS COMMAND...: output into NAME.log; 77 is a skip. Programs are named without
# their folder. An item runs no longer than the rest of gpu_seconds;
# one that is cut off by that counts as not run.
gpu_item()
{
    local name=$1 seconds=$2 program=$3 code=0 start=$SECONDS is_cut=
    shift 3
    [[ $name =~ $gpu_only ]] || return 0
    if [ -n "$gpu_list" ]; then
        echo "$gpu_part $name $program ${*//"$gpu_out/"/}"
        return
    fi
    if [ -n "$gpu_seconds" ] && [ "$SECONDS" -ge "$gpu_seconds" ]; then
        gpu_left+=("$name")
        return
    fi
    if [ -n "$gpu_seconds" ] && [ $((gpu_seconds - SECONDS)) -lt "$seconds" ]; then
        seconds=$((gpu_seconds - SECONDS))
        is_cut=1
    fi
    printf '%-34s' "$name"
    printf '%s\n' "$program ${*//"$gpu_out/"/}" >"$gpu_out/$name.log"
    timeout "$seconds" "$gpu_bin/$program" "$@" >>"$gpu_out/$name.log" 2>&1 || code=$?
    if [ $code -eq 0 ]; then
        gpu_passed=$((gpu_passed + 1))
        echo "passed   $((SECONDS - start)) s"
    elif [ $code -eq 124 ] && [ -n "$is_cut" ]; then
        gpu_left+=("$name")
        echo "cut off  after $seconds s"
    elif [ $code -eq 77 ]; then
        gpu_skipped+=("$name")
        echo "skipped  $(gpu_last_line "$name")"
    else
        gpu_failed+=("$name")
        echo "FAILED   code $code: $(gpu_last_line "$name")"
    fi
}

# gpu_summary: the exit status of the script. Where nothing ran, nothing has passed.
gpu_summary()
{
    echo
    echo "$gpu_passed passed, ${#gpu_failed[@]} failed, ${#gpu_skipped[@]} skipped"
    [ ${#gpu_failed[@]} -eq 0 ] || echo "failed: ${gpu_failed[*]}"
    [ ${#gpu_skipped[@]} -eq 0 ] || echo "skipped: ${gpu_skipped[*]}"
    [ ${#gpu_left[@]} -eq 0 ] ||
        (IFS='|' && echo "left, for want of time: --only '^(${gpu_left[*]})\$'")
    [ $gpu_passed -gt 0 ] && [ ${#gpu_failed[@]} -eq 0 ]
}

# gpu_count: GPUs that filch finds.
gpu_count()
{
    local found
    found=$("$gpu_bin/filch-bench" devices --devices cuda --json 2>/dev/null |
        grep -c '"name": "cuda:') || true
    echo "${found:-0}"
}

# gpu_slices: a cut of GPU 0 into three unequal slices, of eleven, three and one fifteenths of its
# multiprocessors in groups of eight.
gpu_slices()
{
    local sms
    sms=$("$gpu_bin/filch-bench" devices --devices cuda:0 --json 2>/dev/null |
        sed -n 's/.*"team": *\([0-9]*\).*/\1/p' | head -n 1)
    awk -v groups=$((${sms:-132} / 8 - 1)) 'BEGIN {
        small = int(groups / 15); if (small < 1) small = 1
        middle = int(groups / 5); if (middle < 1) middle = 1
        printf "%d+%d+%d\n", 8 * (groups - middle - small), 8 * middle, 8 * small
    }'
}

# gpu_words "$@": what tests/run --gpu and bench/run --gpu have in common. Sets gpu_out, gpu_bundle
# and the rest; what it does not know ends the script.
gpu_sanitizer=
gpu_bundle=
gpu_words()
{
    local rest=()
    while [ $# -gt 0 ]; do
        case $1 in
        --gpu) ;;
        --bundle) gpu_bundle=${2:?--bundle needs a folder}; shift ;;
        --out) gpu_out=${2:?--out needs a folder}; shift ;;
        --only) gpu_only=${2:?--only needs a pattern}; shift ;;
        --seconds)
            gpu_seconds=${2:?--seconds needs a number}
            [[ $gpu_seconds =~ ^[1-9][0-9]*$ ]] || rest+=("--seconds $gpu_seconds")
            shift
            ;;
        --sanitizer) gpu_sanitizer=yes ;;
        *) rest+=("$1") ;;
        esac
        shift
    done
    if [ ${#rest[@]} -gt 0 ]; then
        echo "$0 --gpu: what is ${rest[*]}?" >&2
        exit 2
    fi
    gpu_out=${gpu_out:-build/gpu}
}

# gpu_options "$@": the words, before anything is built, and the programs. Sets gpu_bin.
gpu_options()
{
    gpu_words "$@"
    mkdir -p "$gpu_out"
    if [ -n "$gpu_bundle" ]; then
        bundle_open "$gpu_bundle"
        return
    fi
    setup_need build bench
    setup_want tests
    setup_build release
    gpu_stage=$(mktemp -d)
    trap 'rm -r "$gpu_stage"' EXIT
    ln -s "$PWD"/build/release/tests/test_* "$PWD/build/release/tests/blas_time" \
        "$PWD/build/release/bench/filch-bench" "$gpu_stage"
    gpu_bin=$gpu_stage
    export LD_LIBRARY_PATH=$PWD/build/release/kernels/blas${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}
