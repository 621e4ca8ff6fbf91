/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options: what people type: command lines, sizes, times, numbers, lists of cores. The
 * bytes are the words of a command line, with zeros between.
 */
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "heddle/plan.h"
#include "tests/fuzz/fuzz.h"
#include "topo/parse.h"

enum { WORDS = 12 };

static void numbers(const char *s)
{
    uint64_t u;
    int64_t i;
    bool b;
    double d = 0;

    (void)!heddle_parse_u64(s, &u);
    (void)!heddle_parse_i64(s, &i);
    (void)!heddle_parse_bool(s, &b);
    (void)!heddle_parse_size(s, 1 << 20, &u);
    (void)!heddle_parse_ns(s, &u);
    if (heddle_number_finite(s, &d))
        FUZZ_CHECK(isfinite(d));
    if (heddle_plan_parse_rate(s, 1e-3, &d) == HEDDLE_OK)
        FUZZ_CHECK(isfinite(d) && d >= 0);
}

static void command_line(int argc, char **argv, FILE *f)
{
    struct cli c = {.prog = "heddle", .out = f, .err = f};
    const char *in = NULL, *name = NULL;
    uint64_t n = 0;
    double ns = 0;
    bool flag = false;
    const struct cli_opt opts[] = {
        {"--flag", CLI_FLAG, &flag, 0, 0}, {"--name", CLI_STRING, &name, 0, 0},
        {"--in", CLI_INPUT, &in, 0, 0},    {"-n", CLI_UINT, &n, 1, 100},
        {"--us", CLI_NS, &ns, 0, 1000},    {NULL, CLI_FLAG, NULL, 0, 0}};
    struct cli_args args = {.max = 2};

    if (cli_parse(&c, "fuzz", argc, argv, opts, &args) != 0)
        return;
    FUZZ_CHECK(n <= 100 && args.n <= 2 && isfinite(ns));
}

/* One sentence, one line: whatever was typed. */
static void check_lines(FILE *f, const char *text, size_t cap)
{
    const long n = ftell(f);

    fflush(f);
    FUZZ_CHECK(n >= 0 && (size_t)n < cap);
    if (n > 0)
        FUZZ_CHECK(memchr(text, '\n', (size_t)n) == text + n - 1);
}

void fuzz_one(const uint8_t *data, size_t bytes)
{
    static char said[1 << 16];
    char text[1024], *argv[WORDS + 1] = {"fuzz"};
    int argc = 1;
    FILE *f = fmemopen(said, sizeof(said), "w");

    FUZZ_CHECK(f != NULL);
    bytes = bytes < sizeof(text) ? bytes : sizeof(text) - 1;
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    for (size_t at = 0; at <= bytes && argc < WORDS; at += strlen(text + at) + 1)
        argv[argc++] = text + at;
    for (int i = 1; i < argc; i++)
        numbers(argv[i]);
    command_line(argc, argv, f);
    check_lines(f, said, sizeof(said));
    fclose(f);
}
