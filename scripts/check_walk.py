#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_walk.py [ROOT]: ARCHITECTURE.md against the code.

1. A section "The walk of a task ..." is a numbered list whose steps begin with
   `file: function`. Every file named so exists, and the function is defined in it
2. the walk can be walked: each function but the first is called by another function of
   the same walk, or by one whose address is kept (in a table, by a thread), with at most
   one function between
3. there are two walks at least, of five steps at least
4. every file of the table in "Where is what" exists; a name without a folder lies
   in the folder of the file named before it, and a pattern matches something

Files are named from src/, or from the top of the tree.
"""
import pathlib
import re
import sys

from heddle_lint import Report, code_only, files

root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
report = Report(root)
path = root / "ARCHITECTURE.md"
lines = path.read_text().splitlines() if path.exists() else []

STEP = re.compile(r"`([\w./-]+\.\w+): (\w+)`")
FILE = re.compile(r"[\w./*-]+\.(?:c|h|cu|def|md|py|sh)|[\w.*-]+(?:/[\w.*-]+)*/")
WALKS, STEPS = 2, 5


def section(title):
    """(number of line, line) of each section whose heading begins so."""
    level = None
    for n, line in enumerate(lines, 1):
        m = re.match(r"(#+) (.*)", line)
        if m and m[2].startswith(title):
            level = len(m[1])
            yield n, None
        elif m and level is not None and len(m[1]) <= level:
            level = None
        elif level is not None:
            yield n, line


def find(name):
    for base in (root / "src", root):
        if "*" in name:
            if any(base.glob(name)):
                return base / name
        elif (base / name).exists():
            return base / name
    return None


def defines(file, function):
    code = re.sub(r"/\*.*?\*/", " ", file.read_text(), flags=re.S)
    return re.search(rf"(?m)^[A-Za-z_][^;{{}}()=]*\b{function}\([^;{{}}]*\)\s*\{{",
                     code)


DEFINITION = re.compile(r"(?m)^[A-Za-z_][^;{}()=]*?\b(\w+)\([^;{}]*\)\s*\{")
CALL = re.compile(r"\b([a-z]\w+)\s*\(")
WORD = re.compile(r"\b([a-z]\w+)\b(?!\s*\()")


def call_graph():
    """({function: names it calls}, functions whose address some code keeps)."""
    calls, words = {}, set()
    for f in files(root, ".c", ".h", under=("src",)):
        if f.stem.endswith("_test") or f.parent.name == "ptx":
            continue
        code = code_only(f.read_text())
        for m in DEFINITION.finditer(code):
            body = code[m.end():code.find("\n}", m.end())]
            calls.setdefault(m[1], set()).update(CALL.findall(body))
        words.update(WORD.findall(code))
    return calls, words & set(calls)


def check_reach(walk, calls, kept):
    """`walk`: (number of line, function) in the order of the walk."""
    names = {name for _, name in walk}
    for n, name in walk[1:]:
        if name in kept or name == walk[0][1]:
            continue
        begin = (names | kept) - {name}
        near = set().union(*(calls.get(f, set()) for f in begin))
        if name not in near and not any(name in calls.get(f, ()) for f in near):
            report.fail(path, n, f"no function of this walk leads to {name}")


def check_walks():
    steps, walks = [], []
    for n, line in section("The walk of a task"):
        if line is None:
            steps.append([n, 0])
            walks.append([])
            continue
        if re.match(r"\d+\. ", line):
            steps[-1][1] += 1
            if not STEP.match(line.split(". ", 1)[1]):
                report.fail(path, n, "a step begins with `file: function`")
        for name, function in STEP.findall(line):
            file = find(name)
            if file is None:
                report.fail(path, n, f"there is no file {name}")
            elif not defines(file, function):
                report.fail(path, n, f"{name} does not define {function}")
            else:
                walks[-1].append((n, function))
    if len(steps) < WALKS:
        report.fail(path, 1, f"{len(steps)} walks of a task, and not {WALKS}")
    for n, count in steps:
        if count < STEPS:
            report.fail(path, n, f"a walk of {count} steps")
    calls, kept = call_graph() if any(walks) else ({}, set())
    for walk in walks:
        check_reach(walk, calls, kept)


def check_table():
    rows = 0
    for n, line in section("Where is what"):
        if line is None or not line.startswith("| ") or line.startswith("| looking"):
            continue
        rows += 1
        folder = ""
        for name in re.findall(r"`([^`]+)`", line.split("|")[2]):
            name = name.split(": ")[0]
            if not FILE.fullmatch(name):
                continue
            if "/" not in name:
                name = folder + name
            if find(name) is None:
                report.fail(path, n, f"there is no {name}")
            folder = name.rpartition("/")[0] + "/"
    if rows == 0:
        report.fail(path, 1, 'no table "Where is what"')


check_walks()
check_table()
sys.exit(report.bad != 0)
