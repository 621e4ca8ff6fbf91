/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * assert: the end of the line for our own bugs.
 *
 * Purpose    the one place of the library that writes to stderr and aborts.
 * Threads    any; the message leaves in one write(), so two do not mix.
 */
#include "base/assert.h"

#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/text.h"

void heddle_panic(const char *file, int line, const char *fmt, ...)
{
    char buf[512];
    struct heddle_text t;
    va_list ap;

    /* The last byte is kept for the newline. */
    heddle_text_init(&t, buf, sizeof(buf) - 1);
    heddle_text_add(&t, "heddle: %s:%d: ", file, line);
    va_start(ap, fmt);
    heddle_text_vadd(&t, fmt, ap);
    va_end(ap);
    buf[t.len] = '\n';
    if (write(STDERR_FILENO, buf, t.len + 1) < 0) {
        /* There is no one left to tell. */
    }
    abort();
}
