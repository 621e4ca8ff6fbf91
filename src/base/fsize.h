/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BASE_FSIZE_H
#define HEDDLE_BASE_FSIZE_H

/*
 * A write beyond the limit on file sizes (`ulimit -f`) sends SIGXFSZ, which ends the
 * program unless the program handles that signal. Between enter() and leave() the
 * calling thread does not get the signal: the write fails with EFBIG instead, and the
 * caller reports that as any other failed write.
 */
#include <signal.h>
#include <stdbool.h>

struct heddle_fsize {
    sigset_t before; /* the thread's mask */
    bool is_waiting; /* a SIGXFSZ from elsewhere was pending already */
};

void heddle_fsize_enter(struct heddle_fsize *f);
/* Keeps errno. */
void heddle_fsize_leave(const struct heddle_fsize *f);

#endif /* HEDDLE_BASE_FSIZE_H */
