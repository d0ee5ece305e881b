#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# clean_root.sh PACKAGES SCRATCH: installs the Debian packages into an empty root of this machine's
# release. There it builds README.md's programs, a C++ and a Fortran program by CMake and by pkg-config, and runs
# them, the Python package and the tools. Skipped where such a root cannot be made, or nothing can be fetched.
set -euo pipefail
. tests/embed/readme.sh
packages=${1:?}
scratch=${2:?}
case $scratch in
/?*/?*) ;;
*) echo "not a folder to make and remove: $scratch" && exit 1 ;;
esac
root=$scratch/root

skip()
{
    echo "skipped: $1"
    exit 77
}
[ "$(id -u)" -eq 0 ] || skip "only root can make a root"
command -v debootstrap >/dev/null || skip "no debootstrap"
read -r mirror suite < <(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' \
    'Created-By: Packages' 'Component: main' | head -n 1) || skip "apt has no source"

# Mounts are made in a mount namespace and end with it, however the script ends. What is removed is
# removed from outside, where nothing is mounted.
outside=/proc/$PPID/ns/mnt
if [ "$(readlink /proc/self/ns/mnt)" = "$(readlink "$outside")" ]; then
    unshare --mount --propagation private true 2>/dev/null || skip "no mount namespaces"
    rm -rf --one-file-system "$scratch"
    mkdir -p "$root"
    status=0
    unshare --mount --propagation private "$0" "$@" || status=$?
    [ $status -eq 1 ] || rm -rf --one-file-system "$root"
    exit $status
fi

debootstrap --force-check-gpg --variant=minbase "$suite" "$root" "$mirror" \
    >"$scratch/debootstrap.log" 2>&1 ||
    skip "debootstrap cannot make a root: $(tail -n 1 "$scratch/debootstrap.log")"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" # no daemons
chmod +x "$root/usr/sbin/policy-rc.d"

# in_root COMMAND...: what fails says what it printed.
in_root()
{
    chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C \
        DEBIAN_FRONTEND=noninteractive "$@" >"$scratch/log" 2>&1 || {
        echo "in the clean root: $* failed"
        tail -n 40 "$scratch/log"
        return 1
    }
}
# How packages are fetched here; none of the hooks. The root needs no disk.
apt-config dump | grep '^Acquire::' >"$root/etc/apt/apt.conf.d/90fetch" || true
echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/unsafe-io"
mkdir "$root/packages"
cp "$packages"/*.deb "$root/packages"
compilers="gcc g++ gfortran libc6-dev cmake make pkg-config libopenblas-dev liblapacke-dev"
install="apt-get install -y --no-install-recommends $compilers /packages/*.deb"
in_root apt-get update || skip "no package lists"
# shellcheck disable=SC2086 # words
in_root apt-get install -y --no-install-recommends --download-only $compilers ||
    skip "no compilers can be fetched"
# Unmet dependencies of the packages are a failure; what cannot be fetched is not.
in_root sh -c "$install --simulate"
in_root sh -c "$install --download-only" || skip "packages cannot be fetched"
in_root sh -c "$install"
echo "   after $SECONDS s"

echo "== README.md's programs"
mkdir "$root/readme"
readme_program cholesky 1 "$root/readme/cholesky"
readme_program smooth 2 "$root/readme/smooth"
for name in cholesky smooth; do
    in_root cmake -S /readme/$name -B /readme/$name/build
    in_root cmake --build /readme/$name/build
    in_root /readme/$name/build/solver
    in_root sh /readme/$name/build.sh -o by-pkg-config
    in_root /readme/$name/by-pkg-config
done

echo "== CMake and pkg-config in C, C++ and Fortran"
cp -r tests/embed/consumer "$root/consumer"
in_root cmake -S /consumer -B /consumer/build
in_root cmake --build /consumer/build
for name in consumer consumer_cpp consumer_fortran; do
    in_root /consumer/build/$name
done
in_root sh -c 'cc -std=c11 /consumer/consumer.c -o /consumer/other $(pkg-config --cflags --libs filch)'
in_root /consumer/other
in_root sh -c 'cd /usr/share/doc/libfilch-dev/examples && for name in tour cholesky; do
    c++ -std=c++17 -O2 $name.cpp -o /consumer/$name $(pkg-config --cflags --libs filch)
    /consumer/$name || exit 1
done'

echo "== Python"
in_root sh -c 'cd /usr/share/doc/libfilch-dev/examples && python3 tour.py && python3 cholesky.py'

echo "== tools"
in_root filch-bench run gemm --n 300 --tile 100 --devices host:2 --repeat 2 --check
grep -q 'checked *yes' "$scratch/log"
in_root filch-run sh -c 'grep -q libfilch_blas.so /proc/$$/maps'

echo "== removal"
in_root apt-get remove -y libfilch0 filch-blas filch-tools python3-filch
if find "$root/usr" -name '*filch*' | grep .; then
    echo "is left behind"
    exit 1
fi
echo "clean root: $suite, $SECONDS s"
