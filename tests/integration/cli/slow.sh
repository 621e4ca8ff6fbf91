#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What docs/guide/11-performance.md says about examples/13_slow: its mistakes give
# the same result and are found in the log; its numbers in virtual time.
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"
m=$root/examples/machines/node.machine
slow=$(dirname "$heddle")/examples/13_slow
[ -x "$slow" ] || {
    echo 'skipped: the examples were not built'
    exit 77
}

for words in small serial late 'small serial late'; do
    # shellcheck disable=SC2086
    HEDDLE_WORKERS=2 HEDDLE_LOG_FILE=run.log HEDDLE_LOG_LEVEL=1 "$slow" $words \
        >out 2>err || wrong "13_slow $words"
done
json 1 trace stats run.log
holds "r[0]['executed'] == 96 * 64 + 32 and r[0]['totals']['submit'] > 0"
holds "sum(r[0]['totals'].values()) == r[0]['makespan_ns'] * 2"

# node LOG WORDS: the cores of the node; without results.
node() {
    log=$1
    shift
    "$heddle" sim --machine "$m" --devices none --log "$log" -- "$slow" "$@" \
        >out 2>err
    grep -q 'success' out || wrong "13_slow $* in virtual time"
}
node serial.log serial
json 1 trace stats serial.log
holds "r[0]['path']['tasks'] == 96 and r[0]['path']['share'] > 0.99"
holds "max(r[0]['totals'], key=r[0]['totals'].get) == 'deps'"
node late.log late
json 1 trace schedule late.log
holds "(round(r[0]['makespan'] * 1e6), round(r[0]['recorded'] * 1e6))
    == (993, 1179)"
for case in ws=1148 prio=993; do
    HEDDLE_SCHED=${case%=*} node none.log
    json 1 trace stats none.log
    holds "round(r[0]['makespan_ns'] / 1e3) == ${case#*=}"
done

# A machine made of a run: the same program takes as long on it.
"$heddle" sim --machine "$m" --devices none --log late.log -- "$slow" late >out 2>err
grep -q '^heddle: virtual time 1.18 ms, ' err || wrong 'sim: not the virtual time'
ok sim --from-log late.log -o made.machine
"$heddle" sim --machine made.machine --log again.log -- "$slow" late >out 2>err
json 1 trace stats again.log
holds "abs(r[0]['makespan_ns'] / 1179e3 - 1) < 0.05"
HEDDLE_LOG_LEVEL=0 HEDDLE_LOG_FILE=plain.log "$slow" >out 2>err
fails 1 'HEDDLE_LOG_LEVEL=1' sim --from-log plain.log
fails 2 'no program' sim --from-log late.log -- true
fails 2 'no program' sim --from-log late.log --machine "$m"
fails 2 'overwritten' sim --from-log late.log -o late.log
fails 1 'no/such' sim --from-log no/such
fails 2 'goes with --from-log' sim -o x -- true

# With the GPUs; what else would help.
"$heddle" sim --machine "$m" --log gpu.log -- "$slow" late >out 2>err
for case in =993 gpus=+1=993 kernel.march=x2=496 kernel.march=x8=212 \
    kernel.march=x8,gpus=+1=141; do
    what=${case%=*}
    json 1 trace schedule gpu.log ${what:+--what-if "$what"}
    holds "round(r[0]['makespan'] * 1e6) == ${case##*=}"
done
# march has no code for GPUs; a rate gives it a time there, which is said.
ok trace schedule late.log --machine "$m" --policy heft
has 'assuming march of 512 B runs as predicted on gpu0'
finish
