/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd/info_energy: which energy counters can be read, and why the others cannot. */
#include "cmd/info_energy.h"

#include "base/text.h"
#include "heddle/energy_meter.h"

static bool next_domain(heddle_meter *m, size_t *i, size_t source, struct heddle_meter_domain *d)
{
    *d = (struct heddle_meter_domain){.size = sizeof(*d)};
    while (heddle_meter_get_domain(m, *i, d) == HEDDLE_OK) {
        ++*i;
        if (d->source == source)
            return true;
    }
    return false;
}

static void json_source(struct heddle_json *j, heddle_meter *m, size_t i,
                        const struct heddle_meter_source *s)
{
    struct heddle_meter_domain d;

    heddle_json_object(j);
    heddle_json_key_str(j, "name", s->name);
    heddle_json_key_str(j, "source", s->help);
    heddle_json_key_uint(j, "period_ns", s->period_ns);
    heddle_json_key_bool(j, "readable", s->ndomains > 0);
    heddle_json_key_str(j, "problem", s->why[0] != '\0' ? s->why : NULL);
    heddle_json_key(j, "domains");
    heddle_json_array(j);
    for (size_t k = 0; next_domain(m, &k, i, &d);) {
        heddle_json_object(j);
        heddle_json_key_str(j, "name", d.name);
        heddle_json_key_str(j, "device", d.device);
        heddle_json_end(j);
    }
    heddle_json_end(j);
    heddle_json_end(j);
}

void info_energy_json(struct heddle_json *j)
{
    struct heddle_meter_source s = {.size = sizeof(s)};
    heddle_meter *m = NULL;
    const heddle_status st = heddle_meter_open(NULL, &m);

    heddle_json_key(j, "energy");
    heddle_json_array(j);
    for (size_t i = 0; st == HEDDLE_OK && heddle_meter_get_source(m, i, &s) == HEDDLE_OK; i++)
        json_source(j, m, i, &s);
    heddle_json_end(j);
    heddle_meter_close(m);
}

static void line_source(FILE *out, heddle_meter *m, size_t i, const struct heddle_meter_source *s)
{
    struct heddle_meter_domain d;
    struct heddle_text t;
    char cell[32];

    fprintf(out, "%s%-8s ", i == 0 ? "energy      " : "            ", s->name);
    for (size_t k = 0, n = 0; next_domain(m, &k, i, &d); n++)
        fprintf(out, "%s%s", n == 0 ? "" : ", ", d.name);
    if (s->ndomains > 0) {
        heddle_text_init(&t, cell, sizeof(cell));
        heddle_text_ns(&t, s->period_ns);
        fprintf(out, ", every %s%s", cell, s->why[0] != '\0' ? "; " : "");
    } else {
        fputs("none: ", out);
    }
    fprintf(out, "%s\n", s->why);
}

void info_energy_lines(FILE *out)
{
    struct heddle_meter_source s = {.size = sizeof(s)};
    heddle_meter *m = NULL;
    const heddle_status st = heddle_meter_open(NULL, &m);

    if (st != HEDDLE_OK)
        fprintf(out, "energy      %s\n",
                st == HEDDLE_EINVAL ? "HEDDLE_ENERGY makes no sense" : heddle_status_text(st));
    for (size_t i = 0; st == HEDDLE_OK && heddle_meter_get_source(m, i, &s) == HEDDLE_OK; i++)
        line_source(out, m, i, &s);
    heddle_meter_close(m);
}
