#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# numpy.sh LIBRARY: the first Python that has NumPy runs numpy_test.py.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
for python in python3 /usr/bin/python3; do
    if "$python" -c 'import numpy' 2>/dev/null; then
        exec env LD_PRELOAD="$1" HEDDLE_LAPACK=512 HEDDLE_WORKERS=2 \
            OPENBLAS_NUM_THREADS=2 PYTHONDONTWRITEBYTECODE=1 \
            "$python" "$here/numpy_test.py"
    fi
done
echo 'skipped: no NumPy'
exit 77
