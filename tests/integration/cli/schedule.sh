#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# heddle trace schedule, trace placement and bench offline; a log is replayed.
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"
m=$root/examples/machines/node.machine

json 1 bench memory --machine "$m" --workload cholesky --tiles 7 \
    --budget 100% --policy heft --log run.log
ntasks=84

# Every policy makes a schedule that is not below the bound.
for p in heft heft-min heft-area dmdas peft fastest balanced heteroprio dualhp \
    hlp shares fixed best runtime:plan runtime:heft runtime:multiprio; do
    json 1 trace schedule run.log --policy $p --time 100ms
    holds "r[0]['policy'] == '$p' and r[0]['tasks'] == $ntasks"
    holds "r[0]['ratio'] >= 1 - 1e-9 and r[0]['bound'] > 0"
    holds "r[0]['makespan'] / r[0]['bound'] - r[0]['ratio'] < 1e-9"
done
# The search is no worse than what it starts from, and the same twice.
json 1 trace schedule run.log --policy heft
mv out heft
json 1 trace schedule run.log --iterations 50 --time 1h -o best.log \
    --placement best.place
mv out first
json 1 trace schedule run.log --iterations 50 --time 1h
holds "r[0]['makespan'] <= json.load(open('heft'))['makespan']"
holds "r[0]['makespan'] == json.load(open('first'))['makespan']"
holds "r[0]['recorded'] >= r[0]['bound']"
ok trace schedule run.log --time 50ms
has '^makespan '
has '^bound '

# The result is a log.
json 1 trace info best.log
holds "r[0]['executed'] == $ntasks and r[0]['info']['scheduler'] == 'best'"
holds "abs(r[0]['makespan_ns'] * 1e-9 - json.load(open('first'))['makespan'])
    < 2e-9"
json 1 trace bound best.log
holds "r[0]['tasks'] == $ntasks and 0 < r[0]['efficiency'] <= 1"
json 1 trace schedule best.log --policy fixed
holds "abs(r[0]['makespan'] - json.load(open('first'))['makespan']) < 1e-6"
# And a placement: every task once, in a place the log has.
[ "$(grep -vc '^#' best.place)" -eq $ntasks ] || wrong 'placement: lines'
json 1 trace placement best.log -o again.place
holds "r[0]['tasks'] == $ntasks"
grep -v '^#' best.place | sort -n | cut -d' ' -f1,2 >a
grep -v '^#' again.place | sort -n | cut -d' ' -f1,2 >b
cmp -s a b || wrong 'the placement of the log differs'

# More hardware is not slower, and the bound knows it.
json 1 trace schedule run.log --policy heft --what-if gpus=+2
holds "r[0]['makespan'] < json.load(open('heft'))['makespan']"
holds "r[0]['bound'] < json.load(open('heft'))['bound']"
holds "sum(t['workers'] for t in r[0]['types']) == 18"
for what in =3,3 =1,1 =-1,1 =x2,4 =+0,2; do
    json 1 trace schedule run.log --policy heft --what-if "gpus${what%,*}"
    holds "sum(t['workers'] for t in r[0]['types'] if t['name'] != 'cpu') ==
        ${what#*,}"
done
json 1 trace schedule run.log --policy heft --what-if gpus=+2 -o more.log
json 1 trace info more.log
holds "sum(l['tasks'] > 0 for l in r[0]['lanes'] if l['kind'] == 'device') == 4"
json 1 trace schedule run.log --policy heft --what-if speed.gpu0=x2,speed.gpu1=x2
holds "r[0]['bound'] < json.load(open('heft'))['bound']"
json 1 trace schedule run.log --policy heft --what-if kernel.gemm=x4
holds "r[0]['bound'] < json.load(open('heft'))['bound']"
json 1 trace schedule run.log --policy heft --what-if workers.cpu=1,cpus=+1
holds "{t['name']: t['workers'] for t in r[0]['types']}['cpu'] == 2"
# Another machine; its links.
json 1 trace schedule run.log --policy heft --machine "$m"
mv out free
json 1 trace schedule run.log --policy heft --machine "$m" --transfers
mv out slow
json 1 trace schedule run.log --policy heft --machine "$m" --transfers \
    --what-if links=x100
holds "json.load(open('free'))['makespan'] <= r[0]['makespan'] * (1 + 1e-9)"
holds "r[0]['makespan'] <= json.load(open('slow'))['makespan'] * 1.05"
json 1 trace schedule run.log --machine "$root/examples/machines/laptop.machine" \
    --time 50ms -o other.log
json 1 trace bound other.log

fails 2 'needs the file' trace schedule
fails 2 'no policy' trace schedule run.log --policy nonsense
fails 2 'no scheduler' trace schedule run.log --policy runtime:nonsense
fails 2 'not a time' trace schedule run.log --time soon
fails 2 'durations' trace schedule run.log --durations guessed
fails 2 'is an input' trace schedule run.log -o run.log
fails 2 'is an input' trace placement run.log -o run.log
fails 2 'needs -o' trace placement run.log
fails 2 'none of' trace schedule run.log --what-if magic=x2
fails 2 'made of words' trace schedule run.log --what-if gpus
fails 2 'made of words' trace schedule run.log --what-if gpus=many
fails 2 'no type' trace schedule run.log --what-if workers.fpga=3
fails 2 'no kernel' trace schedule run.log --what-if kernel.nothing=x3
fails 2 'whole number' trace schedule run.log --what-if cpus=-99
fails 2 'there are 2' trace schedule run.log --what-if gpus=-3
fails 2 'there are 2' trace schedule run.log --what-if gpus=1.5
fails 1 'can run on no type' trace schedule run.log --what-if gpus=0
fails 2 'transfers' trace schedule run.log --what-if links=x2
fails 2 'machine' trace schedule run.log --transfers
fails 1 'can run on no type' trace schedule run.log \
    --what-if workers.cpu=0,workers.gpu0=0,workers.gpu1=0
fails 1 'cannot be' trace schedule run.log --time 1ms -o /nowhere/x.log
fails 1 'cannot be' trace schedule run.log --time 1ms --placement /nowhere/x
fails 2 'one file' trace schedule run.log -o both --placement both
if [ -w /dev/full ]; then
    ln -s /dev/full full
    fails 2 'no plain file' trace placement run.log -o full
    fails 2 'no plain file' trace schedule run.log --time 1ms --placement full
    fails 2 'no plain file' trace schedule run.log --time 1ms -o full
    [ -h full ] || wrong 'what is no file of ours was removed'
fi
fails 1 'No such file' trace schedule none.log

# A log of no tasks, one that was cut, one of cores alone.
ok demo --kernels plain --n 120 --nb 30 --log cores.log --no-progress --devices none
json 1 trace schedule cores.log --time 50ms -o again.log --placement p
json 1 trace schedule cores.log --policy runtime:ws
head -c 72 cores.log >head.log
"$heddle" trace schedule head.log --time 10ms -o no.log --placement no.place \
    >out 2>err || wrong 'a log of nothing'
has '^graph        0 tasks'
ok trace info no.log
head -c 700 cores.log >cut.log
"$heddle" trace schedule cut.log --time 10ms >out 2>err
rc=$?
[ $rc -le 1 ] || wrong "a cut log: exit status $rc"

# replays NAME PROGRAM: where tasks run, and their order on each worker, are the
# same again. A worker does not wait for what was not submitted yet, so on a
# loaded machine the order may need another try; where tasks run may not.
replays() {
    what=$1
    shift
    for try in 1 2 3 4 5; do
        HEDDLE_LOG_LEVEL=1 HEDDLE_LOG_FILE=one.log "$@" >out 2>err ||
            wrong "$what: failed"
        ok trace placement one.log -o one.place
        HEDDLE_SCHED=replay HEDDLE_PLACEMENT=one.place HEDDLE_LOG_LEVEL=1 \
            HEDDLE_LOG_FILE=two.log "$@" >out 2>err ||
            wrong "$what: the replay failed"
        ok trace placement two.log -o two.place
        for f in one two; do
            grep -v '^#' $f.place | cut -d' ' -f1,2 | sort -n >$f.where
            grep -v '^#' $f.place | sort -k2,2 -k3,3n | cut -d' ' -f1,2 \
                >$f.order
        done
        [ -s one.where ] || wrong "$what: no tasks"
        cmp -s one.where two.where || wrong "$what: tasks run elsewhere"
        cmp -s one.order two.order && return
    done
    wrong "$what: the order differs"
}
example=$(dirname "$heddle")/examples/03_cholesky
if [ -x "$example" ]; then
    HEDDLE_WORKERS=2 replays 'two cores' "$example"
    HEDDLE_WORKERS=5 replays 'five cores' "$example"
    # An order that contradicts the dependencies blocks nobody.
    awk '!/^#/ { print $1, $1 % 3, 1000 - $3 }' one.place >wrong.place
    HEDDLE_WORKERS=5 HEDDLE_SCHED=replay HEDDLE_PLAN=wrong.place \
        timeout 60 "$example" >out 2>err || wrong 'replay against the order'
    HEDDLE_MACHINE=$m HEDDLE_EXECUTE=on replays 'virtual time' "$example"
fi

json 1 bench offline --policy heft --tasks 2000
holds "r[0]['tasks'] == 2000 and r[0]['ratio'] >= 1"
json 10 bench offline --policy heft-min
holds "all(x['ratio'] >= 1 - 1e-9 for x in r[:9])"
holds "r[9]['cases'] == 9 and r[9]['worst_ratio'] >= r[9]['mean_ratio'] >= 1"
fails 2 'no offline policy' bench offline --policy nonsense
fails 2 'must be a time' bench offline --time never
finish
