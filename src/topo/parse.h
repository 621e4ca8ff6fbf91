/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOPO_PARSE_H
#define HEDDLE_TOPO_PARSE_H

/*
 * Reading the kernel's small text files. Every path is taken below a root
 * folder ("" for the real one), so tests bring their own files.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "heddle/status.h"

/*
 * Reads the whole file root/fmt... into buf as a string, without the newline
 * at its end.
 *
 * HEDDLE_ENOENT     it cannot be opened
 * HEDDLE_EIO        it cannot be read
 * HEDDLE_EOVERFLOW  it or its path is too long
 */
HEDDLE_PRINTF(4, 5)
HEDDLE_MUST_USE heddle_status heddle_topo_read(char *buf, size_t cap, const char *root,
                                               const char *fmt, ...);

/* A file line by line, whatever its length. Zeroed memory is a closed one. */
struct heddle_topo_lines {
    int fd;
    bool is_open;
    bool is_cut;       /* the rest of the last line is still to be skipped */
    size_t begin, end; /* unread bytes of buf */
    char buf[4096];
};

HEDDLE_MUST_USE heddle_status heddle_topo_lines_open(struct heddle_topo_lines *l, const char *root,
                                                     const char *path);
/* The next line without its newline, valid until the next call; NULL at the
 * end. Lines longer than the buffer are cut. */
char *heddle_topo_lines_next(struct heddle_topo_lines *l);
void heddle_topo_lines_close(struct heddle_topo_lines *l);

/* Lists like "0-3,8,10-11". next() takes one range off the front; false at the
 * end or at anything malformed. */
bool heddle_topo_list_next(const char **s, int *lo_out, int *hi_out);
bool heddle_topo_list_has(const char *s, int v);
int heddle_topo_list_first(const char *s); /* -1: empty */
unsigned heddle_topo_list_count(const char *s);

/* The text after "key:" and blanks when the line has that key, else NULL. */
const char *heddle_topo_value(const char *line, const char *key);

/* "123 kB" as bytes; false when it is not that. */
bool heddle_topo_kib(const char *s, uint64_t *bytes_out);

/* Replaces the \ooo escapes of mountinfo, in place. */
void heddle_topo_unescape(char *s);

#endif /* HEDDLE_TOPO_PARSE_H */
