# SPDX-License-Identifier: BSD-3-Clause
"""What the check scripts share: LAYERS, the file list, comment removal."""
import pathlib
import re

SKIP_DIRS = {".git", "build", "third_party", "__pycache__", ".cache"}


class Report:
    """Counts and prints findings, path:line first so that editors jump."""

    def __init__(self, root):
        self.root = root
        self.bad = 0

    def fail(self, path, line, text):
        self.bad += 1
        self.show(path, line, text)

    def warn(self, path, line, text):
        self.show(path, line, "note: " + text)

    def show(self, path, line, text):
        path = pathlib.Path(path)
        if path.is_absolute():
            path = path.relative_to(self.root)
        print(f"{path}:{line}: {text}")


def read_layers(root, report):
    """{module: set of modules it may use}, in the order of the file."""
    layers = {}
    path = root / "src/LAYERS"
    for n, line in enumerate(path.read_text().splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line or line.startswith("face "):
            continue
        if not re.fullmatch(r"[a-z0-9_]+\s*:[a-z0-9_ ]*", line):
            report.fail(path, n, f"cannot parse '{line}'")
            continue
        module, deps = (part.strip() for part in line.split(":"))
        if module in layers:
            report.fail(path, n, f"{module} is declared twice")
        for d in sorted(set(deps.split()) - set(layers)):
            report.fail(path, n, f"{module} lists {d}, which is not above it")
        layers[module] = set(deps.split())
    return layers


def read_faces(root):
    """Headers besides m/m.h that other modules may include."""
    faces = set()
    for line in (root / "src/LAYERS").read_text().splitlines():
        line = line.split("#")[0].strip()
        if line.startswith("face "):
            faces.update(line.split()[1:])
    return faces


def files(root, *suffixes, under=(".",)):
    """All project files with one of these suffixes (all files if none)."""
    for top in under:
        for path in sorted((root / top).rglob("*")):
            inside = path.relative_to(root).parts
            if any(p in SKIP_DIRS or p.startswith("build-") for p in inside):
                continue
            if path.is_file() and (not suffixes or path.suffix in suffixes):
                yield path


TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def code_only(text):
    """C text with comments and literals blanked; line numbers stay."""
    def blank(m):
        kept = re.sub(r"[^\n]", " ", m[0])
        if m[0][0] in "\"'":
            kept = m[0][0] + kept[1:-1] + m[0][0]
        return kept
    return TOKEN.sub(blank, text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1
