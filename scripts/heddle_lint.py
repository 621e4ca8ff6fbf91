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


MODULE = re.compile(r"([a-z0-9_]+)\s*:([a-z0-9_ ]*)(?:\bapi:([a-z0-9_ ]*))?")


class Layers:
    """src/LAYERS: what its comment says, as tables.

    uses     {module: modules whose private headers it may include}
    api      {module: modules whose public headers it may include}
    owners   {public header: modules that define its functions}
    words    public headers that every module may include, for their types
    faces    private headers besides m/m.h that other modules may include
    lines    {module: its line}
    """

    def __init__(self, root, report):
        self.uses, self.api, self.owners, self.lines = {}, {}, {}, {}
        self.words, self.faces = set(), set()
        self.path, self.report = root / "src/LAYERS", report
        module = None
        for n, line in enumerate(self.path.read_text().splitlines(), 1):
            line = line.split("#")[0].strip()
            kind, *names = line.split() or [""]
            if kind == "face":
                self.faces.update(names)
            elif kind == "words":
                self.words.update(names)
            elif kind == "header" and module is not None:
                for name in names:
                    self.owners.setdefault(name, set()).add(module)
            elif MODULE.fullmatch(line):
                module = self.read_module(n, *MODULE.fullmatch(line).groups())
            elif line:
                report.fail(self.path, n, f"cannot parse '{line}'")

    def read_module(self, n, module, uses, api):
        uses, api = set(uses.split()), set((api or "").split())
        if module in self.uses:
            self.report.fail(self.path, n, f"{module} is declared twice")
        for d in sorted((uses | api) - set(self.uses)):
            self.report.fail(self.path, n,
                             f"{module} lists {d}, which is not above it")
        for d in sorted(uses & api):
            self.report.fail(self.path, n, f"{module} lists {d} twice")
        self.uses[module], self.api[module], self.lines[module] = uses, api, n
        return module

    def may_call(self, module, owner, is_public):
        """Whether `module` may call a function of `owner`."""
        return owner == module or owner in self.uses.get(module, ()) \
            or (is_public and owner in self.api.get(module, ()))


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
