#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# heddle trace view and heddle trace serve: pages, data, requests.
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"

# check WHAT ARGS: a check of view.py holds.
check() {
    python3 "$here/view.py" "$@" >out 2>err || wrong "view.py $*"
}

ok demo --kernels plain --n 240 --nb 20 --log run.log --no-progress
json 1 trace view run.log -o run.html
holds "r[0]['file'] == 'run.html' and r[0]['runs'][0]['tasks'] == 364"
check same run.log run.html "$heddle"
ok trace view run.log run.log -o two.html --title '</title><b>"x & y'
[ ! -s out ] || wrong 'view prints'
check page two.html 2
grep -q '^<title>&lt;/title&gt;&lt;b&gt;&quot;x &amp; y</title>$' two.html ||
    wrong 'the title is not escaped'
ok trace view run.log -o /dev/stdout
grep -q 'data-array="run_start"' out || wrong 'no page on stdout'
ok demo --kernels plain --n 120 --nb 30 --log zero.log --log-level 0 --no-progress
ok trace view zero.log -o zero.html
check page zero.html

# Devices, transfers, memory: of a machine in virtual time.
HEDDLE_LOG_LEVEL=1 ok bench memory --workload gemm --tiles 6 --budget 25% \
    --policy heft --log moved.log \
    --machine "$root/examples/machines/laptop.machine"
ok trace view moved.log -o moved.html
check page moved.html
for what in '"kind":"memory"' '"kind":"link"' 'data-array="xfer_start"'; do
    grep -q "$what" moved.html || wrong "moved.html: no $what"
done

# Whatever a log holds, the page is well formed.
for kind in odd empty one cancelled lost; do
    check log "$kind" "$kind.log"
    ok trace info "$kind.log"
    ok trace view "$kind.log" -o "$kind.html"
    check page "$kind.html"
done
! grep -q 'alert(1)</script>' odd.html || wrong 'a name ended the script'

# Cut anywhere: a page that says so, or a sentence; never a crash.
bytes=$(wc -c <run.log)
for part in 1 3 10 25 50 75 99; do
    head -c $((bytes * part / 100)) run.log >cut.log
    rm -f cut.html
    "$heddle" trace view cut.log -o cut.html >out 2>err
    rc=$?
    if [ $rc -eq 0 ]; then
        check page cut.html
        grep -q '"partial":"The log has no end' cut.html ||
            wrong "$part %: the page does not say that the log was cut"
    else
        [ $rc -eq 1 ] || wrong "$part %: exit status $rc"
    fi
done
python3 - <<'END2'
b = bytearray(open("run.log", "rb").read())
for i in range(200, len(b), 997):
    b[i] ^= 0x55
open("bad.log", "wb").write(b)
END2
"$heddle" trace view bad.log -o bad.html >out 2>err
rc=$?
[ $rc -le 1 ] || wrong "a damaged log: exit status $rc"
[ $rc -ne 0 ] || check page bad.html

# Energy: measured, by a model, without either.
cat >m.energy <<'END'
heddle-energy 1
domain package-0 idle_watts 40 device cpu
domain board idle_watts 5
active * cpu watts 10
END
ok demo --kernels plain --n 960 --nb 96 --workers 2 --devices none --no-progress --log long.log
ok energy plant long.log --model m.energy -o power.log --counters cpu --sample 1ms \
    --period 100us --noise 0 --margin 5ms
ok trace view power.log -o measured.html
check page measured.html
ok trace view power.log -o energy.html --energy-model m.energy
check energy energy.html
check serve_energy "$heddle" power.log m.energy
fails 1 'none.energy' trace view power.log -o x.html --energy-model none.energy
fails 1 'heddle-energy 1' trace view power.log -o x.html --energy-model run.html
json 1 trace stats power.log
holds "[m['name'] for m in r[0]['energy']] == ['package-0', 'board']"
holds "all(m['mean_watts'] <= m['peak_watts'] * 1.0001 for m in r[0]['energy'])"
holds "40 < r[0]['energy'][0]['mean_watts'] < 70 and abs(r[0]['energy'][1]['mean_watts'] - 5) < 0.3"
ok trace stats power.log
has '^energy measured'
has '^package-0 '
json 1 trace stats run.log
holds "r[0]['energy'] == []"

fails 2 'needs the file' trace view -o x.html
# Without -o beside the log, but never over it.
ok trace view run.log
[ -s run.html ] || wrong 'no page beside the log'
cp run.log over.html
fails 2 'over.html' trace view over.html
cmp -s run.log over.html || wrong 'the page took the place of the log'
mkdir -p sub.dir
cp run.log sub.dir/bare
ok trace view sub.dir/bare
[ -s sub.dir/bare.html ] || wrong 'no page for a log without an ending'
fails 2 'overwritten' trace view run.log -o run.log
fails 2 'overwritten' trace view run.html run.log -o run.log
fails 2 'what to do' trace view run.log run.log run.log -o x.html
fails 1 'not a Heddle log' trace view run.html -o x.html
fails 1 'cannot be read' trace view none.log -o x.html
fails 1 'cannot be written' trace view run.log -o /nowhere/x.html
[ ! -e x.html ] || wrong 'a page in spite of an error'
check full "$heddle" run.log

fails 2 'needs the file' trace serve
fails 2 '65535' trace serve run.log --port 65536
fails 1 'cannot be read' trace serve none.log
check serve "$heddle" run.log
check live "$heddle" run.log
finish
