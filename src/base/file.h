/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BASE_FILE_H
#define HEDDLE_BASE_FILE_H

/* A whole regular file in memory. */
#include <stddef.h>

#include "heddle/alloc.h"
#include "heddle/status.h"

/*
 * *text_out has *len_out bytes and a zero behind them; free it with len + 1
 * bytes. On failure both are 0 and *what_out is a sentence without the name:
 *
 * HEDDLE_ENOENT   no such file
 * HEDDLE_EIO      it cannot be opened or read
 * HEDDLE_EFORMAT  a folder, not a regular file, more than max_bytes
 * HEDDLE_ENOMEM
 */
HEDDLE_MUST_USE heddle_status heddle_file_read(const char *path, size_t max_bytes,
                                               const struct heddle_allocator *a, char **text_out,
                                               size_t *len_out, const char **what_out);

#endif /* HEDDLE_BASE_FILE_H */
