/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * histories: StarPU's measured kernels, DIR/codelets/45/KERNEL.NAME.
 *
 * A file is a sequence of numbers between comments: version, combinations; for
 * each its device types (type, number, cores), implementations; for each of these
 * its entries, nine sums, a b c, a flag, and the entries: hash, bytes, flops,
 * mean, deviation, sum, sum of squares, samples; times in microseconds.
 *
 * Taken       the first implementation on one core or on one of the accelerators
 *             there are; means that are numbers. Entries of equal bytes, also of
 *             different accelerators, become their mean.
 * Left out    combinations of several devices or cores, other device types,
 *             kernels with a multiple regression (they have no entries).
 */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/text.h"
#include "plat/build.h"
#include "plat/scan.h"

#define VERSION     45.0
#define MAX_COMBS   4096u
#define MAX_DEVICES 64u
#define MAX_IMPLS   64u
#define MAX_ENTRIES 1000000u
#define SUMS        9u

struct histories {
    struct heddle_plat *p;
    struct heddle_plat_text *t;
    const char *kernel;
    struct heddle_plat_owners owners;
};

static heddle_status bad(const struct histories *h, const char *what)
{
    return HEDDLE_PLAT_TEXT_BAD(h->t, "%s is missing or wrong", what);
}

static heddle_status count(const struct histories *h, unsigned max, const char *what, unsigned *out)
{
    return heddle_plat_scan_count(h->t, max, out) ? HEDDLE_OK : bad(h, what);
}

/* Whose entries follow; -1: those of a device that is not here. */
static heddle_status read_device(const struct histories *h, int *type_out)
{
    unsigned ndevices, kind, number, cores;

    *type_out = -1;
    HEDDLE_TRY(count(h, MAX_DEVICES, "the number of device types", &ndevices));
    for (unsigned i = 0; i < ndevices; i++) {
        HEDDLE_TRY(count(h, 1000, "a device type", &kind));
        HEDDLE_TRY(count(h, 100000, "a device number", &number));
        HEDDLE_TRY(count(h, 100000, "a number of cores", &cores));
        if (ndevices != 1 || cores != 1)
            continue;
        if (kind == 0)
            *type_out = h->owners.cpu;
        else if (kind == 1 && number < h->owners.ncuda)
            *type_out = h->owners.cuda;
    }
    return HEDDLE_OK;
}

static heddle_status read_entry(const struct histories *h, int type)
{
    struct heddle_plat_text *t = h->t;
    double v[7];
    size_t n;

    if (heddle_plat_scan_word(t, false, &n) == NULL)
        return bad(h, "the hash of an entry");
    for (unsigned i = 0; i < 7; i++)
        if (!heddle_plat_scan_number(t, i > 0, &v[i]))
            return bad(h, "a number of an entry");
    /* 0 bytes, 2 mean */
    if (type < 0 || !(v[0] >= 0 && v[0] < 1e18) || !(v[2] > 0 && v[2] < 1e15))
        return HEDDLE_OK;
    return heddle_plat_table_add(h->p->table, h->kernel, HEDDLE_PLAT_WHO_TYPE(type), v[0],
                                 v[2] * 1e3, true);
}

/* The numbers of the next line that has some, at most SUMS. */
static bool read_row(const struct histories *h, double *v, unsigned *n_out)
{
    unsigned n = 0;

    if (!heddle_plat_scan_skip(h->t, false))
        return false;
    while (heddle_plat_scan_skip(h->t, true)) {
        if (n == SUMS || !heddle_plat_scan_number(h->t, true, &v[n]))
            return false;
        n++;
    }
    *n_out = n;
    return true;
}

/* The sums; then a b c and the flag, which some files have the other way round. */
static heddle_status read_regression(const struct histories *h, bool *is_on_out)
{
    double v[SUMS];
    unsigned n, seen = 0;

    if (!read_row(h, v, &n) || n != SUMS)
        return bad(h, "a sum of the regression");
    for (unsigned i = 0; i < 2; i++) {
        if (!read_row(h, v, &n) || (n != 1 && n != 3))
            return bad(h, "a number of the regression");
        seen += n;
        if (n == 1)
            *is_on_out = v[0] < 0 || v[0] > 0;
    }
    return seen == 4 ? HEDDLE_OK : bad(h, "the flag of the regression");
}

/* *stops_out: what follows is of a form that has no entries. */
static heddle_status read_impl(const struct histories *h, int type, bool *stops_out)
{
    unsigned nentries;

    HEDDLE_TRY(count(h, MAX_ENTRIES, "the number of entries", &nentries));
    HEDDLE_TRY(read_regression(h, stops_out));
    for (unsigned i = 0; i < nentries && !*stops_out; i++)
        HEDDLE_TRY(read_entry(h, type));
    return HEDDLE_OK;
}

static heddle_status read_combs(const struct histories *h)
{
    unsigned ncombs, nimpls;
    bool stops = false;
    double version;
    int type;

    if (!heddle_plat_scan_number(h->t, false, &version) || version < VERSION || version > VERSION)
        return bad(h, "the version 45");
    HEDDLE_TRY(count(h, MAX_COMBS, "the number of combinations", &ncombs));
    for (unsigned i = 0; i < ncombs && !stops; i++) {
        HEDDLE_TRY(read_device(h, &type));
        HEDDLE_TRY(count(h, MAX_IMPLS, "the number of implementations", &nimpls));
        for (unsigned k = 0; k < nimpls && !stops; k++)
            HEDDLE_TRY(read_impl(h, k == 0 ? type : -1, &stops));
    }
    return HEDDLE_OK;
}

/* `file` is KERNEL.NAME; cuts it. */
static heddle_status read_history(struct histories *h, const char *folder, char *file,
                                  size_t nkernel)
{
    char path[HEDDLE_PLAT_PATH];
    struct heddle_text x;
    heddle_status st;

    heddle_text_init(&x, path, sizeof(path));
    heddle_text_add(&x, "%s/%s", folder, file);
    if (x.is_truncated)
        return heddle_why(h->t->why, h->t->cap, HEDDLE_EFORMAT, "%s: the path is too long", folder);
    h->t->path = path;
    HEDDLE_TRY(heddle_plat_text_open(h->t));
    h->t->line = 1;
    file[nkernel] = '\0';
    h->kernel = file;
    st = read_combs(h);
    heddle_plat_text_close(h->t);
    return st;
}

static heddle_status read_folder(struct histories *h, DIR *d, const char *folder, const char *name)
{
    const size_t nname = strlen(name);
    const struct dirent *e;
    char file[256];

    while ((e = readdir(d)) != NULL) {
        const size_t n = strlen(e->d_name);

        if (n < nname + 2 || n >= sizeof(file) || e->d_name[n - nname - 1] != '.' ||
            strcmp(e->d_name + n - nname, name) != 0)
            continue;
        memcpy(file, e->d_name, n + 1);
        HEDDLE_TRY(read_history(h, folder, file, n - nname - 1));
    }
    return HEDDLE_OK;
}

heddle_status heddle_plat_read_histories(struct heddle_plat *p, const char *dir, const char *name,
                                         struct heddle_plat_owners owners, char *why, size_t cap)
{
    struct histories h = {.p = p, .owners = owners};
    char folder[HEDDLE_PLAT_PATH];
    struct heddle_text x;
    heddle_status st;
    DIR *d;

    heddle_text_init(&x, folder, sizeof(folder));
    heddle_text_add(&x, "%s/codelets/45", dir);
    if (x.is_truncated)
        return heddle_why(why, cap, HEDDLE_EFORMAT, "%s: the path is too long", dir);
    d = opendir(folder);
    if (d == NULL)
        return heddle_why(why, cap, errno == ENOMEM ? HEDDLE_ENOMEM : HEDDLE_ENOENT,
                          "%s: there is no such folder", folder);
    st = HEDDLE_ENOMEM;
    h.t = heddle_zalloc(&p->alloc, 1, sizeof(*h.t));
    if (h.t != NULL) {
        h.t->a = &p->alloc;
        h.t->why = why;
        h.t->cap = cap;
        st = read_folder(&h, d, folder, name);
        heddle_free(&p->alloc, h.t, sizeof(*h.t));
    }
    (void)closedir(d);
    return st;
}
