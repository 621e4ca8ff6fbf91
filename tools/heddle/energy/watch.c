/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * energy watch: watts of each domain, as they are measured.
 *
 * Output     a line per period with the mean power since the line before, then the
 *            energy of all of it; with --json an object per period and one at the
 *            end. A reading that was dropped is a dash, or null.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "base/thread.h"
#include "cmd/cmd.h"
#include "heddle/energy_meter.h"

#define MIN_PERIOD_NS UINT64_C(1000000)
#define MAX_TIME_NS   (UINT64_C(30) * 24 * 3600 * HEDDLE_NS_PER_S)

struct domain {
    struct heddle_meter_domain d;
    uint64_t last_uj, last_ns; /* of the last good reading */
    uint64_t first_uj, first_ns;
    double watts; /* NAN: no reading */
    bool has_last;
};

struct watch {
    struct cli *c;
    heddle_meter *m;
    struct domain *domain;
    size_t n;
    uint64_t start_ns, time_ns, period_ns;
};

/* --- measuring ---------------------------------------------------------------- */

static void domain_read(struct watch *w, size_t i)
{
    struct heddle_meter_sample s = {.size = sizeof(s)};
    struct domain *x = &w->domain[i];
    const heddle_status st = heddle_meter_read(w->m, i, &s);
    const uint64_t now = heddle_clock_ns();

    x->watts = (double)NAN;
    if (st != HEDDLE_OK)
        return;
    if (!x->has_last) {
        x->first_uj = s.microjoules;
        x->first_ns = now;
    } else if (!s.has_gap && now > x->last_ns) {
        /* Microjoules per nanosecond are kilowatts. */
        x->watts = (double)(s.microjoules - x->last_uj) * 1e3 / (double)(now - x->last_ns);
    }
    x->last_uj = s.microjoules;
    x->last_ns = now;
    x->has_last = true;
}

static double joules_of(const struct domain *x)
{
    return (double)(x->last_uj - x->first_uj) / 1e6;
}

/* Mean power of all of it; NAN: less than two readings. */
static double mean_of(const struct domain *x)
{
    return x->last_ns > x->first_ns ? joules_of(x) * 1e9 / (double)(x->last_ns - x->first_ns)
                                    : (double)NAN;
}

/* --- output ------------------------------------------------------------------- */

static int width_of(const struct domain *x)
{
    const size_t n = strlen(x->d.name) + 2;

    return n > 12 ? (int)n : 12;
}

static void put_cell(FILE *out, int width, double v, const char *unit)
{
    struct heddle_text t;
    char cell[48];

    heddle_text_init(&t, cell, sizeof(cell));
    if (isnan(v)) {
        heddle_text_str(&t, "-");
    } else {
        heddle_text_fixed(&t, v, 2);
        heddle_text_add(&t, " %s", unit);
    }
    fprintf(out, "%*s", width, cell);
}

static void put_names(const struct watch *w)
{
    FILE *out = w->c->out;

    fprintf(out, "%9s", "time");
    for (size_t i = 0; i < w->n; i++)
        fprintf(out, "%*s", width_of(&w->domain[i]), w->domain[i].d.name);
    fputc('\n', out);
}

static void put_row(const struct watch *w, double seconds)
{
    FILE *out = w->c->out;

    put_cell(out, 9, seconds, "s");
    for (size_t i = 0; i < w->n; i++)
        put_cell(out, width_of(&w->domain[i]), w->domain[i].watts, "W");
    fputc('\n', out);
    fflush(out);
}

static void put_end(const struct watch *w)
{
    struct heddle_meter_domain d = {.size = sizeof(d)};
    FILE *out = w->c->out;

    fprintf(out, "%9s", "mean");
    for (size_t i = 0; i < w->n; i++)
        put_cell(out, width_of(&w->domain[i]), mean_of(&w->domain[i]), "W");
    fprintf(out, "\n%9s", "energy");
    for (size_t i = 0; i < w->n; i++)
        put_cell(out, width_of(&w->domain[i]), joules_of(&w->domain[i]), "J");
    fputc('\n', out);
    for (size_t i = 0; i < w->n; i++)
        if (heddle_meter_get_domain(w->m, i, &d) == HEDDLE_OK && d.dropped > 0)
            fprintf(out, "%s: %llu of %llu readings were dropped: %s\n", d.name,
                    (unsigned long long)d.dropped, (unsigned long long)(d.dropped + d.read), d.why);
}

static int json_row(const struct watch *w, double seconds)
{
    struct heddle_json j;
    heddle_status st;

    heddle_json_init_file(&j, w->c->out);
    heddle_json_object(&j);
    heddle_json_key_double(&j, "time_s", seconds);
    heddle_json_key(&j, "watts");
    heddle_json_object(&j);
    for (size_t i = 0; i < w->n; i++)
        heddle_json_key_double(&j, w->domain[i].d.name, w->domain[i].watts);
    heddle_json_end(&j);
    heddle_json_end(&j);
    heddle_json_line(&j);
    st = heddle_json_finish(&j);
    return st == HEDDLE_OK ? 0 : cli_output_failed(w->c, st);
}

static int json_end(const struct watch *w, double seconds)
{
    struct heddle_meter_domain d = {.size = sizeof(d)};
    struct heddle_json j;
    heddle_status st;

    heddle_json_init_file(&j, w->c->out);
    heddle_json_object(&j);
    heddle_json_key_double(&j, "time_s", seconds);
    heddle_json_key(&j, "domains");
    heddle_json_array(&j);
    for (size_t i = 0; i < w->n; i++) {
        const struct domain *x = &w->domain[i];

        if (heddle_meter_get_domain(w->m, i, &d) != HEDDLE_OK)
            break;
        heddle_json_object(&j);
        heddle_json_key_str(&j, "name", d.name);
        heddle_json_key_str(&j, "device", d.device);
        heddle_json_key_double(&j, "joules", joules_of(x));
        heddle_json_key_double(&j, "watts", mean_of(x));
        heddle_json_key_uint(&j, "read", d.read);
        heddle_json_key_uint(&j, "dropped", d.dropped);
        heddle_json_key_str(&j, "problem", d.why[0] != '\0' ? d.why : NULL);
        heddle_json_end(&j);
    }
    heddle_json_end(&j);
    heddle_json_end(&j);
    heddle_json_line(&j);
    st = heddle_json_finish(&j);
    return st == HEDDLE_OK ? 0 : cli_output_failed(w->c, st);
}

/* --- the verb ------------------------------------------------------------------ */

/* One sentence with those of the sources. */
static int no_counter(struct watch *w)
{
    struct heddle_meter_source s = {.size = sizeof(s)};
    struct heddle_text t;
    char why[800];

    heddle_text_init(&t, why, sizeof(why));
    for (size_t i = 0; heddle_meter_get_source(w->m, i, &s) == HEDDLE_OK; i++)
        heddle_text_add(&t, "%s%s: %s", i == 0 ? "" : "; ", s.name, s.why);
    return cli_fail(w->c, "there is no energy counter: %s", why);
}

static int watch_open(struct watch *w, const char *sysfs)
{
    const struct heddle_meter_opts o = {.size = sizeof(o), .sysfs = sysfs};
    const heddle_status st = heddle_meter_open(&o, &w->m);
    struct heddle_meter_domain d = {.size = sizeof(d)};

    if (st == HEDDLE_EINVAL)
        return cli_fail(w->c, "HEDDLE_ENERGY makes no sense: it is off, auto "
                              "or a period such as 20ms");
    if (st != HEDDLE_OK)
        return cli_fail(w->c, "%s", heddle_status_text(st));
    while (heddle_meter_get_domain(w->m, w->n, &d) == HEDDLE_OK)
        w->n++;
    if (w->n == 0)
        return no_counter(w);
    w->domain = calloc(w->n, sizeof(*w->domain));
    if (w->domain == NULL)
        return cli_fail(w->c, "no memory for %zu counters", w->n);
    for (size_t i = 0; i < w->n; i++) {
        w->domain[i].d.size = sizeof(d);
        if (heddle_meter_get_domain(w->m, i, &w->domain[i].d) != HEDDLE_OK)
            return cli_fail(w->c, "the counters have changed");
        domain_read(w, i);
    }
    return 0;
}

static int watch_loop(struct watch *w)
{
    const uint64_t end = w->start_ns + w->time_ns;
    uint64_t next = w->start_ns, now = w->start_ns;
    int rc = 0;

    if (!w->c->json)
        put_names(w);
    while (rc == 0 && now < end) {
        next += w->period_ns;
        next = next < end ? next : end;
        if (next > now)
            heddle_thread_sleep_ns(next - now);
        for (size_t i = 0; i < w->n; i++)
            domain_read(w, i);
        now = heddle_clock_ns();
        if (w->c->json)
            rc = json_row(w, (double)(now - w->start_ns) / 1e9);
        else
            put_row(w, (double)(now - w->start_ns) / 1e9);
    }
    if (rc == 0 && w->c->json)
        rc = json_end(w, (double)(now - w->start_ns) / 1e9);
    else if (rc == 0)
        put_end(w);
    return rc;
}

static int watch_run(struct cli *c, int argc, char **argv)
{
    const char *time = "5s", *period = "1s", *sysfs = NULL;
    const struct cli_opt opts[] = {{"--time", CLI_STRING, &time, 0, 0},
                                   {"--period", CLI_STRING, &period, 0, 0},
                                   {"--sys", CLI_STRING, &sysfs, 0, 0},
                                   {0}};
    struct watch w = {.c = c};
    int rc = cli_parse(c, "energy watch", argc, argv, opts, NULL);

    if (rc != 0)
        return rc;
    if (heddle_parse_ns(time, &w.time_ns) != HEDDLE_OK || w.time_ns == 0 || w.time_ns > MAX_TIME_NS)
        return cli_error(c, "--time is a duration such as 5s, not '%s'", time);
    if (heddle_parse_ns(period, &w.period_ns) != HEDDLE_OK || w.period_ns < MIN_PERIOD_NS ||
        w.period_ns > MAX_TIME_NS)
        return cli_error(c, "--period is a duration of 1ms or more, not '%s'", period);
    rc = watch_open(&w, sysfs);
    if (rc == 0) {
        w.start_ns = heddle_clock_ns();
        rc = watch_loop(&w);
    }
    free(w.domain);
    heddle_meter_close(w.m);
    return rc;
}

const struct heddle_cmd heddle_energy_verb_watch = {
    .name = "watch",
    .help = "watts of processors, memory and GPUs, as they are measured",
    .usage = "heddle energy watch [--time T] [--period P] [--sys DIR] [--json]\n"
             "\n"
             "  --time    how long (default 5s)\n"
             "  --period  between two lines (default 1s, at least 1ms)\n"
             "  --sys     where the kernel's files are, instead of in /sys\n"
             "  --json    an object per period, then one for all of it\n"
             "\n"
             "'heddle info' says which counters there are.\n",
    .run = watch_run,
};
