/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace/view/array: the columns of a pack: added, dropped, found, freed.
 */
#include "trace/view/build.h"

#include <string.h>

#include "base/assert.h"

size_t view_type_bytes(enum view_type t)
{
    static const uint8_t bytes[] = {1, 2, 4, 4, 4, 8};

    return bytes[t];
}

const char *view_type_name(enum view_type t)
{
    static const char *const name[] = {"u8", "u16", "u32", "i32", "f32", "f64"};

    return name[t];
}

size_t view_array_bytes(const struct view_array *x)
{
    return x->n * view_type_bytes(x->type);
}

enum view_coding view_array_coding(const struct view_pack *p, const struct view_array *x)
{
    if (!p->is_packed || x->type == VIEW_U8)
        return VIEW_RAW;
    return x->is_steady ? VIEW_DPLANES : VIEW_PLANES;
}

const struct view_array *view_pack_find(const struct view_pack *p, const char *name)
{
    for (size_t i = 0; i < p->narrays; i++)
        if (strcmp(p->array[i].name, name) == 0)
            return &p->array[i];
    return NULL;
}

void *view_add(struct view_build *b, const char *name, enum view_type type, size_t n,
               bool is_steady)
{
    struct view_pack *p = b->p;
    struct view_array *x = &p->array[p->narrays];
    size_t bytes;

    if (n == 0 || b->st != HEDDLE_OK)
        return NULL;
    HEDDLE_ASSERT(p->narrays < VIEW_MAX_ARRAYS);
    if (n >= UINT32_MAX)
        b->st = HEDDLE_EOVERFLOW;
    if (b->st != HEDDLE_OK || !heddle_mul(&bytes, n, view_type_bytes(type)))
        return NULL;
    *x = (struct view_array){.type = type, .is_steady = is_steady, .n = n};
    strncpy(x->name, name, sizeof x->name - 1);
    x->data = heddle_alloc_large(p->a, bytes);
    if (x->data == NULL) {
        b->st = HEDDLE_ENOMEM;
        return NULL;
    }
    p->narrays++;
    return x->data;
}

void view_drop(struct view_build *b, const void *data, uint64_t dflt)
{
    struct view_pack *p = b->p;
    size_t i = 0, size;
    const uint8_t *q = data;

    if (data == NULL)
        return;
    while (p->array[i].data != data)
        i++;
    size = view_type_bytes(p->array[i].type);
    for (size_t k = 0; k < p->array[i].n; k++)
        if (memcmp(q + k * size, &dflt, size) != 0)
            return;
    heddle_free(p->a, p->array[i].data, view_array_bytes(&p->array[i]));
    p->narrays--;
    memmove(&p->array[i], &p->array[i + 1], (p->narrays - i) * sizeof p->array[0]);
}

struct view_pack *view_pack_ref(struct view_pack *p)
{
    p->nrefs++;
    return p;
}

void view_pack_unref(struct view_pack *p)
{
    if (p == NULL || --p->nrefs > 0)
        return;
    for (size_t i = 0; i < p->narrays; i++)
        heddle_free(p->a, p->array[i].data, view_array_bytes(&p->array[i]));
    heddle_free(p->a, p->lane, p->nlanes * sizeof *p->lane);
    heddle_free(p->a, p->dir, p->dir_cap);
    heddle_free(p->a, p, sizeof *p);
}
