/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * disk_revolve: equal layers, some slots in memory, a disk without limit whose
 * copies stall the computation.
 *
 * memory(l)  l + 1 steps by Revolve
 * once(l)    the first activation is on disk; the rest of memory is Revolve's:
 *            min(memory(l), min over j of j forward + memory(l-j) + read + once(j-1))
 * all(l)     it is not, and more may be written:
 *            min(memory(l), min over j of write + j forward + all(l-j) + read +
 *            once(j-1))
 */
#include <math.h>

#include "plan/equal/equal.h"

static double in_memory(const struct heddle_plan_levels *v, uint32_t l)
{
    return v->forward * (double)heddle_plan_revolve_extra((uint64_t)l + 1, v->slots[0]) +
           v->backward * ((double)l + 1);
}

static double once_jump(const struct heddle_plan_disk *x, uint32_t l, uint32_t j)
{
    return j * x->v.forward + x->memory[l - j] + x->v.read[1] + x->once[j - 1];
}

static double all_jump(const struct heddle_plan_disk *x, uint32_t l, uint32_t j)
{
    return x->v.write[1] + j * x->v.forward + x->all[l - j] + x->v.read[1] + x->once[j - 1];
}

void heddle_plan_disk_times(const struct heddle_plan_disk *x, uint32_t n)
{
    for (uint32_t l = 0; l < n; l++) {
        double once, all;

        x->memory[l] = once = all = in_memory(&x->v, l);
        for (uint32_t j = 1; j < l; j++) {
            once = fmin(once, once_jump(x, l, j));
            all = fmin(all, all_jump(x, l, j));
        }
        x->once[l] = once;
        x->all[l] = all;
    }
}

/* The first jump of a best plan; 0: stay in memory. */
static uint32_t choose(const struct heddle_plan_disk *x, uint32_t l, bool is_stored)
{
    double best = x->memory[l];
    uint32_t at = 0;

    for (uint32_t j = 1; j < l; j++) {
        const double time = is_stored ? once_jump(x, l, j) : all_jump(x, l, j);

        if (time < best) {
            best = time;
            at = j;
        }
    }
    return at;
}

/* What is left of a part whose first activation is on disk. */
static void trace_stored(const struct heddle_plan_disk *x, uint32_t base, uint32_t l,
                         unsigned store, struct heddle_plan_events *e)
{
    for (;;) {
        const uint32_t j = choose(x, l, true);

        heddle_plan_events_read(e, base, store);
        if (j == 0)
            break;
        heddle_plan_events_advance(e, base, base + j);
        heddle_plan_events_revolve(e, base + j, l - j + 1, x->v.slots[0]);
        l = j - 1;
    }
    heddle_plan_events_forget(e, base, store);
    heddle_plan_events_revolve(e, base, l + 1, x->v.slots[0]);
}

void heddle_plan_disk_trace(const struct heddle_plan_disk *x, uint32_t n, unsigned store,
                            struct heddle_plan_events *e)
{
    struct heddle_scratch mem = heddle_scratch_make(e->d.a);
    uint32_t *jump = heddle_scratch_get(&mem, n, sizeof(*jump));
    uint32_t base = 0, njumps = 0, l = n - 1;

    if (jump == NULL) {
        e->d.st = HEDDLE_ENOMEM;
        return;
    }
    for (;;) {
        const uint32_t j = choose(x, l, false);

        if (j == 0)
            break;
        heddle_plan_events_write(e, base, store);
        heddle_plan_events_advance(e, base, base + j);
        jump[njumps++] = j;
        base += j;
        l -= j;
    }
    heddle_plan_events_revolve(e, base, l + 1, x->v.slots[0]);
    while (njumps > 0) {
        const uint32_t j = jump[--njumps];

        base -= j;
        trace_stored(x, base, j - 1, store, e);
    }
    heddle_scratch_drop(&mem);
}
