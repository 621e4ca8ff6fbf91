#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# with_fakecuda.sh LIBCUDA COMMAND ...: runs the command with that stand-in for
# CUDA, and the libraries beside it. With HEDDLE_REAL_GPU set, with the machine's.
lib=$1
shift
if [ -z "${HEDDLE_REAL_GPU:-}" ]; then
    HEDDLE_CUDA_LIBRARY=$lib
    LD_LIBRARY_PATH=$(dirname "$lib")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    FAKECUDA_LEAKS=${FAKECUDA_LEAKS:-1}
    export HEDDLE_CUDA_LIBRARY LD_LIBRARY_PATH FAKECUDA_LEAKS
    unset CUDA_VISIBLE_DEVICES
fi
exec "$@"
