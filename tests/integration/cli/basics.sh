#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Version, help, usage: of the tool and of every command and benchmark.
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"

ok --version
[ "$(cat out)" = "heddle $(cat "$root/VERSION")" ] || wrong 'the version'

ok --help
cmp -s out "$here/help.golden" || {
    diff "$here/help.golden" out
    wrong 'help differs from help.golden'
}
ok -h
ok help
cmp -s out "$here/help.golden" || wrong 'help is not --help'

ok version
has '^heddle [0-9]'
cp out version.out
ok --version
cmp -s out version.out || wrong 'heddle version is not heddle --version'
json 1 version
holds "r[0]['version'] and r[0]['compiler']"

for c in info demo bench hpl trace model sim calibrate version; do
    ok $c --help
    head -n 1 out | grep -q "^heddle $c: " || wrong "$c --help"
    has "^heddle $c "
    has '--json'
    cp out "$c.help"
    ok help $c
    cmp -s out "$c.help" || wrong "'help $c' is not '$c --help'"
done

ok bench --help
for b in $(sed -n -e 's/^HEDDLE_BENCH(\([a-z]*\), 1)$/\1/p' \
    -e 's/^HEDDLE_BENCH_LA(\([a-z_]*\),.*$/\1/p' \
    "$root/tools/heddle/bench/bench.def" "$root/tools/heddle/bench/la/la.def"); do
    grep -q "^  $b " bench.help || wrong "benchmark $b is not in the list"
    ok bench "$b" --help
    head -n 1 out | grep -q "^heddle bench $b: " || wrong "bench $b --help"
    ok help bench "$b"
    # Every long option of the usage is accepted: named in an error, if at all,
    # for its value and never as unknown.
    for o in $(grep -o -- '--[a-z-]*' out | sort -u); do
        "$heddle" bench "$b" "$o=" >/dev/null 2>err
        ! grep -q 'no option' err || [ "$o" = --json ] ||
            wrong "bench $b does not know $o of its usage"
    done
done

# A disk that is full is an error, not a success.
if [ -w /dev/full ]; then
    "$heddle" info >/dev/full 2>err
    rc=$?
    [ $rc -eq 1 ] || wrong "full disk: exit status $rc"
    grep -q '^heddle: ' err || wrong 'full disk: no sentence'
    "$heddle" info --json >/dev/full 2>err
    rc=$?
    [ $rc -eq 1 ] || wrong "full disk, JSON: exit status $rc"
    grep -q 'cannot be written: ' err || wrong 'full disk, JSON: no reason'
fi

# Neither is an output that is closed, and the log does not take its place.
"$heddle" demo --n 100 --nb 20 --log closed.log >&- 2>err
rc=$?
[ $rc -eq 1 ] || wrong "closed output: exit status $rc"
[ "$(wc -l <err)" -eq 1 ] || wrong 'closed output: not one sentence'
ok trace info closed.log
! grep -q '^partial' out || wrong 'closed output: the log is damaged'
finish
