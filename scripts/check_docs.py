#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_docs.py [ROOT]: what the documents say about the tree is true.

1. every relative link of a Markdown file leads to a file or folder
2. the map in README.md names every module of src/LAYERS, and only paths that exist
3. docs/guide/README.md lists every chapter, docs/adr/README.md every decision
"""
import pathlib
import re
import sys

from heddle_lint import Layers, Report, files, line_of

root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
report = Report(root)


def check_links(path, text):
    prose = re.sub(r"^```.*?^```", lambda m: "\n" * m[0].count("\n"), text, flags=re.S | re.M)
    for m in re.finditer(r"\]\(([^)\s]+)\)", prose):
        target = m[1].split("#")[0]
        if not target or re.match(r"[a-z]+:", target):
            continue
        if not (path.parent / target).exists():
            report.fail(path, line_of(prose, m.start()), f"{m[1]} is not there")


def check_map(layers):
    path = root / "README.md"
    text = path.read_text()
    m = re.search(r"^## Map of the tree\n+```\n(.*?)^```", text, re.S | re.M)
    if not m:
        report.fail(path, 1, "no map of the tree")
        return
    named = set()
    for n, line in enumerate(m[1].splitlines(), line_of(text, m.start(1))):
        for word in re.findall(r"\S+", line[:re.search(r"\s{2,}|$", line).start()]):
            if not (root / word).exists():
                report.fail(path, n, f"{word} is not there")
            named.add(word.rstrip("/"))
    for module in layers:
        if f"src/{module}" not in named:
            report.fail(path, line_of(text, m.start()), f"the map lacks src/{module}")


def check_index(folder):
    path = root / folder / "README.md"
    text = path.read_text() if path.exists() else ""
    for page in sorted(path.parent.glob("[0-9]*.md")):
        if f"]({page.name})" not in text:
            report.fail(path, 1, f"{page.name} is not listed")


for f in files(root, ".md"):
    check_links(f, f.read_text())
if (root / "README.md").exists():
    check_map(Layers(root, report).uses)
for folder in ("docs/guide", "docs/adr"):
    check_index(folder)
sys.exit(report.bad != 0)
