#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# heddle trace and heddle model on the log and the models of a run.
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"

ok demo --n 120 --nb 30 --log run.log --no-progress
ok trace info run.log
has 'potrf'
json 1 trace info run.log
json 0 trace dump run.log
ok trace export run.log --format chrome -o run.json --deps --states
python3 -m json.tool run.json >/dev/null || wrong 'chrome: not JSON'
ok trace export run.log --format paje -o run.trace
[ -s run.trace ] || wrong 'paje: empty'
"$heddle" trace export run.log --format nonsense -o x >out 2>err &&
    wrong 'a format that does not exist'
"$heddle" trace info "$heddle" >out 2>err && wrong 'the tool is not a log'
head -c 1000 run.log >cut.log
"$heddle" trace info cut.log >out 2>err
rc=$?
[ $rc -le 1 ] || wrong "a cut log: exit status $rc"

ok model list
has '^gemm '
ok model show gemm
json 0 model show gemm
json 1 model path
holds "r[0]['path'].startswith('$dir/cache')"
HEDDLE_MODEL_DIR=elsewhere ok model path
[ "$(cat out)" = elsewhere/models ] || wrong 'HEDDLE_MODEL_DIR is not used'
HEDDLE_MODEL_DIR='' fails 1 'memory' model list
ok model forget --all
ok model list
! grep -q gemm out || wrong 'still there'
finish
