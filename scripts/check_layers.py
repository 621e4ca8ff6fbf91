#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_layers.py [ROOT]: the include graph against src/LAYERS.

1. LAYERS is a DAG: a module lists only modules above it, and every public
   header has an owner
2. a file of src/ includes only modules its own module lists
3. one face: from outside, module m is reached through m/m.h, or a further
   header that LAYERS calls a face (base, the toolbox, is exempt)
4. a file of src/, or a public header of its module, includes public headers of
   modules that its own module lists, before or after `api:`, and of words;
   tests may include all of them, and heddle.h does
5. what a module lists it uses
6. public headers include <std*.h> and heddle/ only
7. tools: public headers and base; examples: public headers; tests and the
   programs of bench/: public headers, base and the face of any module; those of
   tests/fuzz, one reader each, private headers as well
"""
import pathlib
import re
import sys

from heddle_lint import Layers, Report, files

root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
report = Report(root)
layers = Layers(root, report)
used = {module: set() for module in layers.uses}  # what its includes name
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


def includes(path):
    for n, line in enumerate(path.read_text().splitlines(), 1):
        m = INCLUDE.match(line)
        if m:
            yield n, m[1] == '"', m[2]


def check_api(path, n, module, name):
    """heddle/x.h in a file of a module, or in one of its public headers."""
    header = name.removeprefix("heddle/")
    owners = layers.owners.get(header)
    if owners is None:
        report.fail(path, n, f"{name} is no public header")
        return
    used[module] |= owners
    may = {module} | layers.uses[module] | layers.api[module]
    if header not in layers.words and not owners & may:
        report.fail(path, n, f"{module} may not include {name} of "
                             f"{' and '.join(sorted(owners))}")


def check_src(path, module):
    is_test = path.stem.endswith("_test")
    for n, quoted, name in includes(path):
        folder, _, rest = name.rpartition("/")
        top = name.split("/")[0]
        if top == "heddle" and not is_test:
            check_api(path, n, module, name)
        if not quoted or top == "heddle" or name == "heddle_config.h":
            continue
        if is_test and name in ("tests/test.h", "test.h"):
            continue
        if not folder:
            report.fail(path, n, f"write the folder: \"{module}/{name}\"")
        elif top not in layers.uses:
            report.fail(path, n, f"'{top}' is no module of src/LAYERS")
        elif top != module and top not in layers.uses[module]:
            report.fail(path, n, f"{module} may not include {top}")
        elif (top not in (module, "base") and name != f"{top}/{top}.h"
              and name not in layers.faces):
            report.fail(path, n, f"reach {top} through {top}/{top}.h")
        else:
            used[module].add(top)


def check_public(path):
    for n, _, name in includes(path):
        if not re.fullmatch(r"heddle/[a-z0-9_/]+\.h|std[a-z]+\.h", name):
            report.fail(path, n, f"a public header may not include {name}")
        elif name.startswith("heddle/") and path.name != "heddle.h":
            for module in layers.owners.get(path.name, ()):
                check_api(path, n, module, name)


def check_headers():
    there = {f.name for f in (root / "include/heddle").glob("*.h")}
    for name in sorted(there - set(layers.owners)):
        report.fail(layers.path, 1, f"no module has the header {name}")
    for name in sorted((set(layers.owners) | layers.words) - there):
        report.fail(layers.path, 1, f"there is no public header {name}")


def check_used():
    for module, n in layers.lines.items():
        listed = layers.uses[module] | layers.api[module]
        for other in sorted(listed - used[module]):
            report.fail(layers.path, n, f"{module} lists {other} and does not "
                                        "use it")


def check_client(path, may):
    for n, _, name in includes(path):
        top = name.split("/")[0]
        if "/" not in name or top not in layers.uses or top in may:
            continue
        if (root / "tools/heddle" / name).exists() and not (root / "src" / name).exists():
            continue  # folders of the tool are called as the modules that they show
        if "faces" in may and (name == f"{top}/{top}.h"
                               or name in layers.faces):
            continue
        report.fail(path, n, f"{name} is private to src/{top}")


for f in files(root, ".c", ".h", ".cu", ".cuh", ".def", under=("src",)):
    mod = f.relative_to(root / "src").parts[0]
    if mod not in layers.uses:
        report.fail(f, 1, f"'{mod}' is no module of src/LAYERS")
        continue
    check_src(f, mod)
for f in files(root, ".h", under=("include",)):
    check_public(f)
check_headers()
check_used()
for folder_name, allowed in (("tools", {"base"}), ("bench", {"base", "faces"}),
                             ("examples", set()), ("tests", {"base", "faces"})):
    if (root / folder_name).is_dir():
        for f in files(root, ".c", ".h", ".cu", ".cc", under=(folder_name,)):
            # A fuzz target calls one reader, which may be a private function.
            if "tests/fuzz" not in f.as_posix():
                check_client(f, allowed)
sys.exit(report.bad != 0)
