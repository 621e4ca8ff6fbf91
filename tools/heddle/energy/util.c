/* SPDX-License-Identifier: BSD-3-Clause */
/* What the verbs of `heddle energy` share: logs, and the file of a model. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "energy/cmd.h"
#include "heddle/perf.h"
#include "trace/cmd.h"

/* Does this argument take the next one as its value? */
static bool takes_value(const struct cli_opt *opts, const char *arg)
{
    for (const struct cli_opt *o = opts; o->name != NULL; o++)
        if (strcmp(o->name, arg) == 0)
            return o->kind != CLI_FLAG;
    return false;
}

int energy_take_operands(const struct cli_opt *opts, int *argc, char **argv, const char **out,
                         int max)
{
    int n = 0, kept = 1;

    for (int i = 1; i < *argc; i++) {
        const bool is_option = argv[i][0] == '-' && argv[i][1] != '\0';

        if (!is_option && n < max) {
            out[n++] = argv[i];
            continue;
        }
        argv[kept++] = argv[i];
        if (is_option && takes_value(opts, argv[i]) && i + 1 < *argc)
            argv[kept++] = argv[++i];
    }
    argv[kept] = NULL;
    *argc = kept;
    return n;
}

int energy_open_log(struct cli *c, const char *path, heddle_log **out)
{
    const struct cli_args args = {.operand = {path}, .n = 1, .max = 1};
    const int rc = trace_open(c, "log", &args, out);

    if (rc == 0)
        trace_warn_partial(c, path, *out);
    return rc;
}

/* ---- models ---------------------------------------------------------------- */

static const char *info(const heddle_log *log, const char *key)
{
    const struct heddle_log_view *v = heddle_log_get_view(log);

    for (size_t i = 0; i < v->ninfos; i++)
        if (strcmp(v->infos[i].key, key) == 0)
            return v->infos[i].value;
    return NULL;
}

/* A name as a file's, as in docs/formats/model.md. */
static void put_escaped(struct heddle_text *t, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const bool is_plain = (s[i] >= 'A' && s[i] <= 'Z') || (s[i] >= 'a' && s[i] <= 'z') ||
                              (s[i] >= '0' && s[i] <= '9') ||
                              (s[i] != '\0' && strchr("_-.:+=,@", s[i]) != NULL);

        if (is_plain && !(i == 0 && s[i] == '.'))
            heddle_text_mem(t, &s[i], 1);
        else
            heddle_text_add(t, "%%%02X", (unsigned)(unsigned char)s[i]);
    }
}

/* Where the model of a machine is kept; "dir/node.machine" is "node". */
static void path_of_machine(const char *name, char path[ENERGY_PATH])
{
    const char *dir = getenv("HEDDLE_MODEL_DIR"), *dot;
    char cache[ENERGY_PATH];
    struct heddle_text t;
    size_t n;

    if (dir == NULL) {
        heddle_env_cache_dir(cache, sizeof(cache));
        dir = cache;
    }
    if (strrchr(name, '/') != NULL)
        name = strrchr(name, '/') + 1;
    dot = strrchr(name, '.');
    n = dot != NULL && strcmp(dot, ".machine") == 0 ? (size_t)(dot - name) : strlen(name);
    heddle_text_init(&t, path, ENERGY_PATH);
    if (dir[0] == '\0')
        return;
    heddle_text_add(&t, "%s/energy/", dir);
    put_escaped(&t, name, n < 80 ? n : 80);
    heddle_text_str(&t, ".energy");
    if (t.is_truncated)
        path[0] = '\0';
}

void energy_model_path(const heddle_log *log, char path[ENERGY_PATH])
{
    const char *name = info(log, "machine");

    if (name == NULL || name[0] == '\0')
        name = info(log, "host");
    if (name == NULL || name[0] == '\0')
        name = "unknown";
    path_of_machine(name, path);
}

int energy_open_model(struct cli *c, const char *file, const heddle_log *log,
                      char path[ENERGY_PATH], heddle_energy **out)
{
    return energy_open_model_for(c, file, NULL, log, path, out);
}

int energy_open_model_for(struct cli *c, const char *file, const char *machine,
                          const heddle_log *log, char path[ENERGY_PATH], heddle_energy **out)
{
    char why[512] = "";
    struct heddle_text t;
    heddle_status st;

    if (file != NULL) {
        heddle_text_init(&t, path, ENERGY_PATH);
        heddle_text_str(&t, file);
    } else if (machine != NULL) {
        path_of_machine(machine, path);
    } else {
        energy_model_path(log, path);
    }
    if (path[0] == '\0')
        return cli_fail(c, "there is no folder for models: give --model");
    st = heddle_energy_read(NULL, path, out, why, sizeof(why));
    if (st == HEDDLE_ENOENT && file == NULL)
        return cli_fail(c,
                        "there is no energy model of this machine (%s): give "
                        "--model, or make one with 'heddle energy fit --keep'",
                        path);
    return st == HEDDLE_OK ? 0 : cli_fail(c, "%s", why);
}

void energy_make_folders(const char *path)
{
    char dir[ENERGY_PATH];
    struct heddle_text t;

    heddle_text_init(&t, dir, sizeof(dir));
    heddle_text_str(&t, path);
    for (char *p = dir + 1; *p != '\0'; p++)
        if (*p == '/') {
            *p = '\0';
            (void)mkdir(dir, 0700);
            *p = '/';
        }
}

const char *energy_text_joules(char buf[32], double joules)
{
    static const struct {
        double unit;
        const char *name;
    } units[] = {{1e9, "GJ"}, {1e6, "MJ"}, {1e3, "kJ"}, {1, "J"}, {1e-3, "mJ"}, {1e-6, "uJ"}};
    const size_t n = sizeof(units) / sizeof(units[0]);
    struct heddle_text t;
    size_t i = 0;
    double v;

    heddle_text_init(&t, buf, 32);
    if (!isfinite(joules)) {
        heddle_text_str(&t, "-");
        return buf;
    }
    while (i + 1 < n && fabs(joules) < units[i].unit * 0.9995)
        i++;
    if (joules == 0)
        i = 3;
    v = joules / units[i].unit;
    heddle_text_fixed(&t, v, fabs(v) < 9.995 ? 2 : fabs(v) < 99.95 ? 1 : 0);
    heddle_text_add(&t, " %s", units[i].name);
    return buf;
}
