/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decoders written byte by byte, one layer with random weights: keys and values that are kept, and
 * passed, against reading the whole sequence again; batches against each sequence alone; choices
 * against plain sorting; what is refused.
 */
#include <math.h>
#include <unistd.h>

#include "base/faulty_test.h"
#include "base/rng.h"
#include "heddle/heddle.h"
#include "nn/decode/decode.h"
#include "nn/write_test.h"

enum { WORDS = 24, WIDTH = 8, HEADS = 2, SIZE = 4, PLACES = 100, TABLE = 80, SEQUENCES = 6 };

/* --- models ------------------------------------------------------------------------------- */

enum {
    WITH_PAST = 1,
    WITH_MASK = 2,   /* attention_mask and position_ids */
    WITH_READER = 4, /* another node reads the past */
    WITH_LENGTH = 8, /* input_ids has 32 tokens, always */
    WITH_BATCH = 16, /* of one sequence, always */
    WITH_TABLE = 32, /* a table of TABLE tokens that all tokens have to fit in */
    WITH_NAN = 64,   /* the last word is no number */
    WITH_SHORT = 128 /* the output present.0.key has one head only */
};

static void put_tensor(struct wire_out *g, const char *name, const int64_t *dim, unsigned rank,
                       int type, const void *data, size_t bytes)
{
    struct wire_out t = {.len = 0};

    for (unsigned d = 0; d < rank; d++)
        wire_int(&t, 1, dim[d]);
    wire_int(&t, 2, type);
    wire_str(&t, 8, name);
    wire_mem(&t, 9, data, bytes);
    wire_sub_message(g, 5, &t);
}

/* The last row is no number where is_bad. */
static void put_random(struct wire_out *g, struct heddle_rng *rng, const char *name, int64_t rows,
                       int64_t columns, bool is_bad)
{
    float v[PLACES * WIDTH];
    const int64_t dim[2] = {rows, columns};

    for (int64_t i = 0; i < rows * columns; i++)
        v[i] = (float)(2 * heddle_rng_double(rng) - 1);
    for (int64_t i = 0; i < columns && is_bad; i++)
        v[(rows - 1) * columns + i] = NAN;
    put_tensor(g, name, dim, 2, HEDDLE_ONNX_FLOAT, v, (size_t)(rows * columns) * sizeof(*v));
}

/* "0" or "1,2": numbers of that name. A leading 's': a scalar. */
static void put_numbers(struct wire_out *g, const char *name)
{
    int64_t v[8], n = 0;

    for (const char *s = name + (name[0] == 's'); *s != '\0'; s += *s == ',') {
        char *end;

        v[n++] = strtoll(s, &end, 10);
        s = end;
    }
    put_tensor(g, name, &n, name[0] != 's', HEDDLE_ONNX_INT64, v, (size_t)n * sizeof(*v));
}

/* A dimension is a number above 0, or a letter: a symbol. */
static void put_port(struct wire_out *g, unsigned field, const char *name, int type,
                     const int64_t *dim, unsigned rank)
{
    struct wire_out v = {.len = 0}, kind = {.len = 0}, t = {.len = 0}, s = {.len = 0};

    for (unsigned i = 0; i < rank; i++) {
        struct wire_out d = {.len = 0};
        const char symbol[2] = {(char)-dim[i], '\0'};

        if (dim[i] > 0)
            wire_int(&d, 1, dim[i]);
        else
            wire_str(&d, 2, symbol);
        wire_sub_message(&s, 1, &d);
    }
    wire_int(&t, 1, type);
    wire_sub_message(&t, 2, &s);
    wire_sub_message(&kind, 1, &t);
    wire_str(&v, 1, name);
    wire_sub_message(&v, 2, &kind);
    wire_sub_message(g, field, &v);
}

static void put_ports(struct wire_out *g, unsigned with)
{
    const int64_t batch = with & WITH_BATCH ? 1 : -'b';
    const int64_t ids[] = {batch, with & WITH_LENGTH ? 32 : -'s'}, all[] = {batch, -'t'};
    const int64_t past[] = {batch, HEADS, -'p', SIZE}, present[] = {batch, HEADS, -'t', SIZE};
    const int64_t logits[] = {batch, ids[1], WORDS};

    put_port(g, 11, "input_ids", HEDDLE_ONNX_INT64, ids, 2);
    put_port(g, 12, "logits", HEDDLE_ONNX_FLOAT, logits, 3);
    if (with & WITH_MASK) {
        put_port(g, 11, "attention_mask", HEDDLE_ONNX_INT64, all, 2);
        put_port(g, 11, "position_ids", HEDDLE_ONNX_INT64, ids, 2);
    }
    if (with & WITH_PAST) {
        put_port(g, 11, "past_key_values.0.key", HEDDLE_ONNX_FLOAT, past, 4);
        put_port(g, 11, "past_key_values.0.value", HEDDLE_ONNX_FLOAT, past, 4);
        put_port(g, 12, "present.0.key", HEDDLE_ONNX_FLOAT, present, 4);
        put_port(g, 12, "present.0.value", HEDDLE_ONNX_FLOAT, present, 4);
    }
}

/* seen: tokens x all tokens, or with the mask batch x 1 x tokens x all tokens. */
static void put_mask(struct wire_out *g, unsigned with)
{
    put_node(g, "Shape", "input_ids", "ids.shape", "");
    put_node(g, "Gather", "ids.shape s1", "new", "");
    if (with & WITH_PAST) {
        put_node(g, "Shape", "past_key_values.0.key", "past.shape", "");
        put_node(g, "Gather", "past.shape s2", "past", "");
    } else {
        put_node(g, "Sub", "new new", "past", "");
    }
    put_node(g, "Add", "past new", "total", "");
    put_node(g, "Range", "past total s1", "from", "");
    put_node(g, "Range", "s0 total s1", "to", "");
    put_node(g, "Unsqueeze", "from 1", "queries", "");
    put_node(g, "Unsqueeze", "to 0", "keys", "");
    if (with & WITH_TABLE) { /* all of it is true */
        bool table[TABLE];
        const int64_t dim[2] = {1, TABLE};

        memset(table, true, sizeof(table));
        put_tensor(g, "table", dim, 2, HEDDLE_ONNX_BOOL, table, sizeof(table));
        put_node(g, "Unsqueeze", "total 0", "end", "");
        put_node(g, "Slice", "table 0 end 1", "cut", "");
        put_node(g, "LessOrEqual", "keys queries", "before", "");
        put_node(g, "And", "before cut", "causal", "");
    } else {
        put_node(g, "LessOrEqual", "keys queries", with & WITH_MASK ? "causal" : "seen", "");
    }
    if (with & WITH_MASK) {
        put_node(g, "Cast", "attention_mask", "bits", "to:9");
        put_node(g, "Unsqueeze", "bits 1,2", "there", "");
        put_node(g, "And", "causal there", "seen", "");
    }
}

static void put_head(struct wire_out *g, const char *w, const char *out)
{
    char in[64], rows[24], split[24];

    (void)snprintf(in, sizeof(in), "x %s", w);
    (void)snprintf(rows, sizeof(rows), "%s.rows", w);
    (void)snprintf(split, sizeof(split), "%s.split", w);
    put_node(g, "MatMul", in, rows, "");
    (void)snprintf(in, sizeof(in), "%s 0,-1,2,4", rows);
    put_node(g, "Reshape", in, split, "");
    put_node(g, "Transpose", split, out, "perm=0,2,1,3");
}

static void put_attention(struct wire_out *g, unsigned with)
{
    const bool past = (with & WITH_PAST) != 0;
    const float scalars[] = {-1e9f, 0.5f};
    const int64_t none = 0;

    put_tensor(g, "hidden", &none, 0, HEDDLE_ONNX_FLOAT, &scalars[0], 4);
    put_tensor(g, "half", &none, 0, HEDDLE_ONNX_FLOAT, &scalars[1], 4);
    put_head(g, "Q", "q");
    put_head(g, "K", past ? "k" : "present.0.key");
    put_head(g, "V", past ? "v" : "present.0.value");
    if (past) {
        put_node(g, "Concat", "past_key_values.0.key k",
                 with & WITH_SHORT ? "all" : "present.0.key", "axis:2");
        if (with & WITH_SHORT)
            put_node(g, "Slice", "all 0 1 1", "present.0.key", "");
        put_node(g, "Concat", "past_key_values.0.value v", "present.0.value", "axis:2");
    }
    put_node(g, "Transpose", with & WITH_SHORT ? "all" : "present.0.key", "turned", "perm=0,1,3,2");
    put_node(g, "MatMul", "q turned", "raw", "");
    put_node(g, "Mul", "raw half", "score", "");
    put_node(g, "Where", "seen score hidden", "masked", "");
    put_node(g, "Softmax", "masked", "share", "axis:-1");
    put_node(g, "MatMul", "share present.0.value", "mixed", "");
    put_node(g, "Transpose", "mixed", "joined", "perm=0,2,1,3");
    put_node(g, "Reshape", "joined 0,-1,8", "rows", "");
    put_node(g, "MatMul", "rows O", "out", "");
}

static heddle_nn *open_model(heddle_ctx *ctx, unsigned with)
{
    static const char *const numbers[] = {"s0", "s1", "s2", "0", "1", "1,2", "0,-1,2,4", "0,-1,8"};
    static const char *const square[] = {"Q", "K", "V", "O"};
    char path[] = "/tmp/heddle-decoder-XXXXXX";
    struct wire_out g = {.len = 0};
    struct heddle_rng rng;
    heddle_nn *net = NULL;
    const int fd = mkstemp(path);

    CHECK(fd >= 0 && close(fd) == 0);
    heddle_rng_seed(&rng, 7); /* the same weights for all of them */
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        put_numbers(&g, numbers[i]);
    put_random(&g, &rng, "words", WORDS, WIDTH, (with & WITH_NAN) != 0);
    put_random(&g, &rng, "places", PLACES, WIDTH, false);
    put_random(&g, &rng, "back", WIDTH, WORDS, false);
    for (int i = 0; i < 4; i++)
        put_random(&g, &rng, square[i], WIDTH, WIDTH, false);
    put_ports(&g, with);
    put_mask(&g, with);
    put_node(&g, "Gather", "words input_ids", "tokens", "");
    put_node(&g, "Gather", with & WITH_MASK ? "places position_ids" : "places from", "at", "");
    put_node(&g, "Add", "tokens at", "x", "");
    put_attention(&g, with);
    put_node(&g, "Add", "x out", "y", "");
    if (with & WITH_READER) { /* adds 0 */
        put_node(&g, "ReduceSum", "past_key_values.0.key", "sum", "keepdims:0");
        put_node(&g, "Sub", "sum sum", "zero", "");
        put_node(&g, "Add", "y zero", "z", "");
    }
    put_node(&g, "MatMul", with & WITH_READER ? "z back" : "y back", "logits", "");
    end_model(path, &g, 17);
    CHECK_OK(heddle_nn_open(ctx, path, NULL, &net));
    CHECK(remove(path) == 0);
    return net;
}

static heddle_ctx *create_ctx(void)
{
    const struct heddle_ctx_opts co = {
        .size = sizeof(co), .nworkers = 2, .models = HEDDLE_OFF, .ignore_env = true};
    heddle_ctx *ctx = NULL;

    CHECK_OK(heddle_ctx_create(&co, &ctx));
    return ctx;
}

static heddle_decoder *create(heddle_nn *net, unsigned sequences)
{
    const struct heddle_decoder_opts o = {.size = sizeof(o), .max_sequences = sequences};
    heddle_decoder *d = NULL;

    CHECK_OK(heddle_decoder_create(net, &o, &d));
    return d;
}

/* --- the same tokens and scores -------------------------------------------------------------- */

/* `count` tokens behind a prompt, and the scores of each. */
static void generate(heddle_nn *net, const int64_t *prompt, size_t n, size_t count,
                     const struct heddle_decoder_choice *c, int64_t *token, float *score,
                     bool *is_in_place)
{
    struct heddle_decoder_info info = {.size = sizeof(info)};
    heddle_decoder *d = create(net, 1);
    unsigned sequence, got;
    size_t width = 0;

    CHECK_OK(heddle_decoder_begin(d, prompt, n, 0, c, &sequence));
    CHECK(heddle_decoder_get_logits(d, sequence, NULL) == NULL);
    for (size_t i = 0; i < count; i++) {
        struct heddle_decoder_token t;

        CHECK_OK(heddle_decoder_step(d, &t, 1, &got));
        CHECK_OK(t.st);
        CHECK(got == 1 && t.sequence == sequence);
        token[i] = t.token;
        if (score != NULL)
            memcpy(&score[i * WORDS], heddle_decoder_get_logits(d, sequence, &width),
                   WORDS * sizeof(*score));
    }
    CHECK(score == NULL || width == WORDS);
    CHECK_OK(heddle_decoder_get_info(d, &info));
    if (is_in_place != NULL)
        *is_in_place = info.is_in_place;
    CHECK_EQ(info.vocabulary, WORDS);
    heddle_decoder_destroy(d);
}

static void compare(heddle_ctx *ctx, unsigned with, bool is_in_place, heddle_nn *whole)
{
    static float want[90 * WORDS], got[90 * WORDS];
    const int64_t prompt[] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9};
    int64_t a[90], b[90];
    heddle_nn *net = open_model(ctx, with);
    bool is = false;

    for (size_t n = 1; n <= 13; n += 4) {
        const size_t count = with & WITH_LENGTH ? 32 - n : n == 13 ? 87 : 20; /* over a bucket */

        generate(whole, prompt, n, count, NULL, a, want, NULL);
        generate(net, prompt, n, count, NULL, b, got, &is);
        CHECK_EQ(is, is_in_place);
        for (size_t i = 0; i < count; i++)
            CHECK_EQ(a[i], b[i]);
        for (size_t i = 0; i < count * WORDS; i++)
            CHECK_NEAR(got[i], want[i], 1e-4);
    }
    heddle_nn_close(net);
}

TEST(same_tokens)
{
    heddle_ctx *ctx = create_ctx();
    heddle_nn *whole = open_model(ctx, 0);

    compare(ctx, WITH_PAST | WITH_MASK, true, whole);
    compare(ctx, WITH_PAST, false, whole);
    compare(ctx, WITH_PAST | WITH_MASK | WITH_READER, false, whole);
    compare(ctx, WITH_PAST | WITH_MASK | WITH_BATCH, true, whole);
    compare(ctx, WITH_MASK, false, whole);
    compare(ctx, WITH_LENGTH, false, whole);
    heddle_nn_close(whole);
    CHECK_OK(heddle_ctx_destroy(ctx));
}

/* --- many at once ------------------------------------------------------------ */

struct sequence {
    int64_t prompt[30], want[60], got[60];
    size_t n, count, ngot, begins;
    struct heddle_decoder_choice choice;
    int number; /* -1: not now */
};

static void make_sequences(struct sequence *s, size_t n, struct heddle_rng *rng, heddle_nn *net)
{
    for (size_t i = 0; i < n; i++) {
        s[i] = (struct sequence){.n = 1 + heddle_rng_below(rng, 30),
                                 .count = 1 + heddle_rng_below(rng, 60),
                                 .begins = heddle_rng_below(rng, 40),
                                 .choice = {.size = sizeof(s->choice)},
                                 .number = -1};
        if (heddle_rng_below(rng, 2)) {
            s[i].choice.temperature = 0.5 + heddle_rng_double(rng);
            s[i].choice.top_k = (unsigned)heddle_rng_below(rng, 10);
            s[i].choice.top_p = heddle_rng_double(rng);
            s[i].choice.seed = i;
        }
        for (size_t k = 0; k < s[i].n; k++)
            s[i].prompt[k] = (int64_t)heddle_rng_below(rng, WORDS);
        generate(net, s[i].prompt, s[i].n, s[i].count, &s[i].choice, s[i].want, NULL, NULL);
    }
}

/* Gives what has come to its sequence. */
static void collect(heddle_decoder *d, struct sequence *s, size_t n,
                    const struct heddle_decoder_token *t)
{
    CHECK_OK(t->st);
    for (size_t i = 0; i < n; i++) {
        if (s[i].number != (int)t->sequence)
            continue;
        s[i].got[s[i].ngot++] = t->token;
        if (s[i].ngot < s[i].count)
            return;
        heddle_decoder_end(d, t->sequence);
        s[i].number = -1;
        return;
    }
    CHECK(false);
}

static void run_batch(heddle_nn *net, struct sequence *s, size_t n)
{
    struct heddle_decoder_token t[SEQUENCES];
    heddle_decoder *d = create(net, SEQUENCES);
    size_t left = n;

    for (size_t step = 0; left > 0; step++) {
        unsigned got = 0, number;

        CHECK(step < 10000);
        for (size_t i = 0; i < n; i++) {
            heddle_status st;

            if (s[i].number >= 0 || s[i].ngot > 0 || s[i].begins > step)
                continue;
            st = heddle_decoder_begin(d, s[i].prompt, s[i].n, s[i].n + s[i].count, &s[i].choice,
                                      &number);
            if (st == HEDDLE_AGAIN)
                break;
            CHECK_OK(st);
            s[i].number = (int)number;
        }
        CHECK_OK(heddle_decoder_step(d, t, SEQUENCES, &got));
        for (unsigned i = 0; i < got; i++)
            collect(d, s, n, &t[i]);
        left = 0;
        for (size_t i = 0; i < n; i++)
            left += s[i].ngot < s[i].count;
    }
    heddle_decoder_destroy(d);
}

/* Sequences come and go; each one has the tokens that it has alone. */
TEST(batches)
{
    static struct sequence s[14];
    const size_t n = sizeof(s) / sizeof(s[0]);
    heddle_ctx *ctx = create_ctx();
    heddle_nn *net[] = {open_model(ctx, WITH_PAST | WITH_MASK), open_model(ctx, WITH_PAST),
                        open_model(ctx, 0)};
    struct heddle_rng rng;

    heddle_rng_seed(&rng, 5);
    for (int round = 0; round < 6; round++) {
        make_sequences(s, n, &rng, net[round < 4 ? 0 : round - 3]);
        run_batch(net[round < 4 ? 0 : round - 3], s, n);
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < s[i].count; k++)
                CHECK_EQ(s[i].got[k], s[i].want[k]);
    }
    for (int i = 0; i < 3; i++)
        heddle_nn_close(net[i]);
    CHECK_OK(heddle_ctx_destroy(ctx));
}

/* --- the choice ------------------------------------------------------------ */

/* The candidates by plain sorting, and how likely each one is. */
static void plain_choice(const struct heddle_decoder_choice *c, const float *score, size_t n,
                         double *p)
{
    size_t order[64], kept = c->top_k > 0 && c->top_k < n ? c->top_k : n;
    double sum = 0, part = 0;

    for (size_t i = 0; i < n; i++) {
        size_t k = i;

        for (; k > 0 && score[order[k - 1]] < score[i]; k--)
            order[k] = order[k - 1];
        order[k] = i;
        p[i] = 0;
    }
    for (size_t i = 0; i < kept; i++)
        sum += p[order[i]] = exp((double)(score[order[i]] - score[order[0]]) / c->temperature);
    for (size_t i = 0; i < kept && c->top_p > 0 && c->top_p < 1; i++) {
        if (part >= c->top_p * sum)
            p[order[i]] = 0;
        part += p[order[i]];
    }
    sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += p[i];
    for (size_t i = 0; i < n; i++)
        p[i] /= sum;
}

TEST(choices)
{
    enum { N = 40, DRAWS = 20000 };
    struct heddle_rng rng;
    uint32_t mem[N];
    float score[N];

    heddle_rng_seed(&rng, 11);
    for (int round = 0; round < 30; round++) {
        struct heddle_decoder_choice c = {.size = sizeof(c), .seed = (uint64_t)round};
        size_t count[N] = {0}, best = 0;
        double p[N];

        for (size_t i = 0; i < N; i++) { /* some of them equal */
            score[i] = (float)heddle_rng_below(&rng, 25) / 4;
            best = score[i] > score[best] ? i : best;
        }
        CHECK_EQ(heddle_nn_choose(&c, score, N, 0, mem), best);
        c.temperature = 0.3 + 2 * heddle_rng_double(&rng);
        c.top_k = round % 3 == 0 ? 0 : 1 + (unsigned)heddle_rng_below(&rng, N + 5);
        c.top_p = round % 2 == 0 ? 0 : heddle_rng_double(&rng);
        plain_choice(&c, score, N, p);
        for (uint64_t k = 0; k < DRAWS; k++) {
            const int64_t t = heddle_nn_choose(&c, score, N, k, mem);

            CHECK(t >= 0 && t < N);
            if (k < 10)
                CHECK_EQ(heddle_nn_choose(&c, score, N, k, mem), t);
            count[t]++;
        }
        for (size_t i = 0; i < N; i++) { /* five standard deviations */
            CHECK(p[i] > 0 || count[i] == 0);
            CHECK(fabs((double)count[i] - DRAWS * p[i]) <= 5 * sqrt(DRAWS * p[i]) + 1);
        }
    }
    for (size_t i = 0; i < N; i++)
        score[i] = NAN;
    CHECK_EQ(heddle_nn_choose(&(struct heddle_decoder_choice){.temperature = 1}, score, N, 0, mem),
             -1);
    score[7] = -3;
    CHECK_EQ(heddle_nn_choose(&(struct heddle_decoder_choice){.temperature = 1}, score, N, 0, mem),
             7);
}

/* --- limits ------------------------------------------------------------ */

TEST(refused)
{
    heddle_ctx *ctx = create_ctx();
    heddle_nn *net = open_model(ctx, WITH_PAST | WITH_MASK), *fixed = open_model(ctx, WITH_LENGTH);
    struct heddle_decoder_opts o = {.size = sizeof(o), .max_sequences = 2, .max_tokens = 50};
    struct heddle_decoder_choice c = {.size = sizeof(c)};
    const int64_t prompt[64] = {1, 2, WORDS};
    struct heddle_decoder_token t[4];
    heddle_decoder *d = NULL;
    unsigned s, got = 1;

    CHECK_OK(heddle_decoder_create(net, &o, &d));
    CHECK_OK(heddle_decoder_step(d, t, 2, &got));
    CHECK_EQ(got, 0);
    CHECK_STATUS(heddle_decoder_begin(d, prompt, 0, 0, NULL, &s), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_decoder_begin(d, prompt, 3, 0, NULL, &s), HEDDLE_EINVAL);
    CHECK(strstr(heddle_decoder_why(d), "token 24") != NULL);
    CHECK_STATUS(heddle_decoder_begin(d, &(int64_t){-1}, 1, 0, NULL, &s), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_decoder_begin(d, prompt, 2, 51, NULL, &s), HEDDLE_EOVERFLOW);
    CHECK_STATUS(heddle_decoder_begin(d, prompt, 2, 1, NULL, &s), HEDDLE_EOVERFLOW);
    c.temperature = -1;
    CHECK_STATUS(heddle_decoder_begin(d, prompt, 2, 0, &c, &s), HEDDLE_EINVAL);
    c.temperature = NAN;
    CHECK_STATUS(heddle_decoder_begin(d, prompt, 2, 0, &c, &s), HEDDLE_EINVAL);
    c = (struct heddle_decoder_choice){.size = sizeof(c), .temperature = 1, .top_p = 1.5};
    CHECK_STATUS(heddle_decoder_begin(d, prompt, 2, 0, &c, &s), HEDDLE_EINVAL);
    CHECK_OK(heddle_decoder_begin(d, prompt, 2, 3, NULL, &s));
    CHECK_OK(heddle_decoder_begin(d, prompt, 2, 3, NULL, &s));
    CHECK_STATUS(heddle_decoder_begin(d, prompt, 2, 3, NULL, &s), HEDDLE_AGAIN);
    CHECK_STATUS(heddle_decoder_step(d, t, 1, &got), HEDDLE_EINVAL);
    heddle_decoder_end(d, 0);
    CHECK_OK(heddle_decoder_step(d, t, 2, &got));
    CHECK(got == 1 && t[0].st == HEDDLE_OK);
    CHECK_OK(heddle_decoder_step(d, t, 2, &got)); /* it has its three tokens */
    CHECK(got == 1 && t[0].st == HEDDLE_EOVERFLOW);
    CHECK_OK(heddle_decoder_step(d, t, 2, &got));
    CHECK_EQ(got, 0);
    heddle_decoder_destroy(d);
    d = create(fixed, 1); /* the network's own number of tokens */
    CHECK_OK(heddle_decoder_begin(d, (const int64_t[32]){0}, 32, 0, NULL, &s));
    CHECK_OK(heddle_decoder_step(d, t, 1, &got));
    CHECK_OK(t[0].st);
    CHECK_OK(heddle_decoder_step(d, t, 1, &got));
    CHECK_STATUS(t[0].st, HEDDLE_EOVERFLOW);
    heddle_decoder_destroy(d);
    heddle_nn_close(fixed);
    heddle_nn_close(net);
    CHECK_OK(heddle_ctx_destroy(ctx));
}

/* Keys and values have a bound. */
TEST(room)
{
    const uint64_t each = 2 * HEADS * SIZE * 4; /* bytes of a token */
    const struct heddle_decoder_opts o = {
        .size = sizeof(o), .max_sequences = 8, .max_bytes = 64 * each * 2};
    heddle_ctx *ctx = create_ctx();
    heddle_nn *net = open_model(ctx, WITH_PAST | WITH_MASK);
    struct heddle_decoder_info info = {.size = sizeof(info)};
    struct heddle_decoder_token t[8];
    const int64_t prompt[] = {1, 2};
    heddle_decoder *d = NULL;
    unsigned s[3], got;

    CHECK_OK(heddle_decoder_create(net, &o, &d));
    CHECK_STATUS(heddle_decoder_begin(d, prompt, 2, 200, NULL, &s[0]), HEDDLE_EOVERFLOW);
    CHECK_OK(heddle_decoder_begin(d, prompt, 2, 60, NULL, &s[0]));
    CHECK_STATUS(heddle_decoder_begin(d, prompt, 2, 90, NULL, &s[1]), HEDDLE_AGAIN);
    CHECK_OK(heddle_decoder_begin(d, prompt, 2, 60, NULL, &s[1]));
    CHECK_STATUS(heddle_decoder_begin(d, prompt, 2, 60, NULL, &s[2]), HEDDLE_AGAIN);
    for (int i = 0; i < 4; i++)
        CHECK_OK(heddle_decoder_step(d, t, 8, &got));
    CHECK_EQ(got, 2);
    CHECK_OK(heddle_decoder_get_info(d, &info));
    CHECK(info.is_in_place && info.sequences == 2 && info.room_bytes <= o.max_bytes);
    heddle_decoder_end(d, s[0]);
    CHECK_OK(heddle_decoder_begin(d, prompt, 2, 60, NULL, &s[2]));
    heddle_decoder_destroy(d);
    heddle_nn_close(net);
    CHECK_OK(heddle_ctx_destroy(ctx));
}

/* A sequence that goes beyond the network's places fails, and another one does not. */
TEST(one_fails)
{
    heddle_ctx *ctx = create_ctx();
    heddle_nn *net = open_model(ctx, WITH_PAST | WITH_MASK);
    int64_t lone[PLACES], prompt[PLACES];
    const int64_t other[] = {5, 7};
    heddle_decoder *d = create(net, 4);
    unsigned a, b, got;
    bool has_failed = false;

    for (int i = 0; i < PLACES; i++)
        prompt[i] = i % WORDS;
    generate(net, other, 2, 20, NULL, lone, NULL, NULL);
    CHECK_OK(heddle_decoder_begin(d, other, 2, 0, NULL, &b));
    CHECK_OK(heddle_decoder_begin(d, prompt, PLACES - 6, 0, NULL, &a));
    for (size_t n = 0; n < 20;) {
        struct heddle_decoder_token t[4];

        CHECK_OK(heddle_decoder_step(d, t, 4, &got));
        CHECK(got > 0);
        for (unsigned i = 0; i < got; i++) {
            if (t[i].sequence == b) {
                CHECK_OK(t[i].st);
                CHECK_EQ(t[i].token, lone[n]);
                n++;
            } else if (t[i].st != HEDDLE_OK) {
                CHECK(!has_failed && strstr(heddle_decoder_why(d), "Gather") != NULL);
                has_failed = true;
            }
        }
    }
    CHECK(has_failed);
    heddle_decoder_destroy(d);
    heddle_nn_close(net);
    CHECK_STATUS(heddle_ctx_destroy(ctx), HEDDLE_EINVAL); /* tasks have failed, as wanted */
}

/* A prompt as long as the network's table: its last token comes, and then the sequence ends in a
 * step of its own, beside another one that goes on. */
TEST(as_long_as_the_table)
{
    heddle_ctx *ctx = create_ctx();
    heddle_nn *net = open_model(ctx, WITH_PAST | WITH_MASK | WITH_TABLE);
    const int64_t other[] = {5, 7};
    int64_t lone[8], prompt[TABLE];
    heddle_decoder *d = create(net, 2);
    unsigned a, b, got;
    size_t na = 0, nb = 0;

    for (int i = 0; i < TABLE; i++)
        prompt[i] = i % WORDS;
    generate(net, other, 2, 8, NULL, lone, NULL, NULL);
    CHECK_OK(heddle_decoder_begin(d, other, 2, 0, NULL, &b));
    CHECK_OK(heddle_decoder_begin(d, prompt, TABLE, 0, NULL, &a));
    while (nb < 8) {
        struct heddle_decoder_token t[3] = {{.sequence = 7}, {.sequence = 7}, {.sequence = 7}};
        unsigned of_a = 0;

        CHECK_OK(heddle_decoder_step(d, t, 2, &got));
        CHECK(got <= 2 && t[2].sequence == 7);
        for (unsigned i = 0; i < got; i++) {
            if (t[i].sequence == b) {
                CHECK_OK(t[i].st);
                CHECK_EQ(t[i].token, lone[nb++]);
                continue;
            }
            CHECK_EQ(++of_a, 1);
            CHECK_STATUS(t[i].st, na++ == 0 ? HEDDLE_OK : HEDDLE_EOVERFLOW);
        }
    }
    CHECK_EQ(na, 2);
    heddle_decoder_destroy(d);
    heddle_nn_close(net);
    CHECK_OK(heddle_ctx_destroy(ctx));
}

/* Keys and values that are no numbers go with their sequence. */
TEST(no_numbers)
{
    heddle_ctx *ctx = create_ctx();
    heddle_nn *net = open_model(ctx, WITH_PAST | WITH_MASK | WITH_NAN);
    const int64_t bad[] = {1, 2, WORDS - 1, 3, WORDS - 1, 4}, good[] = {5};
    struct heddle_decoder_token t[2];
    heddle_decoder *d = create(net, 2);
    int64_t lone[2];
    unsigned s, got;

    generate(net, good, 1, 2, NULL, lone, NULL, NULL);
    CHECK_OK(heddle_decoder_begin(d, bad, 6, 0, NULL, &s));
    CHECK_OK(heddle_decoder_step(d, t, 2, &got));
    CHECK(got == 1 && t[0].st == HEDDLE_EINVAL);
    CHECK(strstr(heddle_decoder_why(d), "not numbers") != NULL);
    heddle_decoder_end(d, s);
    CHECK_OK(heddle_decoder_begin(d, good, 1, 0, NULL, &s));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(heddle_decoder_step(d, t, 2, &got));
        CHECK(got == 1 && t[0].st == HEDDLE_OK);
        CHECK_EQ(t[0].token, lone[i]);
    }
    heddle_decoder_destroy(d);
    heddle_nn_close(net);
    CHECK_OK(heddle_ctx_destroy(ctx));
}

/* A file that says one thing of its keys and computes another. */
TEST(keys_of_another_shape)
{
    heddle_ctx *ctx = create_ctx();
    heddle_nn *net = open_model(ctx, WITH_PAST | WITH_MASK | WITH_SHORT);
    const int64_t prompt[] = {5, 7};
    struct heddle_decoder_token t;
    heddle_decoder *d = create(net, 1);
    unsigned s, got;

    CHECK_OK(heddle_decoder_begin(d, prompt, 2, 0, NULL, &s));
    CHECK_OK(heddle_decoder_step(d, &t, 1, &got));
    CHECK(got == 1 && t.st == HEDDLE_EINVAL);
    CHECK(strstr(heddle_decoder_why(d), "'present.0.key'") != NULL);
    heddle_decoder_destroy(d);
    heddle_nn_close(net);
    CHECK_OK(heddle_ctx_destroy(ctx));
}

/* The k-th allocation fails: a status or a failed sequence, and nothing is lost. */
TEST(no_memory)
{
    const int64_t prompt[] = {1, 2, 3};
    struct faulty f;

    for (size_t k = 1; k == 1 || f.has_failed; k += 1 + k / 16) {
        struct heddle_ctx_opts co = {
            .size = sizeof(co), .nworkers = 1, .models = HEDDLE_OFF, .ignore_env = true};
        const struct heddle_decoder_opts o = {.size = sizeof(o), .max_sequences = 2};
        heddle_ctx *ctx = NULL;
        heddle_decoder *d = NULL;
        heddle_nn *net = NULL;
        unsigned s, got = 0;

        faulty_init(&f, 0);
        co.allocator = f.a;
        CHECK_OK(heddle_ctx_create(&co, &ctx));
        net = open_model(ctx, WITH_PAST | WITH_MASK);
        f.fail_at = atomic_load(&f.ncalls) + k;
        if (heddle_decoder_create(net, &o, &d) == HEDDLE_OK)
            for (int i = 0; i < 2; i++)
                if (heddle_decoder_begin(d, prompt, 3, 0, NULL, &s) != HEDDLE_OK)
                    CHECK(f.has_failed);
        for (int i = 0; i < 4 && d != NULL; i++) {
            struct heddle_decoder_token t[2];

            CHECK_OK(heddle_decoder_step(d, t, 2, &got));
            for (unsigned m = 0; m < got; m++)
                CHECK(t[m].st == HEDDLE_OK || f.has_failed);
        }
        CHECK(d != NULL || f.has_failed);
        heddle_decoder_destroy(d);
        heddle_nn_close(net);
        (void)heddle_ctx_destroy(ctx);
        CHECK_EQ(f.nlive, 0);
    }
}

TEST_MAIN(same_tokens, batches, choices, refused, room, one_fails, as_long_as_the_table, no_numbers,
          keys_of_another_shape, no_memory)
