/* SPDX-License-Identifier: BSD-3-Clause */
/* placement: reads docs/formats/placement.md. */
#include "sched/placement.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"

enum { PLACEMENT_LINE = 511, PLACEMENT_BYTES = 1 << 30 };

void heddle_placement_fini(struct heddle_placement *p)
{
    heddle_free(p->alloc, p->entry, p->cap * sizeof(*p->entry));
    heddle_map_fini(&p->by_id);
    p->entry = NULL;
    p->n = p->cap = 0;
}

static heddle_status placement_add(struct heddle_placement *p,
                                   const struct heddle_placement_entry *e)
{
    if (p->n == p->cap) {
        const size_t cap = p->cap == 0 ? 1024 : 2 * p->cap;
        struct heddle_placement_entry *more = heddle_zalloc(p->alloc, cap, sizeof(*more));

        if (more == NULL)
            return HEDDLE_ENOMEM;
        if (p->n != 0)
            memcpy(more, p->entry, p->n * sizeof(*more));
        heddle_free(p->alloc, p->entry, p->cap * sizeof(*more));
        p->entry = more;
        p->cap = cap;
    }
    p->entry[p->n++] = *e;
    return HEDDLE_OK;
}

/* A class by name, or a worker by number; false: not on this machine. */
static bool placement_target(const struct heddle_sched_env *env, const char *word, uint32_t *out)
{
    uint64_t w;

    for (unsigned c = 0; c < env->ncls; c++)
        if (strcmp(env->cls[c].name, word) == 0) {
            *out = c;
            return true;
        }
    if (heddle_parse_u64(word, &w) != HEDDLE_OK || w >= env->nworkers)
        return false;
    *out = env->ncls + (uint32_t)w;
    return true;
}

/* Splits at blanks; more than three words are counted and not kept. */
static unsigned placement_words(char *line, char *word[3])
{
    unsigned n = 0;
    char *save = NULL;

    for (char *w = strtok_r(line, " \t\r\n", &save); w != NULL && w[0] != '#';
         w = strtok_r(NULL, " \t\r\n", &save)) {
        if (n < 3)
            word[n] = w;
        n++;
    }
    return n;
}

static heddle_status placement_line(struct heddle_placement *p, const struct heddle_sched_env *env,
                                    char *line, uint64_t number)
{
    struct heddle_placement_entry e = {.order = number};
    char *word[3];
    const unsigned n = placement_words(line, word);

    if (n == 0)
        return HEDDLE_OK;
    if (n < 2 || n > 3 || heddle_parse_u64(word[0], &e.id) != HEDDLE_OK ||
        (n == 3 && heddle_parse_u64(word[2], &e.order) != HEDDLE_OK))
        return HEDDLE_EFORMAT;
    e.place = (uint32_t)p->n;
    if (!placement_target(env, word[1], &e.target))
        return HEDDLE_OK;
    return placement_add(p, &e);
}

/* A sentence of the failure, for who asked for the scheduler. */
static heddle_status placement_fail(const struct heddle_sched_env *env, heddle_status st,
                                    const char *path, uint64_t line, const char *what)
{
    if (env->why == NULL || env->why_bytes == 0)
        return st;
    if (line == 0)
        snprintf(env->why, env->why_bytes, "the placement '%.160s': %s", path, what);
    else
        snprintf(env->why, env->why_bytes, "the placement '%.160s', line %" PRIu64 ": %s", path,
                 line, what);
    return st;
}

/* `text` ends with a zero at text[len] and is taken apart. */
static heddle_status placement_lines(struct heddle_placement *p, const struct heddle_sched_env *env,
                                     const char *path, char *text, size_t len)
{
    const char *end = text + len;
    uint64_t number = 1;

    for (char *line = text, *next; line < end; line = next, number++) {
        char *stop = memchr(line, '\n', (size_t)(end - line));
        heddle_status st;

        next = stop != NULL ? stop + 1 : text + len;
        if (stop == NULL)
            stop = text + len;
        *stop = '\0';
        if (stop - line >= PLACEMENT_LINE)
            return placement_fail(env, HEDDLE_EFORMAT, path, number, "the line is too long");
        if (memchr(line, '\0', (size_t)(stop - line)) != NULL)
            return placement_fail(env, HEDDLE_EFORMAT, path, number, "a zero byte");
        if (p->n >= UINT32_MAX - 1)
            return placement_fail(env, HEDDLE_EFORMAT, path, number, "too many tasks");
        st = placement_line(p, env, line, number);
        if (st != HEDDLE_OK)
            return placement_fail(env, st, path, number,
                                  st == HEDDLE_EFORMAT
                                      ? "expected TASK WHERE [ORDER], with numbers for the first "
                                        "and the last"
                                      : heddle_status_text(st));
    }
    return HEDDLE_OK;
}

static int placement_compare(const void *a, const void *b)
{
    const struct heddle_placement_entry *x = a, *y = b;

    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* Of several lines for a task the first in the order counts. */
static heddle_status placement_index(struct heddle_placement *p)
{
    qsort(p->entry, p->n, sizeof(*p->entry), placement_compare);
    for (size_t i = 0; i < p->n; i++) {
        uint64_t *slot;
        heddle_status st = heddle_map_slot(&p->by_id, p->entry[i].id, &slot);

        if (st != HEDDLE_OK)
            return st;
        p->entry[i].place = (uint32_t)i;
        if (*slot == 0)
            *slot = i + 1;
    }
    return HEDDLE_OK;
}

heddle_status heddle_placement_read(struct heddle_placement *p, const struct heddle_sched_env *env,
                                    const char *path)
{
    const char *what = NULL;
    char *text = NULL;
    size_t len = 0;
    heddle_status st;

    p->alloc = env->alloc;
    heddle_map_init(&p->by_id, env->alloc);
    st = heddle_file_read(path, PLACEMENT_BYTES, env->alloc, &text, &len, &what);
    if (st != HEDDLE_OK)
        return placement_fail(env, st, path, 0, what);
    st = placement_lines(p, env, path, text, len);
    heddle_free(env->alloc, text, len + 1);
    if (st == HEDDLE_OK && p->n != 0)
        st = placement_index(p);
    return st;
}

uint32_t heddle_placement_find(const struct heddle_placement *p, uint64_t id)
{
    uint64_t i;

    if (p->n == 0 || !heddle_map_get(&p->by_id, id, &i))
        return UINT32_MAX;
    return (uint32_t)(i - 1);
}
