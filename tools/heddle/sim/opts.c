/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim/opts: options of the benchmarks that run graphs in virtual time.
 */
#include "sim/opts.h"

#include <string.h>

#include "base/text.h"
#include "heddle/ctx.h"

int sim_take_machines(struct cli *c, int *argc, char **argv, struct sim_machines *out)
{
    int n = 1;

    for (int i = 1; i < *argc; i++) {
        const char *value = NULL;

        if (strcmp(argv[i], "--machine") == 0) {
            if (i + 1 == *argc)
                return cli_error(c, "--machine needs a value");
            value = argv[++i];
        } else if (strncmp(argv[i], "--machine=", 10) == 0) {
            value = argv[i] + 10;
        }
        if (value == NULL) {
            argv[n++] = argv[i];
            continue;
        }
        if (value[0] == '\0')
            return cli_error(c, "--machine needs a value that is not empty");
        if (out->n == SIM_MAX_MACHINES)
            return cli_error(c, "there are more than %d times --machine", SIM_MAX_MACHINES);
        out->source[out->n++] = value;
    }
    *argc = n;
    argv[n] = NULL;
    return 0;
}

int sim_parse_tiles(struct cli *c, const char *text, uint32_t *tiles, unsigned max, unsigned *n_out)
{
    const char *p = text;

    for (*n_out = 0;;) {
        const size_t len = strcspn(p, ",");
        char word[16] = "";
        uint64_t v = 0;

        if (len < sizeof(word))
            snprintf(word, sizeof(word), "%.*s", (int)len, p);
        if (heddle_parse_u64(word, &v) != HEDDLE_OK || v < 1 || v > SIM_MAX_TILES)
            return cli_error(c,
                             "--tiles is '%s', but it must be whole numbers "
                             "from 1 to %d with commas between them",
                             text, SIM_MAX_TILES);
        if (*n_out == max)
            return cli_error(c, "--tiles has more than %u numbers", max);
        tiles[(*n_out)++] = (uint32_t)v;
        if (p[len] == '\0')
            return 0;
        p += len + 1;
    }
}

int sim_check_workload(struct cli *c, const char *name, enum sim_workload *out)
{
    if (sim_workload_find(name, out))
        return 0;
    return cli_error(c,
                     "there is no workload '%s', but cholesky, lu, gemm, random, qr and "
                     "layered",
                     name);
}

bool sim_is_policy(const char *name)
{
    return heddle_sched_get_name(name) != NULL;
}

static const char *policy_name(size_t i)
{
    struct heddle_sched_info s;

    return heddle_sched_get_info((unsigned)i, &s) == HEDDLE_OK ? s.name : NULL;
}

int sim_check_policy(struct cli *c, const char *name)
{
    const char *near;

    if (name == NULL || sim_is_policy(name))
        return 0;
    near = cli_nearest_word(policy_name, name);
    if (near != NULL)
        return cli_error(c, "there is no scheduler '%s', did you mean '%s'?", name, near);
    return cli_error(c, "there is no scheduler '%s', see 'heddle info'", name);
}

static bool is_all(const char *name)
{
    return name != NULL && strcmp(name, "all") == 0;
}

int sim_check_policies(struct cli *c, const char *name)
{
    return is_all(name) ? 0 : sim_check_policy(c, name);
}

int sim_each_policy(const char *name, sim_policy_fn *run, void *user)
{
    struct heddle_sched_info s;
    int rc = 0;

    if (!is_all(name))
        return run(user, name, false);
    for (unsigned i = 0; rc == 0 && heddle_sched_get_info(i, &s) == HEDDLE_OK; i++)
        rc = run(user, s.name, true);
    return rc;
}
