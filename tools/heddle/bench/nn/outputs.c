/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/nn/outputs: results against the peer's: the greatest difference over the greatest number
 * of an output, with all cores, so that operators are cut.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/nn/nn.h"

#define OUTPUTS_MUST 1e-4

static double difference_f32(const float *x, const float *y, size_t n)
{
    double gap = 0, scale = 1e-30;

    for (size_t i = 0; i < n; i++) {
        const double d = fabs((double)x[i] - (double)y[i]), s = fabs((double)y[i]);

        if (!(d <= INFINITY) || isinf(d)) /* NaN too */
            return INFINITY;
        gap = d > gap ? d : gap;
        scale = s > scale ? s : scale;
    }
    return gap / scale;
}

static double difference(const struct heddle_nn_tensor *t, const void *peer)
{
    if (t->type == HEDDLE_NN_F32)
        return difference_f32(t->data, peer, t->bytes / sizeof(float));
    return t->bytes == 0 || memcmp(t->data, peer, t->bytes) == 0 ? 0 : INFINITY;
}

static int outputs_of(struct nn_bench *b, const struct nn_file *f)
{
    struct heddle_nn_result *r = NULL;
    struct ort_session *s = NULL;
    struct bench_case k;
    struct nn_net n;
    int rc = nn_net_open(&n, b, f, b->cores, true, 1);

    if (rc == 0)
        rc = nn_net_run(&n, NULL, &r);
    if (rc == 0)
        rc = ort_open(b->ort, &n, r, b->cores, &s);
    if (rc == 0)
        rc = ort_run(s, 0, NULL);
    if (rc == 0) {
        nn_case(&k, "outputs", f->name, "greatest difference");
        k.is_alone = true;
        k.rule = BENCH_VALUE_AT_MOST;
        k.must = k.aim = OUTPUTS_MUST;
        k.n = 1;
        for (unsigned i = 0; i < r->noutputs; i++)
            k.heddle[0] = fmax(k.heddle[0], difference(&r->output[i], ort_output(s, i)));
        rc = nn_report(b, &k);
    }
    ort_close(s);
    heddle_nn_result_destroy(r);
    nn_net_close(&n);
    return rc;
}

int bench_nn_outputs(struct nn_bench *b)
{
    int rc = 0;

    if (b->ort == NULL)
        return nn_skip(b, "outputs", "all networks", b->against);
    for (size_t i = 0; i < b->nfiles; i++) {
        const int one = nn_is_special(&b->file[i]) ? 0 : outputs_of(b, &b->file[i]);

        rc = rc == 0 ? one : rc; /* the others may still tell something */
    }
    return rc;
}
