/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check: runs the cases of ONNX's test data and compares, as the suite itself does: relative
 * tolerance 1e-3, absolute 1e-7; types, shapes and whole numbers exactly.
 */
#include "nn/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "base/why.h"

enum { CHECK_PATH = 1024 };

/* --- comparison ------------------------------------------------------------------ */

static bool compare_float(double x, double y, double rtol, double atol)
{
    if (isnan(x) || isnan(y))
        return isnan(x) && isnan(y);
    if (isinf(x) || isinf(y))
        return !(x < y) && !(x > y);
    return fabs(x - y) <= atol + rtol * fabs(y);
}

static bool compare_one(const struct nn_value *a, const struct nn_value *b, size_t i, double rtol,
                        double atol)
{
    const size_t each = heddle_nn_type_bytes(a->type);
    const struct heddle_onnx_bytes *s = a->data, *t = b->data;

    if ((NN_M(a->type) & (NN_M_FLOAT | NN_M_F8)) != 0)
        return compare_float(heddle_nn_get_f64(a->type, a->data, i),
                             heddle_nn_get_f64(b->type, b->data, i), rtol, atol);
    if (a->type == NN_STR)
        return s[i].len == t[i].len && (s[i].len == 0 || memcmp(s[i].ptr, t[i].ptr, s[i].len) == 0);
    if (a->type == NN_C64)
        return compare_float((double)((const float *)a->data)[2 * i],
                             (double)((const float *)b->data)[2 * i], rtol, atol) &&
               compare_float((double)((const float *)a->data)[2 * i + 1],
                             (double)((const float *)b->data)[2 * i + 1], rtol, atol);
    return memcmp((const char *)a->data + i * each, (const char *)b->data + i * each, each) == 0;
}

static void compare_say(const struct nn_value *got, const struct nn_value *want, size_t i,
                        char *why, size_t why_bytes)
{
    struct heddle_text t;

    if (why_bytes == 0)
        return;
    heddle_text_init(&t, why, why_bytes);
    heddle_text_add(&t, "element %zu of %s %s is ", i, heddle_nn_type_name(got->type),
                    heddle_nn_shape_text(&got->shape).text);
    if (got->type == NN_STR) {
        const struct heddle_onnx_bytes *s = got->data, *w = want->data;

        heddle_text_mem(&t, s[i].ptr, s[i].len);
        heddle_text_str(&t, " and not ");
        heddle_text_mem(&t, w[i].ptr, w[i].len);
        return;
    }
    heddle_text_double(&t, heddle_nn_get_f64(got->type, got->data, i));
    heddle_text_str(&t, " and not ");
    heddle_text_double(&t, heddle_nn_get_f64(want->type, want->data, i));
}

static bool compare_tensor(const struct nn_value *got, const struct nn_value *want, double rtol,
                           double atol, char *why, size_t why_bytes)
{
    const size_t n = heddle_nn_count(&want->shape);

    if (got->type != want->type || !heddle_nn_same_shape(&got->shape, &want->shape)) {
        (void)heddle_why(why, why_bytes, HEDDLE_EINVAL, "%s %s and not %s %s",
                         heddle_nn_type_name(got->type), heddle_nn_shape_text(&got->shape).text,
                         heddle_nn_type_name(want->type), heddle_nn_shape_text(&want->shape).text);
        return false;
    }
    for (size_t i = 0; i < n; i++)
        if (!compare_one(got, want, i, rtol, atol)) {
            compare_say(got, want, i, why, why_bytes);
            return false;
        }
    return true;
}

bool heddle_nn_compare(const struct nn_value *got, const struct nn_value *want, double rtol,
                       double atol, char *why, size_t why_bytes)
{
    if (got->kind == NN_TENSOR && want->kind == NN_TENSOR)
        return compare_tensor(got, want, rtol, atol, why, why_bytes);
    if (got->kind != want->kind || got->nitems != want->nitems) {
        (void)heddle_why(why, why_bytes, HEDDLE_EINVAL, "kind %d of %zu and not kind %d of %zu",
                         got->kind, got->nitems, want->kind, want->nitems);
        return false;
    }
    for (size_t i = 0; i < want->nitems; i++)
        if (!heddle_nn_compare(&got->item[i], &want->item[i], rtol, atol, why, why_bytes))
            return false;
    return true;
}

/* --- cases ------------------------------------------------------------------------- */

/* The files of a case, open while it runs: values may be in them. */
struct check {
    struct nn_case *r;
    struct heddle_scratch mem;
    struct nn_model *model;
    struct heddle_onnx_file **file;
    size_t nfiles, cap_files;
    nn_check_run run;
    void *user;
};

/* One value of a set; HEDDLE_ENOENT: there is no such file. */
static heddle_status check_value(struct check *k, const char *path, const struct nn_value *type,
                                 struct nn_value *out)
{
    const struct heddle_onnx_opts o = {NULL, k->r->why, sizeof(k->r->why)};
    const enum heddle_onnx_kind kind = type->kind == NN_SEQUENCE   ? HEDDLE_ONNX_SEQUENCE
                                       : type->kind == NN_OPTIONAL ? HEDDLE_ONNX_OPTIONAL
                                                                   : HEDDLE_ONNX_TENSOR;
    struct heddle_onnx_file *f = NULL;
    heddle_status st = heddle_onnx_open(path, kind, &o, &f);

    if (st != HEDDLE_OK)
        return st;
    k->file[k->nfiles++] = f;
    if (kind == HEDDLE_ONNX_TENSOR)
        st = heddle_nn_from_onnx(&k->mem, f->tensor, out);
    else
        st = heddle_nn_from_onnx_sequence(&k->mem, f->sequence, kind == HEDDLE_ONNX_OPTIONAL, out);
    /* The suite's files have bfloat16 as the numbers of 16 bits that NumPy knows. */
    if (st == HEDDLE_OK && type->type == NN_BF16 && out->type == NN_U16)
        out->type = NN_BF16;
    if (st == HEDDLE_OK)
        return st;
    return heddle_why(k->r->why, sizeof(k->r->why), st, "%s: no value", path);
}

static heddle_status check_values(struct check *k, const char *dir, const char *what,
                                  const uint32_t *id, uint32_t n, struct nn_value *out)
{
    char path[CHECK_PATH];

    for (uint32_t i = 0; i < n; i++) {
        (void)snprintf(path, sizeof(path), "%s/%s_%u.pb", dir, what, i);
        const heddle_status st =
            check_value(k, path, &k->model->graph->value[id[i]].declared, &out[i]);

        if (st != HEDDLE_OK)
            return st;
    }
    return HEDDLE_OK;
}

static enum nn_verdict check_set(struct check *k, const char *dir)
{
    const struct nn_graph *g = k->model->graph;
    const struct nn_opts o = {NULL, k->r->why, sizeof(k->r->why)};
    struct nn_value *in = heddle_scratch_get(&k->mem, g->ninputs, sizeof(*in)),
                    *want = heddle_scratch_get(&k->mem, g->noutputs, sizeof(*want)),
                    *got = heddle_scratch_get(&k->mem, g->noutputs, sizeof(*got));
    heddle_status st;

    k->cap_files = g->ninputs + g->noutputs;
    k->file = heddle_scratch_get(&k->mem, k->cap_files, sizeof(struct heddle_onnx_file *));
    k->nfiles = 0;
    if (in == NULL || want == NULL || got == NULL || k->file == NULL)
        return NN_FAIL;
    st = check_values(k, dir, "input", g->input, g->ninputs, in);
    if (st == HEDDLE_OK)
        st = check_values(k, dir, "output", g->output, g->noutputs, want);
    if (st == HEDDLE_OK)
        st = k->run != NULL ? k->run(k->user, k->model, in, got, &k->mem, &o)
                            : heddle_nn_oracle(g, in, got, &k->mem, &o);
    for (uint32_t i = 0; i < g->noutputs && st == HEDDLE_OK; i++)
        if (!heddle_nn_compare(&got[i], &want[i], 1e-3, 1e-7, k->r->why, sizeof(k->r->why)))
            st = HEDDLE_EINVAL;
    while (k->nfiles > 0)
        heddle_onnx_close(k->file[--k->nfiles]);
    return st == HEDDLE_OK ? NN_PASS : st == HEDDLE_ENOSYS ? NN_UNSUPPORTED : NN_FAIL;
}

static enum nn_verdict check_sets(struct check *k, const char *dir)
{
    char path[CHECK_PATH], probe[CHECK_PATH];
    enum nn_verdict v = NN_NOTHING;

    for (unsigned set = 0; set < 100; set++) {
        FILE *f;

        (void)snprintf(path, sizeof(path), "%s/test_data_set_%u", dir, set);
        (void)snprintf(probe, sizeof(probe), "%.900s/output_0.pb", path);
        f = fopen(probe, "rb");
        if (f == NULL)
            break;
        (void)fclose(f);
        v = check_set(k, path);
        if (v != NN_PASS)
            break;
    }
    return v;
}

/* The first operator of the file, which the name of a case stands for. */
static void check_name(const char *path, struct nn_case *r)
{
    struct heddle_onnx_file *f = NULL;

    if (heddle_onnx_open(path, HEDDLE_ONNX_MODEL, NULL, &f) != HEDDLE_OK)
        return;
    if (f->model->graph->nnodes > 0)
        (void)snprintf(r->op, sizeof(r->op), "%s", f->model->graph->node[0].op_type);
    heddle_onnx_close(f);
}

enum nn_verdict heddle_nn_check_case(const char *dir, nn_check_run run, void *user,
                                     struct nn_case *r)
{
    struct check k = {.r = r, .mem = heddle_scratch_make(NULL), .run = run, .user = user};
    const struct nn_opts o = {NULL, r->why, sizeof(r->why)};
    enum nn_verdict v;
    char path[CHECK_PATH];
    heddle_status st;

    r->op[0] = r->why[0] = '\0';
    (void)snprintf(path, sizeof(path), "%s/model.onnx", dir);
    check_name(path, r);
    st = heddle_nn_load(path, &o, &k.model);
    if (st == HEDDLE_ENOENT)
        return NN_NOTHING;
    if (st == HEDDLE_ENOSYS || st == HEDDLE_EVERSION)
        return NN_UNSUPPORTED;
    if (st != HEDDLE_OK)
        return NN_FAIL;
    v = check_sets(&k, dir);
    heddle_scratch_drop(&k.mem);
    heddle_nn_unload(k.model);
    return v;
}
