/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gate: calls that a task calls off.
 *
 * A call may find something that calls off the later calls of the same routine (no solve
 * after a pivot that is zero), while calls after the routine go on. No thread waits for
 * that: all calls are submitted, and their tasks look at the gate before they work.
 *
 * In a context with a device, a task on that device inspects the block columns and leaves
 * a number; the task that shuts the gate, on a core, reads only that number.
 *
 * Invariant  the task that may shut a gate ends before any task behind the gate begins:
 *            its operands are the block columns that those tasks use, or the sequence
 *            waits for it (`looked`)
 */
#include "base/alloc.h"
#include "la/cuda/cuda.h"
#include "la/la.h"

enum { MOST_OPERANDS = 250 };

heddle_status heddle_la_gate_open(heddle_la *la, struct la_gate **outer_out)
{
    struct la_gate *g;

    *outer_out = la->gate;
    if (la->gate != NULL)
        return HEDDLE_OK;
    g = heddle_zalloc(&la->alloc, 1, sizeof(*g));
    if (g == NULL)
        return HEDDLE_ENOMEM;
    atomic_init(&g->is_shut, false);
    g->next = la->gates;
    la->gates = la->gate = g;
    return HEDDLE_OK;
}

void heddle_la_gate_close(heddle_la *la, struct la_gate *outer)
{
    la->gate = outer;
}

void heddle_la_gate_drop(heddle_la *la)
{
    while (la->gates != NULL) {
        struct la_gate *g = la->gates;

        la->gates = g->next;
        heddle_free(&la->alloc, g, sizeof(*g));
    }
}

/* --- a zero on the diagonal ---------------------------------------------------- */

struct gate_arg {
    struct la_head h;
    bool is_info;
    size_t a0;   /* first column of the first operand */
    unsigned na; /* operands of A; the others are there for the order only */
};

static void shut(const struct gate_arg *g, size_t row)
{
    if (g->is_info)
        heddle_la_found(&g->h, (int)row + 1, false);
    atomic_store_explicit(&g->h.gate->is_shut, true, memory_order_relaxed);
}

static heddle_status run_diagonal(struct heddle_exec *x)
{
    const struct gate_arg *g = heddle_exec_arg(x);
    size_t row = g->a0;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (unsigned i = 0; i < g->na; i++) {
        const struct blas_block a = la_operand(x, i);

        for (size_t j = 0; j < a.n; j++, row++)
            if (heddle_blas_is_zero(g->h.t, blas_at(g->h.t, a, row, j))) {
                shut(g, row);
                return HEDDLE_OK;
            }
    }
    return HEDDLE_OK;
}

static const heddle_kernel kernel_diagonal = {
    .size = sizeof(heddle_kernel),
    .name = "gate_diagonal",
    .noperands = 1,
    .mode = {HEDDLE_R},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_diagonal}}};

/* Too many operands for one task: those that look have `token` one after the other,
 * then comes what keeps later tasks behind them. */
static heddle_status look_long(struct gate_arg *g, heddle_matrix *a, heddle_matrix *b,
                               heddle_handle *token)
{
    const size_t nb = b != NULL ? b->nt : 0;
    heddle_handle *op[MOST_OPERANDS + 1];
    enum heddle_mode modes[MOST_OPERANDS + 1];

    for (unsigned pass = 0; pass < 2; pass++)
        for (size_t at = 0; at < a->nt + (pass == 0 ? 0 : nb);) {
            heddle_handle **from = at < a->nt ? a->col + at : b->col + (at - a->nt);
            const size_t left = at < a->nt ? a->nt - at : a->nt + nb - at;
            const size_t n = la_min(MOST_OPERANDS, left);

            for (size_t i = 0; i < n; i++) {
                op[i] = from[i];
                modes[i] = HEDDLE_R;
            }
            op[n] = token;
            modes[n] = pass == 0 ? HEDDLE_RW : HEDDLE_R;
            g->a0 = at * a->nb;
            g->na = pass == 0 ? (unsigned)n : 0;
            LA_TRY(heddle_la_submit(g->h.la, &kernel_diagonal, op, modes, (unsigned)n + 1, g,
                                    sizeof(*g), INT16_MAX));
            at += n;
        }
    return HEDDLE_OK;
}

/* --- the same where there is a device ---------------------------------------- */

/* Operands: a block column, the number of the first row (from 1) with a zero. */
static heddle_status run_look(struct heddle_exec *x)
{
    const struct gate_arg *g = heddle_exec_arg(x);
    const struct blas_block a = la_operand(x, 0);
    int32_t *found = heddle_exec_ptr(x, 1);

    for (size_t j = 0; j < a.n && *found == 0; j++)
        if (heddle_blas_is_zero(g->h.t, blas_at(g->h.t, a, g->a0 + j, j)))
            *found = (int32_t)(g->a0 + j + 1);
    return HEDDLE_OK;
}

static heddle_status cuda_look(struct heddle_exec *x)
{
    const struct gate_arg *g = heddle_exec_arg(x);
    struct la_gpu gpu;

    LA_TRY(heddle_gpu_open(&gpu, x, g->h.t));
    return heddle_gpu_zeros(&gpu, la_operand(x, 0), g->a0, heddle_exec_ptr(x, 1));
}

static heddle_status run_shut(struct heddle_exec *x)
{
    const struct gate_arg *g = heddle_exec_arg(x);
    const int32_t found = *(const int32_t *)heddle_exec_ptr(x, 0);

    if (found > 0 && !heddle_la_is_broken(&g->h))
        shut(g, (size_t)found - 1);
    return HEDDLE_OK;
}

static const heddle_kernel kernel_look = {
    .size = sizeof(heddle_kernel),
    .name = "gate_look",
    .noperands = 2,
    .mode = {HEDDLE_R, HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_look}, LA_GPU(cuda_look)}};

static const heddle_kernel kernel_shut = {
    .size = sizeof(heddle_kernel),
    .name = "gate_shut",
    .noperands = 1,
    .mode = {HEDDLE_R},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_shut}}};

/* Block columns are looked at in their order: the first zero counts. */
static heddle_status look_there(struct gate_arg *g, heddle_matrix *a, heddle_handle *found)
{
    for (size_t k = 0; k < a->nt; k++) {
        heddle_handle *const op[2] = {a->col[k], found};

        g->a0 = la_first(a, k);
        LA_TRY(heddle_la_submit(g->h.la, &kernel_look, op, NULL, 2, g, sizeof(*g), INT16_MAX));
    }
    return heddle_la_submit_look(g->h.la, &kernel_shut, found, g, sizeof(*g), true);
}

heddle_status heddle_la_gate_diagonal(const struct la_head *h, heddle_matrix *a, heddle_matrix *b,
                                      bool is_info)
{
    const size_t nb = b != NULL ? b->nt : 0;
    struct gate_arg g = {.h = *h, .is_info = is_info};
    heddle_handle *op[MOST_OPERANDS], *token = NULL;
    enum heddle_mode modes[MOST_OPERANDS];
    heddle_status st;

    if (a->nt == 0)
        return HEDDLE_OK;
    if (h->la->has_cuda) {
        LA_TRY(heddle_handle_vector(h->la->ctx, NULL, 1, HEDDLE_I32, &token));
        st = look_there(&g, a, token);
        heddle_handle_unref(token);
        return st;
    }
    if (a->nt + nb > MOST_OPERANDS) {
        LA_TRY(heddle_handle_vector(h->la->ctx, NULL, 1, HEDDLE_U8, &token));
        st = look_long(&g, a, b, token);
        heddle_handle_unref(token);
        return st;
    }
    memcpy(op, a->col, a->nt * sizeof(op[0]));
    if (nb > 0)
        memcpy(op + a->nt, b->col, nb * sizeof(op[0]));
    for (size_t i = 0; i < a->nt + nb; i++)
        modes[i] = HEDDLE_R;
    g.na = (unsigned)a->nt;
    return heddle_la_submit(h->la, &kernel_diagonal, op, modes, (unsigned)(a->nt + nb), &g,
                            sizeof(g), INT16_MAX);
}
