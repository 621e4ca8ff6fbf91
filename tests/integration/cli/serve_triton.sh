#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# heddle serve under PyPI's tritonclient[http], which knows nothing of Heddle.
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"

needs_http
python3 -c 'import tritonclient.http' 2>/dev/null || {
    echo 'skipped: no tritonclient'
    exit 77
}
python3 "$here/serve_triton.py" "$heddle" "$root" || exit $?
finish
