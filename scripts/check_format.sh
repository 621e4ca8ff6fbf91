#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# check_format.sh [--fix] [ROOT]: the code is as clang-format 14 leaves it.
# Other versions differ in details, so they are not asked: exit status 77.
set -eu
fix=no
if [ "${1:-}" = --fix ]; then
    fix=yes
    shift
fi
cd "${1:-.}"

tool=
for t in clang-format-14 clang-format; do
    if command -v $t >/dev/null && $t --version | grep -q 'version 14\.'; then
        tool=$t
        break
    fi
done
if [ -z "$tool" ]; then
    echo 'skipped: clang-format 14 is not installed (package clang-format-14)'
    exit 77
fi

list=$(for d in include src tools examples bench tests; do
    if [ -d $d ]; then
        find $d -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.cc' -o -name '*.[ch]pp'
    fi
done | sort)
# shellcheck disable=SC2086
if [ $fix = yes ]; then
    $tool -i --style=file $list
    exit 0
fi
# One process for all: a start each takes longer than the work. It names file and line.
# shellcheck disable=SC2086
if ! $tool --style=file --dry-run --Werror $list; then
    echo "not formatted; 'make format' does it"
    exit 1
fi
