/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * calibrate: measures the links between the host and the devices.
 *
 * How        data of several sizes go to each device and come back, through a
 *            context: HEDDLE_PREFETCH brings them there, and a write on the
 *            host makes them void again; a kernel that updates them on the
 *            device, where there is one, is what sends them home. The context
 *            records every copy in its own models and saves them at its end, so
 *            schedulers and 'heddle info' know what was measured here.
 * Sizes      powers of four from 4 KiB to 64 MiB, within half of the memory.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cmd.h"
#include "heddle/heddle.h"
#include "heddle/opencl.h"
#include "heddle/perf.h"

enum { MIN_BYTES = 4096, MAX_BYTES = 64 << 20 };

struct calibrate {
    struct cli *c;
    const char *devices;
    uint64_t reps;
    heddle_ctx *ctx;
    unsigned ndevices, nlinks;
    struct heddle_json j;
    char why[320];
};

static void keep_sentence(void *user, enum heddle_severity severity,
                          const char *text)
{
    struct calibrate *k = user;

    if (severity == HEDDLE_ERROR)
        snprintf(k->why, sizeof(k->why), "%s", text);
}

/* Leaves the data as they are: that it might have changed them is enough. */
static heddle_status touch_opencl(struct heddle_exec *x)
{
    static const char source[] =
        "__kernel void touch(__global uchar *p) { p[0] = p[0]; }";
    const struct heddle_opencl_arg args[] = {{.operand = 0}};
    const size_t one = 1;
    void *kernel = NULL;
    const heddle_status st =
        heddle_opencl_kernel(x, source, "touch", NULL, &kernel);

    return st != HEDDLE_OK
               ? st
               : heddle_opencl_launch(x, kernel, 1, &one, NULL, args, 1);
}

static const heddle_kernel touch = {
    .size = sizeof(heddle_kernel),
    .name = "heddle.calibrate",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_OPENCL, .run = touch_opencl}},
};

static heddle_status write_host(heddle_handle *h)
{
    const heddle_status st = heddle_handle_acquire(h, HEDDLE_W, NULL);

    return st == HEDDLE_OK ? heddle_handle_release(h) : st;
}

static heddle_status read_host(heddle_handle *h)
{
    const heddle_status st = heddle_handle_acquire(h, HEDDLE_R, NULL);

    return st == HEDDLE_OK ? heddle_handle_release(h) : st;
}

/* There and back. The kernel may run on any device of its kind: the hint makes
 * this one the nearest. */
static heddle_status round_trip(struct calibrate *k, heddle_handle *h,
                                unsigned memory, bool can_touch)
{
    heddle_status st = write_host(h);

    if (st == HEDDLE_OK)
        st = heddle_handle_advise(h, HEDDLE_PREFETCH, memory);
    if (st == HEDDLE_OK && can_touch)
        st = heddle_submit(k->ctx, &touch,
                           &(struct heddle_call){.operand = {h}});
    if (st == HEDDLE_OK)
        st = heddle_wait(k->ctx);
    return st == HEDDLE_OK ? read_host(h) : st;
}

static heddle_status measure(struct calibrate *k, size_t bytes,
                             const struct heddle_class_info *cls)
{
    const bool can_touch = strcmp(cls->kind, "opencl") == 0;
    void *data = aligned_alloc(4096, bytes);
    heddle_handle *h = NULL;
    heddle_status st = HEDDLE_ENOMEM;

    if (data != NULL) {
        memset(data, 1, bytes);
        st = heddle_handle_vector(k->ctx, data, bytes, HEDDLE_U8, &h);
    }
    for (uint64_t r = 0; r < k->reps && st == HEDDLE_OK; r++)
        st = round_trip(k, h, cls->memory, can_touch);
    heddle_handle_unref(h);
    if (heddle_wait(k->ctx) != HEDDLE_OK && st == HEDDLE_OK)
        st = HEDDLE_EDEV;
    free(data);
    return st;
}

static int fail(struct calibrate *k, heddle_status st)
{
    struct heddle_error e = {.size = sizeof(e)};

    if (k->ctx != NULL && heddle_ctx_error(k->ctx, &e) == HEDDLE_OK &&
        e.message[0] != '\0')
        return cli_fail(k->c, "%s", e.message);
    return cli_fail(k->c, "the links cannot be measured: %s",
                    k->why[0] != '\0' ? k->why : heddle_status_text(st));
}

static int measure_all(struct calibrate *k)
{
    struct heddle_class_info cls = {.size = sizeof(cls)};
    struct heddle_memory_info mem = {.size = sizeof(mem)};
    heddle_status st = HEDDLE_OK;

    for (unsigned i = 0; heddle_ctx_get_class(k->ctx, i, &cls) == HEDDLE_OK;
         i++) {
        if (cls.memory == 0 ||
            heddle_ctx_get_memory(k->ctx, cls.memory, &mem) != HEDDLE_OK)
            continue;
        k->ndevices++;
        for (size_t b = MIN_BYTES; b <= MAX_BYTES && st == HEDDLE_OK; b *= 4)
            if (b <= mem.budget / 2)
                st = measure(k, b, &cls);
        if (st != HEDDLE_OK)
            return fail(k, st);
    }
    return 0;
}

/* --- output -------------------------------------------------------------- */

static heddle_status print_link(void *user,
                                const struct heddle_perf_link_info *l)
{
    struct calibrate *k = user;

    if (!k->c->json) {
        if (k->nlinks++ == 0)
            fprintf(k->c->out, "%-24s %-24s %10s %12s %7s %8s\n", "from", "to",
                    "GB/s", "latency us", "trust", "copies");
        fprintf(k->c->out, "%-24s %-24s %10.3f %12.3f %7.2f %8" PRIu64 "\n",
                l->from, l->to, l->bytes_per_s / 1e9, l->latency_ns / 1e3,
                l->confidence, l->count);
        return HEDDLE_OK;
    }
    k->nlinks++;
    heddle_json_object(&k->j);
    heddle_json_key_str(&k->j, "name", "link");
    heddle_json_key_str(&k->j, "from", l->from);
    heddle_json_key_str(&k->j, "to", l->to);
    heddle_json_key_double(&k->j, "bytes_per_s", l->bytes_per_s);
    heddle_json_key_double(&k->j, "latency_ns", l->latency_ns);
    heddle_json_key_double(&k->j, "confidence", l->confidence);
    heddle_json_key_uint(&k->j, "copies", l->count);
    heddle_json_end(&k->j);
    heddle_json_line(&k->j);
    return HEDDLE_OK;
}

/* What the files say now. */
static int print_links(struct calibrate *k, const char *dir)
{
    heddle_perf *perf = NULL;
    heddle_status st = heddle_perf_create(NULL, dir, &perf);

    heddle_json_init_file(&k->j, k->c->out);
    if (st == HEDDLE_OK)
        st = heddle_perf_each_link(perf, print_link, k);
    heddle_perf_destroy(perf);
    if (st != HEDDLE_OK)
        return cli_fail(k->c, "the models cannot be read: %s",
                        heddle_status_text(st));
    if (k->nlinks == 0)
        return cli_fail(k->c,
                        "the devices were measured, but '%s' has no "
                        "links: can it be written?",
                        dir);
    st = heddle_json_finish(&k->j);
    return st == HEDDLE_OK ? 0 : cli_output_failed(k->c, st);
}

static int print_nothing(struct calibrate *k)
{
    static const char text[] = "there is nothing to calibrate: no device has a "
                               "memory of its own";
    heddle_status st;

    if (!k->c->json) {
        fprintf(k->c->out, "%s\n", text);
        return 0;
    }
    heddle_json_init_file(&k->j, k->c->out);
    heddle_json_object(&k->j);
    heddle_json_key_str(&k->j, "name", "calibrate");
    heddle_json_key_uint(&k->j, "devices", 0);
    heddle_json_key_str(&k->j, "message", text);
    heddle_json_end(&k->j);
    heddle_json_line(&k->j);
    st = heddle_json_finish(&k->j);
    return st == HEDDLE_OK ? 0 : cli_output_failed(k->c, st);
}

/* --- the command --------------------------------------------------------- */

static int calibrate(struct calibrate *k, const char *dir)
{
    const struct heddle_ctx_opts o = {.size = sizeof(o),
                                      .nworkers = 1,
                                      .devices = k->devices,
                                      .log = HEDDLE_OFF,
                                      .models = HEDDLE_ON,
                                      .model_dir = dir,
                                      .message = keep_sentence,
                                      .message_user = k};
    heddle_status st = heddle_ctx_create(&o, &k->ctx);
    int rc;

    if (st != HEDDLE_OK)
        return fail(k, st);
    rc = measure_all(k);
    st = heddle_ctx_destroy(k->ctx); /* saves the models */
    k->ctx = NULL;
    if (rc == 0 && st != HEDDLE_OK)
        rc = fail(k, st);
    if (rc != 0)
        return rc;
    return k->ndevices == 0 ? print_nothing(k) : print_links(k, dir);
}

static int calibrate_run(struct cli *c, int argc, char **argv)
{
    struct calibrate k = {.c = c, .reps = 5};
    const char *dir = NULL, *machine = getenv("HEDDLE_MACHINE");
    const char *env = getenv("HEDDLE_MODEL_DIR");
    char cache[4096];
    const struct cli_opt opts[] = {{"--devices", CLI_STRING, &k.devices, 0, 0},
                                   {"--reps", CLI_UINT, &k.reps, 1, 1000},
                                   {"--dir", CLI_STRING, &dir, 0, 0},
                                   {0}};
    const int rc = cli_parse(c, "calibrate", argc, argv, opts, NULL);

    if (rc != 0)
        return rc;
    if (machine != NULL && machine[0] != '\0')
        return cli_fail(c, "HEDDLE_MACHINE is set: the links of a described "
                           "machine are in its file");
    heddle_env_cache_dir(cache, sizeof(cache));
    if (dir == NULL)
        dir = env != NULL && env[0] != '\0' ? env : cache;
    if (dir[0] == '\0')
        return cli_fail(c, "there is no folder for models: give --dir");
    return calibrate(&k, dir);
}

const struct heddle_cmd heddle_cmd_calibrate = {
    .name = "calibrate",
    .help = "measures the links between memories and keeps the result",
    .usage = "heddle calibrate [--devices LIST] [--reps R] [--dir DIR] "
             "[--json]\n"
             "\n"
             "  --devices  as in HEDDLE_DEVICES, as in 'opencl' (default: "
             "those that\n"
             "             are found quickly)\n"
             "  --reps     copies of each size and direction (default 5)\n"
             "  --dir      folder of the models (default: as 'heddle model "
             "path')\n"
             "  --json     one JSON object per link\n",
    .run = calibrate_run,
};
