/* SPDX-License-Identifier: BSD-3-Clause */
/* empty_none: a build without libmicrohttpd's header has no server to compare with. */
#include "bench/serve/serve.h"

int bench_serve_empty(struct serve_bench *b)
{
    return cli_fail(b->c, "this build has no HTTP server: it was made without libmicrohttpd");
}
