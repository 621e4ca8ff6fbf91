#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Every file that the tool writes: beside the target and renamed, never over an input,
# never in the place of what is no plain file, and nothing after a failure.
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"
m=$root/examples/machines/node.machine
cp "$m" node.machine

# --- one input for each command -------------------------------------------------
cat >g.graph <<'END'
heddle-plan-graph 1
name small
value 0 400000
value 1 4
value 2 4
value 3 1 result
op 0 10 out=0
op 1 20 in=0 out=1
op 2 5 in=1 out=2
op 3 1 in=0,2 out=3
end
END
cat >true.energy <<'END'
heddle-energy 1
domain package-0 idle_watts 90 device cpu
domain gpu0 idle_watts 55 device gpu0
domain gpu1 idle_watts 57 device gpu1
active gemm cpu watts 11.5
active gemm gpu watts 240
END
printf 'heddle-jobs 1\njob a 100\njob b 80\n' >jobs
ok plan g.graph --budget 100% -o g.plan
HEDDLE_MODELS=on "$heddle" demo --kernels plain --n 240 --nb 30 --log run.log --no-progress \
    >out 2>err ||
    wrong 'the demo'
ok bench memory --machine node.machine --tiles 12 --log sim.log
ok energy plant sim.log --model true.energy -o sim.plant --counters cpu
ok trace export run.log --format starpu -o a.rec
model=$(find cache -name '*.model' | head -n 1)
[ -s "$model" ] || wrong 'no file of models'

# commands: lines of an input, and a command that reads it and writes OUT.
cat >commands <<END
g.graph plan g.graph --budget 100% -o OUT
g.graph plan exact g.graph --budget 100% -o OUT
g.plan plan show g.plan -o OUT
$model model plot -o OUT
run.log trace export run.log --format chrome -o OUT
a.rec trace import a.rec -o OUT
run.log trace view run.log -o OUT
true.energy trace view run.log --energy-model true.energy -o OUT
run.log trace bound run.log -o OUT
run.log trace placement run.log -o OUT
run.log trace schedule run.log --time 1ms -o OUT
run.log trace schedule run.log --time 1ms --placement OUT
node.machine trace schedule run.log --time 1ms --machine node.machine -o OUT
sim.plant energy fit sim.plant --bootstrap 0 -o OUT
sim.log energy plant sim.log --model true.energy -o OUT
true.energy energy plant sim.log --model true.energy -o OUT
true.energy energy frontier sim.log --model true.energy --time 10ms -o OUT
jobs energy place jobs --machines 2 --alpha 1 -o OUT
node.machine sim --machine node.machine --log OUT -- true
jobs sim --machine node.machine --log OUT -- cat jobs
node.machine bench memory --machine node.machine --tiles 4 --log OUT
END
# Of other commands --log and --page, which have no input.
cat >logs <<'END'
demo --n 64 --no-progress --log OUT
demo --n 64 --no-progress --log kept.log --page OUT
hpl --n 64 --log OUT
bench tasks --tasks 10 --reps 1 --shape chain --log OUT
bench log --tasks 10 --reps 1 --log OUT
bench potrf --n 64 --log OUT
END

# words OUT LINE: the words of a line, OUT put in.
words() {
    echo "$2" | sed "s,OUT,$1,"
}

nothing_left() {
    [ -z "$(find . -name '.heddle-*')" ] || wrong "heddle $*: a folder is left behind"
}

# refused INPUT LINE: as itself, behind a link, and as another name of the same file.
refused() {
    cp "$1" before
    ln -f "$1" hard
    ln -sf "$1" soft
    for o in "$1" ./hard soft; do
        # shellcheck disable=SC2046
        fails 2 'is an input and would be overwritten' $(words "$o" "$2")
    done
    cmp -s "$1" before || wrong "heddle $2: the input has changed"
    [ -h soft ] || wrong "heddle $2: the link is gone"
}

while read -r input line; do
    refused "$input" "$line"
    rm -f hard soft
done <commands

# --- what is no plain file --------------------------------------------------------
mkdir folder
ln -s nowhere loose
ln -s /dev/full full
cut -d ' ' -f 2- commands | cat - logs >lines
while read -r line; do
    # shellcheck disable=SC2046
    fails 2 'is a folder' $(words folder "$line")
    # shellcheck disable=SC2046
    fails 2 'leads nowhere' $(words loose "$line")
    if [ -c /dev/full ]; then
        # shellcheck disable=SC2046
        fails 2 'no plain file' $(words full "$line")
    fi
done <lines
[ -h full ] && [ -h loose ] && [ ! -e nowhere ] || wrong 'what is no file was touched'
[ -z "$(ls folder)" ] || wrong 'a file in the folder'

# --- a disk that is full ----------------------------------------------------------
# limited LINE: exit status 1 and one sentence when no file may have a byte.
limited() {
    # shellcheck disable=SC2046
    (
        ulimit -f 0
        "$heddle" $(words kept "$1") 2>&1 >/dev/null
        echo "status $?"
    ) | cat >err
    grep -q '^status 1$' err || wrong "heddle $1, disk full: another status"
    [ "$(wc -l <err)" -eq 2 ] || wrong "heddle $1, disk full: not one sentence"
    grep -q "^heddle: .*kept.* cannot be written" err || wrong "heddle $1, disk full: no reason"
    nothing_left "$1"
}
for old in yes no; do
    rm -f kept
    [ $old = no ] || printf 'heddle-energy 1\n' >kept
    cut -d ' ' -f 2- commands | grep -v '^plan exact\|^sim\|^bench' >small
    while read -r line; do
        limited "$line"
        if [ $old = yes ]; then
            [ "$(cat kept)" = 'heddle-energy 1' ] || wrong "heddle $line: the old file is gone"
        else
            [ ! -e kept ] || wrong "heddle $line: a file in spite of a full disk"
        fi
    done <small
done

# --- in place ---------------------------------------------------------------------
cut -d ' ' -f 2- commands | grep -v '^plan exact\|^sim\|^bench' >small
while read -r line; do
    # shellcheck disable=SC2046
    "$heddle" $(words fresh "$line") >out 2>err || wrong "heddle $line"
    [ -s fresh ] || wrong "heddle $line: nothing was written"
    nothing_left "$line"
    # shellcheck disable=SC2046
    "$heddle" $(words /dev/null "$line") >out 2>err || wrong "heddle $line, /dev/null"
    [ -c /dev/null ] || wrong "heddle $line: /dev/null is gone"
    mkfifo pipe
    wc -c <pipe >bytes &
    # shellcheck disable=SC2046
    "$heddle" $(words pipe "$line") >out 2>err || wrong "heddle $line, a pipe"
    wait $!
    [ -p pipe ] || wrong "heddle $line: the pipe is gone"
    [ "$(cat bytes)" -gt 0 ] || wrong "heddle $line: nothing in the pipe"
    rm -f fresh pipe
done <small
"$heddle" trace export run.log --format chrome -o /dev/stdout >out 2>err || wrong 'stdout'
python3 -m json.tool out >/dev/null || wrong '/dev/stdout: no JSON'

# A link stays one, and so do the rights of the file.
ok trace view run.log -o page
chmod 640 page
ln -s page link
ok trace view run.log -o link
[ -h link ] && [ "$(stat -c %a page)" = 640 ] || wrong 'the link or the rights are gone'

# Two outputs in one file, and a name with a line break.
fails 2 'one file' demo --n 64 --log same --page same
fails 2 'one file' trace schedule run.log -o same --placement same
fails 1 'new\\nline/x' trace view run.log -o "new
line/x"
fails 2 'there is no command' "no
such"

# Nobody asked for more.
for f in *; do
    case $f in
    *.cert | heddle-demo.log) wrong "nobody asked for $f" ;;
    esac
done
finish
