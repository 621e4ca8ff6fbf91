/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_MODEL_MODEL_H
#define HEDDLE_TOOLS_MODEL_MODEL_H

/*
 * What the sources of `heddle model` share: rows of measurements, and plots.
 *
 *   cmd/model.c   the command; list, show, forget, path
 *   model/plot.c  plot: from rows to panels, as text and JSON
 *   model/svg.c   panels as a picture
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cmd/cmd.h"
#include "heddle/perf.h"

#define MODEL_CELL 32

/* Measured shapes in an order of their own. The strings in it live as long as
 * the perf. */
struct model_rows {
    struct heddle_perf_info *row;
    size_t n, cap;
};

/* A heddle_perf_info_fn that takes a struct model_rows. */
heddle_status model_rows_add(void *user, const struct heddle_perf_info *info);
/* By variant, device, version, work, shape. */
void model_rows_sort(struct model_rows *r);
void model_rows_fini(struct model_rows *r);
/* Same variant, device and version. */
bool model_row_same(const struct heddle_perf_info *a, const struct heddle_perf_info *b);
/* The same in a table. */
const char *model_cell_ns(char cell[MODEL_CELL], double ns);
const char *model_cell_bytes(char cell[MODEL_CELL], double bytes);
/* "-" for 0. */
const char *model_cell_count(char cell[MODEL_CELL], double n);
const char *model_cell_rate(char cell[MODEL_CELL], double bytes_per_s);

/* --- plots --------------------------------------------------------------- */

#define PLOT_CURVE 49 /* places where a curve is known, both ends included */

enum plot_axis { PLOT_COUNT, PLOT_BYTES, PLOT_NS, PLOT_RATE };

struct plot_point {
    double x, y;
    double lo, hi; /* of y: one median absolute deviation */
    double fit;    /* what the model says there; 0: nothing */
    const struct heddle_perf_info *row;
};

struct plot_series {
    const char *variant, *device; /* or from and to */
    uint64_t version;
    const struct plot_point *point; /* by x */
    size_t n;
    bool has_curve;
    double curve[PLOT_CURVE]; /* y, evenly spaced in log x */
};

/* All of one kernel, or all links. */
struct plot_panel {
    const char *title;
    const char *xname, *yname;
    enum plot_axis xaxis, yaxis;
    bool is_link;
    struct model_rows rows;
    struct plot_point *point;
    size_t npoints;
    struct plot_series *series;
    size_t nseries;
};

/* A whole picture. Errors are left in `out`. */
void model_svg(FILE *out, const struct plot_panel *panel, size_t n);

struct model_plot {
    const char *kernel; /* NULL: all of them */
    const char *file;   /* NULL: no picture */
    bool links;         /* only them */
};

/* The exit status goes to *rc_out when a sentence was said; else the status is
 * to be reported like that of any other verb. */
heddle_status model_plot(struct cli *c, heddle_perf *perf, const struct model_plot *a, int *rc_out);

#endif /* HEDDLE_TOOLS_MODEL_MODEL_H */
