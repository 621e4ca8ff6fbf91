/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the verbs of `heddle trace` share: opening a log, sentences, cells.
 */
#include "trace/cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

void trace_memory_keep(void)
{
    (void)mallopt(M_MMAP_MAX, 0);
    (void)mallopt(M_TRIM_THRESHOLD, INT_MAX);
    (void)mallopt(M_ARENA_MAX, 1);
}

void trace_memory_return(void)
{
    (void)malloc_trim(0);
}

int trace_open(struct cli *c, const char *verb, const struct cli_args *args, heddle_log **log_out)
{
    char why[512] = "";
    const struct heddle_log_opts o = {.size = sizeof(o), .why = why, .why_bytes = sizeof(why)};
    heddle_status st;

    if (args->n < 1)
        return cli_error(c, "trace %s needs the file of a log", verb);
    trace_memory_keep();
    st = heddle_log_open(args->operand[0], &o, log_out);
    if (st == HEDDLE_ENOENT || st == HEDDLE_EIO)
        return cli_fail(c, "%s", why); /* it names the file */
    if (st != HEDDLE_OK)
        return cli_fail(c, "%s: %s", args->operand[0],
                        why[0] != '\0' ? why : heddle_status_text(st));
    return 0;
}

void trace_warn_partial(struct cli *c, const char *path, const heddle_log *log)
{
    if (heddle_log_get_partial(log)[0] != '\0')
        cli_warn(c, "%s: %s", path, heddle_log_get_partial(log));
}

int trace_end(struct cli *c, heddle_status st)
{
    if (st == HEDDLE_OK)
        return 0;
    return st == HEDDLE_EIO ? cli_output_failed(c, st) : cli_fail(c, "%s", heddle_status_text(st));
}

const char *trace_lane_kind(uint32_t kind)
{
    switch (kind) {
    case HEDDLE_LOG_WORKER: return "worker";
    case HEDDLE_LOG_SUBMITTER: return "submitter";
    case HEDDLE_LOG_DEVICE: return "device";
    case HEDDLE_LOG_LINK: return "link";
    }
    return "other";
}

const char *trace_text_ns(char buf[TRACE_CELL], int64_t ns)
{
    struct heddle_text t;

    heddle_text_init(&t, buf, TRACE_CELL);
    heddle_text_ns(&t, ns > 0 ? (uint64_t)ns : 0);
    return buf;
}

const char *trace_text_percent(char buf[TRACE_CELL], double share)
{
    struct heddle_text t;

    heddle_text_init(&t, buf, TRACE_CELL);
    heddle_text_fixed(&t, 100.0 * share, 1);
    heddle_text_str(&t, " %");
    return buf;
}

void trace_put_name(FILE *f, const char *s, int width)
{
    for (; *s != '\0'; s++, width--)
        fputc((unsigned char)*s < 0x20 || *s == 0x7f ? '?' : *s, f);
    for (; width > 0; width--)
        fputc(' ', f);
}

double trace_ratio(int64_t part, double whole)
{
    return whole > 0.0 ? (double)part / whole : 0.0;
}

/* The time of all tasks. A task that waits for its children lasts as long as they do, so
 * with nesting this is more than the time that workers were busy. */
static double all_kernels(const struct heddle_log_view *v, const struct heddle_log_summary *s)
{
    double sum = 0;

    for (size_t i = 0; i < v->nkernels; i++)
        sum += (double)s->kernels[i].total_ns;
    return sum;
}

void trace_lost(const struct heddle_log_view *v, int64_t *ns_out, uint64_t *ntasks_out)
{
    *ns_out = 0;
    *ntasks_out = 0;
    for (size_t i = 0; i < v->nevents; i++) {
        const struct heddle_log_event *e = &v->events[i];

        if (e->kind != HEDDLE_LOG_LOST || e->y_ns <= 0)
            continue;
        ++*ntasks_out;
        if (__builtin_add_overflow(*ns_out, e->y_ns, ns_out))
            *ns_out = INT64_MAX;
    }
}

void trace_put_kernels(FILE *f, const struct heddle_log_view *v, const struct heddle_log_summary *s)
{
    char a[TRACE_CELL], b[TRACE_CELL], c[TRACE_CELL], d[TRACE_CELL], e[TRACE_CELL];
    const double all = all_kernels(v, s);

    fprintf(f, "\n%-24s %10s %11s %8s %10s %10s %10s %9s\n", "kernel", "tasks", "total", "share",
            "min", "median", "max", "model");
    for (size_t i = 0; i < v->nkernels; i++) {
        const struct heddle_log_kernel_sum *k = &s->kernels[i];

        if (k->ntasks == 0)
            continue;
        trace_put_name(f, v->kernels[i].name, 24);
        fprintf(f, " %10" PRIu64 " %11s %8s %10s %10s %10s", k->ntasks,
                trace_text_ns(a, k->total_ns), trace_text_percent(b, trace_ratio(k->total_ns, all)),
                trace_text_ns(c, k->min_ns), trace_text_ns(d, k->median_ns),
                trace_text_ns(e, k->max_ns));
        fprintf(f, " %9s\n", k->npredicted > 0 ? trace_text_percent(a, k->model_error) : "-");
    }
}

void trace_json_kernels(struct heddle_json *j, const struct heddle_log_view *v,
                        const struct heddle_log_summary *s)
{
    const double all = all_kernels(v, s);

    heddle_json_key(j, "kernels");
    heddle_json_array(j);
    for (size_t i = 0; i < v->nkernels; i++) {
        const struct heddle_log_kernel_sum *k = &s->kernels[i];

        heddle_json_object(j);
        heddle_json_key_str(j, "name", v->kernels[i].name);
        heddle_json_key_uint(j, "tasks", k->ntasks);
        heddle_json_key_int(j, "total_ns", k->total_ns);
        heddle_json_key_double(j, "share", trace_ratio(k->total_ns, all));
        heddle_json_key_int(j, "min_ns", k->min_ns);
        heddle_json_key_int(j, "median_ns", k->median_ns);
        heddle_json_key_int(j, "max_ns", k->max_ns);
        heddle_json_key_uint(j, "predicted", k->npredicted);
        heddle_json_key_double(j, "model_error", k->model_error);
        heddle_json_end(j);
    }
    heddle_json_end(j);
}

bool trace_check_durations(struct cli *c, const char *text, enum heddle_log_durations *by)
{
    if (text == NULL || heddle_log_durations_find(text, by) == HEDDLE_OK)
        return true;
    (void)cli_error(c,
                    "'%s' are no durations: they are measured, min, median "
                    "or model",
                    text);
    return false;
}
