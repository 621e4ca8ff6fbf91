/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fsize: writes that fail instead of ending the program, see fsize.h.
 *
 * The kernel sends SIGXFSZ to the thread that writes. While the signal is blocked it
 * stays pending; leave() takes it away before the old mask comes back. A signal that
 * was pending before enter() is not ours and stays.
 */
#include "base/fsize.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <time.h>

static void fsize_set(sigset_t *s)
{
    sigemptyset(s);
    sigaddset(s, SIGXFSZ);
}

void heddle_fsize_enter(struct heddle_fsize *f)
{
    sigset_t only, pending;

    fsize_set(&only);
    f->is_waiting = sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
    (void)pthread_sigmask(SIG_BLOCK, &only, &f->before);
}

void heddle_fsize_leave(const struct heddle_fsize *f)
{
    const struct timespec now = {0, 0};
    const int err = errno;
    sigset_t only;

    fsize_set(&only);
    while (!f->is_waiting && sigtimedwait(&only, NULL, &now) < 0 && errno == EINTR)
        continue;
    (void)pthread_sigmask(SIG_SETMASK, &f->before, NULL);
    errno = err;
}
