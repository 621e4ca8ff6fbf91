#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# heddle bench of dense linear algebra, and heddle hpl: what is printed, and that
# all that is computed is right. How fast it is, is not tested.
blas=${HEDDLE_BLAS_LIBRARY:-}
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"
if [ -n "$blas" ]; then
    HEDDLE_BLAS_LIBRARY=$blas
    export HEDDLE_BLAS_LIBRARY
fi

# Wrong command lines.
fails 2 "no type 'x'" bench potrf --type x
fails 2 "no type 'dd'" bench potrf --type dd
fails 2 'has no type s' bench gesv_mixed --type s
fails 2 'must be auto, single, tf32, half or halves' bench gesv_mixed --low x
fails 2 'does not refine' bench gesv --low tf32
fails 2 'must be auto, single or gang' bench getrf --panel x
fails 2 'no panels to choose' bench potrf --panel gang
fails 2 '--n' bench potrf --n 0
fails 2 '--nb is' bench potrf --nb 0
fails 2 '--nb is' bench potrf --nb wide
fails 2 '--rounds' bench potrf --rounds 0
fails 2 'no peer' bench potrf --peer nobody
fails 2 'device-memory' bench potrf --device-memory much
fails 2 'without a limit' bench potrf --peer self
fails 2 'without a limit' bench potrf --peer self --device-memory 1M --resident
fails 2 'square' bench potrf --n 8 --m 9
fails 2 'at least as many rows' bench gels --n 8 --m 7
fails 2 'right-hand' bench getrf --n 8 --nrhs 2
fails 2 'type d only' bench potrf --peer cusolver --type s
fails 2 'exclude each other' bench potrf --log x --no-bound
fails 2 "did you mean 'potrf'" bench potfr
fails 2 "no option '--gate', see 'heddle help bench potrf'" bench potrf --gate
fails 2 "no scheduler 'nonsense'" bench potrf --n 16 --sched nonsense
fails 2 "no type 'x'" hpl --type x
fails 2 '--nb is' hpl --nb 0
fails 2 '--n' hpl --n 0
fails 1 'needs' hpl --n 1000000
fails 1 'no memory' bench gemm --n 1000000

"$heddle" bench potrf --n 8 --rounds 1 --no-bound >out 2>err
if grep -q 'no BLAS' err; then
    echo 'skipped: no BLAS with LAPACK'
    exit 77
fi

right="r[0]['residual'] is not None and
    r[0]['residual'] <= r[0]['residual_limit'] and r[0]['info'] == 0"

# A whole result.
# Cores have no shorter products.
json 1 bench gesv_mixed --n 100 --rounds 1 --check --no-bound --low halves
holds "r[0]['low'] == 'single' and r[0]['tries'] == 1 and not r[0]['fell_back']"
holds "r[0]['refine'] == 'classic' and r[0]['residual'] <= r[0]['residual_limit']"
for panel in auto single gang; do
    json 1 bench getrf --n 300 --m 400 --nb 40 --workers 3 --rounds 1 --check \
        --no-bound --panel $panel
    holds "r[0]['panel'] == '$panel' and $right"
done
json 1 bench potrf --n 200 --type d --nb 48 --rounds 3 --workers 2 --check
holds "{'name', 'version', 'machine', 'workers', 'sched', 'type', 'm', 'n', 'nb',
    'seconds', 'seconds_min', 'seconds_max', 'gflops', 'peer', 'peer_is',
    'peer_seconds', 'peer_gflops', 'ratio', 'ratio_min', 'ratio_max', 'residual',
    'residual_limit', 'bound_seconds', 'bound_run_seconds', 'percent_of_bound',
    'tasks', 'peak_gflops', 'percent_of_peak', 'info'} <= set(r[0])"
holds "$right"
holds "r[0]['name'] == 'potrf' and r[0]['n'] == r[0]['m'] == 200"
holds "r[0]['nb'] == 48 and r[0]['workers'] == 2 and r[0]['rounds'] == 3"
holds "0 < r[0]['ratio_min'] <= r[0]['ratio'] <= r[0]['ratio_max']"
holds "r[0]['seconds_min'] <= r[0]['seconds'] <= r[0]['seconds_max']"
holds "r[0]['tasks'] > 0"
# No run is shorter than its bound.
holds "0 < r[0]['bound_seconds'] <= r[0]['bound_run_seconds']"
holds "0 < r[0]['percent_of_bound'] <= 100 and r[0]['peak_gflops'] > 0"

# Every routine: types in turn, orders around the borders of blocks.
set -- s d c z
names=$(sed -n 's/^HEDDLE_BENCH_LA(\([a-z_]*\),.*$/\1/p' \
    "$root/tools/heddle/bench/la/la.def")
for b in $names; do
    t=$1
    shift
    set -- "$@" "$t"
    case $b in
    *_mixed) t=d ;;
    esac
    json 1 bench "$b" --n 65 --type "$t" --nb 16 --rounds 1 --check --workers 2
    holds "$right"
    holds "r[0]['name'] == '$b' and r[0]['type'] == '$t'"
    # Above order 512 the residual is of a few vectors.
    json 1 bench "$b" --n 530 --rounds 1 --check --no-bound --peer none
    holds "$right"
    holds "r[0]['peer'] == 'none' and r[0]['ratio'] is None"
    holds "r[0]['bound_seconds'] is None"
    ok bench "$b" --n 1 --rounds 1 --check
    has '^residual  '
done
for t in s d c z; do
    json 1 bench getrf --n 40 --m 90 --type $t --rounds 1 --check --nb 16
    holds "$right"
    json 1 bench geqrf --n 90 --m 40 --type $t --rounds 1 --check --nb 16
    holds "$right"
done
json 1 bench gesv --n 50 --nrhs 20 --nb 7 --rounds 1 --check
holds "$right"
holds "r[0]['nrhs'] == 20"
json 1 bench posv --n 50 --rounds 1
holds "r[0]['residual'] is None and r[0]['nrhs'] == 1"

# Against another routine of ours.
for b in getrf gesv_mixed posv_mixed; do
    json 1 bench $b --n 130 --nb 32 --rounds 2 --check --no-bound --peer self
    holds "$right and r[0]['peer'] == 'self' and r[0]['ratio'] > 0"
    holds "r[0]['peer_is'] == {'getrf': 'getrf_nopiv'}.get('$b', '${b%_mixed}')"
done

# The log of the run behind the rounds is one.
json 1 bench getrf --n 100 --nb 25 --rounds 1 --log la.log --sched prio
holds "r[0]['sched'] == 'prio' and r[0]['tasks'] == 13"
json 1 trace info la.log

# Without a GPU there is a sentence.
HEDDLE_CUDA_LIBRARY=$dir/nothing.so
export HEDDLE_CUDA_LIBRARY
fails 1 'GPU' bench potrf --n 32 --resident --peer none
fails 1 'CUDA' bench potrf --n 32 --peer cusolver
unset HEDDLE_CUDA_LIBRARY

# Linpack.
for t in s d c z; do
    json 1 hpl --n 130 --nb 32 --type $t
    holds "r[0]['passed'] and r[0]['residual'] < r[0]['residual_limit'] == 16"
done
holds "{'name', 'n', 'nb', 'type', 'workers', 'sched', 'seconds', 'gflops',
    'info'} <= set(r[0])"
holds "r[0]['devices'] == 'none' and r[0]['sched'] == 'prio' and r[0]['full_n'] > 64"
json 1 hpl --n 130 --sched ws --log hpl.log
holds "r[0]['sched'] == 'ws' and r[0]['loading_seconds'] > 0"
json 1 trace info hpl.log
holds "r[0]['executed'] > 0 and 0 < r[0]['makespan_ns'] < 1e12"
ok hpl --n 300 --workers 2
has '^order 300 .* would fill 80 % of the memory$'
has '100 % of the tasks done'
has '^T/V  .* N .* NB .* P .* Q .* Time .* Gflops$'
has '^HEDDLE .* 300 '
has '^||Ax-b||_oo.* PASSED$'
ok hpl --n 1 --no-progress
finish
