/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_TRACE_VIEW_BUILD_H
#define HEDDLE_TOOLS_TRACE_VIEW_BUILD_H

/*
 * What trace/view/pack.c, array.c and time.c share while columns are made.
 *
 * Errors are kept in `st`: after the first, nothing is added.
 */
#include "base/alloc.h"
#include "base/map.h"
#include "trace/view/view.h"

struct view_build {
    const heddle_log *log;
    const struct heddle_log_view *v;
    const struct heddle_explain *x;
    struct view_pack *p;
    heddle_status st;

    int64_t first_ns;
    unsigned shift; /* a unit is 2^shift ns */

    uint32_t *dense; /* index of task id_min + i, nids of them; or */
    uint64_t id_min;
    size_t nids;
    uint64_t *ids;      /* all ids in order */
    uint32_t *row_task; /* of each row of the log: index of its task */
    uint32_t *row_run;  /* index of its run, or VIEW_NONE */

    struct heddle_map texts; /* address of a string to its place in text */
    char *text;
    size_t text_len, text_cap;
};

/* A column of n elements to fill; NULL: n is 0, or an error. */
void *view_add(struct view_build *b, const char *name, enum view_type type, size_t n,
               bool is_steady);
/* Takes a column away again when every element has this value. */
void view_drop(struct view_build *b, const void *data, uint64_t dflt);

/* Units since the first moment, at least 0; VIEW_NONE for no time. */
uint32_t view_time(const struct view_build *b, int64_t t);
/* Index of a task; VIEW_NONE: the log has none of that id. */
uint32_t view_task(const struct view_build *b, uint64_t id);
/* Place in the column `text`; VIEW_NONE for NULL. Equal pointers, one place. */
uint32_t view_text(struct view_build *b, const char *s);

/* trace/view/time.c */
void view_put_gaps(struct view_build *b);
void view_put_chains(struct view_build *b);
void view_put_transfers(struct view_build *b);
void view_put_marks(struct view_build *b);
void view_put_curves(struct view_build *b);

#endif /* HEDDLE_TOOLS_TRACE_VIEW_BUILD_H */
