/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace/view/energy: the energy of a run, for the directory.
 *
 * Measured   joules per domain, from the samples of the log.
 * By model   joules per kernel and the idle part, with an energy model.
 */
#include "energy/log.h"
#include "heddle/energy_fit.h"
#include "trace/view/view.h"

static void put_meters(struct heddle_json *j, const struct energy_meter *m, size_t n)
{
    heddle_json_key(j, "domains");
    heddle_json_array(j);
    for (size_t i = 0; i < n; i++) {
        heddle_json_object(j);
        heddle_json_key_str(j, "name", m[i].name);
        heddle_json_key_str(j, "device", m[i].device);
        heddle_json_key_double(j, "joules", m[i].joules);
        heddle_json_key_double(j, "seconds", m[i].seconds);
        heddle_json_key_double(j, "peak_watts", m[i].peak);
        heddle_json_end(j);
    }
    heddle_json_end(j);
}

static void put_model_domains(struct heddle_json *j, const struct heddle_energy_run *r)
{
    heddle_json_key(j, "domains");
    heddle_json_array(j);
    for (size_t i = 0; i < r->ndomains; i++) {
        const struct heddle_energy_run_domain *d = &r->domains[i];

        heddle_json_object(j);
        heddle_json_key_str(j, "name", d->name);
        heddle_json_key_str(j, "device", d->device);
        heddle_json_key_double(j, "joules", d->joules);
        heddle_json_key_double(j, "idle", d->idle_joules);
        heddle_json_key_double(j, "active", d->active_joules);
        heddle_json_key_double(j, "move", d->move_joules);
        heddle_json_key_double(j, "measured", d->measured_joules);
        heddle_json_key_double(j, "predicted", d->predicted_joules);
        heddle_json_end(j);
    }
    heddle_json_end(j);
}

static void put_run(struct heddle_json *j, const struct heddle_energy_run *r, const char *file)
{
    heddle_json_object(j);
    heddle_json_key_str(j, "file", file);
    heddle_json_key_double(j, "seconds", r->seconds);
    heddle_json_key_double(j, "joules", r->joules);
    heddle_json_key_double(j, "idle", r->idle_joules);
    heddle_json_key_double(j, "active", r->active_joules);
    heddle_json_key_double(j, "move", r->move_joules);
    heddle_json_key_uint(j, "unknown_tasks", r->nunknown);
    put_model_domains(j, r);
    heddle_json_key(j, "kernels");
    heddle_json_array(j);
    for (size_t i = 0; i < r->nrows; i++) {
        const struct heddle_energy_run_row *k = &r->rows[i];

        heddle_json_object(j);
        heddle_json_key_str(j, "name", k->kernel);
        heddle_json_key_str(j, "variant", k->variant);
        heddle_json_key_str(j, "device", k->device);
        heddle_json_key_uint(j, "tasks", k->ntasks);
        heddle_json_key_double(j, "seconds", k->seconds);
        heddle_json_key_double(j, "watts", k->watts); /* NaN is null */
        heddle_json_key_double(j, "joules", k->joules);
        heddle_json_end(j);
    }
    heddle_json_end(j);
    heddle_json_end(j);
}

heddle_status view_put_energy(struct heddle_json *j, const heddle_log *log,
                              const struct heddle_explain *x, const struct view_opts *o)
{
    const struct heddle_log_view *v = heddle_log_get_view(log);
    struct energy_meter m[ENERGY_METERS];
    const size_t n = o->is_quick ? 0 : energy_meters(v, x->first_ns, x->last_ns, m);
    struct heddle_energy_run *r = NULL;
    heddle_status st = HEDDLE_OK;

    if (o->energy != NULL && !o->is_quick)
        st = heddle_energy_run_create(o->allocator, o->energy, log, &r);
    heddle_json_key_str(j, "energy_why", n > 0 ? NULL : energy_log_why(v));
    heddle_json_key(j, "energy");
    if (st != HEDDLE_OK || (n == 0 && r == NULL)) {
        heddle_json_null(j);
        return st;
    }
    heddle_json_object(j);
    put_meters(j, m, n);
    heddle_json_key(j, "model");
    if (r != NULL)
        put_run(j, r, o->energy_file);
    else
        heddle_json_null(j);
    heddle_json_end(j);
    heddle_energy_run_destroy(r);
    return HEDDLE_OK;
}
