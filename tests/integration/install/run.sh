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
for f in include/heddle/version.h include/heddle/heddle.hpp share/doc/heddle/LICENSE \
    share/doc/heddle/guide/01-first-program.md share/doc/heddle/examples/01_hello.c \
    share/heddle/machines/laptop.machine share/man/man1/heddle.1 \
    share/bash-completion/completions/heddle share/zsh/site-functions/_heddle \
    share/fish/vendor_completions.d/heddle.fish; do
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

# What chapter 1 of the guide says, word by word, with another folder and this compiler.
echo '- the guide'
guide=$here/../../../docs/guide/01-first-program.md
if command -v pkg-config >/dev/null; then
    mkdir -p "$work/own"
    cp "$work/tree/share/doc/heddle/examples/01_hello.c" "$work/own/hello.c"
    sed -n "s|^cc hello.c|$cc $flags hello.c|p" "$guide" >"$work/own/lines"
    [ "$(wc -l <"$work/own/lines")" -eq 2 ] || { echo 'the guide has other lines'; exit 1; }
    while read -r line; do
        rm -f "$work/own/hello"
        (cd "$work/own" && sh -c "$line" && ./hello) || { echo "failed: $line"; exit 1; }
    done <"$work/own/lines"
    if ldd "$work/own/hello" | grep libheddle; then
        echo 'the static program needs the shared library'
        exit 1
    fi
    awk '/^cmake_minimum/, /^```/ {if ($0 !~ /^```/) print}' "$guide" >"$work/own/CMakeLists.txt"
    "$cmake" -S "$work/own" -B "$work/own/build" -G Ninja "-DCMAKE_C_COMPILER=$cc" \
        "-DCMAKE_C_FLAGS=$flags" "-DCMAKE_PREFIX_PATH=$work/tree" >"$work/own.log"
    "$cmake" --build "$work/own/build" >>"$work/own.log"
    "$work/own/build/hello"
fi

echo '- find_package'
"$cmake" -S "$here/outside" -B "$work/outside" -G Ninja \
    "-DCMAKE_C_COMPILER=$cc" "-DCMAKE_C_FLAGS=$flags" \
    "-DCMAKE_PREFIX_PATH=$work/tree" >"$work/configure.log"
"$cmake" --build "$work/outside" >"$work/build.log"
"$work/outside/outside"
"$work/outside/outside_static"

if command -v python3 >/dev/null; then
    test -s "$work/tree/share/man/man3/heddle_wait.3" || { echo 'no man page of a call'; exit 1; }
fi

if [ -x "$work/tree/bin/heddle" ]; then
    echo '- installed tool'
    "$work/tree/bin/heddle" --version
fi

echo '- DESTDIR'
DESTDIR=$work/dest "$cmake" --install "$build" --prefix /opt/x >"$work/dest.log"
test -f "$work/dest/opt/x/include/heddle/version.h"
rm -rf "$work"
