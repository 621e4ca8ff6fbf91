/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_ENV_H
#define HEDDLE_CORE_ENV_H

/* The environment variables: env.c is the only file that reads them. */
#include <stddef.h>

#include "heddle/ctx.h"

/* Fills the zero fields of opts from the environment. `why` gets a sentence. */
heddle_status heddle_env_apply(struct heddle_ctx_opts *opts, char *why, size_t cap);
/* Tells of every variable that begins with HEDDLE_ and is not in the list: a misspelt name would
 * have no effect, silently. */
void heddle_env_report_unknown(heddle_message_fn message, void *user);
/* What a driver's variable (library_env, may be NULL) says, or NULL: a fact of the machine, no
 * option of a context. */
const char *heddle_env_library(const char *variable);

#endif /* HEDDLE_CORE_ENV_H */
