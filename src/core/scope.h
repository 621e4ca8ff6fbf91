/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_SCOPE_H
#define HEDDLE_CORE_SCOPE_H

/* The children of a running task. */
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/map.h"
#include "data/data.h"
#include "heddle/task.h"
#include "sched/sched.h"
#include "task/task.h"

struct heddle_exec;
struct heddle_node;
struct submission;
struct worker;

/* Waits on one stack; deeper, children run at once. */
enum { HEDDLE_SCOPE_NEST = 32 };

struct heddle_scope {
    heddle_ctx *ctx;
    struct worker *worker;    /* whose submitter the children go through */
    struct heddle_cell *cell; /* the parent, or */
    struct heddle_node *node;
    uint64_t parent_id;
    heddle_handle *const *op; /* the parent's operands */
    const enum heddle_mode *mode;
    unsigned nops;
    heddle_status body;  /* how the parent's function ended */
    heddle_group *group; /* whose cancellation is theirs too, or NULL */
    bool in_gang;
    bool is_lent; /* not to be freed */
    struct heddle_domain domain;
    struct heddle_map units; /* unit -> struct scope_unit */
    struct scope_unit *list;
    int64_t submitted; /* children, by the body; its slot only, as the next two */
    int64_t own;       /* of these, ended on the slot of the body before it has left */
    bool has_left;     /* the body */
    struct heddle_scope *next_free;
    /* The ends that the two counts above do not know: less than 1 while the body runs. When
     * it waits in earnest, and when it has left: the children that have not ended, and 1
     * for a body that waits. */
    _Atomic int64_t pending;
    _Atomic int status; /* of the first child that failed */
};

/* Makes `s`, which the caller lends until the task has ended, its scope. */
void heddle_scope_begin(struct heddle_exec *x, struct heddle_scope *s);
/* May a child use these operands? Then finds their histories. */
heddle_status heddle_scope_admit(struct submission *s, struct heddle_access *acc, unsigned nops);
/* The body ended. True: children remain, the last one ends the task. False:
 * *st is the task's status, with that of its children. */
bool heddle_scope_leave(struct heddle_exec *x, heddle_status *st);
/* heddle_exec_submit() for any child. */
heddle_status heddle_scope_submit(struct heddle_exec *x, const heddle_kernel *kernel,
                                  const struct heddle_call *call);
/* The scope of a task on a core that has none yet. */
heddle_status heddle_scope_open(struct heddle_exec *x);
void heddle_scope_free_all(struct worker *w);
/* A child ended; `next` is what it made ready. Returns a task to run next. */
struct heddle_sched_task *heddle_scope_child_end(struct worker *w, struct heddle_scope *s,
                                                 struct heddle_sched_task *next);
/* Is scope `in` the scope s, or inside of it? */
bool heddle_scope_has(const struct heddle_scope *s, const struct heddle_scope *in);

#endif /* HEDDLE_CORE_SCOPE_H */
