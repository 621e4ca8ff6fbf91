#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# eigen.sh PROGRAM: the bits of eigenvalues do not depend on the time or the scheduler, nor,
# at these small orders, on the number of workers.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OPENBLAS_NUM_THREADS=2 HEDDLE_LAPACK=1

HEDDLE_WORKERS=2 "$1" "$work/values"
for workers in 1 2 3; do
    HEDDLE_WORKERS=$workers "$1" "$work/values"
done
HEDDLE_WORKERS=3 HEDDLE_SCHED=eager "$1" "$work/values"
