/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * print: a program in words, for HEDDLE_VERBOSE.
 */
#include <stdio.h>

#include "prog.h"

static const char *print_mode(enum heddle_mode m)
{
    switch (m) {
    case HEDDLE_R: return "R";
    case HEDDLE_W: return "W";
    case HEDDLE_RW: return "RW";
    case HEDDLE_COMMUTE: return "COMMUTE";
    case HEDDLE_REDUCE: return "REDUCE";
    default: return "SCRATCH";
    }
}

static void print_box(const struct prog_box *b, unsigned ndim)
{
    for (unsigned d = 0; d < ndim; d++)
        printf("[%zu+%zu*%zu]", b->first[d], b->extent[d], b->step[d]);
}

static void print_options(const struct prog_task *t)
{
    static const char *const fails[] = {"", " fails-clean", " fails-dirty", " fails-late",
                                        " times-out"};

    printf("%s", fails[t->fail]);
    for (unsigned i = 0; i < t->nafter; i++)
        printf(" after e%d", t->after[i]);
    if (t->event >= 0)
        printf(" event e%d", t->event);
    if (t->group >= 0)
        printf(" group g%d", t->group);
    if (t->is_doomed)
        printf(" doomed");
    if (t->has_done)
        printf(" done");
    printf(" wants %s, %u runs\n", heddle_status_name(t->want), t->want_runs);
}

static void print_task(const struct prog_task *t, unsigned depth)
{
    static const char *const shapes[] = {"",        "retry", "decline", "second",
                                         "scratch", "cost",  "recurse", "divide"};

    printf("%*stask %u %s", (int)depth * 2 + 2, "", t->id, shapes[t->shape]);
    if (t->gang > 1)
        printf(" gang %u", t->gang);
    if (t->has_call_modes)
        printf(" (modes in the call)");
    for (unsigned i = 0; i < t->nops; i++) {
        printf(" %s:%d", print_mode(t->op[i].mode), t->op[i].unit);
        if (!t->op[i].is_whole)
            print_box(&t->op[i].rel, t->op[i].layout.ndim);
    }
    print_options(t);
    for (unsigned c = 0; c < t->nchildren; c++) {
        print_task(t->child[c], depth + 1);
        if ((t->waits >> c & 1) != 0)
            printf("%*swait%s\n", (int)depth * 2 + 4, "",
                   t->swallows ? ", failures are ignored" : "");
    }
}

static void print_launch(const struct prog_launch *l)
{
    for (unsigned i = 0; i < l->nbindings; i++)
        printf(" %d->%d", l->recorded[i], l->actual[i]);
    for (unsigned i = 0; i < l->nargs; i++)
        printf(" arg of %zu", l->index[i]);
    printf(" %u passes\n", l->passes);
    print_task(l->task, 0);
}

void prog_print_op(const struct prog *p, const struct prog_op *op)
{
    static const char *const kinds[] = {
        "root",          "view",   "unref",       "tasks",    "wait",       "acquire", "release",
        "acquire async", "event",  "event after", "complete", "event wait", "group",   "group wait",
        "group cancel",  "record", "launch",      "restore",  "cancel",     "parallel"};
    const bool has_unit = op->kind == OP_ROOT || op->kind == OP_VIEW;
    const struct prog_unit *u = has_unit ? &p->unit[op->a] : NULL;

    printf("%s %d", kinds[op->kind], op->a);
    if (u != NULL) {
        printf(" of %d root %d %s%s ", u->parent, u->root, heddle_dtype_name(u->layout.dtype),
               u->is_runtime ? " rt" : "");
        print_box(&u->abs, u->layout.ndim);
    }
    if (op->kind == OP_ACQUIRE || op->kind == OP_ACQUIRE_ASYNC)
        printf(" %s wants %s", print_mode(op->mode), heddle_status_name(op->want));
    if (op->kind == OP_EVENT_AFTER)
        printf(" e%d", op->b);
    printf("%s\n", op->is_foreign ? " (foreign)" : "");
    for (unsigned i = 0; i < op->ntasks; i++)
        print_task(op->task[i], 0);
    if (op->kind == OP_RECORD)
        for (unsigned i = 0; i < p->graph[op->a].ntasks; i++)
            print_task(p->graph[op->a].task[i], 0);
    if (op->launch != NULL)
        print_launch(op->launch);
    fflush(stdout);
}
