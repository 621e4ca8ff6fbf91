#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""coverage.py BUILD: lines and branches of src/ that the tests executed.

Reads the counters of a coverage build with gcov and prints one row per
module. A branch that no test takes is often an error path: the fault tests
are there to take it.
"""
import collections
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile


def counters(build):
    """The parsed gcov output of every library object in the build."""
    gcda = [p for p in pathlib.Path(build).resolve().rglob("*.gcda")
            if "/src/" in p.as_posix()]
    gcov = os.environ.get("GCOV", "gcov")
    for path in gcda:
        with tempfile.TemporaryDirectory() as tmp:
            subprocess.run([gcov, "--json-format", "--branch-probabilities",
                            str(path)], cwd=tmp, check=True,
                           stdout=subprocess.DEVNULL)
            for out in pathlib.Path(tmp).glob("*.gz"):
                yield json.loads(gzip.decompress(out.read_bytes()))


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    hits = collections.defaultdict(lambda: collections.defaultdict(int))
    for data in counters(sys.argv[1]):
        for file in data["files"]:
            path = (pathlib.Path(data["current_working_directory"])
                    / file["file"]).resolve()
            if not path.is_relative_to(root / "src") \
                    or path.stem.endswith("_test"):
                continue
            module = path.relative_to(root / "src").parts[0]
            for line in file["lines"]:
                where = (path, line["line_number"])
                hits[module][where] += line["count"]
                for i, branch in enumerate(line["branches"]):
                    hits[module, "branch"][where + (i,)] += branch["count"]
    if not hits:
        sys.exit("no counters found: run `make coverage`")
    print(f"{'module':10}{'lines':>8}{'run':>8}{'branches':>10}{'taken':>8}")
    for module in sorted(m for m in hits if isinstance(m, str)):
        row = [module]
        for key in (module, (module, "branch")):
            total = len(hits[key])
            done = sum(n > 0 for n in hits[key].values())
            row += [total, f"{100 * done / total:.1f}%" if total else "-"]
        print(f"{row[0]:10}{row[1]:>8}{row[2]:>8}{row[3]:>10}{row[4]:>8}")


main()
