#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# packages.sh BUILD SCRATCH: makes the Debian packages of a build in SCRATCH/packages, and looks at
# what is in them and what they depend on.
set -euo pipefail
build=${1:?}
scratch=${2:?}
case $scratch in
/?*/?*) ;;
*) echo "not a folder to make and remove: $scratch" && exit 1 ;;
esac
command -v dpkg-shlibdeps >/dev/null || { echo "skipped: no dpkg-dev"; exit 77; }
rm -rf "$scratch"
mkdir -p "$scratch/packages"

# Made outside of the build's own folder.
cpack --config "$build/CPackConfig.cmake" -G DEB -B "$scratch/work" >"$scratch/cpack.log" 2>&1 || {
    cat "$scratch/cpack.log"
    exit 1
}
mv "$scratch"/work/*.deb "$scratch/packages"
cd "$scratch/packages"

names=$(for file in *.deb; do dpkg-deb -f "$file" Package; done | sort | tr '\n' ' ')
if [ "$names" != "filch-blas filch-tools libfilch-dev libfilch0 python3-filch " ]; then
    echo "wrong packages: $names"
    exit 1
fi

# field NAME FIELD: of a package.
field()
{
    dpkg-deb -f "$1"_*.deb "$2"
}
version=$(field libfilch0 Version)
[ "$(field libfilch-dev Depends)" = "libfilch0 (= $version)" ]
for need in libhwloc15 libjansson4; do
    grep -q "$need" <<<"$(field libfilch0 Depends)"
    grep -q "$need" <<<"$(field filch-blas Depends)"
done
# A solver's process gets no BLAS and no C++ from filch.
if field libfilch0 Depends | grep -E 'blas|lapack|stdc'; then
    exit 1
fi

# Each file is in one package, and is installed without packages, too: but for licences and examples, and
# for the Python package, which pip installs.
for file in *.deb; do
    dpkg-deb --fsys-tarfile "$file" | tar tf - | grep -v '/$' | sed 's|^\./usr/||'
done | sort >../packed
[ -z "$(uniq -d ../packed)" ]
cmake --install "$build" --prefix "$scratch/prefix" >"$scratch/install.log"
(cd ../prefix && find . ! -type d | sed 's|^\./||' | sort) >../installed
diff ../installed <(grep -vE '^(share/doc|lib/python3)/' ../packed)
for name in $names; do
    grep -qx "share/doc/$name/copyright" ../packed
done
grep -q '^share/doc/libfilch-dev/examples/.*\.c$' ../packed
for page in filch-tools:man1/filch-bench.1 filch-blas:man1/filch-run.1 libfilch-dev:man7/filch.7; do
    [ "$(dpkg-deb --fsys-tarfile "${page%:*}"_*.deb | tar tf - | grep -cx "./usr/share/man/${page#*:}")" = 1 ] ||
        { echo "${page%:*} lacks ${page#*:}" && exit 1; }
done
[ "$(field python3-filch Architecture)" = all ]
if /usr/bin/python3 -c 'import numpy' 2>/dev/null; then
    for name in libfilch0 python3-filch; do
        dpkg-deb -x "$name"_*.deb ../root
    done
    LIBFILCH=$(find ../root -name libfilch_system.so.0) PYTHONPATH=../root/usr/lib/python3/dist-packages \
        PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -c 'import filch
with filch.Runtime("host:1") as runtime: print([each.name for each in runtime.devices])'
fi
rm -rf "$scratch/prefix" "$scratch/work" "$scratch/root"
