#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""ptx_header.py [--all] [ROOT]: PTX as C headers, as scripts/ptx.list says; needs nvcc.

A header whose hash fits its source and flags is left alone, unless --all is given. The hash
is over the code without comments and blanks, so neither asks for nvcc. Names in the PTX do
not depend on where the source lies.
"""
import hashlib
import pathlib
import re
import subprocess
import sys

LOCAL = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
# What nvcc calls the anonymous namespace of a file.
INTERNAL = re.compile(r"\d+_INTERNAL_[0-9a-f]{8}_\d+_\w+?_cu_[0-9a-f]{8}")
HASH = re.compile(r"^ \* hash ([0-9a-f]{16})", re.M)


class Row:
    """A line of the table."""

    def __init__(self, source, header, name, arch, version, *flags):
        self.source, self.header, self.name = source, header, name
        self.arch, self.version, self.flags = arch, version, flags

    def hash(self, root):
        """Of all that decides what nvcc makes."""
        h = hashlib.sha256(" ".join((self.name, self.arch, self.version, *self.flags)).encode())
        for text in sources(root / self.source, root, set()):
            h.update(b"\0" + text.encode())
        return h.hexdigest()[:16]


def read_table(root):
    rows = []
    for n, line in enumerate((root / "scripts/ptx.list").read_text().splitlines(), 1):
        words = line.split("#")[0].split()
        if words and len(words) < 5:
            sys.exit(f"scripts/ptx.list:{n}: cannot parse '{line}'")
        if words:
            rows.append(Row(*words))
    return rows


def bare(text):
    """Code without comments, each blank one space."""
    text = TOKEN.sub(lambda m: " " if m[0][0] == "/" else m[0], text)
    return re.sub(r"\s+", " ", text).strip()


def sources(path, root, seen):
    """The text of a source and of the files of ours that it includes: from src/, or beside it."""
    if path in seen:
        return
    seen.add(path)
    text = path.read_text()
    yield bare(text)
    for name in LOCAL.findall(text):
        for place in (root / "src" / name, path.parent / name):
            if place.is_file():
                yield from sources(place, root, seen)
                break


def clean(ptx, version):
    """Lines of PTX without comments, with short names."""
    lines = []
    for line in ptx.splitlines():
        line = re.sub(r"//.*", "", line).strip()
        line = re.sub(r"\.version\s+\S+", ".version " + version, line)
        line = line.replace("$L__BB", "$L").replace("_param_", "_")
        line = INTERNAL.sub("5local", re.sub(r"\s+", " ", line))
        if line and not line.startswith((".loc ", ".file ", ".pragma ")):
            lines.append(line)
    return lines


def by_kernel(row, lines):
    """{name: lines}, the first three, which say what it is for, in each."""
    modules, top, at = {}, lines[:3], None
    for line in lines[3:]:
        entry = re.match(r"\.visible \.entry (\w+)\(", line)
        if entry:
            at = modules.setdefault(entry[1], list(top))
        elif line.startswith(".func") or at is None:
            sys.exit(f"{row.source}: a module for each kernel has nothing but kernels: {line}")
        at.append(line)
    return modules


def header(row, lines, digest):
    guard = re.sub(r"\W", "_", "HEDDLE_" + row.header.split("/", 1)[1]).upper()
    modules = by_kernel(row, lines) if row.name == "*" else {row.name: lines}
    flags = " ".join(("-arch=" + row.arch, *row.flags))
    out = ["/* SPDX-License-Identifier: BSD-3-Clause */",
           f"/* Made by `make ptx` from {row.source} ({flags}); do not edit.",
           f" * hash {digest} */",
           f"#ifndef {guard}", f"#define {guard}", "",
           "/* clang-format off */",
           '#pragma GCC diagnostic ignored "-Woverlength-strings"']
    for name, text in modules.items():
        out.append(f"static const char {name}_ptx[] =")
        out += [f'"{line}\\n"' for line in text]
        out[-1] += ";"
    return "\n".join(out + ["/* clang-format on */", "", f"#endif /* {guard} */"]) + "\n"


def old_hash(path):
    found = HASH.search(path.read_text()[:1000]) if path.is_file() else None
    return found[1] if found else None


def make(row, root, digest):
    command = ["nvcc", "-ptx", "-arch=" + row.arch, "-I", "src", *row.flags, "-o", "-", row.source]
    got = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if got.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{got.stderr}")
    path = root / row.header
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(header(row, clean(got.stdout, row.version), digest))
    print(row.header)


def main():
    names = [a for a in sys.argv[1:] if a != "--all"]
    root = pathlib.Path(names[0] if names else ".").resolve()
    for row in read_table(root):
        digest = row.hash(root)
        if "--all" in sys.argv or old_hash(root / row.header) != digest:
            make(row, root, digest)


if __name__ == "__main__":
    main()
