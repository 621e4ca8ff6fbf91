#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# run.sh BUILD CMAKE CC: an outside program against the installed tree.
#
# The tree is installed under one prefix and then moved, so that an absolute
# path left in any installed file is found.
set -eu
build=$1
cmake=$2
cc=$3
here=$(cd "$(dirname "$0")" && pwd)
flags=${SANITIZE:-}
work=$build/install-test

rm -rf "$work"
mkdir -p "$work"
"$cmake" --install "$build" --prefix "$work/first" >"$work/install.log"
mv "$work/first" "$work/tree"
lib=$(dirname "$(find "$work/tree" -name 'libheddle.so.0')")

echo '- files'
for f in include/heddle/version.h share/doc/heddle/LICENSE; do
    test -f "$work/tree/$f" || { echo "$f is not installed"; exit 1; }
done
if grep -rIl "$build" "$work/tree"; then
    echo 'the files above hold the path of the build tree'
    exit 1
fi

echo '- pkg-config'
PKG_CONFIG_PATH=$lib/pkgconfig
export PKG_CONFIG_PATH
# shellcheck disable=SC2046,SC2086
if command -v pkg-config >/dev/null; then
    "$cc" -std=c11 -Wall -Wextra -Werror $flags "$here/outside.c" \
        $(pkg-config --cflags --libs heddle) "-Wl,-rpath,$lib" \
        -o "$work/outside-pc"
    "$work/outside-pc" "$(pkg-config --modversion heddle)"
else
    echo '  no pkg-config on this machine'
fi

echo '- find_package'
"$cmake" -S "$here/outside" -B "$work/outside" -G Ninja \
    "-DCMAKE_C_COMPILER=$cc" "-DCMAKE_C_FLAGS=$flags" \
    "-DCMAKE_PREFIX_PATH=$work/tree" >"$work/configure.log"
"$cmake" --build "$work/outside" >"$work/build.log"
"$work/outside/outside"

if [ -x "$work/tree/bin/heddle" ]; then
    echo '- installed tool'
    "$work/tree/bin/heddle" --version
fi

echo '- DESTDIR'
DESTDIR=$work/dest "$cmake" --install "$build" --prefix /opt/x >"$work/dest.log"
test -f "$work/dest/opt/x/include/heddle/version.h"
rm -rf "$work"
