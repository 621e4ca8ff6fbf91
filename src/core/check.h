/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_CHECK_H
#define HEDDLE_CORE_CHECK_H

/* The access checker. */
#include <stdbool.h>

#include "core/exec.h"

/* Lends copies of its operands to the body that is about to run. */
heddle_status heddle_check_before(struct heddle_exec *x, void **state_out);
/* Compares, gives back; HEDDLE_EACCESS: the body did not do as it declared. */
heddle_status heddle_check_after(struct heddle_exec *x, void *state, heddle_status st);
/* Operands are about to be used by children (or: are back from them). */
void heddle_check_lend(struct heddle_exec *x, bool is_return);

#endif /* HEDDLE_CORE_CHECK_H */
