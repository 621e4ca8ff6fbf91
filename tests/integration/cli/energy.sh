#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# heddle energy plant, fit and report, and bench energy: watts there and back.
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"
m=$root/examples/machines/node.machine

cat >true.energy <<'END'
heddle-energy 1
domain package-0 idle_watts 90 device cpu
domain gpu0 idle_watts 55 device gpu0
domain gpu1 idle_watts 57 device gpu1
active potrf cpu watts 7
active trsm cpu watts 9
active syrk cpu watts 10
active gemm cpu watts 11.5
active potrf gpu watts 80
active trsm gpu watts 160
active syrk gpu watts 200
active gemm gpu watts 240
END
for p in heft eager multiprio; do
    json 1 bench memory --machine "$m" --workload cholesky --tiles 20 \
        --budget 100% --policy $p --log $p.log
done

# A plant with counters that tell nearly everything.
for p in heft eager; do
    json 1 energy plant $p.log --model true.energy -o $p.plant --counters cpu \
        --noise 0 --sample 4ms --margin 20ms
    holds "r[0]['file'] == '$p.plant' and r[0]['domains'] == 3 and
        0 < r[0]['idle_joules'] < r[0]['joules'] and r[0]['unknown_tasks'] == 0"
done
ok energy plant heft.log --model true.energy -o other.plant --counters gpu --seed 3
has 'the run of'
ok energy plant heft.log --model true.energy -o wraps.plant --counters cpu --wrap 3000000

# What the fit finds, and where it is kept when that is asked for.
json 1 energy fit heft.plant eager.plant
holds "'model' not in r[0] and r[0]['logs'] == 2"
[ ! -e cache/heddle/energy ] || wrong 'a model that nobody asked for'
json 1 energy fit heft.plant eager.plant --keep
cp out fit.json
holds "r[0]['model'].endswith('/energy/node.energy') and r[0]['logs'] == 2"
holds "abs(next(d for d in r[0]['domains'] if d['name'] == 'gpu0')['idle_watts'] - 55) < 2"
holds "abs(next(k for k in r[0]['kernels'] if k['kernel'] == 'gemm' and
    k['device'] == 'gpu0')['watts'] - 240) < 8"
holds "0 <= r[0]['held_out'] < 0.05"
holds "all(k['low'] <= k['watts'] <= k['high'] for k in r[0]['kernels'])"
holds "abs(r[0]['idle_joules'] + r[0]['active_joules'] + r[0]['move_joules'] -
    r[0]['measured_joules']) < 0.03 * r[0]['measured_joules']"
json 1 energy fit heft.plant eager.plant --keep
cmp -s out fit.json || wrong 'the fit is another one the second time'
ok energy fit heft.plant --lag 1ms --bootstrap 0 -o one.energy
has '^gemm .* gpu0 '
has 'held out     nothing'
has 'model        one.energy'
head -n 1 one.energy | grep -q '^heddle-energy 1$' || wrong 'no model'
ok energy fit wraps.plant --by-size --prior true.energy -o sizes.energy

# A run with another scheduler, predicted from what is kept.
json 1 energy plant multiprio.log --model true.energy -o multiprio.plant \
    --counters cpu --seed 9
holds "r[0]['joules'] > 0"
cp out truth.json
json 1 energy report multiprio.plant --intensity 100
holds "abs(r[0]['joules'] / json.load(open('truth.json'))['joules'] - 1) < 0.02"
holds "abs(r[0]['error']) < 0.02 and r[0]['measured_joules'] > 0"
holds "abs(r[0]['grams_co2'] - r[0]['joules'] / 36000) < 1e-9"
holds "r[0]['unknown_tasks'] == 0 and 0 < r[0]['idle_share'] < 1"
holds "{d['name'] for d in r[0]['domains']} == {'package-0', 'gpu0', 'gpu1'}"
ok energy report multiprio.log --model true.energy
has 'measured     nothing'
ok energy report multiprio.plant --intensity 0
has 'carbon       0 g'

# No samples, no model, no sense.
fails 1 'no samples of energy counters' energy fit heft.log -o x.energy
[ ! -e x.energy ] || wrong 'a model of nothing'
fails 2 'needs the file of a log' energy fit
fails 2 'needs the file of a log' energy report
fails 2 'needs -o' energy plant heft.log --model true.energy
fails 2 'is an input' energy plant heft.log --model true.energy -o heft.log
fails 2 'is an input' energy fit heft.plant -o heft.plant
fails 2 'not a time' energy fit heft.plant --lag soon
fails 2 'needs a --lag' energy fit heft.plant --window 1ms
fails 2 'counters is' energy plant heft.log --model true.energy -o x --counters tpu
fails 2 'noise' energy plant heft.log --model true.energy -o x --noise nan
fails 2 'intensity' energy report heft.log --model true.energy --intensity -3
fails 1 'no such file' energy report heft.log --model nowhere.energy
fails 1 'cannot be read' energy report nowhere.log
fails 1 'cannot be written' energy fit heft.plant -o /nowhere/x.energy
printf 'heddle-energy 1\nactive gemm cpu watts -1\n' >bad.energy
fails 1 'bad.energy:2: .*negative' energy report heft.log --model bad.energy
# What cannot be read is left alone.
cp bad.energy kept.energy
fails 1 'left alone' energy fit heft.plant -o bad.energy
cmp -s bad.energy kept.energy || wrong 'a file that is no model was replaced'
XDG_CACHE_HOME=$dir/empty
fails 1 "make one with 'heddle energy fit --keep'" energy report heft.log

json 2 bench energy --seeds 2 --tiles 12
holds "all(b['worst_error'] < b['bar'] for b in r)"
holds "{b['counters'] for b in r} == {'cpu', 'gpu'}"
fails 2 'cpu or gpu' bench energy --counters tpu
finish
