#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_reference.py LIBRARY PAGE [ROOT]: the API reference is complete.

1. every function that the library exports has an entry on the page
2. so has every struct, union, enum and function type of include/heddle
3. every entry has a comment
4. every link on the page leads to an entry
PAGE is made first, with reference.py.
"""
import html.parser
import pathlib
import re
import subprocess
import sys

from heddle_lint import Report, code_only, files, line_of

library, page = sys.argv[1], pathlib.Path(sys.argv[2])
root = pathlib.Path(sys.argv[3] if len(sys.argv) > 3 else ".").resolve()
report = Report(root)


class Page(html.parser.HTMLParser):
    """The entries with the length of their comments, the links, the targets."""

    def __init__(self):
        super().__init__()
        self.comment, self.ids, self.links = {}, set(), set()
        self.entry, self.depth = None, 0

    def handle_starttag(self, tag, attrs):
        a = dict(attrs)
        if "id" in a:
            self.ids.add(a["id"])
        if tag == "a" and a.get("href", "").startswith("#"):
            self.links.add(a["href"][1:])
        if tag == "article":
            self.entry = a["data-name"]
            self.comment.setdefault(self.entry, 0)
        if tag == "div":
            self.depth = 1 if a.get("class") == "comment" else 0

    def handle_endtag(self, tag):
        if tag == "div":
            self.depth = 0

    def handle_data(self, data):
        if self.depth and self.entry:
            self.comment[self.entry] += len(data.strip())


def exported():
    out = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True,
                         text=True, check=True).stdout
    for row in out.splitlines():
        kind, symbol = row.split()[-2:]
        if kind == "T":
            yield symbol.split("@")[0]


made = subprocess.run([sys.executable, str(pathlib.Path(__file__).parent / "reference.py"),
                       str(page), str(root)])
if made.returncode != 0:
    sys.exit(1)
found = Page()
found.feed(page.read_text())
for name in sorted(set(exported()) - set(found.comment)):
    report.fail("include/heddle", 1, f"{name} is not in the reference")
for path in files(root, ".h", under=("include/heddle",)):
    source = code_only(path.read_text())
    for m in re.finditer(r"^(?:typedef )?(?:struct|union|enum) (heddle_\w+)\s*\{"
                         r"|^typedef [^;{]*\(\*(\w+)\)|\b(heddle_\w+)\s*\(", source, re.M):
        name, n = m[1] or m[2] or m[3], line_of(source, m.start())
        if name not in found.comment:
            report.fail(path, n, f"{name} is not in the reference")
        elif found.comment[name] == 0:
            report.fail(path, n, f"{name} has no comment")
            found.comment[name] = 1  # once
for name in sorted(n for n, length in found.comment.items() if length == 0):
    report.fail("include/heddle", 1, f"{name} has no comment")
for name in sorted(found.links - found.ids):
    report.fail("include/heddle", 1, f"a link leads to {name}, which is not there")
sys.exit(report.bad != 0)
