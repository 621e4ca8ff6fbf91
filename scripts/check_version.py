#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_version.py BUILD [ROOT]: VERSION, version.h, CMake and heddle.pc agree."""
import pathlib
import re
import sys

build = pathlib.Path(sys.argv[1])
root = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else ".")
want = (root / "VERSION").read_text().strip()
header = (root / "include/heddle/version.h").read_text()


def grep(pattern, text):
    m = re.search(pattern, text, re.M)
    return m[1] if m else "nothing"


found = {
    "version.h, numbers": ".".join(
        grep(rf"^#define HEDDLE_VERSION_{part} +(\d+)$", header)
        for part in ("MAJOR", "MINOR", "PATCH")),
    "version.h, text": grep(r'^#define HEDDLE_VERSION +"([^"]*)"$', header),
    "CMake": grep(r"^CMAKE_PROJECT_VERSION:STATIC=(.*)$",
                  (build / "CMakeCache.txt").read_text()),
    "heddle.pc": grep(r"^Version: (.*)$",
                      (build / "generated/heddle.pc").read_text()),
}
bad = {where: v for where, v in found.items() if v != want}
for where, version in bad.items():
    print(f"{where} says {version}, VERSION says {want}")
sys.exit(bool(bad))
