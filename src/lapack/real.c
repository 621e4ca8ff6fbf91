/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * real: the routines behind us.
 *
 * Order      (1) the next library of the program that has the symbol
 *            (2) a BLAS or LAPACK that is loaded where the program's own names
 *                are not global: modules of an interpreter
 *            (3) HEDDLE_BLAS_LIBRARY, then the usual libraries
 * Invariant  an address, once found, stays: libraries are never closed.
 * Threads    any; two may look for the same symbol and find the same.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#include "base/assert.h"
#include "lapack/lapack.h"

static const char *const symbols[LAPACK_NROUTINES][4] = {
#define LAPACK(name, s, d, c, z, cores, devices) {s, d, c, z},
#define LAPACK_USED(name, s, d, c, z)            {s, d, c, z},
#include "lapack/lapack.def"
#undef LAPACK
#undef LAPACK_USED
};

static const char *const libraries[] = {"liblapack.so.3", "libblas.so.3",      "libopenblas.so.0",
                                        "libmkl_rt.so.2", "libflexiblas.so.3", "libopenblas.so"};

static _Atomic(lapack_fn) known[LAPACK_NROUTINES][4];
static _Atomic(void *) threads_of; /* asks how many */

/* The symbol in a library that is loaded, or may be loaded now. */
static void *find_in(const char *library, int flags, const char *symbol)
{
    void *handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL | flags);

    return handle != NULL ? dlsym(handle, symbol) : NULL;
}

static void *find_any(int flags, const char *symbol)
{
    void *p = NULL;

    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]) && p == NULL; i++)
        p = find_in(libraries[i], flags, symbol);
    return p;
}

static void *find(const char *symbol)
{
    const char *library = heddle_env_value("HEDDLE_BLAS_LIBRARY");
    void *p = dlsym(RTLD_NEXT, symbol);

    if (p == NULL)
        p = find_any(RTLD_NOLOAD, symbol);
    if (p == NULL && library != NULL)
        p = find_in(library, 0, symbol);
    return p != NULL ? p : find_any(0, symbol);
}

lapack_fn heddle_lapack_real(enum lapack_routine r, enum lapack_type t)
{
    lapack_fn fn = atomic_load_explicit(&known[r][t], memory_order_relaxed);
    void *p;

    if (fn != NULL)
        return fn;
    p = find(symbols[r][t]);
    if (p == NULL)
        heddle_panic(__FILE__, __LINE__, "libheddle_lapack: no BLAS or LAPACK with %s",
                     symbols[r][t]);
    memcpy(&fn, &p, sizeof(fn)); /* C has no cast from object to function */
    atomic_store_explicit(&known[r][t], fn, memory_order_relaxed);
    return fn;
}

int heddle_lapack_threads(void)
{
    static const char *const names[] = {"openblas_get_num_threads", "MKL_Get_Max_Threads",
                                        "flexiblas_get_num_threads"};
    void *p = atomic_load_explicit(&threads_of, memory_order_relaxed);
    int (*fn)(void);

    for (unsigned i = 0; i < 3 && p == NULL; i++) {
        p = dlsym(RTLD_NEXT, names[i]);
        if (p == NULL)
            p = find_any(RTLD_NOLOAD, names[i]);
    }
    if (p == NULL)
        return 0;
    atomic_store_explicit(&threads_of, p, memory_order_relaxed);
    memcpy(&fn, &p, sizeof(fn));
    return fn();
}
