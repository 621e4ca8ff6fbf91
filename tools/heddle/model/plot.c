/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model/plot: time against size per variant and device, or bandwidth against
 * size per link, with what the models make of it.
 *
 * Output     with -o a picture and, with --json, an object about it; else a
 *            table, with --json an object per point.
 * Size       declared flops where all points of a kernel have them, else bytes;
 *            a point that has neither is left out.
 */
#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "common/output.h"
#include "model/model.h"

struct panels {
    heddle_perf *perf;
    struct plot_panel *panel;
    size_t n, cap;
};

/* --- gathering ----------------------------------------------------------- */

static void panel_fini(struct plot_panel *p)
{
    model_rows_fini(&p->rows);
    free(p->point);
    free(p->series);
}

static void panels_fini(struct panels *all)
{
    for (size_t i = 0; i < all->n; i++)
        panel_fini(&all->panel[i]);
    free(all->panel);
}

static double row_size(const struct plot_panel *p, const struct heddle_perf_info *i)
{
    return p->xaxis == PLOT_COUNT ? i->flops : i->bytes;
}

/* Flops, unless there are more points that have only bytes. */
static void panel_axes(struct plot_panel *p)
{
    size_t nflops = 0, nbytes = 0;

    for (size_t i = 0; i < p->rows.n; i++) {
        nflops += p->rows.row[i].flops > 0.0;
        nbytes += p->rows.row[i].bytes > 0.0;
    }
    p->xaxis = p->is_link || nbytes > nflops ? PLOT_BYTES : PLOT_COUNT;
    p->xname = p->xaxis == PLOT_COUNT ? "flop" : "size";
    p->yaxis = p->is_link ? PLOT_RATE : PLOT_NS;
    p->yname =
        p->is_link ? "bandwidth: median, deviation, curve" : "time: median, deviation, curve";
}

static void point_set(const struct plot_panel *p, struct plot_point *q,
                      const struct heddle_perf_info *i)
{
    const double least = fmax(i->ns - i->mad_ns, 0.01 * i->ns);
    const double most = i->ns + i->mad_ns;

    q->row = i;
    q->x = row_size(p, i);
    q->fit = 0.0;
    q->y = p->is_link ? 1e9 * q->x / i->ns : i->ns;
    q->lo = p->is_link ? 1e9 * q->x / most : least;
    q->hi = p->is_link ? 1e9 * q->x / least : most;
}

/* Points and series from the rows, which are sorted. */
static heddle_status panel_fill(struct plot_panel *p)
{
    const size_t n = p->rows.n > 0 ? p->rows.n : 1;

    p->point = calloc(n, sizeof(*p->point));
    p->series = calloc(n, sizeof(*p->series));
    if (p->point == NULL || p->series == NULL)
        return HEDDLE_ENOMEM;
    panel_axes(p);
    for (size_t i = 0; i < p->rows.n; i++) {
        const struct heddle_perf_info *row = &p->rows.row[i];
        struct plot_point *q = &p->point[p->npoints];
        struct plot_series *s;

        if (row_size(p, row) <= 0.0)
            continue;
        if (p->npoints == 0 || !model_row_same(q[-1].row, row))
            p->series[p->nseries++] = (struct plot_series){.variant = row->variant,
                                                           .device = row->device,
                                                           .version = row->version,
                                                           .point = q};
        point_set(p, q, row);
        p->npoints++;
        s = &p->series[p->nseries - 1];
        s->n++;
    }
    return HEDDLE_OK;
}

static struct plot_panel *panels_add(struct panels *all, const char *title)
{
    struct plot_panel *p;

    if (all->n == all->cap) {
        const size_t cap = all->cap == 0 ? 8 : all->cap * 2;

        p = realloc(all->panel, cap * sizeof(*p));
        if (p == NULL)
            return NULL;
        all->panel = p;
        all->cap = cap;
    }
    p = &all->panel[all->n++];
    memset(p, 0, sizeof(*p));
    p->title = title;
    return p;
}

/* --- curves -------------------------------------------------------------- */

/* What the model says about a size that was never measured; 0: no curve. */
static heddle_status kernel_curve(heddle_perf *perf, const struct plot_panel *p,
                                  const struct plot_series *s, double x, double *ns_out)
{
    const struct heddle_perf_key key = {p->title, s->variant, s->device, s->version};
    const bool is_flops = p->xaxis == PLOT_COUNT;
    struct heddle_estimate est = {0};
    /* A hash that no shape has, or one in 2^64. */
    const heddle_status st = heddle_perf_query(perf, &key, UINT64_C(0x6e6f7468696e67),
                                               is_flops ? x : 0.0, is_flops ? 0.0 : x, &est);

    *ns_out = est.source == HEDDLE_EST_FIT ? est.ns : 0.0;
    return st;
}

static double curve_size(const struct plot_series *s, size_t i)
{
    const double min = s->point[0].x, max = s->point[s->n - 1].x;

    return min * pow(max / min, (double)i / (PLOT_CURVE - 1));
}

static heddle_status kernel_curves(heddle_perf *perf, struct plot_panel *p)
{
    for (size_t k = 0; k < p->nseries; k++) {
        struct plot_series *s = &p->series[k];

        s->has_curve = true;
        for (size_t i = 0; i < PLOT_CURVE; i++) {
            const heddle_status st = kernel_curve(perf, p, s, curve_size(s, i), &s->curve[i]);

            if (st != HEDDLE_OK)
                return st;
            s->has_curve = s->has_curve && s->curve[i] > 0.0;
        }
        for (size_t i = 0; s->has_curve && i < s->n; i++) {
            struct plot_point *q = &p->point[s->point - p->point + (long)i];
            const heddle_status st = kernel_curve(perf, p, s, q->x, &q->fit);

            if (st != HEDDLE_OK)
                return st;
        }
    }
    return HEDDLE_OK;
}

static heddle_status link_curve(void *user, const struct heddle_perf_link_info *info)
{
    struct plot_panel *p = user;

    for (size_t k = 0; k < p->nseries; k++) {
        struct plot_series *s = &p->series[k];
        struct plot_point *q = &p->point[s->point - p->point];

        if (strcmp(s->variant, info->from) != 0 || strcmp(s->device, info->to) != 0)
            continue;
        s->has_curve = true;
        for (size_t i = 0; i < PLOT_CURVE; i++) {
            const double x = curve_size(s, i);

            s->curve[i] = 1e9 * x / (info->latency_ns + 1e9 * x / info->bytes_per_s);
        }
        for (size_t i = 0; i < s->n; i++)
            q[i].fit = info->latency_ns + 1e9 * q[i].x / info->bytes_per_s;
    }
    return HEDDLE_OK;
}

static heddle_status add_one(struct panels *all, const char *kernel, bool is_link)
{
    struct plot_panel *p = panels_add(all, is_link ? "links" : kernel);
    heddle_status st;

    if (p == NULL)
        return HEDDLE_ENOMEM;
    p->is_link = is_link;
    st = heddle_perf_show(all->perf, kernel, model_rows_add, &p->rows);
    if (st != HEDDLE_OK)
        return st;
    model_rows_sort(&p->rows);
    st = panel_fill(p);
    if (st == HEDDLE_OK && is_link)
        st = heddle_perf_each_link(all->perf, link_curve, p);
    else if (st == HEDDLE_OK)
        st = kernel_curves(all->perf, p);
    if (st == HEDDLE_OK && p->npoints == 0) {
        panel_fini(p); /* it has no declared cost */
        all->n--;
    }
    return st;
}

static heddle_status add_kernel(void *user, const struct heddle_perf_kernel_info *info)
{
    return add_one(user, info->name, false);
}

static heddle_status gather(struct panels *all, const struct model_plot *a)
{
    heddle_status st = HEDDLE_OK;

    if (a->kernel != NULL)
        return add_one(all, a->kernel, false);
    if (!a->links)
        st = heddle_perf_list(all->perf, add_kernel, all);
    if (st == HEDDLE_OK)
        st = add_one(all, HEDDLE_PERF_LINKS, true);
    if (st == HEDDLE_ENOENT) { /* no links are no failure */
        panel_fini(&all->panel[--all->n]);
        st = HEDDLE_OK;
    }
    return st;
}

/* --- output -------------------------------------------------------------- */

static heddle_status point_json(FILE *out, const struct plot_panel *p, const struct plot_point *q)
{
    char hex[MODEL_CELL];
    struct heddle_json j;

    heddle_json_init_file(&j, out);
    heddle_json_object(&j);
    if (p->is_link) {
        heddle_json_key_str(&j, "from", q->row->variant);
        heddle_json_key_str(&j, "to", q->row->device);
        heddle_json_key_double(&j, "bytes", q->x);
        heddle_json_key_double(&j, "bytes_per_s", q->y);
    } else {
        heddle_json_key_str(&j, "kernel", p->title);
        heddle_json_key_str(&j, "variant", q->row->variant);
        heddle_json_key_str(&j, "device", q->row->device);
        snprintf(hex, sizeof(hex), "%016" PRIx64, q->row->version);
        heddle_json_key_str(&j, "version", hex);
        heddle_json_key_double(&j, p->xaxis == PLOT_COUNT ? "flops" : "bytes", q->x);
    }
    heddle_json_key_double(&j, "ns", q->row->ns);
    heddle_json_key_double(&j, "mad_ns", q->row->mad_ns);
    heddle_json_key(&j, "fit_ns");
    if (q->fit > 0.0)
        heddle_json_double(&j, q->fit);
    else
        heddle_json_null(&j);
    heddle_json_key_uint(&j, "samples", q->row->count);
    heddle_json_end(&j);
    heddle_json_line(&j);
    return heddle_json_finish(&j);
}

static void series_table(FILE *out, const struct plot_panel *p, const struct plot_series *s)
{
    char size[MODEL_CELL], ns[MODEL_CELL], mad[MODEL_CELL], fit[MODEL_CELL], rate[MODEL_CELL];

    fprintf(out, "%s %s %s%s%s\n", s->variant, p->is_link ? "to" : "on", s->device,
            p->is_link ? "" : ", kernel ", p->is_link ? "" : p->title);
    fprintf(out, "  %12s %12s %12s %12s%s\n", p->xname, "median", "MAD", "curve",
            p->is_link ? "    bandwidth" : "");
    for (size_t i = 0; i < s->n; i++) {
        const struct plot_point *q = &s->point[i];

        fprintf(out, "  %12s %12s %12s %12s",
                p->xaxis == PLOT_COUNT ? model_cell_count(size, q->x)
                                       : model_cell_bytes(size, q->x),
                model_cell_ns(ns, q->row->ns), model_cell_ns(mad, q->row->mad_ns),
                q->fit > 0.0 ? model_cell_ns(fit, q->fit) : "-");
        if (p->is_link)
            fprintf(out, " %12s", model_cell_rate(rate, q->y));
        fprintf(out, "\n");
    }
}

static heddle_status print_points(struct cli *c, const struct panels *all)
{
    heddle_status st = HEDDLE_OK;

    for (size_t k = 0; k < all->n; k++) {
        const struct plot_panel *p = &all->panel[k];

        for (size_t i = 0; st == HEDDLE_OK && c->json && i < p->npoints; i++)
            st = point_json(c->out, p, &p->point[i]);
        for (size_t i = 0; !c->json && i < p->nseries; i++) {
            fputs(k + i > 0 ? "\n" : "", c->out);
            series_table(c->out, p, &p->series[i]);
        }
    }
    return st;
}

/* The files of models are inputs: 0, or the exit status after a sentence. */
static int check_models(struct cli *c, const char *file, const char *dir)
{
    DIR *d = opendir(dir);
    char path[PATH_MAX + 256];
    int rc = 0;

    for (const struct dirent *e; d != NULL && rc == 0 && (e = readdir(d)) != NULL;) {
        snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
        rc = output_check_input(c, file, path);
    }
    if (d != NULL)
        closedir(d);
    return rc;
}

/* 0, or the exit status after a sentence. */
static int write_picture(struct cli *c, const char *file, const struct panels *all)
{
    struct output o;
    const int rc = output_begin_stream(&o, c, file);

    if (rc != 0)
        return rc;
    model_svg(o.f, all->panel, all->n);
    return output_end(&o, 0);
}

/* No picture is a failure when one was asked for. */
static int say_nothing(struct cli *c, heddle_perf *perf, const struct model_plot *a)
{
    char why[512];
    struct heddle_text t;

    heddle_text_init(&t, why, sizeof(why));
    if (a->kernel != NULL)
        heddle_text_add(&t, "nothing to plot: %s has no declared cost", a->kernel);
    else
        heddle_text_add(&t, "nothing to plot: no %s in %s", a->links ? "links" : "models",
                        heddle_perf_get_dir(perf));
    if (a->file != NULL)
        return cli_fail(c, "%s", why);
    if (!c->json)
        fprintf(c->out, "%s\n", why);
    return 0;
}

static heddle_status picture_json(struct cli *c, const char *file, const struct panels *all)
{
    size_t npoints = 0, nseries = 0;
    struct heddle_json j;

    for (size_t i = 0; i < all->n; i++) {
        npoints += all->panel[i].npoints;
        nseries += all->panel[i].nseries;
    }
    heddle_json_init_file(&j, c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "file", file);
    heddle_json_key_uint(&j, "points", npoints);
    heddle_json_key_uint(&j, "series", nseries);
    heddle_json_end(&j);
    heddle_json_line(&j);
    return heddle_json_finish(&j);
}

heddle_status model_plot(struct cli *c, heddle_perf *perf, const struct model_plot *a, int *rc_out)
{
    struct panels all = {.perf = perf};
    heddle_status st = gather(&all, a);

    if (st == HEDDLE_OK && all.n == 0)
        *rc_out = say_nothing(c, perf, a);
    else if (st == HEDDLE_OK && a->file == NULL)
        st = print_points(c, &all);
    else if (st == HEDDLE_OK)
        *rc_out = check_models(c, a->file, heddle_perf_get_dir(perf));
    if (st == HEDDLE_OK && all.n > 0 && a->file != NULL && *rc_out == 0)
        *rc_out = write_picture(c, a->file, &all);
    if (st == HEDDLE_OK && all.n > 0 && a->file != NULL && *rc_out == 0 && c->json)
        st = picture_json(c, a->file, &all);
    panels_fini(&all);
    return st;
}
