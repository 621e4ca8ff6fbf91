#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_exports.py LIBRARY [ROOT]: libheddle.so against the public headers.

1. every declaration marked HEDDLE_API is exported
2. every exported symbol is declared with HEDDLE_API in include/heddle
3. no public header declares a function without HEDDLE_API
"""
import pathlib
import re
import subprocess
import sys

from heddle_lint import Report, code_only, files, line_of

root = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else ".").resolve()
report = Report(root)


def declarations(text):
    """(offset, text) of each file-scope declaration of a header."""
    text = re.sub(r"(?m)^[ \t]*#(?:.*\\\n)*.*$",
                  lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    text = re.sub(r'extern\s+"\s*"\s*\{', lambda m: " " * len(m[0]), text)
    depth, start = 0, 0
    for i, c in enumerate(text):
        if c == "{":
            depth += 1
        elif c == "}":
            # A stray one closes extern "C"; a body ends an inline function.
            body = depth == 1 and "(" in text[start:i].split("{")[0]
            depth = max(depth - 1, 0)
            if body or depth == 0 and "{" not in text[start:i]:
                yield start, text[start:i + 1]
                start = i + 1
        elif c == ";" and depth == 0:
            yield start, text[start:i + 1]
            start = i + 1


declared = {}
for path in files(root, ".h", under=("include",)):
    source = code_only(path.read_text())
    for offset, decl in declarations(source):
        line = line_of(source, offset + len(decl) - len(decl.lstrip()))
        head = decl.split("{")[0]
        name = re.search(r"\b(heddle_\w+)\s*\(", head)
        if "HEDDLE_API" in head:
            name = name or re.search(r"\b(heddle_\w+)\s*(?:\[[^]]*\]\s*)*;",
                                     head)
            if name is None:
                report.fail(path, line, "no name found after HEDDLE_API")
            else:
                declared[name[1]] = (path, line)
        elif name and not re.match(r"\s*(typedef|static|struct \w+\s*$)", head):
            report.fail(path, line, f"{name[1]} lacks HEDDLE_API")

out = subprocess.run(["nm", "-D", "--defined-only", sys.argv[1]],
                     capture_output=True, text=True, check=True).stdout
exported = set()
for row in out.splitlines():
    kind, symbol = row.split()[-2:]
    symbol = symbol.split("@")[0]
    if kind != "A":
        exported.add(symbol)

for name in sorted(set(declared) - exported):
    report.fail(*declared[name], f"{name} is declared but not exported")
for name in sorted(exported - set(declared)):
    report.fail("include/heddle", 1, f"{name} is exported but not declared")
if not exported:
    report.fail("include/heddle", 1, "the library exports nothing")
sys.exit(report.bad != 0)
