#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Joules of virtual time: what `heddle sim` prints with an energy model, what an
# objective and caps change, and what is refused.
shared=${HEDDLE_SHARED:-} # lib.sh unsets it
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"
m=$root/examples/machines/node.machine
e=$root/examples/machines/node.energy

# Time and joules add up, and are the same every time; an objective spends less.
bench() {
    json "$1" bench energy_online --machine "$m" --energy-model "$e" --tiles 8 \
        --policy "$2" --weights 0.5,1 --slack 0.05
}
bench 4 plan
holds "[r[0].get('weight'), r[2]['weight'], r[3]['slack']] == [0, 1, 0.05]"
holds "all(abs(x['joules'] - x['active_joules'] - x['idle_joules']) <
    1e-9 * x['joules'] for x in r)"
holds "all(abs(x['idle_joules'] - 205 * x['seconds']) < 1e-6 for x in r)"
holds "r[0]['time_ratio'] == r[0]['energy_ratio'] == 1"
holds "r[2]['energy_ratio'] < 1.001 and r[3]['time_ratio'] < 1.08"
cp out first
bench 4 plan
cmp -s out first || wrong 'two runs differ'
for p in heft dual heteroprio multiprio; do
    bench 4 $p
    holds "all(x['joules'] > 0 for x in r)"
done
# Uneven caps: longer, and less energy above idle.
json 2 bench energy_online --machine "$m" --energy-model "$e" --tiles 8 \
    --weights 0 --slack 0 --power-cap gpu0:200W,gpu1:150W
holds "r[1]['caps'] != '' and r[1]['seconds'] > r[0]['seconds']"
holds "r[1]['active_joules'] < 0.8 * r[0]['active_joules']"
ok bench energy_online --machine "$m" --energy-model "$e" --tiles 4
has 'slack  0.05'

fails 2 'needs a --machine' bench energy_online
fails 2 '--weights' bench energy_online --weights 2
fails 2 '--slack' bench energy_online --slack x
fails 1 'no/such' bench energy_online --machine "$m" --energy-model no/such

fails 2 'need an --energy-model' sim --machine "$m" --power-cap gpu0:200W -- true
fails 2 'need an --energy-model' sim --machine "$m" --energy-weight 0.5 -- true
fails 1 'no/such' sim --machine "$m" --energy-model no/such -- true
fails 1 "no device 'gpu9'" sim --machine "$m" --energy-model "$e" \
    --power-cap gpu9:200W -- true
fails 1 "no cap '1W'" sim --machine "$m" --energy-model "$e" \
    --power-cap gpu0:1W -- true
fails 1 'HEDDLE_ENERGY_WEIGHT' sim --machine "$m" --energy-model "$e" \
    --energy-weight 2 -- true
fails 1 'give one of them' sim --machine "$m" --energy-model "$e" \
    --energy-weight 0.5 --energy-slack 5% -- true
fails 1 'ran no context' sim --machine "$m" --energy-model "$e" -- true
echo 'domain x idle_watts -1' | sed '1i heddle-energy 1' >bad.energy
fails 1 'bad.energy' sim --machine "$m" --energy-model bad.energy -- true
"$heddle" sim --machine "$m" --energy-model "$e" -- sh -c 'exit 7' >out 2>err
[ $? -eq 7 ] || wrong 'the exit status is not that of the program'
HEDDLE_POWER_CAP=gpu0:200W HEDDLE_DEVICES=none "$heddle" demo --n 64 \
    --no-progress >out 2>err && wrong 'a real device was capped'
grep -q 'clocks of real devices are not touched' err ||
    wrong 'no sentence about clocks'

# A whole program: its log has the samples.
program=$(dirname "$heddle")/examples/03_cholesky
if [ -x "$program" ]; then
    ok sim --execute --machine "$m" --energy-model "$e" --log kept.log -- \
        "$program"
    has '^energy: .* EDP'
    has 'package-0 cpu'
    json 1 trace info kept.log
    "$heddle" sim --json --execute --machine "$m" --energy-model "$e" \
        --energy-slack 5% -- "$program" >out 2>err
    sed -i '/^cholesky/d' out
    holds "r[0]['joules'] > 0 and len(r[0]['domains']) == 3"
    holds "abs(sum(d['joules'] for d in r[0]['domains']) - r[0]['joules']) < 1e-9"
fi
# Machines that were measured with StarPU, where they are.
machines=${shared:-$root/../shared}/data/machines
if [ -d "$machines" ]; then
    json 3 bench energy_online --machine "starpu:$machines:mirage" --tiles 8 \
        --energy-model "$root/examples/machines/gpus.energy" --weights 1
    holds "r[2]['time_ratio'] < 1.08"
fi
finish
