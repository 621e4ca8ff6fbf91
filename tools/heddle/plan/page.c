/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan/page: pictures of a plan.
 *
 * Pictures   SVG in the page. What is narrower than a third of a pixel is merged
 *            with its neighbour, so that a page of ten thousand operations
 *            stays small.
 * Memory     counted in real time: room is taken when a step begins and given
 *            back when the rules say so; at one moment, back before taken.
 */
#include "plan/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "common/page.h"

#define WIDTH  1100.0
#define LEFT   90.0
#define RIGHT  20.0
#define PLOT   (WIDTH - LEFT - RIGHT)
#define HEIGHT 260.0
#define LANE   22.0
#define TOP    14.0
#define NTOP   20 /* rows of a table */

static const char *op_name(const struct heddle_plan_graph *g, uint32_t op, char buf[PLAN_CELL])
{
    if (op == HEDDLE_PLAN_NONE)
        return "from the beginning";
    if (g->ops[op].name != NULL)
        return g->ops[op].name;
    snprintf(buf, PLAN_CELL, "%u", op);
    return buf;
}

/* A time of the plan: with a unit where the graph says its unit. */
static const char *page_time(const struct plan_page *s, double t, char buf[PLAN_CELL])
{
    const double ns = t * s->g->unit_s * 1e9;
    struct heddle_text x;

    heddle_text_init(&x, buf, PLAN_CELL);
    if (s->g->unit_s <= 0 || ns > 9e18)
        heddle_text_add(&x, "%.6g", t);
    else if (ns < 1)
        heddle_text_add(&x, "%.3g ns", ns);
    else
        heddle_text_ns(&x, (uint64_t)(ns + 0.5));
    return buf;
}

static double x_of(const struct plan_page *s, double t)
{
    return LEFT + (s->plan->makespan > 0 ? t / s->plan->makespan * PLOT : 0);
}

/* --- memory over time ------------------------------------------------------- */

struct event {
    double t;
    int64_t bytes;
};

static int by_time(const void *a, const void *b)
{
    const struct event *x = a, *y = b;

    if (x->t != y->t)
        return x->t < y->t ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

struct memory {
    const struct plan_page *s;
    struct event *event;
    size_t n;
    bool *is_in; /* [nvalues] */
    int64_t initial;
};

static void add_event(struct memory *m, double t, int64_t bytes)
{
    if (bytes != 0)
        m->event[m->n++] = (struct event){t, bytes};
}

static void add_step(struct memory *m, uint32_t i)
{
    const struct heddle_plan_graph *g = m->s->g;
    const struct heddle_plan_step *s = &m->s->plan->steps[i];
    const double begin = m->s->begin[i], end = m->s->end[i];
    int64_t sum = 0;

    if (s->kind == HEDDLE_PLAN_DISCARD) {
        add_event(m, end, -(int64_t)g->values[s->what].bytes);
        m->is_in[s->what] = false;
    } else if (s->kind == HEDDLE_PLAN_PREFETCH) {
        add_event(m, begin, (int64_t)g->values[s->what].bytes);
        m->is_in[s->what] = true;
    } else if (s->kind == HEDDLE_PLAN_COMPUTE) {
        const struct heddle_plan_op *op = &g->ops[s->what];

        for (uint32_t k = 0; k < op->nvalues; k++) {
            const uint32_t v = op->first_value + k;

            if ((s->outputs >> k & 1) == 0 || m->is_in[v])
                continue;
            m->is_in[v] = true;
            if (k > 0 || !s->in_place)
                sum += (int64_t)g->values[v].bytes;
        }
        add_event(m, begin, sum + (int64_t)op->work_bytes);
        add_event(m, end, -(int64_t)op->work_bytes);
        if (s->in_place) {
            m->is_in[op->inplace] = false;
            add_event(m, end,
                      (int64_t)g->values[op->first_value].bytes -
                          (int64_t)g->values[op->inplace].bytes);
        }
    }
}

static bool memory_init(struct memory *m, const struct plan_page *s)
{
    m->s = s;
    m->n = 0;
    m->initial = 0;
    m->event = calloc(3 * (size_t)s->plan->nsteps + 1, sizeof(*m->event));
    m->is_in = calloc((size_t)s->g->nvalues + 1, sizeof(*m->is_in));
    if (m->event == NULL || m->is_in == NULL)
        return false;
    for (uint32_t v = 0; v < s->g->nvalues; v++)
        if (s->g->values[v].op == HEDDLE_PLAN_NONE &&
            (s->g->values[v].flags & HEDDLE_PLAN_AT_HOST) == 0) {
            m->is_in[v] = true;
            m->initial += (int64_t)s->g->values[v].bytes;
        }
    for (uint32_t i = 0; i < s->plan->nsteps; i++)
        add_step(m, i);
    qsort(m->event, m->n, sizeof(*m->event), by_time);
    return true;
}

static void memory_fini(struct memory *m)
{
    free(m->event);
    free(m->is_in);
}

/* y of so many bytes; `high` is at the top. */
static double y_of(double bytes, double high)
{
    return TOP + HEIGHT * (1 - (high > 0 ? bytes / high : 0));
}

/* The largest of each column of a third of a pixel. */
static void memory_curve(const struct memory *m, double high, FILE *f)
{
    int64_t now = m->initial, top = now;
    double x = LEFT;

    fprintf(f, "<path class=mem d=\"M%.1f %.1fV%.1f", LEFT, TOP + HEIGHT, y_of((double)now, high));
    for (size_t i = 0; i < m->n; i++) {
        const double at = x_of(m->s, m->event[i].t);

        if (at > x + 0.33) {
            fprintf(f, "V%.1fH%.1f", y_of((double)top, high), at);
            x = at;
            top = now;
        }
        now += m->event[i].bytes;
        top = now > top ? now : top;
    }
    fprintf(f, "V%.1fH%.1fV%.1fZ\"/>\n", y_of((double)top, high), LEFT + PLOT, TOP + HEIGHT);
}

static void axis_bytes(double high, FILE *f)
{
    char a[PLAN_CELL];

    for (unsigned i = 0; i <= 4; i++) {
        const double v = high * i / 4;

        fprintf(f,
                "<line class=grid x1=%.0f x2=%.0f y1=%.1f y2=%.1f />"
                "<text x=%.0f y=%.1f text-anchor=end>%s</text>\n",
                LEFT, LEFT + PLOT, y_of(v, high), y_of(v, high), LEFT - 6, y_of(v, high) + 4,
                plan_text_bytes(a, (uint64_t)v));
    }
}

static void budget_line(const struct plan_page *s, double high, FILE *f)
{
    const double y = y_of((double)s->plan->budget, high);
    char a[PLAN_CELL];

    fprintf(f,
            "<line class=budget x1=%.0f x2=%.0f y1=%.1f y2=%.1f />"
            "<text x=%.0f y=%.1f text-anchor=end>budget %s</text>\n",
            LEFT, LEFT + PLOT, y, y, LEFT + PLOT, y - 4, plan_text_bytes(a, s->plan->budget));
}

static double top_of(const struct plan_page *s)
{
    const double arena = (double)s->plan->arena_bytes;
    const double budget = (double)s->plan->budget;

    /* A budget far above would leave the picture empty. */
    return budget < 3 * arena ? 1.05 * budget : 1.2 * arena;
}

/* --- streams -------------------------------------------------------------- */

struct lane {
    double y;
    uint32_t first, last; /* steps of a rectangle that waits for its neighbour */
    unsigned n;           /* of them on this stream */
    const char *kind;
};

/* The rectangle, with what is behind it for a mouse that stands there. */
static void lane_flush(const struct plan_page *s, struct lane *l, FILE *f)
{
    const struct heddle_plan_step *p = &s->plan->steps[l->first];
    const double x = x_of(s, s->begin[l->first]);
    char a[PLAN_CELL], b[PLAN_CELL];

    if (l->kind == NULL)
        return;
    fprintf(f, "<rect class=%s x=%.2f y=%.1f width=%.2f height=%.0f><title>", l->kind, x, l->y,
            x_of(s, s->end[l->last]) - x, LANE - 6);
    page_text(
        f, op_name(s->g, p->kind == HEDDLE_PLAN_COMPUTE ? p->what : s->g->values[p->what].op, a));
    if (l->n > 1)
        fprintf(f, " and %u more", l->n - 1);
    fprintf(f, "%s, from %s", strcmp(l->kind, "again") == 0 ? ", computed again" : "",
            page_time(s, s->begin[l->first], a));
    fprintf(f, " to %s</title></rect>\n", page_time(s, s->end[l->last], b));
    l->kind = NULL;
}

/* Step i on its stream. Neighbours that cannot be told apart become one rectangle. */
static void lane_add(const struct plan_page *s, struct lane *l, uint32_t i, const char *kind,
                     FILE *f)
{
    const double x0 = x_of(s, s->begin[i]), x1 = x_of(s, s->end[i]);
    const double end = l->kind != NULL ? x_of(s, s->end[l->last]) : 0;
    const bool is_narrow =
        x1 - x0 < 1 || (l->kind != NULL && end - x_of(s, s->begin[l->first]) < 1);

    if (l->kind != NULL && strcmp(l->kind, kind) == 0 && x0 - end < 0.33 && is_narrow) {
        l->last = i;
        l->n++;
        return;
    }
    if (l->kind != NULL && x1 - x0 < 0.1 && x0 - end < 0.1)
        return; /* too narrow to be seen */
    lane_flush(s, l, f);
    *l = (struct lane){l->y, i, i, 1, kind};
}

/* The streams a machine has: computations, and two for each store. */
static unsigned count_lanes(const struct plan_page *s)
{
    return s->m.disk.out_rate > 0 ? 5 : s->m.host.out_rate > 0 ? 3 : 1;
}

static bool lanes(const struct plan_page *s, double y, FILE *f)
{
    static const char *const name[] = {"compute", "to host", "from host", "to disk", "from disk"};
    struct lane lane[5];
    bool *is_done = calloc((size_t)s->g->nops + 1, sizeof(*is_done));

    if (is_done == NULL)
        return false;
    for (unsigned k = 0; k < 5; k++)
        lane[k] = (struct lane){.y = y + LANE * k};
    for (uint32_t i = 0; i < s->plan->nsteps; i++) {
        const struct heddle_plan_step *p = &s->plan->steps[i];
        const char *kind = "move";
        unsigned k = 0;

        if (p->kind == HEDDLE_PLAN_DISCARD || p->kind == HEDDLE_PLAN_FORGET)
            continue;
        if (p->kind == HEDDLE_PLAN_COMPUTE) {
            kind = is_done[p->what] ? "again" : "keep";
            is_done[p->what] = true;
        } else {
            k = 2u * p->level - (p->kind == HEDDLE_PLAN_OFFLOAD);
        }
        lane_add(s, &lane[k], i, kind, f);
    }
    for (unsigned k = 0; k < count_lanes(s); k++) {
        lane_flush(s, &lane[k], f);
        fprintf(f, "<text x=%.0f y=%.1f text-anchor=end>%s</text>\n", LEFT - 6,
                lane[k].y + LANE - 9, name[k]);
    }
    free(is_done);
    return true;
}

static bool memory_picture(const struct plan_page *s, FILE *f)
{
    const double high = top_of(s), below = LANE * count_lanes(s);
    char a[PLAN_CELL];
    struct memory m;
    bool is_good = memory_init(&m, s);

    fprintf(f,
            "<h2>Memory over time</h2>\n<svg viewBox=\"0 0 %.0f %.0f\" "
            "role=img aria-label=\"memory over time\">\n",
            WIDTH, TOP + HEIGHT + below + 26);
    axis_bytes(high, f);
    if (is_good)
        memory_curve(&m, high, f);
    budget_line(s, high, f);
    is_good = is_good && lanes(s, TOP + HEIGHT + 10, f);
    fprintf(f,
            "<text class=dim x=%.0f y=%.0f>0</text><text class=dim x=%.0f "
            "y=%.0f text-anchor=end>%s</text></svg>\n"
            "<p class=dim><span style=\"color:var(--keep)\">&#9632;</span> "
            "first computation <span style=\"color:var(--again)\">&#9632;"
            "</span> computed again <span style=\"color:var(--move)\">"
            "&#9632;</span> copy</p>\n",
            LEFT, TOP + HEIGHT + below + 22, LEFT + PLOT, TOP + HEIGHT + below + 22,
            page_time(s, s->plan->makespan, a));
    memory_fini(&m);
    return is_good;
}

/* --- addresses ------------------------------------------------------------ */

/* When the value that came with step `from` leaves. */
static void leave_times(const struct plan_page *s, double *leave)
{
    uint32_t q = s->plan->nplaces;
    uint32_t i = s->plan->nsteps;
    double *next = leave + s->plan->nplaces; /* [nvalues] */

    for (uint32_t v = 0; v < s->g->nvalues; v++)
        next[v] = s->plan->makespan;
    while (i-- > 0) {
        const struct heddle_plan_step *p = &s->plan->steps[i];

        if (p->kind == HEDDLE_PLAN_DISCARD)
            next[p->what] = s->end[i];
        else if (p->kind == HEDDLE_PLAN_COMPUTE && p->in_place)
            next[s->g->ops[p->what].inplace] = s->end[i];
        for (; q > 0 && s->plan->places[q - 1].step == i; q--) {
            const uint32_t v = s->plan->places[q - 1].value;

            leave[q - 1] = v == HEDDLE_PLAN_NONE ? s->end[i] : next[v];
        }
    }
}

static void box(const struct plan_page *s, uint32_t i, double leave, bool is_again, double high,
                FILE *f)
{
    const struct heddle_plan_place *q = &s->plan->places[i];
    const struct heddle_plan_step *p = &s->plan->steps[q->step];
    const bool is_work = q->value == HEDDLE_PLAN_NONE;
    const uint64_t bytes = is_work ? s->g->ops[p->what].work_bytes : s->g->values[q->value].bytes;
    const double x = x_of(s, s->begin[q->step]), w = x_of(s, leave) - x;
    const double h = HEIGHT * (high > 0 ? (double)bytes / high : 0);
    const bool is_move = p->kind == HEDDLE_PLAN_PREFETCH;
    char a[PLAN_CELL], b[PLAN_CELL];

    if (w < 0.2 || h < 0.2)
        return;
    fprintf(f,
            "<rect class=\"box%s\" x=%.2f y=%.2f width=%.2f height=%.2f>"
            "<title>",
            is_move    ? " move"
            : is_again ? " again"
                       : "",
            x, y_of((double)(q->offset + bytes), high), w, h);
    page_text(f, op_name(s->g, is_work ? p->what : s->g->values[q->value].op, a));
    fprintf(f, "%s, %s at %llu</title></rect>\n", is_work ? " (workspace)" : "",
            plan_text_bytes(b, bytes), (unsigned long long)q->offset);
}

static bool address_picture(const struct plan_page *s, FILE *f)
{
    const size_t n = (size_t)s->plan->nplaces + s->g->nvalues + 1;
    const double high = top_of(s);
    double *leave = calloc(n, sizeof(*leave));
    bool *is_made = calloc((size_t)s->g->nvalues + 1, sizeof(*is_made));

    if (leave == NULL || is_made == NULL) {
        free(leave);
        free(is_made);
        return false;
    }
    fprintf(f,
            "<h2>Addresses</h2>\n<svg viewBox=\"0 0 %.0f %.0f\" role=img "
            "aria-label=\"addresses over time\">\n",
            WIDTH, TOP + HEIGHT + 12);
    axis_bytes(high, f);
    leave_times(s, leave);
    for (uint32_t i = 0; i < s->plan->nplaces; i++) {
        const uint32_t v = s->plan->places[i].value;

        box(s, i, leave[i], v != HEDDLE_PLAN_NONE && is_made[v], high, f);
        if (v != HEDDLE_PLAN_NONE)
            is_made[v] = true;
    }
    budget_line(s, high, f);
    fputs("</svg>\n", f);
    free(leave);
    free(is_made);
    return true;
}

/* --- tables --------------------------------------------------------------- */

struct row {
    uint32_t id, times;
    double cost;
};

static int by_cost(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    if (x->cost != y->cost)
        return x->cost > y->cost ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

/* Counts steps of a kind: `row` has one entry for each id. */
static void table(const struct plan_page *s, struct row *row, size_t n, const char *title,
                  const char *unit, bool is_op, FILE *f)
{
    char a[PLAN_CELL];

    qsort(row, n, sizeof(*row), by_cost);
    if (n == 0 || row[0].times == 0)
        return;
    fprintf(f, "<h2>%s</h2>\n<table><tr><th>operation<th>times<th>%s</tr>\n", title, unit);
    for (size_t i = 0; i < n && i < NTOP && row[i].times > 0; i++) {
        fputs("<tr><td>", f);
        page_text(f, op_name(s->g, is_op ? row[i].id : s->g->values[row[i].id].op, a));
        fprintf(f, "<td>%u<td>", row[i].times);
        if (is_op)
            fprintf(f, "%s</tr>\n", page_time(s, row[i].cost, a));
        else
            fprintf(f, "%s</tr>\n", plan_text_bytes(a, (uint64_t)row[i].cost));
    }
    fputs("</table>\n", f);
}

static bool tables(const struct plan_page *s, FILE *f)
{
    struct row *op = calloc((size_t)s->g->nops + 1, sizeof(*op));
    struct row *value = calloc((size_t)s->g->nvalues + 1, sizeof(*value));
    bool *is_done = calloc((size_t)s->g->nops + 1, sizeof(*is_done));
    const bool is_good = op != NULL && value != NULL && is_done != NULL;

    for (uint32_t i = 0; is_good && i < s->plan->nsteps; i++) {
        const struct heddle_plan_step *p = &s->plan->steps[i];

        if (p->kind == HEDDLE_PLAN_COMPUTE && is_done[p->what]) {
            op[p->what].times++;
            op[p->what].cost += s->g->ops[p->what].time;
        } else if (p->kind == HEDDLE_PLAN_COMPUTE) {
            is_done[p->what] = true;
        } else if (p->kind == HEDDLE_PLAN_OFFLOAD || p->kind == HEDDLE_PLAN_PREFETCH) {
            value[p->what].times++;
            value[p->what].cost += (double)s->g->values[p->what].bytes;
        }
    }
    for (uint32_t i = 0; is_good && i < s->g->nops; i++)
        op[i].id = i;
    for (uint32_t i = 0; is_good && i < s->g->nvalues; i++)
        value[i].id = i;
    if (is_good) {
        table(s, op, s->g->nops, "Computed again, the costliest", "time", true, f);
        table(s, value, s->g->nvalues, "Moved, the largest", "bytes", false, f);
    }
    free(op);
    free(value);
    free(is_done);
    return is_good;
}

/* --- the trade-off ---------------------------------------------------------- */

static void curve(const struct plan_page *s, const char *kind, bool is_bound, double high, FILE *f)
{
    const double full = (double)s->point[PLAN_POINTS - 1].budget;
    const char *move = "M";

    fprintf(f, "<path class=%s d=\"", kind);
    for (unsigned i = 0; i < PLAN_POINTS; i++) {
        const struct plan_point *p = &s->point[i];

        if (!p->is_feasible)
            continue;
        fprintf(f, "%s%.1f %.1f", move, LEFT + PLOT * (double)p->budget / full,
                y_of(is_bound ? p->bound : p->increase, high));
        move = "L";
    }
    fputs("\"/>\n", f);
}

static void trade_off(const struct plan_page *s, FILE *f)
{
    const double full = (double)s->point[PLAN_POINTS - 1].budget;
    double high = 0.01;
    bool has_plan = false;
    char a[PLAN_CELL];

    for (unsigned i = 0; i < PLAN_POINTS; i++) {
        has_plan = has_plan || s->point[i].is_feasible;
        if (s->point[i].is_feasible && 1.1 * s->point[i].increase > high)
            high = 1.1 * s->point[i].increase;
    }
    if (!has_plan) {
        fputs("<h2>Memory against time</h2>\n<p>No plan was found up to 5 % "
              "above the peak of the given order.</p>\n",
              f);
        return;
    }
    fprintf(f,
            "<h2>Memory against time</h2>\n<svg viewBox=\"0 0 %.0f %.0f\" "
            "role=img aria-label=\"trade-off\">\n",
            WIDTH, TOP + HEIGHT + 24);
    for (unsigned i = 0; i <= 4; i++) {
        const double v = high * i / 4;

        fprintf(f,
                "<line class=grid x1=%.0f x2=%.0f y1=%.1f y2=%.1f />"
                "<text x=%.0f y=%.1f text-anchor=end>%+.2f %%</text>"
                "<text class=dim x=%.1f y=%.0f text-anchor=middle>%s</text>\n",
                LEFT, LEFT + PLOT, y_of(v, high), y_of(v, high), LEFT - 6, y_of(v, high) + 4,
                100 * v, LEFT + PLOT * i / 4, TOP + HEIGHT + 18,
                plan_text_bytes(a, (uint64_t)(full * i / 4)));
    }
    curve(s, "bound", true, high, f);
    curve(s, "curve", false, high, f);
    for (unsigned i = 0; i < PLAN_POINTS; i++)
        if (s->point[i].is_feasible)
            fprintf(f,
                    "<circle class=keep cx=%.1f cy=%.1f r=3><title>%s: "
                    "%+.3f %%, bound %+.3f %%</title></circle>\n",
                    LEFT + PLOT * (double)s->point[i].budget / full,
                    y_of(s->point[i].increase, high), plan_text_bytes(a, s->point[i].budget),
                    100 * s->point[i].increase, 100 * s->point[i].bound);
    fputs("</svg>\n<p class=dim>Dots: plans that were checked. Dashed: their "
          "lower bounds.</p>\n",
          f);
}

/* --- the page ------------------------------------------------------------- */

static void summary(const struct plan_page *s, FILE *f)
{
    const struct heddle_plan *p = s->plan;
    char a[PLAN_CELL], b[PLAN_CELL], d[PLAN_CELL], e[PLAN_CELL];

    fputs("<h1>", f);
    page_text(f, s->g->name);
    fprintf(f,
            "</h1>\n<p>Budget %s; alive at most %s; arena %s. Time %s, "
            "%+.3f %% over every operation once; no plan is shorter than "
            "%+.3f %% (",
            plan_text_bytes(a, p->budget), plan_text_bytes(b, p->peak_bytes),
            plan_text_bytes(d, p->arena_bytes), page_time(s, p->makespan, e),
            100 * plan_increase(p), 100 * plan_bound(p));
    page_text(f, p->bound_note);
    fprintf(f, "). %u computations, %u of them again; %u copies. Solver ", s->report.ncomputed,
            s->report.nrepeated, s->report.nmoved);
    page_text(f, p->solver);
    fprintf(f, ", %.3f s. Checked.</p>\n", p->seconds);
}

bool plan_page_write(const struct plan_page *s, FILE *f)
{
    bool is_good;

    fputs("<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8>\n<title>", f);
    page_text(f, s->g->name);
    fprintf(f, "</title>\n%s</head><body>\n", page_head);
    summary(s, f);
    is_good = memory_picture(s, f) && address_picture(s, f);
    if (s->point != NULL)
        trade_off(s, f);
    is_good = is_good && tables(s, f);
    fputs("</body></html>\n", f);
    return is_good;
}
