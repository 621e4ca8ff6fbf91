#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# heddle demo: right results on awkward sizes, a log that can be read.
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"

ok demo --n 200 --nb 40 --kernels plain
has '^tile Cholesky of order 200 '
has '^tasks  *35: 5 potrf, 10 trsm, 10 syrk, 10 gemm$'
has 'eps) = .*: right$'
has 'heddle trace view heddle-demo.log -o heddle-demo.html'
has '100 % of the tasks done'
[ -s heddle-demo.log ] || wrong 'no log'

json 1 trace info heddle-demo.log
ok trace export heddle-demo.log --format chrome -o demo.json
python3 -m json.tool demo.json >/dev/null || wrong 'the export is not JSON'

ok demo --n 200 --nb 40 --page demo.html
has '^page  *demo.html: open it in a browser$'
python3 "$here/view.py" page demo.html || wrong 'the page is not whole'
fails_late() {
    "$heddle" demo --n 100 --nb 50 --no-progress "$@" >out 2>err &&
        wrong "demo $*: no failure"
    [ "$(wc -l <err)" -eq 1 ] || wrong "demo $*: not one line on stderr"
}
fails_late --log same.log --page same.log
fails_late --page /nowhere/x.html

ok demo --n 200 --nb 40 --no-progress
! grep -q 'tasks done' out || wrong 'progress in spite of --no-progress'

# Borders, one tile, tiles of one element, both kernel sets.
json 1 info
sets=plain
grep -q '"blas":true' out && sets='plain blas'
for k in $sets; do
    for size in '1 1' '5 1' '7 3' '100 100' '100 64' '129 32' '65 200'; do
        # shellcheck disable=SC2086
        set -- $size
        json 1 demo --n "$1" --nb "$2" --kernels "$k" --log small.log
        holds "r[0]['right'] and r[0]['kernels'] == '$k' and
            r[0]['n'] == $1 and r[0]['tiles'] == -(-$1 // $2)"
    done
done

for s in eager prio ws; do
    HEDDLE_SCHED=$s json 1 demo --n 150 --nb 25 --workers 3 --log-level 3
    holds "r[0]['sched'] == '$s' and r[0]['workers'] == 3 and r[0]['right'] and
        0 < r[0]['utilisation'] <= 1.0 and r[0]['bound_ns'] > 0"
done

# The tiles learn what their kernels cost.
json 0 model list
holds "{x['kernel'] for x in r} >= {'potrf', 'trsm', 'syrk', 'gemm'}"

# Without --kernels the dense library computes, where there is a BLAS. The log has the
# factorisation alone: not the small ones that load everything.
"$heddle" demo --n 4 --kernels dense --log dense.log >out 2>err || {
    grep -q 'BLAS' err || wrong 'no dense library, and no reason'
    json 1 demo --n 100 --log dense.log
    holds "r[0]['right'] and r[0]['kernels'] == 'plain'"
    finish
}
for size in 1 2 63 200 641; do
    json 1 demo --n $size --log dense.log --page dense.html
    holds "r[0]['right'] and r[0]['kernels'] == 'dense' and r[0]['n'] == $size and
        r[0]['tasks'] == sum(r[0]['kernel_tasks'].values()) > 0 and
        r[0]['load_ns'] > 0 and 0 < r[0]['bound_ns'] <= r[0]['wall_ns']"
    tasks=$(python3 -c 'import json,sys; print(json.loads(sys.argv[1])["tasks"])' "$(cat out)")
    json 1 trace info dense.log
    holds "r[0]['executed'] == $tasks and 0 < r[0]['makespan_ns'] < 1e12"
    python3 "$here/view.py" page dense.html || wrong 'the page is not whole'
done
json 1 demo --n 500 --nb 100 --log dense.log --workers 3
holds "r[0]['tiles'] == 5 and r[0]['nb'] == 100 and r[0]['workers'] == 3"
json 0 trace dump dense.log
holds "min(x['start_ns'] for x in r if x['record'] == 'task') >= 0"
holds "[x['text'] for x in r if x['record'] == 'mark'] in ([], ['factorisation'])"
ok demo --n 700 --log dense.log
has '^loading '
has '^speed .* of .* GFLOP/s, gemm alone'
has 'best possible on this machine'
has '100 % of the tasks done'
! grep -q '^transfers' out || wrong 'transfers without a GPU'
HEDDLE_BLAS_LIBRARY=/nowhere/libnone.so json 1 demo --n 100 --log dense.log
holds "r[0]['right'] and r[0]['kernels'] != 'dense'"
HEDDLE_BLAS_LIBRARY=/nowhere/libnone.so fails 1 'libnone' demo --n 64 --kernels dense
finish
