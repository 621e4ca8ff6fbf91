#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Energy counters: info, energy watch, samples in logs and what reads these; on a tree
# of files in place of /sys.
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"

# zone NAME OF ENERGY: a folder of powercap.
zone() {
    mkdir -p "$dir/sys/class/powercap/$1"
    echo "$2" >"$dir/sys/class/powercap/$1/name"
    echo 262143328850 >"$dir/sys/class/powercap/$1/max_energy_range_uj"
    echo "$3" >"$dir/sys/class/powercap/$1/energy_uj"
}
zone intel-rapl:0 package-0 100000
zone intel-rapl:0:0 dram 50
zone intel-rapl:1 package-1 7
counter=$dir/sys/class/powercap/intel-rapl:0/energy_uj

# Nothing there: a sentence for each source.
HEDDLE_ENERGY=sys=$dir/none
export HEDDLE_ENERGY
json 1 info
holds "[e['name'] for e in r[0]['energy']][:2] == ['rapl', 'perf']"
holds "all(not e['readable'] and e['problem'] and e['period_ns'] > 0 and
    e['domains'] == [] for e in r[0]['energy'][:2])"
ok info
has "^energy  *rapl  *none: $dir/none/class/powercap is not there$"

# The tree.
HEDDLE_ENERGY=sys=$dir/sys
json 1 info
holds "r[0]['energy'][0]['readable'] and r[0]['energy'][0]['problem'] is None"
holds "[d['name'] for d in r[0]['energy'][0]['domains']] ==
    ['package-0', 'dram-0', 'package-1']"
holds "r[0]['energy'][0]['domains'][0]['device'] == 'cpu'"
ok info
has '^energy  *rapl  *package-0, dram-0, package-1, every 10.0 ms$'
HEDDLE_ENERGY=often ok info
has '^energy  *HEDDLE_ENERGY makes no sense'
HEDDLE_ENERGY=often json 1 info
holds "r[0]['energy'] == [] and r[0]['workers'] == 0"

# later TEXT: the counter becomes that when the first line is there.
later() {
    : >out
    (
        while [ ! -s out ]; do sleep 0.02; done
        echo "$1" >"$counter"
    ) &
}

# watch: 1.2 s, in which a package uses half a joule.
later 600000
json 5 energy watch --time 1200ms --period 300ms
wait
holds "[set(x) for x in r[:4]] == 4 * [{'time_s', 'watts'}]"
holds "set(r[0]['watts']) == {'package-0', 'dram-0', 'package-1'}"
holds "sum(x['watts']['package-0'] > 0 for x in r[:4]) == 1"
holds "[x['name'] for x in r[4]['domains']] == ['package-0', 'dram-0', 'package-1']"
holds "r[4]['domains'][0]['joules'] == 0.5 and r[4]['domains'][1]['joules'] == 0"
holds "0.05 < r[4]['domains'][0]['watts'] < 0.42 and r[4]['time_s'] >= 1.2"
holds "all(x['dropped'] == 0 and x['problem'] is None for x in r[4]['domains'])"
ok energy watch --time 20ms --period 10ms
has '^ *time  *package-0  *dram-0  *package-1$'
has '^ *energy  *0.00 J'
# A counter that breaks while it is watched: dashes and a sentence, no failure.
later nonsense
ok energy watch --sys "$dir/sys" --time 1200ms --period 300ms
wait
has ' - '
has '^package-0: [123] of 5 readings were dropped: the file of the counter holds no number$'
echo 700000 >"$counter"
fails 2 "needs a verb" energy
ok energy --help
has '^  watch  '
ok energy watch --help
has '^ *--period '
fails 1 'rapl: .*is not there; perf: .*is not there' energy watch --sys "$dir/none"
fails 2 "not 'soon'" energy watch --time soon
fails 2 "not '0'" energy watch --time 0
fails 2 "not '10us'" energy watch --period 10us
fails 2 "not '9999999h'" energy watch --time 9999999h
fails 2 'unknown\|no option\|--what' energy watch --what
HEDDLE_ENERGY=often fails 1 HEDDLE_ENERGY energy watch --time 10ms

# A log with the samples of three domains goes through everything that reads logs.
ok demo --kernels plain --n 600 --nb 100 --devices none --log power.log
json 1 trace info power.log
holds "r[0]['info']['energy.domain.0'] == 'package-0 cpu'"
holds "r[0]['info']['energy.domain.2'] == 'package-1 cpu'"
holds "r[0]['info']['energy.source.1'] == 'rapl every 10.0 ms'"
holds "r[0]['events'] >= 6 and 'energy' in [x['name'] for x in r[0]['lanes']]"
ok trace info power.log
json 0 trace dump power.log
holds "{x['b'] for x in r if x.get('kind') == 'power'} == {0, 1, 2}"
json 1 trace stats power.log
ok trace stats power.log
ok trace view power.log -o page.html
json 1 trace view power.log -o page.html
json 1 trace bound power.log -o bound.cert
json 1 trace certify bound.cert power.log
json 0 trace schedule power.log
json 1 trace placement power.log -o places
for f in chrome paje perfetto paraver starpu; do
    json 1 trace export power.log --format $f -o "power.$f" --deps --states
done
python3 -m json.tool power.chrome >/dev/null || wrong 'chrome: not JSON'
grep -q 'energy 2\|"energy"' power.chrome || wrong 'chrome: no energy'
json 1 trace import power.starpu -o again.log
HEDDLE_ENERGY=off ok demo --n 100 --nb 50 --devices none --log off.log
json 1 trace info off.log
holds "r[0]['info']['energy'] == 'not recorded: it was switched off'"
HEDDLE_ENERGY=sys=$dir/none ok demo --n 100 --nb 50 --devices none --log none.log
json 1 trace info none.log
holds "r[0]['info']['energy'].startswith('no counter: rapl: ')"

# What it costs.
unset HEDDLE_ENERGY
json 1 bench sampler --tasks 300 --reps 2 --task-us 5
holds "r[0]['wall_ratio']['median'] > 0 and r[0]['cpu_ratio']['median'] > 0"
holds "r[0]['bar'] == 0.005 and r[0]['workers'] >= 1"
holds "any(x['ns'] is not None and x['ns'] > 0 for x in r[0]['reads'])"
holds "all(x['problem'] for x in r[0]['reads'] if x['ns'] is None)"
ok bench sampler --tasks 300 --reps 1 --task-us 5
has '^wall time '
fails 2 'level 1' bench sampler --log-level 0
finish
