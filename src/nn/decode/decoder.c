/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * decoder: sequences and steps.
 *
 * Three ways, by what the network has:
 *   whole    no past: each step runs the tokens so far, of each sequence alone
 *   passed   the past of a sequence is copied into a run and out of it
 *   kept     the past of all sequences is in the slots of one cache (cache.c), and one run computes
 *            a token for all of them
 * A network with a past is `kept` until its graph turns out to use the past in other ways.
 *
 * Invariants (1) keys and values of a sequence that has been read are there for all of its tokens
 *                but the last one
 *            (2) kept: a sequence that has been read, and has not failed, has a slot
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/sized.h"
#include "base/why.h"
#include "nn/decode/decode.h"

enum { DECODER_WHY = 400, DECODER_TOKENS = 1 << 20, DECODER_MAX = 1 << 16 };
#define NO_SLOT SIZE_MAX

enum decoder_way { DECODER_WHOLE, DECODER_PASSED, DECODER_KEPT };

struct decode_seq {
    bool is_used, is_read, is_failed;
    uint64_t order; /* of beginning */
    struct heddle_decoder_choice choice;
    int64_t *token;
    size_t n, room, most;
    size_t slot;  /* kept */
    float *score; /* of the last token */
    char *past;   /* passed: rows of all pairs, one pair after another */
    size_t past_n;
};

struct heddle_decoder {
    heddle_nn *net;
    const struct heddle_allocator *alloc;
    struct heddle_scratch mem;
    struct decode_ports ports;
    enum decoder_way way;
    size_t max_sequences, max_tokens;
    uint64_t max_bytes, next_order;
    size_t vocabulary; /* 0: no scores yet */
    uint32_t *list;    /* for the choice */
    struct decode_seq *seq;
    struct decode_cache cache;
    size_t *from, *rows; /* for new slots */
    char why[DECODER_WHY];
    struct nn_opts o; /* of what is called here: sentences go to `why` */
};

/* --- life ---------------------------------------------------------------------------- */

static heddle_status decoder_init(struct heddle_decoder *d, const struct heddle_decoder_opts *o)
{
    const struct nn_opts say = {d->alloc, o->why, o->why_bytes};

    HEDDLE_TRY(heddle_nn_decode_ports(d->net->model->graph, &d->mem, &say, &d->ports));
    d->way = d->ports.npairs == 0 ? DECODER_WHOLE : DECODER_KEPT;
    if (d->way == DECODER_KEPT &&
        (d->ports.mask == DECODE_NO_PORT || d->ports.positions == DECODE_NO_PORT ||
         (d->ports.batch == 1 && d->max_sequences > 1)))
        d->way = DECODER_PASSED; /* rows of a slot cannot be hidden, or have no batch */
    d->vocabulary = d->ports.vocabulary > 0 ? (size_t)d->ports.vocabulary : 0;
    d->seq = heddle_scratch_get(&d->mem, d->max_sequences, sizeof(*d->seq));
    for (size_t i = 0; d->seq != NULL && i < d->max_sequences; i++)
        d->seq[i].slot = NO_SLOT;
    d->from = heddle_scratch_get(&d->mem, 2 * d->max_sequences, sizeof(*d->from));
    d->rows = heddle_scratch_get(&d->mem, 2 * d->max_sequences, sizeof(*d->rows));
    if (d->seq == NULL || d->from == NULL || d->rows == NULL)
        return heddle_why(o->why, o->why_bytes, HEDDLE_ENOMEM, "no memory for a decoder");
    return HEDDLE_OK;
}

heddle_status heddle_decoder_create(heddle_nn *net, const struct heddle_decoder_opts *opts,
                                    heddle_decoder **out)
{
    struct heddle_decoder_opts o;
    struct heddle_decoder *d;
    heddle_status st;

    HEDDLE_TRY(HEDDLE_SIZED_GET_OPTS(struct heddle_decoder_opts, &o, opts));
    if (net == NULL || out == NULL)
        return heddle_why(o.why, o.why_bytes, HEDDLE_EINVAL, "an argument is NULL");
    if (o.max_sequences > DECODER_MAX)
        return heddle_why(o.why, o.why_bytes, HEDDLE_EINVAL, "a decoder has at most %d sequences",
                          DECODER_MAX);
    d = heddle_zalloc(net->alloc, 1, sizeof(*d));
    if (d == NULL)
        return heddle_why(o.why, o.why_bytes, HEDDLE_ENOMEM, "no memory for a decoder");
    d->net = net;
    d->alloc = net->alloc;
    d->mem = heddle_scratch_make(d->alloc);
    d->max_sequences = o.max_sequences > 0 ? o.max_sequences : 1;
    d->max_tokens =
        o.max_tokens > 0 && o.max_tokens < DECODER_TOKENS ? (size_t)o.max_tokens : DECODER_TOKENS;
    d->max_bytes = o.max_bytes > 0 ? o.max_bytes : UINT64_MAX;
    d->o = (struct nn_opts){d->alloc, d->why, sizeof(d->why)};
    d->cache = (struct decode_cache){.net = net, .ports = &d->ports};
    st = decoder_init(d, &o);
    if (st != HEDDLE_OK) {
        heddle_decoder_destroy(d);
        return st;
    }
    *out = d;
    return HEDDLE_OK;
}

static uint64_t past_bytes(const struct heddle_decoder *d, size_t tokens)
{
    return d->ports.token_bytes * tokens;
}

static void drop_seq(struct heddle_decoder *d, struct decode_seq *s)
{
    heddle_free(d->alloc, s->token, s->room * sizeof(*s->token));
    if (s->score != NULL)
        heddle_free(d->alloc, s->score, d->vocabulary * sizeof(float));
    if (s->past != NULL)
        heddle_free(d->alloc, s->past, (size_t)past_bytes(d, s->past_n));
    *s = (struct decode_seq){.slot = NO_SLOT};
}

void heddle_decoder_destroy(heddle_decoder *d)
{
    if (d == NULL)
        return;
    for (size_t i = 0; d->seq != NULL && i < d->max_sequences; i++)
        drop_seq(d, &d->seq[i]);
    heddle_nn_cache_drop(&d->cache);
    if (d->list != NULL)
        heddle_free(d->alloc, d->list, d->vocabulary * sizeof(*d->list));
    heddle_scratch_drop(&d->mem);
    heddle_free(d->alloc, d, sizeof(*d));
}

const char *heddle_decoder_why(const heddle_decoder *d)
{
    return d == NULL ? "" : d->why;
}

/* --- sequences ------------------------------------------------------------------------- */

static size_t count_active(const struct heddle_decoder *d)
{
    size_t n = 0;

    for (size_t i = 0; i < d->max_sequences; i++)
        n += d->seq[i].is_used && !d->seq[i].is_failed;
    return n;
}

/* Rows of a slot for sequences of n tokens. */
static size_t bucket(const struct heddle_decoder *d, size_t n)
{
    const size_t b = heddle_nn_cache_bucket(n);

    return b > d->max_tokens && n <= d->max_tokens ? d->max_tokens : b;
}

/* Is there room for one more sequence of `most` tokens, if all grow as long as they may? */
static heddle_status check_room(struct heddle_decoder *d, size_t most)
{
    const size_t n = count_active(d) + 1;
    size_t longest = most;
    uint64_t bytes;

    if (d->way == DECODER_WHOLE)
        return HEDDLE_OK;
    bytes = past_bytes(d, bucket(d, most));
    if (bytes > d->max_bytes)
        return heddle_why(d->why, sizeof(d->why), HEDDLE_EOVERFLOW,
                          "keys and values of %zu tokens need %.1f MiB, and there may be %.1f",
                          most, (double)bytes / 1048576, (double)d->max_bytes / 1048576);
    for (size_t i = 0; i < d->max_sequences; i++)
        if (d->seq[i].is_used && d->seq[i].most > longest)
            longest = d->seq[i].most;
    if (past_bytes(d, bucket(d, longest)) > d->max_bytes / heddle_nn_cache_slots(n))
        return heddle_why(d->why, sizeof(d->why), HEDDLE_AGAIN,
                          "no room for the keys and values of one more sequence");
    return HEDDLE_OK;
}

static heddle_status check_begin(struct heddle_decoder *d, const int64_t *prompt, size_t n,
                                 size_t most, const struct heddle_decoder_choice *c)
{
    if (prompt == NULL || n == 0)
        return heddle_why(d->why, sizeof(d->why), HEDDLE_EINVAL, "the prompt has no tokens");
    if (!(c->temperature >= 0) || !(c->temperature <= 1e9) || !(c->top_p >= 0) || !(c->top_p <= 1))
        return heddle_why(d->why, sizeof(d->why), HEDDLE_EINVAL,
                          "a temperature is not below 0, and top-p from 0 to 1");
    for (size_t i = 0; i < n; i++)
        if (prompt[i] < 0 || (d->vocabulary > 0 && (uint64_t)prompt[i] >= d->vocabulary))
            return heddle_why(d->why, sizeof(d->why), HEDDLE_EINVAL,
                              "token %lld of the prompt is not among the %zu of the network",
                              (long long)prompt[i], d->vocabulary);
    if (most > d->max_tokens || n > most)
        return heddle_why(d->why, sizeof(d->why), HEDDLE_EOVERFLOW,
                          "%zu tokens, and a sequence may have %zu", n > most ? n : most,
                          n > most ? most : d->max_tokens);
    return check_room(d, most);
}

heddle_status heddle_decoder_begin(heddle_decoder *d, const int64_t *prompt, size_t n,
                                   uint64_t most, const struct heddle_decoder_choice *choice,
                                   unsigned *sequence)
{
    struct heddle_decoder_choice c;
    size_t i = 0, limit;

    HEDDLE_CHECK(d != NULL && sequence != NULL);
    d->why[0] = '\0';
    HEDDLE_TRY(HEDDLE_SIZED_GET(struct heddle_decoder_choice, &c, choice, d->why, sizeof(d->why)));
    limit = most == 0 ? d->max_tokens : most > SIZE_MAX ? SIZE_MAX : (size_t)most;
    HEDDLE_TRY(check_begin(d, prompt, n, limit, &c));
    while (i < d->max_sequences && d->seq[i].is_used)
        i++;
    if (i == d->max_sequences)
        return heddle_why(d->why, sizeof(d->why), HEDDLE_AGAIN, "there are %zu sequences", i);
    d->seq[i] = (struct decode_seq){.choice = c, .room = n + 16, .most = limit, .slot = NO_SLOT};
    d->seq[i].token = heddle_alloc(d->alloc, d->seq[i].room * sizeof(int64_t));
    if (d->seq[i].token == NULL)
        return heddle_why(d->why, sizeof(d->why), HEDDLE_ENOMEM, "no memory for a sequence");
    memcpy(d->seq[i].token, prompt, n * sizeof(*prompt));
    d->seq[i].n = n;
    d->seq[i].is_used = true;
    d->seq[i].order = d->next_order++;
    *sequence = (unsigned)i;
    return HEDDLE_OK;
}

void heddle_decoder_end(heddle_decoder *d, unsigned sequence)
{
    if (d == NULL || sequence >= d->max_sequences || !d->seq[sequence].is_used)
        return;
    drop_seq(d, &d->seq[sequence]);
}

/* --- tokens ------------------------------------------------------------------------------ */

/* Memory for scores, once their number is known. */
static heddle_status scores_room(struct heddle_decoder *d, struct decode_seq *s, size_t width)
{
    if (width == 0 || (d->vocabulary != 0 && d->vocabulary != width) || width > UINT32_MAX)
        return heddle_why(d->why, sizeof(d->why), HEDDLE_EINVAL,
                          "output 'logits' is not of the shape batch x tokens x vocabulary");
    d->vocabulary = width;
    if (d->list == NULL)
        d->list = heddle_alloc(d->alloc, width * sizeof(*d->list));
    if (s->score == NULL)
        s->score = heddle_alloc(d->alloc, width * sizeof(float));
    return d->list != NULL && s->score != NULL
               ? HEDDLE_OK
               : heddle_why(d->why, sizeof(d->why), HEDDLE_ENOMEM, "no memory for scores");
}

/* The token that follows, from the scores behind token i of a row of the pass. */
static heddle_status take_token(struct heddle_decoder *d, struct decode_seq *s,
                                const struct decode_pass *x, size_t row, size_t i)
{
    const size_t width = heddle_nn_decode_width(&d->ports, x);
    int64_t token;

    HEDDLE_TRY(scores_room(d, s, width));
    heddle_nn_decode_scores(&d->ports, x, row, i, s->score);
    token = heddle_nn_choose(&s->choice, s->score, width, s->n, d->list);
    if (token < 0)
        return heddle_why(d->why, sizeof(d->why), HEDDLE_EINVAL,
                          "the scores behind token %zu are not numbers", s->n);
    if (s->n == s->room) {
        int64_t *more = heddle_alloc(d->alloc, 2 * s->room * sizeof(*more));

        if (more == NULL)
            return heddle_why(d->why, sizeof(d->why), HEDDLE_ENOMEM, "no memory for a sequence");
        memcpy(more, s->token, s->n * sizeof(*more));
        heddle_free(d->alloc, s->token, s->room * sizeof(*more));
        s->token = more;
        s->room *= 2;
    }
    s->token[s->n++] = token;
    return HEDDLE_OK;
}

/* --- runs of one sequence ------------------------------------------------------------------ */

/* Tokens of a run that reads n: a few more, so that fewer plans are made. */
static size_t read_bucket(size_t n)
{
    const size_t step = n <= 64 ? 8 : n <= 512 ? 32 : 128;

    return (n + step - 1) / step * step;
}

/* Opens a run of `len` tokens or, where the network does not allow that, of exactly n. */
static heddle_status open_run(struct heddle_decoder *d, struct decode_pass *x, size_t len, size_t n)
{
    heddle_status st;

    *x = (struct decode_pass){.batch = 1, .past = 0, .len = len};
    st = heddle_nn_decode_open(d->net, &d->ports, x, &d->o);
    if (st == HEDDLE_EINVAL && len != n && d->ports.length < 0) {
        x->len = n;
        st = heddle_nn_decode_open(d->net, &d->ports, x, &d->o);
    }
    return st;
}

/* Copies rows of all pairs between memory of the sequence and a run: `is_in`: into its past. */
static void move_past(const struct heddle_decoder *d, const struct decode_pass *x, char *past,
                      size_t rows, bool is_in)
{
    for (uint32_t k = 0; k < d->ports.npairs; k++) {
        const struct decode_pair *p = &d->ports.pair[k];
        const size_t row = (size_t)p->dim * heddle_nn_type_bytes(p->type);
        const uint32_t v = is_in ? d->ports.g->input[p->in] : x->plan->output[p->out];
        char *run = heddle_nn_instance_data(x->instance, v);
        const size_t run_rows = is_in ? x->past : x->past + x->len;

        for (int64_t h = 0; h < p->heads; h++, past += rows * row) {
            char *at = run != NULL ? run + (size_t)h * run_rows * row : NULL;

            if (at != NULL) /* NULL: nobody reads it */
                memcpy(is_in ? at : past, is_in ? past : at, rows * row);
        }
    }
}

/* The rows of a run become the past of the sequence. */
static heddle_status keep_past(struct heddle_decoder *d, struct decode_seq *s,
                               const struct decode_pass *x, size_t rows)
{
    char *past = heddle_alloc(d->alloc, (size_t)past_bytes(d, rows));

    if (past == NULL)
        return heddle_why(d->why, sizeof(d->why), HEDDLE_ENOMEM, "no memory for keys and values");
    move_past(d, x, past, rows, false);
    if (s->past != NULL)
        heddle_free(d->alloc, s->past, (size_t)past_bytes(d, s->past_n));
    s->past = past;
    s->past_n = rows;
    return HEDDLE_OK;
}

/* One token of a sequence whose past is passed. */
static heddle_status advance_passed(struct heddle_decoder *d, struct decode_seq *s)
{
    struct decode_pass x = {.batch = 1, .past = s->past_n, .len = 1};
    heddle_status st;

    HEDDLE_TRY(heddle_nn_decode_open(d->net, &d->ports, &x, &d->o));
    heddle_nn_decode_fill(&d->ports, &x, 0, &s->token[s->n - 1], 1, s->n - 1);
    move_past(d, &x, s->past, s->past_n, true);
    st = heddle_nn_decode_run(d->net, &x, &d->o);
    if (st == HEDDLE_OK)
        st = keep_past(d, s, &x, s->past_n + 1);
    if (st == HEDDLE_OK)
        st = take_token(d, s, &x, 0, 0);
    heddle_nn_decode_close(d->net, &x);
    return st;
}

/* --- the cache ------------------------------------------------------------------------------- */

/* Slots for all sequences that have been read and for `more` others, each with room for `tokens`:
 * new ones where there are too few, or four times too many. */
static heddle_status make_slots(struct heddle_decoder *d, size_t more, size_t tokens)
{
    struct decode_cache *c = &d->cache;
    size_t n = 0, batch, room;

    for (size_t i = 0; i < d->max_sequences; i++) {
        const struct decode_seq *s = &d->seq[i];

        if (!s->is_used || s->slot == NO_SLOT)
            continue;
        d->from[n] = s->slot;
        d->rows[n++] = s->n - 1;
        tokens = s->n > tokens ? s->n : tokens;
    }
    batch = heddle_nn_cache_slots(n + more);
    room = bucket(d, tokens);
    if (c->pass.instance != NULL && batch <= c->pass.batch && tokens <= c->tokens &&
        batch * 4 > c->pass.batch && room * 4 > c->tokens)
        return HEDDLE_OK;
    for (size_t i = n; i < batch; i++)
        d->from[i] = NO_SLOT;
    heddle_status st = heddle_nn_cache_resize(c, batch, room, d->from, d->rows, &d->o);
    if (st == HEDDLE_EINVAL && room != tokens)
        st = heddle_nn_cache_resize(c, batch, tokens, d->from, d->rows, &d->o);
    n = 0;
    for (size_t i = 0; i < d->max_sequences && st == HEDDLE_OK; i++)
        if (d->seq[i].is_used && d->seq[i].slot != NO_SLOT)
            d->seq[i].slot = n++;
    return st;
}

/* The sequence in a slot; NULL: none. */
static struct decode_seq *in_slot(const struct heddle_decoder *d, size_t slot)
{
    for (size_t i = 0; i < d->max_sequences; i++)
        if (d->seq[i].is_used && d->seq[i].slot == slot)
            return &d->seq[i];
    return NULL;
}

/* A sequence that has been read gets a slot with its keys and values. */
static heddle_status join(struct heddle_decoder *d, struct decode_seq *s,
                          const struct decode_pass *x)
{
    const size_t n = s->n;
    heddle_status st = make_slots(d, 1, n + 1);

    if (st == HEDDLE_EINVAL)
        st = make_slots(d, 1, n); /* this was the last token */
    if (st == HEDDLE_ENOSYS && d->cache.pass.instance == NULL) {
        d->way = DECODER_PASSED;
        return HEDDLE_OK;
    }
    HEDDLE_TRY(st);
    size_t slot = 0;
    while (in_slot(d, slot) != NULL)
        slot++;
    s->slot = slot;
    heddle_nn_cache_load(&d->cache, slot, x, n);
    return HEDDLE_OK;
}

/* --- steps ----------------------------------------------------------------------------------- */

/* Reads the tokens of a sequence, all of them, and adds one. */
static heddle_status read_tokens(struct heddle_decoder *d, struct decode_seq *s)
{
    const size_t n = s->n;
    struct decode_pass x;
    heddle_status st;

    if (d->ports.length >= 0 && n > (size_t)d->ports.length)
        return heddle_why(d->why, sizeof(d->why), HEDDLE_EOVERFLOW,
                          "the network takes %lld tokens, and the sequence has %zu",
                          (long long)d->ports.length, n);
    HEDDLE_TRY(open_run(d, &x, d->ports.length >= 0 ? (size_t)d->ports.length : read_bucket(n), n));
    heddle_nn_decode_fill(&d->ports, &x, 0, s->token, n, 0);
    st = heddle_nn_decode_run(d->net, &x, &d->o);
    if (st == HEDDLE_OK && d->way == DECODER_KEPT)
        st = join(d, s, &x);
    if (st == HEDDLE_OK && d->way == DECODER_PASSED)
        st = keep_past(d, s, &x, n);
    if (st == HEDDLE_OK)
        st = take_token(d, s, &x, 0, n - 1);
    heddle_nn_decode_close(d->net, &x);
    s->is_read = true;
    return st;
}

static void give(struct heddle_decoder *d, struct decode_seq *s, heddle_status st,
                 struct heddle_decoder_token *out, unsigned *n)
{
    s->is_failed = st != HEDDLE_OK;
    if (s->is_failed)
        s->slot = NO_SLOT;
    out[(*n)++] = (struct heddle_decoder_token){.sequence = (unsigned)(s - d->seq),
                                                .st = st,
                                                .token = st == HEDDLE_OK ? s->token[s->n - 1] : -1};
}

/* A sequence that cannot have another token. */
static bool is_full(struct heddle_decoder *d, const struct decode_seq *s)
{
    if (s->n < s->most)
        return false;
    (void)heddle_why(d->why, sizeof(d->why), HEDDLE_EOVERFLOW,
                     "the sequence has %zu tokens, as many as it may have", s->n);
    return true;
}

/* The inputs of a run: of `only`, or of all sequences but the reader. Is there any? */
static bool fill_slots(struct heddle_decoder *d, const struct decode_seq *reader,
                       const struct decode_seq *only)
{
    bool any = false;

    for (size_t slot = 0; slot < d->cache.pass.batch; slot++) {
        const struct decode_seq *s = in_slot(d, slot);
        const bool runs = s != NULL && s != reader && (only == NULL || s == only);

        heddle_nn_cache_fill(&d->cache, slot, runs ? &s->token[s->n - 1] : NULL,
                             runs ? s->n - 1 : 0);
        any = any || runs;
    }
    return any;
}

/* One token for each sequence of the cache but the reader, in one run. Where that fails, each one
 * runs alone, so that a sequence fails for itself only. */
static void advance_kept(struct heddle_decoder *d, const struct decode_seq *reader,
                         struct heddle_decoder_token *out, unsigned *n)
{
    struct decode_cache *c = &d->cache;
    heddle_status st = make_slots(d, 0, 1);
    bool is_alone = false;

    if (c->pass.instance == NULL)
        return;
    for (size_t i = 0; i < d->max_sequences && st != HEDDLE_OK; i++)
        if (d->seq[i].slot != NO_SLOT && d->seq[i].n > c->tokens && /* the network's own limit */
            &d->seq[i] != reader) /* which has its token of this step */
            give(d, &d->seq[i], st == HEDDLE_EINVAL ? HEDDLE_EOVERFLOW : st, out, n);
    if (!fill_slots(d, reader, NULL))
        return;
    st = heddle_nn_decode_run(d->net, &c->pass, &d->o);
    is_alone = st != HEDDLE_OK;
    for (size_t slot = 0; slot < c->pass.batch; slot++) {
        struct decode_seq *s = in_slot(d, slot);

        if (s == NULL || s == reader)
            continue;
        if (is_alone) {
            (void)fill_slots(d, reader, s);
            st = heddle_nn_decode_run(d->net, &c->pass, &d->o);
        }
        give(d, s, st == HEDDLE_OK ? take_token(d, s, &c->pass, slot, 0) : st, out, n);
    }
}

heddle_status heddle_decoder_step(heddle_decoder *d, struct heddle_decoder_token *out, unsigned max,
                                  unsigned *n)
{
    struct decode_seq *reader = NULL;

    HEDDLE_CHECK(d != NULL && out != NULL && n != NULL && max >= count_active(d));
    *n = 0;
    d->why[0] = '\0';
    for (size_t i = 0; i < d->max_sequences; i++) {
        struct decode_seq *s = &d->seq[i];

        if (!s->is_used || s->is_failed)
            continue;
        if (is_full(d, s))
            give(d, s, HEDDLE_EOVERFLOW, out, n);
        else if (!s->is_read && (reader == NULL || s->order < reader->order))
            reader = s;
    }
    if (reader != NULL)
        give(d, reader, read_tokens(d, reader), out, n);
    if (d->way == DECODER_KEPT) {
        advance_kept(d, reader, out, n);
        return HEDDLE_OK;
    }
    for (size_t i = 0; i < d->max_sequences; i++) {
        struct decode_seq *s = &d->seq[i];

        if (s->is_used && s->is_read && !s->is_failed && s != reader)
            give(d, s, d->way == DECODER_WHOLE ? read_tokens(d, s) : advance_passed(d, s), out, n);
    }
    return HEDDLE_OK;
}

const float *heddle_decoder_get_logits(const heddle_decoder *d, unsigned sequence, size_t *n)
{
    const struct decode_seq *s =
        d != NULL && sequence < d->max_sequences ? &d->seq[sequence] : NULL;

    if (s == NULL || !s->is_used || s->score == NULL)
        return NULL;
    if (n != NULL)
        *n = d->vocabulary;
    return s->score;
}

heddle_status heddle_decoder_get_info(const heddle_decoder *d, struct heddle_decoder_info *info)
{
    struct heddle_decoder_info i = {.size = sizeof(i)};

    HEDDLE_CHECK(d != NULL);
    HEDDLE_TRY(HEDDLE_SIZED_ROOM(struct heddle_decoder_info, info, NULL, 0));
    i.has_past = d->ports.npairs > 0;
    i.is_in_place = d->cache.pass.instance != NULL;
    i.sequences = (unsigned)count_active(d);
    i.room_tokens = d->cache.tokens;
    i.room_bytes = past_bytes(d, d->cache.tokens) * d->cache.pass.batch;
    for (size_t k = 0; k < d->max_sequences; k++)
        i.room_bytes += past_bytes(d, d->seq[k].past_n);
    i.vocabulary = d->vocabulary;
    heddle_sized_put(info, &i, sizeof(i));
    return HEDDLE_OK;
}
