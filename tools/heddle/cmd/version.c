/* SPDX-License-Identifier: BSD-3-Clause */
/* version: the version, and what was built in. */
#include "heddle/version.h"
#include "base/json.h"
#include "cmd/cmd.h"

static int version_run(struct cli *c, int argc, char **argv)
{
    const struct cli_opt opts[] = {{0}};
    const int rc = cli_parse(c, "version", argc, argv, opts, NULL);
    struct heddle_json j;
    heddle_status st;

    if (rc != 0)
        return rc;
    if (!c->json) {
        fprintf(c->out, "heddle %s\n", heddle_version());
        return 0;
    }
    heddle_json_init_file(&j, c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "version");
    heddle_json_key_str(&j, "version", heddle_version());
    heddle_json_key_str(&j, "compiler", heddle_build.compiler);
    heddle_json_key_bool(&j, "hwloc", heddle_build.has_hwloc);
    heddle_json_key_bool(&j, "blas", heddle_build.has_blas);
    heddle_json_key_bool(&j, "cuda", heddle_build.has_cuda);
    heddle_json_end(&j);
    heddle_json_line(&j);
    st = heddle_json_finish(&j);
    return st == HEDDLE_OK ? 0 : cli_output_failed(c, st);
}

const struct heddle_cmd heddle_cmd_version = {
    .name = "version",
    .help = "prints the version",
    .usage = "heddle version [--json]\n",
    .run = version_run,
};
