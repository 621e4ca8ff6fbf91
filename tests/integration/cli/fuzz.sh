#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# heddle bench fuzz: what is printed and how mistakes are answered. That nothing
# is wrong in thousands of runs is a test of its own, tests/property.
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"

TMPDIR=$dir
export TMPDIR

json 1 bench fuzz --devices cpu,sim --seeds 6
holds "{'name', 'version', 'devices', 'faults', 'first', 'runs', 'hangs',
    'wrong', 'leaks', 'skipped', 'tasks', 'evictions', 'copied_bytes',
    'devices_lost', 'seconds'} <= set(r[0])"
holds "r[0]['name'] == 'fuzz' and r[0]['runs'] == 6 and r[0]['first'] == 0"
holds "r[0]['hangs'] == r[0]['wrong'] == r[0]['leaks'] == 0"
holds "r[0]['tasks'] > 6 and not r[0]['faults']"

# The seed and the device say everything: the same run twice is the same.
json 1 bench fuzz --devices sim --first 7 --seeds 1
cp out first
json 1 bench fuzz --devices=sim --first=7 --seeds=1
sed -i 's/"seconds":[^,}]*//' out first
cmp -s out first || wrong 'seed 7 is not the same twice'

json 1 bench fuzz --devices sim --seeds 5 --faults
holds "r[0]['faults'] and r[0]['runs'] == 5"
json 1 bench fuzz --devices disk --seeds 3
holds "r[0]['devices'] == 'disk'"
json 1 bench fuzz --devices sim --seeds 3 --tasks 4 --without views,reduce
json 1 bench fuzz --devices sim --seeds 3 --without chains,bindings,limits
ok bench fuzz --seeds 2
has '^2 runs, 0 hangs, 0 wrong, 0 leaks'

# A program can be looked at; that is for people, so it goes to stderr.
"$heddle" bench fuzz --devices sim --seeds 1 --tasks 3 --print >out 2>err ||
    wrong 'bench fuzz --print'
grep -q '^heddle-machine 2' err || wrong 'no machine in the output of --print'
[ "$(grep -c ': task ' err)" -eq 3 ] ||
    wrong 'not three tasks in the output of --print'

fails 2 gpu bench fuzz --devices cpu,gpu
fails 2 nonsense bench fuzz --without nonsense
fails 2 seeds bench fuzz --seeds 0
TMPDIR=$dir/nowhere fails 1 folder bench fuzz --seeds 1

# Nothing is left behind.
[ -z "$(find . -name 'heddle-fuzz.*')" ] || wrong 'a temporary folder is left'
finish
