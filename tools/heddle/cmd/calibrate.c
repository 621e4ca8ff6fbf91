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
 * Rates      a GPU copies faster from memory that is pinned, which the runtime
 *            does to memory that it sees again. So for GPUs the largest size is
 *            also timed here, one way at a time: in new memory each time, and
 *            again and again in the same.
 * Overhead   with --overhead instead: what the runtime itself costs, as a line for
 *            machine files (common/overhead.h).
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/device.h"
#include "base/json.h"
#include "bench/cuda/cuda.h"
#include "cmd/cmd.h"
#include "common/overhead.h"
#include "heddle/heddle.h"
#include "heddle/opencl.h"
#include "heddle/perf.h"

enum { MIN_BYTES = 4096, MAX_BYTES = 64 << 20, MAX_RATES = 32 };

/* Time for the runtime to pin what it has seen. */
#define PIN_NS 100000000

/* The best of a few copies of the largest size, bytes per ns. */
struct rate {
    char device[32];
    enum heddle_device kind;
    bool is_pinned; /* the same memory again and again */
    size_t bytes;
    double to, from;
};

struct calibrate {
    struct cli *c;
    const char *devices;
    uint64_t reps;
    heddle_ctx *ctx;
    heddle_kernel touch;
    unsigned ndevices, ngpus, nlinks, nrates;
    struct rate rate[MAX_RATES];
    struct heddle_json j;
    char why[320];
};

static void keep_sentence(void *user, enum heddle_severity severity, const char *text)
{
    struct calibrate *k = user;

    if (severity == HEDDLE_ERROR)
        snprintf(k->why, sizeof(k->why), "%s", text);
}

/* Leaves the data as they are: that it might have changed them is enough. */
static heddle_status touch_opencl(struct heddle_exec *x)
{
    static const char source[] = "__kernel void touch(__global uchar *p) { p[0] = p[0]; }";
    const struct heddle_opencl_arg args[] = {{.operand = 0}};
    const size_t one = 1;
    void *kernel = NULL;
    const heddle_status st = heddle_opencl_kernel(x, source, "touch", NULL, &kernel);

    return st != HEDDLE_OK ? st : heddle_opencl_launch(x, kernel, 1, &one, NULL, args, 1);
}

static heddle_status touch_nothing(struct heddle_exec *x)
{
    (void)x;
    return HEDDLE_OK;
}

/* For every kind of accelerator. */
static heddle_kernel touch_kernel(void)
{
    heddle_kernel k = {.size = sizeof(heddle_kernel),
                       .name = "heddle.calibrate",
                       .noperands = 1,
                       .mode = {HEDDLE_RW}};
    unsigned n = 0;

    for (unsigned d = HEDDLE_DEV_CPU + 1; d <= HEDDLE_DEVICE_MOST; d++)
        if (heddle_device_is_known(d))
            k.variants[n++] = (struct heddle_variant){
                .device = (enum heddle_device)d,
                .run = d == HEDDLE_DEV_OPENCL ? touch_opencl : touch_nothing};
    return k;
}

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

/* There and back. The kernel may run on any device of this kind (0: there is no
 * kernel): the hint makes this one the nearest. */
static heddle_status round_trip(struct calibrate *k, heddle_handle *h, unsigned memory,
                                enum heddle_device kind)
{
    const struct heddle_task_opts o = {.size = sizeof(o), .devices = HEDDLE_DEVS(kind)};
    heddle_status st = write_host(h);

    if (st == HEDDLE_OK)
        st = heddle_handle_advise(h, HEDDLE_PREFETCH, memory);
    if (st == HEDDLE_OK && kind != 0)
        st = heddle_submit(k->ctx, &k->touch, &(struct heddle_call){.operand = {h}, .opts = &o});
    if (st == HEDDLE_OK)
        st = heddle_wait(k->ctx);
    return st == HEDDLE_OK ? read_host(h) : st;
}

/* What has memory of its own is fed by copies; OpenCL's may be the host's. */
static bool is_gpu(const struct heddle_class_info *cls)
{
    const enum heddle_device kind = heddle_device_of(cls->kind);

    return kind != 0 && kind != HEDDLE_DEV_CPU && kind != HEDDLE_DEV_OPENCL;
}

static heddle_status measure(struct calibrate *k, size_t bytes, const struct heddle_class_info *cls)
{
    void *data = aligned_alloc(4096, bytes);
    heddle_handle *h = NULL;
    heddle_status st = HEDDLE_ENOMEM;

    if (data != NULL) {
        memset(data, 1, bytes);
        st = heddle_handle_vector(k->ctx, data, bytes, HEDDLE_U8, &h);
    }
    for (uint64_t r = 0; r < k->reps && st == HEDDLE_OK; r++)
        st = round_trip(k, h, cls->memory, heddle_device_of(cls->kind));
    heddle_handle_unref(h);
    if (heddle_wait(k->ctx) != HEDDLE_OK && st == HEDDLE_OK)
        st = HEDDLE_EDEV;
    free(data);
    return st;
}

/* There by a task, back by an acquire; with several GPUs the hint makes this one
 * the nearest. */
static heddle_status time_trip(struct calibrate *k, heddle_handle *h, unsigned memory,
                               struct rate *r)
{
    heddle_event *end = NULL;
    const struct heddle_task_opts o = {
        .size = sizeof(o), .devices = HEDDLE_DEVS(r->kind), .event_out = &end};
    heddle_status st = write_host(h);
    uint64_t start, there, back;

    start = heddle_clock_ns();
    if (st == HEDDLE_OK && k->ngpus > 1)
        st = heddle_handle_advise(h, HEDDLE_PREFETCH, memory);
    if (st == HEDDLE_OK)
        st = heddle_submit(k->ctx, &k->touch, &(struct heddle_call){.operand = {h}, .opts = &o});
    if (st == HEDDLE_OK)
        st = heddle_event_wait(end, 0);
    heddle_event_unref(end);
    there = heddle_clock_ns();
    if (st == HEDDLE_OK)
        st = read_host(h);
    back = heddle_clock_ns();
    if (st != HEDDLE_OK)
        return st;
    if ((double)r->bytes / (double)(there - start) > r->to)
        r->to = (double)r->bytes / (double)(there - start);
    if ((double)r->bytes / (double)(back - there) > r->from)
        r->from = (double)r->bytes / (double)(back - there);
    return HEDDLE_OK;
}

/* `trips` there and back in the same memory; the first ones do not count when
 * there are several. */
static heddle_status time_memory(struct calibrate *k, unsigned memory, uint64_t trips,
                                 struct rate *r)
{
    const struct timespec pause = {0, PIN_NS};
    void *data = aligned_alloc(4096, r->bytes);
    struct rate first = *r;
    heddle_handle *h = NULL;
    heddle_status st = HEDDLE_ENOMEM;

    if (data != NULL) {
        memset(data, 1, r->bytes);
        st = heddle_handle_vector(k->ctx, data, r->bytes, HEDDLE_U8, &h);
    }
    for (uint64_t i = 0; i < 2 && trips > 1 && st == HEDDLE_OK; i++) {
        st = time_trip(k, h, memory, &first);
        nanosleep(&pause, NULL);
    }
    for (uint64_t i = 0; i < trips && st == HEDDLE_OK; i++)
        st = time_trip(k, h, memory, r);
    heddle_handle_unref(h);
    if (heddle_wait(k->ctx) != HEDDLE_OK && st == HEDDLE_OK)
        st = HEDDLE_EDEV;
    free(data);
    return st;
}

static heddle_status time_gpu(struct calibrate *k, size_t bytes,
                              const struct heddle_class_info *cls)
{
    heddle_status st = HEDDLE_OK;

    for (unsigned p = 0; p < 2 && k->nrates < MAX_RATES && st == HEDDLE_OK; p++) {
        struct rate *r = &k->rate[k->nrates++];

        *r =
            (struct rate){.is_pinned = p == 1, .bytes = bytes, .kind = heddle_device_of(cls->kind)};
        snprintf(r->device, sizeof(r->device), "%s", cls->name);
        if (r->is_pinned)
            st = time_memory(k, cls->memory, k->reps + 1, r);
        for (uint64_t i = 0; i < k->reps && !r->is_pinned && st == HEDDLE_OK; i++)
            st = time_memory(k, cls->memory, 1, r);
    }
    return st;
}

static int fail(struct calibrate *k, heddle_status st)
{
    struct heddle_error e = {.size = sizeof(e)};

    if (k->ctx != NULL && heddle_ctx_error(k->ctx, &e) == HEDDLE_OK && e.message[0] != '\0')
        return cli_fail(k->c, "%s", e.message);
    return cli_fail(k->c, "the links cannot be measured: %s",
                    k->why[0] != '\0' ? k->why : heddle_status_text(st));
}

static int measure_all(struct calibrate *k)
{
    struct heddle_class_info cls = {.size = sizeof(cls)};
    struct heddle_memory_info mem = {.size = sizeof(mem)};
    heddle_status st = HEDDLE_OK;
    size_t largest;

    for (unsigned i = 0; heddle_ctx_get_class(k->ctx, i, &cls) == HEDDLE_OK; i++)
        k->ngpus += is_gpu(&cls);
    for (unsigned i = 0; heddle_ctx_get_class(k->ctx, i, &cls) == HEDDLE_OK; i++) {
        if (cls.memory == 0 || heddle_ctx_get_memory(k->ctx, cls.memory, &mem) != HEDDLE_OK)
            continue;
        k->ndevices++;
        largest = 0;
        for (size_t b = MIN_BYTES; b <= MAX_BYTES && st == HEDDLE_OK; b *= 4)
            if (b <= mem.budget / 2) {
                st = measure(k, b, &cls);
                largest = b;
            }
        if (is_gpu(&cls) && largest > 0 && st == HEDDLE_OK)
            st = time_gpu(k, largest, &cls);
        if (st != HEDDLE_OK)
            return fail(k, st);
    }
    return 0;
}

/* --- output -------------------------------------------------------------- */

static heddle_status print_link(void *user, const struct heddle_perf_link_info *l)
{
    struct calibrate *k = user;

    if (!k->c->json) {
        if (k->nlinks++ == 0)
            fprintf(k->c->out, "%-24s %-24s %10s %12s %7s %8s\n", "from", "to", "GB/s",
                    "latency us", "trust", "copies");
        fprintf(k->c->out, "%-24s %-24s %10.3f %12.3f %7.2f %8" PRIu64 "\n", l->from, l->to,
                l->bytes_per_s / 1e9, l->latency_ns / 1e3, l->confidence, l->count);
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

static void print_rates(struct calibrate *k)
{
    if (k->nrates > 0 && !k->c->json)
        fprintf(k->c->out, "\n%-24s %-24s %10s %12s %7s\n", "device", "memory", "to GB/s",
                "from GB/s", "MiB");
    for (unsigned i = 0; i < k->nrates; i++) {
        const struct rate *r = &k->rate[i];
        const char *memory = r->is_pinned ? "used again" : "new";

        if (!k->c->json) {
            fprintf(k->c->out, "%-24s %-24s %10.3f %12.3f %7.2f\n", r->device, memory, r->to,
                    r->from, (double)r->bytes / (1 << 20));
            continue;
        }
        heddle_json_object(&k->j);
        heddle_json_key_str(&k->j, "name", "rate");
        heddle_json_key_str(&k->j, "device", r->device);
        heddle_json_key_str(&k->j, "memory", memory);
        heddle_json_key_uint(&k->j, "bytes", r->bytes);
        heddle_json_key_double(&k->j, "to_bytes_per_s", r->to * 1e9);
        heddle_json_key_double(&k->j, "from_bytes_per_s", r->from * 1e9);
        heddle_json_end(&k->j);
        heddle_json_line(&k->j);
    }
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
        return cli_fail(k->c, "the models cannot be read: %s", heddle_status_text(st));
    if (k->nlinks == 0)
        return cli_fail(k->c,
                        "the devices were measured, but '%s' has no "
                        "links: can it be written?",
                        dir);
    print_rates(k);
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

/* --- what the runtime costs ---------------------------------------------- */

static bool has_gpu(heddle_ctx *ctx)
{
    struct heddle_class_info c = {.size = sizeof(c)};

    for (unsigned i = 1; heddle_ctx_get_class(ctx, i, &c) == HEDDLE_OK; i++)
        if (strcmp(c.kind, "cuda") == 0)
            return true;
    return false;
}

static int print_overhead(struct calibrate *k, const struct overhead *o)
{
    heddle_status st;

    if (!k->c->json) {
        overhead_write(k->c->out, o);
        return 0;
    }
    heddle_json_init_file(&k->j, k->c->out);
    heddle_json_object(&k->j);
    heddle_json_key_str(&k->j, "name", "overhead");
    heddle_json_key_double(&k->j, "submit_us", o->submit_ns / 1e3);
    heddle_json_key_double(&k->j, "wake_us", o->wake_ns / 1e3);
    heddle_json_key_double(&k->j, "drive_us", o->drive_ns / 1e3);
    heddle_json_key_double(&k->j, "notice_us", o->notice_ns / 1e3);
    heddle_json_end(&k->j);
    heddle_json_line(&k->j);
    st = heddle_json_finish(&k->j);
    return st == HEDDLE_OK ? 0 : cli_output_failed(k->c, st);
}

static int calibrate_overhead(struct calibrate *k)
{
    const struct heddle_ctx_opts o = {.size = sizeof(o),
                                      .devices = k->devices,
                                      .log = HEDDLE_OFF,
                                      .model_dir = "",
                                      .message = keep_sentence,
                                      .message_user = k};
    struct overhead found = {0};
    heddle_status st = heddle_ctx_create(&o, &k->ctx), closed;

    if (st != HEDDLE_OK)
        return fail(k, st);
    st = overhead_measure(k->ctx, &found);
    if (st == HEDDLE_OK && has_gpu(k->ctx))
        st = overhead_drive(k->ctx, &bench_kernel_empty_rw, &found);
    closed = heddle_ctx_destroy(k->ctx);
    k->ctx = NULL;
    if (st != HEDDLE_OK || closed != HEDDLE_OK)
        return fail(k, st != HEDDLE_OK ? st : closed);
    return print_overhead(k, &found);
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
    struct calibrate k = {.c = c, .reps = 5, .touch = touch_kernel()};
    const char *dir = NULL, *machine = getenv("HEDDLE_MACHINE");
    const char *env = getenv("HEDDLE_MODEL_DIR");
    bool is_overhead = false;
    char cache[4096];
    const struct cli_opt opts[] = {{"--devices", CLI_STRING, &k.devices, 0, 0},
                                   {"--overhead", CLI_FLAG, &is_overhead, 0, 0},
                                   {"--reps", CLI_UINT, &k.reps, 1, 1000},
                                   {"--dir", CLI_STRING, &dir, 0, 0},
                                   {0}};
    const int rc = cli_parse(c, "calibrate", argc, argv, opts, NULL);

    if (rc != 0)
        return rc;
    if (machine != NULL && machine[0] != '\0')
        return cli_fail(c, "HEDDLE_MACHINE is set: the links of a described "
                           "machine are in its file");
    if (is_overhead)
        return calibrate_overhead(&k);
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
             "heddle calibrate --overhead [--devices LIST] [--json]\n"
             "\n"
             "  --devices  as in HEDDLE_DEVICES, as in 'opencl' (default: "
             "those that\n"
             "             are found quickly: GPUs by CUDA)\n"
             "  --reps     copies of each size and direction (default 5)\n"
             "  --dir      folder of the models (default: as 'heddle model "
             "path')\n"
             "  --overhead prints what the runtime itself costs instead: the "
             "line\n"
             "             'overhead' of a machine file\n"
             "  --json     one JSON object per link, and two per GPU\n",
    .run = calibrate_run,
};
