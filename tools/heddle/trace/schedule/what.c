/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace/schedule/what: the machine, changed.
 *
 * Text       KEY=CHANGE with commas between. A change is a number, +N or -N more
 *            of them, or xF: F times as many or as fast.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "heddle/task.h"
#include "trace/schedule/schedule.h"

enum { WORD = 128 };

uint32_t schedule_rows(const struct schedule *s)
{
    return s->graph.kind != NULL ? s->graph.nkinds : s->graph.ntasks;
}

uint32_t schedule_device(const struct schedule *s, uint32_t type)
{
    const struct heddle_log_view *v = heddle_log_get_view(s->log);

    if (s->b.g->types[type].device != 0)
        return s->b.g->types[type].device;
    for (size_t i = 0; i < v->nlanes; i++)
        if (s->b.g->lane_type[i] == type && v->lanes[i].kind == HEDDLE_LOG_DEVICE)
            return HEDDLE_DEV_CUDA; /* an accelerator, whatever it is */
    return HEDDLE_DEV_CPU;
}

struct change {
    char op; /* '=', '+', '-', 'x' */
    double by;
};

/* A number with a decimal point, whatever the locale: digits, '.', digits. */
static bool parse_number(const char *p, double *out)
{
    double v = 0.0, unit = 1.0;
    bool any = false;

    for (; *p >= '0' && *p <= '9'; p++, any = true)
        v = 10.0 * v + (*p - '0');
    if (*p == '.')
        for (p++; *p >= '0' && *p <= '9'; p++, any = true)
            v += (unit /= 10.0) * (*p - '0');
    *out = v;
    return any && *p == '\0' && v < 1e9;
}

static bool parse_change(const char *p, struct change *out)
{
    out->op = '=';
    if (*p == '+' || *p == '-' || *p == 'x')
        out->op = *p++;
    return parse_number(p, &out->by);
}

/* "how many", changed; false: not a whole number from 0 to a million. */
static bool change_count(const struct change *ch, double each, uint32_t *n)
{
    double v = (double)*n;

    switch (ch->op) {
    case '+': v += ch->by * each; break;
    case '-': v -= ch->by * each; break;
    case 'x': v *= ch->by; break;
    default: v = ch->by * each; break;
    }
    if (!(v >= 0.0 && v <= 1e6) || v != floor(v))
        return false;
    *n = (uint32_t)v;
    return true;
}

/* --- what a key means -------------------------------------------------------*/

static uint32_t find_type(const struct schedule *s, const char *name)
{
    for (uint32_t i = 0; i < s->graph.ntypes; i++)
        if (strcmp(s->b.g->types[i].name, name) == 0)
            return i;
    return UINT32_MAX;
}

/* Devices of a type: classes of the machine, or one. */
static uint32_t count_devices(const struct schedule *s, uint32_t type)
{
    struct heddle_machine_class c = {.size = sizeof(c)};
    uint32_t n = 0;

    if (s->b.machine == NULL)
        return 1;
    for (uint32_t i = 0; heddle_machine_get_class(s->b.machine, i, &c) == HEDDLE_OK; i++)
        n += c.type == type;
    return n > 0 ? n : 1;
}

static int change_workers(struct schedule *s, uint32_t type, double each, const char *key,
                          const struct change *ch)
{
    if (type == UINT32_MAX)
        return cli_error(s->c, "--what-if: there is no type for '%s'", key);
    if (!change_count(ch, each, &s->nworkers[type]))
        return cli_error(s->c,
                         "--what-if: '%s' must give a whole number of workers "
                         "from 0 to a million",
                         key);
    return 0;
}

/* Workers that one device of the type has. */
static uint32_t workers_each(const struct schedule *s, uint32_t type)
{
    const uint32_t n = s->b.g->types[type].nworkers / count_devices(s, type);

    return n > 0 ? n : 1;
}

/* x changes each type of GPU. Else there are so many in all: more of the first
 * type, or fewer of the last ones. */
static int change_gpus(struct schedule *s, const struct change *ch)
{
    uint32_t first = UINT32_MAX, total = 0, wanted;
    int rc = 0;

    for (uint32_t i = s->graph.ntypes; i-- > 0;)
        if (schedule_device(s, i) != HEDDLE_DEV_CPU) {
            first = i;
            total += s->nworkers[i] / workers_each(s, i);
        }
    wanted = total;
    if (first == UINT32_MAX)
        return cli_error(s->c, "--what-if: the machine has no GPU");
    if (ch->op != 'x' && !change_count(ch, 1.0, &wanted))
        return cli_error(s->c,
                         "--what-if: 'gpus' must give a whole number of GPUs, "
                         "of which there are %u",
                         total);
    for (uint32_t i = s->graph.ntypes; i-- > 0 && rc == 0;) {
        const uint32_t each = workers_each(s, i);
        uint32_t n = s->nworkers[i] / each;

        if (schedule_device(s, i) == HEDDLE_DEV_CPU)
            continue;
        if (ch->op == 'x') {
            rc = change_workers(s, i, 1.0, "gpus", ch);
        } else if (wanted < total && n > 0) {
            n = n < total - wanted ? n : total - wanted;
            s->nworkers[i] -= n * each;
            total -= n;
        } else if (wanted > total && i == first) {
            rc =
                change_workers(s, i, each, "gpus", &(struct change){'+', (double)(wanted - total)});
        }
    }
    return rc;
}

static int change_speed(struct schedule *s, const char *key, const char *name,
                        const struct change *ch)
{
    const uint32_t type = find_type(s, name);

    if (type == UINT32_MAX)
        return cli_error(s->c, "--what-if: there is no type for '%s'", key);
    if (ch->op != 'x' || ch->by <= 0.0)
        return cli_error(s->c, "--what-if: '%s' must be x and a number", key);
    for (uint32_t i = 0; i < schedule_rows(s); i++)
        s->time[(size_t)i * s->graph.ntypes + type] /= ch->by;
    return 0;
}

static int change_kernel(struct schedule *s, const char *key, const char *name,
                         const struct change *ch)
{
    const struct heddle_log_graph *g = s->b.g;
    bool any = false;

    if (ch->op != 'x' || ch->by <= 0.0)
        return cli_error(s->c, "--what-if: '%s' must be x and a number", key);
    for (uint32_t i = 0; i < schedule_rows(s); i++) {
        const uint32_t kind = s->graph.kind != NULL ? i : g->kind[i];

        if (strcmp(g->kinds[kind].name, name) != 0)
            continue;
        any = true;
        for (uint32_t r = 0; r < s->graph.ntypes; r++)
            s->time[(size_t)i * s->graph.ntypes + r] /= ch->by;
    }
    return any ? 0 : cli_error(s->c, "--what-if: there is no kernel for '%s'", key);
}

static int change_links(struct schedule *s, const struct change *ch)
{
    const size_t n = (size_t)s->graph.ntypes * s->graph.ntypes;

    if (s->edge_bytes == NULL)
        return cli_error(s->c, "--what-if: links need --transfers");
    if (ch->op != 'x' || ch->by <= 0.0)
        return cli_error(s->c, "--what-if: 'links' must be x and a number");
    for (size_t i = 0; i < n; i++) {
        s->latency[i] /= ch->by;
        s->byte_time[i] /= ch->by;
    }
    return 0;
}

static int apply(struct schedule *s, const char *key, const struct change *ch)
{
    if (strcmp(key, "links") == 0)
        return change_links(s, ch);
    if (strcmp(key, "gpus") == 0)
        return change_gpus(s, ch);
    if (strcmp(key, "cpus") == 0)
        return change_workers(s, find_type(s, "cpu"), 1.0, key, ch);
    if (strncmp(key, "workers.", 8) == 0)
        return change_workers(s, find_type(s, key + 8), 1.0, key, ch);
    if (strncmp(key, "speed.", 6) == 0)
        return change_speed(s, key, key + 6, ch);
    if (strncmp(key, "kernel.", 7) == 0)
        return change_kernel(s, key, key + 7, ch);
    return cli_error(s->c,
                     "--what-if: '%s' is none of gpus, cpus, workers.TYPE, "
                     "speed.TYPE, kernel.NAME and links",
                     key);
}

/* --- the whole --------------------------------------------------------------*/

static int copy_graph(struct schedule *s)
{
    const struct heddle_bound_graph *g = &s->b.g->graph;
    size_t n;

    s->graph = *g;
    n = (size_t)schedule_rows(s) * g->ntypes;
    s->nworkers = malloc((g->ntypes + 1) * sizeof(*s->nworkers));
    s->time = malloc((n + 1) * sizeof(*s->time));
    if (s->nworkers == NULL || s->time == NULL)
        return cli_fail(s->c, "%s", heddle_status_text(HEDDLE_ENOMEM));
    if (g->ntypes > 0)
        memcpy(s->nworkers, g->nworkers, g->ntypes * sizeof(*s->nworkers));
    if (n > 0)
        memcpy(s->time, g->time, n * sizeof(*s->time));
    s->graph.nworkers = s->nworkers;
    s->graph.time = s->time;
    return 0;
}

int schedule_what_if(struct schedule *s, const char *text)
{
    int rc = copy_graph(s);

    while (rc == 0 && text != NULL && *text != '\0') {
        const size_t len = strcspn(text, ",");
        char word[WORD] = "", *value;
        struct change ch;

        if (len < sizeof(word))
            memcpy(word, text, len);
        value = strchr(word, '=');
        if (value == NULL || !parse_change(value + 1, &ch))
            return cli_error(s->c,
                             "--what-if has '%.*s', but it is made of words as "
                             "in gpus=+1",
                             (int)len, text);
        *value = '\0';
        rc = apply(s, word, &ch);
        text += len + (text[len] == ',');
    }
    return rc;
}
