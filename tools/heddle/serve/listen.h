/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_SERVE_LISTEN_H
#define HEDDLE_TOOLS_SERVE_LISTEN_H

/* The socket of a server. */
#include <stddef.h>
#include <stdint.h>

#include "heddle/status.h"

/* Listens on an address in numbers (NULL: 127.0.0.1) and a port (0: the system chooses).
 * HEDDLE_EIO and a sentence: it cannot be had. */
HEDDLE_MUST_USE heddle_status listen_open(const char *where, uint16_t number, int *fd_out,
                                          uint16_t *port_out, char *why, size_t why_bytes);

/* Each connection is a file: as many of the wanted ones as the system lets this process have. */
unsigned listen_connections(unsigned wanted);

#endif /* HEDDLE_TOOLS_SERVE_LISTEN_H */
