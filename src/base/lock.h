/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BASE_LOCK_H
#define HEDDLE_BASE_LOCK_H

/*
 * Mutex with a rank. A thread may take a lock only when its rank is strictly
 * greater than every rank it holds. Builds with HEDDLE_DEBUG >= 2 check that on
 * each lock() and stop with both names. This enum IS the lock order.
 */
#include <pthread.h>
#include <stdbool.h>

enum heddle_rank {
    HEDDLE_RANK_CTX = 10,     /* start, stop and configuration of a context */
    HEDDLE_RANK_SUBMIT = 20,  /* order of submissions */
    HEDDLE_RANK_DATA = 30,    /* handles and their access chains */
    HEDDLE_RANK_MEM = 35,     /* where copies of data are */
    HEDDLE_RANK_SCHED = 40,   /* everything inside a scheduling policy */
    HEDDLE_RANK_PERF = 50,    /* performance models */
    HEDDLE_RANK_METER = 55,   /* energy counters */
    HEDDLE_RANK_TRACE = 60,   /* event log: a lane */
    HEDDLE_RANK_LOGFILE = 65, /* event log: its file */
    HEDDLE_RANK_LEAF = 90,    /* nothing is taken under these */
};

struct heddle_mutex {
    pthread_mutex_t m;
    enum heddle_rank rank;
    const char *name; /* static storage */
};

void heddle_mutex_init(struct heddle_mutex *l, enum heddle_rank rank, const char *name);
/* No thread holds the mutex. */
void heddle_mutex_fini(struct heddle_mutex *l);
void heddle_mutex_lock(struct heddle_mutex *l);
/* false: someone else holds it. Cannot wait, so any rank is allowed. */
bool heddle_mutex_trylock(struct heddle_mutex *l);
void heddle_mutex_unlock(struct heddle_mutex *l);

/* For assertions. Always true below HEDDLE_DEBUG 2: it is not known there. */
bool heddle_mutex_is_held(const struct heddle_mutex *l);

#endif /* HEDDLE_BASE_LOCK_H */
