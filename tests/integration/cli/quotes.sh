#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Code in README.md and docs/guide is quoted from the examples, which are
# compiled and run: every block of C or CUDA is found there, word for word.
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"

python3 - "$root" <<'END' >out 2>&1 || wrong 'a block is not in the examples'
import glob, re, sys
root = sys.argv[1]
code = [open(f).read() for f in sorted(glob.glob(root + "/examples/*.c*"))]
bad = 0
for page in [root + "/README.md"] + sorted(glob.glob(root + "/docs/guide/*.md")):
    for block in re.findall(r"^```c(?:uda)?\n(.*?)^```", open(page).read(), re.S | re.M):
        if not any(block in c for c in code):
            print(page[len(root) + 1:] + ": not in examples/:\n" + block)
            bad = 1
sys.exit(bad)
END
finish
