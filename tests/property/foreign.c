/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * foreign: a thread with a list of errands.
 *
 * Threads    `lock` guards everything but `rng`, which is the thread's.
 */
#include "foreign.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "prog.h"
#include "tests/test.h"

struct errand {
    void (*fn)(void *user);
    void *user;
    struct errand *next;
};

struct foreign {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    struct errand *list;
    bool is_over;
    uint64_t rng;
};

static void foreign_sleep(struct foreign *f)
{
    const struct timespec ts = {.tv_nsec = (long)(prog_mix(f->rng++) % 200000)};

    if (f->rng % 2 == 0)
        nanosleep(&ts, NULL);
}

static void *foreign_main(void *arg)
{
    struct foreign *f = arg;

    for (;;) {
        struct errand *e;

        pthread_mutex_lock(&f->lock);
        while (f->list == NULL && !f->is_over)
            pthread_cond_wait(&f->cond, &f->lock);
        e = f->list;
        if (e != NULL)
            f->list = e->next;
        pthread_mutex_unlock(&f->lock);
        if (e == NULL)
            return NULL;
        foreign_sleep(f);
        e->fn(e->user);
        free(e);
    }
}

struct foreign *foreign_start(uint64_t seed)
{
    struct foreign *f = calloc(1, sizeof(*f));

    CHECK(f != NULL);
    f->rng = seed;
    CHECK_EQ(pthread_mutex_init(&f->lock, NULL), 0);
    CHECK_EQ(pthread_cond_init(&f->cond, NULL), 0);
    CHECK_EQ(pthread_create(&f->thread, NULL, foreign_main, f), 0);
    return f;
}

void foreign_ask(struct foreign *f, void (*fn)(void *user), void *user)
{
    struct errand *e = malloc(sizeof(*e));

    CHECK(e != NULL);
    pthread_mutex_lock(&f->lock);
    *e = (struct errand){fn, user, f->list}; /* the latest first */
    f->list = e;
    pthread_cond_signal(&f->cond);
    pthread_mutex_unlock(&f->lock);
}

void foreign_stop(struct foreign *f)
{
    pthread_mutex_lock(&f->lock);
    f->is_over = true;
    pthread_cond_signal(&f->cond);
    pthread_mutex_unlock(&f->lock);
    CHECK_EQ(pthread_join(f->thread, NULL), 0);
    pthread_cond_destroy(&f->cond);
    pthread_mutex_destroy(&f->lock);
    free(f);
}
