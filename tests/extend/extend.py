#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""extend.py SOURCE WORK: what CONTRIBUTING.md says under "How to add", done for real.

In a copy of the tree a scheduler, a planner's solver, a command, an access mode, a kind of device,
a dense routine and an operator of networks are added as that page says, and nothing else is
touched. The copy is built, and each of the seven is used. Prints the files that each has touched.

1. a scheduler, a solver, a command: a file, and a line of a table
2. an access mode: its constant, and its row (what it does is that of another mode)
3. a kind of device: a folder (twin/), and a row
4. a dense routine: a file, a row, its declaration; a script writes the guide's table
5. an operator: a file with its rows, and a line; a model that has the operator runs
"""
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
NEW = "exercise"


def run(*args, env=None, **more):
    """What a command prints; ends the test when the command fails."""
    full = {**os.environ, **(env or {})}
    done = subprocess.run([str(a) for a in args], env=full, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)
    if done.returncode != 0:
        print(done.stdout[-4000:])
        sys.exit(f"{' '.join(map(str, args))}: status {done.returncode}")
    return done.stdout


def need(text, word):
    if word not in text:
        sys.exit(f"'{word}' is not in:\n{text[:4000]}")


def add_after(path, pattern, line):
    """One line more, behind the last one that begins with `pattern`."""
    lines = path.read_text().splitlines(keepends=True)
    at = max(i for i, text in enumerate(lines) if re.match(pattern, text))
    lines.insert(at + 1, line + "\n")
    path.write_text("".join(lines))


def add_plugin(tree, folder, model, table, macro):
    """A copy of a small plug-in under another name, and its line."""
    text = (tree / folder / f"{model}.c").read_text()
    named = re.compile(rf'(heddle_[a-z_]+_|"|heddle ){model}\b')
    (tree / folder / f"{NEW}.c").write_text(named.sub(rf"\g<1>{NEW}", text))
    add_after(tree / folder / table, macro, f"{macro}({NEW}, 1)")


def add_scheduler(tree):
    add_plugin(tree, "src/sched", "eager", "sched.def", "HEDDLE_SCHED")


def add_solver(tree):
    add_plugin(tree, "src/plan/solve", "keep", "solver.def", "HEDDLE_PLAN_SOLVER")


def add_command(tree):
    add_plugin(tree, "tools/heddle/cmd", "hpl", "cmd.def", "HEDDLE_CMD")


def add_mode(tree):
    add_after(tree / "include/heddle/data.h", r"    HEDDLE_RW = 3", "    HEDDLE_EXERCISE = 5,")
    add_after(tree / "src/base/mode.h", r"    X\(a, RW,",
              '    X(a, EXERCISE, "RWE", "an exercise", HEDDLE_READS | HEDDLE_WRITES |'
              " HEDDLE_ORDERED | HEDDLE_SHARED | HEDDLE_IN_TURN) \\")


def add_kind(tree):
    shutil.copytree(HERE / "twin", tree / "src/drive/twin")
    add_after(tree / "include/heddle/device.h", r"    X\(cuda,", "    X(twin, TWIN, 4, 1) \\")


def add_routine(tree):
    """A copy of trtrs, which has a file, a row and a declaration as well."""
    text = (tree / "src/la/tri/trtrs.c").read_text()
    (tree / f"src/la/tri/{NEW}.c").write_text(text.replace("trtrs", NEW))
    add_after(tree / "src/la/routines.def", r"LA_ROUTINE\(trtrs,",
              f'LA_ROUTINE({NEW}, tri/{NEW}, 0, 0, n * n * r, "an exercise")')
    header = tree / "include/heddle/la.h"
    text = header.read_text()
    call = re.search(r"^HEDDLE_API [^;]*\bheddle_la_trtrs\([^;]*;\n", text, re.M)
    header.write_text(text[:call.end()] + call[0].replace("trtrs", NEW) + text[call.end():])
    run(sys.executable, tree / "scripts/check_routines.py", "--fix", tree)
    run(sys.executable, tree / "scripts/check_routines.py", tree)


def add_operator(tree):
    """A copy of Trilu, under the name Exercise."""
    text = (tree / "src/nn/op/trilu.c").read_text()
    (tree / f"src/nn/op/{NEW}.c").write_text(
        text.replace('"Trilu"', '"Exercise"').replace("trilu", NEW))
    add_after(tree / "src/nn/op/op.def", r"HEDDLE_NN_OP\(einsum,", f"HEDDLE_NN_OP({NEW}, 1)")


def message(*fields):
    """A message of protobuf: (number, an integer below 128, a text or a message) each."""
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += bytes([number << 3, value])
        else:
            value = value.encode() if isinstance(value, str) else value
            out += bytes([number << 3 | 2, len(value)]) + value
    return out


def operator_model():
    """An ONNX model: y = Exercise(x), both 3 x 3 floats."""
    def port(name):
        dim = (1, message((1, 3)))
        return message((1, name), (2, message((1, message((1, 1), (2, message(dim, dim)))))))

    node = message((1, "x"), (2, "y"), (4, "Exercise"))
    graph = message((1, node), (2, NEW), (11, port("x")), (12, port("y")))
    return message((1, 8), (7, graph), (8, message((1, ""), (2, 17))))


def snapshot(tree):
    return {p.relative_to(tree): p.read_bytes() for p in tree.rglob("*") if p.is_file()}


def copy_tree(source, tree):
    for name in ("CMakeLists.txt", "CMakePresets.json", "LICENSE", "VERSION"):
        shutil.copy(source / name, tree / name)
    for name in ("cmake", "docs", "include", "scripts", "src", "tools"):
        shutil.copytree(source / name, tree / name)


def build(tree, out):
    run("cmake", "-S", tree, "-B", out, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug",
        "-DCMAKE_C_FLAGS_DEBUG=-O0", "-DBUILD_TESTING=OFF", "-DHEDDLE_WITH_HWLOC=OFF",
        "-DHEDDLE_WITH_BLAS=OFF", "-DHEDDLE_WITH_CUDA=OFF", "-DHEDDLE_WITH_OPENCL=OFF")
    run("cmake", "--build", out, "--target", "heddle")


def program(source, tree, out, name):
    """A program of this folder, as any outside one."""
    exe = out / name
    run(os.environ.get("CC", "cc"), "-std=gnu11", "-Wall", "-Werror", f"-I{tree / 'include'}",
        f"-I{source / 'tests'}", HERE / f"{name}.c", "-o", exe, f"-L{out}", "-lheddle", "-lm",
        "-lpthread", f"-Wl,-rpath,{out}")
    return exe


def use(source, tree, out):
    tool = out / "heddle"
    info = run(tool, "info", env={"HEDDLE_TWIN_LIBRARY": "libtwin.so", "HEDDLE_DEVICES": "twin"})
    need(info, NEW)     # the scheduler
    need(info, "twin0")  # the kind
    need(run(tool, "bench", "tasks", "--tasks", "2000", "--reps", "1", "--json",
             "--sched", NEW), f'"sched":"{NEW}"')
    need(run(tool, "help"), NEW)
    need(run(tool, NEW, "--help"), f"heddle {NEW}")
    need(run(tool, "plan", "--help"), NEW)

    graph = out / "exercise.chain"
    graph.write_text("2\n0 10 20\n15 20\n1 2\n3 4\n")
    need(run(tool, "plan", graph, "--budget", "300%", "--solver", NEW), NEW)

    need(run(program(source, tree, out, "routine_use")), f"{NEW}: an exercise")

    need(run(tool, "nn", "ops"), "Exercise")
    model = out / "exercise.onnx"
    model.write_bytes(operator_model())
    run(tool, "run", model, "--random", "--output", out / "exercise_out")
    y = struct.unpack("<9f", (out / "exercise_out/output_0.npy").read_bytes()[-36:])
    if any((v != 0) != (i % 3 >= i // 3) for i, v in enumerate(y)):
        sys.exit(f"the operator makes {y}")

    log = out / "mode.log"
    run(program(source, tree, out, "mode_use"), log)
    run(tool, "trace", "export", log, "--format", "starpu", "-o", out / "mode.rec")
    need((out / "mode.rec").read_text(), "RWE")

    machine = out / "twin.machine"
    machine.write_text("heddle-machine 1\nnode twin0 bytes 1G\n"
                       "class cpu kind cpu workers 2 gflops 10\n"
                       "class twin0 kind twin workers 1 node twin0 gflops 100\n"
                       "duplex host twin0 gbytes 10\n"
                       "time anywhere cpu 512 5\ntime anywhere twin 512 1\n")
    print(run(program(source, tree, out, "twin_use"),
              env={"HEDDLE_TWIN_LIBRARY": "libtwin.so", "TWIN_MACHINE": str(machine)}), end="")


ADD = (("a scheduler", add_scheduler, 2), ("a planner's solver", add_solver, 2),
       ("a command", add_command, 2), ("an access mode", add_mode, 2),
       ("a kind of device", add_kind, 3), ("a dense routine", add_routine, 4),
       ("an operator", add_operator, 2))


def main():
    source, work = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
    tree, out = work / "tree", work / "build"
    shutil.rmtree(work, ignore_errors=True)
    tree.mkdir(parents=True)
    copy_tree(source, tree)
    for what, add, most in ADD:
        before = snapshot(tree)
        add(tree)
        after = snapshot(tree)
        touched = sorted(str(p) for p in after if before.get(p) != after[p])
        print(f"{what}: {', '.join(touched)}")
        if len(touched) > most:
            sys.exit(f"{what} touches {len(touched)} files, more than {most}")
    build(tree, out)
    use(source, tree, out)
    shutil.rmtree(work)


main()
