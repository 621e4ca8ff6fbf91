#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The benchmark of the GPU, with small sizes: what is printed, and that all it
# computes is right. How fast it is depends on the machine and is not tested.
library=${HEDDLE_CUDA_LIBRARY:-}
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"

fails 2 'launch, graph' bench cuda --only launch,nothing
fails 2 'power of two' bench cuda --scale 3
fails 2 'no scheduler' bench cuda --sched nothing
if [ -n "$library" ]; then
    # Without a device: one sentence.
    HEDDLE_CUDA_LIBRARY=$dir/nothing.so
    export HEDDLE_CUDA_LIBRARY
    fails 1 'no CUDA device' bench cuda
    HEDDLE_CUDA_LIBRARY=$library
fi

# part LINES PART: a part, its summary, and bars with their verdict.
part() {
    json "$1" bench cuda --scale 64 --rounds 2 --runs 4 --workers 2 --only "$2"
    holds "r[-1]['name'] == 'cuda summary' and r[-1]['cases'] == len(r) - 1"
    holds "all(x['part'] == '$2' and x['ratio'] > 0 for x in r[:-1])"
    holds "r[-1]['met'] == sum(x.get('met', False) for x in r[:-1])"
    holds "all(x['ratio_min'] <= x['ratio'] <= x['ratio_max'] for x in r[:-1])"
}
part 3 launch
part 3 graph
part 9 stream
part 3 gemm
part 2 outofcore
holds "r[0]['moved_in_gb'] >= r[0]['needed_in_gb'] > 0"
part 2 mixed
# No schedule beats a lower bound; but one with costs that were measured may.
holds "r[0]['ratio'] > 0.5"
part 12 simulate
holds "r[-2]['case'] == 'median error'"
holds "r[-2]['submit_us'] > 0 and r[-2]['drive_us'] > 0"
holds "all(x['simulated_submit_ms'] > 0 and x['error_free'] >= 0 and x['error_serial'] >= 0
    for x in r[:-2])"
part 3 lost
holds "all(x['ratio'] == 1 and x['hung'] == 0 for x in r[:2])"
holds "all(x['recovered'] + x['reported'] > 0 for x in r[:2])"

finish
