/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blas: finds BLAS and LAPACK at run time.
 *
 * Structure  one table for the process, counted by its users. How a BLAS is told
 *            to use one thread differs from one to the other, so these functions
 *            are looked up by name; a BLAS that has none of them has no threads,
 *            or reads OMP_NUM_THREADS.
 * fork()     a child has none of the callers that asked for one thread: it gets the
 *            threads of the BLAS back.
 * Invariant  the table does not change while a caller uses it.
 * Threads    `lock` guards opening and closing; calls need no lock.
 */
#include "blas/blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static struct {
    pthread_mutex_t lock;
    unsigned nusers;
    bool is_loaded;
    bool has_handler; /* of fork() */
    int threads;      /* before we asked for one */
    struct heddle_blas blas;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local unsigned inside;

bool heddle_blas_is_inside(void)
{
    return inside != 0;
}

void heddle_blas_enter(void)
{
    inside++;
}

void heddle_blas_leave(void)
{
    inside--;
}

/* --- finding it ------------------------------------------------------------ */

/* Each entry: BLAS, and LAPACK if that is another library. */
static const char *const names[][2] = {
    {"libopenblas.so.0", NULL},         {"libopenblas.so", NULL},
    {"libmkl_rt.so.2", NULL},           {"libflexiblas.so.3", NULL},
    {"libblas.so.3", "liblapack.so.3"}, {"libblas.so", "liblapack.so"}};

static void *find(const struct heddle_blas *b, const char *name)
{
    void *p = dlsym(b->library[0], name);

    return p == NULL && b->library[1] != NULL ? dlsym(b->library[1], name) : p;
}

/* C has no cast from an object's address to a function's. */
static void find_any(const struct heddle_blas *b, const char *const *name, void *fn_out)
{
    void *p = NULL;

    for (; *name != NULL && p == NULL; name++)
        p = find(b, *name);
    memcpy(fn_out, &p, sizeof(p));
}

/* The first routine that is missing, or NULL. */
static const char *fill(struct heddle_blas *b)
{
    static const char *const set[] = {"openblas_set_num_threads", "MKL_Set_Num_Threads",
                                      "flexiblas_set_num_threads", "bli_thread_set_num_threads",
                                      NULL};
    static const char *const get[] = {"openblas_get_num_threads", "MKL_Get_Max_Threads",
                                      "flexiblas_get_num_threads", "bli_thread_get_num_threads",
                                      NULL};
    const char *missing = NULL;

#define BLAS_ROUTINE(name, s, d, c, z)                                                             \
    do {                                                                                           \
        const char *const row[4] = {s, d, c, z};                                                   \
                                                                                                   \
        for (unsigned i = 0; i < 4; i++) {                                                         \
            const char *const one[2] = {row[i], NULL};                                             \
                                                                                                   \
            find_any(b, one, &b->name[i]);                                                         \
            if (b->name[i] == NULL && missing == NULL)                                             \
                missing = row[i];                                                                  \
        }                                                                                          \
    } while (0);
#include "blas/blas.def"
#undef BLAS_ROUTINE
    find_any(b, set, &b->set_threads);
    find_any(b, get, &b->get_threads);
    return missing;
}

static void unload(struct heddle_blas *b)
{
    for (unsigned i = 0; i < 2; i++)
        if (b->library[i] != NULL)
            (void)dlclose(b->library[i]);
    memset(b, 0, sizeof(*b));
}

static bool load(struct heddle_blas *b, const char *blas, const char *lapack, char *why,
                 size_t why_bytes)
{
    const char *missing = NULL;

    memset(b, 0, sizeof(*b));
    b->library[0] = dlopen(blas, RTLD_NOW | RTLD_LOCAL);
    if (b->library[0] != NULL && lapack != NULL)
        b->library[1] = dlopen(lapack, RTLD_NOW | RTLD_LOCAL);
    if (b->library[0] == NULL || (lapack != NULL && b->library[1] == NULL)) {
        snprintf(why, why_bytes, "%s", dlerror());
        unload(b);
        return false;
    }
    missing = fill(b);
    if (missing != NULL) {
        snprintf(why, why_bytes, "%s has no %s", blas, missing);
        unload(b);
        return false;
    }
    return true;
}

static bool load_any(struct heddle_blas *b, const char *library, char *why, size_t why_bytes)
{
    if (library != NULL && library[0] != '\0')
        return load(b, library, NULL, why, why_bytes);
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (load(b, names[i][0], names[i][1], why, why_bytes))
            return true;
    snprintf(why, why_bytes,
             "no BLAS with LAPACK on this machine (libopenblas.so.0, "
             "libmkl_rt.so.2, libflexiblas.so.3, libblas.so.3 and "
             "liblapack.so.3 were looked for); on Debian: libopenblas0");
    return false;
}

/* --- fork ------------------------------------------------------------------- */

static void before_fork(void)
{
    pthread_mutex_lock(&state.lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&state.lock);
}

static void in_child(void)
{
    if (state.nusers != 0 && state.blas.set_threads != NULL)
        state.blas.set_threads(state.threads);
    state.nusers = 0;
    pthread_mutex_unlock(&state.lock);
}

/* --- users ------------------------------------------------------------------- */

/* Once loaded it stays: a BLAS with threads does not like to go. */
const struct heddle_blas *heddle_blas_open(const char *library, char *why, size_t why_bytes)
{
    const struct heddle_blas *b = NULL;
    char own[1];

    if (why == NULL) {
        why = own;
        why_bytes = sizeof(own);
    }
    pthread_mutex_lock(&state.lock);
    if (!state.is_loaded)
        state.is_loaded = load_any(&state.blas, library, why, why_bytes);
    if (state.is_loaded) {
        b = &state.blas;
        if (!state.has_handler)
            state.has_handler = pthread_atfork(before_fork, after_fork, in_child) == 0;
        if (state.nusers++ == 0 && b->set_threads != NULL) {
            state.threads = b->get_threads != NULL ? b->get_threads() : 1;
            b->set_threads(1);
        }
    }
    pthread_mutex_unlock(&state.lock);
    return b;
}

void heddle_blas_close(void)
{
    pthread_mutex_lock(&state.lock);
    /* No user: in a child that ends what its parent began. */
    if (state.nusers != 0 && --state.nusers == 0 && state.blas.set_threads != NULL)
        state.blas.set_threads(state.threads);
    pthread_mutex_unlock(&state.lock);
}

const struct heddle_blas *heddle_blas_get(void)
{
    return state.is_loaded ? &state.blas : NULL;
}

/* --- constants -------------------------------------------------------------- */

static const float ones[2] = {1, 0}, zeros[2], minus_ones[2] = {-1, 0};
static const double ones_d[2] = {1, 0}, zeros_d[2], minus_ones_d[2] = {-1, 0};

const void *heddle_blas_one(enum blas_type t)
{
    return blas_real_bytes(t) == 4 ? (const void *)ones : (const void *)ones_d;
}

const void *heddle_blas_zero(enum blas_type t)
{
    return blas_real_bytes(t) == 4 ? (const void *)zeros : (const void *)zeros_d;
}

const void *heddle_blas_minus_one(enum blas_type t)
{
    return blas_real_bytes(t) == 4 ? (const void *)minus_ones : (const void *)minus_ones_d;
}

bool heddle_blas_is_zero(enum blas_type t, const void *p)
{
    const unsigned n = blas_is_complex(t) ? 2 : 1;
    const float *f = p;
    const double *d = p;
    bool is_zero = true;

    for (unsigned i = 0; i < n; i++)
        is_zero = is_zero && (blas_real_bytes(t) == 4 ? f[i] == 0 : d[i] == 0);
    return is_zero;
}
