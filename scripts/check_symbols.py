#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_symbols.py BUILD [ROOT]: what the objects of src/ define and use.

1. no mutable global: no object in a writable section, thread-local ones
   included, but for scripts/globals.allow. Constant tables of pointers are in
   .data.rel.ro, which the loader write-protects: fine
2. prefix: every symbol that is not static starts with heddle_; src/lapack, a
   library of its own, has BLAS's and LAPACK's names
3. layers: a module uses only symbols of modules that it lists in src/LAYERS,
   and of those behind `api:` only what public headers declare. This catches a
   hand-written `extern` that dodges check_layers.py, and calls through public
   headers that every module may include for their types
4. nothing in globals.allow that no object has

The list of objects comes from compile_commands.json: a build folder keeps
stale ones.
"""
import json
import pathlib
import re
import subprocess
import sys

from heddle_lint import Layers, Report

SECTION = re.compile(r"\s*\[\s*(\d+)\]\s+(\S*)\s+[A-Z_]+\S*\s+[0-9a-f]+\s+"
                     r"[0-9a-f]+\s+[0-9a-f]+\s+[0-9a-f]+\s+([A-Za-z]*)\s")
SYMBOL = re.compile(r"\s*\d+:\s+[0-9a-f]+\s+\S+\s+(\S+)\s+(\S+)\s+\S+\s+"
                    r"(\S+)\s+(\S+)")


def objects(build, root):
    """(module, source, object) of every library source in the build."""
    text = (build / "compile_commands.json").read_text()
    for entry in json.loads(text):
        source = pathlib.Path(entry["file"])
        try:
            module = source.relative_to(root / "src").parts[0]
        except ValueError:
            continue
        if source.stem.endswith("_test"):
            continue
        out = entry.get("output") or re.search(r" -o (\S+)",
                                               entry["command"])[1]
        yield module, source, pathlib.Path(entry["directory"]) / out


def read_object(obj):
    """[(type, binding, section name, writable, symbol)] of one object."""
    text = subprocess.run(["readelf", "-W", "-S", "-s", str(obj)],
                          capture_output=True, text=True, check=True).stdout
    sections, symbols = {"COM": ("COMMON", True)}, []
    for line in text.splitlines():
        m = SECTION.match(line)
        if m:
            sections[m[1]] = (m[2], "W" in m[3])
            continue
        m = SYMBOL.match(line)
        if m:
            kind, binding, ndx, name = m.groups()
            section, writable = sections.get(ndx, (ndx, False))
            symbols.append((kind, binding, section, writable, name))
    return symbols


def public_names(root):
    """All names of functions in the public headers."""
    names = set()
    for header in sorted((root / "include").rglob("*.h")):
        names.update(re.findall(r"\b(heddle_\w+)\s*\(", header.read_text()))
    return names


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    root = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else ".").resolve()
    report = Report(root)
    layers = Layers(root, report)
    allow_file = root / "scripts/globals.allow"
    allow = {line.split("#")[0].strip()
             for line in allow_file.read_text().splitlines()} - {""}
    home, uses, seen, count = {}, [], set(), 0
    public = public_names(root)

    for module, source, obj in objects(build, root):
        if not obj.exists():
            report.fail(source, 1, f"{obj} is not built")
            continue
        count += 1
        for kind, binding, section, writable, name in read_object(obj):
            if section == "UND":
                uses.append((name, module, source))
                continue
            if kind in ("OBJECT", "TLS", "COMMON") and writable \
                    and not section.startswith(".data.rel.ro"):
                seen.add(name)
                if name not in allow:
                    report.fail(source, 1, f"mutable global '{name}' "
                                           f"in {section}")
            if binding in ("GLOBAL", "WEAK"):
                home[name] = module
                if not name.startswith("heddle_") and module != "lapack":
                    report.fail(source, 1, f"'{name}' lacks the heddle_ prefix")
    for name, module, source in uses:
        owner = home.get(name, module)
        if not layers.may_call(module, owner, name in public):
            report.fail(source, 1, f"{module} uses '{name}' of {owner}")
    for name in sorted(allow - seen):
        report.warn(allow_file, 1, f"no object of this build has '{name}'")
    if count == 0:
        report.fail("src", 1, "no object found, nothing was checked")
    return report.bad != 0


sys.exit(main())
