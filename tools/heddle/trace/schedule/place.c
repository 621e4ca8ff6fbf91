/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace/schedule/place: which worker of the runtime a lane of a log was.
 *
 * Lanes      those before the submitter's are the slots of the cores; behind it
 *            come the workers of devices. In virtual time cores are workers of a
 *            device as well, and the slots do nothing.
 */
#include <string.h>

#include "base/text.h"
#include "trace/schedule/schedule.h"

static uint32_t submitter_id(const struct heddle_log_view *v)
{
    for (size_t i = 0; i < v->nlanes; i++)
        if (v->lanes[i].kind == HEDDLE_LOG_SUBMITTER)
            return v->lanes[i].id;
    return UINT32_MAX;
}

static bool is_virtual(const struct heddle_log_view *v, uint32_t submitter)
{
    for (size_t i = 0; i < v->nlanes; i++)
        if (v->lanes[i].kind == HEDDLE_LOG_WORKER && v->lanes[i].id > submitter)
            return true;
    return false;
}

void schedule_lane_place(const struct heddle_log_view *v, uint32_t lane, char out[SCHEDULE_PLACE])
{
    const struct heddle_log_lane *l = &v->lanes[lane];
    const uint32_t submitter = submitter_id(v);
    struct heddle_text t;
    unsigned before = 0;

    heddle_text_init(&t, out, SCHEDULE_PLACE);
    if (l->kind == HEDDLE_LOG_WORKER && l->id < submitter) {
        heddle_text_add(&t, "%u", l->id);
    } else if (is_virtual(v, submitter) && l->id > submitter) {
        for (size_t i = 0; i < v->nlanes; i++)
            before +=
                (v->lanes[i].kind == HEDDLE_LOG_WORKER || v->lanes[i].kind == HEDDLE_LOG_DEVICE) &&
                v->lanes[i].id > submitter && v->lanes[i].id < l->id;
        if (l->kind == HEDDLE_LOG_WORKER || l->kind == HEDDLE_LOG_DEVICE)
            heddle_text_add(&t, "%u", before);
    } else if (l->kind == HEDDLE_LOG_DEVICE) {
        const size_t n = strcspn(l->name, ".");

        if (strcspn(l->name, " \t\r\n#") >= n) /* else no line can say it */
            heddle_text_mem(&t, l->name, n);
    }
}
