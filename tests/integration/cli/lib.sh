# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# What the tests of the command line share. Usage of a test: NAME.sh HEDDLE ROOT
# It is sourced with these arguments in place and changes to an empty folder.
set -u
heddle=$1
root=$2
here=$root/tests/integration/cli
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
# Nothing of the user's: no models, no settings.
XDG_CACHE_HOME=$dir/cache
HOME=$dir
export XDG_CACHE_HOME HOME here root
for v in $(env | sed -n 's/^\(HEDDLE_[A-Z_]*\)=.*/\1/p'); do
    unset "$v"
done
command -v python3 >/dev/null || {
    echo 'skipped: no python3'
    exit 77
}
# The interpreter itself: what stands in front of it may take longer than it does.
python=$(python3 -c 'import sys; print(sys.executable)')
python3() {
    "$python" "$@"
}
bad=0

# wrong WHAT: notes a failure and shows the latest output.
wrong() {
    echo "FAILED: $*"
    sed 's/^/  stdout: /' out 2>/dev/null | head -n 20
    sed 's/^/  stderr: /' err 2>/dev/null | head -n 20
    bad=$((bad + 1))
}

# needs_http: skips the test where `heddle serve` has no HTTP server to offer.
needs_http() {
    "$heddle" serve none.onnx >out 2>err
    if grep -q -e 'no HTTP server' -e 'libmicrohttpd is not' err; then
        echo 'skipped: no libmicrohttpd'
        exit 77
    fi
}

# ok ARGS: exit status 0 and nothing on stderr.
ok() {
    "$heddle" "$@" >out 2>err
    rc=$?
    [ $rc -eq 0 ] || wrong "heddle $*: exit status $rc"
    [ ! -s err ] || wrong "heddle $*: a message on stderr"
}

# fails STATUS WORD ARGS: that status, one sentence on stderr that contains
# WORD, nothing on stdout.
fails() {
    want=$1
    word=$2
    shift 2
    "$heddle" "$@" >out 2>err
    rc=$?
    [ $rc -eq "$want" ] || wrong "heddle $*: exit status $rc, not $want"
    [ "$(wc -l <err)" -eq 1 ] || wrong "heddle $*: not one line on stderr"
    grep -q '^heddle: ' err || wrong "heddle $*: no 'heddle: ' on stderr"
    grep -q -- "$word" err || wrong "heddle $*: no '$word' on stderr"
    [ ! -s out ] || wrong "heddle $*: output in spite of the failure"
}

# json N ARGS: as ok; N lines (0: at least one), each of them JSON.
json() {
    lines=$1
    shift
    ok "$@" --json
    got=$(wc -l <out)
    if [ "$lines" -eq 0 ]; then
        [ "$got" -gt 0 ] || wrong "heddle $* --json: no output"
    else
        [ "$got" -eq "$lines" ] || wrong "heddle $* --json: $got lines"
    fi
    python3 -IS -m json.tool --json-lines <out >/dev/null 2>err ||
        wrong "heddle $* --json: not JSON"
}

# holds EXPRESSION: Python about `r`, the list of objects in the latest output.
holds() {
    python3 -IS - "$1" <<'END' >err 2>&1 || wrong "not so: $1"
import json, sys
r = [json.loads(line) for line in open("out")]
sys.exit(0 if eval("(" + sys.argv[1] + ")") else 1)
END
}

has() {
    grep -q -- "$1" out || wrong "no '$1' in the output"
}

# The last line of every test.
finish() {
    [ $bad -eq 0 ] || echo "$bad failures"
    [ $bad -eq 0 ]
}
