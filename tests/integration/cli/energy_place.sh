#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# heddle energy place: both problems, energy and carbon, bad input.
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"

cat >jobs <<'END'
heddle-jobs 1
job a 100 due 100     # a comment
job b 80 due 150
job c 30.5 due 60
job d 20 due 90
job e 200
END

# alpha = 150 / (2 x 100); the two machines draw 100 W each for 220 s.
json 1 energy place jobs --machines 2 --watts-here 100 --watts-there 150 \
    --intensity 50 --intensity-there 300 -o placed
holds "r[0]['alpha'] == 0.75 and r[0]['checked'] and not r[0]['due']"
holds "r[0]['cost_s'] == r[0]['span_s'] + 0.75 * r[0]['there_s']"
holds "1 <= r[0]['ratio'] <= r[0]['proved_ratio'] == 1.25 * 1.01"
holds "r[0]['energy_j']['here'] == 200 * r[0]['span_s']"
holds "r[0]['energy_j']['there'] == 150 * r[0]['there_s']"
holds "abs(r[0]['energy_j']['total'] - 200 * r[0]['cost_s']) < 1e-6"
holds "r[0]['energy_j']['lower_bound'] <= r[0]['energy_j']['total']"
holds "abs(r[0]['carbon_g']['here'] - r[0]['energy_j']['here'] * 50 / 3.6e6) < 1e-9"
holds "abs(r[0]['carbon_g']['all_there'] - 430.5 * 150 * 300 / 3.6e6) < 1e-9"
grep -q '^heddle-jobs-placed 1$' placed || wrong 'no head in the placement'
[ "$(grep -c '^here [a-e] [01] [0-9.]*$\|^there [a-e]$' placed)" -eq 5 ] ||
    wrong 'not five jobs in the placement'

# With due dates: c, d, b, e end in time one after the other; a cannot as well.
json 1 energy place jobs --machines 1 --due --watts-here 100 --watts-there 150 -o placed
holds "r[0]['here_s'] == 330.5 and r[0]['there_s'] == 100 and r[0]['unit_s'] == 0"
holds "r[0]['ratio'] == 1 and r[0]['proved_ratio'] == 1 and r[0]['jobs_here'] == 4"
holds "r[0]['energy_j']['total'] == 48050 == r[0]['energy_j']['lower_bound']"
grep -q '^there a$' placed || wrong 'a is not there'
grep -q '^here b 0 50.500000$' placed || wrong 'b does not follow d'

ok energy place jobs --machines 3 --alpha 0.2
has '^there     5 jobs, 430.5 s'
has 'due dates of 4 jobs are not used'
has '^checked   yes'
ok energy place jobs --machines 3 --alpha 1.5
has '^here      5 jobs'
ok energy place jobs --machines 2 --due
has 'no placement does more than 430.5 s here'
printf 'heddle-jobs 1\n' >none
ok energy place none --machines 2 --alpha 0.7

fails 2 'needs a file of jobs' energy place --machines 2
fails 2 'needs --machines' energy place jobs --alpha 1
fails 2 'machines' energy place jobs --machines 0 --alpha 1
fails 2 'needs either --alpha' energy place jobs --machines 2
fails 2 'needs either --alpha' energy place jobs --machines 2 --alpha 1 --watts-here 1 \
    --watts-there 2
fails 2 'go together' energy place jobs --machines 2 --watts-here 5
fails 2 'above 0' energy place jobs --machines 2 --watts-here -5 --watts-there 2
fails 2 'nan' energy place jobs --machines 2 --alpha nan
fails 2 '0.0001 to 1' energy place jobs --machines 2 --alpha 1 --eps 3
fails 2 'without --due' energy place jobs --machines 2 --alpha 1 --due
fails 2 'must not be below' energy place jobs --machines 2 --due --watts-here 2 --watts-there 1
fails 2 'needs --watts-here' energy place jobs --machines 2 --alpha 1 --intensity 3
fails 1 'nowhere' energy place nowhere --machines 2 --alpha 1
fails 2 'is an input' energy place jobs --machines 2 --alpha 1 -o jobs
fails 1 'cannot be written' energy place jobs --machines 2 --alpha 1 -o no/such
printf 'heddle-jobs 1\njob a 1\njob a 2\n' >twice
fails 1 "twice:3: there is a job 'a' already" energy place twice --machines 2 --alpha 1
printf 'heddle-jobs 1\njob a -1\n' >minus
fails 1 'minus:2: the duration is negative' energy place minus --machines 2 --alpha 1

json 14 bench place --instances 20 --jobs 2000
holds "all(x['worst'] <= x['proved'] for x in r if not x['due'])"
holds "all(x['worst'] >= x['proved'] - 1e-12 for x in r if x['due'])"

finish
