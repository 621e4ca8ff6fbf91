/* SPDX-License-Identifier: BSD-3-Clause */
/* notes: a growing list of sentences. */
#include "base/notes.h"

#include <stdarg.h>
#include <string.h>

#include "base/text.h"

heddle_status heddle_notes_add(struct heddle_notes *notes, const char *fmt, ...)
{
    char *s = heddle_scratch_get(notes->mem, 1, HEDDLE_NOTE_BYTES);
    struct heddle_text t;
    va_list ap;

    if (s == NULL)
        return HEDDLE_ENOMEM;
    if (notes->n == notes->cap) {
        const size_t cap = 2 * notes->cap + 16;
        const char **more = heddle_scratch_get(notes->mem, cap, sizeof(*more));

        if (more == NULL)
            return HEDDLE_ENOMEM;
        if (notes->n > 0)
            memcpy(more, notes->text, notes->n * sizeof(*more));
        notes->text = more;
        notes->cap = cap;
    }
    heddle_text_init(&t, s, HEDDLE_NOTE_BYTES);
    va_start(ap, fmt);
    heddle_text_vadd(&t, fmt, ap);
    va_end(ap);
    notes->text[notes->n++] = s;
    return HEDDLE_OK;
}
