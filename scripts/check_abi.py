#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_abi.py rows ROOT | layout CC ROOT [--write]: promises about the binary interface.

rows    every public struct with a size field (ADR 0029)
        1. has it first
        2. has a row in tests/abi/sizes.c
        3. stands by value inside another public struct only with reserved fields
        and no row of sizes.c names a struct that is gone.
layout  names of all calls, sizes and offsets of all public structs, and values of all
        enumerators, against tests/abi/layout.txt. A struct with a size may grow at its end; all
        else stays.
        --write writes the file anew, for a new major version.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

from heddle_lint import Report, code_only, files, line_of

STRUCT = re.compile(r"^(?:typedef )?struct (heddle_\w+) \{\n(.*?)^\}", re.S | re.M)
ENUM = re.compile(r"^(?:typedef )?enum (heddle_\w+) \{\n(.*?)^\}", re.S | re.M)
CONSTANT = re.compile(r"^\s*(HEDDLE_\w+)\b(?=\s*(?:=|,|$))|,\s*(HEDDLE_\w+)", re.M)
CALL = re.compile(r"HEDDLE_API\b[^;{}]*?\b(heddle_\w+)\s*\(", re.S)


def members(body):
    """Names of the fields, and the by-value structs among their types."""
    names, inside = [], []
    body = re.sub(r"\bunion \{|\}", "", body)  # several names of one field
    for part in body.replace("\n", " ").split(";"):
        part = re.sub(r"\s+", " ", part).strip()
        if not part:
            continue
        function = re.search(r"\(\*(\w+)\)", part)
        if function:
            names.append(function[1])
            continue
        value = re.match(r"(?:const )?struct (heddle_\w+) (?!\*)", part)
        if value:
            inside.append(value[1])
        for piece in part.split(","):
            name = re.search(r"(\w+)\s*(?:\[[^]]*\]\s*)*$", piece.strip())
            names.append(name[1])
    return names, inside


def headers(root):
    for path in sorted(files(root, ".h", under=("include",))):
        yield path, code_only(path.read_text())


def structs(root):
    for path, source in headers(root):
        for m in STRUCT.finditer(source):
            yield path, line_of(source, m.start()), m[1], *members(m[2])


def check_rows(root):
    report = Report(root)
    sizes = root / "tests/abi/sizes.c"
    rows = set(re.findall(r"ROW\(\s*(?:struct )?(heddle_\w+)", sizes.read_text()))
    seen = {name: names for _, _, name, names, _ in structs(root)}
    for path, line, name, names, inside in structs(root):
        for other in inside:
            if "size" in seen.get(other, ()) and "reserved" not in seen[other]:
                report.fail(path, line, f"{name} has {other} inside, which could not grow any "
                            "more: use a pointer, or give it reserved fields")
        if "size" not in names:
            continue
        if names[0] != "size":
            report.fail(path, line, f"{name}: size is not its first field")
        if name not in rows:
            report.fail(path, line, f"{name} has a size and no row in tests/abi/sizes.c")
        rows.discard(name)
    for name in sorted(rows):
        report.fail(sizes, 1, f"there is a row for {name}, which has no size, or is gone")
    return 1 if report.bad else 0


def layout(cc, root):
    """name offset lines of every struct, and name value lines of every enumerator."""
    lines, includes = [], []
    for path, source in headers(root):
        includes.append(f'#include "heddle/{path.name}"')
        for m in ENUM.finditer(source):
            body = re.sub(r"(?m)^#.*$", "", m[2])
            for name in CONSTANT.findall(body):
                name = name[0] or name[1]
                lines.append(f'printf("enum {name} %d\\n", (int){name});')
        for name in CALL.findall(source):
            lines.append(f'puts("call {name} 0");')
        for name in re.findall(r"X\((HEDDLE_\w+), *-?\d+,", source):
            lines.append(f'printf("enum {name} %d\\n", (int){name});')
        for m in STRUCT.finditer(source):
            names, _ = members(m[2])
            kind = "sized" if names[0] == "size" else "fixed"
            lines.append(f'printf("{kind} {m[1]} %zu\\n", sizeof(struct {m[1]}));')
            for n in names:
                lines.append(f'printf("field {m[1]}.{n} %zu\\n", offsetof(struct {m[1]}, {n}));')
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "layout.c")
        source.write_text("#include <stddef.h>\n#include <stdio.h>\n" + "\n".join(includes)
                          + "\nint main(void)\n{\n" + "\n".join(lines) + "\nreturn 0;\n}\n")
        program = pathlib.Path(folder, "layout")
        subprocess.run([*cc.split(), f"-I{root / 'include'}", str(source), "-o", str(program)],
                       check=True)
        return subprocess.run([program], capture_output=True, text=True, check=True).stdout


def check_layout(cc, root, writes):
    stored = root / "tests/abi/layout.txt"
    now = layout(cc, root)
    if writes:
        stored.write_text(now)
        return 0
    report = Report(root)
    new = {tuple(line.split()[:2]): int(line.split()[2]) for line in now.splitlines()}
    for i, line in enumerate(stored.read_text().splitlines(), 1):
        kind, name, value = line.split()
        got = new.get((kind, name))
        if got is None:
            report.fail(stored, i, f"{name} is gone")
        elif got != int(value) and not (kind == "sized" and got > int(value)):
            report.fail(stored, i, f"{name} was {value} and is {got}: programs that were compiled "
                        "before would not run any more")
    return 1 if report.bad else 0


if sys.argv[1] == "rows":
    sys.exit(check_rows(pathlib.Path(sys.argv[2]).resolve()))
sys.exit(check_layout(sys.argv[2], pathlib.Path(sys.argv[3]).resolve(), "--write" in sys.argv))
