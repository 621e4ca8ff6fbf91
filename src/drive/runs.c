/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * runs: copies between a host array with gaps and dense memory.
 *
 * Structure  the box is simplified first, so that the inner loop is as long as
 *            it can be; the outer dimensions are counted like an odometer.
 * Cost       one memcpy per run after simplification; one for a dense box.
 */
#include "drive/runs.h"

#include <string.h>

#include "base/assert.h"

struct heddle_runs heddle_runs_simplify(const struct heddle_runs *r)
{
    struct heddle_runs s = {.run_bytes = r->run_bytes, .nruns = 1};
    size_t count[HEDDLE_MAX_DIMS], step[HEDDLE_MAX_DIMS];
    unsigned n = 0; /* kept so far, the fastest one first */

    for (unsigned d = r->ndim; d-- > 0;) {
        if (r->count[d] == 1)
            continue;
        if (n == 0 && r->step[d] == s.run_bytes) {
            s.run_bytes *= r->count[d];
        } else if (n > 0 && r->step[d] == count[n - 1] * step[n - 1]) {
            count[n - 1] *= r->count[d];
        } else {
            count[n] = r->count[d];
            step[n++] = r->step[d];
        }
    }
    s.ndim = n;
    for (unsigned d = 0; d < n; d++) {
        s.count[d] = count[n - 1 - d];
        s.step[d] = step[n - 1 - d];
        s.nruns *= s.count[d];
    }
    HEDDLE_ASSERT(heddle_runs_bytes(&s) == heddle_runs_bytes(r));
    return s;
}

size_t heddle_runs_span(const struct heddle_runs *r)
{
    size_t bytes = r->run_bytes;

    if (r->nruns == 0)
        return 0;
    for (unsigned d = 0; d < r->ndim; d++)
        bytes += (r->count[d] - 1) * r->step[d];
    return bytes;
}

/* The host offset of the first run of the next line: all dimensions but the
 * last one. False: that was the last line. */
static bool next_line(const struct heddle_runs *s, size_t *at, size_t *offset)
{
    for (unsigned d = s->ndim - 1; d-- > 0;) {
        *offset += s->step[d];
        if (++at[d] < s->count[d])
            return true;
        *offset -= s->count[d] * s->step[d];
        at[d] = 0;
    }
    return false;
}

static void copy_line(char *dst, size_t dst_step, const char *src, size_t src_step, size_t n,
                      size_t bytes)
{
    for (size_t i = 0; i < n; i++)
        memcpy(dst + i * dst_step, src + i * src_step, bytes);
}

void heddle_runs_gather(const struct heddle_runs *r, const void *host, void *dense)
{
    size_t at[HEDDLE_MAX_DIMS] = {0}, offset = 0;
    struct heddle_runs s;
    char *to = dense;

    if (heddle_runs_bytes(r) == 0)
        return;
    s = heddle_runs_simplify(r);
    if (s.ndim == 0) {
        memcpy(to, host, s.run_bytes);
        return;
    }
    do {
        const size_t n = s.count[s.ndim - 1];

        copy_line(to, s.run_bytes, (const char *)host + offset, s.step[s.ndim - 1], n, s.run_bytes);
        to += n * s.run_bytes;
    } while (next_line(&s, at, &offset));
}

void heddle_runs_scatter(const struct heddle_runs *r, const void *dense, void *host)
{
    size_t at[HEDDLE_MAX_DIMS] = {0}, offset = 0;
    const char *from = dense;
    struct heddle_runs s;

    if (heddle_runs_bytes(r) == 0)
        return;
    s = heddle_runs_simplify(r);
    if (s.ndim == 0) {
        memcpy(host, from, s.run_bytes);
        return;
    }
    do {
        const size_t n = s.count[s.ndim - 1];

        copy_line((char *)host + offset, s.step[s.ndim - 1], from, s.run_bytes, n, s.run_bytes);
        from += n * s.run_bytes;
    } while (next_line(&s, at, &offset));
}
