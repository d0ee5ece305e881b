# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by tests/run and bench/run: finds what a step needs, and installs what is missing on
# Debian and Ubuntu. Where nothing is missing it changes nothing and needs no network.

# group  package  probe. A probe is a command's name, a pkg-config module (module:NAME), a file
# that the compiler finds (file:NAME), a Clang that links fuzzers (fuzzer:COMMAND), or a module of
# the system's Python (python:NAME). "peers", "clients" and "lint" are wanted but not needed.
setup_table="
build  build-essential    c++
build  cmake              cmake
build  ninja-build        ninja
build  pkg-config         pkg-config
build  libhwloc-dev       module:hwloc
build  libjansson-dev     module:jansson
build  libjemalloc-dev    file:libjemalloc_pic.a
bench  libopenblas-dev    module:openblas
bench  liblapacke-dev     module:lapacke
bench  libpng-dev         module:libpng
peers  libtbb-dev         module:tbb
peers  libstarpu-dev      module:starpu-1.3
tests  libcmocka-dev      module:cmocka
tests  doxygen            doxygen
tests  spin               spin
clients gfortran          gfortran
clients python3-numpy     python:numpy
clients python3-scipy     python:scipy
clients hpcc              hpcc
clients openmpi-bin       mpirun
clients libopenmpi-dev    module:ompi-c
clients libsuitesparse-dev file:libcholmod.so
clients chromium          chromium
clients debootstrap       debootstrap
lint   clang-14           clang-14
lint   libclang-rt-14-dev fuzzer:clang-14
lint   clang-format-14    clang-format-14
lint   clang-tidy-14      clang-tidy-14
lint   mandoc             mandoc
lint   valgrind           valgrind
"

setup_has()
{
    case $1 in
    module:*) pkg-config --exists "${1#module:}" 2>/dev/null ;;
    file:*) [ "$(cc -print-file-name="${1#file:}" 2>/dev/null)" != "${1#file:}" ] &&
        command -v cc >/dev/null ;;
    fuzzer:*) echo 'int LLVMFuzzerTestOneInput(void); int LLVMFuzzerTestOneInput(void) { return 0; }' |
        "${1#fuzzer:}" -fsanitize=fuzzer -x c -o /dev/null - 2>/dev/null ;;
    python:*) /usr/bin/python3 -c "import ${1#python:}" 2>/dev/null ;;
    *) command -v "$1" >/dev/null ;;
    esac
}

# setup_missing GROUP...: the packages of the groups whose probe fails.
setup_missing()
{
    local group package probe
    while read -r group package probe; do
        case " $* " in
        *" $group "*) setup_has "$probe" || printf '%s\n' "$package" ;;
        esac
    done <<<"$setup_table"
}

setup_can_install()
{
    command -v apt-get >/dev/null && { [ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null; }
}

setup_apt()
{
    local sudo=
    [ "$(id -u)" -eq 0 ] || sudo=sudo
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get -q -y "$@"
}

# setup_need GROUP...: everything of the groups is there afterwards, or the script ends.
setup_need()
{
    local missing
    missing=$(setup_missing "$@" | tr '\n' ' ')
    [ -n "$missing" ] || return 0
    echo "Missing: $missing"
    if ! setup_can_install; then
        echo "Install them (names are Debian's) and run this again." >&2
        exit 1
    fi
    echo "Installing with apt-get: $missing"
    setup_apt update || true
    # shellcheck disable=SC2086 # one word a package
    setup_apt install --no-install-recommends $missing
    missing=$(setup_missing "$@" | tr '\n' ' ')
    if [ -n "$missing" ]; then
        echo "Still missing after installation: $missing" >&2
        exit 1
    fi
}

# setup_want GROUP...: installs what can be had; says what cannot, and goes on.
setup_want()
{
    local missing package
    missing=$(setup_missing "$@")
    [ -n "$missing" ] || return 0
    ! setup_can_install || setup_apt update || true
    for package in $missing; do
        if setup_can_install; then
            echo "Installing with apt-get (optional): $package"
            setup_apt install --no-install-recommends "$package" && continue
        fi
        echo "Not available, left out: $package"
    done
}

# Compilers' results are kept where ccache is installed, unless the caller chose a launcher.
setup_cache()
{
    command -v ccache >/dev/null || return 0
    export CMAKE_C_COMPILER_LAUNCHER=${CMAKE_C_COMPILER_LAUNCHER-ccache}
    export CMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER-ccache}
}

# setup_configure PRESET [-DOPTION...]: says what was left out.
setup_configure()
{
    local preset=$1 log
    shift
    setup_cache
    mkdir -p build
    log=build/configure-$preset.log
    if ! cmake --preset "$preset" "$@" >"$log" 2>&1; then
        cat "$log"
        exit 1
    fi
    grep '^-- filch' "$log" || true
}

# setup_make PRESET [TARGET...]: builds; on a terminal with progress.
setup_make()
{
    local preset=$1 quiet=(-- --quiet)
    shift
    [ ! -t 1 ] || quiet=()
    cmake --build --preset "$preset" ${1+--target "$@"} ${quiet[@]+"${quiet[@]}"}
}

# setup_build PRESET [TARGET...]
setup_build()
{
    setup_configure "$1"
    setup_make "$@"
}
