/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nn/draw: a graph in layers, as SVG.
 *
 * Layers   a node is one layer below the lowest of those that it reads (the longest way from the
 *          inputs), so every line goes down.
 * Order    inside of a layer by the middle of what a node reads, sweep by sweep downwards.
 * Lines    straight to the next layer; longer ones are bent to the side of the nodes between.
 */
#include <stdlib.h>
#include <string.h>

#include "common/page.h"
#include "nn/show.h"

enum { BOX_W = 132, BOX_H = 22, GAP_X = 14, GAP_Y = 16, MARGIN = 10, BEND = 46 };

struct box {
    uint32_t node;
    unsigned layer;
    double x; /* middle, in boxes */
};

struct draw {
    const struct heddle_nn_view *v;
    bool is_after;
    const struct heddle_nn_node *node;
    unsigned n, nlayers, widest;
    uint32_t *maker; /* of a value: node, or UINT32_MAX */
    uint32_t *at;    /* of a node: its box, or UINT32_MAX */
    struct box *box;
    unsigned nboxes;
};

static uint32_t draw_maker(const struct draw *d, uint32_t value)
{
    if (value == UINT32_MAX)
        return UINT32_MAX;
    return d->maker[d->is_after ? d->v->value[value].root : value];
}

static bool draw_room(struct draw *d)
{
    d->maker = malloc((d->v->nvalues + 1) * sizeof(*d->maker));
    d->at = malloc((d->n + 1) * sizeof(*d->at));
    d->box = calloc(d->n + 1, sizeof(*d->box));
    if (d->maker == NULL || d->at == NULL || d->box == NULL)
        return false;
    memset(d->maker, 0xff, (d->v->nvalues + 1) * sizeof(*d->maker));
    memset(d->at, 0xff, (d->n + 1) * sizeof(*d->at));
    return true;
}

/* Boxes in the order of the graph, with their layers. Constants have none. */
static void draw_layers(struct draw *d)
{
    for (uint32_t i = 0; i < d->n; i++) {
        const struct heddle_nn_node *n = &d->node[i];
        struct box *b = &d->box[d->nboxes];

        if (!d->is_after && n->fate == HEDDLE_NN_CONSTANT)
            continue;
        *b = (struct box){.node = i};
        for (unsigned k = 0; k < n->nin; k++) {
            const uint32_t m = draw_maker(d, n->in[k]);

            if (m != UINT32_MAX && d->at[m] != UINT32_MAX && d->box[d->at[m]].layer >= b->layer)
                b->layer = d->box[d->at[m]].layer + 1;
        }
        for (unsigned k = 0; k < n->nout; k++)
            if (n->out[k] != UINT32_MAX)
                d->maker[d->is_after ? d->v->value[n->out[k]].root : n->out[k]] = i;
        d->nlayers = b->layer + 1 > d->nlayers ? b->layer + 1 : d->nlayers;
        d->at[i] = d->nboxes++;
    }
}

static int by_layer(const void *a, const void *b)
{
    const struct box *x = a, *y = b;

    if (x->layer != y->layer)
        return x->layer < y->layer ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

static int by_place(const void *a, const void *b)
{
    const struct box *x = a, *y = b;

    return x->x != y->x ? (x->x < y->x ? -1 : 1) : x->node < y->node ? -1 : x->node > y->node;
}

/* The middle of what a node reads; where nothing is read, behind the others. */
static double draw_middle(const struct draw *d, const struct box *b)
{
    const struct heddle_nn_node *n = &d->node[b->node];
    double sum = 0;
    unsigned count = 0;

    for (unsigned k = 0; k < n->nin; k++) {
        const uint32_t m = draw_maker(d, n->in[k]);

        if (m != UINT32_MAX && d->at[m] != UINT32_MAX) {
            sum += d->box[d->at[m]].x;
            count++;
        }
    }
    return count > 0 ? sum / count : (double)d->n;
}

static void draw_places(struct draw *d)
{
    qsort(d->box, d->nboxes, sizeof(*d->box), by_layer);
    for (unsigned i = 0; i < d->nboxes; i++)
        d->at[d->box[i].node] = i;
    for (unsigned first = 0, end; first < d->nboxes; first = end) {
        for (end = first; end < d->nboxes && d->box[end].layer == d->box[first].layer; end++)
            d->box[end].x = draw_middle(d, &d->box[end]);
        qsort(d->box + first, end - first, sizeof(*d->box), by_place);
        for (unsigned i = first; i < end; i++) {
            d->box[i].x = (double)(i - first) - (double)(end - first - 1) / 2;
            d->at[d->box[i].node] = i;
        }
        d->widest = end - first > d->widest ? end - first : d->widest;
    }
}

/* --- SVG ----------------------------------------------------------------------------- */

static double draw_x(const struct draw *d, const struct box *b)
{
    return MARGIN + BEND + (b->x + (double)(d->widest - 1) / 2) * (BOX_W + GAP_X) + BOX_W / 2.0;
}

static double draw_y(const struct box *b)
{
    return MARGIN + b->layer * (double)(BOX_H + GAP_Y);
}

static void draw_lines(const struct draw *d, FILE *f)
{
    for (unsigned i = 0; i < d->nboxes; i++) {
        const struct box *to = &d->box[i];
        const struct heddle_nn_node *n = &d->node[to->node];

        for (unsigned k = 0; k < n->nin; k++) {
            const uint32_t m = draw_maker(d, n->in[k]);
            const struct box *from;
            double x0, x1, y0, y1;

            if (m == UINT32_MAX || d->at[m] == UINT32_MAX)
                continue;
            from = &d->box[d->at[m]];
            x0 = draw_x(d, from);
            x1 = draw_x(d, to);
            y0 = draw_y(from) + BOX_H;
            y1 = draw_y(to);
            if (to->layer == from->layer + 1)
                fprintf(f, "<path class=edge d=\"M%.0f %.0fL%.0f %.0f\"/>\n", x0, y0, x1, y1);
            else
                fprintf(f, "<path class=edge d=\"M%.0f %.0fC%.0f %.0f %.0f %.0f %.0f %.0f\"/>\n",
                        x0, y0, x0 - BOX_W / 2.0 - BEND, y0 + BOX_H, x1 - BOX_W / 2.0 - BEND,
                        y1 - BOX_H, x1, y1);
        }
    }
}

static void draw_title(const struct draw *d, const struct heddle_nn_node *n, FILE *f)
{
    const struct heddle_nn_view *v = d->v;

    fputs("<title>", f);
    page_text(f, n->op);
    fputs(" ", f);
    page_text(f, n->name);
    for (unsigned k = 0; k < n->nin + n->nout; k++) {
        const uint32_t i = k < n->nin ? n->in[k] : n->out[k - n->nin];

        if (i == UINT32_MAX)
            continue;
        fprintf(f, "\n%s%s", k < n->nin ? "reads " : "gives ",
                v->value[i].is_constant ? "the constant " : "");
        page_text(f, v->value[i].name);
        fprintf(f, ": %s, %s", nn_value_text(&v->value[i]).text,
                nn_bytes_text((double)v->value[i].bytes).text);
    }
    fprintf(f, "\n%.4g MFLOP, %s moved", n->flops * 1e-6, nn_bytes_text(n->bytes).text);
    if (d->is_after) {
        fprintf(f, "\nkernel %s", nn_kernel_text(n).text);
        if (n->packed > 0)
            fprintf(f, ", packed weights %s", nn_bytes_text((double)n->packed).text);
        if (n->pieces > 1)
            fprintf(f, "\nup to %u pieces", n->pieces);
    } else {
        fprintf(f, "\n%s", nn_fate_text[n->fate]);
        if (n->task != UINT32_MAX) {
            fprintf(f, ": task %u, ", n->task);
            page_text(f, v->task[n->task].op);
        }
    }
    fputs("</title>", f);
}

static void draw_box(const struct draw *d, const struct box *b, FILE *f)
{
    static const char *const fate[5] = {"runs", "joined", "none", "none", "none"};
    const struct heddle_nn_node *n = &d->node[b->node];
    const double x = draw_x(d, b), y = draw_y(b);
    const bool is_link = !d->is_after && n->task != UINT32_MAX;

    if (is_link)
        fprintf(f, "<a href=\"#t%u\">", n->task);
    if (d->is_after)
        fprintf(f, "<g id=t%u class=%s>", b->node,
                n->kernel == NULL                 ? "slow"
                : strncmp(n->op, "Fused", 5) == 0 ? "joined"
                                                  : "runs");
    else
        fprintf(f, "<g class=%s>", fate[n->fate]);
    fprintf(f, "<rect x=%.0f y=%.0f width=%d height=%d rx=4 />", x - BOX_W / 2.0, y, BOX_W, BOX_H);
    fprintf(f, "<text x=%.0f y=%.0f>%.18s</text>", x, y + 15, n->op);
    draw_title(d, n, f);
    fputs(is_link ? "</g></a>\n" : "</g>\n", f);
}

bool nn_draw(const struct heddle_nn_view *v, bool is_after, FILE *f)
{
    struct draw d = {.v = v,
                     .is_after = is_after,
                     .node = is_after ? v->task : v->node,
                     .n = is_after ? v->ntasks : v->nnodes};
    const bool is_good = draw_room(&d);

    if (is_good) {
        const unsigned pitch = BOX_W + GAP_X;

        draw_layers(&d);
        draw_places(&d);
        fprintf(f, "<svg class=graph style=\"width:%upx;height:%upx\" role=img>\n",
                2 * MARGIN + 2 * BEND + d.widest * pitch, 2 * MARGIN + d.nlayers * (BOX_H + GAP_Y));
        draw_lines(&d, f);
        for (unsigned i = 0; i < d.nboxes; i++)
            draw_box(&d, &d.box[i], f);
        fputs("</svg>\n", f);
    }
    free(d.maker);
    free(d.at);
    free(d.box);
    return is_good;
}
