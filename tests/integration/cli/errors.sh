#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Wrong command lines: exit status 2 and one sentence with a hint.
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"

fails 2 'heddle --help'
fails 2 "'nonsense'" nonsense
fails 2 "did you mean 'bench'" benhc
fails 2 "did you mean 'info'" inf
fails 2 "'--nonsense'" --nonsense
fails 2 "'nonsense'" help nonsense
fails 2 'heddle help info' info --nonsense
fails 2 "'extra'" info extra
fails 2 'takes no value' info --env=1
fails 2 'takes no value' info --json=1

fails 2 'heddle help bench' bench
fails 2 "did you mean 'tasks'" bench task
fails 2 "'nonsense'" bench nonsense
fails 2 "no option '--gate', see 'heddle help bench idle'" bench idle --gate
for v in 0 -1 abc '' 1.5 1e6 0x10 ' 5' 99999999999999999999 4097; do
    fails 2 '--workers' bench tasks --workers "$v"
    fails 2 '--workers' bench tasks "--workers=$v"
    fails 2 '--workers' demo --workers "$v"
done
for v in 0 -1 abc '' 100000001; do
    fails 2 '--tasks' bench tasks --tasks "$v"
    fails 2 '--window' bench tasks --window "$v"
    fails 2 '--reps' bench tasks --reps "$v"
done
for v in -1 abc '' 1us 1e3 nan 1000001; do
    fails 2 '--task-us' bench tasks --task-us "$v"
done
fails 2 'needs a value' bench tasks --tasks
fails 2 'no shape' bench tasks --shape round
fails 2 'shapes independent and cholesky' bench metg --shape chain
fails 2 'one shape' bench scale --shape all
fails 2 "no scheduler 'nonsense'" bench tasks --sched nonsense
fails 2 'not empty' bench tasks --sched ''
fails 2 'exclude each other' bench tasks --log x --no-log
fails 2 'one --shape' bench tasks --log x --shape all
fails 2 '--log-level' bench tasks --log-level 4
fails 1 'no/such/folder' bench tasks --shape chain --tasks 10 \
    --log no/such/folder/x
fails 1 'no/such/folder' bench log --tasks 10 --reps 1 --log no/such/folder/x

for v in 0 -5 abc 200001; do
    fails 2 '--n' demo --n "$v"
done
for v in 0 x 4097; do
    fails 2 '--nb' demo --nb "$v"
done
fails 2 '512 tiles' demo --n 10000 --nb 2
fails 2 "no kernels 'mine'" demo --kernels mine
fails 1 'no/such/folder' demo --n 64 --log no/such/folder/x
[ ! -e heddle-demo.log ] || wrong 'a log in spite of --log'

fails 2 'trace' trace
fails 2 'model' model
fails 2 'nonsense' model nonsense
fails 2 'no option' model list --nonsense
fails 2 'not empty' model list --dir ''
fails 1 'nothing.log' trace info nothing.log

# A log is never the output of its own export.
ok demo --n 64 --log kept.log --no-progress
ln -s kept.log other.log
fails 2 'overwritten' trace export kept.log --format chrome -o other.log
fails 2 '/dev/stdout' trace export kept.log --format chrome -o -
fails 1 'No such file' trace export kept.log --format chrome -o no/such/file
ok trace info kept.log
finish
