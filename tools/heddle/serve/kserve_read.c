/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kserve_read: the body of an inference request becomes tensors.
 *
 * Order      the members of a JSON object come in any order, but numbers cannot be read
 *            before type and shape are known: the place of `data` is kept, and read when
 *            the object is complete.
 * Memory     numbers of JSON are allocated by the shape, whose product is checked against
 *            the length of the text first: an element takes at least two characters.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/json_in.h"
#include "base/why.h"
#include "serve/kserve.h"

static const struct {
    const char *name;
    size_t bytes;
    bool is_real, has_sign;
} types[] = {
#define KSERVE_TYPE_ROW(name, bytes, is_real, has_sign) {#name, bytes, is_real, has_sign},
    KSERVE_TYPE_LIST(KSERVE_TYPE_ROW)
#undef KSERVE_TYPE_ROW
};

const char *kserve_type_name(enum kserve_type t)
{
    return types[t].name;
}

size_t kserve_type_bytes(enum kserve_type t)
{
    return types[t].bytes;
}

/* What reading is in the middle of. */
struct reader {
    struct kserve_request *r;
    struct heddle_json_in json;
    const char *binary; /* the next bytes of the binary part */
    size_t binary_left;
    char *why;
    size_t why_bytes;
};

/* What an object of `inputs` said about its data. */
struct pending {
    bool has_type, has_shape, has_data, has_binary;
    struct heddle_json_in data; /* the reader at the first item of the data */
    uint64_t binary_bytes;
};

#define REFUSE(r, ...) heddle_why((r)->why, (r)->why_bytes, HEDDLE_EINVAL, __VA_ARGS__)

static heddle_status bad_json(struct reader *r)
{
    return REFUSE(r, "the JSON is malformed at byte %zu: %s", (size_t)(r->json.at - r->json.begin),
                  r->json.what);
}

/* The next item; false: the JSON is malformed. */
static bool next(struct reader *r, struct heddle_json_item *item)
{
    return heddle_json_next(&r->json, item) != HEDDLE_JSON_BAD;
}

/* The next item is the first of a value of this kind. */
static heddle_status want(struct reader *r, enum heddle_json_kind kind, const char *what,
                          struct heddle_json_item *item)
{
    static const char *const words[] = {"",         "",         "an object", "an array", "",    "",
                                        "a string", "a number", "true",      "false",    "null"};

    if (!next(r, item))
        return bad_json(r);
    if (item->kind != kind)
        return REFUSE(r, "'%s' is not %s", what, words[kind]);
    return HEDDLE_OK;
}

static heddle_status read_text(struct reader *r, const char *what, char out[KSERVE_MAX_NAME])
{
    struct heddle_json_item item;
    size_t len;

    HEDDLE_TRY(want(r, HEDDLE_JSON_STRING, what, &item));
    if (heddle_json_get_string(&item, out, KSERVE_MAX_NAME, &len) != HEDDLE_OK)
        return REFUSE(r, "'%s' is longer than %d bytes", what, KSERVE_MAX_NAME - 1);
    if (len != strlen(out))
        return REFUSE(r, "'%s' has a zero byte", what);
    return HEDDLE_OK;
}

static heddle_status read_u64(struct reader *r, const char *what, uint64_t *out)
{
    struct heddle_json_item item;

    HEDDLE_TRY(want(r, HEDDLE_JSON_NUMBER, what, &item));
    if (heddle_json_get_u64(&item, out) != HEDDLE_OK)
        return REFUSE(r, "'%s' is not a whole number from 0 on", what);
    return HEDDLE_OK;
}

static heddle_status read_bool(struct reader *r, const char *what, bool *out)
{
    struct heddle_json_item item;

    if (!next(r, &item))
        return bad_json(r);
    if (item.kind != HEDDLE_JSON_TRUE && item.kind != HEDDLE_JSON_FALSE)
        return REFUSE(r, "'%s' is neither true nor false", what);
    *out = item.kind == HEDDLE_JSON_TRUE;
    return HEDDLE_OK;
}

static heddle_status pass_over(struct reader *r)
{
    struct heddle_json_item item;

    return next(r, &item) && heddle_json_skip(&r->json, &item) ? HEDDLE_OK : bad_json(r);
}

/* Calls `member` for each key of the object that comes next. */
static heddle_status each_member(struct reader *r, const char *what,
                                 heddle_status (*member)(struct reader *r, void *object,
                                                         const struct heddle_json_item *key),
                                 void *object)
{
    struct heddle_json_item item;

    HEDDLE_TRY(want(r, HEDDLE_JSON_OBJECT, what, &item));
    for (;;) {
        if (!next(r, &item))
            return bad_json(r);
        if (item.kind == HEDDLE_JSON_CLOSE)
            return HEDDLE_OK;
        HEDDLE_TRY(member(r, object, &item));
    }
}

/* --- inputs ------------------------------------------------------------------ */

static heddle_status read_type(struct reader *r, struct kserve_tensor *t)
{
    char name[KSERVE_MAX_NAME];

    HEDDLE_TRY(read_text(r, "datatype", name));
    for (size_t i = 0; i < KSERVE_NTYPES; i++) {
        if (strcmp(name, types[i].name) == 0) {
            t->type = (enum kserve_type)i;
            return HEDDLE_OK;
        }
    }
    return REFUSE(r, "no datatype '%s' is served", name);
}

static heddle_status read_shape(struct reader *r, struct kserve_tensor *t)
{
    struct heddle_json_item item;

    HEDDLE_TRY(want(r, HEDDLE_JSON_ARRAY, "shape", &item));
    t->count = 1;
    for (t->ndim = 0;; t->ndim++) {
        uint64_t d;

        if (!next(r, &item))
            return bad_json(r);
        if (item.kind == HEDDLE_JSON_CLOSE)
            return HEDDLE_OK;
        if (t->ndim == KSERVE_MAX_DIMS)
            return REFUSE(r, "a shape has more than %d dimensions", KSERVE_MAX_DIMS);
        if (heddle_json_get_u64(&item, &d) != HEDDLE_OK || d > INT64_MAX)
            return REFUSE(r, "a dimension of a shape is not a whole number from 0 on");
        t->dim[t->ndim] = (int64_t)d;
        if (!heddle_mul(&t->count, t->count, (size_t)d) || t->count > SIZE_MAX / 16)
            return REFUSE(r, "a shape has too many elements");
    }
}

static heddle_status tensor_parameter(struct reader *r, void *object,
                                      const struct heddle_json_item *key)
{
    struct pending *p = object;

    if (!heddle_json_is(key, "binary_data_size"))
        return pass_over(r);
    p->has_binary = true;
    return read_u64(r, "binary_data_size", &p->binary_bytes);
}

struct input {
    struct kserve_tensor *t;
    struct pending p;
};

static heddle_status input_member(struct reader *r, void *object,
                                  const struct heddle_json_item *key)
{
    struct input *in = object;

    if (heddle_json_is(key, "name"))
        return read_text(r, "name", in->t->name);
    if (heddle_json_is(key, "datatype")) {
        in->p.has_type = true;
        return read_type(r, in->t);
    }
    if (heddle_json_is(key, "shape")) {
        in->p.has_shape = true;
        return read_shape(r, in->t);
    }
    if (heddle_json_is(key, "parameters"))
        return each_member(r, "parameters", tensor_parameter, &in->p);
    if (heddle_json_is(key, "data")) {
        in->p.has_data = true;
        in->p.data = r->json;
    }
    return pass_over(r);
}

/* --- numbers ------------------------------------------------------------------ */

static bool put_real(enum kserve_type t, double v, void *at)
{
    if (t == KSERVE_FP64)
        *(double *)at = v;
    else if (t == KSERVE_FP32)
        *(float *)at = (float)v;
    else
        return false; /* FP16 and BF16 come as bytes */
    return true;
}

/* Does v fit into `bytes` bytes? */
static bool put_signed(size_t bytes, int64_t v, void *at)
{
    const int64_t most = bytes == 8 ? INT64_MAX : ((int64_t)1 << (8 * bytes - 1)) - 1;

    if (v > most || v < -most - 1)
        return false;
    memcpy(at, &v, bytes); /* the low bytes come first: x86-64, aarch64 */
    return true;
}

static bool put_unsigned(size_t bytes, uint64_t v, void *at)
{
    if (bytes < 8 && v >> (8 * bytes) != 0)
        return false;
    memcpy(at, &v, bytes);
    return true;
}

/* One element of JSON; false: it does not fit the type. */
static bool put_item(enum kserve_type t, const struct heddle_json_item *item, void *at)
{
    const size_t bytes = types[t].bytes;
    double real;
    int64_t i;
    uint64_t u;

    if (t == KSERVE_BOOL) {
        const bool is_true = item->kind == HEDDLE_JSON_TRUE;

        if (is_true || item->kind == HEDDLE_JSON_FALSE)
            return put_unsigned(1, is_true, at);
        return heddle_json_get_u64(item, &u) == HEDDLE_OK && u <= 1 && put_unsigned(1, u, at);
    }
    if (types[t].is_real)
        return heddle_json_get_double(item, &real) == HEDDLE_OK && put_real(t, real, at);
    if (types[t].has_sign)
        return heddle_json_get_i64(item, &i) == HEDDLE_OK && put_signed(bytes, i, at);
    return heddle_json_get_u64(item, &u) == HEDDLE_OK && put_unsigned(bytes, u, at);
}

/* The numbers of `data`, nested or flat: row by row in both cases. */
static heddle_status read_numbers(struct reader *r, struct kserve_tensor *t,
                                  struct heddle_json_in data)
{
    const size_t bytes = types[t->type].bytes;
    struct heddle_json_item item;
    unsigned depth = 0;
    size_t n = 0;
    char *to;

    if (t->count / 2 > (size_t)(data.end - data.at))
        return REFUSE(r, "input '%s' has fewer numbers than its shape", t->name);
    to = heddle_scratch_raw(&r->r->mem, t->count > 0 ? t->count : 1, bytes);
    if (to == NULL)
        return HEDDLE_ENOMEM;
    if (heddle_json_next(&data, &item) != HEDDLE_JSON_ARRAY)
        return REFUSE(r, "the data of input '%s' is not an array", t->name);
    for (depth = 1; depth > 0;) {
        /* The text was read once already: it is well formed. */
        (void)heddle_json_next(&data, &item);
        if (item.kind == HEDDLE_JSON_ARRAY)
            depth++;
        else if (item.kind == HEDDLE_JSON_CLOSE)
            depth--;
        else if (n == t->count)
            return REFUSE(r, "input '%s' has more numbers than its shape", t->name);
        else if (!put_item(t->type, &item, to + bytes * n++))
            return REFUSE(r, "element %zu of input '%s' is no %s in JSON", n - 1, t->name,
                          types[t->type].name);
    }
    if (n != t->count)
        return REFUSE(r, "input '%s' has %zu numbers, its shape %zu", t->name, n, t->count);
    t->data = to;
    return HEDDLE_OK;
}

static heddle_status take_binary(struct reader *r, struct kserve_tensor *t, uint64_t bytes)
{
    if (bytes != (uint64_t)t->count * types[t->type].bytes)
        return REFUSE(r, "input '%s' has %llu bytes, its shape and datatype %zu", t->name,
                      (unsigned long long)bytes, t->count * types[t->type].bytes);
    if (bytes > r->binary_left)
        return REFUSE(r, "the body ends before the data of input '%s'", t->name);
    t->data = r->binary;
    r->binary += bytes;
    r->binary_left -= (size_t)bytes;
    return HEDDLE_OK;
}

static heddle_status read_input(struct reader *r, struct kserve_tensor *t)
{
    struct input in = {.t = t};

    HEDDLE_TRY(each_member(r, "inputs", input_member, &in));
    if (t->name[0] == '\0')
        return REFUSE(r, "an input has no name");
    if (!in.p.has_type || !in.p.has_shape)
        return REFUSE(r, "input '%s' has no %s", t->name, in.p.has_type ? "shape" : "datatype");
    if (in.p.has_data == in.p.has_binary)
        return REFUSE(r, "input '%s' has %s", t->name,
                      in.p.has_data ? "numbers and binary data" : "no data");
    return in.p.has_data ? read_numbers(r, t, in.p.data) : take_binary(r, t, in.p.binary_bytes);
}

/* --- outputs and the whole ------------------------------------------------------ */

static heddle_status want_parameter(struct reader *r, void *object,
                                    const struct heddle_json_item *key)
{
    struct kserve_want *w = object;

    if (heddle_json_is(key, "binary_data"))
        return read_bool(r, "binary_data", &w->is_binary);
    if (heddle_json_is(key, "classification"))
        return REFUSE(r, "outputs as classes are not served");
    return pass_over(r);
}

static heddle_status want_member(struct reader *r, void *object, const struct heddle_json_item *key)
{
    struct kserve_want *w = object;

    if (heddle_json_is(key, "name"))
        return read_text(r, "name", w->name);
    if (heddle_json_is(key, "parameters"))
        return each_member(r, "parameters", want_parameter, w);
    return pass_over(r);
}

static heddle_status read_want(struct reader *r, struct kserve_want *w)
{
    HEDDLE_TRY(each_member(r, "outputs", want_member, w));
    return w->name[0] != '\0' ? HEDDLE_OK : REFUSE(r, "an output has no name");
}

/* The values of an array that comes next: each(i) for the i-th. */
static heddle_status each_element(struct reader *r, const char *what, size_t *n_out,
                                  heddle_status (*each)(struct reader *r, size_t i))
{
    struct heddle_json_item item;
    struct heddle_json_in before;

    HEDDLE_TRY(want(r, HEDDLE_JSON_ARRAY, what, &item));
    for (size_t n = 0;; n++) {
        before = r->json;
        if (!next(r, &item))
            return bad_json(r);
        if (item.kind == HEDDLE_JSON_CLOSE) {
            *n_out = n;
            return HEDDLE_OK;
        }
        if (n == KSERVE_MAX_TENSORS)
            return REFUSE(r, "'%s' has more than %d tensors", what, KSERVE_MAX_TENSORS);
        r->json = before;
        HEDDLE_TRY(each(r, n));
    }
}

/* There are more elements than the request itself has room for. */
static void *make_room(struct reader *r, const void *few, size_t bytes)
{
    char *all = heddle_scratch_get(&r->r->mem, KSERVE_MAX_TENSORS, bytes);

    if (all != NULL)
        memcpy(all, few, KSERVE_FEW * bytes);
    return all;
}

static heddle_status each_input(struct reader *r, size_t i)
{
    struct kserve_request *q = r->r;

    if (i == KSERVE_FEW) {
        q->in = make_room(r, q->few_in, sizeof(q->in[0]));
        if (q->in == NULL)
            return HEDDLE_ENOMEM;
    }
    return read_input(r, &q->in[i]);
}

static heddle_status each_want(struct reader *r, size_t i)
{
    struct kserve_request *q = r->r;

    if (i == KSERVE_FEW) {
        q->out = make_room(r, q->few_out, sizeof(q->out[0]));
        if (q->out == NULL)
            return HEDDLE_ENOMEM;
    }
    q->out[i].is_binary = q->is_binary;
    return read_want(r, &q->out[i]);
}

static heddle_status request_parameter(struct reader *r, void *object,
                                       const struct heddle_json_item *key)
{
    struct kserve_request *q = object;
    bool is_known;

    if (heddle_json_is(key, "priority"))
        return read_u64(r, "priority", &q->priority);
    if (heddle_json_is(key, "timeout"))
        return read_u64(r, "timeout", &q->timeout_us);
    if (heddle_json_is(key, "binary_data_output"))
        return read_bool(r, "binary_data_output", &q->is_binary);
    HEDDLE_TRY(
        kserve_generate_member(&r->json, key, &q->generate, &is_known, r->why, r->why_bytes));
    return is_known ? HEDDLE_OK : pass_over(r);
}

/* Where the two lists begin: the parameters must be known before the outputs, and inputs
 * take the binary part in their order. */
struct lists {
    bool has_in, has_out;
    struct heddle_json_in in, out;
};

static heddle_status request_member(struct reader *r, void *object,
                                    const struct heddle_json_item *key)
{
    struct lists *l = object;

    if (heddle_json_is(key, "id"))
        return read_text(r, "id", r->r->id);
    if (heddle_json_is(key, "parameters"))
        return each_member(r, "parameters", request_parameter, r->r);
    if (heddle_json_is(key, "inputs")) {
        l->has_in = true;
        l->in = r->json;
    } else if (heddle_json_is(key, "outputs")) {
        l->has_out = true;
        l->out = r->json;
    }
    return pass_over(r);
}

static heddle_status same_name_twice(struct reader *r)
{
    const struct kserve_request *q = r->r;

    for (size_t i = 0; i < q->nin; i++) {
        for (size_t k = 0; k < i; k++) {
            if (strcmp(q->in[i].name, q->in[k].name) == 0)
                return REFUSE(r, "two inputs are called '%s'", q->in[i].name);
        }
    }
    for (size_t i = 0; i < q->nout; i++) {
        for (size_t k = 0; k < i; k++) {
            if (strcmp(q->out[i].name, q->out[k].name) == 0)
                return REFUSE(r, "two outputs are called '%s'", q->out[i].name);
        }
    }
    return HEDDLE_OK;
}

static heddle_status read_lists(struct reader *r, const struct lists *l)
{
    if (!l->has_in)
        return REFUSE(r, "the request has no inputs");
    r->json = l->in;
    HEDDLE_TRY(each_element(r, "inputs", &r->r->nin, each_input));
    if (l->has_out) {
        r->json = l->out;
        HEDDLE_TRY(each_element(r, "outputs", &r->r->nout, each_want));
    }
    if (r->binary_left > 0)
        return REFUSE(r, "%zu bytes follow the data of the last input", r->binary_left);
    return same_name_twice(r);
}

/* The reader of JSON wants a zero behind its text: bytes of tensors are none. */
static const char *json_text(struct kserve_request *q, const char *body, size_t bytes,
                             size_t json_bytes)
{
    char *copy;

    if (json_bytes == bytes)
        return body;
    copy = heddle_scratch_raw(&q->mem, json_bytes + 1, 1);
    if (copy != NULL) {
        memcpy(copy, body, json_bytes);
        copy[json_bytes] = '\0';
    }
    return copy;
}

heddle_status kserve_request_read(struct kserve_request *q, const struct heddle_allocator *a,
                                  const char *body, size_t bytes, size_t json_bytes, char *why,
                                  size_t why_bytes)
{
    struct reader r = {.r = q, .why = why, .why_bytes = why_bytes};
    struct lists lists = {.has_in = false};
    struct heddle_json_item item;
    const char *text;

    *q = (struct kserve_request){.mem = heddle_scratch_make(a)};
    if (json_bytes > bytes)
        return REFUSE(&r, "the JSON is said to have %zu bytes, the body has %zu", json_bytes,
                      bytes);
    q->in = q->few_in;
    q->out = q->few_out;
    r.binary = body + json_bytes;
    r.binary_left = bytes - json_bytes;
    text = json_text(q, body, bytes, json_bytes);
    if (text == NULL)
        return HEDDLE_ENOMEM;
    heddle_json_in_init(&r.json, text, json_bytes);
    HEDDLE_TRY(each_member(&r, "request", request_member, &lists));
    if (heddle_json_next(&r.json, &item) != HEDDLE_JSON_DONE)
        return bad_json(&r);
    return read_lists(&r, &lists);
}

void kserve_request_fini(struct kserve_request *q)
{
    heddle_scratch_drop(&q->mem);
}
