/* SPDX-License-Identifier: BSD-3-Clause */
/* log: the reader, its rows, sums over them, and every format of export. */
#include "tests/fuzz/log.h"

#include "heddle/compose.h"

static void look_up(const heddle_log *log)
{
    const struct heddle_log_view *v = heddle_log_get_view(log);
    size_t first, last;

    for (size_t i = 0; i < v->ntasks; i++) {
        FUZZ_CHECK(v->tasks[i].kernel < v->nkernels);
        FUZZ_CHECK(v->tasks[i].lane < v->nlanes || v->tasks[i].lane == HEDDLE_LOG_NO_LANE);
        FUZZ_CHECK(v->tasks[i].end_ns >= v->tasks[i].start_ns);
        FUZZ_CHECK(heddle_log_find_task(log, v->tasks[i].id) < v->ntasks);
        heddle_log_find_accesses(log, v->tasks[i].id, &first, &last);
        FUZZ_CHECK(first <= last && last <= v->naccesses);
    }
    for (size_t i = 0; i < v->naccesses; i++)
        FUZZ_CHECK(v->accesses[i].handle < v->nhandles);
    for (size_t i = 0; i < v->nhandles; i++)
        FUZZ_CHECK(v->handles[i].parent <= i);
}

void fuzz_one(const uint8_t *data, size_t bytes)
{
    struct heddle_log_summary *sum = NULL;
    heddle_log *log = NULL;

    if (heddle_log_parse(data, bytes, NULL, &log) == HEDDLE_OK)
        look_up(log);
    heddle_log_close(log);
    log = fuzz_log(data, bytes);
    if (log == NULL)
        return;
    look_up(log);
    if (heddle_log_summary_create(log, &sum) == HEDDLE_OK)
        heddle_log_summary_destroy(log, sum);
    for (size_t i = 0; heddle_log_get_format(i) != NULL; i++)
        (void)!heddle_log_export(log, heddle_log_get_format(i)->name, FUZZ_NOWHERE, 3);
    heddle_log_close(log);
}
