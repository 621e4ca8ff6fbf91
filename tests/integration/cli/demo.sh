#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# heddle demo: right results on awkward sizes, a log that can be read.
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"

ok demo --n 200 --nb 40
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

# It learns what its kernels cost.
json 4 model list
holds "{x['kernel'] for x in r} == {'potrf', 'trsm', 'syrk', 'gemm'}"
finish
