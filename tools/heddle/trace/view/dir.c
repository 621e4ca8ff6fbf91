/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace/view/dir: the directory of a pack: names, sums, and where the columns are.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/mode.h"
#include "base/text.h"
#include "trace/cmd.h"
#include "trace/view/view.h"

static void put_head(struct heddle_json *j, const struct view_pack *p, const heddle_log *log,
                     const struct heddle_explain *x, const struct view_opts *o)
{
    const struct heddle_log_view *v = heddle_log_get_view(log);
    uint64_t nlost;
    int64_t lost_ns;

    heddle_json_key_uint(j, "version", 1);
    heddle_json_key_str(j, "title", o->title != NULL ? o->title : o->file);
    heddle_json_key_str(j, "file", o->file);
    heddle_json_key_uint(j, "packs", o->npacks);
    heddle_json_key_uint(j, "unit_ns", p->unit_ns);
    heddle_json_key_int(j, "makespan_ns", x->makespan_ns);
    heddle_json_key_int(j, "first_ns", x->first_ns);
    heddle_json_key_uint(j, "wall_ns", v->wall_ns);
    heddle_json_key_uint(j, "nworkers", x->nworkers);
    heddle_json_key_uint(j, "generation", o->generation);
    heddle_json_key_bool(j, "live", o->is_live);
    heddle_json_key_bool(j, "explained", !o->is_quick);
    heddle_json_key_str(j, "partial", heddle_log_get_partial(log));
    trace_lost(v, &lost_ns, &nlost);
    heddle_json_key_int(j, "system_ns", lost_ns);
    heddle_json_key_uint(j, "system_tasks", nlost);
    heddle_json_key_uint(j, "lost", v->lost);
    heddle_json_key_uint(j, "overwritten", v->overwritten);
    heddle_json_key_uint(j, "handles", v->nhandles);
    heddle_json_key_uint(j, "tasks", p->ntasks);
    heddle_json_key_uint(j, "runs", p->nruns);
    heddle_json_key_uint(j, "edges", p->nedges);
    heddle_json_key(j, "infos");
    heddle_json_array(j);
    for (size_t i = 0; i < v->ninfos; i++) {
        heddle_json_array(j);
        heddle_json_str(j, v->infos[i].key);
        heddle_json_str(j, v->infos[i].value);
        heddle_json_end(j);
    }
    heddle_json_end(j);
}

static void put_causes(struct heddle_json *j, const char *key, const int64_t *ns)
{
    heddle_json_key(j, key);
    heddle_json_object(j);
    for (unsigned k = 0; k < HEDDLE_NCAUSES; k++)
        heddle_json_key_int(j, heddle_explain_cause_name(k), ns[k]);
    heddle_json_end(j);
}

static void put_sums(struct heddle_json *j, const struct heddle_explain *x)
{
    put_causes(j, "total", x->total_ns);
    heddle_json_key(j, "causes");
    heddle_json_array(j);
    for (unsigned k = 0; k < HEDDLE_NCAUSES; k++) {
        heddle_json_object(j);
        heddle_json_key_str(j, "name", heddle_explain_cause_name(k));
        heddle_json_key_str(j, "text", heddle_explain_cause_text(k));
        heddle_json_end(j);
    }
    heddle_json_end(j);
    heddle_json_key(j, "blame");
    heddle_json_object(j);
    for (unsigned k = 0; k < HEDDLE_NBLAMES; k++)
        heddle_json_key_int(j, heddle_explain_blame_name(k), x->blame_ns[k]);
    heddle_json_end(j);
    heddle_json_key(j, "blames");
    heddle_json_array(j);
    for (unsigned k = 0; k < HEDDLE_NBLAMES; k++)
        heddle_json_str(j, heddle_explain_blame_name(k));
    heddle_json_end(j);
    heddle_json_key_int(j, "path_ns", x->path_ns);
}

/* Index of the memory node of a lane, as in "nodes"; -1: not known. */
static int64_t lane_node(const struct heddle_log_view *v, uint32_t id)
{
    for (size_t i = 0; i < v->nnodes; i++)
        if (v->nodes[i].id == id)
            return (int64_t)i;
    return -1;
}

static void put_lanes(struct heddle_json *j, const struct view_pack *p,
                      const struct heddle_log_view *v, const struct heddle_explain *x)
{
    heddle_json_key(j, "lanes");
    heddle_json_array(j);
    for (size_t i = 0; i < v->nlanes; i++) {
        const struct view_lane *l = &p->lane[i];

        heddle_json_object(j);
        heddle_json_key_str(j, "name", v->lanes[i].name);
        heddle_json_key_str(j, "kind", trace_lane_kind(v->lanes[i].kind));
        heddle_json_key_int(j, "node", lane_node(v, v->lanes[i].node));
        heddle_json_key_int(j, "cpu", v->lanes[i].cpu);
        heddle_json_key_uint(j, "first", l->first);
        heddle_json_key_uint(j, "n", l->n);
        heddle_json_key_uint(j, "gap_first", l->gap_first);
        heddle_json_key_uint(j, "gap_n", l->gap_n);
        heddle_json_key_bool(j, "is_worker", x->lanes[i].is_worker != 0);
        put_causes(j, "idle", x->lanes[i].ns);
        heddle_json_end(j);
    }
    heddle_json_end(j);
}

static void put_kernels(struct heddle_json *j, const struct heddle_log_view *v,
                        const struct heddle_log_summary *s)
{
    heddle_json_key(j, "kernels");
    heddle_json_array(j);
    for (size_t i = 0; i < v->nkernels && i < UINT16_MAX; i++) {
        const struct heddle_log_kernel_sum *k = &s->kernels[i];

        heddle_json_object(j);
        heddle_json_key_str(j, "name", v->kernels[i].name);
        heddle_json_key_uint(j, "n", k->ntasks);
        heddle_json_key_int(j, "total_ns", k->total_ns);
        heddle_json_key_int(j, "median_ns", k->median_ns);
        heddle_json_key_int(j, "min_ns", k->min_ns);
        heddle_json_key_int(j, "max_ns", k->max_ns);
        heddle_json_key_double(j, "model_error", k->npredicted > 0 ? k->model_error : NAN);
        heddle_json_end(j);
    }
    heddle_json_end(j);
}

static void put_nodes(struct heddle_json *j, const struct heddle_log_view *v)
{
    heddle_json_key(j, "nodes");
    heddle_json_array(j);
    for (size_t i = 0; i < v->nnodes; i++) {
        heddle_json_object(j);
        heddle_json_key_str(j, "name", v->nodes[i].name);
        heddle_json_key_uint(j, "bytes", v->nodes[i].bytes);
        heddle_json_end(j);
    }
    heddle_json_end(j);
}

/* The page knows modes by their numbers in `op_mode`. */
static void put_modes(struct heddle_json *j)
{
    char number[16];

    heddle_json_key(j, "modes");
    heddle_json_object(j);
    for (unsigned m = 0; m <= UINT8_MAX; m++) {
        if (!heddle_mode_is_known(m))
            continue;
        snprintf(number, sizeof(number), "%u", m);
        heddle_json_key_str(j, number, heddle_mode_word(m));
    }
    heddle_json_end(j);
}

static void put_curves(struct heddle_json *j, const struct view_pack *p)
{
    static const char *const kind[HEDDLE_NCURVES] = {"running", "ready", "submitted",
                                                     "memory",  "power", "link"};
    static const char *const unit[HEDDLE_NCURVES] = {"tasks", "tasks", "tasks", "B", "W", "B/s"};

    heddle_json_key(j, "curves");
    heddle_json_array(j);
    for (size_t i = 0; i < p->ncurves; i++) {
        const struct view_curve *c = &p->curve[i];

        heddle_json_object(j);
        heddle_json_key_str(j, "name", c->name);
        heddle_json_key_str(j, "kind", kind[c->kind]);
        heddle_json_key_str(j, "unit", unit[c->kind]);
        heddle_json_key_double(j, "max", c->max);
        heddle_json_key_double(j, "limit", c->limit); /* NaN is null */
        heddle_json_key_str(j, "array_t", p->array[c->array_t].name);
        heddle_json_key_str(j, "array_v", p->array[c->array_v].name);
        heddle_json_end(j);
    }
    heddle_json_end(j);
}

static void put_arrays(struct heddle_json *j, const struct view_pack *p)
{
    static const char *const coding[] = {"raw", "planes", "dplanes"};

    heddle_json_key(j, "arrays");
    heddle_json_object(j);
    for (size_t i = 0; i < p->narrays; i++) {
        const struct view_array *x = &p->array[i];

        heddle_json_key(j, x->name);
        heddle_json_object(j);
        heddle_json_key_str(j, "type", view_type_name(x->type));
        heddle_json_key_uint(j, "n", x->n);
        heddle_json_key_str(j, "coding", coding[view_array_coding(p, x)]);
        heddle_json_end(j);
    }
    heddle_json_end(j);
}

/* The text without '<', which may only be inside of strings: nothing in it can
 * end the element of the page that holds it. */
static heddle_status keep_text(struct view_pack *p, const struct heddle_json *j)
{
    size_t n = 1, k = 0;

    for (size_t i = 0; i < j->len; i++)
        n += j->buf[i] == '<' ? 6 : 1;
    p->dir = heddle_alloc(p->a, n);
    if (p->dir == NULL)
        return HEDDLE_ENOMEM;
    p->dir_cap = n;
    p->dir_len = n - 1;
    for (size_t i = 0; i < j->len; i++) {
        if (j->buf[i] == '<') {
            memcpy(p->dir + k, "\\u003c", 6);
            k += 6;
        } else {
            p->dir[k++] = j->buf[i];
        }
    }
    p->dir[k] = '\0';
    return HEDDLE_OK;
}

heddle_status view_dir_create(struct view_pack *p, const heddle_log *log,
                              const struct heddle_explain *x, const struct view_opts *o)
{
    const struct heddle_log_view *v = heddle_log_get_view(log);
    struct heddle_log_summary *s = NULL;
    struct heddle_json j;
    heddle_status st = heddle_log_summary_create(log, &s);

    if (st != HEDDLE_OK)
        return st;
    heddle_json_init(&j, p->a);
    heddle_json_object(&j);
    put_head(&j, p, log, x, o);
    put_sums(&j, x);
    put_lanes(&j, p, v, x);
    put_kernels(&j, v, s);
    put_nodes(&j, v);
    put_modes(&j);
    if (o->bounds != NULL)
        o->bounds(&j, o->bounds_user);
    else
        heddle_json_key_str(&j, "bounds", NULL);
    st = view_put_energy(&j, log, x, o);
    put_curves(&j, p);
    put_arrays(&j, p);
    heddle_json_end(&j);
    if (st == HEDDLE_OK)
        st = heddle_json_finish(&j);
    if (st == HEDDLE_OK)
        st = keep_text(p, &j);
    heddle_json_fini(&j);
    heddle_log_summary_destroy(log, s);
    return st;
}
