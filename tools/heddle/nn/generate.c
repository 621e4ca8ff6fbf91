/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * generate: a prompt, then its tokens as they come.
 *
 * Output  the tokens in one line, and how fast the prompt was read and tokens came; with --json one
 *         object.
 */
#include "nn/generate.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "heddle/decoder.h"
#include "nn/npy.h"

struct prompt {
    int64_t *id;
    size_t n;
};

/* What came, and when. */
struct answer {
    int64_t *token;
    size_t n;
    uint64_t read_ns, decode_ns, slowest_ns; /* slowest: of one token behind the first */
    bool is_silent;                          /* the tokens are known already */
    const char *end;                         /* why there are no more */
    struct heddle_decoder_info info;
};

/* --- the command line ---------------------------------------------------------------- */

static int read_number(struct cli *c, const char *name, const char *text, double *out)
{
    char *end;

    if (text == NULL)
        return 0;
    errno = 0;
    *out = strtod(text, &end);
    if (end == text || *end != '\0' || errno != 0 || !isfinite(*out))
        return cli_error(c, "run: '%s' is no number for %s", text, name);
    return 0;
}

static int read_choice(struct cli *c, const struct generate *g, struct heddle_decoder_choice *out)
{
    double temperature = 0, top_p = 0;
    const bool draws = g->temperature != NULL || g->top_k > 0 || g->top_p != NULL;
    int rc = read_number(c, "--temperature", g->temperature, &temperature);

    if (rc == 0)
        rc = read_number(c, "--top-p", g->top_p, &top_p);
    if (rc != 0)
        return rc;
    if (g->is_greedy && draws)
        return cli_error(c, "run: --greedy takes the highest score: it goes with no --temperature, "
                            "--top-k and --top-p");
    if (temperature < 0 || top_p < 0 || top_p > 1)
        return cli_error(c, "run: --temperature is not below 0, and --top-p from 0 to 1");
    if (draws && g->temperature == NULL)
        temperature = 1;
    *out = (struct heddle_decoder_choice){.size = sizeof(*out),
                                          .temperature = temperature,
                                          .top_k = (unsigned)g->top_k,
                                          .top_p = top_p,
                                          .seed = g->seed};
    return 0;
}

/* -1: none is given. */
static int read_stop(struct cli *c, const struct generate *g, int64_t *out)
{
    double stop = -1;
    const int rc = read_number(c, "--eos", g->stop, &stop);

    if (rc == 0 && g->stop != NULL && !(stop >= 0 && stop <= 0x1p53 && stop == floor(stop)))
        return cli_error(c, "run: '%s' is no token for --eos", g->stop);
    *out = rc == 0 ? (int64_t)stop : -1;
    return rc;
}

static int prompt_text(struct cli *c, const char *text, struct prompt *p)
{
    p->id = calloc(strlen(text) / 2 + 1, sizeof(*p->id));
    if (p->id == NULL)
        return cli_fail(c, "no memory for the prompt");
    for (const char *s = text;; s++) {
        char *end;

        errno = 0;
        p->id[p->n++] = strtoll(s, &end, 10);
        if (end == s || (*end != ',' && *end != '\0') || errno != 0)
            return cli_error(c, "run: '%s' is no list of tokens: write 1,2,3", text);
        s = end;
        if (*s == '\0')
            return 0;
    }
}

static int prompt_file(struct cli *c, const char *path, struct prompt *p)
{
    static const char name[] = "input_ids=";
    struct heddle_nn_tensor t = {0};
    const char *what = NULL;
    int rc = 0;

    if (strncmp(path, name, sizeof(name) - 1) == 0)
        path += sizeof(name) - 1;
    if (!npy_read(path, &t, &what))
        return cli_fail(c, "%s: %s", path, what);
    p->n = heddle_nn_type_size(t.type) > 0 ? t.bytes / heddle_nn_type_size(t.type) : 0;
    p->id = calloc(p->n > 0 ? p->n : 1, sizeof(*p->id));
    if (p->id == NULL)
        rc = cli_fail(c, "no memory for the prompt");
    else if ((t.type != HEDDLE_NN_I64 && t.type != HEDDLE_NN_I32) ||
             (t.ndim > 0 && (size_t)t.dim[t.ndim - 1] != p->n))
        rc = cli_fail(c, "%s: a prompt is one row of int64 or int32", path);
    for (size_t i = 0; i < p->n && rc == 0; i++)
        p->id[i] =
            t.type == HEDDLE_NN_I64 ? ((const int64_t *)t.data)[i] : ((const int32_t *)t.data)[i];
    npy_free(&t);
    return rc;
}

static int read_prompt(struct cli *c, const struct generate *g, struct prompt *p)
{
    if (g->prompt_ids != NULL && g->input != NULL)
        return cli_error(c, "run: --prompt-ids and --input are two prompts");
    if (g->prompt_ids != NULL)
        return prompt_text(c, g->prompt_ids, p);
    if (g->input != NULL)
        return prompt_file(c, g->input, p);
    return cli_error(c, "run: which prompt? Give --prompt-ids 1,2,3 or --input FILE.npy");
}

/* --- tokens ---------------------------------------------------------------------------- */

static int run_steps(struct cli *c, heddle_decoder *d, const struct generate *g, int64_t stop,
                     struct answer *a)
{
    while (a->n < g->count) {
        const uint64_t t0 = heddle_clock_ns();
        struct heddle_decoder_token t;
        unsigned n = 0;
        const heddle_status st = heddle_decoder_step(d, &t, 1, &n);
        const uint64_t ns = heddle_clock_ns() - t0;

        if (st != HEDDLE_OK || n != 1)
            return cli_fail(c, "%s", heddle_status_text(st));
        if (t.st == HEDDLE_EOVERFLOW && a->n > 0) { /* what came is good */
            cli_warn(c, "the end after %zu tokens: %s", a->n, heddle_decoder_why(d));
            a->end = "length";
            return 0;
        }
        if (t.st != HEDDLE_OK && a->n > 0 && !c->json && !a->is_silent)
            fprintf(c->out, "\n");
        if (t.st != HEDDLE_OK)
            return cli_fail(c, "%s", heddle_decoder_why(d));
        *(a->n == 0 ? &a->read_ns : &a->decode_ns) += ns;
        if (a->n > 0 && ns > a->slowest_ns)
            a->slowest_ns = ns;
        a->token[a->n++] = t.token;
        if (!c->json && !a->is_silent) {
            fprintf(c->out, "%s%" PRId64, a->n > 1 ? " " : "", t.token);
            (void)fflush(c->out);
        }
        if (t.token == stop) {
            a->end = "stop";
            return 0;
        }
    }
    return 0;
}

static double rate(size_t n, uint64_t ns)
{
    return ns > 0 ? (double)n * 1e9 / (double)ns : 0;
}

static int report(struct cli *c, const struct prompt *p, const struct answer *a)
{
    const size_t n = a->n > 0 ? a->n - 1 : 0; /* the first one comes with the prompt */
    struct heddle_json j;
    heddle_status st;

    if (!c->json) {
        fprintf(c->out,
                "\nprompt: %zu tokens in %.3f ms, %.1f tokens/s; then %zu tokens in %.3f ms, "
                "%.1f tokens/s (slowest %.3f ms)\n",
                p->n, (double)a->read_ns / 1e6, rate(p->n, a->read_ns), n,
                (double)a->decode_ns / 1e6, rate(n, a->decode_ns), (double)a->slowest_ns / 1e6);
        fprintf(c->out, "keys and values: %s",
                a->info.is_in_place ? "in place"
                : a->info.has_past  ? "passed from token to token"
                                    : "none, the whole sequence is read for each token");
        if (a->info.room_bytes > 0)
            fprintf(c->out, ", %.2f MiB", (double)a->info.room_bytes / 1048576);
        fprintf(c->out, "\n");
        return 0;
    }
    heddle_json_init_file(&j, c->out);
    heddle_json_object(&j);
    heddle_json_key(&j, "tokens");
    heddle_json_array(&j);
    for (size_t i = 0; i < a->n; i++)
        heddle_json_int(&j, a->token[i]);
    heddle_json_end(&j);
    heddle_json_key_str(&j, "end", a->end);
    heddle_json_key_uint(&j, "prompt_tokens", p->n);
    heddle_json_key_double(&j, "prefill_ms", (double)a->read_ns / 1e6);
    heddle_json_key_double(&j, "prefill_tokens_per_s", rate(p->n, a->read_ns));
    heddle_json_key_uint(&j, "decode_tokens", n);
    heddle_json_key_double(&j, "decode_ms", (double)a->decode_ns / 1e6);
    heddle_json_key_double(&j, "decode_tokens_per_s", rate(n, a->decode_ns));
    heddle_json_key_double(&j, "slowest_token_ms", (double)a->slowest_ns / 1e6);
    heddle_json_key_str(&j, "past",
                        a->info.is_in_place ? "in place"
                        : a->info.has_past  ? "passed"
                                            : "none");
    heddle_json_key_uint(&j, "past_bytes", a->info.room_bytes);
    heddle_json_end(&j);
    heddle_json_line(&j);
    st = heddle_json_finish(&j);
    return st == HEDDLE_OK ? 0 : cli_output_failed(c, st);
}

/* The scores of the last token. */
static int write_logits(struct cli *c, const heddle_decoder *d, const char *path, unsigned sequence)
{
    size_t n = 0;
    const float *v = heddle_decoder_get_logits(d, sequence, &n);
    const struct heddle_nn_tensor t = {.type = HEDDLE_NN_F32,
                                       .ndim = 1,
                                       .dim = {(int64_t)n},
                                       .data = (void *)(uintptr_t)v,
                                       .bytes = n * sizeof(*v)};

    if (v != NULL && !npy_write(path, &t))
        return cli_fail(c, "%s: %s", path, strerror(errno));
    return 0;
}

/* One generation after the other; the fastest counts. The first one makes plans. */
static int run_repeats(struct cli *c, heddle_decoder *d, const struct generate *g,
                       const struct heddle_decoder_choice *choice, int64_t stop,
                       const struct prompt *p, struct answer *a)
{
    uint64_t read_ns = UINT64_MAX, decode_ns = UINT64_MAX, slowest_ns = UINT64_MAX;
    unsigned sequence = 0;
    int rc = 0;

    for (uint64_t i = 0; i < g->repeat && rc == 0; i++) {
        heddle_decoder_end(d, sequence); /* of the round before */
        a->n = 0;
        a->read_ns = a->decode_ns = a->slowest_ns = 0;
        a->is_silent = i > 0;
        if (heddle_decoder_begin(d, p->id, p->n, p->n + g->count, choice, &sequence) != HEDDLE_OK)
            return cli_fail(c, "%s", heddle_decoder_why(d));
        rc = run_steps(c, d, g, stop, a);
        read_ns = a->read_ns < read_ns ? a->read_ns : read_ns;
        decode_ns = a->decode_ns < decode_ns ? a->decode_ns : decode_ns;
        slowest_ns = a->slowest_ns < slowest_ns ? a->slowest_ns : slowest_ns;
    }
    a->read_ns = read_ns;
    a->decode_ns = decode_ns;
    a->slowest_ns = slowest_ns;
    return rc == 0 && g->logits != NULL ? write_logits(c, d, g->logits, sequence) : rc;
}

static int run_decoder(struct cli *c, heddle_decoder *d, const struct generate *g,
                       const struct heddle_decoder_choice *choice, int64_t stop,
                       const struct prompt *p)
{
    struct answer a = {.end = "count", .info = {.size = sizeof(a.info)}};
    int rc;

    a.token = calloc(g->count, sizeof(*a.token));
    if (a.token == NULL)
        return cli_fail(c, "no memory for %" PRIu64 " tokens", g->count);
    rc = run_repeats(c, d, g, choice, stop, p, &a);
    if (rc == 0 && heddle_decoder_get_info(d, &a.info) == HEDDLE_OK)
        rc = report(c, p, &a);
    free(a.token);
    return rc;
}

int generate_run(struct cli *c, heddle_nn *net, const struct generate *g)
{
    char why[500] = "";
    const struct heddle_decoder_opts o = {.size = sizeof(o), .why = why, .why_bytes = sizeof(why)};
    struct heddle_decoder_choice choice;
    heddle_decoder *d = NULL;
    struct prompt p = {0};
    int64_t stop = -1;
    int rc = read_choice(c, g, &choice);

    if (rc == 0)
        rc = read_stop(c, g, &stop);
    if (rc == 0)
        rc = read_prompt(c, g, &p);
    if (rc == 0 && heddle_decoder_create(net, &o, &d) != HEDDLE_OK)
        rc = cli_fail(c, "%s", why);
    if (rc == 0)
        rc = run_decoder(c, d, g, &choice, stop, &p);
    heddle_decoder_destroy(d);
    free(p.id);
    return rc;
}
