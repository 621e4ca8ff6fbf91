/* SPDX-License-Identifier: BSD-3-Clause */
/* mode: the names of access modes, and what must hold between the columns of their table. */
#include "base/mode.h"

#include <string.h>

#define HEDDLE_MODE_NUMBER(a, name, letters, word, means)                                          \
    _Static_assert(HEDDLE_##name > 0 && HEDDLE_##name < 32, "a set of modes has 32 bits");         \
    _Static_assert((means) != 0, "a mode means something");
HEDDLE_MODE_LIST(HEDDLE_MODE_NUMBER, )

/* What a task works on is the operand, or memory of its own. */
_Static_assert((HEDDLE_MODES(HEDDLE_READS | HEDDLE_WRITES) & HEDDLE_MODES(HEDDLE_PRIVATE)) == 0,
               "");
_Static_assert((HEDDLE_MODES(HEDDLE_COMBINES) & ~HEDDLE_MODES(HEDDLE_PRIVATE)) == 0, "");
/* Without an order there is no task to share with, and nothing to combine before. */
_Static_assert((HEDDLE_MODES(HEDDLE_READS | HEDDLE_WRITES | HEDDLE_SHARED | HEDDLE_COMBINES) &
                ~HEDDLE_MODES(HEDDLE_ORDERED)) == 0,
               "");
_Static_assert((HEDDLE_MODES(HEDDLE_IN_TURN) & ~HEDDLE_MODES(HEDDLE_SHARED)) == 0, "");
/* Writers of one operand exclude each other. */
_Static_assert((HEDDLE_MODES(HEDDLE_WRITES) & HEDDLE_MODES(HEDDLE_SHARED) &
                ~HEDDLE_MODES(HEDDLE_IN_TURN)) == 0,
               "");

/* A switch, so that the compiler misses the row of a new constant. */
const char *heddle_mode_letters(unsigned m)
{
#define HEDDLE_MODE_LETTERS(a, name, letters, word, means)                                         \
    case HEDDLE_##name: return letters;
    switch ((enum heddle_mode)m) {
        HEDDLE_MODE_LIST(HEDDLE_MODE_LETTERS, )
    }
    return NULL;
}

const char *heddle_mode_word(unsigned m)
{
#define HEDDLE_MODE_WORD(a, name, letters, word, means)                                            \
    case HEDDLE_##name: return word;
    switch ((enum heddle_mode)m) {
        HEDDLE_MODE_LIST(HEDDLE_MODE_WORD, )
    }
    return NULL;
}

enum heddle_mode heddle_mode_of_letters(const char *word)
{
#define HEDDLE_MODE_NAMED(a, name, letters, word, means) {HEDDLE_##name, letters},
    static const struct {
        enum heddle_mode mode;
        const char *letters;
    } row[] = {HEDDLE_MODE_LIST(HEDDLE_MODE_NAMED, )};
    enum heddle_mode best = HEDDLE_R;
    size_t most = 0;

    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        const size_t n = strlen(row[i].letters);

        if (n > most && strspn(row[i].letters, word) == n) {
            best = row[i].mode;
            most = n;
        }
    }
    return best;
}
