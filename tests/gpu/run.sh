# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by tests/run --gpu, after tests/setup.sh and tests/bundle.sh.

# Every test on one set of devices.
tests_gpu_on()
{
    local name=$1 program
    export FILCH_DEVICES=$2
    for program in "$gpu_bin"/test_gpu_*; do
        program=$(basename "$program")
        gpu_item "${program#test_gpu_}-$name" 600 "$program"
    done
    unset FILCH_DEVICES
}

# compute-sanitizer's tools over every kernel: filch's own through the kernel and solver tests, a
# caller's through the graphs and batches. Few cases: the tools are slow.
tests_gpu_sanitize()
{
    local tool program sanitizer
    sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer)
    ln -sf "$sanitizer" "$gpu_stage/compute-sanitizer"
    gpu_programs=$gpu_bin
    gpu_bin=$gpu_stage
    export FILCH_DEVICES=cuda:0
    for tool in memcheck racecheck initcheck synccheck; do
        for program in graphs batches solver kernels; do
            [ -x "$gpu_programs/test_gpu_$program" ] || continue
            gpu_item "$tool-$program" 900 compute-sanitizer --tool $tool --error-exitcode 9 \
                "$gpu_programs/test_gpu_$program" 6 1
        done
    done
}

tests_gpu()
{
    gpu_options "$@"
    if [ ${#gpu_rest[@]} -gt 0 ]; then
        echo "tests/run --gpu: what is ${gpu_rest[*]}?" >&2
        return 2
    fi
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
