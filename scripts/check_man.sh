#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# check_man.sh [ROOT]: mandoc has no complaint about the man pages.
set -eu
cd "${1:-.}"
if ! command -v mandoc >/dev/null; then
    echo 'skipped: mandoc is not installed'
    exit 77
fi
list=$(find docs/man -name '*.[1-9]' 2>/dev/null | sort || true)
if [ -z "$list" ]; then
    echo 'skipped: no man page'
    exit 77
fi
# shellcheck disable=SC2086
mandoc -T lint -W warning $list
