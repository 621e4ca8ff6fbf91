#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# heddle energy bound, predict and frontier; bench energy_schedule.
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"
m=$root/examples/machines/node.machine
e=$root/examples/machines/node.energy

json 1 bench memory --machine "$m" --workload cholesky --tiles 6 \
    --budget 100% --policy heft --log run.log

# Every example is a model.
for f in "$root"/examples/machines/*.energy; do
    if [ "$f" = "$e" ]; then
        json 1 energy predict run.log --model "$f" --policy heft
    fi
    grep -q '^heddle-energy 1' "$f" || wrong "$f: no first line"
done

# The least energy of all, at a slack, at a deadline: more time, less energy.
json 1 energy bound run.log --model "$e" --iterations 50 --time 1h
cp out free
holds "r[0]['tasks'] == 56 and abs(r[0]['idle_watts'] - 205) < 1e-9 and r[0]['checked']"
holds "r[0]['bound_joules'] > 0 and r[0]['ratio'] >= 1 - 1e-9"
holds "r[0]['run']['joules'] >= r[0]['bound_joules']"
holds "abs(r[0]['run']['idle_joules'] - 205 * r[0]['run']['makespan']) < 1e-9"
json 1 energy bound run.log --model "$e" --slack 5% --iterations 50 --time 1h
holds "r[0]['schedule']['makespan'] <= 1.05 * r[0]['fastest'] + 1e-12"
holds "abs(r[0]['deadline'] - 1.05 * r[0]['fastest']) < 1e-12"
holds "r[0]['bound_joules'] >= json.load(open('free'))['bound_joules'] * 0.999"
holds "r[0]['ratio'] < 1.08"
json 1 energy bound run.log --model "$e" --deadline 1s --time 100ms
holds "r[0]['deadline'] == 1 and r[0]['possible']"
ok energy bound run.log --model "$e" --slack 0.1 --time 50ms --goal edp
has '^bound .* checked'
has '^schedule '
ok energy bound run.log --model "$e" --time 50ms --goal weight=0.5
# A deadline just above the bound on the length: windows and paths together
# prove that nobody keeps it.
json 1 energy bound run.log --model "$e" --machine "$m" --time 1h --iterations 20
t=$(python3 -c 'import json
print("%dns" % (json.load(open("out"))["time_bound"] * 1e9 + 2))')
fails 1 'more energy than they can draw' energy bound run.log --model "$e" \
    --machine "$m" --time 1h --iterations 20 --deadline "$t"
# The same limits, the same answer.
json 1 energy bound run.log --model "$e" --iterations 50 --time 1h
cmp -s out free || wrong 'the same search twice'

# Caps, uneven ones too; another machine.
json 1 energy bound run.log --model "$e" --slack 5% --time 50ms --cap gpu1=200W
holds "[t['cap'] for t in r[0]['types']] == [None, None, '200W']"
json 1 energy bound run.log --model "$e" --slack 5% --time 50ms \
    --machine "$m" --cap cuda=150W:1
holds "[t['workers'] for t in r[0]['types']] == [14, 1, 1]"
holds "'run' not in r[0]"

# Other policies.
json 1 energy predict run.log --model "$e" --policy heft,dmdas,fixed,best,\
least-energy --time 100ms
holds "[p['policy'] for p in r[0]['policies']] ==
    ['heft', 'dmdas', 'fixed', 'best', 'least-energy']"
holds "all(p['joules'] >= r[0]['bound_joules'] * (1 - 1e-9)
    for p in r[0]['policies'])"
holds "all(abs(p['joules'] - p['active_joules'] - p['idle_joules']) < 1e-9
    for p in r[0]['policies'])"
ok energy predict run.log --model "$e" --time 50ms --machine "$m"
has '^least-energy '

# The frontier falls, and is a page.
json 1 energy frontier run.log --model "$e" --machine "$m" --points 4 \
    --time 500ms -o page.html
holds "1 <= len(r[0]['points']) <= 4 and r[0]['page'] == 'page.html'"
holds "all(p['bound_joules'] <= p['joules'] * (1 + 1e-9)
    for p in r[0]['points'])"
holds "all(a['joules'] >= b['joules'] and a['deadline'] < b['deadline']
    for a, b in zip(r[0]['points'], r[0]['points'][1:]))"
grep -q '<svg' page.html || wrong 'no picture'
grep -q '</html>' page.html || wrong 'no end'
if grep -q 'http' page.html; then wrong 'the page asks for something'; fi
ok energy frontier run.log --model "$e" --points 2 --time 200ms
has '^ *deadline'

# What is not there, or makes no sense.
fails 1 'no schedule keeps the deadline of 1.00 ms' energy bound run.log \
    --model "$e" --deadline 1ms
fails 1 'no energy model' energy bound run.log
fails 1 'nothing.energy' energy bound run.log --model nothing.energy
fails 1 'nothing.log' energy bound nothing.log --model "$e"
fails 2 'log' energy bound --model "$e"
fails 2 'exclude' energy bound run.log --deadline 1s --slack 5%
fails 2 'slack' energy bound run.log --model "$e" --slack -5%
fails 2 'slack' energy bound run.log --model "$e" --slack nan
fails 2 'deadline' energy bound run.log --model "$e" --deadline soon
fails 2 'goal' energy bound run.log --model "$e" --goal weight=2
fails 2 'cap' energy bound run.log --model "$e" --cap gpu1
fails 1 "no cap '9W'" energy bound run.log --model "$e" --cap gpu1=9W
fails 1 "no type of workers 'gpu7'" energy bound run.log --model "$e" \
    --cap gpu7=200W
fails 2 "no policy 'wrong'" energy predict run.log --policy wrong
fails 2 'points' energy frontier run.log --points 1
fails 1 'cannot be written' energy frontier run.log --model "$e" \
    --points 2 --time 100ms -o no/where.html
printf 'heddle-energy 1\ndomain a idle_watts -3\n' >bad.energy
fails 1 'bad.energy:2' energy bound run.log --model bad.energy
printf 'heddle-energy 1\nactive * * watts 3\n' >bad.energy
fails 1 'idle power' energy bound run.log --model bad.energy
printf 'heddle-energy 1\ndomain a idle_watts 3\nactive gemm * watts 3\n' \
    >bad.energy
fails 1 "no watts for kernel 'potrf'" energy bound run.log --model bad.energy
"$heddle" energy bound run.log --model "$e" --deadline 1ms --json >out 2>err
[ $? -eq 1 ] || wrong 'an impossible deadline in JSON: exit status'
python3 -c 'import json; r = json.load(open("out"))
assert r["possible"] is False and r["time_bound"] > r["deadline"]' ||
    wrong 'an impossible deadline in JSON'
# The model of a machine is found where fits leave it.
mkdir -p "$XDG_CACHE_HOME/heddle/energy"
cp "$e" "$XDG_CACHE_HOME/heddle/energy/node.energy"
json 1 energy predict run.log --machine "$m" --policy heft
holds "r[0]['model'].endswith('/energy/node.energy')"

# The benchmark: schedules over the bound, and what the bar asks.
json 4 bench energy_schedule --machine attila --tiles 10 --time 200ms
holds "r[3]['cases'] == 3 and r[3]['worst_ratio'] < 1.08"
holds "all(x['slowdown'] <= 1.05 + 1e-9 and x['ratio'] >= 1 - 1e-9
    for x in r[:3])"
fails 2 'no such' bench energy_schedule --machine nowhere
finish
