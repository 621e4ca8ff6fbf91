#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# heddle serve: tokens of a decoder, many sequences at once, streams, clients that go away.
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"

"$heddle" serve none.onnx >out 2>err
if grep -q 'no HTTP server' err; then
    echo 'skipped: this build has no HTTP server'
    exit 77
fi
python3 "$here/serve_generate.py" "$heddle" "$root" || exit $?
finish
