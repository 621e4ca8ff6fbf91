/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heft: each task goes, when it is ready, to the class where it would end first,
 * transfers counted; then by the user's priority or, without, by its rank.
 *
 * Purpose    machines with accelerators, when costs are known. Simple and quick to
 *            decide; `lookahead` sees the tasks behind them too.
 * Energy     where it counts, prices of the types come first: see place.h.
 * Structure, threads, cost   see place.h.
 */
#include "sched/place.h"

struct heft {
    struct heddle_place place;
};

static heddle_status heft_init(void *self, const struct heddle_sched_env *env)
{
    struct heft *h = self;

    /* It spreads over all types; where energy counts, not that much. */
    h->place.win.weighs_mean = env->energy == NULL;
    return heddle_place_init(&h->place, env);
}

static void heft_fini(void *self)
{
    heddle_place_fini(self);
}

static void heft_submitted(void *self, struct heddle_sched_task *t,
                           struct heddle_sched_task *const *pred, unsigned npred)
{
    struct heft *h = self;

    heddle_win_submitted(&h->place.win, t, pred, npred);
    heddle_spin_unlock(&h->place.win.lock);
}

static void heft_push(void *self, struct heddle_sched_task *t, int worker)
{
    (void)worker;
    heddle_place_push(self, t);
}

static struct heddle_sched_task *heft_pop(void *self, unsigned worker)
{
    return heddle_place_pop(self, worker);
}

static void heft_took(void *self, struct heddle_sched_task *t, unsigned worker)
{
    heddle_place_took(self, t, worker);
}

static void heft_noted(void *self, const struct heddle_sched_note *note, unsigned n)
{
    heddle_place_noted(self, note, n);
}

static void heft_ended(void *self, const struct heddle_sched_task *t, unsigned worker, double ns)
{
    heddle_place_ended(self, t, worker, ns);
}

static struct heddle_sched_task *heft_lost(void *self, unsigned cls)
{
    return heddle_place_lost(self, cls);
}

static uint64_t heft_steals(void *self)
{
    struct heft *h = self;
    uint64_t n;

    heddle_spin_lock(&h->place.win.lock);
    n = h->place.nsteals;
    heddle_spin_unlock(&h->place.win.lock);
    return n;
}

static double heft_order(void *self, const struct heddle_sched_task *t, int *type_out)
{
    struct heft *h = self;

    return heddle_win_order(&h->place.win, t, type_out);
}

const struct heddle_sched_ops heddle_sched_heft = {
    .name = "heft",
    .help = "earliest end over all classes, with transfers; ranks by itself",
    .instance_size = sizeof(struct heft),
    .init = heft_init,
    .fini = heft_fini,
    .push = heft_push,
    .pop = heft_pop,
    .knows_classes = true,
    .submitted = heft_submitted,
    .took = heft_took,
    .ended = heft_ended,
    .noted = heft_noted,
    .order = heft_order,
    .lost = heft_lost,
    .steals = heft_steals,
};
