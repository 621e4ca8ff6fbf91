/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * prog: the parts of a program: numbers, memory, boxes.
 *
 * Threads    one program belongs to one thread until it is run.
 */
#include "prog.h"

#include <stdio.h>
#include <string.h>

unsigned prog_features(void)
{
    const char *s = getenv("HEDDLE_WITHOUT");

    return ~(s == NULL ? 0u : (unsigned)strtoul(s, NULL, 0));
}

static void *prog_must(void *p)
{
    if (p == NULL) {
        printf("the test itself has no memory\n");
        exit(1);
    }
    return p;
}

void *prog_alloc(struct prog *p, size_t n, size_t bytes)
{
    if (p->nblocks == p->block_cap) {
        p->block_cap = p->block_cap == 0 ? 256 : 2 * p->block_cap;
        p->block = prog_must(realloc(p->block, p->block_cap * sizeof(*p->block)));
    }
    return p->block[p->nblocks++] = prog_must(calloc(n + 1, bytes));
}

uint64_t prog_mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

uint64_t prog_random(struct prog *p)
{
    return prog_mix(p->rng++);
}

size_t prog_below(struct prog *p, size_t n)
{
    return (size_t)(prog_random(p) % n);
}

bool prog_chance(struct prog *p, unsigned percent)
{
    return prog_below(p, 100) < percent;
}

int prog_add_unit(struct prog *p, const struct prog_unit *u)
{
    if (p->nunits == p->unit_cap) {
        p->unit_cap = p->unit_cap == 0 ? 32 : 2 * p->unit_cap;
        p->unit = prog_must(realloc(p->unit, p->unit_cap * sizeof(*p->unit)));
    }
    p->unit[p->nunits] = *u;
    p->unit[p->nunits].is_live = true;
    return (int)p->nunits++;
}

struct prog_task *prog_add_task(struct prog *p)
{
    struct prog_task *t = prog_alloc(p, 1, sizeof(*t));

    if (p->ntasks == p->task_cap) {
        p->task_cap = p->task_cap == 0 ? 64 : 2 * p->task_cap;
        p->task = prog_must(realloc(p->task, p->task_cap * sizeof(*p->task)));
    }
    t->prog = p;
    t->id = (unsigned)p->ntasks;
    t->event = t->group = -1;
    t->is_exact = true;
    p->task[p->ntasks++] = t;
    return t;
}

struct prog_op *prog_add_op(struct prog *p, struct prog_list *l, enum prog_kind kind)
{
    (void)p;
    if (l->n == l->cap) {
        l->cap = l->cap == 0 ? 32 : 2 * l->cap;
        l->op = prog_must(realloc(l->op, l->cap * sizeof(*l->op)));
    }
    l->op[l->n] = (struct prog_op){.kind = kind};
    return &l->op[l->n++];
}

static void list_free(struct prog_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        for (unsigned k = 0; l->op[i].list != NULL && k < PROG_THREADS; k++)
            list_free(&l->op[i].list[k]);
    free(l->op);
}

void prog_free(struct prog *p)
{
    list_free(&p->main);
    free(p->unit);
    free(p->task);
    for (size_t i = 0; i < p->nblocks; i++)
        free(p->block[i]);
    free(p->block);
    free(p);
}

/* Do two progressions share a number? They are short: try all. */
static bool range_overlap(const struct prog_box *a, const struct prog_box *b, unsigned d)
{
    for (size_t i = 0; i < a->extent[d]; i++) {
        const size_t x = a->first[d] + i * a->step[d];

        if (x >= b->first[d] && (x - b->first[d]) % b->step[d] == 0 &&
            (x - b->first[d]) / b->step[d] < b->extent[d])
            return true;
    }
    return false;
}

static bool range_contains(const struct prog_box *out, const struct prog_box *in, unsigned d)
{
    for (size_t i = 0; i < in->extent[d]; i++) {
        const size_t x = in->first[d] + i * in->step[d];

        if (x < out->first[d] || (x - out->first[d]) % out->step[d] != 0 ||
            (x - out->first[d]) / out->step[d] >= out->extent[d])
            return false;
    }
    return true;
}

bool prog_box_overlap(const struct prog_box *a, const struct prog_box *b, unsigned ndim)
{
    for (unsigned d = 0; d < ndim; d++)
        if (!range_overlap(a, b, d))
            return false;
    return true;
}

bool prog_box_contains(const struct prog_box *out, const struct prog_box *in, unsigned ndim)
{
    for (unsigned d = 0; d < ndim; d++)
        if (!range_contains(out, in, d))
            return false;
    return true;
}

struct prog_box prog_box_inside(const struct prog_box *abs, const struct prog_box *rel,
                                unsigned ndim)
{
    struct prog_box b = *rel;

    for (unsigned d = 0; d < ndim; d++) {
        b.first[d] = abs->first[d] + rel->first[d] * abs->step[d];
        b.step[d] = abs->step[d] * rel->step[d];
    }
    return b;
}
