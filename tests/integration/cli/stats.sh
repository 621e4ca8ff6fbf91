#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# heddle trace stats: for logs of many kinds of runs every breakdown adds up to
# the nanosecond.
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"
examples=${heddle%/*}/examples
machine=$root/examples/machines/node.machine

# sums: the object in `out` adds up.
sums() {
    python3 - <<'END' >err 2>&1 || wrong "$1: does not add up"
import json
r = json.loads(open("out").read())
m, n = r["makespan_ns"], r["workers"]
causes = ["work", "waste", "data", "memory", "overhead", "start", "end",
          "sched", "submit", "deps", "unknown"]
assert len(r["workers_table"]) == n
total = dict.fromkeys(causes, 0)
for w in r["workers_table"]:
    assert list(w["ns"]) == causes
    assert all(v >= 0 for v in w["ns"].values())
    assert sum(w["ns"].values()) == m, w
    for c in causes:
        total[c] += w["ns"][c]
assert total == r["totals"]
assert sum(r["totals"].values()) == n * m
assert sum(r["blame"].values()) == m
assert r["last_ns"] - r["first_ns"] == m
assert 0 <= r["parallel_efficiency"] <= 1 and 0 <= r["runtime_efficiency"] <= 1
assert abs(sum(k["share"] for k in r["kernels"]) - 1) < 1e-9 or r["executed"] == 0
assert r["advice"] and all(a.endswith(".") for a in r["advice"])
END
}

# stats LOG: as text and as JSON, and it adds up.
stats() {
    ok trace stats "$1"
    has 'What to look at first'
    json 1 trace stats "$1"
    sums "$1"
}

# log NAME COMMAND: runs it with a log of level 1, or $level; its outcome is its
# own business.
log() {
    name=$1
    shift
    HEDDLE_LOG_FILE=$name HEDDLE_LOG_LEVEL=${level:-1} timeout 100 "$@" \
        >out 2>err
    [ -s "$name" ] || wrong "no log of $*"
}

for l in 0 1 2; do
    ok demo --kernels plain --n 200 --nb 20 --log demo$l.log --log-level $l --no-progress
    stats demo$l.log
done
holds "r[0]['totals']['unknown'] == 0 and r[0]['totals']['work'] > 0"
holds "r[0]['path']['tasks'] >= 10 and r[0]['path']['ns'] <= r[0]['makespan_ns']"
holds "sum(k['tasks'] for k in r[0]['kernels']) == r[0]['executed']"
json 1 trace stats demo0.log
holds "r[0]['totals']['deps'] == 0 and r[0]['totals']['sched'] == 0"
ok demo --kernels plain --n 120 --nb 30 --workers 1 --log one.log --no-progress
stats one.log

if [ -x "$examples/05_nested" ]; then
    for e in 01_hello 04_reduction 05_nested 06_graph 07_errors; do
        log $e.log "$examples/$e"
        stats $e.log
        level=0 log $e.0.log "$examples/$e"
        stats $e.0.log
    done
    for e in 03_cholesky 05_nested 06_graph; do
        log $e.sim.log "$heddle" sim --machine "$machine" --log $e.sim.log -- \
            "$examples/$e"
        stats $e.sim.log
    done
    log lost.log "$heddle" sim --machine "$machine" --faults 'lose gpu0 at_ms 1' \
        --log lost.log -- "$examples/03_cholesky"
    stats lost.log
fi

# Four workers take one core from each other, and the time that tasks lose is named.
cat >core.py <<'END'
import os, sys
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
os.execv(sys.argv[1], sys.argv[1:])
END
python3 core.py "$heddle" demo --kernels plain --n 1200 --nb 300 --workers 4 \
    --log crowd.log --no-progress >out 2>err || wrong 'four workers on one core'
stats crowd.log
holds "0 < r[0]['lost_ns'] <= r[0]['totals']['work'] and r[0]['lost_tasks'] > 0"
holds "any('something else' in a for a in r[0]['advice'])"
ok trace stats crowd.log
has 'lost to the system'
ok trace view crowd.log -o crowd.html
grep -Eq '"system_ns":[1-9][0-9]*,"system_tasks":[1-9]' crowd.html ||
    wrong 'the page does not have it'

# Tasks that wait for tasks inside of them: shares are of all tasks, not of the worker.
for i in 0 1 2 3 4 5 6 7 8 9; do
    printf 'Model: k%d\nJobId: %d\nWorkerId: 0\nStartTime: %d\nEndTime: %d\n\n' \
        $((i % 2)) $((i + 1)) "$i" $((100 - i))
done >nested.rec
ok trace import nested.rec -o nested.log
stats nested.log
holds "all(k['share'] < 0.6 for k in r[0]['kernels'])"

# Cut and damaged.
python3 - demo1.log <<'END'
import random, sys
data = open(sys.argv[1], "rb").read()
random.seed(1)
for i in range(8):
    n = 72 + (len(data) - 72) * i // 8
    open(f"cut{i}.log", "wb").write(data[:n])
    bad = bytearray(data)
    for _ in range(3):
        bad[random.randrange(72, len(bad))] ^= random.randrange(1, 256)
    open(f"bad{i}.log", "wb").write(bad)
END
i=0
while [ $i -lt 8 ]; do
    json 1 trace stats cut$i.log
    holds "r[0]['partial'] and r[0]['partial_why']"
    sums cut$i.log
    json 1 trace stats bad$i.log
    sums bad$i.log
    i=$((i + 1))
done

fails 1 'nothing.log' trace stats nothing.log
fails 2 'log' trace stats
fails 2 'nonsense' trace stats demo1.log --nonsense
ok trace stats --help
has 'heddle trace stats LOG'
finish
