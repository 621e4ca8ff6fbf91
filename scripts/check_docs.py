#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_docs.py [ROOT]: what the documents say about the tree is true.

1. every relative link of a Markdown file leads to a file or folder
2. the table of modules in ARCHITECTURE.md has a row for every module of src/LAYERS, and no other;
   the table of folders has folders that exist
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


def rows(text, head):
    """Line and first word of each row of the table below the row that begins with `head`."""
    m = re.search(rf"^\| {head} \|.*\n\|[-|]+\n((?:\|.*\n)*)", text, re.M)
    if m:
        for n, line in enumerate(m[1].splitlines(), line_of(text, m.start(1))):
            yield n, line.split("|")[1].strip().strip("`")


def check_map(path, layers):
    text = path.read_text()
    named = list(rows(text, "module"))
    if not named:
        report.fail(path, 1, "no table of modules")
    for n, module in named:
        if module not in layers:
            report.fail(path, n, f"{module} is no module of src/LAYERS")
    for module in sorted(set(layers) - {module for _, module in named}):
        report.fail(path, 1, f"the table of modules lacks {module}")
    for n, folder in rows(text, "folder"):
        if not (root / folder).exists():
            report.fail(path, n, f"{folder} is not there")


def check_index(folder):
    path = root / folder / "README.md"
    text = path.read_text() if path.exists() else ""
    for page in sorted(path.parent.glob("[0-9]*.md")):
        if f"]({page.name})" not in text:
            report.fail(path, 1, f"{page.name} is not listed")


for f in files(root, ".md"):
    check_links(f, f.read_text())
if (root / "ARCHITECTURE.md").exists():
    check_map(root / "ARCHITECTURE.md", Layers(root, report).uses)
for folder in ("docs/guide", "docs/adr"):
    check_index(folder)
sys.exit(report.bad != 0)
