#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# heddle bench serve, on small runs: what is printed, and that no hostile client brings the server
# down or keeps others from being served. How fast it is, is not tested.
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"

TMPDIR=$dir
export TMPDIR
fails 2 "must be some of rate, open and robust" bench serve --only rate,none
fails 2 "must be like http" bench serve --url ftp://x/
fails 1 'answers 0 to GET /v2/models/m' bench serve --url http://127.0.0.1:1/v2/models/m/infer
needs_http
json 0 bench serve --quick --rounds 2 --run-us 100000 --connections 8 --idle 200
holds "[x.get('part') for x in r] ==
    ['rate'] + ['open'] * 3 + ['robust'] * 5 + [None]"
holds "all(0 < x['value_min'] <= x['value'] <= x['value_max'] for x in r[:4])"
holds "r[0]['must'] == 0.6 and r[0]['aim'] == 0.8 and r[0]['rounds'] == 2"
holds "all(x['bad'] == 0 and x['good'] > 0 for x in r[:4])"
holds "all(0 < x['p50_us'] <= x['p90_us'] <= x['p99_us'] <= x['max_us'] for x in r[:4])"
holds "[x['case'] for x in r[4:9]] == ['idle', 'slow', 'oversize', 'malformed', 'leak']"
holds "all(x['value'] == 0 and x['others_failed'] == 0 and x['others'] > 0 for x in r[4:8])"
holds "r[4]['connections'] == 200 and r[5]['connections'] == 21"
holds "r[6]['hostile'] > 0 and r[7]['hostile'] > 0"
holds "r[8]['files_last'] <= r[8]['files_first']"
[ -z "$(ls -d "$TMPDIR"/heddle-bench-* 2>/dev/null)" ] || wrong 'a folder is left behind'
finish
