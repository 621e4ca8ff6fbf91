#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# heddle trace and heddle model on the log and the models of a run.
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"

ok demo --kernels plain --n 120 --nb 30 --log run.log --no-progress
ok trace info run.log
has 'potrf'
json 1 trace info run.log
json 0 trace dump run.log
ok trace export run.log --format chrome -o run.json --deps --states
python3 -m json.tool run.json >/dev/null || wrong 'chrome: not JSON'
ok trace export run.log --format paje -o run.trace
[ -s run.trace ] || wrong 'paje: empty'
"$heddle" trace export run.log --format nonsense -o x >out 2>err &&
    wrong 'a format that does not exist'
"$heddle" trace info "$heddle" >out 2>err && wrong 'the tool is not a log'
head -c 1000 run.log >cut.log
"$heddle" trace info cut.log >out 2>err
rc=$?
[ $rc -le 1 ] || wrong "a cut log: exit status $rc"

ok model list
has '^gemm '
ok model show gemm
json 0 model show gemm
json 1 model path
holds "r[0]['path'].startswith('$dir/cache')"
HEDDLE_MODEL_DIR=elsewhere ok model path
[ "$(cat out)" = elsewhere/models ] || wrong 'HEDDLE_MODEL_DIR is not used'
HEDDLE_MODEL_DIR='' fails 1 'memory' model list
ok model plot gemm
has '^ .* curve$'
ok model plot -o all.svg
python3 -c 'import xml.dom.minidom, sys
d = xml.dom.minidom.parse("all.svg")
sys.exit(len(d.getElementsByTagName("circle")) < 4)' ||
    wrong 'plot: no picture'
json 0 model plot gemm
holds "all(p['ns'] > 0 and p['mad_ns'] >= 0 for p in r)"
json 1 model plot gemm -o gemm.svg
holds "r[0]['points'] > 0 and r[0]['file'] == 'gemm.svg'"
fails 1 'cannot be written' model plot gemm -o /nowhere/x.svg
fails 1 'no measurements' model plot nonsense
fails 2 'not both' model plot gemm --links
fails 2 'model plot only' model list -o x.svg
fails 2 'path' model path --links

# Links, in a file of our own: 1 us and 1 GB/s, one sample of 30 is wrong.
mkdir -p linked/models
python3 - >linked/models/@links.model <<'END'
def line(text):
    h = 2166136261
    for b in text.encode():
        h = (h ^ b) * 16777619 & 0xffffffff
    print(f"{text} #{h:08x}")
line("heddle-model 1 @links")
for b in range(10, 30, 2):
    ps = [str((1000 + 2 ** b) * 1000)] * 29 + ["999999999999"]
    line(f"entry host gpu%3Cx%3E {1:016x} {2 * b:016x} 0 {2 ** b} 30 "
         + " ".join(ps))
END
json 1 model list --links --dir linked
holds "abs(r[0]['latency_ns'] - 1000) < 20 and r[0]['samples'] == 300"
holds "abs(r[0]['bytes_per_s'] - 1e9) < 1e7 and r[0]['to'] == 'gpu<x>'"
ok model list --links --dir linked
has '^host  *gpu<x>  *1.00 us  *1.00 GB/s '
json 10 model show --links --dir linked
holds "all(p['from'] == 'host' and p['bytes'] >= 1024 for p in r)"
ok model show --links --dir linked
has '^host to gpu<x>$'
json 10 model plot --links --dir linked
holds "all(abs(p['fit_ns'] / p['ns'] - 1) < 0.02 for p in r)"
ok model plot --links --dir linked -o links.svg
python3 -c 'import xml.dom.minidom
xml.dom.minidom.parse("links.svg")' || wrong 'plot --links: not XML'
ok model list --dir linked
has '^no models in '
ok model forget --links --dir linked
has '^files deleted: 1$'
fails 1 'no measurements of links' model show --links --dir linked
ok model plot --links --dir linked
has '^nothing to plot: no links in '
fails 1 'nothing to plot' model plot --links --dir linked -o x.svg
ok model forget --all
ok model list
! grep -q gemm out || wrong 'still there'
finish
