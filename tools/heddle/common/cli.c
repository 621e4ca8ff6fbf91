/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * common/cli: sentences, look-up in tables of commands, and the option parser.
 *
 * Purpose    all commands fail in the same way: one sentence on stderr, exit
 *            status 2 for a wrong command line, 1 for the rest.
 * Invariants (1) an option is set at most to a value inside its bounds
 *            (2) after an error nothing was printed to c->out
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/near.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "common/output.h"

/* --- sentences ----------------------------------------------------------- */

/* One line, whatever names are in it: what is no text is written as C writes it. */
static void put_line(FILE *f, const char *s)
{
    for (; *s != '\0'; s++) {
        const unsigned char ch = (unsigned char)*s;

        if (ch == '\n')
            fputs("\\n", f);
        else if (ch < ' ' || ch == 0x7f)
            fprintf(f, "\\x%02x", ch);
        else
            fputc(ch, f);
    }
}

HEDDLE_PRINTF(2, 0)
static void say(struct cli *c, const char *fmt, va_list ap)
{
    char *text = NULL;
    const int n = vasprintf(&text, fmt, ap);

    fflush(c->out); /* keeps the order when both are one terminal */
    fputs("heddle: ", c->err);
    put_line(c->err, n >= 0 ? text : heddle_status_text(HEDDLE_ENOMEM));
    fputc('\n', c->err);
    if (n >= 0)
        free(text);
}

void cli_warn(struct cli *c, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say(c, fmt, ap);
    va_end(ap);
}

int cli_error(struct cli *c, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say(c, fmt, ap);
    va_end(ap);
    return 2;
}

int cli_fail(struct cli *c, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say(c, fmt, ap);
    va_end(ap);
    return 1;
}

int cli_output_failed(struct cli *c, heddle_status st)
{
    const int e = errno; /* of the write that failed */

    return cli_fail(c, "the output cannot be written: %s",
                    st == HEDDLE_EIO && e != 0 ? strerror(e) : heddle_status_text(st));
}

int cli_usage(struct cli *c, const char *prefix, const struct heddle_cmd *cmd)
{
    fprintf(c->out, "%s %s: %s\n\n%s", prefix, cmd->name, cmd->help, cmd->usage);
    return 0;
}

/* --- tables -------------------------------------------------------------- */

const struct heddle_cmd *cli_find(const struct heddle_cmd *const *table, const char *name)
{
    for (; *table != NULL; table++)
        if (strcmp((*table)->name, name) == 0)
            return *table;
    return NULL;
}

const char *cli_nearest(const struct heddle_cmd *const *table, const char *name)
{
    struct heddle_near n = heddle_near_begin(name);

    for (; *table != NULL; table++)
        heddle_near_look(&n, (*table)->name);
    return n.found;
}

const char *cli_nearest_word(const char *(*word)(size_t i), const char *name)
{
    struct heddle_near n = heddle_near_begin(name);
    const char *w;

    for (size_t i = 0; (w = word(i)) != NULL; i++)
        heddle_near_look(&n, w);
    return n.found;
}

bool cli_wants_help(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

/* --- options ------------------------------------------------------------- */

static int parse_uint(struct cli *c, const struct cli_opt *o, const char *text)
{
    uint64_t v = 0;
    const heddle_status st = heddle_parse_u64(text, &v);

    if (st != HEDDLE_OK || v < o->min || v > o->max)
        return cli_error(c,
                         "%s is '%s', but it must be a whole number from "
                         "%" PRIu64 " to %" PRIu64,
                         o->name, text, o->min, o->max);
    *(uint64_t *)o->out = v;
    return 0;
}

/* Microseconds, with decimals: the parser of durations does it. */
static int parse_us(struct cli *c, const struct cli_opt *o, const char *text)
{
    char buf[64];
    struct heddle_text t;
    uint64_t ns = 0;
    const size_t len = strlen(text);
    bool is_ok = len > 0 && text[len - 1] >= '0' && text[len - 1] <= '9';

    heddle_text_init(&t, buf, sizeof(buf));
    heddle_text_add(&t, "%sus", text);
    is_ok = is_ok && !t.is_truncated && heddle_parse_ns(buf, &ns) == HEDDLE_OK;
    if (!is_ok || ns > o->max * 1000)
        return cli_error(c,
                         "%s is '%s', but it must be a number of microseconds "
                         "from 0 to %" PRIu64,
                         o->name, text, o->max);
    *(double *)o->out = (double)ns;
    return 0;
}

static int parse_value(struct cli *c, const struct cli_opt *o, const char *text)
{
    switch (o->kind) {
    case CLI_UINT: return parse_uint(c, o, text);
    case CLI_NS: return parse_us(c, o, text);
    case CLI_STRING:
    case CLI_INPUT:
    case CLI_OUTPUT:
        if (text[0] == '\0')
            return cli_error(c, "%s needs a value that is not empty", o->name);
        *(const char **)o->out = text;
        return 0;
    case CLI_FLAG: break;
    }
    return cli_error(c, "%s takes no value", o->name);
}

/* The option that `s` names, up to its end or its '='. */
static const struct cli_opt *find_opt(const struct cli_opt *opts, const char *s,
                                      const char **value_out)
{
    const size_t len = strcspn(s, "=");

    *value_out = s[len] == '=' ? s + len + 1 : NULL;
    for (; opts->name != NULL; opts++)
        if (strlen(opts->name) == len && strncmp(opts->name, s, len) == 0)
            return opts;
    return NULL;
}

/* There is no such option. */
static int unknown_option(struct cli *c, const char *what, const char *text,
                          const struct cli_opt *opts)
{
    char name[32];
    const size_t len = strcspn(text, "=");
    struct heddle_near n;

    snprintf(name, sizeof(name), "%.*s", (int)len, text);
    n = heddle_near_begin(name + strspn(name, "-"));
    for (const struct cli_opt *o = opts; len < sizeof(name) && o->name != NULL; o++)
        if (strncmp(o->name, "--", 2) == 0)
            heddle_near_look(&n, o->name + 2);
    heddle_near_look(&n, "json");
    heddle_near_look(&n, "help");
    if (n.found != NULL && len < sizeof(name))
        return cli_error(c, "%s has no option '%s', did you mean '--%s'?", what, name, n.found);
    return cli_error(c, "%s has no option '%.*s', see 'heddle help %s'", what, (int)len, text,
                     what);
}

/* argv[*i] is an option; moves on over its value. */
static int parse_option(struct cli *c, const char *what, int argc, char **argv,
                        const struct cli_opt *opts, int *i)
{
    const char *value = NULL;
    const struct cli_opt *o = find_opt(opts, argv[*i], &value);

    if (strcmp(argv[*i], "--json") == 0) {
        c->json = true;
        return 0;
    }
    if (strncmp(argv[*i], "--json=", 7) == 0)
        return cli_error(c, "--json takes no value");
    if (o == NULL)
        return unknown_option(c, what, argv[*i], opts);
    if (o->kind == CLI_FLAG && value == NULL) {
        *(bool *)o->out = true;
        return 0;
    }
    if (value == NULL && *i + 1 < argc)
        value = argv[++*i];
    if (value == NULL)
        return cli_error(c, "%s needs a value", o->name);
    return parse_value(c, o, value);
}

static const char *value_of(const struct cli_opt *o)
{
    return *(const char *const *)o->out;
}

/* Two outputs in one file: nobody could read it. A pipe or /dev/null takes both. */
static bool is_one_output(const char *a, const char *b)
{
    struct stat sb;

    if (strcmp(a, b) != 0 && !output_is_same(a, b))
        return false;
    return stat(a, &sb) != 0 || S_ISREG(sb.st_mode);
}

/* The output `out` against everything else that the command line names. */
static int check_output(struct cli *c, const struct cli_opt *out, const struct cli_opt *opts,
                        const struct cli_args *args)
{
    int rc = output_check(c, out->name, value_of(out));

    for (const struct cli_opt *o = opts; o->name != NULL && rc == 0; o++) {
        if (o->kind == CLI_INPUT && value_of(o) != NULL)
            rc = output_check_input(c, value_of(out), value_of(o));
        else if (o->kind == CLI_OUTPUT && o->out != out->out && value_of(o) != NULL &&
                 is_one_output(value_of(o), value_of(out)))
            rc = cli_error(c, "%s and %s are one file, '%s'", out->name, o->name, value_of(o));
    }
    for (unsigned i = 0; args != NULL && !args->are_words && i < args->n && rc == 0; i++)
        rc = output_check_input(c, value_of(out), args->operand[i]);
    return rc;
}

static int check_outputs(struct cli *c, const struct cli_opt *opts, const struct cli_args *args)
{
    int rc = 0;

    for (const struct cli_opt *o = opts; o->name != NULL && rc == 0; o++)
        if (o->kind == CLI_OUTPUT && value_of(o) != NULL)
            rc = check_output(c, o, opts, args);
    return rc;
}

/* The options that begin as the word that is being typed. */
static int complete(struct cli *c, const struct cli_opt *opts)
{
    const size_t n = strlen(c->complete);

    for (; opts->name != NULL; opts++)
        if (strncmp(opts->name, c->complete, n) == 0)
            fprintf(c->out, "%s\n", opts->name);
    if (strncmp("--json", c->complete, n) == 0)
        fputs("--json\n", c->out);
    return CLI_COMPLETED;
}

int cli_parse(struct cli *c, const char *what, int argc, char **argv, const struct cli_opt *opts,
              struct cli_args *args)
{
    bool is_rest = false; /* behind "--" */

    if (c->complete != NULL)
        return complete(c, opts);
    for (int i = 1; i < argc; i++) {
        const char *s = argv[i];
        int rc;

        if (!is_rest && strcmp(s, "--") == 0) {
            is_rest = true;
        } else if (!is_rest && s[0] == '-' && s[1] != '\0') {
            rc = parse_option(c, what, argc, argv, opts, &i);
            if (rc != 0)
                return rc;
        } else if (args == NULL || args->n == args->max) {
            return cli_error(c, "%s does not know what to do with '%s'", what, s);
        } else {
            args->operand[args->n++] = s;
        }
    }
    return check_outputs(c, opts, args);
}
