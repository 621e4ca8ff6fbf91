#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_layers.py [ROOT]: the include graph against src/LAYERS.

1. LAYERS is a DAG: a module lists only modules above it
2. a file of src/ includes only modules its own module lists
3. one face: from outside, module m is reached through m/m.h, or a further
   header that LAYERS calls a face (base, the toolbox, is exempt)
4. public headers include <std*.h> and heddle/ only
5. tools and benchmarks: public headers and base; examples: public headers;
   tests: public headers, base and the face of any module
"""
import pathlib
import re
import sys

from heddle_lint import Report, files, read_faces, read_layers

root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
report = Report(root)
layers = read_layers(root, report)
faces = read_faces(root)
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


def includes(path):
    for n, line in enumerate(path.read_text().splitlines(), 1):
        m = INCLUDE.match(line)
        if m:
            yield n, m[1] == '"', m[2]


def check_src(path, module):
    is_test = path.stem.endswith("_test")
    for n, quoted, name in includes(path):
        folder, _, rest = name.rpartition("/")
        top = name.split("/")[0]
        if not quoted or top == "heddle" or name == "heddle_config.h":
            continue
        if is_test and name in ("tests/test.h", "test.h"):
            continue
        if not folder:
            report.fail(path, n, f"write the folder: \"{module}/{name}\"")
        elif top not in layers:
            report.fail(path, n, f"'{top}' is no module of src/LAYERS")
        elif top != module and top not in layers[module]:
            report.fail(path, n, f"{module} may not include {top}")
        elif (top not in (module, "base") and name != f"{top}/{top}.h"
              and name not in faces):
            report.fail(path, n, f"reach {top} through {top}/{top}.h")


def check_public(path):
    for n, _, name in includes(path):
        if not re.fullmatch(r"heddle/[a-z0-9_/]+\.h|std[a-z]+\.h", name):
            report.fail(path, n, f"a public header may not include {name}")


def check_client(path, may):
    for n, _, name in includes(path):
        top = name.split("/")[0]
        if "/" not in name or top not in layers or top in may:
            continue
        if (root / "tools/heddle" / name).exists() and not (root / "src" / name).exists():
            continue  # folders of the tool are called as the modules that they show
        if "faces" in may and (name == f"{top}/{top}.h" or name in faces):
            continue
        report.fail(path, n, f"{name} is private to src/{top}")


for f in files(root, ".c", ".h", ".cu", ".cuh", ".def", under=("src",)):
    mod = f.relative_to(root / "src").parts[0]
    if mod not in layers:
        report.fail(f, 1, f"'{mod}' is no module of src/LAYERS")
        continue
    check_src(f, mod)
for f in files(root, ".h", under=("include",)):
    check_public(f)
for folder_name, allowed in (("tools", {"base"}), ("bench", {"base"}),
                             ("examples", set()), ("tests", {"base", "faces"})):
    if (root / folder_name).is_dir():
        for f in files(root, ".c", ".h", ".cu", ".cc", under=(folder_name,)):
            check_client(f, allowed)
sys.exit(report.bad != 0)
