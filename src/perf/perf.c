/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perf: the public calls of heddle/perf.h.
 *
 * Purpose    checks arguments, takes the lock, walks the tree.
 * Threads    creation, loading and saving are under `lock`; walks are not,
 *            since the tree only grows, so callbacks run without a lock.
 */
#include "perf/perf.h"

#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "perf/model.h"

#define SUBDIR "/models"

const char *heddle_estimate_source_name(enum heddle_estimate_source source)
{
    switch (source) {
    case HEDDLE_EST_PRIOR: return "prior";
    case HEDDLE_EST_SCALED: return "scaled";
    case HEDDLE_EST_FIT: return "fit";
    case HEDDLE_EST_MEASURED: return "measured";
    case HEDDLE_EST_NONE: break;
    }
    return "none";
}

static void perf_free(struct heddle_perf *perf)
{
    struct heddle_allocator a = perf->alloc; /* outlives what it frees */
    struct heddle_model_kernel *k = heddle_load_rlx(&perf->kernels);

    heddle_model_links_free(perf);
    while (k != NULL) {
        struct heddle_model_kernel *next = heddle_load_rlx(&k->next);

        heddle_model_kernel_destroy(k);
        k = next;
    }
    while (perf->devices != NULL) {
        struct heddle_model_device *d = perf->devices;

        perf->devices = d->next;
        heddle_strfree(&a, d->name);
        heddle_free(&a, d, sizeof(*d));
    }
    heddle_strfree(&a, perf->dir);
    heddle_mutex_fini(&perf->lock);
    heddle_free(&a, perf, sizeof(*perf));
}

heddle_status heddle_perf_create(const struct heddle_allocator *alloc, const char *dir,
                                 heddle_perf **perf_out)
{
    const struct heddle_allocator *a = alloc != NULL ? alloc : &heddle_allocator_default;
    struct heddle_perf *perf;
    struct heddle_text t;
    size_t n;

    HEDDLE_CHECK(perf_out != NULL);
    perf = heddle_zalloc(a, 1, sizeof(*perf));
    if (perf == NULL)
        return HEDDLE_ENOMEM;
    perf->alloc = *a;
    heddle_mutex_init(&perf->lock, HEDDLE_RANK_PERF, "perf");
    if (dir != NULL && dir[0] != '\0') {
        n = strlen(dir) + sizeof(SUBDIR);
        perf->dir = heddle_alloc(a, n);
        if (perf->dir == NULL) {
            perf_free(perf);
            return HEDDLE_ENOMEM;
        }
        heddle_text_init(&t, perf->dir, n);
        heddle_text_add(&t, "%s%s", dir, SUBDIR);
    }
    *perf_out = perf;
    return HEDDLE_OK;
}

heddle_status heddle_perf_save(heddle_perf *perf)
{
    heddle_status st;

    HEDDLE_CHECK(perf != NULL);
    heddle_mutex_lock(&perf->lock);
    st = heddle_store_save(perf);
    heddle_mutex_unlock(&perf->lock);
    return st;
}

heddle_status heddle_perf_end(heddle_perf *perf, char *why, size_t why_bytes)
{
    heddle_status st = HEDDLE_OK;

    if (perf != NULL) {
        st = heddle_perf_save(perf);
        (void)heddle_perf_error(perf, why, why_bytes);
        perf_free(perf);
    }
    return st;
}

heddle_status heddle_perf_destroy(heddle_perf *perf)
{
    return heddle_perf_end(perf, NULL, 0);
}

const char *heddle_perf_get_dir(const heddle_perf *perf)
{
    return perf != NULL ? perf->dir : NULL;
}

uint64_t heddle_perf_error(heddle_perf *perf, char *why, size_t why_bytes)
{
    struct heddle_text t;
    uint64_t n = 0;

    if (why != NULL && why_bytes > 0) {
        heddle_text_init(&t, why, why_bytes);
        if (perf != NULL) {
            heddle_mutex_lock(&perf->lock);
            heddle_text_str(&t, perf->message);
            n = perf->nignored;
            heddle_mutex_unlock(&perf->lock);
        }
    }
    return n;
}

/* --- walks --------------------------------------------------------------- */

static heddle_status kernel_walk(struct heddle_model_kernel *k, heddle_perf_info_fn fn, void *user)
{
    struct heddle_perf_series *s = heddle_load_acq(&k->series);

    for (; s != NULL; s = heddle_load_acq(&s->next)) {
        struct heddle_perf_entry *e = heddle_load_acq(&s->first);

        for (; e != NULL; e = heddle_load_acq(&e->next)) {
            struct heddle_perf_info info;

            heddle_perf_entry_info(e, &info);
            if (info.count > 0)
                HEDDLE_TRY(fn(user, &info));
        }
    }
    return HEDDLE_OK;
}

/* What kernel_walk() saw so far. */
struct tally {
    struct heddle_perf_kernel_info info;
    const char *variant; /* of the last series */
    const char *device;
    uint64_t version;
};

static heddle_status tally_add(void *user, const struct heddle_perf_info *info)
{
    struct tally *t = user;

    /* The strings belong to the series: equal pointers, equal series. */
    if (t->variant != info->variant || t->device != info->device || t->version != info->version)
        t->info.nseries++;
    t->variant = info->variant;
    t->device = info->device;
    t->version = info->version;
    t->info.nshapes++;
    t->info.samples += info->count;
    return HEDDLE_OK;
}

heddle_status heddle_perf_list(heddle_perf *perf, heddle_perf_kernel_fn fn, void *user)
{
    struct heddle_model_kernel *k;
    heddle_status st;

    HEDDLE_CHECK(perf != NULL && fn != NULL);
    heddle_mutex_lock(&perf->lock);
    st = heddle_store_load_all(perf);
    heddle_mutex_unlock(&perf->lock);
    HEDDLE_TRY(st);
    for (k = heddle_load_acq(&perf->kernels); k != NULL; k = heddle_load_acq(&k->next)) {
        struct tally t = {.info = {.name = k->name}};

        if (strcmp(k->name, HEDDLE_PERF_LINKS) == 0)
            continue; /* heddle_perf_each_link() */
        HEDDLE_TRY(kernel_walk(k, tally_add, &t));
        if (t.info.nshapes > 0)
            HEDDLE_TRY(fn(user, &t.info));
    }
    return HEDDLE_OK;
}

heddle_status heddle_perf_show(heddle_perf *perf, const char *kernel, heddle_perf_info_fn fn,
                               void *user)
{
    struct tally t = {0};
    struct heddle_model_kernel *k = NULL;
    heddle_status st;

    HEDDLE_CHECK(perf != NULL && fn != NULL);
    if (!heddle_model_name_ok(kernel))
        return HEDDLE_ENOENT;
    heddle_mutex_lock(&perf->lock);
    st = heddle_store_kernel(perf, kernel, &k);
    heddle_mutex_unlock(&perf->lock);
    HEDDLE_TRY(st);
    HEDDLE_TRY(kernel_walk(k, tally_add, &t));
    if (t.info.nshapes == 0)
        return HEDDLE_ENOENT;
    return kernel_walk(k, fn, user);
}

heddle_status heddle_perf_forget(heddle_perf *perf, const char *kernel, size_t *nfiles_out)
{
    size_t nfiles = 0;
    heddle_status st;

    HEDDLE_CHECK(perf != NULL);
    if (kernel != NULL && !heddle_model_name_ok(kernel))
        return HEDDLE_ENOENT;
    heddle_mutex_lock(&perf->lock);
    st = heddle_store_forget(perf, kernel, &nfiles);
    heddle_mutex_unlock(&perf->lock);
    if (nfiles_out != NULL)
        *nfiles_out = nfiles;
    return st;
}

heddle_status heddle_perf_query(heddle_perf *perf, const struct heddle_perf_key *key,
                                uint64_t shape, double flops, double bytes,
                                struct heddle_estimate *est_out)
{
    struct heddle_perf_series *s = NULL;
    struct heddle_model_kernel *k = NULL;
    struct heddle_perf_entry *e;
    heddle_status st;

    HEDDLE_CHECK(perf != NULL && key != NULL && est_out != NULL);
    HEDDLE_CHECK(heddle_model_name_ok(key->kernel));
    HEDDLE_CHECK(strcmp(key->kernel, HEDDLE_PERF_LINKS) != 0);
    HEDDLE_CHECK(heddle_model_name_ok(key->variant));
    HEDDLE_CHECK(heddle_model_name_ok(key->device));
    heddle_mutex_lock(&perf->lock);
    st = heddle_store_kernel(perf, key->kernel, &k);
    if (st == HEDDLE_OK)
        st = heddle_model_series_add(k, key, &s);
    heddle_mutex_unlock(&perf->lock);
    HEDDLE_TRY(st);
    e = heddle_model_entry_find(s, shape);
    if (e != NULL)
        heddle_perf_predict(e, est_out);
    else
        (void)heddle_model_guess(s, flops, bytes, est_out);
    return HEDDLE_OK;
}
