/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BASE_NEAR_H
#define HEDDLE_BASE_NEAR_H

/*
 * The word that was meant by a mistyped one.
 *
 *     struct heddle_near n = heddle_near_begin("HEDDLE_WORKRES");
 *     for each word: heddle_near_look(&n, word);
 *     n.found is the nearest word, or NULL: none is near
 */

struct heddle_near {
    const char *name, *found;
    unsigned best;
};

/* A third of the letters, and at most two, may be wrong: more is another word. */
struct heddle_near heddle_near_begin(const char *name);
/* Borrows `word` as long as n.found is used. Of words equally near the first counts. */
void heddle_near_look(struct heddle_near *n, const char *word);

#endif /* HEDDLE_BASE_NEAR_H */
