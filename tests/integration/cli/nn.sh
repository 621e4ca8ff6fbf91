#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# heddle nn show: a network before and after its preparation, as text, JSON and page.
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"

python3 - "$root" <<'END'
import sys
sys.path.insert(0, sys.argv[1] + "/examples/networks")
sys.dont_write_bytecode = True
import make as onnx

open("flowers.onnx", "wb").write(onnx.flowers())
# relu(x w + b) + x, one name of which a page must not take for markup; c is the same for all.
open("net.onnx", "wb").write(onnx.model(
    "net",
    [onnx.node("MatMul", ["x", "w"], "m"), onnx.node("Add", ["m", "b"], "a"),
     onnx.node("Relu", ["a"], "<r&>"), onnx.node("Exp", ["b"], "c"),
     onnx.node("Identity", ["<r&>"], "i"), onnx.node("Add", ["i", "c"], "s"),
     onnx.node("Add", ["s", "x"], "y"), onnx.node("Neg", ["s"], "nobody")],
    [onnx.weights("w", [2, 2], [1, 2, 3, 4]), onnx.weights("b", [2], [5, 6])],
    [onnx.port("x", ["rows", 2])], [onnx.port("y", ["rows", 2])]))
# How many there are of them depends on the numbers.
open("data.onnx", "wb").write(onnx.model(
    "data", [onnx.node("NonZero", ["x"], "n"), onnx.node("Cast", ["n"], "y")], [],
    [onnx.port("x", [3])], [onnx.port("y", ["count", 1])]).replace(b"Cast", b"Sqrt"))
END

ok nn show net.onnx --shape x=7x2
has '^input  x: float32 rowsx2$'
has '^before: 8 operators'
has ' 5 joined, 1 constant, 1 without work, 1 unused$'
has '^FusedMatMul  *0  *1$'
json 1 nn show net.onnx --shape x=7x2
holds "[t['op'] for t in r[0]['tasks']] == ['FusedMatMul', 'FusedMap']"
holds "[n['fate'] for n in r[0]['nodes']] == ['joined'] * 3 + ['constant', 'no work', 'joined', \
'joined', 'unused']"
holds "[n.get('task') for n in r[0]['nodes']] == [0, 0, 0, None, None, 1, 1, None]"
holds "r[0]['tasks'][0]['flops'] == 2 * 7 * 2 * 2"
holds "r[0]['tasks'][0]['kernel'].startswith('matmul')"
holds "r[0]['values'][r[0]['tasks'][1]['out'][0]]['shape'] == [7, 2]"
holds "sum(p['changes'] for p in r[0]['passes']) == len(r[0]['changes']) == 2"
holds "r[0]['changes'][0]['pass'] == 'matmul' and len(r[0]['changes'][0]['gone']) == 3"
json 1 nn show net.onnx
holds "r[0]['tasks'][0]['flops'] == 2 * 2 * 2"

ok nn show net.onnx -o page.html
python3 - <<'END' || wrong 'the page'
import html.parser
import re
text = open("page.html").read()

class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.count, self.ids, self.links, self.names = {}, set(), set(), ""

    def handle_starttag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1
        a = dict(attrs)
        self.ids.add(a.get("id"))
        self.links.add(a.get("href"))
        assert not any(v and ("http" in v) for v in a.values()), attrs

    def handle_data(self, data):
        self.names += data

p = Page()
p.feed(text)
assert p.count["svg"] == 2 and "script" not in p.count, p.count
assert p.count["rect"] == 7 + 2, p.count          # without the constant; tasks
assert p.ids >= {"t0", "t1"} and p.links >= {"#t0", "#t1"}
assert "<r&>" in p.names and "float32 1x2" in p.names and "MFLOP" in p.names
END

ok nn show data.onnx
has '^output y'
has 'shapes depend on data'
fails 1 'shapes depend on data' nn show data.onnx --json
fails 1 'no such file' nn show none.onnx
fails 2 'no shape' nn show net.onnx --shape x=big
fails 1 'dimension 1' nn show net.onnx --shape x=1x3
fails 1 'cannot be written' nn show net.onnx -o none/page.html
finish
