#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_routines.py [--fix] [ROOT]: the rows of src/la/routines.def against all that names a
dense routine.

1. heddle/la*.h declares heddle_la_<name>() for every row, and no other routine
2. the source of a row is there and defines that function
3. lapack/lapack.def takes over the rows that say so, and no other (cblas_<name> is the same)
4. bench/la/la.def measures the rows that say so, and no other
5. the table of docs/guide/09-dense.md between the marks is that of the rows; --fix writes it
"""
import pathlib
import re
import sys

from heddle_lint import Report

ROW = re.compile(r'^LA_ROUTINE\((\w+), ([\w/]+), ([01]), ([01]),.*?"((?:[^"])*)"\)$', re.M | re.S)
# What is no routine: about sequences, not about matrices.
OTHERS = {"create", "wait"}
TABLE = re.compile(r"(<!-- routines: .*? -->\n).*?(<!-- /routines -->)", re.S)
GUIDE = "docs/guide/09-dense.md"

arguments = [a for a in sys.argv[1:] if a != "--fix"]
root = pathlib.Path(arguments[0] if arguments else ".").resolve()
report = Report(root)


def read(path):
    path = root / path
    return path.read_text() if path.is_file() else ""


def compare(path, got, wanted, verb):
    """Both are sets of names."""
    for name in sorted(wanted - got):
        report.fail(path, 1, f"does not {verb} {name}, which has a row in src/la/routines.def")
    for name in sorted(got - wanted):
        report.fail(path, 1, f"{verb}s {name}, but its row in src/la/routines.def does not say so")


def table(rows):
    """The guide's, in the order of the rows."""
    lines = ["| routine | what it does | drop-in | bench |", "|---|---|---|---|"]
    for name, _, drop_in, bench, what in rows:
        what = what.replace("|", "\\|")
        lines.append(f"| `{name}` | {what} | {'yes' if drop_in == '1' else ''} "
                     f"| {'yes' if bench == '1' else ''} |")
    return "\n".join(lines) + "\n"


definition = read("src/la/routines.def")
found = ROW.findall(definition)
names = [row[0] for row in found]
if len(found) != len(re.findall(r"^LA_ROUTINE\(", definition, re.M)):
    report.fail("src/la/routines.def", 1, "a row cannot be read")
for name in sorted({n for n in names if names.count(n) > 1}):
    report.fail("src/la/routines.def", 1, f"{name} has two rows")

headers = "".join(f.read_text() for f in sorted((root / "include/heddle").glob("la*.h")))
declared = set(re.findall(r"heddle_status\s+heddle_la_(\w+)\(\s*heddle_la \*la\b", headers))
compare("include/heddle/la.h", declared - OTHERS, set(names), "declare")
for name, source, *_ in found:
    if not re.search(rf"^heddle_status heddle_la_{name}\(", read(f"src/la/{source}.c"), re.M):
        report.fail("src/la/routines.def", 1, f"src/la/{source}.c does not define heddle_la_{name}")
taken = set(re.findall(r"^LAPACK\((?:cblas_)?(\w+),", read("src/lapack/lapack.def"), re.M))
compare("src/lapack/lapack.def", taken, {r[0] for r in found if r[2] == "1"}, "name")
measured = set(re.findall(r"^HEDDLE_BENCH_LA\((\w+),", read("tools/heddle/bench/la/la.def"), re.M))
compare("tools/heddle/bench/la/la.def", measured, {r[0] for r in found if r[3] == "1"}, "name")

guide = read(GUIDE)
fixed = TABLE.sub(lambda m: m[1] + table(found) + m[2], guide)
if not TABLE.search(guide):
    report.fail(GUIDE, 1, "has no place for the table of routines")
elif fixed != guide and "--fix" in sys.argv:
    (root / GUIDE).write_text(fixed)
elif fixed != guide:
    report.fail(GUIDE, 1, "the table of routines is not that of src/la/routines.def; "
                "'scripts/check_routines.py --fix' writes it")
sys.exit(report.bad != 0)
