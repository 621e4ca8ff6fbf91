#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# scripts/gpu-check: options, the table, what counts as a failure. A script takes
# the place of the command heddle, so this needs neither a GPU nor a build.
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"

check=$root/scripts/gpu-check
mkdir -p b
cat >b/heddle <<'END'
#!/bin/sh
case "$*" in
info*) echo "  cuda0 a GPU of paper" ;;
*fuzz*)
    while [ $# -gt 0 ]; do
        [ "$1" != --seeds ] || n=$2
        [ "$1" != --faults ] || faults=yes
        shift
    done
    [ -z "${SLOW:-}" ] || sleep 20
    if [ -n "${BAD:-}${faults:+${BAD_FAULTS:-}}" ]; then
        echo "to repeat: heddle bench fuzz --first 3"
        echo "$n runs, 0 hangs, 1 wrong, 0 leaks (cuda)"
        exit 1
    fi
    echo "$((n - ${LESS:-0})) runs, 0 hangs, 0 wrong, 0 leaks (cuda)"
    ;;
*cuda*) echo '{"name":"cuda"}' ;;
esac
END
chmod +x b/heddle

# run STATUS WORD ARGS: exit status, and a word in the output.
run() {
    want=$1
    word=$2
    shift 2
    "$check" --build b "$@" >out 2>err
    rc=$?
    [ $rc -eq "$want" ] || wrong "gpu-check $*: exit status $rc, not $want"
    cat err >>out
    has "$word"
}

run 0 '^usage' --help
run 2 "no part 'x'" --only info,x
run 2 'takes a number' --seeds many
run 2 "no option '--nonsense'" --nonsense 1
run 2 'lacks its value' --seeds
if [ ! -e /dev/nvidiactl ] && [ ! -e /dev/nvidia0 ] && [ ! -e /dev/dxg ]; then
    run 77 'no NVIDIA GPU'
fi

HEDDLE_CUDA_LIBRARY=$dir/paper
export HEDDLE_CUDA_LIBRARY
run 0 '^info *passed .* cuda0 a GPU of paper' --only info
run 0 '^fuzz *passed .* 10 runs, 0 hangs' --only fuzz,faults --seeds 10
has '^faults *passed .* 10 runs, 0 hangs'
run 0 '^fuzz *passed .* 2 runs' --only fuzz --seeds 2 --procs 7
run 0 '^bench *passed' --only bench --out o
grep -q '"cuda"' o/bench.json || wrong 'no bench.json in the folder asked for'

# One part fails, the others still run.
BAD_FAULTS=1 run 1 '^faults *FAILED .* wrong' --only fuzz,faults,info --seeds 8
has '^fuzz *passed'
has 'to repeat: heddle bench fuzz --first 3'
LESS=1 run 1 '^fuzz *FAILED' --only fuzz --seeds 8
SLOW=1 run 1 '^fuzz *TIME OUT' --only fuzz --seeds 4 --limit 1
rm b/heddle
run 1 'build it first' --only info
finish
