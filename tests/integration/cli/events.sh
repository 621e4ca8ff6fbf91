#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What the log has of a run: on a machine in virtual time, where every time and
# byte is known, and of a program that still runs.
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"
m=$root/examples/machines/laptop.machine

# Transfers, evictions, memory: the run's own statistics are the oracle.
for w in cholesky gemm; do
    for budget in 10% 25% 100%; do
        rm -f run.log
        HEDDLE_LOG_LEVEL=1
        export HEDDLE_LOG_LEVEL
        json 1 bench memory --machine "$m" --workload $w --tiles 8 \
            --budget $budget --policy heft --log run.log
        unset HEDDLE_LOG_LEVEL
        cp out stats
        json 0 trace dump run.log
        python3 - "$w $budget" <<'END' || wrong "events of $w with $budget"
import json, sys
from collections import Counter, defaultdict
stats = json.loads(open("stats").read())
r = [json.loads(line) for line in open("out")]
of = defaultdict(list)
for x in r:
    of[x["record"]].append(x)
bad = 0
def check(ok, what):
    global bad
    if not ok:
        print(f"{sys.argv[1]}: {what}", file=sys.stderr)
        bad += 1
task = {t["id"]: t for t in of["task"]}
bytes_of = {h["id"]: h["bytes"] for h in of["handle"]}
lane = {l["name"]: l for l in of["lane"]}
end = max(t["end_ns"] for t in of["task"])
moves = [e for e in of["event"] if e["kind"] in
         ("fetch", "prefetch", "writeback", "evict")]
memory = [e for e in of["event"] if e["kind"] in ("alloc", "free")]

# Tasks: whole, in order, predicted by a model that virtual time follows.
check(len(task) == stats["tasks"], "tasks")
for t in of["task"]:
    check(0 <= t["submit_ns"] <= t["ready_ns"] <= t["start_ns"] < t["end_ns"],
          f"times of {t}")
    check(t["predicted_ns"] == t["end_ns"] - t["start_ns"], f"predicted: {t}")
for d in of["dependency"]:
    a, b = task[d["after"]], task[d["task"]]
    check(a["end_ns"] <= b["ready_ns"], f"{d} was not waited for")
access = defaultdict(int)
for a in of["access"]:
    check(a["operand"] == access[a["task"]], "operands are in order")
    access[a["task"]] += 1
check(set(access) == set(task), "accesses of all tasks")

# Transfers: all of them, with what they copied, for how long.
check(sum(e["x"] for e in moves) == stats["transfer_bytes"], "bytes moved")
evict = Counter()
for e in moves:
    src, dst = e["b"] % 256, e["b"] // 256
    check({src, dst} == {0, 1}, f"way of {e}")
    check(e["x"] == bytes_of[e["c"]], f"bytes of {e}")
    # 12 us and 6 GB/s, one at a time in each direction.
    check(abs(e["z_ns"] - (12000 + e["x"] / 6)) <= 1, f"time of {e}")
    check(e["y_ns"] >= 0 and e["t_ns"] >= 0, f"waiting of {e}")
    check(e["task"] == 0 or e["task"] in task, f"for whom was {e}")
    check(e["kind"] != "fetch" or
          e["t_ns"] + e["y_ns"] + e["z_ns"] <= task[e["task"]]["start_ns"],
          f"{e} ended after its task began")
    check(e["kind"] not in ("fetch", "evict") or e["task"] != 0,
          f"for nobody: {e}")
for way in (0, 1):
    last = 0
    for e in sorted((e for e in moves if e["b"] % 256 == way),
                    key=lambda e: e["t_ns"] + e["y_ns"]):
        check(e["t_ns"] + e["y_ns"] >= last, f"{e} beside another")
        last = e["t_ns"] + e["y_ns"] + e["z_ns"]
if stats["evictions"]:
    check(any(e["kind"] == "evict" for e in moves), "evictions")
    check(any(e["kind"] == "free" and e["task"] for e in memory),
          "frees on behalf of a task")

# Memory: each event changes it by one copy, and never beyond the budget.
used = 0
for e in memory:
    size = bytes_of[e["c"]]
    used += size if e["kind"] == "alloc" else -size
    check(e["b"] == 1 and e["x"] == used, f"bytes in use of {e}")
    check(used <= stats["budget_bytes"], f"over the budget: {e}")
check(stats["evictions"] == 0 or
      max(e["x"] for e in memory) > stats["budget_bytes"] // 2, "a full memory")

# States of lanes: between tasks, and data where operands were on their way.
runs = defaultdict(list)
for t in of["task"]:
    runs[t["lane"]].append((t["start_ns"], t["end_ns"]))
for s in of["state"]:
    check(s["end_ns"] >= s["start_ns"], f"{s}")
    check(all(b <= s["start_ns"] or a >= s["end_ns"]
              for a, b in runs[s["lane"]]), f"{s} during a task")
    if s["state"] == "data" and s["end_ns"] > s["start_ns"]:
        check(any(e["t_ns"] < s["end_ns"] and
                  e["t_ns"] + e["y_ns"] + e["z_ns"] > s["start_ns"]
                  for e in moves), f"{s} without a transfer")
names = {s["state"] for s in of["state"]}
check("data" in names and "idle" in names, f"states: {names}")
check(lane["gpu0"]["kind"] == "device" and lane["gpu0"]["node"] == 1 and
      lane["cpu.0"]["kind"] == "worker" and lane["cpu.0"]["node"] == 0, "lanes")
check([l for l in lane if lane[l]["kind"] in ("worker", "device")] ==
      ["cpu.0", "cpu.1", "cpu.2", "cpu.3", "gpu0"], "workers")
node = {n["id"]: n for n in of["node"]}
check(node[0]["name"] == "host" and node[1]["bytes"] == stats["budget_bytes"],
      "memories")
check(sorted((l["from"], l["to"], l["bytes_per_s"], l["latency_ns"])
             for l in of["link"]) == [("gpu0", "host", 6e9, 12000.0),
                                      ("host", "gpu0", 6e9, 12000.0)], "links")
sys.exit(bad > 0)
END
    done
done
json 1 trace info run.log
holds "r[0]['info']['time'] == 'virtual' and r[0]['info']['machine'] == '$m'"
holds "r[0]['info']['scheduler'] == 'heft' and r[0]['info']['workers'] == '5'"
holds "r[0]['info']['class gpu0'] == '1 cuda small-gpu'"
holds "r[0]['info']['program'] == 'heddle' and r[0]['info']['host'] != ''"
holds "r[0]['version_major'] == 1 and r[0]['version_minor'] == 1"

# Too little memory for two tasks at once: the device waits for room.
HEDDLE_LOG_LEVEL=1 "$heddle" bench memory --machine "$m" --workload gemm \
    --tiles 6 --budget 1 --policy heft --log tight.log >out 2>err ||
    wrong 'bench memory with the least memory'
json 0 trace dump tight.log
holds "any(x['record'] == 'state' and x['state'] == 'memory' and
    x['end_ns'] > x['start_ns'] for x in r)"

# At level 0 there are tasks and nothing else.
ok demo --kernels plain --n 120 --nb 30 --log zero.log --log-level 0 --no-progress
json 0 trace dump zero.log
holds "not [x for x in r if x['record'] in ('event', 'access', 'dependency',
    'attribute')]"
holds "len([x for x in r if x['record'] == 'task']) == 20"

# A program that runs is seen: its file grows while it does, and can be read.
# On a busy machine it may have ended before anybody looked twice: then a longer one.
for tasks in 40 200 1000; do
    rm -f live.log
    "$heddle" bench tasks --shape chain --tasks $tasks --task-us 100000 --reps 1 \
        --workers 1 --log live.log --log-level 1 >out 2>err &
    pid=$!
    seen=0 now=0
    while kill -0 $pid 2>/dev/null; do
        if [ -s live.log ]; then
            "$heddle" trace info live.log --json >info 2>/dev/null &&
                now=$(python3 -c 'import json
r = json.load(open("info"))
print(r["executed"] if r["partial"] else -1)') || now=0
            [ "$now" -gt 0 ] && [ "$now" -gt "$seen" ] && {
                [ "$seen" -gt 0 ] && break
                seen=$now
            }
            [ "$now" -lt 0 ] && break
        fi
        sleep 0.1
    done
    wait $pid || wrong 'the running program'
    [ "$seen" -gt 0 ] && [ "$now" -gt "$seen" ] && break
done
[ "$seen" -gt 0 ] && [ "$now" -gt "$seen" ] ||
    wrong "a running program: $seen tasks, then $now"
json 1 trace info live.log
holds "not r[0]['partial'] and r[0]['executed'] > $seen"
finish
