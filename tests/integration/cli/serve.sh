#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# heddle serve: networks behind HTTP, from start to SIGTERM.
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"

fails 2 'serve needs a MODEL' serve
fails 2 "'=m.onnx' gives the model no name" serve =m.onnx
needs_http
fails 1 none.onnx serve none.onnx
python3 "$here/serve.py" "$heddle" "$root" || exit $?
finish
