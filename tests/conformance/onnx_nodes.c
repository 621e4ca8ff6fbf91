/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ONNX's node tests, with the reference kernels: Debian's libonnx-testdata, or the folder in
 * HEDDLE_ONNX_NODES. `onnx_nodes DIR -v` prints a line for each case that does not pass.
 */
#include <dirent.h>

#include "nn/check.h"
#include "tests/test.h"

/* Cases of Debian's package 1.12 that pass; less is a step back. */
enum { FLOOR = 547, ROWS = 400 };

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

static void count_folder(const char *dir, int verbose, unsigned total[3])
{
    static struct row rows[ROWS];
    DIR *d = opendir(dir);
    const struct dirent *e;
    struct nn_case c;
    char path[1024];

    while (d != NULL && (e = readdir(d)) != NULL) {
        enum nn_verdict v;

        if (e->d_name[0] == '.')
            continue;
        (void)snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
        v = heddle_nn_check_case(path, NULL, NULL, &c);
        if (v == NN_NOTHING)
            continue;
        total[v]++;
        row_of(rows, c.op)->n[v]++;
        if (verbose && v != NN_PASS)
            printf("%s %s: %s\n", v == NN_FAIL ? "FAIL" : "UNSUPPORTED", e->d_name, c.why);
    }
    if (d != NULL)
        (void)closedir(d);
    for (unsigned i = 0; i < ROWS && rows[i].op[0] != '\0'; i++)
        if (rows[i].n[NN_FAIL] + rows[i].n[NN_UNSUPPORTED] > 0)
            printf("%-28s %3u pass %3u fail %3u unsupported\n", rows[i].op, rows[i].n[0],
                   rows[i].n[1], rows[i].n[2]);
}

int main(int argc, char **argv)
{
    const char *env = getenv("HEDDLE_ONNX_NODES");
    const char *dir = argc > 1      ? argv[1]
                      : env != NULL ? env
                                    : "/usr/share/libonnx-testdata/data/node";
    unsigned total[3] = {0};

    count_folder(dir, argc > 2 && strcmp(argv[2], "-v") == 0, total);
    printf("%u pass, %u fail, %u unsupported\n", total[0], total[1], total[2]);
    if (total[0] + total[1] + total[2] == 0) {
        printf("skip: no cases in %s (Debian: libonnx-testdata)\n", dir);
        return 77;
    }
    if (argc > 1)
        return 0;
    return total[NN_PASS] >= FLOOR ? 0 : 1;
}
