# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # gpu_* are set by gpu_options
# Sourced by bench/run --gpu, after tests/setup.sh and tests/bundle.sh.

# Each is a function bench_part_NAME, and meant to take less than 500 s on one or two GPUs.
bench_parts="solver dispatch busy batches steps products cholesky lu qr host solve triangles blas \
cublasxt cusolvermg micro stream overcommit"

# bench_item NAME ARGUMENTS...: a run of filch-bench with its result document.
bench_item()
{
    local name=$1
    shift
    gpu_item "$name" 300 filch-bench run "$@" --json "$gpu_out/$name.json"
}

# On each set of devices, against the residual that the matrix is held to.
bench_part_solver()
{
    local matrix="--matrix bench/data/bcsstk24.mtx"
    # shellcheck disable=SC2086 # words
    {
        bench_item cholesky-one cholesky $matrix --devices cuda:0 --check
        bench_item cholesky-slices cholesky $matrix --devices "cuda:0/$slices" --check
        bench_item cholesky-slices-static cholesky $matrix --devices "cuda:0/$slices" --check \
            --policy static
        bench_item cholesky-host cholesky $matrix --devices cuda:0,host:4 --check
        bench_item cholesky-own-kernels cholesky $matrix --devices cuda:0 --own-kernels --check
        bench_item cholesky-single cholesky $matrix --devices cuda:0 --precision single --check
        bench_item cholesky-cusolver cholesky $matrix --devices cuda:0 --check --versus cusolver
        [ "$gpus" -lt 2 ] ||
            bench_item cholesky-two cholesky $matrix --devices cuda:0,cuda:1 --check
    }
}

# Dispatch, beside a loop of launches in the same process: graphs that are submitted again and
# again, as filch chooses (with runs enough to choose), in one launch from the third run on
# (replayed), and never so (fresh).
bench_part_dispatch()
{
    local workload
    for workload in empty chain wavefront; do
        bench_item "$workload-bare" $workload --devices cuda:0 --versus bare --check --repeat 20
        FILCH_REPLAY=3 bench_item "$workload-replayed" $workload --devices cuda:0 --versus bare
        FILCH_REPLAY=0 bench_item "$workload-fresh" $workload --devices cuda:0 --versus bare
    done
    bench_item create-bare create --devices cuda:0 --versus bare --check
    bench_item open open --devices cuda:0 --check
    bench_item empty-slices empty --devices "cuda:0/$slices" --check
    [ "$gpus" -lt 2 ] || bench_item empty-all empty --devices cuda --versus bare --check --n 400000
}

# What the host's processors do beside tiles of a millisecond.
bench_part_busy()
{
    bench_item busy busy --n 300 --devices cuda:0 --versus spin --check
    [ "$gpus" -lt 2 ] ||
        bench_item busy-all busy --n $((300 * gpus)) --devices cuda --versus spin --check
}

# Products, of matrices that stay and from the host's memory, beside cuBLAS.
bench_part_products()
{
    local name devices
    while read -r name devices; do
        bench_item gemm-16384-"$name" gemm --n 16384 --devices "$devices" --versus cublas \
            --repeat 5 --check
        bench_item gemm-16384-resident-"$name" gemm --n 16384 --devices "$devices" --resident \
            --versus cublas --repeat 5
        bench_item gemm-16384-pinned-"$name" gemm --n 16384 --devices "$devices" --pinned \
            --repeat 7
    done < <(bench_sets)
    bench_item gemm-own-kernels gemm --n 8192 --devices cuda:0 --own-kernels --versus cublas
    bench_item gemm-slices gemm --n 4096 --devices "cuda:0/$slices" --check
    bench_item gemm-single gemm --n 8192 --devices cuda:0 --precision single --versus cublas
}

bench_part_cholesky()
{
    local name devices n
    while read -r name devices; do
        for n in 4096 8192 16384 32768; do
            bench_item cholesky-$n-resident-"$name" cholesky --n $n --devices "$devices" \
                --resident --versus cusolver --repeat 5
        done
    done < <(bench_sets)
    # One whole GPU and one cut to half of its multiprocessors.
    [ "$gpus" -lt 2 ] || for n in 16384 32768; do
        bench_item cholesky-$n-unequal cholesky --n $n --devices cuda:0,cuda:1/66 --resident \
            --repeat 5
    done
    [ "$gpus" -lt 2 ] ||
        bench_item cholesky-65536-resident-two cholesky --n 65536 --tile 2048 --resident \
            --devices cuda:0,cuda:1 --no-speeds --versus cusolver --repeat 3
}

# bench_factor WORKLOAD: resident, beside cuSOLVER.
bench_factor()
{
    local name devices
    while read -r name devices; do
        bench_item "$1-16384-resident-$name" "$1" --n 16384 --devices "$devices" --resident \
            --versus cusolver --repeat 5 --check
        bench_item "$1-32768-resident-$name" "$1" --n 32768 --devices "$devices" --resident \
            --versus cusolver --repeat 3
    done < <(bench_sets)
}

bench_part_lu()
{
    bench_factor lu
}

bench_part_qr()
{
    bench_factor qr
}

# Factorizations from the host's memory and back.
bench_part_host()
{
    local name devices workload
    while read -r name devices; do
        for workload in cholesky lu; do
            bench_item $workload-16384-pinned-"$name" $workload --n 16384 --devices "$devices" \
                --pinned --versus cusolver --repeat 5 --check
            bench_item $workload-16384-pageable-"$name" $workload --n 16384 --devices "$devices" \
                --pageable --versus cusolver --repeat 5
        done
    done < <(bench_sets)
}

bench_part_solve()
{
    local n name
    for n in 16384 32768; do
        bench_item solve-$n solve --n $n --devices cuda:0 --resident --versus cusolverirs \
            --repeat 5 --check
        for name in tf32 fp16 tf32x3; do
            bench_item solve-$n-$name solve --n $n --factor $name --devices cuda:0 --resident \
                --versus cusolverirs --repeat 5 --check
        done
    done
}

# Each beside the library that has it, resident and from the host's memory.
bench_part_triangles()
{
    local workload peer name devices
    while read -r workload peer; do
        while read -r name devices; do
            bench_item "$workload-16384-resident-$name" "$workload" --n 16384 --devices "$devices" \
                --resident --versus "$peer" --repeat 5 --check
        done < <(bench_sets)
        bench_item "$workload-16384-one" "$workload" --n 16384 --devices cuda:0 --versus "$peer" \
            --repeat 5 --check
    done <<'EOF'
syrk cublas
trsm cublas
potrs cusolver
getrs cusolver
EOF
}

# The drop-in in front of the machine's BLAS, which takes minutes above the order of 4096.
bench_part_blas()
{
    gpu_item blas-time 300 blas_time --next-most 4096 64 512 4096 8192 16384
}

# bench_sets: a name and a specification a line, of one GPU, of two and of all.
bench_sets()
{
    echo one cuda:0
    [ "$gpus" -lt 2 ] || echo two cuda:0,cuda:1
    [ "$gpus" -lt 3 ] || echo all cuda
}

# The vendor's ways to several GPUs: operands in the host's page-locked memory, and on the GPUs.
bench_part_cublasxt()
{
    local name devices
    while read -r name devices; do
        bench_item gemm-16384-cublasxt-"$name" gemm --n 16384 --devices "$devices" \
            --versus cublasxt --repeat 5
    done < <(bench_sets)
}

bench_part_cusolvermg()
{
    local name devices workload n
    while read -r name devices; do
        for workload in cholesky lu; do
            for n in 16384 32768; do
                bench_item $workload-$n-cusolvermg-"$name" $workload --n $n --devices "$devices" \
                    --resident --versus cusolvermg --repeat 5 --check
            done
        done
    done < <(bench_sets)
}

bench_part_micro()
{
    local name
    for name in launch blocks lu panels copy; do
        gpu_item micro-$name 240 filch-bench micro $name --json "$gpu_out/micro-$name.json"
    done
    [ "$gpus" -lt 2 ] || gpu_item micro-broadcast 240 \
        filch-bench micro broadcast --json "$gpu_out/micro-broadcast.json"
}

# Copies beside kernels.
bench_part_stream()
{
    local name devices
    while read -r name devices; do
        bench_item stream-link-"$name" stream --cost 100 --devices "$devices" --pinned --check
        bench_item stream-kernel-"$name" stream --cost 6000 --devices "$devices" --pinned --check
        bench_item stream-pageable-"$name" stream --cost 100 --devices "$devices" --pageable --check
    done < <(bench_sets)
}

# Copies in place of memory that is not there: operands of three times the limit, of which the
# smaller ones are checked.
bench_part_overcommit()
{
    local name devices
    while read -r name devices; do
        bench_item gemm-overcommit-"$name" gemm --n 32768 --devices "$devices" \
            --memory-limit 8G --pinned --repeat 3
        bench_item gemm-overcommit-checked-"$name" gemm --n 8192 --devices "$devices" \
            --memory-limit 512M --pinned --check
    done < <(bench_sets)
    bench_item gemm-pageable gemm --n 16384 --devices cuda:0 --pageable --repeat 3
    bench_item gemm-overcommit-slices gemm --n 8192 --devices "cuda:0/$slices" \
        --memory-limit 512M --check
}

bench_part_batches()
{
    local workload n
    # Enough that the launches do not count.
    for workload in mandelbrot:2048 nbody:262144 jacobi:8192; do
        n=${workload#*:}
        workload=${workload%:*}
        bench_item "$workload" "$workload" --n "$n" --devices cuda:0 --check
        bench_item "$workload-slices" "$workload" --n "$n" --devices "cuda:0/$slices" --check \
            --versus static
        bench_item "$workload-wrong" "$workload" --n "$n" --devices "cuda:0/$slices" \
            --scores 1,1,10 --cold --versus static
        [ "$gpus" -lt 2 ] || bench_item "$workload-all" "$workload" --n "$n" --devices cuda --check
    done
}

# Graphs of a step, or of several, submitted again and again.
bench_part_steps()
{
    local name devices
    while read -r name devices; do
        bench_item cg-"$name" cg --n 400 --devices "$devices" --resident --versus cusparse
        bench_item cg-checked-"$name" cg --n 100 --devices "$devices" --resident \
            --versus cusparse --check
        bench_item heat-"$name" heat --n 8192 --devices "$devices" --resident --check
    done < <(bench_sets)
}

# One line of each result document: name, median, rate, efficiency, residual, ratio to the peer, time
# over what the links or the kernels take, bytes over the least possible, host cores.
bench_table()
{
    local file
    printf '\n%-34s %12s %12s %10s %10s %8s %8s %8s %8s\n' item median_s rate efficiency residual \
        ratio bound bytes cores
    for file in "$gpu_out"/*.json; do
        [ -f "$file" ] || continue
        name=$(basename "$file" .json)
        [[ "$name" != devices && "$name" != micro-* ]] || continue
        awk -v name="$name" '
            function value(line) { sub(/^[^:]*: */, "", line); sub(/,$/, "", line); return line }
            /^  "median_s"/ { median = value($0) }
            /^  "rate"/ { rate = value($0) }
            /^  "efficiency"/ { efficiency = value($0) }
            /^  "residual"/ { residual = value($0) }
            /^    "ratio"/ { ratio = value($0) }
            /^    "time_over_bound"/ { bound = value($0) }
            /^    "bytes_over_least"/ { bytes = value($0) }
            /^  "cpu_s"/ { used = value($0) }
            /^  "seconds"/ { within = 1 }
            /^  ]/ { within = 0 }
            within && /^    [0-9]/ { sum += value($0) }
            END {
                printf "%-34s %12.6g %12.4g %10.4g %10s %8s %8s %8s %8s\n", name, median, rate,
                    efficiency, residual == "" || residual == "null" ? "-" : sprintf("%.2g", residual),
                    ratio == "" ? "-" : sprintf("%.3f", ratio),
                    bound == "" ? "-" : sprintf("%.3f", bound),
                    bytes == "" ? "-" : sprintf("%.3f", bytes),
                    (sum > 0) ? sprintf("%.3f", used / sum) : "-"
            }' "$file"
    done
}

# bench_take "$@": takes the options that tests/run --gpu has not out of the words: sets bench_chosen,
# the parts, gpu_list, and bench_words, what is left.
bench_take()
{
    local part
    bench_chosen=$bench_parts bench_words=()
    while [ $# -gt 0 ]; do
        case $1 in
        --list) gpu_list=yes ;;
        --part) bench_chosen=${2:?--part needs a name}; bench_chosen=${bench_chosen//,/ }; shift ;;
        --sanitizer)
            echo "bench/run --gpu: what is --sanitizer? It is an option of tests/run." >&2
            exit 2
            ;;
        *) bench_words+=("$1") ;;
        esac
        shift
    done
    for part in $bench_chosen; do
        [[ " $bench_parts " = *" $part "* ]] && continue
        echo "bench/run --gpu: there is no part $part; the parts: $bench_parts" >&2
        exit 2
    done
}

# The items of a machine with four GPUs, one a line: part, name, command.
bench_list()
{
    gpus=4 slices=88+24+8
    for gpu_part in $bench_chosen; do
        "bench_part_$gpu_part"
    done
}

bench_gpu()
{
    bench_take "$@"
    if [ -n "$gpu_list" ]; then
        gpu_words ${bench_words[@]+"${bench_words[@]}"}
        bench_list
        return
    fi
    gpu_options ${bench_words[@]+"${bench_words[@]}"}
    gpus=$(gpu_count)
    if [ "$gpus" -eq 0 ]; then
        echo "There is no GPU here." >&2
        return 77
    fi
    slices=$(gpu_slices)
    gpu_item devices 60 filch-bench devices --json="$gpu_out/devices.json"
    gpu_item peers 60 filch-bench peers --list
    for gpu_part in $bench_chosen; do
        "bench_part_$gpu_part"
    done
    bench_table | tee "$gpu_out/table.txt"
    gpu_summary
}
