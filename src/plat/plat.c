/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plat: a machine as a description. Which reader takes a source, finding parts by
 * name, and how long a kernel takes.
 */
#include "plat/plat.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "plat/build.h"
#include "plat/read.h"

#define STARPU "starpu:"

/* DIR may have colons, NAME may not. */
static heddle_status open_starpu(const struct heddle_allocator *a, const char *rest,
                                 struct heddle_plat **plat_out, char *why, size_t cap)
{
    const char *colon = strrchr(rest, ':');
    char dir[HEDDLE_PLAT_PATH];
    size_t n;

    if (colon == NULL || colon == rest || colon[1] == '\0')
        return heddle_why(why, cap, HEDDLE_EFORMAT, "%s%s is not starpu:DIR:NAME", STARPU, rest);
    n = (size_t)(colon - rest);
    if (n >= sizeof(dir) || strchr(colon, '/') != NULL)
        return heddle_why(why, cap, HEDDLE_EFORMAT, "%s%s is not starpu:DIR:NAME", STARPU, rest);
    memcpy(dir, rest, n);
    dir[n] = '\0';
    return heddle_plat_read_starpu(a, dir, colon + 1, plat_out, why, cap);
}

heddle_status heddle_plat_open(const struct heddle_allocator *a, const char *source,
                               struct heddle_plat **plat_out, char *why, size_t cap)
{
    heddle_status st;

    if (why != NULL && cap > 0)
        why[0] = '\0';
    if (strncmp(source, STARPU, strlen(STARPU)) == 0)
        st = open_starpu(a, source + strlen(STARPU), plat_out, why, cap);
    else
        st = heddle_plat_read_file(a, source, plat_out, why, cap);
    if (st == HEDDLE_ENOMEM)
        return heddle_why(why, cap, st, "no memory for the machine of %s", source);
    return st;
}

heddle_status heddle_plat_add_fault(struct heddle_plat *p, const char *words, char *why, size_t cap)
{
    struct heddle_plat_text *t = heddle_zalloc(&p->alloc, 1, sizeof(*t));
    struct heddle_fault f;
    heddle_status st;
    unsigned skip;

    if (t == NULL)
        return heddle_why(why, cap, HEDDLE_ENOMEM, "no memory");
    t->why = why;
    t->cap = cap;
    st = heddle_plat_text_split(t, words, strlen(words));
    if (st == HEDDLE_OK) {
        skip = t->nwords > 0 && strcmp(t->word[0], "fault") == 0 ? 1 : 0;
        st = heddle_plat_parse_fault(p, t->word + skip, t->nwords - skip, &f, why, cap);
    }
    if (st == HEDDLE_OK)
        st = heddle_plat_push_fault(p, &f);
    if (st == HEDDLE_EOVERFLOW)
        st = heddle_why(why, cap, HEDDLE_EFORMAT, "too many faults");
    heddle_free(&p->alloc, t, sizeof(*t));
    return st;
}

/* By the class's rates: whichever takes longer, the flops or the bytes. */
static double time_by_rates(const struct heddle_plat_class *c, double bytes, double flops)
{
    double ns = (double)NAN;

    if (flops > 0 && c->gflops > 0)
        ns = flops / c->gflops;
    if (bytes > 0 && c->gbytes > 0 && !(ns > bytes / c->gbytes))
        ns = bytes / c->gbytes;
    return ns;
}

double heddle_plat_time(const struct heddle_plat *p, const char *kernel, unsigned cls, double bytes,
                        double flops)
{
    const struct heddle_plat_class *c;
    unsigned who[2];
    double ns;

    if (cls >= p->ncls || !(bytes >= 0))
        return (double)NAN;
    c = &p->cls[cls];
    who[0] = HEDDLE_PLAT_WHO_TYPE(c->type);
    who[1] = HEDDLE_PLAT_WHO_KIND(c->kind);
    ns = heddle_plat_table_time(p->table, kernel, who, 2, bytes, flops);
    if (isnan(ns))
        ns = time_by_rates(c, bytes, flops);
    return ns + c->launch_ns;
}

double heddle_plat_variant_time(const struct heddle_plat *p, const char *kernel,
                                const char *variant, unsigned cls, double bytes, double flops)
{
    char name[256];
    unsigned who[2];
    int n;

    if (cls >= p->ncls || !(bytes >= 0) || variant == NULL)
        return (double)NAN;
    n = snprintf(name, sizeof(name), "%s:%s", kernel, variant);
    if (n < 0 || (size_t)n >= sizeof(name))
        return (double)NAN;
    who[0] = HEDDLE_PLAT_WHO_TYPE(p->cls[cls].type);
    who[1] = HEDDLE_PLAT_WHO_KIND(p->cls[cls].kind);
    return heddle_plat_table_time(p->table, name, who, 2, bytes, flops) + p->cls[cls].launch_ns;
}

double heddle_plat_share(const struct heddle_plat *p, const char *kernel, unsigned cls,
                         double bytes)
{
    unsigned who[2];

    if (!p->has_shares || cls >= p->ncls || !(bytes >= 0))
        return (double)NAN;
    who[0] = HEDDLE_PLAT_WHO_SHARE(HEDDLE_PLAT_WHO_TYPE(p->cls[cls].type));
    who[1] = HEDDLE_PLAT_WHO_SHARE(HEDDLE_PLAT_WHO_KIND(p->cls[cls].kind));
    return heddle_plat_table_time(p->table, kernel, who, 2, bytes, 0);
}

int heddle_plat_find_link(const struct heddle_plat *p, unsigned from, unsigned to)
{
    for (unsigned i = 0; i < p->nlinks; i++)
        if (p->link[i].from == from && p->link[i].to == to)
            return (int)i;
    return -1;
}

int heddle_plat_find_class(const struct heddle_plat *p, const char *name)
{
    for (unsigned i = 0; i < p->ncls; i++)
        if (strcmp(p->cls[i].name, name) == 0)
            return (int)i;
    return -1;
}

int heddle_plat_find_node(const struct heddle_plat *p, const char *name)
{
    for (unsigned i = 0; i < p->nnodes; i++)
        if (strcmp(p->node[i].name, name) == 0)
            return (int)i;
    return -1;
}
