/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * topo: creates the description of the host.
 *
 * Purpose    one object for all that ask about CPUs and memory.
 * Structure  the CPUs come from the affinity mask, their relations from the
 *            first source of topo.def that works, memory and limits from the
 *            kernel's files.
 * Invariants (1) ncpus >= 1, cpu[] ascending by os
 *            (2) core, package dense from 0; l2, l3 dense from 0 or -1
 *            (3) the CPUs of a core have smt 0, 1, ... in the order of cpu[]
 * Threads    immutable once created.
 */
#include "topo/topo.h"

#include <string.h>
#include <sys/utsname.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/cond.h"
#include "base/text.h"
#include "base/thread.h"
#include "heddle_config.h"
#include "topo/memory.h"
#include "topo/parse.h"
#include "topo/source.h"

#define HEDDLE_TOPO(name, on)                                                                      \
    HEDDLE_IF(on, extern const struct heddle_topo_source heddle_topo_##name;)
#include "topo/topo.def"
#undef HEDDLE_TOPO

const struct heddle_topo_source *const heddle_topo_sources[] = {
#define HEDDLE_TOPO(name, on) HEDDLE_IF(on, &heddle_topo_##name, )
#include "topo/topo.def"
#undef HEDDLE_TOPO
    NULL,
};

/* One bit per CPU of the kernel: sorts and finds duplicates. */
struct cpu_bits {
    uint64_t word[HEDDLE_CPU_MAX / 64];
};

static bool bits_add(struct cpu_bits *b, int cpu)
{
    const uint64_t bit = UINT64_C(1) << (cpu % 64);
    uint64_t *w = &b->word[cpu / 64];
    const bool is_new = (*w & bit) == 0;

    *w |= bit;
    return is_new;
}

static heddle_status bits_from_array(struct cpu_bits *b, const int *cpus, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (cpus[i] < 0 || cpus[i] >= HEDDLE_CPU_MAX || !bits_add(b, cpus[i]))
            return HEDDLE_EINVAL;
    }
    return HEDDLE_OK;
}

static void bits_from_list(struct cpu_bits *b, const char *s)
{
    int lo, hi;

    while (heddle_topo_list_next(&s, &lo, &hi)) {
        for (int i = lo; i <= hi && i < HEDDLE_CPU_MAX; i++)
            bits_add(b, i);
    }
}

static heddle_status bits_from_mask(struct cpu_bits *b, const struct heddle_allocator *a)
{
    const size_t bytes = HEDDLE_CPU_MAX * sizeof(int);
    int *cpus = heddle_alloc(a, bytes);
    heddle_status st = HEDDLE_ENOMEM;
    unsigned n = 0;

    if (cpus != NULL)
        st = heddle_thread_get_cpus(cpus, HEDDLE_CPU_MAX, &n);
    if (st == HEDDLE_OK)
        st = bits_from_array(b, cpus, n);
    heddle_free(a, cpus, bytes);
    return st;
}

static heddle_status take_cpus(struct heddle_topo *t, const struct heddle_topo_opts *o,
                               const char *online)
{
    struct cpu_bits b = {{0}};
    unsigned n = 0;

    if (o->cpus != NULL)
        HEDDLE_TRY(bits_from_array(&b, o->cpus, o->ncpus));
    else if (o->root != NULL)
        bits_from_list(&b, online);
    else
        HEDDLE_TRY(bits_from_mask(&b, &t->a));
    for (unsigned i = 0; i < HEDDLE_CPU_MAX / 64; i++)
        n += (unsigned)__builtin_popcountll(b.word[i]);
    if (n == 0)
        return HEDDLE_ENOENT;
    t->cpu = heddle_zalloc(&t->a, n, sizeof(*t->cpu));
    if (t->cpu == NULL)
        return HEDDLE_ENOMEM;
    for (int i = 0; i < HEDDLE_CPU_MAX; i++) {
        if ((b.word[i / 64] >> (i % 64) & 1) != 0)
            t->cpu[t->ncpus++].os = i;
    }
    t->ncpus_online = heddle_topo_list_count(online);
    if (t->ncpus_online < t->ncpus)
        t->ncpus_online = t->ncpus;
    return HEDDLE_OK;
}

static void forget(struct heddle_topo *t)
{
    for (unsigned i = 0; i < t->ncpus; i++)
        t->cpu[i] = (struct heddle_topo_cpu){
            .os = t->cpu[i].os,
            .core = -1,
            .package = -1,
            .l2 = -1,
            .l3 = -1,
        };
}

static heddle_status probe_sources(struct heddle_topo *t, const char *root, const char *name)
{
    bool has_any = false;

    for (unsigned i = 0; heddle_topo_sources[i] != NULL; i++) {
        const struct heddle_topo_source *s = heddle_topo_sources[i];
        heddle_status st;

        if (name != NULL && strcmp(name, s->name) != 0)
            continue;
        has_any = true;
        forget(t);
        st = s->probe(t, root);
        if (st == HEDDLE_OK) {
            t->source = s->name;
            return HEDDLE_OK;
        }
        if (st != HEDDLE_ENOSYS)
            return st;
    }
    return has_any ? HEDDLE_ENOSYS : HEDDLE_ENOENT;
}

/* Which member of a CPU is numbered. */
static int *member(struct heddle_topo_cpu *c, size_t offset)
{
    return (int *)(void *)((char *)c + offset);
}

/* Replaces the numbers a source gave by 0, 1, ... in the order of cpu[]; -1
 * stays. Returns how many there are. */
static unsigned make_dense(struct heddle_topo *t, size_t offset)
{
    unsigned n = 0;

    /* From the end, so that numbers not yet replaced are compared; what is
     * found is the first CPU with that number, whose place is unique. */
    for (unsigned i = t->ncpus; i-- > 0;) {
        int *v = member(&t->cpu[i], offset);
        unsigned first = 0;

        if (*v < 0)
            continue;
        while (*member(&t->cpu[first], offset) != *v)
            first++;
        *v = (int)first;
    }
    for (unsigned i = 0; i < t->ncpus; i++) {
        int *v = member(&t->cpu[i], offset);

        if (*v < 0)
            continue;
        *v = *v == (int)i ? (int)n++ : *member(&t->cpu[*v], offset);
    }
    return n;
}

static void number_all(struct heddle_topo *t)
{
    int top = 0;

    for (unsigned i = 0; i < t->ncpus; i++)
        top = t->cpu[i].core > top ? t->cpu[i].core : top;
    for (unsigned i = 0; i < t->ncpus; i++) {
        if (t->cpu[i].core < 0) /* unknown: a core of its own */
            t->cpu[i].core = top + 1 + (int)i;
        if (t->cpu[i].package < 0)
            t->cpu[i].package = INT32_MAX; /* unknown: all in one */
    }
    t->ncores = make_dense(t, offsetof(struct heddle_topo_cpu, core));
    t->npackages = make_dense(t, offsetof(struct heddle_topo_cpu, package));
    t->nl2 = make_dense(t, offsetof(struct heddle_topo_cpu, l2));
    t->nl3 = make_dense(t, offsetof(struct heddle_topo_cpu, l3));
    for (unsigned i = 0; i < t->ncpus; i++) {
        for (unsigned k = 0; k < i; k++)
            t->cpu[i].smt += t->cpu[k].core == t->cpu[i].core;
    }
}

static void read_model(struct heddle_topo *t, const char *root)
{
    static const char *const key[] = {"model name", "cpu model", "cpu", "Hardware"};
    struct heddle_topo_lines l;
    struct heddle_text text;
    struct utsname u;
    const char *v;
    char *line;

    heddle_text_init(&text, t->model, sizeof(t->model));
    if (heddle_topo_lines_open(&l, root, "/proc/cpuinfo") == HEDDLE_OK) {
        while (text.len == 0 && (line = heddle_topo_lines_next(&l)) != NULL) {
            for (unsigned i = 0; text.len == 0 && i < 4; i++) {
                v = heddle_topo_value(line, key[i]);
                if (v != NULL)
                    heddle_text_str(&text, v);
            }
        }
        heddle_topo_lines_close(&l);
    }
    if (text.len == 0) /* most ARM kernels name nothing */
        heddle_text_str(&text, uname(&u) == 0 ? u.machine : "unknown");
}

static heddle_status fill(struct heddle_topo *t, const struct heddle_topo_opts *o)
{
    const char *root = o->root == NULL ? "" : o->root;
    char online[4096];

    if (heddle_topo_read(online, sizeof(online), root, "/sys/devices/system/cpu/online") !=
        HEDDLE_OK)
        online[0] = '\0';
    HEDDLE_TRY(take_cpus(t, o, online));
    HEDDLE_TRY(probe_sources(t, root, o->source));
    number_all(t);
    heddle_topo_read_memory(t, root);
    HEDDLE_TRY(heddle_topo_read_nodes(t, root));
    read_model(t, root);
    return HEDDLE_OK;
}

heddle_status heddle_topo_create_with(const struct heddle_allocator *a,
                                      const struct heddle_topo_opts *opts,
                                      struct heddle_topo **topo_out)
{
    static const struct heddle_topo_opts none = {0};
    struct heddle_topo *t = heddle_zalloc(a, 1, sizeof(*t));
    heddle_status st;

    if (t == NULL)
        return HEDDLE_ENOMEM;
    t->a = a == NULL ? heddle_allocator_default : *a;
    st = fill(t, opts == NULL ? &none : opts);
    if (st != HEDDLE_OK) {
        heddle_topo_destroy(t);
        return st;
    }
    *topo_out = t;
    return HEDDLE_OK;
}

heddle_status heddle_topo_create(const struct heddle_allocator *a, struct heddle_topo **topo_out)
{
    return heddle_topo_create_with(a, NULL, topo_out);
}

void heddle_topo_destroy(struct heddle_topo *t)
{
    struct heddle_allocator a;

    if (t == NULL)
        return;
    a = t->a;
    heddle_free(&a, t->cpu, t->ncpus * sizeof(*t->cpu));
    heddle_free(&a, t->node, t->nnodes * sizeof(*t->node));
    heddle_free(&a, t, sizeof(*t));
}

unsigned heddle_topo_default_workers(const struct heddle_topo *t)
{
    unsigned n = t->ncores;

    if (t->cpu_quota > 0.0 && t->cpu_quota < (double)n) {
        n = (unsigned)t->cpu_quota;
        n += (double)n < t->cpu_quota ? 1 : 0;
    }
    return n == 0 ? 1 : n;
}
