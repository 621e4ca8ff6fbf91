/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dnn: what all kinds of objects share: options, instruction sets, weights.
 *
 * Invariant  packed weights do not change once an object has them; their count of users does.
 * Threads    the count is atomic, all else belongs to the creator until create() returns.
 */
#include "dnn/dnn.h"

#include <string.h>

#include "base/atomic.h"
#include "base/cond.h"
#include "dnn/object.h"
#include "heddle_config.h"

static const struct dnn_isa *const isas[] = {
#define DNN_ISA(name, on) HEDDLE_IF(on, &heddle_dnn_##name, )
#include "dnn/isa/isa.def"
#undef DNN_ISA
};

enum { NISAS = sizeof(isas) / sizeof(isas[0]) };

const char *heddle_dnn_isa_name(size_t i)
{
    for (size_t k = 0; k < NISAS; k++)
        if (isas[k]->is_here() && i-- == 0)
            return isas[k]->name;
    return NULL;
}

static const struct dnn_isa *find(const char *name)
{
    for (size_t k = 0; k < NISAS; k++)
        if (isas[k]->is_here() && (name == NULL || strcmp(name, isas[k]->name) == 0))
            return isas[k];
    return NULL;
}

heddle_status heddle_dnn_ask(struct dnn_ask *ask, const struct dnn_make *make)
{
    const heddle_status st =
        HEDDLE_SIZED_GET(struct dnn_make, &ask->make, make, make != NULL ? make->why : NULL,
                         make != NULL ? make->why_bytes : 0);

    if (st != HEDDLE_OK)
        return st;
    ask->isa = find(ask->make.isa);
    if (ask->isa == NULL)
        return DNN_WHY(ask, HEDDLE_ENOSYS, "this processor or this build has no '%s'",
                       ask->make.isa);
    return HEDDLE_OK;
}

heddle_status heddle_dnn_new(const struct dnn_ask *ask, const struct dnn_kind *kind, size_t bytes,
                             struct heddle_dnn **out)
{
    struct heddle_dnn *o = heddle_zalloc(ask->make.alloc, 1, bytes);

    if (o == NULL)
        return DNN_WHY(ask, HEDDLE_ENOMEM, "%s: no memory for the object", kind->name);
    o->kind = kind;
    o->isa = ask->isa;
    o->alloc = ask->make.alloc;
    o->bytes = bytes;
    o->nparts = 1;
    *out = o;
    return HEDDLE_OK;
}

static bool share(struct heddle_dnn *o, const struct heddle_dnn *other, const size_t key[4])
{
    struct dnn_weights *w = other != NULL ? other->weights : NULL;

    if (w == NULL || w->kind != o->kind || w->isa != o->isa ||
        memcmp(w->key, key, sizeof(w->key)) != 0)
        return false;
    heddle_add_rlx(&w->nusers, 1);
    o->weights = w;
    return true;
}

heddle_status heddle_dnn_get_weights(struct heddle_dnn *o, const struct dnn_ask *ask,
                                     const size_t key[4], size_t floats, bool *is_new)
{
    struct dnn_weights *w;

    *is_new = !share(o, ask->make.share, key);
    if (!*is_new)
        return HEDDLE_OK;
    w = heddle_zalloc(o->alloc, 1, sizeof(*w));
    if (w != NULL) {
        w->bytes = (floats + 1) * sizeof(float);
        w->data = heddle_alloc_large(o->alloc, w->bytes);
    }
    if (w == NULL || w->data == NULL) {
        heddle_free(o->alloc, w, sizeof(*w));
        return DNN_WHY(ask, HEDDLE_ENOMEM, "%s: no memory for %zu packed weights", o->kind->name,
                       floats);
    }
    w->nusers = 1;
    w->alloc = o->alloc;
    w->isa = o->isa;
    w->kind = o->kind;
    memcpy(w->key, key, sizeof(w->key));
    o->weights = w;
    return HEDDLE_OK;
}

void heddle_dnn_destroy(struct heddle_dnn *o)
{
    if (o == NULL)
        return;
    if (o->weights != NULL && heddle_sub_acqrel(&o->weights->nusers, 1) == 1) {
        struct dnn_weights *w = o->weights;

        heddle_free(w->alloc, w->data, w->bytes);
        heddle_free(w->alloc, w, sizeof(*w));
    }
    heddle_free(o->alloc, o, o->bytes);
}

size_t heddle_dnn_parts(const struct heddle_dnn *o)
{
    return dnn_or_one(o->nparts);
}

size_t heddle_dnn_scratch_bytes(const struct heddle_dnn *o, size_t nparts)
{
    (void)nparts;
    return o->scratch;
}

void heddle_dnn_run(const struct heddle_dnn *o, const void *const *in, void *const *out,
                    size_t part, size_t nparts, void *scratch)
{
    o->kind->run(o, in, out, part, nparts, scratch);
}

double heddle_dnn_flops(const struct heddle_dnn *o)
{
    return o->flops;
}

double heddle_dnn_bytes(const struct heddle_dnn *o)
{
    return o->moved;
}

const char *heddle_dnn_kind(const struct heddle_dnn *o)
{
    return o->kind->name;
}

const char *heddle_dnn_isa(const struct heddle_dnn *o)
{
    return o->isa->name;
}

size_t heddle_dnn_packed_bytes(const struct heddle_dnn *o)
{
    return o->weights != NULL ? o->weights->bytes : 0;
}

size_t heddle_dnn_packed_users(const struct heddle_dnn *o)
{
    return o->weights != NULL ? heddle_load_rlx(&o->weights->nusers) : 0;
}
