/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * import: makes a log from the tasks.rec of StarPU.
 *
 * Structure  a record is collected as pieces of text, one per known field, and
 *            turned into rows when it ends; compose.c writes the rows. Names
 *            stay pieces of the text that was read. The rows about workers and
 *            memory nodes are made in import_lanes.c.
 * Ids        "7" is task 7, "2_7" task 7 of process 2: 2^40 * 2 + 7.
 * Errors     HEDDLE_EFORMAT and a sentence with the line.
 */
#include "trace/import.h"

#include <inttypes.h>
#include <stdarg.h>

#include "base/assert.h"
#include "base/mode.h"
#include "base/rng.h"
#include "base/sized.h"
#include "base/text.h"
#include "base/why.h"
#include "heddle/compose.h"

#define ID_BITS  40
#define RANK_MAX 255
#define TIME_MAX (INT64_C(1) << 51) /* 26 days, in ns */
#define MS_TO_NS 6
#define US_TO_NS 3

static const char *const field_name[] = {
    [F_NAME] = "Name",
    [F_MODEL] = "Model",
    [F_JOBID] = "JobId",
    [F_DEPENDS] = "DependsOn",
    [F_PRIORITY] = "Priority",
    [F_TAG] = "Tag",
    [F_WORKER] = "WorkerId",
    [F_NODE] = "MemoryNode",
    [F_SUBMIT] = "SubmitTime",
    [F_READY] = "ReadyTime",
    [F_START] = "StartTime",
    [F_END] = "EndTime",
    [F_FOOTPRINT] = "Footprint",
    [F_GFLOP] = "GFlop",
    [F_ITERATION] = "Iteration",
    [F_HANDLES] = "Handles",
    [F_MODES] = "Modes",
    [F_SIZES] = "Sizes",
    [F_RANK] = "MPIRank",
    [F_PARENT] = "ParentRecursiveTask",
    [F_ESTIMATED] = "EstimatedTime",
    [F_CONTROL] = "Control",
    [F_WORKERS] = "Workers",
    [F_SIZE] = "Size",
    [F_SECTION] = "%rec",
};

heddle_status heddle_import_refuse(const struct heddle_import *m, size_t line, const char *fmt, ...)
{
    char what[256];
    struct heddle_text t;
    va_list ap;

    heddle_text_init(&t, what, sizeof what);
    va_start(ap, fmt);
    heddle_text_vadd(&t, fmt, ap);
    va_end(ap);
    return heddle_why(m->why, m->why_bytes, HEDDLE_EFORMAT, "%s, line %zu: %s.", m->path, line,
                      what);
}

/* ---- values ---- */

static heddle_status bad_value(const struct heddle_import *m, const struct heddle_import_rec *r,
                               enum heddle_import_field f)
{
    char word[HEDDLE_RECUTILS_WORD];
    const char *list = r->value[f];

    (void)heddle_recutils_word(&list, word);
    return heddle_import_refuse(m, r->line[f], "%s cannot be '%s'", field_name[f], word);
}

heddle_status heddle_import_uint(const struct heddle_import *m, const struct heddle_import_rec *r,
                                 enum heddle_import_field f, uint64_t max, uint64_t *out)
{
    int64_t v;

    if (r->value[f] == NULL)
        return HEDDLE_OK;
    if (!heddle_recutils_scaled(r->value[f], 0, &v) || v < 0 || (uint64_t)v > max)
        return bad_value(m, r, f);
    *out = (uint64_t)v;
    return HEDDLE_OK;
}

static heddle_status get_ms(const struct heddle_import *m, const struct heddle_import_rec *r,
                            enum heddle_import_field f, int64_t *out)
{
    *out = HEDDLE_LOG_NONE;
    if (r->value[f] == NULL)
        return HEDDLE_OK;
    if (!heddle_recutils_scaled(r->value[f], MS_TO_NS, out) || *out > TIME_MAX || *out < -TIME_MAX)
        return bad_value(m, r, f);
    return HEDDLE_OK;
}

/* "7" or "2_7". */
static bool parse_id(const char *s, uint64_t *rank, uint64_t *id)
{
    uint64_t v = 0, n = 0;

    *rank = 0;
    for (; *s != '\0'; s++) {
        if (*s == '_' && n > 0 && *rank == 0) {
            if (v > RANK_MAX)
                return false;
            *rank = v + 1;
            v = n = 0;
            continue;
        }
        if (*s < '0' || *s > '9' || ++n > 19)
            return false;
        v = 10 * v + (uint64_t)(*s - '0');
    }
    if (n == 0 || (*rank != 0 && v >> ID_BITS != 0))
        return false;
    *rank -= *rank != 0;
    *id = *rank << ID_BITS | v;
    return true;
}

static heddle_status get_id(const struct heddle_import *m, const struct heddle_import_rec *r,
                            enum heddle_import_field f, uint64_t *rank, uint64_t *id)
{
    char word[HEDDLE_RECUTILS_WORD];
    const char *list = r->value[f];

    if (!heddle_recutils_word(&list, word) || !parse_id(word, rank, id))
        return bad_value(m, r, f);
    return HEDDLE_OK;
}

/* ---- rows ---- */

/* The kernel of a name. */
static heddle_status find_kernel(struct heddle_import *m, const char *name, uint32_t *index)
{
    uint64_t hash = heddle_mix64(heddle_fmt_sum(name, strlen(name)));
    uint64_t *place;

    for (;; hash++) { /* two names of one hash: the next place */
        HEDDLE_TRY(heddle_map_slot(&m->kernel_of, hash, &place));
        if (*place == 0)
            break;
        *index = (uint32_t)*place - 1;
        if (strcmp(m->kernels[*index].name, name) == 0)
            return HEDDLE_OK;
    }
    HEDDLE_TRY(
        heddle_log_grow(m->a, &m->kernels, &m->kernel_cap, m->nkernels + 1, sizeof *m->kernels));
    *index = (uint32_t)m->nkernels;
    m->kernels[m->nkernels++] = (struct heddle_log_kernel){.id = *index, .name = name};
    *place = m->nkernels;
    return HEDDLE_OK;
}

static heddle_status find_handle(struct heddle_import *m, uint64_t address, uint32_t *index)
{
    struct heddle_log_handle *h;
    uint64_t *place;

    HEDDLE_TRY(heddle_map_slot(&m->handle_of, address, &place));
    if (*place == 0) {
        HEDDLE_TRY(heddle_log_grow(m->a, &m->handles, &m->handle_cap, m->nhandles + 1,
                                   sizeof *m->handles));
        h = &m->handles[m->nhandles];
        *h = (struct heddle_log_handle){.id = (uint32_t)m->nhandles + 1,
                                        .parent = (uint32_t)m->nhandles};
        *place = ++m->nhandles;
    }
    *index = (uint32_t)*place - 1;
    return HEDDLE_OK;
}

static heddle_status add_dep(struct heddle_import *m, uint64_t succ, uint64_t pred)
{
    HEDDLE_TRY(heddle_log_grow(m->a, &m->deps, &m->dep_cap, m->ndeps + 1, sizeof *m->deps));
    m->deps[m->ndeps++] = (struct heddle_log_dep){.succ = succ, .pred = pred};
    return HEDDLE_OK;
}

static heddle_status add_attr(struct heddle_import *m, uint64_t task, enum heddle_log_attr_key key,
                              uint64_t value)
{
    HEDDLE_TRY(heddle_log_grow(m->a, &m->attrs, &m->attr_cap, m->nattrs + 1, sizeof *m->attrs));
    m->attrs[m->nattrs++] =
        (struct heddle_log_attr){.task = task, .key = (uint8_t)key, .value = value};
    return HEDDLE_OK;
}

static heddle_status take_deps(struct heddle_import *m, const struct heddle_import_rec *r,
                               uint64_t id)
{
    const char *list = r->value[F_DEPENDS];
    char word[HEDDLE_RECUTILS_WORD];
    uint64_t rank, pred;

    if (list == NULL)
        return HEDDLE_OK;
    while (heddle_recutils_word(&list, word)) {
        if (!parse_id(word, &rank, &pred))
            return heddle_import_refuse(m, r->line[F_DEPENDS], "'%s' is not the number of a task",
                                        word);
        if (pred == id)
            return heddle_import_refuse(m, r->line[F_DEPENDS], "the task depends on itself");
        HEDDLE_TRY(add_dep(m, id, pred));
    }
    return *list == '\0' ? HEDDLE_OK : bad_value(m, r, F_DEPENDS);
}

/* Handles, with their modes and sizes where there are any. */
static heddle_status take_operands(struct heddle_import *m, const struct heddle_import_rec *r,
                                   uint64_t id)
{
    const char *list = r->value[F_HANDLES], *modes = r->value[F_MODES];
    const char *sizes = r->value[F_SIZES];
    char word[HEDDLE_RECUTILS_WORD], other[HEDDLE_RECUTILS_WORD];
    uint64_t address, bytes;
    uint32_t h;

    if (list == NULL)
        return HEDDLE_OK;
    for (unsigned i = 0; heddle_recutils_word(&list, word); i++) {
        if (i > UINT16_MAX || !heddle_recutils_hex(word, &address))
            return bad_value(m, r, F_HANDLES);
        HEDDLE_TRY(find_handle(m, address, &h));
        if (modes != NULL && !heddle_recutils_word(&modes, other))
            return heddle_import_refuse(m, r->line[F_MODES], "there are fewer modes than handles");
        HEDDLE_TRY(heddle_log_grow(m->a, &m->accesses, &m->access_cap, m->naccesses + 1,
                                   sizeof *m->accesses));
        m->accesses[m->naccesses++] = (struct heddle_log_access){
            .task = id,
            .handle = h,
            .operand = (uint16_t)i,
            .mode = (uint8_t)(modes == NULL ? HEDDLE_RW : heddle_mode_of_letters(other))};
        if (sizes == NULL)
            continue;
        if (!heddle_recutils_word(&sizes, other) || heddle_parse_u64(other, &bytes) != HEDDLE_OK)
            return bad_value(m, r, F_SIZES);
        if (bytes > m->handles[h].bytes)
            m->handles[h].bytes = bytes;
    }
    return *list == '\0' ? HEDDLE_OK : bad_value(m, r, F_HANDLES);
}

static heddle_status take_hex(struct heddle_import *m, const struct heddle_import_rec *r,
                              uint64_t id, enum heddle_import_field f, enum heddle_log_attr_key key)
{
    uint64_t v;

    if (r->value[f] == NULL)
        return HEDDLE_OK;
    if (!heddle_recutils_hex(r->value[f], &v))
        return bad_value(m, r, f);
    return add_attr(m, id, key, v);
}

static heddle_status take_attrs(struct heddle_import *m, const struct heddle_import_rec *r,
                                uint64_t id)
{
    const char *list = r->value[F_ITERATION];
    char word[HEDDLE_RECUTILS_WORD];
    uint64_t bits;
    int64_t v;
    double d;

    HEDDLE_TRY(take_hex(m, r, id, F_TAG, HEDDLE_LOG_ATTR_TAG));
    HEDDLE_TRY(take_hex(m, r, id, F_FOOTPRINT, HEDDLE_LOG_ATTR_FOOTPRINT));
    if (r->value[F_GFLOP] != NULL) {
        if (!heddle_recutils_double(r->value[F_GFLOP], &d) || d < 0.0 || d > 1e290)
            return bad_value(m, r, F_GFLOP);
        d *= 1e9;
        memcpy(&bits, &d, sizeof bits);
        if (d > 0.0)
            HEDDLE_TRY(add_attr(m, id, HEDDLE_LOG_ATTR_FLOPS, bits));
    }
    if (list == NULL)
        return HEDDLE_OK;
    /* The outer one of up to two; -1: none. */
    if (!heddle_recutils_word(&list, word) || !heddle_recutils_scaled(word, 0, &v))
        return bad_value(m, r, F_ITERATION);
    return v < 0 ? HEDDLE_OK : add_attr(m, id, HEDDLE_LOG_ATTR_ITERATION, (uint64_t)v);
}

/* Microseconds, one number per worker or one for all. */
static heddle_status take_estimate(const struct heddle_import *m, const struct heddle_import_rec *r,
                                   uint64_t worker, struct heddle_log_task *t)
{
    const char *list = r->value[F_ESTIMATED];
    char word[HEDDLE_RECUTILS_WORD];
    int64_t v;

    if (list == NULL)
        return HEDDLE_OK;
    for (uint64_t i = 0; i <= worker && heddle_recutils_word(&list, word); i++) {
        if (!heddle_recutils_scaled(word, US_TO_NS, &v) || v < 0)
            return bad_value(m, r, F_ESTIMATED);
        t->predicted_ns = (float)v;
    }
    return HEDDLE_OK;
}

/* When and where. */
static heddle_status take_run(struct heddle_import *m, const struct heddle_import_rec *r,
                              uint64_t rank, struct heddle_log_task *t)
{
    uint64_t worker = 0, node = 0;

    HEDDLE_TRY(get_ms(m, r, F_SUBMIT, &t->submit_ns));
    HEDDLE_TRY(get_ms(m, r, F_READY, &t->ready_ns));
    HEDDLE_TRY(get_ms(m, r, F_START, &t->start_ns));
    HEDDLE_TRY(get_ms(m, r, F_END, &t->end_ns));
    HEDDLE_TRY(heddle_import_uint(m, r, F_WORKER, UINT32_MAX, &worker));
    HEDDLE_TRY(heddle_import_uint(m, r, F_NODE, HEDDLE_IMPORT_NODES - 1, &node));
    HEDDLE_TRY(take_estimate(m, r, worker, t));
    t->lane = HEDDLE_LOG_NO_LANE;
    if (t->start_ns == HEDDLE_LOG_NONE || t->end_ns == HEDDLE_LOG_NONE)
        return HEDDLE_OK;
    if (t->end_ns < t->start_ns)
        return heddle_import_refuse(m, r->line[F_END], "the task ends before it starts");
    if (r->value[F_WORKER] == NULL)
        return heddle_import_refuse(m, r->line[F_START],
                                    "the task has a StartTime and no WorkerId");
    return heddle_import_lane(m, rank, worker, node, r->line[F_WORKER], &t->lane);
}

static heddle_status take_task(struct heddle_import *m, const struct heddle_import_rec *r)
{
    struct heddle_log_task t = {0};
    const char *name = r->value[F_NAME], *model = r->value[F_MODEL];
    uint64_t rank, *place, unused;
    int64_t prio = 0;

    if (r->value[F_CONTROL] != NULL)
        return HEDDLE_OK; /* advice about data, not a task */
    if (r->value[F_JOBID] == NULL)
        return heddle_import_refuse(m, r->first, "the record has no JobId");
    HEDDLE_TRY(get_id(m, r, F_JOBID, &rank, &t.id));
    HEDDLE_TRY(heddle_map_slot(&m->tasks_seen, t.id, &place));
    if (*place != 0)
        return heddle_import_refuse(m, r->line[F_JOBID], "there is a task of this JobId before");
    *place = r->line[F_JOBID];
    HEDDLE_TRY(heddle_import_uint(m, r, F_RANK, RANK_MAX, &rank));
    if (model == NULL || model[0] == '\0')
        model = name != NULL && name[0] != '\0' ? name : "task";
    if (name != NULL && strcmp(name, model) != 0)
        t.name = name;
    HEDDLE_TRY(find_kernel(m, model, &t.kernel));
    if (r->value[F_PRIORITY] != NULL && (!heddle_recutils_scaled(r->value[F_PRIORITY], 0, &prio) ||
                                         prio < INT32_MIN || prio > INT32_MAX))
        return bad_value(m, r, F_PRIORITY);
    t.priority = (int32_t)prio;
    if (r->value[F_PARENT] != NULL)
        HEDDLE_TRY(get_id(m, r, F_PARENT, &unused, &t.parent));
    HEDDLE_TRY(take_run(m, r, rank, &t));
    HEDDLE_TRY(take_deps(m, r, t.id));
    HEDDLE_TRY(take_operands(m, r, t.id));
    HEDDLE_TRY(take_attrs(m, r, t.id));
    HEDDLE_TRY(heddle_log_grow(m->a, &m->tasks, &m->task_cap, m->ntasks + 1, sizeof *m->tasks));
    m->tasks[m->ntasks++] = t;
    return HEDDLE_OK;
}

/* ---- records ---- */

static heddle_status take_field(const struct heddle_import *m, const struct heddle_recutils *in,
                                struct heddle_import_rec *r)
{
    for (unsigned f = 0; f < HEDDLE_IMPORT_FIELDS; f++) {
        if (strcmp(in->name, field_name[f]) != 0)
            continue;
        if (r->value[f] != NULL)
            return heddle_import_refuse(m, in->field_line, "the record has two fields %s",
                                        field_name[f]);
        r->value[f] = in->value;
        r->line[f] = in->field_line;
    }
    if (r->first == 0)
        r->first = in->field_line;
    r->is_schema |= in->name[0] == '%';
    return HEDDLE_OK;
}

heddle_status heddle_import_records(struct heddle_import *m, char *text, size_t bytes,
                                    heddle_status (*take)(struct heddle_import *,
                                                          const struct heddle_import_rec *))
{
    struct heddle_import_rec r = {0};
    const char *section = "";
    struct heddle_recutils in;
    enum heddle_recutils_item item;

    heddle_recutils_init(&in, text, bytes);
    do {
        item = heddle_recutils_next(&in);
        if (item == HEDDLE_RECUTILS_BAD)
            return heddle_import_refuse(m, in.field_line, "%s", in.why);
        if (item == HEDDLE_RECUTILS_FIELD) {
            HEDDLE_TRY(take_field(m, &in, &r));
            continue;
        }
        if (r.value[F_SECTION] != NULL)
            section = r.value[F_SECTION];
        r.section = section;
        if (r.first != 0 && !r.is_schema)
            HEDDLE_TRY(take(m, &r));
        r = (struct heddle_import_rec){0};
    } while (item != HEDDLE_RECUTILS_END);
    return HEDDLE_OK;
}

/* ---- the whole ---- */

static heddle_status import_write(struct heddle_import *m, const char *path,
                                  const struct heddle_log_opts *opts)
{
    const struct heddle_log_info info[] = {{"runtime", "StarPU"}};
    struct heddle_log_view v = {.size = sizeof v};

    HEDDLE_TRY(heddle_import_lanes_finish(m));
    v.tasks = m->tasks;
    v.ntasks = m->ntasks;
    v.deps = m->deps;
    v.ndeps = m->ndeps;
    v.accesses = m->accesses;
    v.naccesses = m->naccesses;
    v.attrs = m->attrs;
    v.nattrs = m->nattrs;
    v.kernels = m->kernels;
    v.nkernels = m->nkernels;
    v.handles = m->handles;
    v.nhandles = m->nhandles;
    v.lanes = m->lanes;
    v.nlanes = m->nlanes;
    v.nodes = m->nodes;
    v.nnodes = m->nnodes;
    v.infos = info;
    v.ninfos = 1;
    return heddle_log_compose(&v, path, opts);
}

static void import_free(struct heddle_import *m)
{
    heddle_free(m->a, m->tasks, m->task_cap * sizeof *m->tasks);
    heddle_free(m->a, m->deps, m->dep_cap * sizeof *m->deps);
    heddle_free(m->a, m->accesses, m->access_cap * sizeof *m->accesses);
    heddle_free(m->a, m->attrs, m->attr_cap * sizeof *m->attrs);
    heddle_free(m->a, m->kernels, m->kernel_cap * sizeof *m->kernels);
    heddle_free(m->a, m->handles, m->handle_cap * sizeof *m->handles);
    heddle_import_lanes_fini(m);
    heddle_map_fini(&m->kernel_of);
    heddle_map_fini(&m->handle_of);
    heddle_map_fini(&m->tasks_seen);
}

/* A file that was read. */
struct file {
    uint8_t *p;
    size_t cap;
    size_t bytes;
};

static heddle_status import_read(struct heddle_import *m, struct file *tasks, struct file *platform)
{
    if (platform->p != NULL) {
        m->path = m->platform_path;
        HEDDLE_TRY(
            heddle_import_records(m, (char *)platform->p, platform->bytes, heddle_import_platform));
    }
    m->path = m->tasks_path;
    HEDDLE_TRY(heddle_import_records(m, (char *)tasks->p, tasks->bytes, take_task));
    return heddle_import_check_cycles(m);
}

heddle_status heddle_log_import(const char *tasks_rec, const char *platform_rec, const char *path,
                                const struct heddle_log_opts *opts)
{
    struct heddle_import m = {.tasks_path = tasks_rec, .platform_path = platform_rec};
    struct file tasks = {0}, platform = {0};
    struct heddle_log_opts o;
    heddle_status st;

    HEDDLE_CHECK(tasks_rec != NULL && path != NULL);
    HEDDLE_TRY(HEDDLE_SIZED_GET_OPTS(struct heddle_log_opts, &o, opts));
    m.a = o.allocator;
    m.why = o.why;
    m.why_bytes = o.why_bytes;
    heddle_map_init(&m.kernel_of, m.a);
    heddle_map_init(&m.handle_of, m.a);
    heddle_map_init(&m.tasks_seen, m.a);
    heddle_map_init(&m.lane_of, m.a);
    heddle_map_init(&m.node_of, m.a);
    st = heddle_log_read_file(tasks_rec, "trace", &o, &tasks.p, &tasks.cap, &tasks.bytes);
    if (st == HEDDLE_OK && platform_rec != NULL)
        st = heddle_log_read_file(platform_rec, "file", &o, &platform.p, &platform.cap,
                                  &platform.bytes);
    if (st == HEDDLE_OK)
        st = import_read(&m, &tasks, &platform);
    if (st == HEDDLE_OK)
        st = import_write(&m, path, &o);
    if (st == HEDDLE_ENOMEM)
        (void)heddle_why(m.why, m.why_bytes, st, "There is not enough memory to import '%s'.",
                         tasks_rec);
    import_free(&m);
    heddle_free(m.a, tasks.p, tasks.cap);
    heddle_free(m.a, platform.p, platform.cap);
    return st;
}
