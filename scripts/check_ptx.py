#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_ptx.py [ROOT]: generated PTX against its sources; nvcc is not needed.

1. every line of scripts/ptx.list has its header, with the hash of its source and flags
2. headers are in folders called ptx/, and these have nothing else
3. no other file of the project has PTX that a tool has made
"""
import pathlib
import re
import sys

from heddle_lint import Report, files
from ptx_header import old_hash, read_table

root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
report = Report(root)
MADE = re.compile(r"^/\* Made by `make ptx`", re.M)

known = set()
for row in read_table(root):
    path = root / row.header
    known.add(path)
    if path.parent.name != "ptx":
        report.fail(path, 1, "generated PTX belongs into a folder ptx/")
    if not (root / row.source).is_file():
        report.fail("scripts/ptx.list", 1, f"there is no {row.source}")
    elif not path.is_file():
        report.fail(path, 1, "is not there; 'make ptx' makes it")
    elif old_hash(path) != row.hash(root):
        report.fail(path, 3, f"{row.source} or its flags have changed; 'make ptx' makes it anew")
for f in files(root, under=[d for d in ("src", "tools", "bench", "tests", "examples")
                            if (root / d).is_dir()]):
    if f in known:
        continue
    if f.parent.name == "ptx":
        report.fail(f, 1, "is in ptx/, but not in scripts/ptx.list")
    elif f.suffix == ".h" and MADE.search(f.read_text()[:500]):
        report.fail(f, 1, "is generated, but not in scripts/ptx.list")
sys.exit(report.bad != 0)
