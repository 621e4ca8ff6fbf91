#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# heddle serve: tokens of a decoder, many sequences at once, streams, clients that go away.
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"

needs_http
python3 "$here/serve_generate.py" "$heddle" "$root" || exit $?
finish
