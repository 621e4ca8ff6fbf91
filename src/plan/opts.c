/* SPDX-License-Identifier: BSD-3-Clause */
/* opts: sentences, options and machines as the caller gave them. */
#include "plan/opts.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/sized.h"
#include "base/text.h"

heddle_status heddle_plan_opts_get(const struct heddle_plan_opts *o, struct heddle_plan_opts *out)
{
    HEDDLE_TRY(HEDDLE_SIZED_GET_OPTS(struct heddle_plan_opts, out, o));
    if (out->alloc == NULL)
        out->alloc = &heddle_allocator_default;
    return HEDDLE_OK;
}

static heddle_status check_rate(const struct heddle_plan_opts *o, double rate, const char *what)
{
    if (isfinite(rate) && rate >= 0)
        return HEDDLE_OK;
    return HEDDLE_PLAN_FAIL(o, HEDDLE_EINVAL, "%s of the machine is negative or not finite", what);
}

static heddle_status check_store(const struct heddle_plan_opts *o,
                                 const struct heddle_plan_store *s, const char *name)
{
    heddle_status st = check_rate(o, s->out_rate, name);

    if (st == HEDDLE_OK)
        st = check_rate(o, s->in_rate, name);
    if (st != HEDDLE_OK)
        return st;
    if ((s->out_rate > 0) != (s->in_rate > 0))
        return HEDDLE_PLAN_FAIL(o, HEDDLE_EINVAL,
                                "%s of the machine needs a rate in both "
                                "directions, or none",
                                name);
    return HEDDLE_OK;
}

heddle_status heddle_plan_machine_get(const struct heddle_plan_machine *m,
                                      const struct heddle_plan_opts *o,
                                      struct heddle_plan_machine *out)
{
    struct heddle_plan_machine r;
    heddle_status st;

    if (m == NULL)
        return HEDDLE_PLAN_FAIL(o, HEDDLE_EINVAL, "there is no machine");
    HEDDLE_TRY(HEDDLE_SIZED_GET(struct heddle_plan_machine, &r, m, o->why, o->why_bytes));
    if (r.align == 0)
        r.align = 1;
    if (r.align > HEDDLE_PLAN_ALIGN_MAX)
        return HEDDLE_PLAN_FAIL(o, HEDDLE_EINVAL,
                                "addresses of the machine are aligned to more "
                                "than 1 GiB");
    st = check_store(o, &r.host, "the host");
    if (st == HEDDLE_OK)
        st = check_store(o, &r.disk, "the disk");
    if (st == HEDDLE_OK)
        st = check_rate(o, r.link_rate, "the link");
    if (st == HEDDLE_OK)
        *out = r;
    return st;
}

struct heddle_plan_label heddle_plan_op_label(const struct heddle_plan_graph *g, uint32_t op)
{
    struct heddle_plan_label l;
    struct heddle_text t;

    heddle_text_init(&t, l.text, sizeof(l.text));
    heddle_text_add(&t, "%u", op);
    if (op < g->nops && g->ops[op].name != NULL)
        heddle_text_add(&t, " (%.64s)", g->ops[op].name);
    return l;
}

struct heddle_plan_label heddle_plan_bytes_label(uint64_t bytes)
{
    struct heddle_plan_label l;
    struct heddle_text t;

    heddle_text_init(&t, l.text, sizeof(l.text));
    heddle_text_add(&t, "%llu bytes", (unsigned long long)bytes);
    if (bytes >= 1024) {
        heddle_text_str(&t, " (");
        heddle_text_bytes(&t, bytes);
        heddle_text_str(&t, ")");
    }
    return l;
}
