#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# run.sh SCRIPT [ARGUMENT...]: a test of the trace page, or 77 without node.
if ! command -v node >/dev/null 2>&1; then
    echo "skipped: no node here"
    exit 77
fi
major=$(node -p 'process.versions.node.split(".")[0]')
if [ "$major" -lt 18 ]; then
    echo "skipped: node $major is too old, 18 is needed"
    exit 77
fi
exec node "$@"
