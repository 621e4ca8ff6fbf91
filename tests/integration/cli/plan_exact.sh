#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# heddle plan exact: the optimum of small graphs between the bound and the plan of
# every solver of graphs.
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"

cat >small.graph <<'END'
heddle-plan-graph 1
name small
value 0 4
value 1 4
value 2 4
value 3 1 result
op 0 10 out=0
op 1 20 in=0 out=1
op 2 5 in=1 out=2
op 3 1 in=0,2 out=3
end
END

# Without the program there is one sentence.
PATH=/nowhere "$heddle" plan exact small.graph --budget 100% >out 2>err &&
    wrong 'exact without cbc'
grep -q "^heddle: there is no program 'cbc'" err || wrong 'no sentence about cbc'
# One that never ends is ended.
mkdir -p bin
printf '#!/bin/sh\nexec sleep 60\n' >bin/cbc
chmod +x bin/cbc
(
    PATH=$dir/bin:$PATH
    fails 1 "'cbc' did not end" plan exact small.graph --budget 100% --time 10ms
    exit $bad
) || bad=$((bad + 1))
fails 2 'needs a graph and a --budget' plan exact small.graph
fails 2 'not a duration' plan exact small.graph --budget 9 --time soon
fails 1 'one operation alone' plan exact small.graph --budget 7
python3 - <<'END'
with open("long.dag", "w") as f:
    f.write("dag 65 0 long\n")
    for i in range(65):
        f.write(f"n {i} 1 1 0 x\n")
END
fails 1 'up to 64 operations' plan exact long.dag --budget 100%

command -v cbc >/dev/null || {
    finish || exit 1
    echo 'skipped: no cbc'
    exit 77
}

# Value 0 goes and comes back: 36 + 10. All of it fits in 12 bytes.
json 1 plan exact small.graph --budget 9
holds "r[0]['status'] == 'optimal' and r[0]['optimum'] == 46"
holds "r[0]['checked'] and r[0]['makespan'] == 46 and r[0]['gap'] < 1e-8"
json 1 plan exact small.graph --budget 100%
holds "r[0]['status'] == 'optimal' and r[0]['optimum'] == 36"
ok plan exact small.graph --budget 9 -o small.plan
has '^cbc      optimal'
ok plan check small.plan

# Random graphs: no bound above the optimum, no plan below it.
HEDDLE_TOOL=$heddle python3 - >out 2>err <<'END' || wrong 'the optimum is not between'
import json, os, random, subprocess, sys
tool, rnd = os.environ["HEDDLE_TOOL"], random.Random(7)

def run(*args):
    p = subprocess.run([tool, "plan", *args, "--json"], capture_output=True, text=True)
    return json.loads(p.stdout) if p.stdout else None

counts = dict(cases=0, infeasible=0, equal=0, plans=0)
for k in range(14):
    n = rnd.randint(6, 11)
    nodes = [(rnd.randint(1, 9), rnd.randint(1, 9)) for _ in range(n)]
    edges = sorted({(u, v) for v in range(1, n)
                    for u in rnd.sample(range(v), min(v, rnd.randint(1, 3)))})
    with open("g.dag", "w") as f:
        f.write(f"dag {n} {len(edges)} g{k}\n")
        for i, (t, s) in enumerate(nodes):
            f.write(f"n {i} {t} {s} 0 x\n")
        for u, v in edges:
            f.write(f"e {u} {v}\n")
    floor = max(nodes[v][1] + sum(nodes[u][1] for u, w in edges if w == v)
                for v in range(n))
    full = run("g.dag", "--budget", "100%", "--time", "10ms")["full_bytes"]
    budget = str(rnd.randint(floor, max(floor, full - 1)))
    exact = run("exact", "g.dag", "--budget", budget, "--time", "20s")
    if exact["status"] not in ("optimal", "infeasible"):
        continue
    counts["cases"] += 1
    counts["infeasible"] += exact["status"] == "infeasible"
    best = None
    for solver in ("greedy", "improve", "blocks", "dtr", "keep"):
        p = run("g.dag", "--budget", budget, "--solver", solver, "--time", "50ms")
        if p is None or not p["feasible"]:
            continue
        if not p["checked"]:
            sys.exit(f"{solver}: not checked")
        if "any order" in p["bound_note"]:
            continue # another order may be better
        # between two first computations the program runs an operation once at
        # most, a plan may run it again; no such graph is among these
        if exact["status"] == "infeasible":
            sys.exit(f"graph {k}: {solver} has a plan where there is none")
        counts["plans"] += 1
        if p["lower_bound"] > exact["optimum"] * (1 + 1e-6):
            sys.exit(f"graph {k}: the bound of {solver} is above the optimum")
        if p["makespan"] < exact["optimum"] * (1 - 1e-6):
            sys.exit(f"graph {k}: {solver} is below the optimum")
        best = min(best or p["makespan"], p["makespan"])
    counts["equal"] += best is not None and best <= exact["optimum"] * (1 + 1e-9)
print(counts)
# the planner finds most of them
sys.exit(0 if counts["plans"] > 10 and counts["equal"] * 2 > counts["cases"] -
         counts["infeasible"] else "too few are found")
END
cat out
finish
