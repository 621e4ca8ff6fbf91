/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz/print: a program as text, to find the reason of a failure.
 */
#include "fuzz/fuzz.h"

static const char *mode_name(enum heddle_mode m)
{
#define NAME(a, name, letters, word, means)                                                        \
    case HEDDLE_##name: return #name;
    switch (m) {
        HEDDLE_MODE_LIST(NAME, )
    }
    return "?";
}

static void print_task(FILE *f, const struct fuzz_task *t)
{
    static const char *const sort[] = {"both", "scratch", "core", "device", "nest", "plain"};

    fprintf(f, "task %u %s%u", t->id, sort[t->sort], t->name);
    for (unsigned i = 0; i < t->nops; i++)
        fprintf(f, " %s(%d)", mode_name(t->mode[i]), t->unit[i]);
    if (t->spin_ns != 0)
        fprintf(f, " spin %llu", (unsigned long long)t->spin_ns);
    if (t->priority != 0)
        fprintf(f, " priority %d", t->priority);
    if (t->retries != 0 || t->fail_runs != 0)
        fprintf(f, " retries %u fails %u", t->retries, t->fail_runs);
    if (t->declines)
        fprintf(f, " declines");
    if (t->devices != 0 || t->variant != 0)
        fprintf(f, " devices 0x%x variant %u", t->devices, t->variant);
    for (unsigned i = 0; i < t->nafter; i++)
        fprintf(f, " after %d", t->after[i]);
    if (t->by_hand >= 0)
        fprintf(f, " event %d", t->by_hand);
    if (t->waits && t->nchildren > 0)
        fprintf(f, " waits");
    fprintf(f, " -> %s%s\n", heddle_status_name((heddle_status)atomic_load(&t->status)),
            atomic_load(&t->on_device) != 0 ? " on a device" : "");
    for (unsigned i = 0; i < t->nchildren; i++) {
        fprintf(f, "        child ");
        print_task(f, t->child[i]);
    }
}

static void print_unit(FILE *f, const struct fuzz_unit *u, int i)
{
    fprintf(f, "%d %s%s", i, heddle_dtype_name(u->layout.dtype),
            u->parent >= 0  ? ""
            : u->is_runtime ? " runtime"
                            : " user");
    for (unsigned d = 0; d < u->layout.ndim; d++)
        fprintf(f, " %zu*%zu", u->layout.extent[d], u->layout.stride[d]);
    if (u->parent >= 0) {
        fprintf(f, " of %d:", u->parent);
        for (unsigned d = 0; d < u->layout.ndim; d++)
            fprintf(f, " %zu+%zu*%zu", u->rel.first[d], u->rel.extent[d], u->rel.step[d]);
    }
    fputc('\n', f);
}

static void print_launch(FILE *f, const struct fuzz_op *op)
{
    const struct fuzz_launch *l = &op->launch;

    fprintf(f, "launch");
    for (unsigned i = 0; i < l->nbindings; i++)
        fprintf(f, " %d as %d", l->actual[i], l->recorded[i]);
    for (unsigned i = 0; i < l->nargs; i++)
        fprintf(f, " argument of %u", op->graph->task[l->task[i]]->id);
    if (l->passes != 1)
        fprintf(f, " passes %u", l->passes);
    fprintf(f, " -> %s\n", heddle_status_name((heddle_status)atomic_load(&op->task->status)));
    for (unsigned i = 0; i < op->graph->ntasks; i++) {
        fprintf(f, "        ");
        print_task(f, op->graph->task[i]);
    }
}

static void print_op(FILE *f, const struct fuzz_prog *p, const struct fuzz_op *op)
{
    static const char *const advice[] = {"", "prefetch", "wont_use", "evict", "pin", "unpin"};

    switch (op->kind) {
    case OP_ROOT:
        fprintf(f, "root ");
        print_unit(f, &p->unit[op->unit], op->unit);
        break;
    case OP_VIEW:
        fprintf(f, "view ");
        print_unit(f, &p->unit[op->unit], op->unit);
        break;
    case OP_UNREF: fprintf(f, "unref %d\n", op->unit); break;
    case OP_TASK: print_task(f, op->task); break;
    case OP_WAIT: fprintf(f, "wait\n"); break;
    case OP_ACQUIRE:
        fprintf(f, "acquire %s(%d) -> %s\n", mode_name(op->mode), op->unit,
                heddle_status_name(op->st));
        break;
    case OP_RELEASE: fprintf(f, "release %d\n", op->unit); break;
    case OP_ADVISE:
        fprintf(f, "advise %s %d in memory %u\n", advice[op->advice], op->unit, op->memory);
        break;
    case OP_EVENT: fprintf(f, "event %d\n", op->event); break;
    case OP_COMPLETE: fprintf(f, "complete %d\n", op->event); break;
    case OP_LAUNCH: print_launch(f, op); break;
    }
}

void fuzz_print(FILE *f, const struct fuzz_prog *p)
{
    const struct fuzz_config *c = &p->config;

    fprintf(f,
            "seed %llu device %s sched %s workers %u device_memory %zu "
            "memory_budget %zu%s\n",
            (unsigned long long)p->seed, heddle_fuzz_devices[c->device],
            c->sched != NULL ? c->sched : "default", c->nworkers, c->device_memory,
            c->memory_budget, c->ends_with_wait ? "" : " without a last wait");
    fputs(c->machine, f);
    if (c->faults[0] != '\0')
        fprintf(f, "faults %s\n", c->faults);
    for (unsigned i = 0; i < p->nops; i++) {
        fprintf(f, "  %u: ", i);
        print_op(f, p, &p->op[i]);
    }
}
