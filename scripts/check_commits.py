#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_commits.py [ROOT [START]]: the form of the commit messages after START.

A subject of at most 60 characters without a dot at its end, an empty line, and a
body that says why. Merges are left out. START is the commit from which on the rule
holds; without git, or where the history does not reach back to START (an export,
a shallow clone), the check is skipped: status 77.
"""
import pathlib
import subprocess
import sys

SUBJECT = 60
START = "7552e4f2f24fbcad2b8b2cc5209eacce223e027c"
# Lines that git or a mail program adds below a body; they say who, not why.
TRAILERS = ("signed-off-by:", "co-authored-by:", "reviewed-by:", "(cherry picked")

root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
start = sys.argv[2] if len(sys.argv) > 2 else START


def git(*args):
    """The output of a git command, or None where it fails or git is missing."""
    try:
        done = subprocess.run(["git", "-C", str(root), *args], capture_output=True,
                              encoding="utf-8", errors="replace")
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def faults(message):
    """What is wrong with one message, a sentence each."""
    lines = message.rstrip("\n").split("\n")
    subject, rest = lines[0], lines[1:]
    if len(subject) > SUBJECT:
        yield f"the subject has {len(subject)} characters, at most {SUBJECT} are allowed"
    if subject.endswith("."):
        yield "the subject ends with a dot"
    if rest and rest[0].strip():
        yield "no empty line after the subject"
    body = [line for line in rest if line.strip()]
    if all(line.lower().startswith(TRAILERS) for line in body):
        yield "no body: say why the change was made"


def main():
    top = git("rev-parse", "--show-toplevel")
    if top is None or pathlib.Path(top.strip()).resolve() != root \
            or git("merge-base", "--is-ancestor", start, "HEAD") is None:
        print(f"skipped: no git history from {start[:12]} on")
        return 77
    log = git("log", "--no-merges", "--format=%H%x00%B%x01", f"{start}..HEAD")
    bad = 0
    for entry in filter(str.strip, log.split("\x01")):
        name, message = entry.lstrip("\n").split("\x00")
        for fault in faults(message):
            bad += 1
            print(f"{name[:12]}: {fault}: {message.splitlines()[0]!r}")
    return bad != 0


sys.exit(main())
