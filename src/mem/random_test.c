/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random tasks, hints and failures against arrays that are written in order.
 *
 * The model has one number per element of each array. A task that is ready must read
 * exactly these; a write takes a new number. Tasks that conflict are not under way at the
 * same time: their order is the business of others. After every step the invariants hold
 * (check_test.h), and every copy that counts as valid has the numbers of the model. At the
 * end every request has been answered, and the data of the user are at home.
 *
 * The runs differ in what goes wrong: nothing; copies that fail, a driver with less memory
 * than it promised, failing tasks, a lost device; the k-th allocation, for every k.
 */
#include "base/rng.h"
#include "mem/check_test.h"
#include "mem/fake_test.h"

enum {
    SIDE = 8, /* every array has 8 x 8 elements: FAKE_UNIT bytes */
    NROOTS = 5,
    NOWNED = 2, /* of these, the last: memory of the runtime */
    NVIEWS = 4, /* of the first */
    NUNITS = NROOTS + NVIEWS,
    NTASKS = 4, /* under way at once */
    NOPS = 3
};

_Static_assert(SIDE *SIDE == FAKE_N, "an array is one unit of room");

struct job {
    struct fake_task t; /* first */
    bool is_live;
    bool is_running; /* has read, and has begun to write */
    uint64_t id;
};

struct world {
    struct fake f;
    struct heddle_rng rng;
    heddle_handle *u[NUNITS];
    int32_t data[NROOTS][FAKE_N]; /* memory of the user */
    int32_t model[NROOTS][FAKE_N];
    bool is_known[NROOTS][FAKE_N]; /* not lost with a device or a failed task */
    bool is_busy[NROOTS][FAKE_N];  /* a running task writes it */
    struct job job[NTASKS];
    uint64_t ntasks;
    int32_t next_value;
    bool has_disk, has_faults;
    unsigned nready, nfailed;
};

static uint32_t pick(struct world *w, uint32_t n)
{
    return heddle_rng_below32(&w->rng, n);
}

static unsigned root_of(const struct world *w, const heddle_handle *u)
{
    unsigned i = 0;

    while (w->u[i] != u->root)
        i++;
    return i;
}

/* The element (i, j) of a unit in its root. */
static size_t place(const heddle_handle *u, size_t i, size_t j)
{
    return (u->box.first[0] + i * u->box.step[0]) * SIDE + u->box.first[1] + j * u->box.step[1];
}

static bool covers(const heddle_handle *u, size_t at)
{
    for (size_t i = 0; i < u->box.count[0]; i++)
        for (size_t j = 0; j < u->box.count[1]; j++)
            if (place(u, i, j) == at)
                return true;
    return false;
}

static void set_all(const struct world *w, const heddle_handle *u, bool (*flag)[FAKE_N], bool to)
{
    for (size_t i = 0; i < u->box.count[0]; i++)
        for (size_t j = 0; j < u->box.count[1]; j++)
            flag[root_of(w, u)][place(u, i, j)] = to;
}

/* --- the beginning and the end ---------------------------------------------------------- */

static void world_lost(void *user, heddle_handle *unit, unsigned node)
{
    struct world *w = user; /* the fake is its first member */

    fake_lost(user, unit, node);
    set_all(w, unit, w->is_known, false);
}

static void world_open(struct world *w, uint64_t seed, bool has_faults)
{
    static const struct heddle_layout l = {.dtype = HEDDLE_I32, .ndim = 2, .extent = {SIDE, SIDE}};
    static const size_t view[NVIEWS][6] = {/* offset, extent, step */
                                           {0, 0, 8, 4, 1, 1},
                                           {0, 2, 8, 5, 1, 1},
                                           {4, 0, 4, 8, 1, 1},
                                           {1, 1, 3, 2, 2, 3}};
    unsigned ndevs;

    memset(w, 0, sizeof(*w));
    heddle_rng_seed(&w->rng, seed);
    w->has_disk = pick(w, 2) != 0;
    w->has_faults = has_faults;
    ndevs = 1 + pick(w, 2) + w->has_disk;
    CHECK(fake_open(&w->f, ndevs, (NOPS + 1 + pick(w, 4)) * FAKE_UNIT,
                    w->has_disk ? NOWNED * FAKE_UNIT + pick(w, 2) * FAKE_UNIT : 0, 0));
    w->f.mem->host.lost = world_lost;
    w->f.mem->policy = pick(w, 4) == 0 ? HEDDLE_MEM_LRU : HEDDLE_MEM_NEXT_USE;
    for (unsigned i = 0; i < ndevs - w->has_disk && seed % 2 != 0; i++)
        w->f.dev[i].can_peer = true;
    for (unsigned i = 0; i < NROOTS; i++) {
        const bool is_owned = i + NOWNED >= NROOTS;

        for (size_t k = 0; k < FAKE_N; k++) {
            w->data[i][k] = w->model[i][k] = is_owned ? 0 : ++w->next_value;
            w->is_known[i][k] = true;
        }
        CHECK_OK(heddle_unit_create(&w->f.reg, &l, is_owned ? NULL : w->data[i], &w->u[i]));
    }
    for (unsigned i = 0; i < NVIEWS; i++)
        CHECK_OK(heddle_unit_view(w->u[0], view[i], view[i] + 2, view[i] + 4, &w->u[NROOTS + i]));
}

static void world_close(struct world *w)
{
    for (unsigned i = NUNITS; i-- > 0;)
        fake_drop(w->u[i]);
    (void)heddle_mem_pump(w->f.mem);
    fake_close(&w->f);
}

/* --- what must be so ----------------------------------------------------------------------- */

/* Does a unit that contains the element live elsewhere? Then the host's is old. */
static bool is_away(const struct world *w, unsigned root, size_t at)
{
    for (unsigned i = 0; i < NUNITS; i++) {
        const struct heddle_where *o = w->u[i]->where;

        if (o != NULL && o->is_listed_away && root_of(w, w->u[i]) == root && covers(w->u[i], at))
            return true;
    }
    return false;
}

static void check_copy(const struct world *w, const struct heddle_where *at, unsigned node)
{
    const heddle_handle *u = at->unit;
    const struct heddle_layout *l = node == 0 ? &u->layout : &at->compact;
    const struct mem_copy *c = at->at[node];
    const int32_t *p = c->is_home ? (void *)heddle_load_acq(&at->unit->base) : c->ptr;
    const unsigned root = root_of(w, u);

    for (size_t i = 0; i < u->box.count[0] && p != NULL; i++)
        for (size_t j = 0; j < u->box.count[1]; j++) {
            const size_t k = place(u, i, j);

            if (w->is_known[root][k] && !w->is_busy[root][k] && (node != 0 || !is_away(w, root, k)))
                CHECK_EQ(p[i * l->stride[0] + j * l->stride[1]], w->model[root][k]);
        }
}

static void check_world(struct world *w)
{
    struct fake_task *live[NTASKS];
    unsigned n = 0;

    for (unsigned i = 0; i < NTASKS; i++)
        if (w->job[i].is_live)
            live[n++] = &w->job[i].t;
    check_all(&w->f, live, n);
    for (const struct heddle_where *at = w->f.mem->units; at != NULL; at = at->next)
        for (unsigned s = 0; s < w->f.mem->nnodes; s++)
            if (where_is_at(at, s))
                check_copy(w, at, s);
}

/* --- tasks ------------------------------------------------------------------------------------ */

static bool conflicts(const struct heddle_mem_op *a, const struct heddle_mem_op *b)
{
    return ((a->mode | b->mode) & HEDDLE_W) != 0 && a->unit->root == b->unit->root &&
           heddle_box_overlap(&a->unit->box, &b->unit->box, 2);
}

static bool may_ask(const struct world *w, const struct heddle_mem_op *op, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if ((op[i].mode & HEDDLE_R) != 0 && heddle_unit_marked(op[i].unit) != HEDDLE_OK)
            return false;
        for (unsigned k = 0; k < i; k++)
            if (conflicts(&op[i], &op[k]))
                return false;
        for (unsigned k = 0; k < NTASKS; k++)
            for (unsigned o = 0; o < w->job[k].t.req.nops && w->job[k].is_live; o++)
                if (conflicts(&op[i], &w->job[k].t.req.op[o]))
                    return false;
    }
    return true;
}

static void step_ask(struct world *w)
{
    static const enum heddle_mode mode[] = {HEDDLE_R, HEDDLE_R, HEDDLE_W, HEDDLE_RW};
    const unsigned n = 1 + pick(w, NOPS), node = pick(w, w->f.ndevs + 1 - w->has_disk);
    struct job *j = &w->job[pick(w, NTASKS)];
    struct heddle_mem_op op[NOPS] = {{0}};

    for (unsigned i = 0; i < n; i++) {
        op[i].unit = w->u[pick(w, NUNITS)];
        op[i].mode = mode[pick(w, 4)];
    }
    if (j->is_live || !may_ask(w, op, n))
        return;
    memset(j, 0, sizeof(*j));
    j->is_live = true;
    j->id = ++w->ntasks;
    j->t.req.user = pick(w, 4) != 0 ? j->id : 0;
    j->t.req.keeps = pick(w, 4) == 0;
    j->t.req.is_forced = node == 0 && pick(w, 4) == 0;
    j->t.req.nprivate = node == 0 ? 0 : pick(w, 2);
    j->t.req.private_bytes[0] = FAKE_UNIT;
    for (unsigned i = 0; i < n && j->t.req.user != 0; i++)
        heddle_mem_will_use(w->f.mem, op[i].unit, j->id, NULL, op[i].mode);
    fake_ask(&w->f, &j->t, node, n, op);
}

/* What it reads is what the model has; then it begins to write. */
static void job_run(struct world *w, struct job *j)
{
    j->is_running = true;
    for (unsigned o = 0; o < j->t.req.nops; o++) {
        const heddle_handle *u = j->t.req.op[o].unit;
        const unsigned root = root_of(w, u);

        for (size_t i = 0; i < u->box.count[0]; i++)
            for (size_t k = 0; k < u->box.count[1]; k++) {
                const size_t at = place(u, i, k);

                if ((j->t.req.op[o].mode & HEDDLE_R) != 0 && w->is_known[root][at])
                    CHECK_EQ(*fake_at(&j->t, o, i, k), w->model[root][at]);
                if ((j->t.req.op[o].mode & HEDDLE_W) != 0)
                    *fake_at(&j->t, o, i, k) = -1;
            }
        if ((j->t.req.op[o].mode & HEDDLE_W) != 0)
            set_all(w, u, w->is_busy, true);
    }
}

static void job_commit(struct world *w, const struct job *j, unsigned o)
{
    heddle_handle *u = j->t.req.op[o].unit;
    const unsigned root = root_of(w, u);

    for (size_t i = 0; i < u->box.count[0]; i++)
        for (size_t k = 0; k < u->box.count[1]; k++)
            *fake_at(&j->t, o, i, k) = w->model[root][place(u, i, k)] = ++w->next_value;
    set_all(w, u, w->is_known, true);
    heddle_unit_unmark(u);
}

/* The engine marks what a failed task should have written; after a lost device the task
 * is tried again, from copies that are as before. */
static void job_spoil(struct world *w, heddle_handle *u, heddle_status st)
{
    if (st == HEDDLE_EDEV && heddle_mem_valid(u) != 0)
        return;
    heddle_unit_mark(u, st);
    set_all(w, u, w->is_known, false);
}

static void job_end(struct world *w, struct job *j)
{
    const bool is_lost = w->f.mem->node[j->t.req.node].is_lost;
    heddle_status st = is_lost                             ? HEDDLE_EDEV
                       : w->has_faults && pick(w, 20) == 0 ? HEDDLE_ETASK
                                                           : HEDDLE_OK;

    for (unsigned o = 0; o < j->t.req.nops; o++) {
        if ((j->t.req.op[o].mode & HEDDLE_W) == 0)
            continue;
        set_all(w, j->t.req.op[o].unit, w->is_busy, false);
        if (st == HEDDLE_OK)
            job_commit(w, j, o);
    }
    heddle_mem_end(w->f.mem, &j->t.req, st);
    for (unsigned o = 0; o < j->t.req.nops && st != HEDDLE_OK; o++)
        if ((j->t.req.op[o].mode & HEDDLE_W) != 0)
            job_spoil(w, j->t.req.op[o].unit, st);
    j->is_live = j->is_running = false;
    w->nready++;
}

/* The home of an array of the runtime gets its memory when it is looked at first. */
static bool job_has_memory(const struct job *j)
{
    for (unsigned o = 0; o < j->t.req.nops; o++)
        if (heddle_mem_ptr(&j->t.req, o) == NULL)
            return false;
    return true;
}

static void step_job(struct world *w, struct job *j)
{
    if (!j->is_live)
        return;
    if (j->t.has_failed) {
        CHECK(w->has_faults || w->f.heap.has_failed);
        for (unsigned i = 0; i < j->t.req.nops; i++)
            heddle_mem_used(w->f.mem, j->t.req.op[i].unit, j->id);
        j->is_live = false;
        w->nfailed++;
    } else if (j->is_running) {
        job_end(w, j);
    } else if (j->t.is_ready && job_has_memory(j)) {
        job_run(w, j);
    } else if (j->t.is_ready) {
        CHECK(w->f.heap.has_failed);
        heddle_mem_end(w->f.mem, &j->t.req, HEDDLE_EDECLINED);
        j->is_live = false;
    }
}

/* --- everything else ------------------------------------------------------------------------- */

static void step_land(struct world *w)
{
    struct heddle_dev *d = &w->f.dev[pick(w, w->f.ndevs)];

    if (d->nflying != 0)
        fake_land(d, pick(w, d->nflying));
}

static void step_hint(struct world *w)
{
    heddle_handle *u = w->u[pick(w, NUNITS)];
    const unsigned node = pick(w, w->f.ndevs + 1 - w->has_disk);

    switch (pick(w, 6)) {
    case 0: heddle_mem_wont_use(w->f.mem, u); break;
    case 1: heddle_mem_evict(w->f.mem, u); break;
    case 2: heddle_mem_pin(w->f.mem, u, node, pick(w, 2) != 0); break;
    case 3: (void)heddle_mem_go_home(w->f.mem); break;
    default: heddle_mem_prefetch(w->f.mem, u, node); break;
    }
}

static void step_fault(struct world *w)
{
    struct heddle_dev *d = &w->f.dev[pick(w, w->f.ndevs)];
    const unsigned node = (unsigned)(d - w->f.dev) + 1;

    if (pick(w, 3) == 0)
        d->fails = pick(w, XFER_TRIES + 2);
    else if (pick(w, 2) == 0)
        d->refuses = pick(w, XFER_TRIES + 2);
    else if (w->f.mem->node[node].kind == HEDDLE_MEM_DEVICE)
        d->capacity = pick(w, 2) != 0 ? UINT64_MAX : d->used + pick(w, 3) * FAKE_UNIT;
    if (pick(w, 100) == 0 && w->f.mem->node[node].kind == HEDDLE_MEM_DEVICE && !d->is_lost) {
        d->is_lost = true;
        heddle_mem_lose(w->f.mem, node);
    }
}

/* A wait returns: the user's data are at home, and the program changes some. */
static void step_wait(struct world *w)
{
    for (unsigned i = 0; i < NTASKS; i++)
        if (w->job[i].is_live)
            return;
    fake_settle(&w->f);
    if (heddle_mem_go_home(w->f.mem) != 0)
        return;
    heddle_mem_give_home(w->f.mem);
    for (unsigned i = 1; i + NOWNED < NROOTS; i++)
        for (size_t k = 0; heddle_mem_valid(w->u[i]) == 1 && k < FAKE_N; k++)
            if (w->is_known[i][k])
                w->data[i][k] = w->model[i][k] = ++w->next_value;
}

static void step(struct world *w)
{
    const uint32_t what = pick(w, 16);

    if (what < 4)
        step_ask(w);
    else if (what < 8)
        step_job(w, &w->job[pick(w, NTASKS)]);
    else if (what < 11)
        step_land(w);
    else if (what < 14)
        (void)heddle_mem_pump(w->f.mem);
    else if (what == 14)
        step_hint(w);
    else if (w->has_faults && pick(w, 2) == 0)
        step_fault(w);
    else
        step_wait(w);
    check_world(w);
}

/* Every request is answered: nobody waits for ever. Then all is brought home. */
static void finish(struct world *w)
{
    bool has_live = true;

    for (unsigned i = 0; i < w->f.ndevs; i++) {
        w->f.dev[i].fails = w->f.dev[i].refuses = 0;
        w->f.dev[i].capacity = UINT64_MAX;
    }
    for (unsigned turn = 0; has_live; turn++) {
        CHECK(turn < 100);
        fake_settle(&w->f);
        has_live = false;
        for (unsigned i = 0; i < NTASKS; i++) {
            step_job(w, &w->job[i]);
            check_world(w);
            has_live = has_live || w->job[i].is_live;
        }
    }
    for (unsigned turn = 0; heddle_mem_go_home(w->f.mem) != 0 || !heddle_mem_is_idle(w->f.mem);
         turn++) {
        CHECK(turn < 100);
        fake_settle(&w->f);
    }
    for (unsigned i = 0; i + NOWNED < NROOTS; i++)
        for (size_t k = 0; k < FAKE_N; k++)
            if (w->is_known[i][k])
                CHECK_EQ(w->data[i][k], w->model[i][k]);
}

static void run(struct world *w, unsigned nsteps)
{
    for (unsigned i = 0; i < nsteps; i++)
        step(w);
    finish(w);
}

TEST(nothing_goes_wrong)
{
    const uint64_t seed = test_seed();
    unsigned nready = 0;
    struct world w;

    for (uint64_t i = 0; i < test_scale(200); i++) {
        test_set_seed(seed + i);
        world_open(&w, seed + i, false);
        run(&w, 600);
        nready += w.nready;
        CHECK_EQ(w.nfailed, 0);
        world_close(&w);
    }
    CHECK(nready > 20 * test_scale(200));
}

TEST(everything_goes_wrong)
{
    const uint64_t seed = test_seed();
    unsigned nready = 0, nfailed = 0, nlost = 0;
    struct world w;

    for (uint64_t i = 0; i < test_scale(300); i++) {
        test_set_seed(seed + i);
        world_open(&w, seed + i, true);
        run(&w, 600);
        nready += w.nready;
        nfailed += w.nfailed;
        nlost += w.f.nlost;
        world_close(&w);
    }
    if (!TEST_SANITIZED) /* enough runs: all of it was tried */
        CHECK(nready > 0 && nfailed > 0 && nlost > 0);
}

/* Of the module's own memory, the k-th. A hint may be lost, a request may fail. */
TEST(no_memory_for_the_kth_allocation)
{
    const uint64_t seed = test_seed();
    bool has_failed = true;
    struct world w;

    for (uint64_t s = 0; s < test_scale(10); s++)
        for (size_t k = 1; k == 1 || has_failed; k++) {
            test_set_seed(seed + s);
            world_open(&w, seed + s, false);
            w.f.heap.ncalls = 0;
            w.f.heap.fail_at = k;
            run(&w, 200);
            has_failed = w.f.heap.has_failed;
            world_close(&w);
        }
}

TEST_MAIN(nothing_goes_wrong, everything_goes_wrong, no_memory_for_the_kth_allocation)
