#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Reads PTX, writes a C header with it as a string:
ptx_header.py NAME [VERSION] < x.ptx.

The version of the language is set back to the oldest that knows the target (7.0
unless it is given), so that older drivers take it too; names of registers and labels become short.
"""
import re
import sys

WIDTH = 150
MANY_LINES = 800


def pack(lines, width):
    """As many as fit beside each other; PTX does not look at line ends, but for
    those of directives at the top."""
    packed = lines[:3]
    for line in lines[3:]:
        if len(packed) > 3 and len(packed[-1]) + len(line) < width:
            packed[-1] += " " + line
        else:
            packed.append(line)
    return packed


def main():
    name = sys.argv[1]
    version = sys.argv[2] if len(sys.argv) > 2 else "7.0"
    guard = "HEDDLE_" + name.upper() + "_H"
    out = []
    for line in sys.stdin:
        line = re.sub(r"//.*", "", line).strip()
        line = re.sub(r"\.version\s+\S+", ".version " + version, line)
        line = line.replace("$L__BB", "$L").replace("_param_", "_")
        line = re.sub(r"\s+", " ", line)
        if line and not line.startswith((".loc ", ".file ", ".pragma ")):
            out.append(line)
    size = sum(len(line) + 1 for line in out)
    out = pack(out, max(WIDTH, size // MANY_LINES))
    print("/* SPDX-License-Identifier: BSD-3-Clause */")
    print(f"#ifndef {guard}\n#define {guard}\n")
    print("/* Made by scripts/ptx_header.py, which see. */")
    print("/* clang-format off */")
    print('#pragma GCC diagnostic ignored "-Woverlength-strings"')
    print(f"static const char {name}_ptx[] =")
    for i, line in enumerate(out):
        end = ";" if i == len(out) - 1 else ""
        print(f'"{line}\\n"{end}')
    print("/* clang-format on */")
    print(f"\n#endif /* {guard} */")


if __name__ == "__main__":
    main()
