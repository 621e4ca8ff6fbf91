/* SPDX-License-Identifier: BSD-3-Clause */
/* why: the one sentence about a failure. */
#include "base/why.h"

#include <string.h>

#include "base/text.h"

heddle_status heddle_why_va(char *why, size_t bytes, heddle_status st, const char *fmt, va_list ap)
{
    struct heddle_text t;

    if (why == NULL || bytes == 0)
        return st;
    heddle_text_init(&t, why, bytes);
    heddle_text_vadd(&t, fmt, ap);
    return st;
}

heddle_status heddle_why(char *why, size_t bytes, heddle_status st, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)heddle_why_va(why, bytes, st, fmt, ap);
    va_end(ap);
    return st;
}

heddle_status heddle_why_line(char *why, size_t bytes, const char *path, size_t line,
                              const char *fmt, ...)
{
    struct heddle_text t;
    va_list ap;

    if (why == NULL || bytes == 0)
        return HEDDLE_EFORMAT;
    heddle_text_init(&t, why, bytes);
    if (path != NULL && line > 0)
        heddle_text_add(&t, "%s:%zu: ", path, line);
    else if (path != NULL)
        heddle_text_add(&t, "%s: ", path);
    va_start(ap, fmt);
    heddle_text_vadd(&t, fmt, ap);
    va_end(ap);
    return HEDDLE_EFORMAT;
}

const char *heddle_why_errno(int err)
{
    const char *s = strerrordesc_np(err);

    return s != NULL ? s : "unknown error";
}
