# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # gpu_* are set by gpu_options
# Sourced by tests/run --gpu, after tests/setup.sh and tests/bundle.sh.

# Every test on one set of devices. FL_TEST_DEVICES is what the kernels' own test goes by.
tests_gpu_on()
{
    local name=$1 program
    export FILCH_DEVICES=$2 FL_TEST_DEVICES=$2
    for program in "$gpu_bin"/test_gpu_* "$gpu_bin/test_unit_kernels"; do
        [ -x "$program" ] || continue
        program=$(basename "$program")
        gpu_item "${program#test_*_}-$name" 600 "$program"
    done
    unset FILCH_DEVICES FL_TEST_DEVICES
}

# compute-sanitizer's tools over every kernel: filch's own through their test and the solver's, a
# caller's through the graphs, batches and handles. Few cases: the tools are slow. What is left of
# device memory at the end is an error. Errors that the driver
# answers are not theirs to report: where the parameters of a kernel end is learned from one.
tests_gpu_sanitize()
{
    local tool program sanitizer leaks
    sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer)
    # In the folder of the programs, where gpu_item looks, by a name that finds its own files.
    printf '#!/bin/sh\ncd "%s" && exec "%s" "$@"\n' "$gpu_bin" "$sanitizer" \
        >"$gpu_bin/compute-sanitizer"
    chmod +x "$gpu_bin/compute-sanitizer"
    export FILCH_DEVICES=cuda:0 FL_TEST_DEVICES=cuda:0
    for tool in memcheck racecheck initcheck synccheck; do
        leaks=
        [ $tool != memcheck ] || leaks="--leak-check full"
        for program in graphs batches handles solver; do
            # shellcheck disable=SC2086 # words
            gpu_item "$tool-$program" 900 compute-sanitizer --tool $tool --error-exitcode 9 $leaks \
                --report-api-errors no "./test_gpu_$program" 6 1
        done
        # shellcheck disable=SC2086 # words
        gpu_item "$tool-kernels" 1800 compute-sanitizer --tool $tool --error-exitcode 9 $leaks \
            --report-api-errors no ./test_unit_kernels
    done
}

tests_gpu()
{
    gpu_options "$@"
    local gpus slices
    gpus=$(gpu_count)
    slices=$(gpu_slices)
    if [ "$gpus" -eq 0 ]; then
        echo "There is no GPU here." >&2
        return 77
    fi
    if [ -n "$gpu_sanitizer" ]; then
        tests_gpu_sanitize
    else
        tests_gpu_on one cuda:0
        tests_gpu_on slices "cuda:0/$slices"
        tests_gpu_on host cuda:0,host:4
        [ "$gpus" -lt 2 ] || tests_gpu_on two cuda:0,cuda:1
        [ "$gpus" -lt 2 ] || tests_gpu_on mixed "cuda:0/$slices,cuda:1,host:2"
        [ "$gpus" -lt 3 ] || tests_gpu_on all cuda
    fi
    gpu_summary
}
