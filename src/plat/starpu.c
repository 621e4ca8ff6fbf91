/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * starpu: a machine from StarPU's measurements, DIR/bus/NAME.* and
 * DIR/codelets/45/KERNEL.NAME (histories.c).
 *
 *   .config        numbers of cores and CUDA devices. OpenCL devices are left out:
 *                  they are the same accelerators once more.
 *   .bandwidth     matrix of MB/s, row from, column to; node 0 is the main memory,
 *   .latency       then the CUDA devices; microseconds. nan or 0: no link.
 *   .platform.xml  optional: memory sizes; the shared link "Host", which becomes
 *                  a bus of all links whose route names it.
 *
 * Classes     "cpu": the cores less one per CUDA device, which drives it. "cudaI":
 *             one worker and a memory of its own. All accelerators are one model:
 *             the times are means over them.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/text.h"
#include "plat/build.h"
#include "plat/scan.h"

#define NODES HEDDLE_PLAT_MAX_NODES

struct import {
    struct heddle_plat *p;
    struct heddle_plat_text t;
    char path[HEDDLE_PLAT_PATH];
    const char *dir, *name;
    unsigned ncpus, ncuda;
    double mbytes[NODES * NODES], us[NODES * NODES];
};

static heddle_status file_open(struct import *im, const char *ending)
{
    struct heddle_text x;

    heddle_text_init(&x, im->path, sizeof(im->path));
    heddle_text_add(&x, "%s/bus/%s.%s", im->dir, im->name, ending);
    if (x.is_truncated)
        return heddle_why(im->t.why, im->t.cap, HEDDLE_EFORMAT, "%s: the path is too long",
                          im->dir);
    im->t.path = im->path;
    HEDDLE_TRY(heddle_plat_text_open(&im->t));
    im->t.line = 1;
    return HEDDLE_OK;
}

static heddle_status read_config(struct import *im)
{
    heddle_status st = HEDDLE_OK;

    HEDDLE_TRY(file_open(im, "config"));
    if (!heddle_plat_scan_count(&im->t, HEDDLE_PLAT_MAX_WORKERS, &im->ncpus))
        st = HEDDLE_PLAT_TEXT_BAD(&im->t, "the number of CPUs is wrong");
    else if (!heddle_plat_scan_count(&im->t, NODES - 1, &im->ncuda))
        st = HEDDLE_PLAT_TEXT_BAD(&im->t, "the number of CUDA devices is wrong");
    else if (im->ncpus <= im->ncuda && im->ncuda == 0)
        st = HEDDLE_PLAT_TEXT_BAD(&im->t, "the machine has no worker");
    heddle_plat_text_close(&im->t);
    return st;
}

static heddle_status matrix_rows(struct import *im, double *m)
{
    const unsigned n = im->ncuda + 1;

    for (unsigned i = 0; i < n; i++) {
        if (!heddle_plat_scan_skip(&im->t, false))
            return HEDDLE_PLAT_TEXT_BAD(&im->t, "row %u is missing", i);
        for (unsigned j = 0; j < n; j++)
            if (!heddle_plat_scan_number(&im->t, true, &m[i * NODES + j]))
                return HEDDLE_PLAT_TEXT_BAD(&im->t, "column %u of row %u is missing or no number",
                                            j, i);
        heddle_plat_scan_line(&im->t);
    }
    return HEDDLE_OK;
}

static heddle_status read_matrix(struct import *im, const char *ending, double *m)
{
    heddle_status st;

    HEDDLE_TRY(file_open(im, ending));
    st = matrix_rows(im, m);
    heddle_plat_text_close(&im->t);
    return st;
}

/* ---- parts --------------------------------------------------------------- */

static heddle_status add_cores(struct import *im)
{
    struct heddle_plat_class c = {.name = "cpu", .kind = HEDDLE_DEV_CPU};
    struct heddle_text x;

    if (im->ncpus <= im->ncuda)
        return HEDDLE_OK;
    c.nworkers = im->ncpus - im->ncuda;
    heddle_text_init(&x, c.model, sizeof(c.model));
    heddle_text_add(&x, "%s-cpu", im->name);
    return heddle_plat_add_class(im->p, &c);
}

static heddle_status add_accelerator(struct import *im, unsigned i)
{
    struct heddle_plat_class c = {.kind = HEDDLE_DEV_CUDA, .nworkers = 1};
    struct heddle_plat_node n = {.kind = HEDDLE_NODE_DEVICE};
    struct heddle_text x;

    heddle_text_init(&x, c.name, sizeof(c.name));
    heddle_text_add(&x, "cuda%u", i);
    heddle_text_init(&x, c.model, sizeof(c.model));
    heddle_text_add(&x, "%s-cuda", im->name);
    memcpy(n.name, c.name, sizeof(n.name));
    c.node = im->p->nnodes;
    HEDDLE_TRY(heddle_plat_add_node(im->p, &n));
    return heddle_plat_add_class(im->p, &c);
}

static heddle_status add_link(struct import *im, unsigned from, unsigned to)
{
    const double mbytes = im->mbytes[from * NODES + to];
    const double us = im->us[from * NODES + to];
    struct heddle_plat_link l = {.from = from, .to = to, .bus = -1};
    struct heddle_text x;

    if (from == to || !(mbytes > 0 && mbytes < 1e12))
        return HEDDLE_OK;
    l.bytes_per_ns = mbytes * 1e-3;
    l.latency_ns = us > 0 && us < 1e12 ? us * 1e3 : 0;
    heddle_text_init(&x, l.name, sizeof(l.name));
    heddle_text_add(&x, "%s-%s", im->p->node[from].name, im->p->node[to].name);
    return heddle_plat_add_link(im->p, &l);
}

static heddle_status add_parts(struct import *im)
{
    const unsigned n = im->ncuda + 1;

    HEDDLE_TRY(add_cores(im));
    for (unsigned i = 0; i < im->ncuda; i++)
        HEDDLE_TRY(add_accelerator(im, i));
    for (unsigned i = 0; i < n * n; i++)
        HEDDLE_TRY(add_link(im, i / n, i % n));
    return HEDDLE_OK;
}

/* ---- platform.xml -------------------------------------------------------- */

/* What stands in name="..." between s and end; false: nothing. */
static bool attribute(const char *s, const char *end, const char *name, char *out, size_t cap)
{
    const size_t n = strlen(name);

    for (; s + n + 2 < end; s++) {
        const char *v = s + n + 2, *stop;

        if (*s != ' ' || strncmp(s + 1, name, n) != 0 || s[n + 1] != '=')
            continue;
        if (*v != '"' && *v != '\'')
            return false;
        stop = memchr(v + 1, *v, (size_t)(end - v - 1));
        if (stop == NULL || (size_t)(stop - v) > cap)
            return false;
        memcpy(out, v + 1, (size_t)(stop - v - 1));
        out[stop - v - 1] = '\0';
        return true;
    }
    return false;
}

/* Memory node of a host of the file: RAM, CUDA0, ...; -1: none of ours. */
static int xml_node(const struct import *im, const char *id)
{
    uint64_t i;

    if (strcmp(id, "RAM") == 0)
        return 0;
    if (strncmp(id, "CUDA", 4) != 0 || heddle_parse_u64(id + 4, &i) != HEDDLE_OK || i >= im->ncuda)
        return -1;
    return (int)i + 1;
}

/* Where we are in the file. */
struct xml {
    int host;     /* node whose <host> we are in, or -1 */
    int from, to; /* <route>, or -1 */
};

static bool tag_is(const char *s, const char *end, const char *name)
{
    const size_t n = strlen(name);

    return (size_t)(end - s) > n && strncmp(s, name, n) == 0 &&
           (s[n] == ' ' || s[n] == '>' || s[n] == '/');
}

static void xml_prop(struct import *im, const struct xml *x, const char *s, const char *end)
{
    char id[32], value[32];

    if (x->host > 0 && attribute(s, end, "id", id, sizeof(id)) && strcmp(id, "memsize") == 0 &&
        attribute(s, end, "value", value, sizeof(value)))
        if (heddle_parse_u64(value, &im->p->node[x->host].bytes) != HEDDLE_OK)
            im->p->node[x->host].bytes = 0;
}

static heddle_status xml_link(struct import *im, const char *s, const char *end)
{
    struct heddle_plat_bus bus = {.name = "Host"};
    const char *rest;
    char id[64], value[64];
    double v;

    if (!attribute(s, end, "id", id, sizeof(id)) || strcmp(id, "Host") != 0 || im->p->nbuses > 0 ||
        !attribute(s, end, "bandwidth", value, sizeof(value)) ||
        !heddle_number_scan(value, &rest, &v) || (*rest != '\0' && strcmp(rest, "Bps") != 0) ||
        !(v > 0 && v < 1e18))
        return HEDDLE_OK;
    bus.bytes_per_ns = v * 1e-9;
    return heddle_plat_add_bus(im->p, &bus);
}

static void xml_route(const struct import *im, struct xml *x, const char *s, const char *end)
{
    char src[32], dst[32];

    x->from = x->to = -1;
    if (!attribute(s, end, "src", src, sizeof(src)) || !attribute(s, end, "dst", dst, sizeof(dst)))
        return;
    x->from = xml_node(im, src);
    x->to = xml_node(im, dst);
}

static void xml_step(struct import *im, const struct xml *x, const char *s, const char *end)
{
    char id[64];
    int link;

    if (im->p->nbuses == 0 || x->from < 0 || x->to < 0 ||
        !attribute(s, end, "id", id, sizeof(id)) || strcmp(id, "Host") != 0)
        return;
    link = heddle_plat_find_link(im->p, (unsigned)x->from, (unsigned)x->to);
    if (link >= 0)
        im->p->link[link].bus = 0;
}

static heddle_status xml_tag(struct import *im, struct xml *x, const char *s, const char *end)
{
    char id[64];

    if (tag_is(s, end, "host")) {
        x->host = -1;
        if (end[-1] != '/' && attribute(s, end, "id", id, sizeof(id)))
            x->host = xml_node(im, id);
    } else if (tag_is(s, end, "/host") || strncmp(s, "/host>", 6) == 0) {
        x->host = -1;
    } else if (tag_is(s, end, "prop")) {
        xml_prop(im, x, s, end);
    } else if (tag_is(s, end, "link")) {
        return xml_link(im, s, end);
    } else if (tag_is(s, end, "route")) {
        xml_route(im, x, s, end);
    } else if (strncmp(s, "/route>", 7) == 0) {
        x->from = x->to = -1;
    } else if (tag_is(s, end, "link_ctn")) {
        xml_step(im, x, s, end);
    }
    return HEDDLE_OK;
}

/* Tag by tag; a file that is no XML has none of ours. */
static heddle_status xml_walk(struct import *im)
{
    const char *s = im->t.text, *const stop = im->t.text + im->t.len;
    struct xml x = {-1, -1, -1};

    while ((s = memchr(s, '<', (size_t)(stop - s))) != NULL) {
        const char *end = memchr(s, '>', (size_t)(stop - s));

        if (end == NULL)
            return HEDDLE_OK;
        HEDDLE_TRY(xml_tag(im, &x, s + 1, end));
        s = end;
    }
    return HEDDLE_OK;
}

/* Optional: without the file, memories have no limit and links no bus. */
static heddle_status read_platform(struct import *im)
{
    heddle_status st = file_open(im, "platform.xml");

    if (st == HEDDLE_ENOENT)
        st = file_open(im, "platform.v4.xml");
    if (st == HEDDLE_ENOENT)
        return HEDDLE_OK;
    HEDDLE_TRY(st);
    st = xml_walk(im);
    heddle_plat_text_close(&im->t);
    return st;
}

/* ---- the whole ----------------------------------------------------------- */

static heddle_status check_nodes(struct import *im)
{
    bool is_from;
    const unsigned i = heddle_plat_lost_node(im->p, &is_from);

    if (i == 0)
        return HEDDLE_OK;
    return heddle_why(im->t.why, im->t.cap, HEDDLE_EFORMAT,
                      "%s/bus/%s.bandwidth: no links lead %s %s", im->dir, im->name,
                      is_from ? "from the host to" : "to it from", im->p->node[i].name);
}

/* The kernels of a Cholesky factorization under their plain names. */
static heddle_status add_aliases(struct import *im)
{
    static const char *const alias[][2] = {{"potrf", "chol_model_potrf"},
                                           {"trsm", "chol_model_trsm"},
                                           {"syrk", "chol_model_syrk"},
                                           {"gemm", "chol_model_gemm"}};

    for (size_t i = 0; i < sizeof(alias) / sizeof(alias[0]); i++)
        if (heddle_plat_table_alias(im->p->table, alias[i][0], alias[i][1]) == HEDDLE_ENOMEM)
            return HEDDLE_ENOMEM;
    return HEDDLE_OK;
}

static heddle_status read_machine(struct import *im)
{
    const bool has_cpu = im->ncpus > im->ncuda;
    const struct heddle_plat_owners owners = {.cpu = has_cpu ? 0 : -1,
                                              .cuda = im->ncuda == 0 ? -1
                                                      : has_cpu      ? 1
                                                                     : 0,
                                              .ncuda = im->ncuda};
    unsigned a, b;

    HEDDLE_TRY(read_matrix(im, "bandwidth", im->mbytes));
    HEDDLE_TRY(read_matrix(im, "latency", im->us));
    HEDDLE_TRY(add_parts(im));
    HEDDLE_TRY(check_nodes(im));
    HEDDLE_TRY(read_platform(im));
    if (!heddle_plat_number_types(im->p, &a, &b))
        return HEDDLE_EFORMAT;
    HEDDLE_TRY(heddle_plat_read_histories(im->p, im->dir, im->name, owners, im->t.why, im->t.cap));
    return add_aliases(im);
}

static heddle_status import(struct import *im, const struct heddle_allocator *a)
{
    heddle_status st;

    HEDDLE_TRY(read_config(im));
    HEDDLE_TRY(heddle_plat_new(a, &im->p));
    st = read_machine(im);
    if (st == HEDDLE_OK && !heddle_plat_set_name(im->p->name, sizeof(im->p->name), im->name))
        st = heddle_why(im->t.why, im->t.cap, HEDDLE_EFORMAT, "the name %.64s is too long",
                        im->name);
    if (st != HEDDLE_OK)
        heddle_plat_destroy(im->p);
    return st;
}

heddle_status heddle_plat_read_starpu(const struct heddle_allocator *a, const char *dir,
                                      const char *name, struct heddle_plat **plat_out, char *why,
                                      size_t cap)
{
    struct import *im = heddle_zalloc(a, 1, sizeof(*im));
    heddle_status st;

    if (im == NULL)
        return HEDDLE_ENOMEM;
    im->t.a = a;
    im->t.why = why;
    im->t.cap = cap;
    im->dir = dir;
    im->name = name;
    st = import(im, a);
    if (st == HEDDLE_OK)
        *plat_out = im->p;
    heddle_free(a, im, sizeof(*im));
    return st;
}
