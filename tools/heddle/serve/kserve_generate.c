/* SPDX-License-Identifier: BSD-3-Clause */
/* kserve_generate: what a request asks of a decoder: members of JSON objects. */
#include "base/assert.h"
#include "base/why.h"
#include "serve/kserve.h"

enum kind { WHOLE, REAL, STOP };

static const struct {
    const char *name;
    enum kind kind;
    size_t at;
    double most;
} members[] = {
    {"max_tokens", WHOLE, offsetof(struct kserve_generate, max_tokens), 1 << 20},
    {"top_k", WHOLE, offsetof(struct kserve_generate, top_k), UINT32_MAX},
    {"seed", WHOLE, offsetof(struct kserve_generate, seed), 0x1p63},
    {"temperature", REAL, offsetof(struct kserve_generate, temperature), 1e6},
    {"top_p", REAL, offsetof(struct kserve_generate, top_p), 1},
    {"stop_token", STOP, offsetof(struct kserve_generate, stop), 0x1p62},
};

heddle_status kserve_generate_member(struct heddle_json_in *j, const struct heddle_json_item *key,
                                     struct kserve_generate *g, bool *is_known, char *why,
                                     size_t why_bytes)
{
    struct heddle_json_item item;
    double real = -1;
    uint64_t whole = 0;
    size_t i = 0;

    while (i < sizeof(members) / sizeof(members[0]) && !heddle_json_is(key, members[i].name))
        i++;
    *is_known = i < sizeof(members) / sizeof(members[0]);
    if (!*is_known)
        return HEDDLE_OK;
    (void)heddle_json_next(j, &item);
    if (heddle_json_get_double(&item, &real) != HEDDLE_OK || !(real >= 0) ||
        real > members[i].most ||
        (members[i].kind != REAL && heddle_json_get_u64(&item, &whole) != HEDDLE_OK))
        return heddle_why(why, why_bytes, HEDDLE_EINVAL, "'%s' is not a %s from 0 to %.10g",
                          members[i].name, members[i].kind == REAL ? "number" : "whole number",
                          members[i].most);
    if (members[i].kind == REAL)
        *(double *)(void *)((char *)g + members[i].at) = real;
    else if (members[i].kind == WHOLE)
        *(uint64_t *)(void *)((char *)g + members[i].at) = whole;
    else
        g->stop = (int64_t)whole;
    g->has_stop = g->has_stop || members[i].kind == STOP;
    return HEDDLE_OK;
}
