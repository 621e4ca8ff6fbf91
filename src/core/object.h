/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_OBJECT_H
#define HEDDLE_CORE_OBJECT_H

/*
 * Public objects that may outlive their context: events, groups, graphs. The
 * context keeps a list of these objects; when the context is destroyed, `ctx` of each
 * becomes NULL, and public calls on it return HEDDLE_ESTATE.
 */
#include "base/alloc.h"
#include "heddle/ctx.h"

/* The first member of such an object. */
struct heddle_object {
    heddle_ctx *ctx;                   /* NULL: gone */
    struct heddle_object *prev, *next; /* guarded by ctx->event_lock */
    struct heddle_allocator alloc;
    unsigned kind;
};

/* What kind of object it is, for the end of the context. */
enum heddle_object_kind { OBJECT_EVENT, OBJECT_GROUP, OBJECT_GRAPH };

void heddle_object_add(heddle_ctx *ctx, struct heddle_object *o, enum heddle_object_kind kind);
/* The last reference is gone: takes it off the list. */
void heddle_object_remove(struct heddle_object *o);
/* The context is being destroyed: detaches its events, groups and graphs. */
void heddle_objects_orphan(heddle_ctx *ctx);

#endif /* HEDDLE_CORE_OBJECT_H */
