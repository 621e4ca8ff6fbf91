/* SPDX-License-Identifier: BSD-3-Clause */
/* sched: the table of policies, made from sched.def. */
#include "sched/sched.h"

#include <string.h>

#include "base/cond.h"

#define HEDDLE_SCHED(name, on)                                                                     \
    HEDDLE_IF(on, extern const struct heddle_sched_ops heddle_sched_##name;)
#include "sched/sched.def"
#undef HEDDLE_SCHED

const struct heddle_sched_ops *const heddle_sched_table[] = {
#define HEDDLE_SCHED(name, on) HEDDLE_IF(on, &heddle_sched_##name, )
#include "sched/sched.def"
#undef HEDDLE_SCHED
    NULL,
};

const struct heddle_sched_ops *heddle_sched_find(const char *name)
{
    for (size_t i = 0; heddle_sched_table[i] != NULL; i++) {
        const struct heddle_sched_ops *s = heddle_sched_table[i];

        if (strcmp(s->name, name) == 0 || (s->alias != NULL && strcmp(s->alias, name) == 0))
            return s;
    }
    return NULL;
}
