/* SPDX-License-Identifier: BSD-3-Clause */
/* scope: names of values while a file becomes graphs. */
#include <string.h>

#include "base/assert.h"
#include "base/rng.h"
#include "nn/load.h"

bool heddle_nn_grow(struct heddle_scratch *mem, void *array, uint32_t *cap, uint32_t n,
                    size_t bytes)
{
    const uint32_t more = *cap == 0 ? 8 : *cap * 2;
    void *old, *p;

    if (n < *cap)
        return true;
    memcpy(&old, array, sizeof(old));
    if (*cap >= UINT32_MAX / 4)
        return false;
    p = heddle_scratch_get(mem, more, bytes);
    if (p == NULL)
        return false;
    if (n > 0)
        memcpy(p, old, n * bytes);
    memcpy(array, &p, sizeof(p));
    *cap = more;
    return true;
}

void heddle_nn_scope_init(struct loader *l, struct load_scope *s, struct nn_graph *g)
{
    memset(s, 0, sizeof(*s));
    s->graph = g;
    heddle_map_init(&s->name, l->model->alloc);
}

static uint64_t scope_hash(const char *name)
{
    uint64_t h = 0;

    for (; *name != '\0'; name++)
        h = heddle_mix64(h ^ (unsigned char)*name);
    return h;
}

/* The name is kept with the value, but for a function's, whose value has another one: so the map
 * leads to an index of `bound`. */
struct bound {
    const char *name;
    uint32_t value;
};

/* The place of a name: what it is bound to, or NULL and the free key. */
static struct bound *scope_get(struct load_scope *s, const char *name, uint64_t *key_out)
{
    for (uint64_t key = scope_hash(name);; key++) {
        struct bound *b = heddle_map_get_ptr(&s->name, key);

        *key_out = key;
        if (b == NULL || strcmp(b->name, name) == 0)
            return b;
    }
}

heddle_status heddle_nn_scope_bind(struct loader *l, struct load_scope *s, const char *name,
                                   uint32_t value)
{
    uint64_t key;
    struct bound *b = scope_get(s, name, &key);

    if (b != NULL)
        return heddle_nn_load_fail(l, HEDDLE_EFORMAT, "two values are called '%s'", name);
    b = heddle_scratch_get(&l->model->mem, 1, sizeof(*b));
    if (b == NULL)
        return heddle_nn_load_memory_fail(l);
    *b = (struct bound){name, value};
    if (heddle_map_put_ptr(&s->name, key, b) != HEDDLE_OK)
        return heddle_nn_load_memory_fail(l);
    return HEDDLE_OK;
}

heddle_status heddle_nn_new_value(struct loader *l, struct nn_graph *g, const char *name,
                                  uint32_t *out)
{
    if (!heddle_nn_grow(&l->model->mem, &g->value, &g->cap_values, g->nvalues, sizeof(*g->value)))
        return heddle_nn_load_memory_fail(l);
    g->value[g->nvalues] = (struct nn_info){.name = name, .maker = NN_NONE};
    *out = g->nvalues++;
    return HEDDLE_OK;
}

/* A value of the graph around, seen in this graph. */
static heddle_status scope_capture(struct loader *l, struct load_scope *s, const char *name,
                                   uint32_t outer, uint32_t *out)
{
    const struct nn_info info = s->around->graph->value[outer];
    struct nn_graph *g = s->graph;

    HEDDLE_TRY(heddle_nn_new_value(l, g, name, out));
    g->value[*out].declared = info.declared;
    g->value[*out].constant = info.constant;
    if (!heddle_nn_grow(&l->model->mem, &g->capture, &g->cap_captures, g->ncaptures,
                        sizeof(*g->capture)))
        return heddle_nn_load_memory_fail(l);
    g->capture[g->ncaptures++] = (struct nn_capture){outer, *out};
    return heddle_nn_scope_bind(l, s, name, *out);
}

heddle_status heddle_nn_scope_find(struct loader *l, struct load_scope *s, const char *name,
                                   uint32_t *out)
{
    uint64_t key;
    const struct bound *b = scope_get(s, name, &key);
    uint32_t outer = NN_NONE;

    *out = b != NULL ? b->value : NN_NONE;
    if (b != NULL || s->around == NULL)
        return HEDDLE_OK;
    HEDDLE_TRY(heddle_nn_scope_find(l, s->around, name, &outer));
    return outer == NN_NONE ? HEDDLE_OK : scope_capture(l, s, name, outer, out);
}
