/* SPDX-License-Identifier: BSD-3-Clause */
/* nn/show: ports of a model, and what its preparation made of it. */
#include "nn/show.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "common/output.h"
#include "nn/shape.h"

enum { SHOW_WHY = 500, SHOW_ROWS = 600 };

const char *const nn_fate_text[5] = {"runs", "joined", "constant", "no work", "unused"};

/* --- texts --------------------------------------------------------------------------- */

struct nn_text nn_value_text(const struct heddle_nn_value *v)
{
    struct nn_text out;
    struct heddle_text t;

    heddle_text_init(&t, out.text, sizeof(out.text));
    heddle_text_add(&t, "%s ", v->type == 0 ? "?" : heddle_nn_type_text(v->type));
    for (unsigned d = 0; d < v->ndim; d++)
        heddle_text_add(&t, "%s%lld", d > 0 ? "x" : "", (long long)v->dim[d]);
    if (v->ndim == 0)
        heddle_text_add(&t, "scalar");
    return out;
}

struct nn_text nn_kernel_text(const struct heddle_nn_node *task)
{
    struct nn_text out;

    (void)snprintf(out.text, sizeof(out.text), "%s%s%s",
                   task->kernel == NULL      ? "reference"
                   : task->kernel[0] == '\0' ? "loops"
                                             : task->kernel,
                   task->isa[0] != '\0' ? " " : "", task->isa);
    return out;
}

struct nn_text nn_bytes_text(double bytes)
{
    static const char *const unit[] = {"B", "kB", "MB", "GB", "TB"};
    struct nn_text out;
    unsigned i = 0;

    for (; bytes >= 1000 && i < 4; i++)
        bytes /= 1000;
    (void)snprintf(out.text, sizeof(out.text), "%.*f %s", i == 0 ? 0 : 1, bytes, unit[i]);
    return out;
}

void nn_sums(const struct heddle_nn_view *v, struct nn_sum sum[6])
{
    memset(sum, 0, 6 * sizeof(*sum));
    for (unsigned i = 0; i < v->nnodes + v->ntasks; i++) {
        const struct heddle_nn_node *n = i < v->nnodes ? &v->node[i] : &v->task[i - v->nnodes];
        struct nn_sum *s = &sum[i < v->nnodes ? (unsigned)n->fate : 5];

        s->n++;
        s->flops += n->flops;
        s->bytes += n->bytes;
    }
}

static uint64_t show_packed(const struct heddle_nn_view *v)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < v->ntasks; i++)
        bytes += v->task[i].packed;
    return bytes;
}

/* --- tables -------------------------------------------------------------------------- */

static void show_port(struct cli *c, const char *what, const struct heddle_nn_port *p)
{
    fprintf(c->out, "%s %s: %s ", what, p->name, p->type == 0 ? "?" : heddle_nn_type_text(p->type));
    if (p->ndim < 1)
        fprintf(c->out, "%s", p->ndim < 0 ? "of any rank" : "scalar");
    for (int d = 0; d < p->ndim; d++) {
        fprintf(c->out, "%s", d > 0 ? "x" : "");
        if (p->dim[d] >= 0)
            fprintf(c->out, "%lld", (long long)p->dim[d]);
        else
            fprintf(c->out, "%s", p->symbol[d][0] != '\0' ? p->symbol[d] : "?");
    }
    fprintf(c->out, "\n");
}

/* Counts of a text, before and after. */
struct row {
    char text[160];
    unsigned n[2];
    double flops;
};

static void row_add(struct row *row, unsigned *nrows, const char *text, bool is_after, double flops)
{
    unsigned i = 0;

    while (i < *nrows && strcmp(row[i].text, text) != 0)
        i++;
    if (i == SHOW_ROWS)
        return;
    if (i == *nrows) {
        row[i] = (struct row){.flops = 0};
        (void)snprintf(row[i].text, sizeof(row[i].text), "%s", text);
        ++*nrows;
    }
    row[i].n[is_after]++;
    row[i].flops += flops;
}

static int row_order(const void *a, const void *b)
{
    return strcmp(((const struct row *)a)->text, ((const struct row *)b)->text);
}

static int row_by_flops(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    return x->flops != y->flops ? (x->flops < y->flops ? 1 : -1) : row_order(a, b);
}

static void show_operators(struct cli *c, const struct heddle_nn_view *v, struct row *row)
{
    unsigned n = 0;

    for (unsigned i = 0; i < v->nnodes; i++)
        if (v->node[i].fate != HEDDLE_NN_CONSTANT)
            row_add(row, &n, v->node[i].op, false, 0);
    for (unsigned i = 0; i < v->ntasks; i++)
        row_add(row, &n, v->task[i].op, true, 0);
    qsort(row, n, sizeof(*row), row_order);
    fprintf(c->out, "\n%-26s %8s %8s\n", "operator", "before", "after");
    for (unsigned i = 0; i < n; i++)
        fprintf(c->out, "%-26s %8u %8u\n", row[i].text, row[i].n[0], row[i].n[1]);
}

static void show_kernels(struct cli *c, const struct heddle_nn_view *v, struct row *row)
{
    unsigned n = 0;

    for (unsigned i = 0; i < v->ntasks; i++)
        row_add(row, &n, nn_kernel_text(&v->task[i]).text, true, v->task[i].flops);
    qsort(row, n, sizeof(*row), row_by_flops);
    fprintf(c->out, "\n%-26s %8s %8s\n", "kernel", "tasks", "GFLOP");
    for (unsigned i = 0; i < n; i++)
        fprintf(c->out, "%-26s %8u %8.3f\n", row[i].text, row[i].n[1], row[i].flops * 1e-9);
}

static int show_print(struct cli *c, const struct heddle_nn_view *v)
{
    struct row *row = calloc(SHOW_ROWS, sizeof(*row));
    const char *const word[5] = {"run", "joined", "constant", "without work", "unused"};
    struct nn_sum s[6], before = {0};
    unsigned nwords = 0;

    if (row == NULL)
        return cli_fail(c, "no memory");
    nn_sums(v, s);
    for (int i = 0; i < 5; i++) {
        before.n += s[i].n;
        before.flops += s[i].flops;
        before.bytes += s[i].bytes;
    }
    fprintf(c->out, "\nbefore: %u operators, %.3f GFLOP, %s moved\n       ", before.n,
            before.flops * 1e-9, nn_bytes_text(before.bytes).text);
    for (int i = 0; i < 5; i++)
        if (s[i].n > 0)
            fprintf(c->out, "%s %u %s", nwords++ > 0 ? "," : "", s[i].n, word[i]);
    fprintf(c->out, "\nafter:  %u tasks, %.3f GFLOP, %s moved; arena %s, packed weights %s\n",
            s[5].n, s[5].flops * 1e-9, nn_bytes_text(s[5].bytes).text,
            nn_bytes_text((double)v->arena_bytes).text, nn_bytes_text((double)show_packed(v)).text);
    fprintf(c->out, "\n%-12s %8s %6s  %s\n", "pass", "changes", "gone", "what");
    for (unsigned i = 0; i < v->npasses; i++)
        fprintf(c->out, "%-12s %8u %6u  %s\n", v->pass[i].name, v->pass[i].nchanges,
                v->pass[i].ngone, v->pass[i].what);
    show_operators(c, v, row);
    show_kernels(c, v, row);
    free(row);
    return 0;
}

/* --- JSON ---------------------------------------------------------------------------- */

static void json_list(struct heddle_json *j, const char *key, const uint32_t *v, unsigned n)
{
    heddle_json_key(j, key);
    heddle_json_array(j);
    for (unsigned i = 0; i < n; i++)
        heddle_json_int(j, v[i] == UINT32_MAX ? -1 : (int64_t)v[i]);
    heddle_json_end(j);
}

static void json_node(struct heddle_json *j, const struct heddle_nn_node *n, bool is_after)
{
    heddle_json_object(j);
    heddle_json_key_str(j, "name", n->name);
    heddle_json_key_str(j, "op", n->op);
    if (is_after) {
        heddle_json_key_str(j, "kernel", nn_kernel_text(n).text);
        heddle_json_key_uint(j, "packed_bytes", n->packed);
        heddle_json_key_uint(j, "pieces", n->pieces);
    } else {
        heddle_json_key_str(j, "fate", nn_fate_text[n->fate]);
        if (n->task != UINT32_MAX)
            heddle_json_key_uint(j, "task", n->task);
    }
    heddle_json_key_double(j, "flops", n->flops);
    heddle_json_key_double(j, "bytes", n->bytes);
    json_list(j, "in", n->in, n->nin);
    json_list(j, "out", n->out, n->nout);
    heddle_json_end(j);
}

static void json_value(struct heddle_json *j, const struct heddle_nn_value *v)
{
    heddle_json_object(j);
    heddle_json_key_str(j, "name", v->name);
    heddle_json_key_str(j, "type", v->type == 0 ? "?" : heddle_nn_type_text(v->type));
    heddle_json_key(j, "shape");
    heddle_json_array(j);
    for (unsigned d = 0; d < v->ndim; d++)
        heddle_json_int(j, v->dim[d]);
    heddle_json_end(j);
    heddle_json_key_uint(j, "bytes", v->bytes);
    heddle_json_key_bool(j, "constant", v->is_constant);
    heddle_json_key_uint(j, "root", v->root);
    heddle_json_end(j);
}

static void json_passes(struct heddle_json *j, const struct heddle_nn_view *v)
{
    heddle_json_key(j, "passes");
    heddle_json_array(j);
    for (unsigned i = 0; i < v->npasses; i++) {
        heddle_json_object(j);
        heddle_json_key_str(j, "name", v->pass[i].name);
        heddle_json_key_str(j, "what", v->pass[i].what);
        heddle_json_key_uint(j, "changes", v->pass[i].nchanges);
        heddle_json_key_uint(j, "gone", v->pass[i].ngone);
        heddle_json_end(j);
    }
    heddle_json_end(j);
    heddle_json_key(j, "changes");
    heddle_json_array(j);
    for (unsigned i = 0; i < v->nchanges; i++) {
        const struct heddle_nn_change *x = &v->change[i];

        heddle_json_object(j);
        heddle_json_key_str(j, "pass", v->pass[x->pass].name);
        heddle_json_key_str(j, "made", x->made != NULL ? x->made : "");
        heddle_json_key_str(j, "name", x->name != NULL ? x->name : "");
        heddle_json_key(j, "gone");
        heddle_json_array(j);
        for (unsigned k = 0; k < x->ngone; k++)
            heddle_json_str(j, x->gone_name[k]);
        heddle_json_end(j);
        heddle_json_end(j);
    }
    heddle_json_end(j);
}

static int show_json(struct cli *c, const struct heddle_nn_view *v, const char *model)
{
    struct heddle_json j;
    heddle_status st;

    heddle_json_init_file(&j, c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "model", model);
    heddle_json_key_uint(&j, "arena_bytes", v->arena_bytes);
    heddle_json_key_uint(&j, "peak_bytes", v->peak_bytes);
    heddle_json_key_uint(&j, "packed_bytes", show_packed(v));
    heddle_json_key_double(&j, "flops", v->flops);
    json_passes(&j, v);
    heddle_json_key(&j, "nodes");
    heddle_json_array(&j);
    for (unsigned i = 0; i < v->nnodes; i++)
        json_node(&j, &v->node[i], false);
    heddle_json_end(&j);
    heddle_json_key(&j, "tasks");
    heddle_json_array(&j);
    for (unsigned i = 0; i < v->ntasks; i++)
        json_node(&j, &v->task[i], true);
    heddle_json_end(&j);
    heddle_json_key(&j, "values");
    heddle_json_array(&j);
    for (unsigned i = 0; i < v->nvalues; i++)
        json_value(&j, &v->value[i]);
    heddle_json_end(&j);
    heddle_json_end(&j);
    heddle_json_line(&j);
    st = heddle_json_finish(&j);
    return st == HEDDLE_OK ? 0 : cli_output_failed(c, st);
}

/* --- the command --------------------------------------------------------------------- */

static int show_page(struct cli *c, const struct heddle_nn_view *v, const struct nn_show *s)
{
    struct output o;
    int rc = output_begin_stream(&o, c, s->page);

    if (rc != 0)
        return rc;
    rc = nn_page_write(v, s->model, o.f) ? 0 : cli_fail(c, "no memory for the page");
    return output_end(&o, rc);
}

/* Inputs with shapes and no data. */
static int show_inputs(struct cli *c, const heddle_nn *net, const struct nn_show *s,
                       struct heddle_nn_tensor *in)
{
    struct heddle_nn_port p;
    int rc = 0;

    for (unsigned i = 0; rc == 0 && heddle_nn_get_input(net, i, &p) == HEDDLE_OK; i++) {
        in[i].type = p.type;
        rc = nn_shape(c, "nn show", s->shape, &p, &in[i]);
    }
    return rc;
}

static void show_ports(struct cli *c, const heddle_nn *net)
{
    struct heddle_nn_port p;

    for (unsigned i = 0; heddle_nn_get_input(net, i, &p) == HEDDLE_OK; i++)
        show_port(c, "input ", &p);
    for (unsigned i = 0; heddle_nn_get_output(net, i, &p) == HEDDLE_OK; i++)
        show_port(c, "output", &p);
}

static int show_view(struct cli *c, const heddle_nn *net, const struct heddle_nn_view *v,
                     const struct nn_show *s)
{
    const int rc = s->page != NULL ? show_page(c, v, s) : 0;

    if (rc != 0)
        return rc;
    if (c->json)
        return show_json(c, v, s->model);
    show_ports(c, net);
    return show_print(c, v);
}

static int show_net(struct cli *c, heddle_nn *net, const struct nn_show *s)
{
    char why[SHOW_WHY] = "";
    const struct heddle_nn_opts o = {.size = sizeof(o), .why = why, .why_bytes = sizeof(why)};
    const unsigned n = heddle_nn_get_ninputs(net);
    struct heddle_nn_tensor *in = calloc(n > 0 ? n : 1, sizeof(*in));
    struct heddle_nn_view *v = NULL;
    heddle_status st;
    int rc;

    if (in == NULL)
        return cli_fail(c, "no memory for the inputs");
    rc = show_inputs(c, net, s, in);
    if (rc == 0) {
        st = heddle_nn_view_create(net, in, n, &o, &v);
        if (st == HEDDLE_OK) {
            rc = show_view(c, net, v, s);
        } else if (st == HEDDLE_ENOSYS && !c->json && s->page == NULL) {
            show_ports(c, net); /* which it has, with a plan or without one */
            fprintf(c->out, "%s\n", why);
        } else {
            rc = cli_fail(c, "%s", why);
        }
    }
    heddle_nn_view_destroy(v);
    free(in);
    return rc;
}

int nn_show(struct cli *c, heddle_ctx *ctx, const struct nn_show *s)
{
    char why[SHOW_WHY] = "";
    const struct heddle_nn_opts o = {.size = sizeof(o), .why = why, .why_bytes = sizeof(why)};
    heddle_nn *net = NULL;
    int rc;

    if (heddle_nn_open(ctx, s->model, &o, &net) != HEDDLE_OK)
        return cli_fail(c, "%s", why);
    rc = show_net(c, net, s);
    heddle_nn_close(net);
    return rc;
}
