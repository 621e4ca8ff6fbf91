/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * place_read: files of jobs, docs/formats/jobs.md.
 *
 * Bounds     a file has at most 1 GiB. Arrays grow with the lines that are there.
 * Names      are told apart by a hash; those with the same hash are compared.
 */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/file.h"
#include "base/map.h"
#include "base/number.h"
#include "base/rng.h"
#include "base/sized.h"
#include "base/text.h"
#include "base/why.h"
#include "heddle/energy_place.h"

enum { NAME_MAX_BYTES = 255 };

/* What a file was read into; `text` has the names. */
struct own {
    const struct heddle_allocator *alloc;
    char *text;
    size_t len;
    struct heddle_energy_job *job;
    size_t n, room;
};

struct reader {
    struct own *own;
    struct heddle_map names; /* hash to job + 1 */
    const char *path;
    char *next, *rest; /* the next line, the rest of this one */
    size_t line;
    uint64_t total;
    size_t ndue;
    char *why;
    size_t cap;
};

#define bad(r, ...) heddle_why_line((r)->why, (r)->cap, (r)->path, (r)->line, __VA_ARGS__)

/* The next word of the line; NULL: none. */
static char *word(struct reader *r)
{
    char *s = r->rest + strspn(r->rest, " \t\r"), *end;

    if (*s == '\0' || *s == '#') {
        r->rest = s + strlen(s);
        return NULL;
    }
    end = s + strcspn(s, " \t\r");
    r->rest = end + (*end != '\0');
    *end = '\0';
    return s;
}

/* To the next line with a word, which is *out; NULL at the end. */
static heddle_status next_line(struct reader *r, char **out)
{
    char *const end = r->own->text + r->own->len;

    *out = NULL;
    while (*out == NULL && r->next < end) {
        char *s = r->next, *stop = memchr(s, '\n', (size_t)(end - s));

        if (stop == NULL)
            stop = end;
        r->line++;
        r->next = stop + 1;
        for (const char *c = s; c < stop; c++)
            if (((unsigned char)*c < 32 && *c != '\t' && *c != '\r') || *c == 127)
                return bad(r, "this is not text: it has a byte of value %u",
                           (unsigned)(unsigned char)*c);
        *stop = '\0';
        r->rest = s;
        *out = word(r);
    }
    return HEDDLE_OK;
}

/* Seconds as microseconds, rounded up or down. */
static heddle_status read_time(const struct reader *r, const char *w, const char *what, bool is_up,
                               uint64_t *out)
{
    double x = 0, us, whole;

    if (w == NULL)
        return bad(r, "%s is missing", what);
    if (!heddle_number_finite(w, &x))
        return bad(r, "%s is not a finite number: '%.40s'", what, w);
    if (x < 0)
        return bad(r, "%s is negative: '%.40s'", what, w);
    us = x * 1e6;
    if (us > (double)HEDDLE_ENERGY_JOB_MAX)
        return bad(r, "%s is above 10^10 seconds: '%.40s'", what, w);
    whole = nearbyint(us);
    /* 1.1 s are 1100000 us, whatever the digits of 1.1 x 10^6 in binary are. */
    if (fabs(us - whole) > 0x1p-50 * us)
        whole = is_up ? ceil(us) : floor(us);
    *out = (uint64_t)whole;
    return HEDDLE_OK;
}

static uint64_t hash_of(const char *s)
{
    uint64_t h = 0;

    for (; *s != '\0'; s++)
        h = heddle_mix64(h ^ (unsigned char)*s) + UINT64_C(0x9e3779b97f4a7c15);
    return h;
}

/* Enters the name of job n - 1; equal hashes of other names move on. */
static heddle_status enter(struct reader *r)
{
    const struct own *o = r->own;
    const char *name = o->job[o->n - 1].name;

    for (uint64_t h = hash_of(name);; h = heddle_mix64(h + 1)) {
        uint64_t *at = NULL;

        HEDDLE_TRY(heddle_map_slot(&r->names, h, &at));
        if (*at == 0) {
            *at = o->n;
            return HEDDLE_OK;
        }
        if (strcmp(o->job[*at - 1].name, name) == 0)
            return bad(r, "there is a job '%.40s' already", name);
    }
}

static heddle_status grow(struct own *o)
{
    const size_t room = o->room == 0 ? 64 : 2 * o->room;
    struct heddle_energy_job *more;

    if (o->n < o->room)
        return HEDDLE_OK;
    more = heddle_zalloc(o->alloc, room, sizeof(*more));
    if (more == NULL)
        return HEDDLE_ENOMEM;
    if (o->n > 0)
        memcpy(more, o->job, o->n * sizeof(*more));
    heddle_free(o->alloc, o->job, o->room * sizeof(*more));
    o->job = more;
    o->room = room;
    return HEDDLE_OK;
}

/* job NAME SECONDS [due SECONDS] */
static heddle_status read_job(struct reader *r)
{
    struct heddle_energy_job j = {.due_us = HEDDLE_ENERGY_NO_DUE};
    const char *w;

    j.name = word(r);
    if (j.name == NULL)
        return bad(r, "the name of the job is missing");
    if (strlen(j.name) > NAME_MAX_BYTES)
        return bad(r, "the name of the job has more than %d bytes", NAME_MAX_BYTES);
    HEDDLE_TRY(read_time(r, word(r), "the duration", true, &j.us));
    if (j.us == 0)
        return bad(r, "the job takes no time");
    w = word(r);
    if (w != NULL) {
        if (strcmp(w, "due") != 0)
            return bad(r, "'%.40s' is not 'due'", w);
        HEDDLE_TRY(read_time(r, word(r), "the due date", false, &j.due_us));
        r->ndue++;
        w = word(r);
    }
    if (w != NULL)
        return bad(r, "'%.40s' is one word too many", w);
    r->total += j.us;
    if (r->total > HEDDLE_ENERGY_JOBS_MAX)
        return bad(r, "the jobs together take more than 4.6 x 10^12 seconds");
    HEDDLE_TRY(grow(r->own));
    r->own->job[r->own->n++] = j;
    return enter(r);
}

static heddle_status read_lines(struct reader *r)
{
    const char *version;
    char *w;

    HEDDLE_TRY(next_line(r, &w));
    if (w == NULL || strcmp(w, "heddle-jobs") != 0)
        return bad(r, "here should be 'heddle-jobs 1'");
    version = word(r);
    if (version == NULL || strcmp(version, "1") != 0 || word(r) != NULL)
        return bad(r, "here should be 'heddle-jobs 1': no other version is "
                      "known");
    for (;;) {
        HEDDLE_TRY(next_line(r, &w));
        if (w == NULL)
            return HEDDLE_OK;
        if (strcmp(w, "job") != 0)
            return bad(r, "'%.40s' is not 'job'", w);
        if (r->own->n >= UINT32_MAX - 1)
            return bad(r, "there are too many jobs");
        HEDDLE_TRY(read_job(r));
    }
}

static void destroy(struct own *o)
{
    if (o->text != NULL)
        heddle_free(o->alloc, o->text, o->len + 1);
    heddle_free(o->alloc, o->job, o->room * sizeof(*o->job));
    heddle_free(o->alloc, o, sizeof(*o));
}

static void say(char *why, size_t cap, const char *path, const char *what)
{
    struct heddle_text t;

    if (why == NULL || cap == 0)
        return;
    heddle_text_init(&t, why, cap);
    heddle_text_add(&t, "%s: %s", path, what);
}

heddle_status heddle_energy_jobs_read(const struct heddle_allocator *alloc, const char *path,
                                      struct heddle_energy_jobs *out, char *why, size_t why_bytes)
{
    struct reader r = {.path = path, .line = 0, .why = why, .cap = why_bytes};
    const char *what = "no memory for it";
    struct heddle_energy_jobs j;
    heddle_status st;

    if (path == NULL)
        return HEDDLE_EINVAL;
    HEDDLE_TRY(HEDDLE_SIZED_ROOM_OWN(struct heddle_energy_jobs, out, why, why_bytes));
    r.own = heddle_zalloc(alloc, 1, sizeof(*r.own));
    if (r.own == NULL) {
        say(why, why_bytes, path, what);
        return HEDDLE_ENOMEM;
    }
    r.own->alloc = alloc;
    heddle_map_init(&r.names, alloc);
    st = heddle_file_read(path, (size_t)1 << 30, alloc, &r.own->text, &r.own->len, &what);
    if (st != HEDDLE_OK) {
        say(why, why_bytes, path, what);
    } else {
        r.next = r.own->text;
        st = read_lines(&r);
        if (st == HEDDLE_ENOMEM)
            say(why, why_bytes, path, "no memory for it");
    }
    heddle_map_fini(&r.names);
    if (st != HEDDLE_OK) {
        destroy(r.own);
        return st;
    }
    j = (struct heddle_energy_jobs){
        .size = sizeof(j), .njobs = r.own->n, .ndue = r.ndue, .jobs = r.own->job, .own = r.own};
    heddle_sized_put(out, &j, sizeof(j));
    return HEDDLE_OK;
}

void heddle_energy_jobs_fini(struct heddle_energy_jobs *j)
{
    if (j == NULL)
        return;
    if (j->own != NULL)
        destroy(j->own);
    heddle_sized_clear(j);
}
