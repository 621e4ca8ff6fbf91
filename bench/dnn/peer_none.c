/* SPDX-License-Identifier: BSD-3-Clause */
/* peer_none: a build without the headers of oneDNN. */
#include "bench_dnn.h"

const char *bench_peer_name(void)
{
    return NULL;
}

bool bench_peer(const struct bench_case *c, struct runner *out)
{
    (void)c;
    (void)out;
    return false;
}
