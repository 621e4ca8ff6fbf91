/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * build: the parts of a description, and what must be true of the whole.
 *
 * Arrays      hold the next power of two of their count, so that the count says
 *             how large the memory is.
 */
#include "plat/build.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/text.h"
#include "plat/read.h"

static size_t room_for(size_t n)
{
    size_t cap = 4;

    if (n == 0)
        return 0;
    while (cap < n)
        cap *= 2;
    return cap;
}

/* Room for one more behind the n there are. */
static void *array_grow(struct heddle_plat *p, void *old, size_t n, size_t bytes)
{
    void *mem;

    if (n > 0 && room_for(n) == room_for(n + 1))
        return old;
    mem = heddle_zalloc(&p->alloc, room_for(n + 1), bytes);
    if (mem == NULL)
        return NULL;
    if (n > 0)
        memcpy(mem, old, n * bytes);
    heddle_free(&p->alloc, old, room_for(n) * bytes);
    return mem;
}

#define APPEND(p, array, count, max, item)                                                         \
    do {                                                                                           \
        void *mem_;                                                                                \
        if ((p)->count >= (max))                                                                   \
            return HEDDLE_EOVERFLOW;                                                               \
        mem_ = array_grow(p, (p)->array, (p)->count, sizeof(*(p)->array));                         \
        if (mem_ == NULL)                                                                          \
            return HEDDLE_ENOMEM;                                                                  \
        (p)->array = mem_;                                                                         \
        (p)->array[(p)->count++] = *(item);                                                        \
        return HEDDLE_OK;                                                                          \
    } while (0)

heddle_status heddle_plat_add_node(struct heddle_plat *p, const struct heddle_plat_node *n)
{
    APPEND(p, node, nnodes, HEDDLE_PLAT_MAX_NODES, n);
}

heddle_status heddle_plat_add_class(struct heddle_plat *p, const struct heddle_plat_class *c)
{
    APPEND(p, cls, ncls, HEDDLE_PLAT_MAX_CLASSES, c);
}

heddle_status heddle_plat_add_link(struct heddle_plat *p, const struct heddle_plat_link *l)
{
    APPEND(p, link, nlinks, HEDDLE_PLAT_MAX_NODES * HEDDLE_PLAT_MAX_NODES, l);
}

heddle_status heddle_plat_add_bus(struct heddle_plat *p, const struct heddle_plat_bus *b)
{
    APPEND(p, bus, nbuses, HEDDLE_PLAT_MAX_BUSES, b);
}

heddle_status heddle_plat_push_fault(struct heddle_plat *p, const struct heddle_fault *f)
{
    APPEND(p, fault, nfaults, HEDDLE_PLAT_MAX_FAULTS, f);
}

heddle_status heddle_plat_new(const struct heddle_allocator *a, struct heddle_plat **plat_out)
{
    const struct heddle_plat_node host = {.name = "host", .kind = HEDDLE_NODE_HOST};
    struct heddle_plat *p = heddle_zalloc(a, 1, sizeof(*p));
    heddle_status st;

    if (p == NULL)
        return HEDDLE_ENOMEM;
    p->alloc = a != NULL ? *a : heddle_allocator_default;
    st = heddle_plat_table_create(&p->alloc, &p->table);
    if (st == HEDDLE_OK)
        st = heddle_plat_add_node(p, &host);
    if (st != HEDDLE_OK) {
        heddle_plat_destroy(p);
        return st;
    }
    *plat_out = p;
    return HEDDLE_OK;
}

void heddle_plat_destroy(struct heddle_plat *p)
{
    struct heddle_allocator a;

    if (p == NULL)
        return;
    a = p->alloc;
    heddle_plat_table_destroy(p->table);
    heddle_free(&a, p->cls, room_for(p->ncls) * sizeof(*p->cls));
    heddle_free(&a, p->node, room_for(p->nnodes) * sizeof(*p->node));
    heddle_free(&a, p->link, room_for(p->nlinks) * sizeof(*p->link));
    heddle_free(&a, p->bus, room_for(p->nbuses) * sizeof(*p->bus));
    heddle_free(&a, p->fault, room_for(p->nfaults) * sizeof(*p->fault));
    heddle_free(&a, p, sizeof(*p));
}

int heddle_plat_find_bus(const struct heddle_plat *p, const char *name)
{
    for (unsigned i = 0; i < p->nbuses; i++)
        if (strcmp(p->bus[i].name, name) == 0)
            return (int)i;
    return -1;
}

bool heddle_plat_set_name(char *to, size_t cap, const char *from)
{
    const size_t n = strlen(from);

    if (n == 0 || n >= cap)
        return false;
    memset(to, 0, cap);
    memcpy(to, from, n);
    return true;
}

static bool differ(double a, double b)
{
    return a < b || a > b;
}

bool heddle_plat_number_types(struct heddle_plat *p, unsigned *a, unsigned *b)
{
    p->ntypes = 0;
    for (unsigned i = 0; i < p->ncls; i++) {
        struct heddle_plat_class *c = &p->cls[i];
        unsigned k = 0;

        while (k < i && (p->cls[k].kind != c->kind || strcmp(p->cls[k].model, c->model) != 0))
            k++;
        c->type = k < i ? p->cls[k].type : p->ntypes++;
        *a = k;
        *b = i;
        if (differ(p->cls[k].launch_ns, c->launch_ns) || differ(p->cls[k].gflops, c->gflops) ||
            differ(p->cls[k].gbytes, c->gbytes))
            return false;
    }
    return true;
}

/* The nodes that links lead to from node 0, or from which they lead to it. */
static uint64_t reached(const struct heddle_plat *p, bool is_from)
{
    uint64_t set = 1, before = 0;

    while (set != before) {
        before = set;
        for (unsigned i = 0; i < p->nlinks; i++) {
            const unsigned a = is_from ? p->link[i].from : p->link[i].to;
            const unsigned b = is_from ? p->link[i].to : p->link[i].from;

            if ((set >> a & 1) != 0)
                set |= (uint64_t)1 << b;
        }
    }
    return set;
}

unsigned heddle_plat_lost_node(const struct heddle_plat *p, bool *is_from_out)
{
    const uint64_t from = reached(p, true), to = reached(p, false);

    _Static_assert(HEDDLE_PLAT_MAX_NODES <= 64, "nodes are bits");
    for (unsigned i = 1; i < p->nnodes; i++) {
        *is_from_out = (from >> i & 1) == 0;
        if (((from & to) >> i & 1) == 0)
            return i;
    }
    return 0;
}

/* ---- faults -------------------------------------------------------------- */

struct fault_form {
    const char *word;
    enum heddle_fault_kind kind;
    bool is_class; /* else a node */
    bool has_nth, has_at, has_factor;
};

static const struct fault_form fault_forms[] = {
    {"kernel", HEDDLE_FAULT_KERNEL, true, true, false, false},
    {"copy", HEDDLE_FAULT_COPY, false, true, false, false},
    {"alloc", HEDDLE_FAULT_ALLOC, false, true, false, false},
    {"lose", HEDDLE_FAULT_LOSE, true, false, true, false},
    {"slow", HEDDLE_FAULT_SLOW, true, false, true, true},
};

struct fault_why {
    char *why;
    size_t cap;
};

#define FAULT_BAD(w, ...) heddle_why((w).why, (w).cap, HEDDLE_EFORMAT, __VA_ARGS__)

static heddle_status fault_value(const struct fault_form *form, const char *key, const char *value,
                                 struct heddle_fault *f, struct fault_why w)
{
    double v;

    if (form->has_nth && strcmp(key, "nth") == 0) {
        if (f->nth != 0)
            return FAULT_BAD(w, "nth is given twice");
        if (heddle_parse_u64(value, &f->nth) != HEDDLE_OK || f->nth == 0)
            return FAULT_BAD(w, "nth %s is no number from 1 on", value);
        return HEDDLE_OK;
    }
    if (form->has_at && strcmp(key, "at_ms") == 0) {
        if (f->at_ns >= 0)
            return FAULT_BAD(w, "at_ms is given twice");
        if (!heddle_number_finite(value, &v) || v < 0 || v > 1e12)
            return FAULT_BAD(w, "at_ms %s is no time", value);
        f->at_ns = v * 1e6;
        return HEDDLE_OK;
    }
    if (form->has_factor && strcmp(key, "factor") == 0) {
        if (f->factor > 0)
            return FAULT_BAD(w, "factor is given twice");
        if (!heddle_number_finite(value, &v) || !(v > 0) || v > 1e9)
            return FAULT_BAD(w, "factor %s is not above 0", value);
        f->factor = v;
        return HEDDLE_OK;
    }
    return FAULT_BAD(w, "a %s fault has no %s", form->word, key);
}

static heddle_status fault_place(const struct heddle_plat *p, const struct fault_form *form,
                                 const char *name, struct heddle_fault *f, struct fault_why w)
{
    const int i = form->is_class ? heddle_plat_find_class(p, name) : heddle_plat_find_node(p, name);

    if (i < 0)
        return FAULT_BAD(w, "there is no %s %s", form->is_class ? "class" : "node", name);
    f->where = (unsigned)i;
    return HEDDLE_OK;
}

heddle_status heddle_plat_parse_fault(const struct heddle_plat *p, char *const *word,
                                      unsigned nwords, struct heddle_fault *f, char *why,
                                      size_t cap)
{
    const struct fault_why w = {why, cap};
    const struct fault_form *form = NULL;

    for (size_t i = 0; i < sizeof(fault_forms) / sizeof(fault_forms[0]); i++)
        if (nwords > 0 && strcmp(word[0], fault_forms[i].word) == 0)
            form = &fault_forms[i];
    if (form == NULL)
        return FAULT_BAD(w, "a fault is kernel, copy, alloc, lose or slow");
    if (nwords < 2)
        return FAULT_BAD(w, "a %s fault needs a %s", form->word, form->is_class ? "class" : "node");
    *f = (struct heddle_fault){.kind = form->kind, .at_ns = -1};
    HEDDLE_TRY(fault_place(p, form, word[1], f, w));
    for (unsigned i = 2; i < nwords; i += 2) {
        if (i + 1 == nwords)
            return FAULT_BAD(w, "%s has no value", word[i]);
        HEDDLE_TRY(fault_value(form, word[i], word[i + 1], f, w));
    }
    if (form->has_nth && f->nth == 0)
        return FAULT_BAD(w, "a %s fault needs nth", form->word);
    if (form->has_at && f->at_ns < 0)
        return FAULT_BAD(w, "a %s fault needs at_ms", form->word);
    if (form->has_factor && !(f->factor > 0))
        return FAULT_BAD(w, "a %s fault needs factor", form->word);
    if (!form->has_at)
        f->at_ns = 0;
    return HEDDLE_OK;
}
