/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model/svg: panels of points and curves as a picture.
 *
 * Output     one SVG file that needs nothing else: colours are CSS variables,
 *            light or dark as the viewer asks for. Points carry their numbers
 *            as a title, which viewers show under the pointer.
 * Axes       logarithmic, from tick to tick: powers of 10, for bytes powers
 *            of 16. Where there are many ticks, not each one has a number.
 */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "model/model.h"

#define WIDTH   880.0
#define LEFT    96.0
#define RIGHT   40.0
#define TOP     44.0
#define HEIGHT  320.0 /* of the plot itself */
#define BOTTOM  56.0  /* numbers and name of the x axis */
#define ROW     20.0  /* of a legend */
#define COLOURS 8
#define LABELS  9 /* numbers along an axis, about */

static const char style[] = "<style>\n"
                            "svg{--bg:#fff;--fg:#222;--dim:#666;--grid:#e2e2e2;--c0:#0b62a4;"
                            "--c1:#c8501e;--c2:#1a7f4b;--c3:#8a3fa0;--c4:#a07400;--c5:#c2185b;"
                            "--c6:#00808a;--c7:#5d4037;background:var(--bg);"
                            "font:13px system-ui,sans-serif}\n"
                            "@media (prefers-color-scheme:dark){svg{--bg:#16181c;--fg:#e6e6e6;"
                            "--dim:#a0a4aa;--grid:#33363c;--c0:#5eb1ef;--c1:#ff9462;--c2:#5fce94;"
                            "--c3:#cf9be0;--c4:#e3b94a;--c5:#ff80ab;--c6:#4dd0d9;--c7:#c5a496}}\n"
                            "text{fill:var(--fg)}.dim{fill:var(--dim)}.title{font-weight:600;"
                            "font-size:15px}\n"
                            ".bg{fill:var(--bg)}.grid{stroke:var(--grid)}.frame{stroke:var(--dim);"
                            "fill:none}\n"
                            ".curve{fill:none;stroke-width:1.5}.bar{stroke-width:1.5}\n"
                            "</style>\n";

/* --- text ---------------------------------------------------------------- */

/* Bytes of the UTF-8 character at s; 0: it is none that XML may hold. */
static size_t character(const char *s)
{
    const unsigned char c = (unsigned char)s[0];
    const size_t n = c >= 0xf0 && c < 0xf5   ? 4
                     : c >= 0xe0 && c < 0xf0 ? 3
                     : c >= 0xc2 && c < 0xe0 ? 2
                                             : 1;

    if (n == 1)
        return c >= 0x20 && c < 0x7f;
    for (size_t i = 1; i < n; i++)
        if (((unsigned char)s[i] & 0xc0) != 0x80)
            return 0;
    /* Surrogates, twice encoded ones, and two that are no characters. */
    if ((c == 0xe0 && (unsigned char)s[1] < 0xa0) || (c == 0xed && (unsigned char)s[1] > 0x9f) ||
        (c == 0xef && (unsigned char)s[1] == 0xbf && (unsigned char)s[2] >= 0xbe) ||
        (c == 0xf0 && (unsigned char)s[1] < 0x90) || (c == 0xf4 && (unsigned char)s[1] > 0x8f))
        return 0;
    return n;
}

static void put_text(FILE *out, const char *s)
{
    while (*s != '\0') {
        const size_t n = character(s);

        if (n == 0)
            fputc('?', out);
        else if (*s == '<')
            fputs("&lt;", out);
        else if (*s == '>')
            fputs("&gt;", out);
        else if (*s == '&')
            fputs("&amp;", out);
        else
            fwrite(s, 1, n, out);
        s += n == 0 ? 1 : n;
    }
}

static const char *label(char cell[MODEL_CELL], enum plot_axis axis, double v)
{
    struct heddle_text t;

    if (axis == PLOT_BYTES)
        return model_cell_bytes(cell, v);
    if (axis == PLOT_RATE)
        return model_cell_rate(cell, v);
    if (axis == PLOT_NS && v >= 1.0)
        return model_cell_ns(cell, v);
    if (axis == PLOT_COUNT && v >= 1.0)
        return model_cell_count(cell, v);
    heddle_text_init(&t, cell, MODEL_CELL);
    heddle_text_double(&t, v);
    heddle_text_str(&t, axis == PLOT_NS ? " ns" : "");
    return cell;
}

/* --- axes ---------------------------------------------------------------- */

/* In units of ticks: v is at log(v) / log(step). */
struct axis {
    enum plot_axis kind;
    double step;
    double from, to; /* whole numbers */
    double px0, px1; /* where they are in the picture */
};

static void axis_init(struct axis *a, enum plot_axis kind, double min, double max)
{
    a->kind = kind;
    a->step = kind == PLOT_BYTES ? 16.0 : 10.0;
    a->from = floor(log(min) / log(a->step) + 1e-9);
    a->to = ceil(log(max) / log(a->step) - 1e-9);
    if (a->to <= a->from)
        a->to = a->from + 1.0;
}

static double axis_at(const struct axis *a, double v)
{
    const double at = log(v) / log(a->step);

    /* A bar may end below the axis. */
    return a->px0 +
           (fmin(fmax(at, a->from), a->to) - a->from) / (a->to - a->from) * (a->px1 - a->px0);
}

static void draw_axis(FILE *out, const struct axis *a, bool is_x, double low, double high)
{
    const double every = ceil((a->to - a->from) / LABELS);
    char cell[MODEL_CELL];

    for (double tick = a->from; tick <= a->to; tick += every) {
        const double v = pow(a->step, tick), at = axis_at(a, v);

        if (is_x)
            fprintf(out,
                    "<line class=\"grid\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" "
                    "y2=\"%.1f\"/><text class=\"dim\" x=\"%.1f\" y=\"%.1f\" "
                    "text-anchor=\"middle\">%s</text>\n",
                    at, low, at, high, at, high + 18.0, label(cell, a->kind, v));
        else
            fprintf(out,
                    "<line class=\"grid\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" "
                    "y2=\"%.1f\"/><text class=\"dim\" x=\"%.1f\" y=\"%.1f\" "
                    "text-anchor=\"end\">%s</text>\n",
                    low, at, high, at, low - 8.0, at + 4.0, label(cell, a->kind, v));
    }
}

/* --- a panel ------------------------------------------------------------- */

static void panel_axes(const struct plot_panel *p, struct axis *x, struct axis *y)
{
    double xmin = INFINITY, xmax = 0.0, ymin = INFINITY, ymax = 0.0;

    for (size_t i = 0; i < p->npoints; i++) {
        xmin = fmin(xmin, p->point[i].x);
        xmax = fmax(xmax, p->point[i].x);
        ymin = fmin(ymin, p->point[i].y);
        ymax = fmax(ymax, p->point[i].y);
    }
    axis_init(x, p->xaxis, xmin, xmax);
    axis_init(y, p->yaxis, ymin, ymax);
}

static void draw_curve(FILE *out, const struct plot_series *s, size_t index, const struct axis *x,
                       const struct axis *y)
{
    const double min = s->point[0].x, max = s->point[s->n - 1].x;

    fprintf(out,
            "<polyline class=\"curve\" style=\"stroke:var(--c%zu)\"%s "
            "points=\"",
            index % COLOURS, index >= COLOURS ? " stroke-dasharray=\"6 3\"" : "");
    for (size_t i = 0; i < PLOT_CURVE; i++)
        fprintf(out, "%s%.1f,%.1f", i == 0 ? "" : " ",
                axis_at(x, min * pow(max / min, (double)i / (PLOT_CURVE - 1))),
                axis_at(y, s->curve[i]));
    fprintf(out, "\"/>\n");
}

static void draw_point(FILE *out, const struct plot_panel *p, const struct plot_point *q,
                       const struct axis *x, const struct axis *y)
{
    char size[MODEL_CELL], value[MODEL_CELL], low[MODEL_CELL], high[MODEL_CELL];
    const double at = axis_at(x, q->x);

    fprintf(out, "<g><title>%s: %s (%s to %s)</title>", label(size, p->xaxis, q->x),
            label(value, p->yaxis, q->y), label(low, p->yaxis, q->lo),
            label(high, p->yaxis, q->hi));
    fprintf(out,
            "<line class=\"bar\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" "
            "y2=\"%.1f\"/><circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.2\"/></g>\n",
            at, axis_at(y, q->lo), at, axis_at(y, q->hi), at, axis_at(y, q->y));
}

static void draw_series(FILE *out, const struct plot_panel *p, size_t index, const struct axis *x,
                        const struct axis *y)
{
    const struct plot_series *s = &p->series[index];

    if (s->has_curve)
        draw_curve(out, s, index, x, y);
    fprintf(out, "<g style=\"fill:var(--c%zu);stroke:var(--c%zu)\">\n", index % COLOURS,
            index % COLOURS);
    for (size_t i = 0; i < s->n; i++)
        draw_point(out, p, &s->point[i], x, y);
    fprintf(out, "</g>\n");
}

static void draw_legend(FILE *out, const struct plot_panel *p, double top)
{
    for (size_t i = 0; i < p->nseries; i++) {
        const struct plot_series *s = &p->series[i];
        const double y = top + ROW * (double)i;

        fprintf(out,
                "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" "
                "style=\"fill:var(--c%zu)\"/><text x=\"%.1f\" y=\"%.1f\">",
                LEFT + 6.0, y - 4.0, i % COLOURS, LEFT + 18.0, y);
        put_text(out, s->variant);
        fputs(p->is_link ? " to " : " on ", out);
        put_text(out, s->device);
        if (!p->is_link)
            fprintf(out, ", version %llu", (unsigned long long)s->version);
        fputs(s->has_curve ? "</text>\n" : " (no curve yet)</text>\n", out);
    }
}

static double panel_height(const struct plot_panel *p)
{
    return TOP + HEIGHT + BOTTOM + ROW * (double)p->nseries + 20.0;
}

static void draw_panel(FILE *out, const struct plot_panel *p, double top)
{
    const double y0 = top + TOP, y1 = y0 + HEIGHT;
    struct axis x, y;

    panel_axes(p, &x, &y);
    x.px0 = LEFT;
    x.px1 = WIDTH - RIGHT;
    y.px0 = y1;
    y.px1 = y0;
    fprintf(out, "<text class=\"title\" x=\"%.1f\" y=\"%.1f\">", LEFT, top + 22.0);
    put_text(out, p->title);
    fprintf(out,
            "</text>\n<text class=\"dim\" x=\"%.1f\" y=\"%.1f\" "
            "text-anchor=\"end\">%s</text>\n",
            WIDTH - RIGHT, top + 22.0, p->yname);
    draw_axis(out, &x, true, y0, y1);
    draw_axis(out, &y, false, LEFT, WIDTH - RIGHT);
    fprintf(out,
            "<rect class=\"frame\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
            "height=\"%.1f\"/>\n<text class=\"dim\" x=\"%.1f\" y=\"%.1f\" "
            "text-anchor=\"middle\">%s</text>\n",
            LEFT, y0, WIDTH - RIGHT - LEFT, HEIGHT, 0.5 * (LEFT + WIDTH - RIGHT), y1 + 38.0,
            p->xname);
    for (size_t i = 0; i < p->nseries; i++)
        draw_series(out, p, i, &x, &y);
    draw_legend(out, p, y1 + BOTTOM + 8.0);
}

void model_svg(FILE *out, const struct plot_panel *panel, size_t n)
{
    double height = 0.0, top = 0.0;

    for (size_t i = 0; i < n; i++)
        height += panel_height(&panel[i]);
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" "
            "height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\">\n%s"
            "<rect class=\"bg\" width=\"%.0f\" height=\"%.0f\"/>\n",
            WIDTH, height, WIDTH, height, style, WIDTH, height);
    for (size_t i = 0; i < n; i++) {
        draw_panel(out, &panel[i], top);
        top += panel_height(&panel[i]);
    }
    fprintf(out, "</svg>\n");
}
