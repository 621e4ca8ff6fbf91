#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_docs.py [ROOT]: what the documents say about the tree is true.

1. every relative link of a Markdown file leads to a file or folder
2. the table of modules in ARCHITECTURE.md has a row for every module of src/LAYERS, and no other;
   the table of folders has folders that exist
3. docs/guide/README.md lists every chapter, docs/adr/README.md every decision
4. a name in code marks that begins with heddle_ or HEDDLE_ occurs in a source, unless it is a
   pattern (`heddle_*_fini`) or one of the names that stand for another (`heddle_sched_mine`).
   Decisions keep the names of their day
"""
import pathlib
import re
import sys

from heddle_lint import Layers, Report, files, line_of

NAME = re.compile(r"(?<![\w/.-])(?:heddle|HEDDLE)_\w*[A-Za-z0-9](?![\w*])")
STANDS_FOR = re.compile(r"(?i)_(?:mine|upper|x)$")

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


def source_names():
    """Every word of the sources that a document may name."""
    names = set()
    for f in files(root):
        top = f.relative_to(root).parts[0]
        if f.suffix != ".md" and top not in ("docs", ".git") and f.parent.name != "ptx":
            names.update(NAME.findall(f.read_text(errors="replace")))
    return names


def check_names(path, text, names):
    prose = re.sub(r"^```.*?^```", lambda m: "\n" * m[0].count("\n"), text, flags=re.S | re.M)
    for code in re.finditer(r"`[^`]+`", prose):
        for name in NAME.findall(code[0]):
            if name not in names and not STANDS_FOR.search(name):
                report.fail(path, line_of(prose, code.start()), f"there is no {name}")


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


known = source_names()
for f in files(root, ".md"):
    check_links(f, f.read_text())
    if f.parent.name != "adr":
        check_names(f, f.read_text(), known)
if (root / "ARCHITECTURE.md").exists():
    check_map(root / "ARCHITECTURE.md", Layers(root, report).uses)
for folder in ("docs/guide", "docs/adr"):
    check_index(folder)
sys.exit(report.bad != 0)
