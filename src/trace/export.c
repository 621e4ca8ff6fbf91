/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * export: the table of exporters and what they have in common.
 *
 * Purpose    one way in for all formats; opens, checks, removes on failure.
 */
#include "trace/export.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/assert.h"
#include "base/cond.h"
#include "base/fsize.h"
#include "trace/log.h"
#include "trace/store.h"

#define HEDDLE_EXPORT(name, on)                                                                    \
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

/* Writes one file, or nothing. */
static heddle_status write_file(const heddle_log *log, heddle_export_fn *run, const char *path,
                                unsigned flags)
{
    heddle_status st;
    struct heddle_fsize limit;
    FILE *f = fopen(path, "we");

    if (f == NULL)
        return HEDDLE_EIO;
    heddle_fsize_enter(&limit);
    st = run(log, f, flags);
    if (ferror(f) != 0 && st == HEDDLE_OK)
        st = HEDDLE_EIO;
    if (fclose(f) != 0 && st == HEDDLE_OK)
        st = HEDDLE_EIO;
    heddle_fsize_leave(&limit);
    if (st != HEDDLE_OK)
        heddle_trace_discard(path);
    return st;
}

/* The path with another extension; heddle_strfree() it. */
static char *part_path(const heddle_log *log, const char *path, const char *extension)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    const char *dot = strrchr(name, '.');
    const size_t n = dot == NULL || dot == name ? strlen(path) : (size_t)(dot - path);
    char *p = heddle_alloc(log->a, n + strlen(extension) + 1);

    if (p == NULL)
        return NULL;
    memcpy(p, path, n);
    memcpy(p + n, extension, strlen(extension) + 1);
    return p;
}

/* Writes the other files from number i on, or none of them. */
static heddle_status write_parts(const heddle_log *log, const struct heddle_export_ops *ops,
                                 size_t i, const char *path, unsigned flags)
{
    heddle_status st;
    char *p;

    if (ops->format.parts == NULL || ops->format.parts[i] == NULL)
        return HEDDLE_OK;
    p = part_path(log, path, ops->format.parts[i]);
    if (p == NULL)
        return HEDDLE_ENOMEM;
    if (strcmp(p, path) == 0)
        st = HEDDLE_EINVAL;
    else
        st = write_file(log, ops->run_part[i], p, flags);
    if (st == HEDDLE_OK) {
        st = write_parts(log, ops, i + 1, path, flags);
        if (st != HEDDLE_OK)
            heddle_trace_discard(p);
    }
    heddle_strfree(log->a, p);
    return st;
}

heddle_status heddle_log_export(const heddle_log *log, const char *format, const char *path,
                                unsigned flags)
{
    const struct heddle_export_ops *ops;
    heddle_status st;
    struct stat sb;

    HEDDLE_CHECK(log != NULL && format != NULL && path != NULL);
    ops = export_find(format);
    if (ops == NULL)
        return HEDDLE_ENOENT;
    HEDDLE_TRY(write_file(log, ops->run, path, flags));
    if (lstat(path, &sb) != 0 || !S_ISREG(sb.st_mode))
        return HEDDLE_OK;
    st = write_parts(log, ops, 0, path, flags);
    if (st != HEDDLE_OK)
        heddle_trace_discard(path);
    return st;
}
