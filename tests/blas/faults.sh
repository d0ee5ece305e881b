#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# faults.sh FILCH-RUN CLIENT: GPUs of the fake driver fail here and there; every result is right all the
# same, by the next BLAS.
set -uo pipefail
run=$1 client=$2 failed=0 links= sizes=7,40

# one FAILURE ROUTINE...: some call must have failed.
one()
{
    local config="{$links\"failures\": [{$1}]}" output
    shift
    output=$(FAKECUDA_CONFIG=$config "$run" --verbose "$client" --sizes "$sizes" "$@" 2>&1) || {
        echo "$config $*:"
        tail -5 <<<"$output"
        failed=1
    }
    grep -q -e "the next BLAS computes it" -e "all calls go to the next BLAS" <<<"$output" || {
        echo "$config $*: nothing failed"
        failed=1
    }
}

one '"call": "cublasDgemm", "nth": 40' gemm trmm
one '"call": "cublasDtrsm", "nth": 1' trsm
one '"call": "cublasDtrmm", "nth": 9' trmm
one '"call": "cusolverDnDpotrf", "nth": 2' potrf posv
one '"call": "cusolverDnDgetrf", "nth": 2' getrf gesv
# Both GPUs are lost: 719 is a launch that failed, and all that follows fails.
one '"call": "cublasDgemm", "nth": 20, "count": 0, "result": 719, "sticky": true' gemm
one '"call": "cuMemcpyDtoHAsync", "nth": 20, "count": 0, "result": 719, "sticky": true' gemm trsm potrf
# No memory on the GPUs, a driver that fails, and no cuBLAS handle.
one '"call": "cuMemAlloc", "count": 0, "result": 2' gemm trsm potrf
one '"call": "cuInit", "count": 0, "result": 802' gemm trsm potrf
one '"call": "cublasCreate", "count": 0' gemm trsm potrf
# GPUs that do not reach each other: tiles go between them by the caller's own memory.
links='"links": [{"from": 0, "to": 1, "peer": false}], ' sizes=65
export FILCH_NVRTC=/nonexistent/libnvrtc.so FILCH_CACHE_DIR=off
one '"call": "cusolverDnDpotrf", "nth": 4' potrf
one '"call": "cublasDtrsm", "nth": 60' trsm
exit $failed
