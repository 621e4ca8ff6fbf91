#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# check_man3.sh PYTHON ROOT: the man pages that are made from the headers. mandoc has no
# complaint, and every function of the public headers has a page that leads to one which
# names it.
set -eu
root=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
PYTHONDONTWRITEBYTECODE=1 "$1" "$root/scripts/reference.py" --man "$dir" "$root"
if ! command -v mandoc >/dev/null; then
    echo 'skipped: mandoc is not installed'
    exit 77
fi
bad=0
for f in "$dir"/*.3; do
    page=$(sed -n 's,^\.so man3/,,p' "$f")
    name=$(basename "$f" .3)
    if [ -z "$page" ]; then
        mandoc -T lint -W warning "$f" || bad=1
    elif ! grep -qE "^\.Nm $name( ,)?\$" "$dir/$page"; then
        echo "$page does not name $name"
        bad=1
    fi
done
for name in $(cat "$root"/include/heddle/ctx.h "$root"/include/heddle/la.h |
    grep -o '\bheddle_[a-z0-9_]*(' | tr -d '(' | sort -u); do
    [ -s "$dir/$name.3" ] || { echo "$name has no page"; bad=1; }
done
exit $bad
