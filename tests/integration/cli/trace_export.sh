#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# heddle trace export and import: each format read back by a strict reader.
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"

m=$root/examples/machines/node.machine
formats='chrome paje perfetto paraver starpu'

# check FORMAT FILE [NAME=COUNT...]
check() {
    python3 "$here/trace_formats.py" "$@" >out 2>err ||
        wrong "$1: $(cat err)"
}

# exports LOG COUNT...: all formats, with and without arrows and states.
exports() {
    log=$1
    shift
    for f in $formats; do
        ok trace export "$log" --format "$f" -o "plain.$f"
        check "$f" "plain.$f"
        json 1 trace export "$log" --format "$f" -o "full.$f" --deps --states
        holds "r[0]['format'] == '$f' and r[0]['tasks'] > 0"
        check "$f" "full.$f" "$@"
    done
}

# The formats are those of the library.
ok trace export --help
for f in $formats; do
    has "^  $f  *[A-Za-z]"
done
[ "$(sed -n '/^Formats:/,$p' out | wc -l)" -eq 6 ] || wrong 'formats of --help'

# Cores; a machine with GPUs has transfers and memory.
ok demo --kernels plain --n 120 --nb 30 --log run.log --no-progress
json 1 trace info run.log
d=$(python3 -c 'import json; print(json.load(open("out"))["dependencies"])')
exports run.log "deps=$d" tasks=20
check chrome plain.chrome deps=0 tasks=20 states=0
check perfetto plain.perfetto deps=0 tasks=20 states=0 moves=0
json 1 bench memory --machine "$m" --tiles 4 --policy heft --log gpu.log
json 1 trace info gpu.log
n=$(python3 -c 'import json; print(json.load(open("out"))["executed"])')
exports gpu.log "tasks=$n"
python3 - <<'END' || wrong 'transfers and memory of a GPU'
import json
e = json.load(open("full.chrome"))["traceEvents"]
assert any(x.get("cat") == "transfer" and x["args"]["bytes"] > 0 for x in e)
assert any(x["name"] == "memory" and x["ph"] == "C" for x in e)
assert any(x["name"] == "ready" and x["args"]["tasks"] > 0 for x in e)
END

# Another reader of Paje, where there is one.
if command -v pj_dump >/dev/null; then
    pj_dump full.paje >dump 2>err || wrong 'pj_dump refuses it'
    [ "$(grep -c '^State' dump)" -ge "$n" ] || wrong 'pj_dump: states'
    grep -q '^Link, .*Transfer' dump || wrong 'pj_dump: transfers'
    grep -q '^Variable, .*Bytes in use' dump || wrong 'pj_dump: memory'
fi

# Out and in again: the same tasks.
ok trace export run.log --format starpu -o a.rec
[ -s a.platform.rec ] || wrong 'starpu: no platform'
json 1 trace import a.rec --platform a.platform.rec -o again.log
holds "r[0]['tasks'] == 20 and r[0]['deps'] == $d and r[0]['kernels'] == 4"
ok trace export again.log --format starpu -o b.rec
grep -v '^Handles:\|^Parameters:' a.rec >a.txt
grep -v '^Handles:\|^Parameters:' b.rec >b.txt
cmp -s a.txt b.txt || wrong 'starpu: not the same again'
ok trace import a.rec -o alone.log
has "^alone.log: 20 tasks, $d dependencies, 4 kernels\$"
ok trace info alone.log

# What cannot be.
fails 2 'needs the file' trace import
fails 2 'needs -o' trace import a.rec
fails 2 'overwritten' trace import a.rec -o a.rec
fails 2 'overwritten' trace import a.rec --platform b.rec -o b.rec
fails 1 'no.rec' trace import no.rec -o x.log
fails 1 'no.rec' trace import a.rec --platform no.rec -o x.log
fails 1 'line 1' trace import run.log -o x.log
printf 'JobId: 1\nStartTime: soon\n' >bad.rec
fails 1 "line 2: StartTime cannot be 'soon'" trace import bad.rec -o x.log
[ ! -e x.log ] || wrong 'a log in spite of the failure'
fails 1 'nowhere' trace import a.rec -o /nowhere/x.log
fails 1 'nowhere' trace export run.log --format paraver -o /nowhere/x.prv
cp run.log run.row
fails 2 'overwritten' trace export run.row --format paraver -o run.prv
cmp -s run.log run.row || wrong 'the log was overwritten'
fails 2 'extension' trace export run.log --format paraver -o x.pcf
mkdir taken.row
fails 2 'is a folder' trace export run.log --format paraver -o taken.prv
[ ! -e taken.prv ] || wrong 'a file in spite of the failure'
fails 2 'several files' trace export run.log --format paraver -o /dev/null
# A log without tasks.
: >empty.rec
ok trace import empty.rec -o empty.log
for f in $formats; do
    ok trace export empty.log --format "$f" -o "empty.$f" --deps --states
    check "$f" "empty.$f"
done
finish
