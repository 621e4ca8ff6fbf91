/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * near: how many letters apart two words are, by Levenshtein's recurrence in one row.
 *
 * Threads  any; no state.
 */
#include "base/near.h"

#include <stddef.h>
#include <string.h>

/* Insertions, deletions and replacements that make b of a. */
static unsigned near_distance(const char *a, const char *b)
{
    enum { CAP = 32 };
    unsigned row[CAP + 1];
    const size_t n = strlen(b);

    if (n > CAP || strlen(a) > CAP)
        return CAP;
    for (unsigned j = 0; j <= n; j++)
        row[j] = j;
    for (unsigned i = 1; a[i - 1] != '\0'; i++) {
        unsigned diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            const unsigned above = row[j];
            unsigned best = diagonal + (a[i - 1] != b[j - 1]);

            best = above + 1 < best ? above + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            row[j] = best;
            diagonal = above;
        }
    }
    return row[n];
}

struct heddle_near heddle_near_begin(const char *name)
{
    const size_t n = strlen(name);

    return (struct heddle_near){.name = name, .best = n < 4 ? 2 : 3};
}

void heddle_near_look(struct heddle_near *n, const char *word)
{
    const unsigned d = near_distance(n->name, word);

    if (d < n->best) {
        n->best = d;
        n->found = word;
    }
}
