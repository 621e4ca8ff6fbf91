#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# heddle info: facts about this machine, defaults, environment.
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"

ok info
has "^heddle $(cat "$root/VERSION"), compiled by "
has '^memory '
has '^schedulers '
has "^models  *$dir/cache/heddle/models$"

json 1 info
holds "r[0]['version'] == open('$root/VERSION').read().strip()"
holds "r[0]['workers'] >= 1 and r[0]['machine']['cpus'] >= 1"
holds "r[0]['machine']['memory_total'] > 0"
holds "r[0]['scheduler'] in [s['name'] for s in r[0]['schedulers']]"
holds "{'eager', 'prio', 'ws'} <= {s['name'] for s in r[0]['schedulers']}"
holds "set(r[0]['built_with']) == {'hwloc', 'blas', 'cuda'}"
holds "r[0]['problem'] is None"

json 0 info --env
holds "'HEDDLE_WORKERS' in [v['name'] for v in r]"
holds "all(v['set'] is None and v['help'] and v['kind'] for v in r)"
# The man page has the same variables.
holds "{v['name'] for v in r} == set(__import__('re').findall(
    r'^.It Ev (HEDDLE_\w+)', open('$root/docs/man/heddle.7').read(), 8))"
ok info --env
has '^HEDDLE_SCHED '

# Looking does not touch a log that the environment names.
echo kept >kept.log
HEDDLE_LOG_FILE=kept.log ok info
[ "$(cat kept.log)" = kept ] || wrong 'info wrote a log'

# The environment is part of the defaults, and a bad value is named.
HEDDLE_WORKERS=1 HEDDLE_SCHED=eager
export HEDDLE_WORKERS HEDDLE_SCHED
json 1 info
holds "r[0]['workers'] == 1 and r[0]['scheduler'] == 'eager'"
ok info --env
has "(it is 'eager')"
HEDDLE_WORKERS=many
ok info
has 'HEDDLE_WORKERS'
json 1 info
holds "r[0]['workers'] == 0 and 'HEDDLE_WORKERS' in r[0]['problem']"
finish
