#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# heddle trace bound and certify: real logs, simulated ones, forged proofs.
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"

# A run of the cores. No bound of what was measured exceeds the run.
ok demo --kernels plain --n 240 --nb 30 --log run.log --no-progress
has 'of the best possible on this machine'
ok trace bound run.log
has 'This run is at'
[ ! -e run.log.cert ] || wrong 'a certificate that nobody asked for'
ok trace bound run.log -o run.log.cert
has 'certificate  run.log.cert'
[ -s run.log.cert ] || wrong 'no certificate'
json 1 trace bound run.log -o run.log.cert
holds "{'makespan', 'critical_path', 'area', 'mixed', 'window', 'focus', 'best',
    'efficiency', 'certificate', 'gap', 'seconds', 'unit'} <= set(r[0])"
holds "r[0]['unit'] == 's' and r[0]['certificate'] == 'run.log.cert' and
    r[0]['tasks'] == 120 and r[0]['edges'] > 0 and r[0]['dependencies']"
holds "0 < r[0]['best'] <= r[0]['makespan'] and 0 < r[0]['efficiency'] <= 1"
holds "r[0]['best'] >= max(r[0][k] for k in ('critical_path', 'area', 'mixed',
    'window')) and r[0]['mixed'] >= 0.999999 * max(r[0]['critical_path'],
    r[0]['area'])"
ok trace certify run.log.cert run.log
has 'proven'
json 1 trace certify run.log.cert run.log
holds "r[0]['valid'] and 0 < r[0]['best'] <= r[0]['makespan']"
for d in measured min median model; do
    json 1 trace bound run.log --durations $d -o $d.cert --time 1s
    holds "r[0]['durations'] == '$d' and r[0]['best'] > 0"
    ok trace certify $d.cert run.log
done

# Wrong command lines.
fails 2 'log' trace bound
fails 2 'durations' trace bound run.log --durations longest
fails 2 'not a time' trace bound run.log --time soon
fails 2 'is an input' trace bound run.log -o run.log
fails 1 'cannot be written' trace bound run.log -o /nowhere/x.cert
if [ -w /dev/full ]; then
    ln -s /dev/full full
    fails 2 'no plain file' trace bound run.log -o full
    [ -h full ] || wrong 'what is no file of ours was removed'
fi
fails 1 'nowhere.log' trace bound nowhere.log
fails 2 'certificate and a log' trace certify run.log.cert
fails 1 'cannot be read' trace certify nowhere.cert run.log
fails 1 'not a certificate' trace certify run.log run.log
fails 1 'not a regular file' trace certify /dev/zero run.log
mkfifo pipe
fails 1 'not a regular file' trace certify pipe run.log
fails 1 'nowhere.machine' trace bound run.log --machine nowhere.machine

# Another log, and each kind of forgery.
ok demo --kernels plain --n 180 --nb 30 --log other.log --no-progress
fails 1 'another graph' trace certify run.log.cert other.log
python3 - <<'END'
text = open("run.log.cert").read()
lines = text.splitlines()
at = {k: next(i for i, l in enumerate(lines) if l.startswith("bound " + k))
      for k in ("path", "area", "mixed", "window", "focus")}
def forge(name, i, line):
    open(name, "w").write("\n".join(lines[:i] + [line] + lines[i + 1:]) + "\n")
def word(i, k, w):
    words = lines[i].split()
    words[k] = w
    return " ".join(words)
for k, i in at.items():
    forge(f"high-{k}.cert", i, word(i, 2, str(2 * float(lines[i].split()[2]))))
forge("nan.cert", at["area"], word(at["area"], 2, "nan"))
forge("inf.cert", at["area"], word(at["area"], 2, "inf"))
forge("negative.cert", at["area"] + 1, word(at["area"] + 1, 1, "-1"))
forge("many.cert", at["path"], word(at["path"], 5, "99999999"))
forge("prices.cert", at["area"] + 1, lines[at["area"] + 1] + " 1")
forge("zero-price.cert", at["area"] + 1, word(at["area"] + 1, 1, "0"))
forge("digest.cert", 1, "digest 0123456789abcdef")
forge("version.cert", 0, "heddle-certificate 99")
i = next(i for i, l in enumerate(lines) if l.startswith("makespan "))
forge("makespan.cert", i, "makespan 1")
i = next(i for i, l in enumerate(lines) if l.startswith("e "))
forge("edge.cert", i, word(i, 1, "4000000000"))
open("more.cert", "w").write(text + "more\n")
open("zero.cert", "w").write(text.replace("bound", "bou\0nd", 1))
for k in range(0, len(text) - 1, max(1, len(text) // 60)):
    open(f"cut-{k}.cert", "w").write(text[:k])
END
for k in path area mixed window focus; do
    fails 1 'not proven' trace certify high-$k.cert run.log
done
fails 1 'not proven' trace certify zero-price.cert run.log
fails 1 'finite' trace certify nan.cert run.log
fails 1 'finite' trace certify inf.cert run.log
fails 1 'finite' trace certify negative.cert run.log
fails 1 'not a number up to' trace certify many.cert run.log
fails 1 'not a number up to' trace certify edge.cert run.log
fails 1 'more prices' trace certify prices.cert run.log
fails 1 'another graph' trace certify digest.cert run.log
fails 1 'newer' trace certify version.cert run.log
fails 1 'makespan' trace certify makespan.cert run.log
fails 1 'behind the end' trace certify more.cert run.log
fails 1 'zero.cert' trace certify zero.cert run.log
for f in cut-*.cert; do
    fails 1 'cert' trace certify "$f" run.log
done
"$heddle" trace certify high-area.cert run.log --json >out 2>err &&
    wrong 'a forged certificate with --json'
holds "not r[0]['valid'] and 'not proven' in r[0]['why']"

# Level 0: says that dependencies are missing, bounds by work alone.
ok demo --kernels plain --n 120 --nb 30 --log flat.log --log-level 0 --no-progress
json 1 trace bound flat.log
holds "not r[0]['dependencies'] and r[0]['edges'] == 0 and
    any('level 0' in n for n in r[0]['notes']) and
    0 < r[0]['best'] <= r[0]['makespan']"

# A log that was cut: what is whole counts, and the bound still holds.
head -c $(($(wc -c <run.log) * 2 / 3)) run.log >cut.log
"$heddle" trace bound cut.log --json >out 2>err || wrong 'a cut log'
holds "r[0]['best'] <= r[0]['makespan'] or r[0]['tasks'] == 0"

# Virtual devices, a lost one, and another machine.
cat >two.machine <<'END'
heddle-machine 1
name two
node cuda0 bytes 6G
node cuda1 bytes 6G
class cpu kind cpu workers 3
class cuda0 kind cuda workers 2 node cuda0 model m
class cuda1 kind cuda workers 2 node cuda1 model m
link host cuda0 gbytes 6 latency_us 10
link host cuda1 gbytes 6 latency_us 10
link cuda0 host gbytes 6 latency_us 10
link cuda1 host gbytes 6 latency_us 10
time potrf cpu 3686400 18850
time potrf cuda 3686400 5475
time trsm cpu 7372800 45647
time trsm cuda 7372800 6407
time syrk cpu 7372800 43890
time syrk cuda 7372800 1410
time gemm cpu 11059200 87780
time gemm cuda 11059200 2821
END
ok bench memory --machine two.machine --workload cholesky --tiles 8 --log sim.log
json 1 trace bound sim.log -o sim.log.cert
holds "r[0]['tasks'] == 120 and
    {t['name']: t['workers'] for t in r[0]['types']} ==
        {'cpu': 3, 'cuda0': 2, 'cuda1': 2}"
holds "0 < r[0]['best'] <= r[0]['makespan']"
ok trace certify sim.log.cert sim.log
json 1 trace bound sim.log --machine two.machine --durations model -o two.cert
holds "{t['name']: t['workers'] for t in r[0]['types']} ==
    {'cpu': 3, 'cuda0': 4}"
ok trace certify two.cert sim.log
sed 's/5475/5476/' two.machine >changed.machine
fails 1 'another graph' trace certify two.cert sim.log --machine changed.machine

json 8 bench bound --tasks 2000 --time 2s
holds "all(x['valid'] and 0 <= x['gap'] < 0.2 and
    x['mixed'] >= 0.999999 * max(x['path'], x['area']) for x in r)"
fails 2 'begins' bench bound --case nonsense

finish
