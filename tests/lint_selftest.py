#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""lint_selftest.py ROOT: plants faults and sees that the check scripts notice.

Each case writes a few files over a small clean tree, runs one script there and
wants a failure that mentions a given text; a case without text wants success.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(sys.argv[1]).resolve()
CC = os.environ.get("CC", "cc")
TOP = "/* SPDX-License-Identifier: BSD-3-Clause */\n/* x: planted. */\n"
BODY = TOP + "void heddle_x(void)\n{\n    %s;\n}\n"
HEADER = ("/* SPDX-License-Identifier: BSD-3-Clause */\n#ifndef HEDDLE_X_H\n"
          "#define HEDDLE_X_H\n\n/* heddle/x.h - planted. */\n%s\n#endif\n")
EXPORT = "#define HEDDLE_API __attribute__((visibility(\"default\")))\n"
API = EXPORT + "%s\nHEDDLE_API int heddle_x(void);\n"
STEPS = "".join(f"{n}. `core/y.c: heddle_y` goes on\n" for n in range(1, 6))
WALK = ("# x\n\n### The walk of a task on a core\n\n" + STEPS + "%s\n"
        "### The walk of a task on a GPU\n\n" + STEPS + "\n"
        "## Where is what\n\n| looking for | file |\n|---|---|\n"
        "| x | `base/x.c`, `x.h`: `heddle_x` |\n%s")
CLEAN = {
    "VERSION": "0.1.0\n",
    "ARCHITECTURE.md": WALK % ("", ""),
    "src/LAYERS": "words w.h\nbase :\nheader x.h\ntopo : base\nheader t.h\n"
                  "core : base topo\nheader w.h\ndraw : api: topo\n",
    "src/base/x.c": TOP + "int heddle_x(void);\nint heddle_x(void)\n{\n"
                          "    return 1;\n}\n",
    "src/topo/README.md": "# topo\n",
    "src/core/y.c": TOP + "int heddle_y(void)\n{\n    return 1;\n}\n",
    "src/core/core.h": HEADER % '#include "base/x.h"\n#include "topo/topo.h"\n',
    "src/topo/topo.h": HEADER % '#include "base/x.h"\n#include "heddle/t.h"\n',
    "src/topo/t.c": TOP + "__attribute__((visibility(\"default\")))\n"
                          "int heddle_tell(void)\n{\n    return 1;\n}\n"
                          "int heddle_topo(void)\n{\n    return 1;\n}\n",
    "src/draw/draw.h": HEADER % '#include "heddle/t.h"\n#include "heddle/w.h"\n',
    "src/base/x.h": HEADER % "int heddle_x(void);\n",
    "include/heddle/x.h": HEADER % (API % ""),
    "include/heddle/t.h": HEADER % (EXPORT + "/* Planted. */\nHEDDLE_API int heddle_tell(void);"),
    "include/heddle/w.h": HEADER % "",
    "tests/test.h": HEADER % "",
    "tests/abi/sizes.c": TOP,
}

# Generated PTX, for check_ptx: its hash is that of x.cu as it stands here.
CU = TOP + "__global__ void x() {}\n"
PTX = {
    "scripts/ptx.list": "src/base/x.cu src/base/ptx/x.h x compute_75 7.0\n",
    "src/base/x.cu": CU,
    "src/base/ptx/x.h": "/* Made by `make ptx` from x.cu; do not edit.\n"
                        " * hash 9ac972c6b3d1d915 */\n",
}

# A routine that all files name, for check_routines.
ROW = 'LA_ROUTINE(x, tri/x, 1, 1, n * n,\n           "does x")\n'
API_X = "HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_x(heddle_la *la);\n"
GUIDE = ("<!-- routines: by a script -->\n| routine | what it does | drop-in | bench |\n"
         "|---|---|---|---|\n| `x` | does x | yes | yes |\n<!-- /routines -->\n")
ROUTINES = {
    "src/la/routines.def": ROW,
    "src/la/tri/x.c": "heddle_status heddle_la_x(heddle_la *la)\n{\n}\n",
    "include/heddle/la.h": API_X,
    "src/lapack/lapack.def": 'LAPACK(x, "x", "x", "x", "x", 0, 1)\n'
                             'LAPACK(cblas_x, "x", "x", "x", "x", 0, 1)\n',
    "tools/heddle/bench/la/la.def": 'HEDDLE_BENCH_LA(x, "x")\n',
    "docs/guide/09-dense.md": GUIDE,
}

# script, planted file, its content, text wanted in the output ("": success)
CASES = [
    ("abi", "include/heddle/x.h", HEADER % "struct heddle_a {\n    int b;\n};\n", ""),
    ("abi", "include/heddle/x.h", HEADER % "struct heddle_a {\n    size_t size;\n};\n",
     "no row"),
    ("abi", "include/heddle/x.h", HEADER % "struct heddle_a {\n    int b;\n    size_t size;\n};\n",
     "not its first field"),
    ("abi", "include/heddle/x.h",
     HEADER % ("struct heddle_a {\n    size_t size;\n};\n"
               "struct heddle_b {\n    struct heddle_a a;\n};\n"), "heddle_b has heddle_a inside"),
    ("abi", "tests/abi/sizes.c", TOP + "ROW(struct heddle_gone, 0, NULL, f)\n", "or is gone"),
    ("layers", "src/base/x.c", TOP, ""),
    ("layers", "src/LAYERS", "base : core\ncore :\n", "not above it"),
    ("layers", "src/LAYERS", "base :\nbase :\n", "declared twice"),
    ("layers", "src/LAYERS", "base : api: core\ncore :\n", "not above it"),
    ("layers", "src/LAYERS", "base :\ntopo : base api: base\n", "base twice"),
    ("layers", "src/LAYERS", "base -> core\n", "cannot parse"),
    ("layers", "src/LAYERS", "base :\nheader no.h\n", "no public header no.h"),
    ("layers", "src/LAYERS", "base :\nwords no.h\n", "no public header no.h"),
    ("layers", "include/heddle/y.h", TOP, "no module has the header y.h"),
    ("layers", "src/core/core.h", '#include "base/x.h"\n',
     "core lists topo and does not use it"),
    ("layers", "src/draw/draw.h", '#include "heddle/w.h"\n',
     "draw lists topo and does not use it"),
    ("layers", "src/draw/draw_test.h", '#include "heddle/x.h"\n', ""),
    ("layers", "src/draw/x.c", '#include "heddle/x.h"\n',
     "draw may not include heddle/x.h of base"),
    ("layers", "src/draw/x.c", '#include <heddle/x.h>\n',
     "draw may not include heddle/x.h of base"),
    ("layers", "src/draw/x.c", '#include "topo/topo.h"\n', "may not include"),
    ("layers", "src/topo/x.c", '#include "heddle/no.h"\n', "no public header"),
    ("layers", "src/topo/x.c", '#include "heddle/x.h"\n', ""),
    ("layers", "src/topo/x.c", '#include "heddle/w.h"\n', ""),
    ("layers", "include/heddle/x.h", '#include "heddle/t.h"\n',
     "base may not include heddle/t.h of topo"),
    ("layers", "include/heddle/t.h", '#include "heddle/x.h"\n', ""),
    ("layers", "src/topo/x.c", '#include "core/core.h"\n', "may not include"),
    ("layers", "src/core/x.c", '#include "topo/bind.h"\n', "topo/topo.h"),
    ("layers", "src/core/x.c", '#include "topo/topo.h"\n', ""),
    ("layers", "src/odd/x.c", TOP, "no module"),
    ("layers", "include/heddle/x.h", "#include <pthread.h>\n", "may not"),
    ("layers", "examples/x.c", '#include "base/x.h"\n', "private"),
    ("layers", "tools/x.c", '#include "topo/topo.h"\n', "private"),
    ("layers", "tests/x.c", '#include "topo/topo.h"\n', ""),
    ("symbols", "src/base/x.c", TOP, ""),
    ("symbols", "src/base/x.c", "int heddle_n = 3;\n", "mutable global"),
    ("symbols", "src/base/x.c", "int heddle_n;\n", "mutable global"),
    ("symbols", "src/base/x.c", "_Thread_local int heddle_n;\n",
     "mutable global"),
    ("symbols", "src/base/x.c",
     "int heddle_x(void) { static int n; return n++; }\n", "mutable global"),
    ("symbols", "src/base/x.c", "const char *heddle_t[] = {\"a\"};\n",
     "mutable global"),
    ("symbols", "src/base/x.c", "const char *const heddle_t[] = {\"a\"};\n",
     ""),
    ("symbols", "src/base/x.c", "int f(void) { return 1; }\n", "prefix"),
    ("symbols", "src/base/x.c", "int heddle_y(void);\n"
     "int heddle_x(void) { return heddle_y(); }\n", "'heddle_y' of core"),
    ("symbols", "src/draw/x.c", "int heddle_tell(void);\n"
     "int heddle_d(void) { return heddle_tell(); }\n", ""),
    ("symbols", "src/draw/x.c", "int heddle_topo(void);\n"
     "int heddle_d(void) { return heddle_topo(); }\n", "'heddle_topo' of topo"),
    ("symbols", "src/draw/x.c", "int heddle_x(void);\n"
     "int heddle_d(void) { return heddle_x(); }\n", "'heddle_x' of base"),
    ("symbols", "src/core/y.c", "int heddle_x(void);\n"
     "int heddle_y(void) { return heddle_x(); }\n", ""),
    ("exports", "include/heddle/x.h", HEADER % (API % ""), ""),
    ("exports", "include/heddle/x.h",
     HEADER % (API % "HEDDLE_API int heddle_no(int (*f)(int));"),
     "heddle_no is declared but not exported"),
    ("exports", "include/heddle/x.h", HEADER % (API % "int heddle_y(void);"),
     "heddle_y lacks HEDDLE_API"),
    ("exports", "src/base/x.c", "int heddle_x(void) { return 1; }\n"
     "HEDDLE_API int heddle_z(void) { return 1; }\n",
     "heddle_z is exported but not declared"),
    ("headers", "src/base/x.h", HEADER % "", ""),
    ("headers", "src/base/x.h", HEADER % "size_t heddle_n(void);", "alone"),
    ("headers", "include/heddle/x.h", HEADER % "int heddle_n(int class);",
     "c++17"),
    ("routines", "src/la/routines.def", ROW, ""),
    ("routines", "src/la/routines.def", ROW + ROW, "two rows"),
    ("routines", "src/la/routines.def", ROW + "LA_ROUTINE(y)\n", "cannot be read"),
    ("routines", "src/la/routines.def", "", "declares x, but"),
    ("routines", "include/heddle/la.h", "", "does not declare x"),
    ("routines", "src/la/tri/x.c", "", "does not define"),
    ("routines", "src/lapack/lapack.def", "", "lapack.def:1: does not name x"),
    ("routines", "src/la/routines.def", ROW.replace("1, 1", "0, 1"), "lapack.def:1: names x, but"),
    ("routines", "tools/heddle/bench/la/la.def", "", "la.def:1: does not name x"),
    ("routines", "docs/guide/09-dense.md", GUIDE.replace("does x", "does y"), "--fix"),
    ("routines", "docs/guide/09-dense.md", "", "no place"),
    ("ptx", "src/base/x.cu", CU, ""),
    ("ptx", "src/base/x.cu", CU + "/* A comment is no change. */\n", ""),
    ("ptx", "src/base/x.cu", CU + "__global__ void y() {}\n", "have changed"),
    ("ptx", "scripts/ptx.list",
     "src/base/x.cu src/base/ptx/x.h x compute_90 7.0\n", "have changed"),
    ("ptx", "scripts/ptx.list", "", "not in scripts/ptx.list"),
    ("ptx", "scripts/ptx.list",
     PTX["scripts/ptx.list"] + "src/base/x.cu src/base/x_ptx.h y compute_75 7.0\n",
     "a folder ptx/"),
    ("ptx", "src/base/y.h", PTX["src/base/ptx/x.h"], "is generated"),
    ("style", "src/base/ptx/x.h", TOP + "int x;\n" * 1000, ""),
    ("style", "src/base/x.c", BODY % "a->free(a), heddle_free(\"exit()\")", ""),
    ("style", "src/base/alloc.c", BODY % "free(p)", ""),
    ("style", "src/base/x.c", BODY % "fprintf(stderr, s)", "stderr"),
    ("style", "src/base/x.c", BODY % "atomic_thread_fence(o)", "fence"),
    ("style", "src/base/x.c", BODY % "volatile int i", "volatile"),
    ("style", "src/base/x.c", BODY % "__asm__ volatile(\"\")", ""),
    ("style", "src/base/x.c", TOP + "#if HEDDLE_WITH_CUDA\n#endif\n", "#if"),
    ("style", "src/base/x.c", TOP + '#include "heddle_config.h"\n',
     "registries"),
    ("style", "src/base/x.c", TOP + '#include "heddle_config.h"\n'
     '#include "base/x.def"\nint x[] = {HEDDLE_WITH_CUDA};\n', ""),
    ("style", "src/base/x.c", TOP + "/* TO" "DO */\n", "finish it"),
    ("style", "src/base/x.c", "int x;\n", "SPDX"),
    ("style", "src/base/x.c", TOP.split("\n")[0] + "\nint x;\n", "file-top"),
    ("style", "src/base/x.c", TOP + "int x; \n", "blank"),
    ("style", "src/base/x.c", TOP + "\tint x;\n", "tab"),
    ("style", "src/base/x.c", BODY % ("a;\n    " * 70), ""),
    ("style", "src/base/x.c", BODY % ("a;\n    " * 90), "lines"),
    ("style", "src/base/x.cu", BODY % ("a;\n    " * 110), ""),
    ("style", "tools/x.c", BODY % ("a;\n    " * 90), ""),
    ("style", "tools/x.c", BODY % ("a;\n    " * 110), "lines"),
    ("style", "src/base/x.c", TOP + "int x;\n" * 700, ""),
    ("style", "src/base/x.c", TOP + "int x;\n" * 800, "over 800"),
    ("style", "tests/x.mjs", "x;" * 51 + "\n", "over 100 columns"),
    ("style", "src/base/x.h", TOP + "int x;\n" * 400, ""),
    ("style", "src/base/x.h", TOP + "int x;\n" * 450, "over 450"),
    ("walk", "src/base/x.c", TOP, ""),
    ("walk", "ARCHITECTURE.md", WALK % ("6. it `core/y.c: heddle_y`\n", ""),
     "a step begins with"),
    ("walk", "ARCHITECTURE.md", WALK % ("6. `core/z.c: heddle_y`\n", ""),
     "no file core/z.c"),
    ("walk", "ARCHITECTURE.md", WALK % ("6. `base/x.c: heddle_x`\n", ""),
     "leads to heddle_x"),
    ("walk", "ARCHITECTURE.md", WALK % ("6. `core/y.c: heddle_x`\n", ""),
     "does not define heddle_x"),
    ("walk", "src/core/y.c", TOP + "int heddle_y(void);\n"
     "/* int heddle_y(void) { */\nint x(void) { return heddle_y(); }\n",
     "does not define heddle_y"),
    ("walk", "ARCHITECTURE.md", WALK.replace(STEPS, "", 1) % ("", ""),
     "a walk of 0 steps"),
    ("walk", "ARCHITECTURE.md", "## Where is what\n", "0 walks"),
    ("walk", "ARCHITECTURE.md", WALK % ("", "| y | `core/y.c`, `z.c` |\n"),
     "there is no core/z.c"),
    ("walk", "ARCHITECTURE.md", WALK % ("", "| y | `core/z*.c` |\n"),
     "there is no core/z*.c"),
    ("walk", "ARCHITECTURE.md", WALK % ("", "| y | `core/y*.c`, `core/` |\n"),
     ""),
] + [("style", "src/base/x.c", BODY % (name + "(p)"), name) for name in
     "strcpy strcat sprintf gets atoi rand abort exit printf malloc calloc "
     "realloc free getenv".split()]
DOCUMENTED = API % "/* Planted. */"
CASES += [("reference", "include/heddle/x.h", HEADER % text, wanted) for text, wanted in [
    (DOCUMENTED, ""),
    (API % "", "heddle_x has no comment"),
    (DOCUMENTED + "\nstruct heddle_y {\n    int a;\n};\n", "heddle_y has no comment"),
    (DOCUMENTED + "\ntypedef void (*heddle_fn)(int);\n\n", "heddle_fn has no comment"),
    (API % "/* Another's. */\n", "heddle_x has no comment"),
]]
MAP = ("# x\n\n| module | what |\n|---|---|\n%s\n"
       "| folder | what |\n|---|---|\n| `src/base` | one |\n")
GOOD = "".join(f"| {m} | one |\n" for m in ("base", "topo", "core", "draw"))
CASES += [
    ("docs", "ARCHITECTURE.md", MAP % GOOD, ""),
    ("docs", "ARCHITECTURE.md", MAP % GOOD + "[a](src/base/x.c#l) [b](https://x.y/z)\n", ""),
    ("docs", "ARCHITECTURE.md", MAP % GOOD + "[a](src/base/no.c)\n", "src/base/no.c is not there"),
    ("docs", "ARCHITECTURE.md", MAP % GOOD + "`heddle_x()`, `heddle_mine`, `heddle_*_x`\n", ""),
    ("docs", "ARCHITECTURE.md", MAP % GOOD + "`heddle_gone()`\n", "there is no heddle_gone"),
    ("docs", "ARCHITECTURE.md", MAP % GOOD.replace("| topo | one |\n", ""), "lacks topo"),
    ("docs", "ARCHITECTURE.md", MAP % (GOOD + "| none | one |\n"), "none is no module"),
    ("docs", "ARCHITECTURE.md", (MAP % GOOD).replace("src/base", "src/no"), "src/no is not there"),
    ("docs", "ARCHITECTURE.md", "# x\n", "no table"),
    ("docs", "docs/guide/01-x.md", "# 1\n", "01-x.md is not listed"),
]
# For "commits" the content is the message of a commit, and the file what it adds.
CASES += [("commits", "x", text, wanted) for text, wanted in [
    ("base: a subject\n\nThe body says why.\n", ""),
    (60 * "x" + "\n\nWhy.\n", ""),
    (61 * "x" + "\n\nWhy.\n", "61 characters"),
    ("base: a subject.\n\nWhy.\n", "ends with a dot"),
    ("base: a subject\n", "no body"),
    ("base: a subject\n\nSigned-off-by: A <a@b>\n", "no body"),
    ("base: a subject\nWhy.\n", "no empty line"),
]]


def write(tree, files):
    for name, text in files.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def build(tree):
    """Objects, a compile_commands.json and a library, without CMake."""
    entries, objects = [], []
    for source in sorted((tree / "src").rglob("*.c")):
        obj = source.with_suffix(".o")
        command = f"{CC} -fPIC -w -fvisibility=hidden -o {obj} -c {source}"
        if source.parent.name == "base":
            command += f" -include {tree}/include/heddle/x.h"
        subprocess.run(command.split(), check=True)
        entries.append({"directory": str(tree), "command": command,
                        "file": str(source), "output": str(obj)})
        objects.append(str(obj))
    (tree / "compile_commands.json").write_text(json.dumps(entries))
    subprocess.run([CC, "-shared", "-o", str(tree / "x.so"), *objects],
                   check=True)


def git(tree, *args):
    subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@x", *args],
                   cwd=tree, check=True, capture_output=True)


def commit(tree, name, message):
    """A history of a good first commit, from which the check starts, and one more."""
    git(tree, "init", "-q")
    git(tree, "commit", "-q", "--allow-empty", "-m", "start")
    git(tree, "tag", "start")
    git(tree, "add", name)
    git(tree, "commit", "-q", "--no-verify", "--cleanup=verbatim", "-m", message)


def run(tree, script):
    python = [sys.executable]
    command = {
        "layers": python + ["scripts/check_layers.py"],
        "walk": python + ["scripts/check_walk.py"],
        "routines": python + ["scripts/check_routines.py"],
        "ptx": python + ["scripts/check_ptx.py"],
        "style": python + ["scripts/check_style.py"],
        "symbols": python + ["scripts/check_symbols.py", "."],
        "exports": python + ["scripts/check_exports.py", "x.so"],
        "abi": python + ["scripts/check_abi.py", "rows", "."],
        "headers": ["sh", "scripts/check_headers.sh"],
        "reference": python + ["scripts/check_reference.py", "x.so", "page.html"],
        "docs": python + ["scripts/check_docs.py"],
        "commits": python + ["scripts/check_commits.py", ".", "start"],
    }[script]
    return subprocess.run(command, cwd=tree, capture_output=True, text=True)


def main():
    bad = 0
    for script, name, text, wanted in CASES:
        if script == "commits" and shutil.which("git") is None:
            continue
        with tempfile.TemporaryDirectory() as tmp:
            tree = pathlib.Path(tmp).resolve() / "tree"
            write(tree, CLEAN)
            shutil.copytree(ROOT / "scripts", tree / "scripts")
            write(tree, {"ptx": PTX, "routines": ROUTINES}.get(script, {}))
            write(tree, {name: text})
            if script in ("symbols", "exports", "reference"):
                build(tree)
            if script == "commits":
                commit(tree, name, text)
            got = run(tree, script)
            out = got.stdout + got.stderr
            good = got.returncode == 1 and wanted in out if wanted \
                else got.returncode == 0
            if not good:
                bad += 1
                print(f"check_{script}, {name} = {text[-60:]!r}:\n"
                      f"  wanted {wanted or 'success'!r}, got status "
                      f"{got.returncode} and: {out}")
    print(f"{len(CASES)} planted cases, {bad} wrong")
    return bad != 0


sys.exit(main())
