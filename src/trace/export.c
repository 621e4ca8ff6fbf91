/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * export: the table of exporters and what they have in common.
 *
 * Purpose    one way in for all formats; opens, checks, removes on failure.
 */
#include "trace/export.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/cond.h"
#include "trace/store.h"

#define HEDDLE_EXPORT(name, on)                                                \
    HEDDLE_IF(on, extern const struct heddle_export_ops heddle_export_##name;)
#include "trace/export.def"
#undef HEDDLE_EXPORT

/* clang-format off */
const struct heddle_export_ops *const heddle_export_table[] = {
#define HEDDLE_EXPORT(name, on) HEDDLE_IF(on, &heddle_export_##name, )
#include "trace/export.def"
#undef HEDDLE_EXPORT
    NULL,
};
/* clang-format on */

const struct heddle_log_format *heddle_log_get_format(size_t i)
{
    size_t n = sizeof heddle_export_table / sizeof heddle_export_table[0] - 1;

    return i < n ? &heddle_export_table[i]->format : NULL;
}

static const struct heddle_export_ops *export_find(const char *name)
{
    for (size_t i = 0; heddle_export_table[i] != NULL; i++)
        if (strcmp(heddle_export_table[i]->format.name, name) == 0)
            return heddle_export_table[i];
    return NULL;
}

heddle_status heddle_log_export(const heddle_log *log, const char *format,
                                const char *path, unsigned flags)
{
    const struct heddle_export_ops *ops;
    heddle_status st;
    FILE *f;

    HEDDLE_CHECK(log != NULL && format != NULL && path != NULL);
    ops = export_find(format);
    if (ops == NULL)
        return HEDDLE_ENOENT;
    f = fopen(path, "we");
    if (f == NULL)
        return HEDDLE_EIO;
    st = ops->run(log, f, flags);
    if (ferror(f) != 0 && st == HEDDLE_OK)
        st = HEDDLE_EIO;
    if (fclose(f) != 0 && st == HEDDLE_OK)
        st = HEDDLE_EIO;
    if (st != HEDDLE_OK)
        heddle_trace_discard(path);
    return st;
}
