/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ONNX's node tests, with the reference kernels and as tasks: Debian's libonnx-testdata, or the
 * folder in HEDDLE_ONNX_NODES. `onnx_nodes DIR -v` prints a line for each case that does not pass,
 * `onnx_nodes DIR -t` the same with tasks.
 */
#include <dirent.h>

#include "heddle/heddle.h"
#include "heddle/nn.h"
#include "tests/test.h"

/* Cases of Debian's package 1.12 that pass; less is a step back. */
enum { FLOOR = 888, ROWS = 400 };

struct row {
    char op[64];
    unsigned n[3];
};

static struct row *row_of(struct row *rows, const char *op)
{
    for (unsigned i = 0; i < ROWS; i++)
        if (strcmp(rows[i].op, op) == 0 || rows[i].op[0] == '\0') {
            (void)snprintf(rows[i].op, sizeof(rows[i].op), "%s", op);
            return &rows[i];
        }
    return &rows[ROWS - 1];
}

static void count_folder(heddle_ctx *ctx, const char *dir, int verbose, unsigned total[3])
{
    struct row *rows = calloc(ROWS, sizeof(*rows));
    DIR *d = opendir(dir);
    const struct dirent *e;
    char path[1024], op[64], why[400];

    while (d != NULL && (e = readdir(d)) != NULL) {
        enum heddle_nn_verdict v;

        if (e->d_name[0] == '.')
            continue;
        (void)snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
        v = heddle_nn_check(ctx, path, op, why, sizeof(why));
        if (v == HEDDLE_NN_NO_CASE)
            continue;
        total[v]++;
        row_of(rows, op)->n[v]++;
        if (verbose && v != HEDDLE_NN_PASS)
            printf("%s %s: %s\n", v == HEDDLE_NN_FAIL ? "FAIL" : "UNSUPPORTED", e->d_name, why);
    }
    if (d != NULL)
        (void)closedir(d);
    for (unsigned i = 0; i < ROWS && rows[i].op[0] != '\0'; i++)
        if (rows[i].n[HEDDLE_NN_FAIL] + rows[i].n[HEDDLE_NN_UNSUPPORTED] > 0)
            printf("%-28s %3u pass %3u fail %3u unsupported\n", rows[i].op, rows[i].n[0],
                   rows[i].n[1], rows[i].n[2]);
    free(rows);
}

int main(int argc, char **argv)
{
    const char *env = getenv("HEDDLE_ONNX_NODES");
    const char *dir = argc > 1      ? argv[1]
                      : env != NULL ? env
                                    : "/usr/share/libonnx-testdata/data/node";
    const int verbose = argc > 2, with_tasks = argc > 2 && strcmp(argv[2], "-t") == 0;
    const struct heddle_ctx_opts o = {.size = sizeof(o), .nworkers = 3, .models = HEDDLE_OFF};
    unsigned total[2][3] = {{0}}, old[3] = {0};
    heddle_ctx *ctx = NULL;

    CHECK_OK(heddle_ctx_create(&o, &ctx));
    for (int k = 0; k < 2; k++) {
        if (argc > 1 && k != with_tasks)
            continue;
        count_folder(k == 1 ? ctx : NULL, dir, verbose, total[k]);
        printf("%s: %u pass, %u fail, %u unsupported\n", k == 1 ? "tasks" : "reference",
               total[k][0], total[k][1], total[k][2]);
    }
    /* What an exporter of old wrote: opsets before 7. */
    if (argc == 1 && total[0][0] > 0 && env == NULL) {
        count_folder(ctx, "/usr/share/libonnx-testdata/data/pytorch-converted", 1, old);
        printf("pytorch-converted: %u pass, %u fail\n", old[0], old[1]);
    }
    CHECK_OK(heddle_ctx_destroy(ctx));
    if (argc > 1)
        return 0;
    if (total[0][0] + total[0][1] + total[0][2] == 0) {
        printf("skip: no cases in %s (Debian: libonnx-testdata)\n", dir);
        return 77;
    }
    /* Two cases give an input in another shape than the model declares. */
    if (old[HEDDLE_NN_FAIL] + old[HEDDLE_NN_UNSUPPORTED] > 0)
        return 1;
    return total[0][0] >= FLOOR && total[1][0] + 2 >= total[0][0] ? 0 : 1;
}
