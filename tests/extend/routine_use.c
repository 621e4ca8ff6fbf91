/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a program sees of a new dense routine, heddle_la_exercise(), a copy of heddle_la_trtrs():
 * see extend.py. The list of routines has it, with its operations, and the library exports it.
 */
#include <string.h>

#include "heddle/heddle.h"
#include "heddle/la.h"
#include "test.h"

int main(void)
{
    const struct heddle_la_routine *r;
    unsigned i = 0;

    while ((r = heddle_la_get_routine(i)) != NULL && strcmp(r->name, "exercise") != 0)
        i++;
    CHECK(r != NULL);
    CHECK_NEAR(r->flops(10, 10, 3), 300, 1e-9);
    /* Refused by its own check of arguments: no sequence. */
    CHECK_EQ(heddle_la_exercise(NULL, 'U', 'N', 'N', NULL, NULL), HEDDLE_EINVAL);
    printf("%s: %s\n", r->name, r->what);
    return 0;
}
