#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# heddle bench: what is printed, on small runs. How fast it is, is not tested.
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"

json 1 bench tasks --shape random --tasks 3000 --reps 2 --workers 2
holds "{'name', 'shape', 'workers', 'tasks', 'ns_per_task', 'min', 'max',
    'reps', 'submit_ns_per_task', 'cpu_ns_per_task', 'sched', 'window', 'log',
    'log_level', 'bytes_per_pending_task', 'allocations_per_task'} <= set(r[0])"
holds "r[0]['shape'] == 'random' and r[0]['tasks'] == 3000"
holds "r[0]['workers'] == 2 and r[0]['reps'] == 2"
holds "0 < r[0]['min'] <= r[0]['ns_per_task'] <= r[0]['max']"
holds "0 < r[0]['submit_ns_per_task'] <= r[0]['max']"
holds "0 < r[0]['bytes_per_pending_task'] <= 256"

json 5 bench tasks --shape all --tasks 1000 --reps 1 --workers 1 --no-log
holds "[x['shape'] for x in r] ==
    ['independent', 'chain', 'random', 'cholesky', 'replay']"
holds "all(x['tasks'] == 45760 for x in r[3:])"
holds "all(x['log'] == 'off' and x['log_level'] == -1 for x in r)"
holds "all(x['allocations_per_task'] == 0 for x in r[:4])"

for s in eager prio ws; do
    json 1 bench tasks --shape chain --tasks=500 --reps=1 --sched=$s \
        --window=64 --no-bind
    holds "r[0]['sched'] == '$s' and r[0]['window'] == 64 and not r[0]['bound']"
done

json 1 bench tasks --shape independent --tasks 200 --reps 2 --task-us 2.5 --gate
holds "r[0]['ns_per_task'] * r[0]['workers'] >= 2400"
holds "r[0]['near_reps'] + r[0]['far_reps'] in (0, 2)"
ok bench tasks --tasks 500 --reps 1 --gate
has '^cholesky '

json 1 bench tasks --shape chain --tasks 500 --reps 1 --log chain.log \
    --log-level 1
holds "r[0]['log'] == 'file' and r[0]['log_level'] == 1"
json 1 trace info chain.log

json 8 bench metg --tasks 50 --reps 1 --workers 1
holds "[x['task_us'] for x in r[:7]] == [1, 2, 5, 10, 20, 50, 100]"
holds "r[7]['name'] == 'metg' and r[6]['efficiency'] > 0"
holds "r[7]['metg50_us'] is None or 1 <= r[7]['metg50_us'] <= 100"
json 1 bench scale --tasks 100 --reps 1 --task-us 5
holds "r[0]['speedup'] > 0"
json 1 bench log --tasks 2000 --reps 2 --log held.log
holds "0 < r[0]['file_bytes_per_task'] <= 24 and r[0]['clock_read_ns'] > 0"
json 1 trace info held.log
json 1 bench idle
holds "r[0]['cpu_percent'] < 20"

# Networks: a small one under the names that the parts look for.
mkdir models larger
cp "$root/examples/networks/echo.onnx" larger/one.onnx
cp "$root/examples/networks/echo.onnx" larger/two.onnx
for m in small resnet50 resnet50_int8 small_tiny; do
    cp "$root/examples/networks/flowers.onnx" models/$m.onnx
done
json 0 bench nn models --only latency --workers 2 --rounds 2
holds "all(x['heddle'] > 0 for x in r[:4]) and r[0]['threads'] == 1"
# Not the small one: of its few bytes most are there to reach a multiple of 64.
json 3 bench nn larger --only arena --workers 2
holds "all(x['ratio'] >= 1 and x['met'] for x in r[:2])"
holds "r[2]['name'] == 'nn summary' and r[2]['bars'] == r[2]['met'] == 2"
json 2 bench nn models --only runtime --rounds 2
holds "r[0]['ratio'] >= 1 and r[0]['tasks'] > 0 and r[0]['rounds'] == 2"
json 2 bench nn models --only growth --requests 100 --workers 2
holds "r[0]['requests'] == 100 and r[0]['resident_mib'] > 0"
json 0 bench nn models --only throughput,load --rounds 1 --workers 2
holds "r[0]['case'] == 'resnet50' and r[0]['heddle'] > 0"
json 2 bench nn models --only int8 --rounds 1
holds "r[0]['against'] == 'by int8' and r[0]['raw'] > 0"
mkdir empty
json 3 bench nn --only nodes --cases empty
holds "r[0]['skipped'] == 'there are no cases' and r[2]['bars'] == 0"
json 2 bench nn models/small.onnx --only runtime
holds "r[0]['skipped'] == 'resnet50.onnx is missing'"
json 11 bench nn --cases empty
holds "[x['skipped'] for x in r[2:10]] == 8 * ['no models were given']"
fails 2 'no model' bench nn nowhere.onnx
fails 2 'some of nodes, outputs, latency' bench nn --only speed
fails 2 'no library of ONNX Runtime' bench nn --peer models/small.onnx
cp "$root/README.md" models/small.onnx
fails_with=$("$heddle" bench nn models/small.onnx --only latency 2>&1 >out)
[ $? -eq 1 ] && [ -n "$fails_with" ] || wrong 'a damaged model is no failure'

# Benchmarks do not look at the environment.
HEDDLE_WORKERS=nonsense ok bench tasks --tasks 100 --reps 1 --shape chain
finish
