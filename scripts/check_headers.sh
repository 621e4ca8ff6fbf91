#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# check_headers.sh [ROOT [BUILD]]: every header compiles alone, first and only.
# Public ones as C11 and as C++17 (.hpp: C++17 alone), private ones as C17. BUILD has the generated
# headers. CC and CXX choose the compilers.
set -u
root=$(cd "${1:-.}" && pwd)
build=${2:-$root/build/release}
warn='-Wall -Wextra -Wpedantic -Wshadow -Wundef -Werror'
bad=0

# try HEADER COMPILER FLAGS...: reports a header that does not compile.
try() {
    header=$1
    shift
    # The typedef: a header of macros alone would leave nothing to compile.
    if ! printf '#include "%s"\ntypedef int heddle_alone;\n' "$header" |
        "$@" -fsyntax-only -; then
        echo "$header does not compile alone: $*"
        bad=1
    fi
}

cd "$root" || exit 1
# shellcheck disable=SC2086
for h in $(cd include && find heddle -name '*.h' | sort); do
    try "$h" ${CC:-cc} -std=c11 $warn -Wstrict-prototypes -Iinclude -x c
    try "$h" ${CXX:-c++} -std=c++17 $warn -Iinclude -x c++
done
# shellcheck disable=SC2086
for h in $(cd include && find heddle -name '*.hpp' | sort); do
    try "$h" ${CXX:-c++} -std=c++17 $warn -Iinclude -x c++
done
# shellcheck disable=SC2086
for h in $(cd src && find . -name '*.h' | sed 's,^\./,,' | sort) tests/test.h; do
    try "$h" ${CC:-cc} -std=c17 -D_GNU_SOURCE -DHEDDLE_DEBUG=3 $warn \
        -Wno-unused-function -Iinclude -Isrc -I. -I"$build/generated" -x c
done
exit $bad
