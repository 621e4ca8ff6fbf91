/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace/cert: files that prove lower bounds.
 *
 * Reading takes nothing for granted: a file has at most 1 GiB, counts do not reserve
 * memory, numbers are finite, and what is missing at the end is a failure.
 */
#include "trace/cert.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/number.h"
#include "base/text.h"
#include "common/output.h"

#define MAGIC      "heddle-certificate"
#define FILE_BYTES ((size_t)1 << 30)
enum { VERSION = 1, WORDS = 7 };

/* --- writing -------------------------------------------------------------- */

static void put_double(FILE *f, double v)
{
    char s[40];
    struct heddle_text t;

    heddle_text_init(&t, s, sizeof(s));
    heddle_text_double(&t, v);
    fputc(' ', f);
    fputs(s, f);
}

static void put_cert(FILE *f, enum heddle_bound_kind kind, const struct heddle_bound_cert *c)
{
    fprintf(f, "bound %s", heddle_bound_kind_name(kind));
    put_double(f, c->value);
    put_double(f, c->head);
    put_double(f, c->tail);
    fprintf(f, " %" PRIu32 " %" PRIu32 "\nprice", c->nstarts, c->nedges);
    for (uint32_t i = 0; i < c->ntypes; i++)
        put_double(f, c->price[i]);
    fputc('\n', f);
    for (uint32_t i = 0; i < c->nstarts; i++) {
        fprintf(f, "s %" PRIu32, c->start[i]);
        put_double(f, c->start_flow[i]);
        fputc('\n', f);
    }
    for (uint32_t i = 0; i < c->nedges; i++) {
        fprintf(f, "e %" PRIu32, c->edge[i]);
        put_double(f, c->edge_flow[i]);
        fputc('\n', f);
    }
}

static void put_head(FILE *f, const struct run_bound *b, enum heddle_log_durations durations,
                     const char *machine)
{
    const struct heddle_log_graph *g = b->g;

    fprintf(f, MAGIC " %d\n", VERSION);
    fprintf(f, "digest %016" PRIx64 "\n", g->digest);
    fprintf(f, "durations %s\n", heddle_log_durations_name(durations));
    if (machine != NULL)
        fprintf(f, "machine %s\n", machine);
    fprintf(f, "graph %" PRIu32 " %" PRIu32 " %" PRIu32 "\n", g->graph.ntasks, g->graph.nedges,
            g->graph.ntypes);
    fprintf(f, "makespan %" PRId64 "\n", g->makespan_ns);
}

int cert_write(struct cli *c, const struct run_bound *b, const char *path,
               enum heddle_log_durations durations, const char *machine)
{
    struct output o;
    int rc;

    if (machine != NULL && strchr(machine, '\n') != NULL)
        return cli_fail(c, "the name of the machine has two lines");
    rc = output_begin_stream(&o, c, path);
    if (rc != 0)
        return rc;
    put_head(o.f, b, durations, machine);
    for (int k = 0; k < HEDDLE_BOUND_KINDS; k++)
        put_cert(o.f, (enum heddle_bound_kind)k, &b->r.cert[k]);
    fputs("end\n", o.f);
    return output_end(&o, 0);
}

/* --- reading -------------------------------------------------------------- */

struct reader {
    const char *path;
    char *line; /* at hand */
    char *rest; /* behind it */
    size_t left;
    uint64_t n; /* of the line */
    char *word[WORDS];
    unsigned nwords;
    char *why;
    size_t why_bytes;
};

HEDDLE_PRINTF(2, 3)
static heddle_status bad(struct reader *r, const char *fmt, ...)
{
    char what[160];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    snprintf(r->why, r->why_bytes, "%s:%" PRIu64 ": %s", r->path, r->n, what);
    return HEDDLE_EFORMAT;
}

/* The next line without its newline. One that has none was cut. */
static heddle_status next_line(struct reader *r)
{
    char *const end = memchr(r->rest, '\n', r->left);

    r->n++;
    if (end == NULL)
        return bad(r, "the certificate ends here, it was cut");
    *end = '\0';
    r->line = r->rest;
    r->rest = end + 1;
    r->left -= (size_t)(r->rest - r->line);
    if (strlen(r->line) != (size_t)(end - r->line))
        return bad(r, "a byte that no certificate has");
    return HEDDLE_OK;
}

/* The line as words: `key` first, then `n` more. */
static heddle_status split(struct reader *r, const char *key, unsigned n)
{
    char *s, *rest;

    r->nwords = 0;
    for (s = strtok_r(r->line, " ", &rest); s != NULL && r->nwords < WORDS;
         s = strtok_r(NULL, " ", &rest))
        r->word[r->nwords++] = s;
    if (r->nwords != n + 1 || s != NULL || strcmp(r->word[0], key) != 0)
        return bad(r, "a line '%s' with %u numbers or words should be here", key, n);
    return HEDDLE_OK;
}

static heddle_status next_words(struct reader *r, const char *key, unsigned n)
{
    const heddle_status st = next_line(r);

    return st == HEDDLE_OK ? split(r, key, n) : st;
}

static heddle_status read_uint(struct reader *r, const char *s, uint64_t max, uint64_t *out)
{
    if (heddle_parse_u64(s, out) != HEDDLE_OK || *out > max)
        return bad(r, "'%.40s' is not a number up to %" PRIu64, s, max);
    return HEDDLE_OK;
}

static heddle_status read_double(struct reader *r, const char *s, double *out)
{
    if (!heddle_number_finite(s, out) || *out < 0)
        return bad(r, "'%.40s' is not a number that is finite and not below 0", s);
    return HEDDLE_OK;
}

static heddle_status read_prices(struct reader *r, struct cert_file *f, struct heddle_bound_cert *c)
{
    double *price = calloc(f->ntypes + 1, sizeof(*price));
    heddle_status st = next_line(r);
    char *s, *rest;

    c->price = price;
    if (price == NULL)
        return HEDDLE_ENOMEM;
    if (st != HEDDLE_OK)
        return st;
    s = strtok_r(r->line, " ", &rest);
    if (s == NULL || strcmp(s, "price") != 0)
        return bad(r, "a line 'price' should be here");
    c->ntypes = (uint32_t)f->ntypes;
    for (uint32_t i = 0; i < c->ntypes; i++) {
        s = strtok_r(NULL, " ", &rest);
        if (s == NULL)
            return bad(r, "there are fewer prices than types of workers");
        st = read_double(r, s, &price[i]);
        if (st != HEDDLE_OK)
            return st;
    }
    if (strtok_r(NULL, " ", &rest) != NULL)
        return bad(r, "there are more prices than types of workers");
    return HEDDLE_OK;
}

/* `n` lines of an index below `max` and a flow. What was read is in the arrays
 * in every case. */
static heddle_status read_flows(struct reader *r, const char *key, uint64_t n, uint64_t max,
                                const uint32_t **index_out, const double **flow_out)
{
    uint32_t *index = NULL;
    double *flow = NULL;
    size_t cap = 0;

    for (uint64_t i = 0; i < n; i++) {
        heddle_status st = next_words(r, key, 2);
        uint64_t at = 0;

        if (st == HEDDLE_OK && i == cap) {
            uint32_t *more;
            double *flows;

            cap = 2 * cap + 64;
            more = realloc(index, cap * sizeof(*index));
            index = more != NULL ? more : index;
            *index_out = index;
            flows = realloc(flow, cap * sizeof(*flow));
            flow = flows != NULL ? flows : flow;
            *flow_out = flow;
            if (more == NULL || flows == NULL)
                return HEDDLE_ENOMEM;
        }
        if (st == HEDDLE_OK)
            st = read_uint(r, r->word[1], max - 1, &at);
        if (st == HEDDLE_OK)
            st = read_double(r, r->word[2], &flow[i]);
        if (st != HEDDLE_OK)
            return st;
        index[i] = (uint32_t)at;
    }
    return HEDDLE_OK;
}

static heddle_status read_cert(struct reader *r, struct cert_file *f, enum heddle_bound_kind kind)
{
    struct heddle_bound_cert *c = &f->cert[kind];
    uint64_t ns = 0, ne = 0;
    heddle_status st = next_words(r, "bound", 6);

    if (st == HEDDLE_OK && strcmp(r->word[1], heddle_bound_kind_name(kind)) != 0)
        st = bad(r, "the bound '%s' should be here", heddle_bound_kind_name(kind));
    if (st == HEDDLE_OK)
        st = read_double(r, r->word[2], &c->value);
    if (st == HEDDLE_OK)
        st = read_double(r, r->word[3], &c->head);
    if (st == HEDDLE_OK)
        st = read_double(r, r->word[4], &c->tail);
    if (st == HEDDLE_OK)
        st = read_uint(r, r->word[5], f->ntasks, &ns);
    if (st == HEDDLE_OK)
        st = read_uint(r, r->word[6], f->nedges, &ne);
    if (st == HEDDLE_OK)
        st = read_prices(r, f, c);
    if (st == HEDDLE_OK)
        st = read_flows(r, "s", ns, f->ntasks, &c->start, &c->start_flow);
    if (st == HEDDLE_OK)
        st = read_flows(r, "e", ne, f->nedges, &c->edge, &c->edge_flow);
    c->nstarts = (uint32_t)ns;
    c->nedges = (uint32_t)ne;
    f->has[kind] = st == HEDDLE_OK;
    return st;
}

static heddle_status read_version(struct reader *r)
{
    uint64_t version = 0;

    if (next_words(r, MAGIC, 1) != HEDDLE_OK) {
        snprintf(r->why, r->why_bytes, "'%s' is not a certificate", r->path);
        return HEDDLE_EFORMAT;
    }
    if (heddle_parse_u64(r->word[1], &version) != HEDDLE_OK || version == 0)
        return bad(r, "'%.20s' is not a version", r->word[1]);
    if (version > VERSION) {
        (void)bad(r, "version %" PRIu64 " is newer than this heddle", version);
        return HEDDLE_EVERSION;
    }
    return HEDDLE_OK;
}

static heddle_status read_digest(struct reader *r, uint64_t *out)
{
    heddle_status st = next_words(r, "digest", 1);
    char *end;

    if (st != HEDDLE_OK)
        return st;
    errno = 0;
    *out = strtoull(r->word[1], &end, 16);
    if (strlen(r->word[1]) != 16 || *end != '\0' || errno != 0 ||
        strspn(r->word[1], "0123456789abcdef") != 16)
        return bad(r, "a digest has 16 hexadecimal digits");
    return HEDDLE_OK;
}

/* "machine NAME", which may be missing, and "graph ...". */
static heddle_status read_graph(struct reader *r, struct cert_file *f)
{
    heddle_status st = next_line(r);

    if (st == HEDDLE_OK && strncmp(r->line, "machine ", 8) == 0) {
        f->machine = strdup(r->line + 8);
        if (f->machine == NULL)
            return HEDDLE_ENOMEM;
        st = next_line(r);
    }
    if (st == HEDDLE_OK)
        st = split(r, "graph", 3);
    if (st == HEDDLE_OK)
        st = read_uint(r, r->word[1], UINT32_MAX, &f->ntasks);
    if (st == HEDDLE_OK)
        st = read_uint(r, r->word[2], UINT32_MAX, &f->nedges);
    if (st == HEDDLE_OK)
        st = read_uint(r, r->word[3], HEDDLE_BOUND_TYPES_MAX, &f->ntypes);
    return st;
}

static heddle_status read_all(struct reader *r, struct cert_file *f)
{
    heddle_status st = read_version(r);
    uint64_t makespan = 0;

    if (st == HEDDLE_OK)
        st = read_digest(r, &f->digest);
    if (st == HEDDLE_OK)
        st = next_words(r, "durations", 1);
    if (st == HEDDLE_OK && heddle_log_durations_find(r->word[1], &f->durations) != HEDDLE_OK)
        st = bad(r, "'%.40s' are no durations", r->word[1]);
    if (st == HEDDLE_OK)
        st = read_graph(r, f);
    if (st == HEDDLE_OK)
        st = next_words(r, "makespan", 1);
    if (st == HEDDLE_OK)
        st = read_uint(r, r->word[1], INT64_MAX, &makespan);
    f->makespan_ns = (int64_t)makespan;
    for (int k = 0; k < HEDDLE_BOUND_KINDS && st == HEDDLE_OK; k++)
        st = read_cert(r, f, (enum heddle_bound_kind)k);
    if (st == HEDDLE_OK)
        st = next_words(r, "end", 0);
    if (st == HEDDLE_OK && r->left > 0) {
        r->n++;
        st = bad(r, "there is more behind the end");
    }
    return st;
}

heddle_status cert_read(const char *path, struct cert_file *f, char *why, size_t why_bytes)
{
    struct reader r = {.path = path, .why = why, .why_bytes = why_bytes};
    const char *what = "";
    char *text = NULL;
    size_t len = 0;
    heddle_status st = heddle_file_read(path, FILE_BYTES, NULL, &text, &len, &what);

    *f = (struct cert_file){0};
    if (st != HEDDLE_OK) {
        snprintf(why, why_bytes, "the certificate '%s' cannot be read: %s", path, what);
        return st;
    }
    r.rest = text;
    r.left = len;
    st = read_all(&r, f);
    if (st == HEDDLE_ENOMEM)
        snprintf(why, why_bytes, "no memory for the certificate '%s'", path);
    heddle_free(NULL, text, len + 1);
    return st;
}

void cert_free(struct cert_file *f)
{
    for (int k = 0; k < HEDDLE_BOUND_KINDS; k++) {
        free((void *)(uintptr_t)f->cert[k].price);
        free((void *)(uintptr_t)f->cert[k].start);
        free((void *)(uintptr_t)f->cert[k].start_flow);
        free((void *)(uintptr_t)f->cert[k].edge);
        free((void *)(uintptr_t)f->cert[k].edge_flow);
    }
    free(f->machine);
    *f = (struct cert_file){0};
}
