#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# run.sh PROGRAM [LIBRARY]: what the program computes is the same with the
# library in front of LAPACK, and the library does what it is told. Without
# LIBRARY the program is linked with it (sanitizers do not like to come second);
# then HEDDLE_LAPACK=off stands for the plain run.
set -eu
program=$1
library=${2:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OPENBLAS_NUM_THREADS=2 HEDDLE_WORKERS=2

with() {
    if [ -n "$library" ]; then
        env LD_PRELOAD="$library" "$@"
    else
        env "$@"
    fi
}

echo '- plain'
HEDDLE_LAPACK=off "$program" write "$work/results"
echo '- every routine taken over'
with HEDDLE_LAPACK=100 "$program" compare "$work/results" taken
echo '- off, and by default: the matrices are small'
with HEDDLE_LAPACK=off "$program" compare "$work/results" direct
with "$program" compare "$work/results" direct
echo '- a value that is none, virtual time, one thread: direct'
with HEDDLE_LAPACK=maybe "$program" compare "$work/results" direct
with HEDDLE_LAPACK=100 HEDDLE_MACHINE=none "$program" compare "$work/results" \
    direct
with HEDDLE_LAPACK=100 OPENBLAS_NUM_THREADS=1 "$program" compare \
    "$work/results" direct
echo '- threads'
with HEDDLE_LAPACK=100 "$program" threads
if [ -z "${NO_FORK:-}" ]; then
    echo '- children'
    with HEDDLE_LAPACK=100 "$program" fork
fi
if [ -n "$library" ]; then
    echo '- a log'
    with HEDDLE_LAPACK=100 HEDDLE_LOG_FILE="$work/log" "$program" threads
    test -s "$work/log"
fi
