#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# heddle nn place: a small network on machines of two classes, the file, bad input.
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"

model=$root/examples/networks/flowers.onnx
# The link is so fast that operators of a few bytes are worth sending.
cat >two.machine <<'END'
heddle-machine 1
node far
class cpu kind cpu workers 2 gflops 0.001 gbytes 0.01
class far kind cuda workers 1 node far
duplex host far gbytes 1000 latency_us 0.001
END

json 1 nn place "$model" --machine two.machine --ratio 4 --runs 0 --requests 500 -o routes.json
holds "r[0]['operators'] == 3 and r[0]['methods'][0]['method'] == 'mix'"
holds "all(0 < m['of_bound'] <= 1 for m in r[0]['methods'])"
holds "r[0]['methods'][0]['of_bound'] > 0.95"
# The accelerator alone has 4 parts of 5.
holds "abs([m for m in r[0]['methods'] if m['method'] == 'single'][0]['of_bound'] - 0.8) < 0.01"
holds "0.85 < r[0]['stream']['of_bound'] < 1.02"
holds "r[0]['stream']['spread']['p50_ms'] <= r[0]['stream']['spread']['p99_ms']"
python3 -IS -c '
import json
f = json.load(open("routes.json"))
assert abs(sum(r["share"] for r in f["routes"]) - 1) < 1e-9
assert all(len(r["operators"]) == 3 for r in f["routes"])
assert {o["class"] for r in f["routes"] for o in r["operators"]} == {"cpu", "far"}
' || wrong 'the file of routes'
# The same requests, the same numbers.
cp out first
json 1 nn place "$model" --machine two.machine --ratio 4 --runs 0 --requests 500
cmp -s out first || wrong 'another run has other numbers'
# Times that are measured; one method.
ok nn place "$model" --machine two.machine --ratio 4 --method ideal --batch 8 --requests 0
has 'batch 8: 3 operators; times of cores measured here'
has '^ideal '
[ "$(grep -c '^[a-z]* *[0-9.]* *[0-9.]* *[0-9.]*%' out)" -eq 1 ] || wrong 'more than one method'

fails 2 'which model' nn place --machine two.machine
fails 2 'machine FILE is missing' nn place "$model"
fails 2 'ratio' nn place "$model" --machine two.machine --ratio fast
fails 2 'slack' nn place "$model" --machine two.machine --slack 200%
fails 1 "no method 'best'" nn place "$model" --machine two.machine --ratio 4 --method best
fails 1 'none.onnx' nn place none.onnx --machine two.machine
fails 1 'none.machine' nn place "$model" --machine none.machine
fails 1 'on class far: the machine file needs rates' nn place "$model" --machine two.machine
sed 's/gflops.*//' two.machine >bare.machine
fails 1 'on class cpu: the machine file needs rates' nn place "$model" --machine bare.machine \
    --ratio 4 --runs 0

# Throughput and latency of larger networks: bars that do not depend on the machine.
"$heddle" bench place_nn --requests 300 --json >out 2>err || wrong 'bench place_nn'
holds "len(r) == 14 and all(x['of_bound'] < 1.05 for x in r if 'network' in x)"
holds "all('must' in x for x in r if 'bar' in x)"
finish
