#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Virtual time, memories and links: what is printed, on small runs. How fast or
# how true it is depends on the machine and is not tested.
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"
m=$root/examples/machines/laptop.machine

json 2 bench sched --machine "$m" --tiles 6 --policy heft
holds "{'makespan', 'bound', 'ratio', 'policy', 'tasks_per_second'} <= set(r[0])"
holds "r[0]['tasks'] == 56 and r[0]['policy'] == 'heft'"
# No schedule beats a lower bound.
holds "r[0]['ratio'] >= 1 and r[1]['worst_ratio'] >= r[1]['mean_ratio'] >= 1"
for w in cholesky lu gemm random; do
    json 3 bench sched --machine "$m" --tiles 3,5 --workload $w --policy heft
    holds "all(x['ratio'] >= 1 for x in r[:2])"
done
# Virtual time is the same every time; plan is an older name of lookahead.
json 2 bench sched --machine "$m" --tiles 7 --policy lookahead
cp out first
json 2 bench sched --machine "$m" --tiles 7 --policy plan
holds "[x.get('makespan') for x in r] ==
    [json.loads(l).get('makespan') for l in open('first')]"
json 0 bench sched --machine "$m" --machine "$root/examples/machines/node.machine" \
    --tiles 4 --policy all
holds "len({x['policy'] for x in r}) > 3"

# The default against the best of all: on a machine file, and on machines that are drawn.
for w in qr layered; do
    json 2 bench sched --machine "$m" --workload $w --tiles 5 --best
    holds "r[0]['over_best'] == r[0]['makespan'] / min(r[0]['makespans'].values())"
    holds "r[0]['over_bound'] >= 1 and len(r[0]['makespans']) > 3"
done
json 13 bench sched --random 12 --seed 2
cp out first
holds "all(x['over_best'] >= 1 and x['over_bound'] >= 1 for x in r[:12])"
holds "r[12]['cases'] == 12 and r[12]['must'] == 1.03"
holds "r[12]['mean_over_best'] <= 1.03 and r[12]['worst_over_best'] <= 1.1"
holds "r[12]['met'] == (r[12]['worst_over_best'] <= 1.03)"
# A seed draws the same machine and graph each time.
json 2 bench sched --random 1 --seed 5
holds "r[0]['makespans'] == json.loads(open('first').readlines()[3])['makespans']"

json 1 bench memory --machine "$m" --workload cholesky --tiles 8 --policy heft
holds "{'transfer_bytes', 'belady_bytes', 'lru_bytes', 'makespan', 'bound'} <=
    set(r[0])"
holds "r[0]['budget_bytes'] == r[0]['data_bytes'] // 4"
# With room for all, every rule copies the same: what is used, once.
json 1 bench memory --machine "$m" --workload gemm --tiles 4 --budget 100% \
    --policy heft
holds "r[0]['belady_bytes'] == r[0]['lru_bytes']"
# A budget below the largest task is raised to it, and the run ends.
json 1 bench memory --machine "$m" --workload gemm --tiles 4 --budget 1 \
    --policy heft
holds "r[0]['budget_bytes'] == 3 * 960 * 960 * 4"
holds "r[0]['transfer_bytes'] > 0"
json 1 bench memory --machine "$m" --tiles 4 --policy heft --log kept.log
json 1 trace info kept.log
# The bound with links: copies count, and no run beats it.
json 1 trace bound kept.log
holds "0 < r[0]['links'] <= r[0]['makespan']"
cat >slow.machine <<'END'
heddle-machine 1
node gpu0
class cpu kind cpu workers 2
class gpu0 kind cuda workers 1 node gpu0
duplex host gpu0 gbytes 2
time gemm cpu 11059200 41000
time gemm gpu0 11059200 190
END
json 1 bench memory --machine slow.machine --workload gemm --tiles 6 --budget 100% \
    --policy heft --log slow.log
json 1 trace bound slow.log
holds "2 * r[0]['best'] < r[0]['links'] <= r[0]['makespan']"

json 1 bench simulate --what speed --machine "$m" --tiles 8 --reps 2
holds "r[0]['tasks_per_second'] > 0"
json 11 bench simulate --what accuracy --reps 1 --kernels plain
holds "all(x['real_ns'] > 0 and x['simulated_ns'] > 0 for x in r[:10])"
holds "all(x['free_runtime_error'] >= 0 for x in r[:10])"
holds "r[10]['points'] == 10 and r[10]['submit_us'] > 0"
json 2 bench disk --path . --tiles 3 --nb 16,32 --reps 1 --kernels plain
holds "all(x['right'] and x['share'] > 0 for x in r)"

json 1 info
holds "r[0]['devices'][0]['kind'] == 'cpu' and r[0]['links'] == []"
holds "r[0]['memories'][0]['name'] == 'host'"
ok calibrate --devices none
has 'nothing to calibrate'
json 1 calibrate --devices none
holds "r[0]['devices'] == 0"
json 1 calibrate --overhead --devices none
holds "r[0]['name'] == 'overhead' and r[0]['submit_us'] > 0"
holds "r[0]['drive_us'] == 0 and r[0]['notice_us'] == 0"
# What it prints is a line of a machine file.
{
    printf 'heddle-machine 2\nclass cpu kind cpu workers 2 gbytes 1\n'
    "$heddle" calibrate --overhead --devices none
} >overhead.machine
json 1 bench simulate --what speed --machine overhead.machine --tiles 4 --reps 1

# The program gets the machine; its exit status is that of sim.
ok sim --machine "$m" --policy heft --faults 'lose gpu0 at_ms 1' -- env
has "^HEDDLE_MACHINE=$m$"
has '^HEDDLE_SCHED=heft$'
has '^HEDDLE_FAULTS=lose gpu0 at_ms 1$'
"$heddle" sim --machine "$m" -- sh -c 'exit 7' >out 2>err
[ $? -eq 7 ] || wrong 'sim: not the exit status of the program'

fails 2 'needs a --machine' bench sched
fails 2 'needs a --machine' bench memory
fails 2 'needs a --machine' bench simulate --what speed
fails 2 'speed or accuracy' bench simulate --what nonsense
fails 2 'without --policy' bench sched --random 2 --policy heft
fails 2 '--random' bench sched --random 0
fails 2 "no workload 'x'" bench sched --machine "$m" --workload x
fails 2 "no workload 'x'" bench memory --machine "$m" --workload x
fails 2 "no scheduler 'x'" bench sched --machine "$m" --policy x
fails 2 "no scheduler 'x'" sim --machine "$m" --policy x -- true
for v in 0 257 x 4, ,4 '4,,5' -1 1.5; do
    fails 2 '--tiles' bench sched --machine "$m" --tiles "$v"
done
for v in 0 0% x -5 ''; do
    fails 2 '--budget' bench memory --machine "$m" --budget "$v"
done
for v in 7 4097 x 64, ''; do
    fails 2 '--nb' bench disk --nb "$v"
done
fails 2 'needs a value' bench sched --machine
fails 2 'not empty' bench sched --machine=
fails 1 'no/such' bench sched --machine no/such
fails 1 'no/such' bench memory --machine no/such
fails 1 "'nonsense'" bench sched --machine "$m" --devices nonsense --tiles 4
fails 1 "'nonsense'" info --devices nonsense
fails 1 "'nonsense'" calibrate --devices nonsense
fails 1 'no/such' bench disk --path no/such --tiles 2 --nb 16
fails 2 "behind '--'" sim --machine "$m"
fails 2 'needs a --machine' sim -- true
fails 1 'no/such' sim --machine no/such -- true
fails 1 'cannot be started' sim --machine "$m" -- ./no-such-program
echo 'heddle-machine 1' >empty.machine
fails 1 'empty.machine' bench sched --machine empty.machine
finish
