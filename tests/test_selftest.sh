#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Checks test.h: exit status and message of each kind of test.
set -u
prog=$1
bad=0

# expect STATUS TEXT ARGS...: runs the program, compares both.
expect() {
    want=$1
    text=$2
    shift 2
    out=$("$prog" "$@" 2>&1)
    got=$?
    if [ "$got" -ne "$want" ]; then
        echo "$*: exit status $got, wanted $want"
        bad=1
    fi
    case $out in
    *"$text"*) ;;
    *)
        echo "$*: no '$text' in: $out"
        bad=1
        ;;
    esac
}

unset HEDDLE_SEED
expect 0 'ok   pass' pass
expect 0 'fail_thread' --list
expect 0 'ok   pass' pass skip
expect 77 'skip skip: nothing to see' skip
expect 1 'no such test' nonsense
expect 1 'test_selftest.c:' fail
expect 1 'failed: 1 == 2' fail
expect 1 'HEDDLE_SEED=' fail
expect 1 'HEDDLE_SEED=4711' own_seed
expect 1 'left  3 (0x3)' fail_eq
expect 1 'right NULL' fail_str
expect 1 'right nan' fail_near
expect 1 'HEDDLE_ENOMEM (-2)' fail_status
expect 1 'in test fail_thread' fail_thread
expect 1 'failed' # all of them: stops at the first failure
HEDDLE_SEED=99
export HEDDLE_SEED
expect 0 'seed 99' seed
expect 1 'HEDDLE_SEED=99' fail
exit $bad
