/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * env: the environment of the process, in one file.
 *
 * Purpose    fills the options of a context from HEDDLE_* variables. One list,
 *            ENV_LIST, is what is read, what `heddle info --env` prints and
 *            what heddle_env_list() returns.
 * Invariants (1) an option that the caller has set is never changed
 *            (2) either all variables apply or, after a malformed one, none
 * Threads    any; getenv() itself asks that no thread changes the environment
 *            at the same time.
 * Errors     HEDDLE_EINVAL with a sentence that names variable and value.
 */
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/near.h"
#include "base/number.h"
#include "base/text.h"
#include "core/ctx.h"
#include "core/env.h"
#include "heddle/machine.h"
#include "heddle/perf.h"

enum env_kind {
    ENV_COUNT,  /* unsigned */
    ENV_LEVEL,  /* int, 0 to 3 */
    ENV_SWITCH, /* enum heddle_switch */
    ENV_SIZE,   /* size_t, bytes */
    ENV_MEMORY, /* the same; a percentage is of the available memory */
    ENV_WORD,   /* const char *; "" counts as not set */
    ENV_FOLDER, /* const char *; "" is a value */
    ENV_SHARE,  /* double, 0 to 1 */
};

/* The kinds in the words of a help text. */
#define ENV_COUNT_VALUE  "integer"
#define ENV_LEVEL_VALUE  "0..3"
#define ENV_SWITCH_VALUE "on|off"
#define ENV_SIZE_VALUE   "size"
#define ENV_MEMORY_VALUE "size or percent"
#define ENV_WORD_VALUE   "text"
#define ENV_FOLDER_VALUE "path"
#define ENV_SHARE_VALUE  "0..1 or percent"

/* X(variable, kind, field of struct heddle_ctx_opts, help) */
#define ENV_LIST(X)                                                                                \
    X("HEDDLE_WORKERS", ENV_COUNT, nworkers, "threads that run tasks; 0: one per usable core")     \
    X("HEDDLE_SCHED", ENV_WORD, sched, "scheduling policy, by name")                               \
    X("HEDDLE_BIND", ENV_SWITCH, bind, "pin workers to cores; default on")                         \
    X("HEDDLE_HELPS", ENV_SWITCH, helps,                                                           \
      "a thread that waits works as one of the workers; default on")                               \
    X("HEDDLE_STACK", ENV_SIZE, stack_bytes, "stack of each worker; default 8M")                   \
    X("HEDDLE_SPIN_US", ENV_COUNT, spin_us,                                                        \
      "microseconds an idle worker spins before it sleeps; default 200")                           \
    X("HEDDLE_WINDOW", ENV_COUNT, window,                                                          \
      "tasks in flight before submission helps to run them; 0: automatic")                         \
    X("HEDDLE_MEMORY", ENV_MEMORY, memory_budget,                                                  \
      "for data the runtime allocates; percent of what is available now, "                         \
      "which is the default")                                                                      \
    X("HEDDLE_LOG", ENV_SWITCH, log, "the always-on recorder; default on")                         \
    X("HEDDLE_LOG_LEVEL", ENV_LEVEL, log_level, "how much the log holds; 0: the default, tasks")   \
    X("HEDDLE_LOG_FILE", ENV_WORD, log_path, "keep the whole log and write it to this file")       \
    X("HEDDLE_ENERGY", ENV_WORD, energy,                                                           \
      "energy counters in a log of level 1: off, auto or a period (20ms)")                         \
    X("HEDDLE_CHECK", ENV_SWITCH, check,                                                           \
      "check what tasks touch against what they declare; slow, default off")                       \
    X("HEDDLE_MODELS", ENV_SWITCH, models,                                                         \
      "time every kernel and keep the history; default: those with a cost")                        \
    X("HEDDLE_MODEL_DIR", ENV_FOLDER, model_dir,                                                   \
      "folder of performance models; empty: keep them in memory")                                  \
    X("HEDDLE_DEVICES", ENV_WORD, devices,                                                         \
      "devices to use besides the cores, by kind or name; 'none': no others")                      \
    X("HEDDLE_DEVICE_MEMORY", ENV_SIZE, device_memory,                                             \
      "bytes of each device to use; default: what is free")                                        \
    X("HEDDLE_DISK", ENV_WORD, disk_path,                                                          \
      "folder for data that exceed HEDDLE_MEMORY; default: none")                                  \
    X("HEDDLE_DISK_BYTES", ENV_SIZE, disk_bytes,                                                   \
      "the most to use of that folder; default: what is free")                                     \
    X("HEDDLE_MACHINE", ENV_WORD, machine, "run in virtual time on the machine of this file")      \
    X("HEDDLE_EXECUTE", ENV_SWITCH, execute,                                                       \
      "in virtual time, call the functions as well; default off")                                  \
    X("HEDDLE_FAULTS", ENV_WORD, faults, "what shall go wrong on purpose, see heddle(7)")          \
    X("HEDDLE_PLACEMENT", ENV_WORD, placement, "placement file for the scheduler replay")          \
    X("HEDDLE_PLAN", ENV_WORD, placement, "the older name of HEDDLE_PLACEMENT")                    \
    X("HEDDLE_ENERGY_MODEL", ENV_WORD, energy_model, "file of an energy model; default: none")     \
    X("HEDDLE_ENERGY_WEIGHT", ENV_SHARE, energy_weight,                                            \
      "how much joules count besides time; default 0")                                             \
    X("HEDDLE_ENERGY_SLACK", ENV_SHARE, energy_slack,                                              \
      "the fewest joules while the run takes longer by this at most")                              \
    X("HEDDLE_POWER_CAP", ENV_WORD, power_cap,                                                     \
      "in virtual time, states of devices, as in cuda0:250W,cuda1:150W")                           \
    X("HEDDLE_WATCHDOG_MS", ENV_COUNT, watchdog_ms,                                                \
      "report a wait without progress after so many milliseconds; 0: never")                       \
    X("HEDDLE_MEMORY_WAITS", ENV_SWITCH, memory_waits,                                             \
      "new data wait for room in HEDDLE_MEMORY; default off")                                      \
    X("HEDDLE_MESSAGES", ENV_WORD, messages,                                                       \
      "where sentences about failures go: stderr, or off, which is the default")

#define ENV_VAR(name, kind, field, help)  {name, kind##_VALUE, help},
#define ENV_RULE(name, kind, field, help) {kind, offsetof(struct heddle_ctx_opts, field)},

/* The same lines twice: for people, and for env_set(). */
static const struct heddle_env_var env_vars[] = {
    ENV_LIST(ENV_VAR){"HEDDLE_CUDA_LIBRARY", "path",
                      "driver library of NVIDIA GPUs to load instead of libcuda.so.1"},
    {"HEDDLE_BLAS_LIBRARY", "path",
     "BLAS with LAPACK for tasks on cores; default: OpenBLAS, MKL, ..."},
    {"HEDDLE_LAPACK", "on|off or integer",
     "libheddle_lapack.so: whether, or from which order on, it takes calls"},
    {NULL, NULL, NULL}};

static const struct env_rule {
    enum env_kind kind;
    size_t offset;
} env_rules[] = {ENV_LIST(ENV_RULE)};

const struct heddle_env_var *heddle_env_list(void)
{
    return env_vars;
}

static heddle_status env_set_count(void *field, const char *value)
{
    unsigned *p = field;
    uint64_t v = 0;

    if (*p != 0)
        return HEDDLE_OK;
    HEDDLE_TRY(heddle_parse_u64(value, &v));
    if (v > UINT_MAX)
        return HEDDLE_EOVERFLOW;
    *p = (unsigned)v;
    return HEDDLE_OK;
}

static heddle_status env_set_level(void *field, const char *value)
{
    int *p = field;
    uint64_t v = 0;

    if (*p != 0)
        return HEDDLE_OK;
    HEDDLE_TRY(heddle_parse_u64(value, &v));
    HEDDLE_CHECK(v <= 3);
    *p = (int)v;
    return HEDDLE_OK;
}

static heddle_status env_set_switch(void *field, const char *value)
{
    enum heddle_switch *p = field;
    bool is_on = false;

    if (*p != HEDDLE_DEFAULT)
        return HEDDLE_OK;
    HEDDLE_TRY(heddle_parse_bool(value, &is_on));
    *p = is_on ? HEDDLE_ON : HEDDLE_OFF;
    return HEDDLE_OK;
}

static heddle_status env_set_bytes(void *field, const char *value, uint64_t total)
{
    size_t *p = field;
    uint64_t v = 0;

    if (*p != 0)
        return HEDDLE_OK;
    HEDDLE_TRY(heddle_parse_size(value, total, &v));
    if (v > SIZE_MAX)
        return HEDDLE_EOVERFLOW;
    if (v == 0)
        return HEDDLE_EINVAL; /* 0 would mean "not given" */
    *p = (size_t)v;
    return HEDDLE_OK;
}

/* Looking at the machine costs milliseconds: only a percentage does. */
static heddle_status env_set_memory(void *field, const char *value)
{
    struct heddle_machine_info m = {.size = sizeof(m)};

    if (*(size_t *)field != 0)
        return HEDDLE_OK;
    if (strchr(value, '%') != NULL) {
        HEDDLE_TRY(heddle_machine_query(&m));
        if (m.memory_available == 0)
            return HEDDLE_ENOSYS;
    }
    return env_set_bytes(field, value, m.memory_available);
}

static heddle_status env_set_share(void *field, const char *value)
{
    double *p = field, v = 0;
    const char *end = NULL;

    if (*p != 0)
        return HEDDLE_OK;
    HEDDLE_CHECK(heddle_number_scan(value, &end, &v));
    if (*end == '%') {
        v /= 100;
        end++;
    }
    HEDDLE_CHECK(*end == '\0' && v >= 0 && v <= 1);
    *p = v;
    return HEDDLE_OK;
}

static heddle_status env_set_text(void *field, const char *value)
{
    const char **p = field;

    if (*p == NULL)
        *p = value;
    return HEDDLE_OK;
}

static heddle_status env_set(enum env_kind kind, void *field, const char *value)
{
    if (value == NULL || (value[0] == '\0' && kind != ENV_FOLDER))
        return HEDDLE_OK;
    switch (kind) {
    case ENV_COUNT: return env_set_count(field, value);
    case ENV_LEVEL: return env_set_level(field, value);
    case ENV_SWITCH: return env_set_switch(field, value);
    case ENV_SIZE: return env_set_bytes(field, value, 0);
    case ENV_MEMORY: return env_set_memory(field, value);
    case ENV_SHARE: return env_set_share(field, value);
    case ENV_WORD:
    case ENV_FOLDER: return env_set_text(field, value);
    }
    return HEDDLE_OK;
}

static void env_explain(const struct heddle_env_var *var, const char *value, heddle_status st,
                        char *why, size_t cap)
{
    struct heddle_text t;

    heddle_text_init(&t, why, cap);
    heddle_text_add(&t, "the environment variable %s is \"%.60s\", ", var->name, value);
    if (st == HEDDLE_EOVERFLOW)
        heddle_text_str(&t, "which is too large");
    else if (st == HEDDLE_EINVAL)
        heddle_text_add(&t, "which is not of the form: %s", var->value);
    else
        heddle_text_str(&t, "but the available memory is not known");
}

heddle_status heddle_env_apply(struct heddle_ctx_opts *opts, char *why, size_t cap)
{
    struct heddle_ctx_opts o = *opts;

    if (cap > 0)
        why[0] = '\0';
    if (o.ignore_env)
        return HEDDLE_OK;
    for (size_t i = 0; i < sizeof(env_rules) / sizeof(env_rules[0]); i++) {
        const char *value = getenv(env_vars[i].name);
        heddle_status st = env_set(env_rules[i].kind, (char *)&o + env_rules[i].offset, value);

        if (st == HEDDLE_OK)
            continue;
        if (cap > 0)
            env_explain(&env_vars[i], value, st, why, cap);
        return st == HEDDLE_EOVERFLOW ? HEDDLE_EINVAL : st;
    }
    *opts = o; /* invariant (2) */
    return HEDDLE_OK;
}

/* Does the list have a variable of this name? If not, *near_out is the nearest one or NULL. */
static bool env_knows(const char *name, const char **near_out)
{
    struct heddle_near n = heddle_near_begin(name);

    for (const struct heddle_env_var *v = env_vars; v->name != NULL; v++) {
        if (strcmp(v->name, name) == 0)
            return true;
        heddle_near_look(&n, v->name);
    }
    *near_out = n.found;
    return false;
}

void heddle_env_report_unknown(heddle_message_fn message, void *user)
{
    static const char prefix[] = "HEDDLE_";

    for (char **e = environ; e != NULL && *e != NULL; e++) {
        const size_t n = strcspn(*e, "=");
        const char *near = NULL;
        char name[64], text[200];

        if (strncmp(*e, prefix, sizeof(prefix) - 1) != 0)
            continue;
        snprintf(name, sizeof(name), "%.*s", n < sizeof(name) ? (int)n : (int)sizeof(name) - 1, *e);
        if (env_knows(name, &near))
            continue;
        snprintf(text, sizeof(text), "the environment variable %s is not known%s%s%s", name,
                 near != NULL ? ", did you mean " : "", near != NULL ? near : "",
                 near != NULL ? "?" : "");
        message(user, HEDDLE_WARNING, text);
    }
}

void heddle_env_cache_dir(char *buf, size_t bytes)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    struct heddle_text t;

    if (bytes == 0)
        return;
    heddle_text_init(&t, buf, bytes);
    /* The XDG base directory rules: a relative path counts as not set. */
    if (cache != NULL && cache[0] == '/')
        heddle_text_add(&t, "%s/heddle", cache);
    else if (home != NULL && home[0] == '/')
        heddle_text_add(&t, "%s/.cache/heddle", home);
    if (t.is_truncated) /* another folder than the one that was meant */
        heddle_text_clear(&t);
}

const char *heddle_env_value(const char *name)
{
    const char *value = NULL;

    for (const struct heddle_env_var *v = env_vars; v->name != NULL; v++)
        if (name != NULL && strcmp(v->name, name) == 0)
            value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

const char *heddle_env_library(const char *variable)
{
    const char *path = variable != NULL ? getenv(variable) : NULL;

    return path != NULL && path[0] != '\0' ? path : NULL;
}
