#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# heddle serve: networks behind HTTP, from start to SIGTERM.
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"

fails 2 'serve needs a MODEL' serve
fails 2 "'=m.onnx' gives the model no name" serve =m.onnx
"$heddle" serve none.onnx >out 2>err
case $? in
1) ;;
*) wrong 'a model that is not there' ;;
esac
if grep -q 'no HTTP server' err; then
    echo 'skipped: this build has no HTTP server'
    exit 77
fi
python3 "$here/serve.py" "$heddle" "$root" || exit $?
finish
