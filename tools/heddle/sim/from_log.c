/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim/from_log: see from_log.h.
 *
 * Structure  one row per execution, sorted by kernel, class and size; equal ones are a group.
 * Names      the file has words without blanks. A kernel or class with another name is named in
 *            a comment and left out.
 */
#include "sim/from_log.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "common/output.h"
#include "heddle/machine.h"
#include "heddle/trace.h"

#define NO_CLASS UINT32_MAX

enum { NAME_MAX_LETTERS = 31 };

struct row {
    uint32_t kernel, class; /* class: index of its fact in infos[] */
    uint64_t bytes;
    int64_t ns;
};

struct from_log {
    struct cli *c;
    heddle_log *log;
    const struct heddle_log_view *v;
    struct row *row;
    size_t nrows;
    FILE *f;
};

static bool is_word(const char *name)
{
    const size_t n = strlen(name);

    for (size_t i = 0; i < n; i++)
        if (name[i] <= ' ' || name[i] > '~' || name[i] == ':')
            return false;
    return n > 0 && n <= NAME_MAX_LETTERS && name[0] != '#';
}

/* --- classes ---------------------------------------------------------------------- */

/* The fact "class NAME"; NULL: it is another one. */
static const char *class_name(const struct heddle_log_info *i)
{
    return strncmp(i->key, "class ", 6) == 0 ? i->key + 6 : NULL;
}

static bool is_host(const struct heddle_log_view *v, uint32_t node)
{
    return node >= v->nnodes || v->nodes[node].kind == 0;
}

/* A device has the name of its memory. */
static uint32_t class_of_node(const struct heddle_log_view *v, uint32_t node)
{
    const char *want = is_host(v, node) ? "cpu" : v->nodes[node].name;

    for (uint32_t i = 0; i < v->ninfos; i++) {
        const char *name = class_name(&v->infos[i]);

        if (name != NULL && strcmp(name, want) == 0)
            return i;
    }
    return NO_CLASS;
}

static const struct heddle_log_node *node_of_class(const struct heddle_log_view *v,
                                                   const char *name)
{
    for (size_t i = 0; i < v->nnodes; i++)
        if (!is_host(v, (uint32_t)i) && strcmp(v->nodes[i].name, name) == 0)
            return &v->nodes[i];
    return NULL;
}

/* "WORKERS KIND MODEL", see the fact `class` in docs/formats/log.md. */
static void put_class(struct from_log *s, const struct heddle_log_info *i)
{
    const char *name = class_name(i);
    const struct heddle_log_node *node = node_of_class(s->v, name);
    unsigned nworkers = 0;
    char kind[32] = "";

    if (!is_word(name) || sscanf(i->value, "%u %31s", &nworkers, kind) != 2 || nworkers == 0) {
        fprintf(s->f, "# left out: class %s\n", is_word(name) ? name : "without a usable name");
        return;
    }
    fprintf(s->f, "class %s kind %s workers %u", name, kind, nworkers);
    if (node != NULL)
        fprintf(s->f, " node %s", node->name);
    fprintf(s->f, "\n");
}

static void put_number(FILE *f, double x)
{
    char buf[48];
    struct heddle_text t;

    heddle_text_init(&t, buf, sizeof(buf));
    heddle_text_double(&t, x);
    fputs(buf, f);
}

static void put_link(struct from_log *s, const struct heddle_log_link *k)
{
    fprintf(s->f, "link %s %s gbytes ", s->v->nodes[k->from].name, s->v->nodes[k->to].name);
    put_number(s->f, k->bytes_per_s * 1e-9);
    fputs(" latency_us ", s->f);
    put_number(s->f, k->latency_ns * 1e-3);
    fputc('\n', s->f);
}

static void put_machine(struct from_log *s)
{
    const struct heddle_log_view *v = s->v;

    for (size_t i = 0; i < v->nnodes; i++) {
        if (is_host(v, (uint32_t)i))
            continue;
        fprintf(s->f, "node %s", v->nodes[i].name);
        if (v->nodes[i].bytes > 0)
            fprintf(s->f, " bytes %llu", (unsigned long long)v->nodes[i].bytes);
        fputc('\n', s->f);
    }
    for (size_t i = 0; i < v->ninfos; i++)
        if (class_name(&v->infos[i]) != NULL)
            put_class(s, &v->infos[i]);
    for (size_t i = 0; i < v->nlinks; i++)
        put_link(s, &v->links[i]);
}

/* --- times -------------------------------------------------------------------------- */

static int compare_rows(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    if (x->kernel != y->kernel)
        return x->kernel < y->kernel ? -1 : 1;
    if (x->class != y->class)
        return x->class < y->class ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return x->ns < y->ns ? -1 : x->ns > y->ns;
}

static uint64_t operand_bytes(const struct from_log *s, uint64_t task)
{
    uint64_t bytes = 0;
    size_t first, last;

    heddle_log_find_accesses(s->log, task, &first, &last);
    for (size_t i = first; i < last; i++)
        bytes += s->v->handles[s->v->accesses[i].handle].bytes;
    return bytes;
}

static void read_rows(struct from_log *s)
{
    for (size_t i = 0; i < s->v->ntasks; i++) {
        const struct heddle_log_task *t = &s->v->tasks[i];
        uint32_t class;

        if (t->status != HEDDLE_LOG_OK || t->lane >= s->v->nlanes ||
            (t->flags & (HEDDLE_LOG_GANG | HEDDLE_LOG_EXPANDED)) != 0)
            continue;
        class = class_of_node(s->v, s->v->lanes[t->lane].node);
        if (class == NO_CLASS || !is_word(s->v->kernels[t->kernel].name))
            continue;
        s->row[s->nrows++] = (struct row){.kernel = t->kernel,
                                          .class = class,
                                          .bytes = operand_bytes(s, t->id),
                                          .ns = t->end_ns - t->start_ns};
    }
    qsort(s->row, s->nrows, sizeof(*s->row), compare_rows);
}

static void put_times(struct from_log *s)
{
    for (size_t i = 0, end; i < s->nrows; i = end) {
        const struct row *r = &s->row[i];

        for (end = i + 1; end < s->nrows && s->row[end].kernel == r->kernel &&
                          s->row[end].class == r->class && s->row[end].bytes == r->bytes;
             end++)
            ;
        fprintf(s->f, "time %s %s %llu ", s->v->kernels[r->kernel].name,
                class_name(&s->v->infos[r->class]), (unsigned long long)r->bytes);
        /* A time of 0 is below the resolution of the clock. */
        put_number(s->f, (double)(r[(end - i) / 2].ns > 0 ? r[(end - i) / 2].ns : 1) * 1e-3);
        fprintf(s->f, " # %zu\n", end - i);
    }
    for (size_t i = 0; i < s->v->nkernels; i++)
        if (!is_word(s->v->kernels[i].name))
            fprintf(s->f, "# left out: a kernel whose name is no word of a machine file\n");
}

/* --- the whole ------------------------------------------------------------------------ */

static int read_log(struct from_log *s, const char *path)
{
    char why[320] = "";
    const struct heddle_log_opts o = {.size = sizeof(o), .why = why, .why_bytes = sizeof(why)};
    const heddle_status st = heddle_log_open(path, &o, &s->log);

    if (st != HEDDLE_OK)
        return cli_fail(s->c, "%s", why[0] != '\0' ? why : heddle_status_text(st));
    s->v = heddle_log_get_view(s->log);
    if (s->v->naccesses == 0)
        return cli_fail(s->c,
                        "the log '%s' has no operands, so that the sizes of its tasks are not "
                        "known: record it with HEDDLE_LOG_LEVEL=1",
                        path);
    s->row = calloc(s->v->ntasks + 1, sizeof(*s->row));
    if (s->row == NULL)
        return cli_fail(s->c, "%s", heddle_status_text(HEDDLE_ENOMEM));
    read_rows(s);
    return s->nrows > 0 ? 0 : cli_fail(s->c, "no task of the log '%s' has a time", path);
}

static int write_machine(struct from_log *s, FILE *f)
{
    s->f = f;
    fprintf(f,
            "heddle-machine 1\n"
            "# From a run. 'time': kernel, class, bytes of all operands, microseconds; behind it\n"
            "# the number of tasks whose median it is.\n");
    put_machine(s);
    put_times(s);
    return ferror(f) != 0 ? cli_output_failed(s->c, HEDDLE_EIO) : 0;
}

int sim_from_log(struct cli *c, const char *log_path, const char *out_path)
{
    struct from_log s = {.c = c};
    int rc = read_log(&s, log_path);

    if (rc == 0 && out_path == NULL) {
        rc = write_machine(&s, c->out);
    } else if (rc == 0) {
        struct output o;

        rc = output_begin_stream(&o, c, out_path);
        if (rc == 0)
            rc = output_end(&o, write_machine(&s, o.f));
    }
    free(s.row);
    heddle_log_close(s.log);
    return rc;
}
