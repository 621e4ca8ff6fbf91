#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The same on a GPU: against cuSOLVER, with data on the device and on the host.
library=${HEDDLE_CUDA_LIBRARY:-}
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"
if [ -n "$library" ]; then
    HEDDLE_CUDA_LIBRARY=$library
    export HEDDLE_CUDA_LIBRARY
fi

right="r[0]['residual'] <= r[0]['residual_limit'] and r[0]['info'] == 0"

json 1 bench potrf --n 130 --nb 32 --rounds 1 --check --devices cuda \
    --resident --workers 2
holds "$right"
holds "r[0]['peer'] == 'cusolver' and r[0]['resident'] and r[0]['ratio'] > 0"
holds "r[0]['devices'] == 'cuda' and r[0]['peak_gflops'] > 0"
json 1 bench potrf --n 130 --nb 32 --rounds 1 --check --devices cuda \
    --peer cusolver --workers 2
holds "$right"
holds "not r[0]['resident'] and r[0]['ratio'] > 0"
for b in gemm getrf geqrf; do
    json 1 bench "$b" --n 100 --nb 25 --rounds 1 --check --devices cuda \
        --peer lapack --workers 2
    holds "$right"
    json 1 bench "$b" --n 100 --nb 25 --rounds 1 --check --devices cuda \
        --resident --workers 2
    holds "$right"
done
# Other types and routines; what of it runs on the device is tested in src/la.
for c in 'potrf z' 'getrf z' 'geqrf c' 'gemm z' 'posv c' 'gesv z' 'getrf_nopiv d' \
    'syrk s' 'trsm z' 'trtri d' 'potri z' 'posv d' 'gesv s' 'gels d'; do
    # shellcheck disable=SC2086
    set -- $c
    json 1 bench "$1" --n 100 --nb 25 --type "$2" --rounds 1 --check \
        --devices cuda --resident --workers 2 --peer none --no-bound
    holds "$right"
done
# Panels of LU by clusters, with several rows for a thread; steps with an inverse and
# without.
for c in '2500 2500 64 d' '2500 2500 512 s' '1500 1500 200 d' '9000 300 128 d' \
    '9000 300 100 s' '17000 130 64 d' '17000 130 128 s'; do
    # shellcheck disable=SC2086
    set -- $c
    [ -z "$library" ] || break
    json 1 bench getrf --m "$1" --n "$2" --nb "$3" --type "$4" --rounds 1 \
        --check --devices cuda --resident --workers 2 --peer none --no-bound
    holds "$right"
done
# Low precision, refined: one right-hand side and several, in blocks with an inverse and
# without.
for c in 'gesv_mixed halves 64 1' 'gesv_mixed tf32 100 3' 'gesv_mixed half 64 5' \
    'posv_mixed tf32 64 1' 'posv_mixed halves 50 9'; do
    # shellcheck disable=SC2086
    set -- $c
    json 1 bench "$1" --low "$2" --n 300 --nb "$3" --nrhs "$4" --rounds 1 \
        --check --devices cuda --peer none --resident --workers 2 --no-bound
    holds "$right"
    holds "not r[0]['fell_back'] and r[0]['tries'] == 1"
done
# Half of the matrix fits.
json 1 bench potrf --n 200 --nb 25 --rounds 1 --check --devices cuda \
    --peer none --device-memory 160000 --workers 2
holds "$right"
# The same against itself without the limit, in several rounds on the same memory.
json 1 bench potrf --n 400 --nb 25 --rounds 3 --check --devices cuda \
    --peer self --device-memory 640K --workers 2 --no-bound
holds "$right"
holds "r[0]['peer'] == 'self' and r[0]['peer_seconds'] > 0 and r[0]['ratio'] > 0"
holds "r[0]['device_memory'] == 655360"
# Resident matrices stay from round to round, and get their values again.
for b in potrf gemm; do
    json 1 bench $b --n 130 --nb 32 --rounds 3 --check --devices cuda \
        --resident --workers 2 --no-bound
    holds "$right"
done
for b in posv posv_mixed gesv gesv_mixed; do
    json 1 bench $b --n 130 --nb 32 --rounds 2 --check --devices cuda \
        --resident --peer none --workers 2 --no-bound
    holds "$right"
done
json 1 hpl --n 150 --nb 32
holds "r[0]['passed'] and 'cuda0' in r[0]['devices'].split(',')"
json 1 hpl --n 150 --nb 32 --devices none
holds "r[0]['passed'] and r[0]['devices'] == 'none'"
finish
