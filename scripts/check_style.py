#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_style.py [ROOT]: the rules a compiler does not know.

Fails on: files over 800 lines, headers over 450, functions over 80 in src/ and
over 100 elsewhere (kernels for GPUs apart), lines of code over 100 columns, no SPDX
line, no file-top comment, forbidden functions, volatile and stand-alone fences
in src/, build switches outside registries, marks of unfinished work, tabs,
blanks at the end of a line. Notes, without failing: files over 600 lines,
headers over 300, functions over 80, more than 6 parameters. Function lengths
rely on the brace style that check_format keeps.
"""
import pathlib
import re
import sys

from heddle_lint import Report, code_only, files, line_of

# Lines: from where on it is noted, and from where on it is too much.
FILE, HEADER = (600, 800), (300, 450)
FUNCTION, FUNCTION_IN_SRC = (80, 100), (80, 80)
PARAMETERS = 6
KERNELS = {".cu", ".cuh"}  # unrolled by hand where that is faster
COLUMNS = 100  # as in .clang-format, which leaves comments and strings alone

# Nowhere: no bounds, no errors, or a hidden global state.
UNSAFE = "strcpy strcat sprintf vsprintf gets atoi atol atoll atof rand srand " \
         "strtok alloca tmpnam mktemp".split()
# Not in the library: it owns no terminal, no process and no heap. Each file
# listed is the one door to what it may use.
HEAP = "malloc calloc realloc reallocarray free aligned_alloc posix_memalign " \
       "memalign valloc strdup strndup asprintf vasprintf getline getdelim " \
       "open_memstream".split()
LIBRARY = {
    **{name: {"src/base/alloc.c"} for name in HEAP},
    **{name: {"src/core/env.c"} for name in
       "getenv secure_getenv setenv unsetenv putenv".split()},
    **{name: {"src/base/assert.c"} for name in
       "abort exit _exit _Exit quick_exit atexit raise printf vprintf puts "
       "putchar perror assert".split()},
}
STREAMS = re.compile(r"\b(stderr|stdout|stdin)\b")
STREAM_FILES = {"src/base/assert.c"}
FENCES = re.compile(r"\b(atomic_thread_fence|atomic_signal_fence|"
                    r"__sync_synchronize|__atomic_thread_fence)\b")
# Sources that include heddle_config.h without being a registry (a registry
# includes a .def file): what the build has, as values.
CONFIG_FILES = {"src/core/build.c", "tools/heddle/common/build.c"}
# A public list whose rows carry a switch, as the lines of a .def file do.
LIST_FILES = {"include/heddle/device.h"}

UNFINISHED = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|X" r"XX|HA" r"CK)\b")
CALL = re.compile(r"(?<![\w.>])([A-Za-z_]\w*)\s*\(")
SPDX = "SPDX-License-Identifier: BSD-3-Clause"
C_FILES = {".c", ".h", ".cu", ".cuh", ".cc", ".cpp", ".hpp", ".def"}
SCRIPTS = {".py", ".sh", ".cmake", ".yml"}
PAGE = {".js", ".mjs"}
# Text that a person has broken into lines, CMakeLists.txt and the page's modules with it.
CODE = C_FILES | SCRIPTS | PAGE | {".txt"}
TEXT = CODE | {".md", ".in", ".json", ".map", ".css",
               ".html", ".1", ".3", ".7"}
# Data of the tests may look like anything.
DATA = ("tests/fixtures/", "tests/golden/")

root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
report = Report(root)


def is_generated(path):
    """PTX as a string, made by `make ptx`: lint.ptx checks it."""
    return path.parent.name == "ptx"


def check_text(path, text):
    """Rules for every text file."""
    for n, line in enumerate(text.splitlines(), 1):
        if UNFINISHED.search(line):
            report.fail(path, n, "finish it, or open an issue")
        if line != line.rstrip() and path.suffix != ".md":
            report.fail(path, n, "blank at the end of the line")
        if len(line) > COLUMNS and path.suffix in CODE and not is_generated(path):
            report.fail(path, n, f"over {COLUMNS} columns")
        if "\t" in line and path.name != "Makefile" \
                and path.suffix not in (".map", ".1", ".3", ".7"):
            report.fail(path, n, "tab")
    if text and not text.endswith("\n"):
        report.fail(path, text.count("\n") + 1, "no newline at the end")
    if path.suffix in C_FILES | SCRIPTS and not is_generated(path):
        check_length(path, text.count("\n"))


def check_length(path, length):
    most, too_much = HEADER if path.suffix == ".h" else FILE
    if length > too_much:
        report.fail(path, too_much, f"over {too_much} lines")
    elif length > most:
        report.warn(path, most, f"over {most} lines")


def check_top(path, text):
    """SPDX first; then a C file says what it is for."""
    first = text.splitlines()[:2]
    if not any(SPDX in line for line in first):
        report.fail(path, 1, f"no '{SPDX}' line")
    if path.suffix in C_FILES:
        rest = text.split("\n", 1)[1] if "\n" in text else ""
        rest = re.sub(r"\A\s*#ifndef \w+\n#define \w+\n", "", rest)
        if not re.match(r"\s*(/\*|//)", rest):
            report.fail(path, 2, "no file-top comment after the SPDX line")


def check_functions(path, code):
    """Length and parameters; a function body is `{` to `}` at column 0."""
    lines = code.split("\n")
    start = None
    for i, line in enumerate(lines):
        if line == "{":
            start = i
            while start > 0 and re.match(r"\s*[\w(]", lines[start - 1]):
                start -= 1
        elif line.rstrip() in ("}", "};") and start is not None:
            head = " ".join(lines[start:i]).split("{")[0]
            if not re.match(r"\s*(class|struct)\b", head):
                measure(path, start + 1, i - start + 1, head)
            start = None


def measure(path, line, length, head):
    names = CALL.findall(head)
    name = names[0] if names else "function"
    in_src = path.relative_to(root).parts[0] == "src"
    most, too_much = FUNCTION_IN_SRC if in_src else FUNCTION
    if length > too_much and path.suffix not in KERNELS:
        report.fail(path, line, f"{name} has {length} lines")
    elif length > most:
        report.warn(path, line, f"{name} has {length} lines")
    inner = re.sub(r"\([^()]*\)", "", head[head.find("(") + 1:])
    count = inner.count(",") + 1
    if count > PARAMETERS:
        report.warn(path, line, f"{name} has {count} parameters")


def check_calls(path, where, code, in_library):
    for m in CALL.finditer(code):
        name, n = m[1], line_of(code, m.start())
        if name in UNSAFE:
            report.fail(path, n, f"{name} is forbidden")
        elif in_library and name in LIBRARY and where not in LIBRARY[name]:
            report.fail(path, n, f"{name} is forbidden in the library")
    if not in_library:
        return
    for m in FENCES.finditer(code):
        report.fail(path, line_of(code, m.start()),
                    "stand-alone fence: the thread sanitizer cannot follow it")
    for m in re.finditer(r"\bvolatile\b", code):
        if not re.search(r"asm\w*\s*$", code[:m.start()]):
            report.fail(path, line_of(code, m.start()),
                        "volatile is no synchronisation")
    if where not in STREAM_FILES:
        for m in STREAMS.finditer(code):
            report.fail(path, line_of(code, m.start()),
                        f"the library does not use {m[1]}")


def check_switches(path, where, text, code):
    """HEDDLE_WITH_* in .def files and registries, never in an #if."""
    registry = re.search(r'^\s*#\s*include\s+"[^"]+\.def"', text, re.M)
    config = re.search(r'^\s*#\s*include\s+"heddle_config\.h"', text, re.M)
    if config and not registry and where not in CONFIG_FILES:
        report.fail(path, line_of(text, config.start()),
                    "heddle_config.h is for registries")
    for m in re.finditer(r"^(.*)\bHEDDLE_WITH_\w+", code, re.M):
        n = line_of(code, m.start())
        if re.match(r"\s*#\s*(if|elif)", m[1]):
            report.fail(path, n, "a variant is a file, not an #if")
        elif not config and where not in LIST_FILES:
            report.fail(path, n, "a build switch outside a registry")


for f in files(root):
    place = f.relative_to(root).as_posix()
    script = f.suffix in SCRIPTS or f.name in ("CMakeLists.txt", "Makefile") \
        or place in ("scripts/setup", ".ci/run")
    if place.startswith(DATA) or not (script or f.suffix in TEXT):
        continue
    try:
        content = f.read_text()
    except UnicodeDecodeError:
        report.fail(f, 1, "not UTF-8")
        continue
    check_text(f, content)
    if script or f.suffix in C_FILES:
        check_top(f, content)
    if f.suffix not in C_FILES:
        continue
    bare = code_only(content)
    library = place.startswith(("src/", "include/"))
    check_functions(f, bare)
    check_calls(f, place, bare, library and not f.stem.endswith("_test"))
    if f.suffix != ".def":
        check_switches(f, place, content, bare)
sys.exit(report.bad != 0)
