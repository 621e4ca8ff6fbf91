#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# info, calibrate and demo with GPUs: those of the stand-in for CUDA that the
# environment names (tests/fakecuda), or of the machine.
library=${HEDDLE_CUDA_LIBRARY:-}
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"
if [ -n "$library" ]; then
    HEDDLE_CUDA_LIBRARY=$library
    FAKECUDA_MEMORY=16M
    export HEDDLE_CUDA_LIBRARY FAKECUDA_MEMORY
fi
"$heddle" info --devices cuda >out 2>err || {
    echo "skipped: $(cat err)"
    exit 77
}

json 1 info
holds "r[0]['gpus'][0]['name'] == 'cuda0' and r[0]['gpus'][0]['model']"
holds "0 < r[0]['gpus'][0]['memory_free'] <= r[0]['gpus'][0]['memory_total']"
holds "r[0]['gpus'][0]['problem'] is None and r[0]['no_gpu'] is None"
holds "r[0]['gpus'][0]['watts'] is None or r[0]['gpus'][0]['watts'] > 0"
holds "'cuda' in [d['kind'] for d in r[0]['devices']]"
holds "'cuda0' in [m['name'] for m in r[0]['memories']]"
ok info
has '^GPUs  *cuda0  *[^,]*, .* free'
has '^links  *none measured'
json 1 info --devices none
holds "len(r[0]['gpus']) > 0 and len(r[0]['devices']) == 1"

# Links, both ways, kept for info; rates of new memory and of memory used again.
json 0 calibrate --reps 2
holds "len([x for x in r if x['name'] == 'link']) >= 2"
holds "{x['memory'] for x in r if x['name'] == 'rate'} == {'new', 'used again'}"
holds "all(x['to_bytes_per_s'] > 0 and x['from_bytes_per_s'] > 0
    for x in r if x['name'] == 'rate')"
json 1 info
holds "len(r[0]['links']) >= 2 and all(x['bytes_per_s'] > 0 for x in r[0]['links'])"
ok calibrate --reps 1
has '^cuda0 .*used again'
json 1 calibrate --overhead
holds "r[0]['submit_us'] > 0 and r[0]['drive_us'] > 0 and r[0]['notice_us'] >= 0"

# The demo: right, and every task ran somewhere.
for size in '1 1' '7 3' '64 64' '129 32' '300 50'; do
    # shellcheck disable=SC2086
    set -- $size
    json 1 demo --n "$1" --nb "$2" --kernels plain --log small.log
    holds "r[0]['right'] and r[0]['devices'][0]['name'] == 'cuda0'"
    holds "r[0]['core_tasks'] + sum(d['tasks'] for d in r[0]['devices']) ==
        r[0]['tasks']"
done
holds "r[0]['devices'][0]['tasks'] > 0 and 0 < r[0]['devices'][0]['busy'] <= 1"
holds "r[0]['bound_ns'] > 0"
# By the dense library: the copies have a clock of their own. Several GPUs share the work:
# then copies are part of it.
for size in '1 1' '64 16' '300 50'; do
    # shellcheck disable=SC2086
    set -- $size
    json 1 demo --n "$1" --nb "$2" --kernels dense --log small.log
    holds "r[0]['right'] and r[0]['devices'][0]['name'] == 'cuda0' and r[0]['load_ns'] > 0"
    holds "len(r[0]['devices']) > 1 or r[0]['send_ns'] > 0 and r[0]['home_ns'] > 0 and
        0 < r[0]['sent_bytes'] <= 8 * $1 * $1"
done
ok demo --n 300 --nb 50
has '^transfers '
has ' and cuda0 ('
has '^places  *[0-9]* on the cores, [0-9]* on cuda0'
json 1 demo --n 300 --nb 50 --devices none
holds "r[0]['right'] and r[0]['devices'] == []"

# Energy of the GPU, in info and in a log of level 1.
json 1 info
holds "[e['domains'][0]['name'] for e in r[0]['energy']
    if e['name'] == 'nvml' and e['readable']] == ['gpu0'] or
    [e['problem'] for e in r[0]['energy'] if e['name'] == 'nvml'][0]"
if [ -n "$library" ]; then
    FAKECUDA_DEVICES=2
    export FAKECUDA_DEVICES
    HEDDLE_ENERGY=sys=$dir/none ok demo --n 300 --nb 50 --log power.log
    json 1 trace info power.log
    holds "r[0]['info']['energy.domain.0'] == 'gpu0 cuda0'"
    holds "r[0]['info']['energy.domain.1'] == 'gpu1 cuda1'"
    holds "r[0]['info']['energy.source.0'] == 'nvml every 50.0 ms'"
    json 0 trace dump power.log
    holds "all(min(x['x'] for x in r if x.get('kind') == 'power' and
        x['b'] == b) < 10**8 for b in (0, 1))"
    # CUDA's order is not NVML's: the place on the bus decides.
    CUDA_VISIBLE_DEVICES=1 HEDDLE_ENERGY=sys=$dir/none \
        ok demo --n 300 --nb 50 --log power.log
    json 1 trace info power.log
    holds "r[0]['info']['energy.domain.0'] == 'gpu0 cuda0'"
    holds "'energy.domain.1' not in r[0]['info']"
    FAKECUDA_ENERGY=0 HEDDLE_ENERGY=sys=$dir/none \
        ok demo --n 300 --nb 50 --log power.log
    json 1 trace info power.log
    holds "'no energy counter: Not Supported' in r[0]['info']['energy']"
    # The cores alone: NVML is not asked.
    HEDDLE_ENERGY=sys=$dir/none \
        ok demo --n 300 --nb 50 --devices none --log power.log
    json 1 trace info power.log
    holds "'nvml: no NVIDIA GPU is used' in r[0]['info']['energy']"
    unset FAKECUDA_DEVICES
fi

# None, and why.
if [ -n "$library" ]; then
    FAKECUDA_DEVICES=2 json 1 info
    holds "[g['name'] for g in r[0]['gpus']] == ['cuda0', 'cuda1']"
    FAKECUDA_VERSION=11000 json 1 info
    holds "'too old' in r[0]['no_gpu'] and '11.0' in r[0]['no_gpu']"
    FAKECUDA_DEVICES=0 json 1 info
    holds "'CUDA_VISIBLE_DEVICES' in r[0]['no_gpu']"
    HEDDLE_CUDA_LIBRARY=$dir/no-such-file
fi
CUDA_VISIBLE_DEVICES=
export CUDA_VISIBLE_DEVICES
json 1 info
holds "r[0]['gpus'] == [] and len(r[0]['no_gpu']) > 10 and r[0]['workers'] > 0"
ok info
has '^GPUs  *none: '
fails 1 "'cuda'" info --devices cuda
fails 1 "'cuda'" demo --n 100 --devices cuda
json 1 demo --n 100 --nb 25
holds "r[0]['right'] and r[0]['devices'] == []"
finish
