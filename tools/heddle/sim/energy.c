/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim/energy: the joules of a run in virtual time, from its log.
 *
 * How        the last sample of each domain is its energy; idle energy is idle power
 *            times the time of that sample, and what is left is active.
 */
#include "sim/energy.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "heddle/trace.h"

enum { MAX_DOMAINS = 256 };

struct use {
    const char *name; /* "NAME DEVICE" */
    double joules, idle;
};

struct uses {
    struct use d[MAX_DOMAINS];
    unsigned n;
    double seconds, joules, idle;
};

/* Domains of the log are the rows of the model; one more may follow. */
static double idle_watts(const heddle_energy *e, unsigned i)
{
    struct heddle_energy_domain row = {.size = sizeof(row)};

    return heddle_energy_get_domain(e, i, &row) == HEDDLE_OK ? row.idle_watts : 0;
}

static void read_uses(const heddle_log *log, const heddle_energy *e, struct uses *u)
{
    static const char key[] = "energy.domain.";
    const struct heddle_log_view *v = heddle_log_get_view(log);

    for (size_t i = 0; i < v->ninfos; i++) {
        unsigned long d;

        if (strncmp(v->infos[i].key, key, sizeof(key) - 1) != 0)
            continue;
        d = strtoul(v->infos[i].key + sizeof(key) - 1, NULL, 10);
        if (d >= MAX_DOMAINS)
            continue;
        u->d[d].name = v->infos[i].value;
        u->n = d >= u->n ? (unsigned)d + 1 : u->n;
    }
    for (size_t i = 0; i < v->nevents; i++) {
        const struct heddle_log_event *p = &v->events[i];

        if (p->kind != HEDDLE_LOG_POWER || p->b >= u->n)
            continue;
        u->d[p->b].joules = (double)p->x * 1e-6;
        u->seconds = (double)p->t_ns * 1e-9; /* they are sorted */
    }
    for (unsigned d = 0; d < u->n; d++) {
        if (u->d[d].name == NULL)
            u->d[d].name = "?";
        u->d[d].idle = idle_watts(e, d) * u->seconds;
        if (u->d[d].idle > u->d[d].joules)
            u->d[d].idle = u->d[d].joules; /* samples are whole microjoules */
        u->joules += u->d[d].joules;
        u->idle += u->d[d].idle;
    }
}

static int print_json(struct cli *c, const struct uses *u)
{
    struct heddle_json j;

    heddle_json_init_file(&j, c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "sim energy");
    heddle_json_key_double(&j, "seconds", u->seconds);
    heddle_json_key_double(&j, "joules", u->joules);
    heddle_json_key_double(&j, "active_joules", u->joules - u->idle);
    heddle_json_key_double(&j, "idle_joules", u->idle);
    heddle_json_key_double(&j, "edp", u->joules * u->seconds);
    heddle_json_key(&j, "domains");
    heddle_json_array(&j);
    for (unsigned d = 0; d < u->n; d++) {
        heddle_json_object(&j);
        heddle_json_key_str(&j, "domain", u->d[d].name);
        heddle_json_key_double(&j, "joules", u->d[d].joules);
        heddle_json_key_double(&j, "active_joules", u->d[d].joules - u->d[d].idle);
        heddle_json_key_double(&j, "idle_joules", u->d[d].idle);
        heddle_json_end(&j);
    }
    heddle_json_end(&j);
    heddle_json_end(&j);
    heddle_json_line(&j);
    return heddle_json_finish(&j) == HEDDLE_OK ? 0 : cli_output_failed(c, HEDDLE_EIO);
}

static int print_text(struct cli *c, const struct uses *u)
{
    fprintf(c->out,
            "energy: %.6g J in %.6g s, active %.6g J, idle %.6g J, "
            "EDP %.6g Js\n",
            u->joules, u->seconds, u->joules - u->idle, u->idle, u->joules * u->seconds);
    for (unsigned d = 0; d < u->n; d++)
        fprintf(c->out, "  %-24s %12.6g J, active %12.6g J, idle %12.6g J\n", u->d[d].name,
                u->d[d].joules, u->d[d].joules - u->d[d].idle, u->d[d].idle);
    return 0;
}

int sim_energy_print(struct cli *c, const char *log, const heddle_energy *e)
{
    char why[320] = "";
    const struct heddle_log_opts o = {.size = sizeof(o), .why = why, .why_bytes = sizeof(why)};
    struct uses *u = calloc(1, sizeof(*u));
    heddle_log *l = NULL;
    heddle_status st = HEDDLE_ENOMEM;
    int rc;

    if (u != NULL)
        st = heddle_log_open(log, &o, &l);
    if (st == HEDDLE_OK)
        read_uses(l, e, u);
    if (st != HEDDLE_OK)
        rc = cli_fail(c, "there is no energy to tell of: %s",
                      why[0] != '\0' ? why : heddle_status_text(st));
    else if (u->n == 0)
        rc = cli_fail(c, "the program ran no context in virtual time that takes "
                         "its options from the environment");
    else
        rc = c->json ? print_json(c, u) : print_text(c, u);
    heddle_log_close(l);
    free(u);
    return rc;
}
