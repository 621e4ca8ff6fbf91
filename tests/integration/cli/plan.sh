#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# heddle plan: graphs of every kind, budgets, the checker, the page.
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"

cat >small.graph <<'END'
heddle-plan-graph 1
name small
unit 1e-6
value 0 100            # weights
value 1 400
value 2 400
value 3 8 result
op 0 10 in=0 out=1 work=50 name=first
op 1 20 in=0,1 out=2 name=second
op 2 5 in=1,2 out=3 name=third
end
END

# The given order needs 100 + 400 + 400 + 8 bytes.
json 1 plan small.graph --budget 908
holds "r[0]['feasible'] and r[0]['checked'] and r[0]['budget_bytes'] == 908"
holds "r[0]['peak_bytes'] == 908 and r[0]['arena_bytes'] == 908"
holds "r[0]['makespan'] == 35 and r[0]['baseline_makespan'] == 35"
holds "r[0]['increase'] == 0 and r[0]['gap'] == 0 and r[0]['lower_bound'] == 35"
holds "r[0]['seconds'] >= 0 and r[0]['computed'] == 3 and r[0]['graph'] == 'small'"
json 1 plan small.graph --budget 100% --solver keep
holds "r[0]['solver'] == 'keep' and r[0]['budget_bytes'] == 908"
ok plan small.graph --budget 1KiB
has '^checked  yes'
has '^time     35, +0.000 %'
fails 1 'operation 1 (second) alone needs 900 bytes' plan small.graph --budget 899
"$heddle" plan small.graph --budget 50% --json >out 2>err && wrong 'half is enough?'
holds "not r[0]['feasible'] and 'no plan exists' in r[0]['why']"

# There and back, and what was changed on the way is found.
ok plan small.graph --budget 1KiB -o small.plan
ok plan check small.plan
has 'the plan holds: peak 908 B'
json 1 plan check small.plan
holds "r[0]['checked'] and r[0]['peak_bytes'] == 908"
sed 's/ peak=908/ peak=907/' small.plan >bad.plan
fails 1 'claims that its peak is 907 bytes, and it is 908' plan check bad.plan
sed '/^c 1/d' small.plan >bad.plan
fails 1 'does not hold: step 1' plan check bad.plan
sed 's/^@ 1 2 .*/@ 1 2 3/' small.plan >bad.plan
fails 1 'overlap' plan check bad.plan
head -n 12 small.plan >bad.plan
fails 1 'bad.plan:12: ' plan check bad.plan
fails 1 'small.graph:1: ' plan check small.graph
fails 1 'a plan, not a graph' plan small.plan --budget 1KiB
fails 1 'no such file' plan check nowhere.plan

# The page needs nothing from elsewhere.
ok plan show small.plan -o page.html
ok plan show small.plan --sweep -o sweep.html
grep -q '<svg' page.html || wrong 'show: no picture'
grep -q 'budget 1.00 KiB' page.html || wrong 'show: no budget line'
grep -q '>second, from 10.0 us to 30.0 us</title>' page.html || wrong 'show: no name of a step'
grep -q 'Time 35.0 us, ' page.html || wrong 'show: a time without its unit'
sed '/^unit/d' small.graph >bare.graph
ok plan bare.graph --budget 1KiB -o bare.plan
ok plan show bare.plan -o bare.html
rm bare.graph bare.plan
grep -q '>second, from 10 to 30</title>' bare.html || wrong 'show: a unit from nowhere'
grep -q 'Time 35, ' bare.html || wrong 'show: no time'
grep -q 'Memory against time' sweep.html || wrong 'show: no trade-off'
grep -q 'Memory against time' page.html && wrong 'show: a trade-off unasked'
grep -Eq 'https?:|src=|@import|url\(' page.html sweep.html &&
    wrong 'show: the page wants something from elsewhere'
python3 - <<'END' || wrong 'show: tags do not match'
import html.parser, sys
class P(html.parser.HTMLParser):
    stack, bad = [], 0
    def handle_starttag(self, tag, attrs):
        if tag not in ('meta', 'tr', 'td', 'th'):
            self.stack.append(tag)
        self.handle_startendtag(tag, attrs)
    def handle_startendtag(self, tag, attrs):
        self.bad += any('nan' in v or 'inf' in v for k, v in attrs if v)
    def handle_endtag(self, tag):
        if tag != 'tr' and (not self.stack or self.stack.pop() != tag):
            self.bad += 1
for name in 'page.html', 'sweep.html':
    p = P(); p.feed(open(name).read())
    if p.bad or p.stack: sys.exit(1)
END
json 1 plan show small.plan -o page.html
holds "r[0]['checked'] and r[0]['file'] == 'page.html'"
fails 1 'cannot be written' plan show small.plan -o /nowhere/x.html
fails 2 'needs a plan and -o' plan show small.plan
fails 2 'is an input' plan show small.plan -o small.plan

# The whole trade-off; budgets grow, the last one needs nothing twice.
json 24 plan small.graph --sweep --time 50ms
holds "all(a['budget_bytes'] <= b['budget_bytes'] for a, b in zip(r, r[1:]))"
holds "r[-1]['feasible'] and r[-1]['increase'] == 0"
holds "all(not a['feasible'] or b['increase'] <= a['increase'] for a, b in zip(r, r[1:]))"
holds "all(p['checked'] for p in r if p['feasible'])"
ok plan small.graph --sweep --time 50ms
has 'checked$'

# Other forms of graphs: a dag, a chain, the log of a run.
printf 'dag 2 1 d\nn 0 3 10 0 a\nn 1 4 20 1 b\ne 0 1\n' >d.dag
json 1 plan d.dag --budget 100%
holds "r[0]['peak_bytes'] == 30 and r[0]['makespan'] == 7"
printf '2\n0 10 20\n15 20\n1 2\n3 4\n' >c.chain
json 1 plan c.chain --budget 300%
holds "r[0]['full_bytes'] == 65 and r[0]['budget_bytes'] == 195"
holds "r[0]['baseline_makespan'] == 10"
# All that a chain needs is enough for it, gradients and workspace too.
json 1 plan c.chain --budget 100%
holds "r[0]['feasible'] and r[0]['makespan'] == 10"
printf '1\n0 1\n1\n1\n1\n3\n400\n' >work.chain
json 1 plan work.chain --budget 100%
holds "r[0]['feasible']"
# Percentages of the largest graphs do not overflow; GB is 10^9, GiB is 2^30.
printf 'dag 1 0 x\nn 0 1 4611686018427387903 0 a\n' >huge.dag
json 1 plan huge.dag --budget 1000%
holds "r[0]['feasible'] and r[0]['budget_bytes'] >= 2**62 - 1"
json 1 plan huge.dag --budget 100%
holds "r[0]['feasible']"
json 1 plan d.dag --budget 9GB
holds "r[0]['budget_bytes'] == 9 * 10**9"
json 1 plan d.dag --budget 9G
holds "r[0]['budget_bytes'] == 9 * 2**30"
HEDDLE_LOG_LEVEL=1 ok demo --kernels plain --n 120 --nb 30 --log run.log --no-progress
json 1 plan run.log --budget 200%
holds "r[0]['checked'] and r[0]['operations'] > 10"
head -c 100 run.log >cut.log
fails 1 'cut.log' plan cut.log --budget 1GiB

# Machines.
cat >m <<'END'
heddle-plan-machine 1
budget 2KiB
align 64
host out=12GB/s in=12GB/s bytes=1GiB
END
json 1 plan small.graph --machine m
holds "r[0]['budget_bytes'] == 2048 and r[0]['arena_bytes'] >= 908"
json 1 plan small.graph --machine m --budget 1500
holds "r[0]['budget_bytes'] == 1500"
json 1 plan small.graph --budget 1KiB --link 12GB/s --offload
fails 1 'm:4: ' plan d.dag --machine m
json 1 plan d.dag --machine m --unit 1us
fails 2 '--unit' plan d.dag --budget 1KiB --link 12GB/s
fails 2 '--offload needs' plan small.graph --budget 1KiB --offload

# What is wrong on the command line or in a file.
fails 2 'needs a graph' plan
fails 2 'needs a --budget' plan small.graph
fails 2 'neither a size nor' plan small.graph --budget much
fails 2 'neither a size nor' plan small.graph --budget 5000%
fails 2 'no solver' plan small.graph --budget 1KiB --solver nonsense
fails 2 'not a duration' plan small.graph --budget 1KiB --time soon
fails 2 'neither' plan small.graph --sweep --budget 1KiB
fails 1 'no such file' plan nowhere.graph --budget 1KiB
fails 1 'cannot be written' plan small.graph --budget 1KiB -o /nowhere/x
sed 's/in=1,2/in=1,9/' small.graph >bad.graph
fails 1 'bad.graph:10: operation 2 reads value 9' plan bad.graph --budget 1KiB
sed 's/op 1 20/op 1 -20/' small.graph >bad.graph
fails 1 'bad.graph:9: .*negative' plan bad.graph --budget 1KiB
ok plan --help
has 'keep  '
ok plan check --help
ok plan show --help

# Pipelines of a chain, every policy; moving data on the way.
printf '6\n4 4 4 4 4 4 4\n8 8 8 8 8 8\n1 1 1 1 1 1\n2 2 2 2 2 2\n' >six.chain
for policy in best gpipe 1f1b zb periodic pipedream special; do
    json 1 plan six.chain --pipeline 3 --micro 6 --policy $policy --budget 1KiB
    holds "r[0]['feasible'] and r[0]['checked'] and len(r[0]['memory_bytes']) == 3"
    holds "r[0]['period'] >= r[0]['period_bound'] == 6 and r[0]['bubble'] < 1"
done
json 1 plan six.chain --pipeline 3 --micro 6 --policy periodic --budget 1KiB
holds "r[0]['period'] == 6 and [s['in_flight'] for s in r[0]['stages']] == [3, 2, 1]"
json 1 plan six.chain --pipeline 3 --micro 6 --policy 1f1b --budget 1KiB
holds "r[0]['makespan'] == (6 + 3 - 1) * 6 and r[0]['throughput'] > 0"
ok plan six.chain --pipeline 2 --budget 1KiB
has '^checked   yes'
has '^   1  '
fails 1 'no contiguous partition' plan six.chain --pipeline 3 --budget 9
fails 1 'needs a chain' plan small.graph --pipeline 3 --budget 1KiB
fails 2 'none of best' plan six.chain --pipeline 3 --policy fast --budget 1KiB
fails 2 'go with --pipeline' plan six.chain --micro 3 --budget 1KiB
fails 2 'goes with none of' plan six.chain --pipeline 2 --sweep
json 1 plan six.chain --budget 60% --offload --link 2GB/s --unit 1ns --time 100ms
holds "r[0]['feasible'] and r[0]['checked'] and r[0]['solver'] == 'offload'"

# The benchmark: generated graphs, and files.
json 0 bench plan --budgets 1.2 --solver keep --time 50ms --instance cnn
holds "r[-1]['name'] == 'plan summary' and r[-1]['checked'] and r[-1]['refused'] == 0"
holds "all(p['checked'] for p in r[:-1] if p['feasible']) and len(r) > 1"
rm bad.graph
json 2 bench plan --data . --budgets 2 --solver keep --instance small
holds "r[0]['instance'] == 'small' and r[0]['increase'] == 0"
json 2 bench plan --chains 100
json 1 bench plan --large --instance cnn --budgets 0.9 --time 50ms
holds "r[0]['operations'] > 9000 and r[0]['checked'] and r[0]['first_seconds'] > 0"
fails 2 'chains' bench plan --chains 0
fails 1 'no graph below' bench plan --data /nowhere
fails 2 'not a list' bench plan --budgets a
fails 2 'not a number of bytes' bench plan --link fast
mkdir chains && mv six.chain chains
json 1 bench plan --data chains --budgets 0.6 --link 2 --time 100ms
holds "r[0]['name'] == 'plan moving' and r[0]['checked'] and r[0]['removed'] >= 0"
json 6 bench plan --data chains --budgets 4 --pipeline 2
holds "all(p['checked'] and p['devices'] == 2 for p in r)"
json 1 bench plan --data . --instance small --least --time 50ms
holds "r[0]['name'] == 'plan least' and r[0]['checked'] and r[0]['times'] >= 1"
holds "r[0]['budget_bytes'] >= r[0]['least_bytes'] > 0"
fails 2 'no solver' bench plan --solver nonsense

finish
