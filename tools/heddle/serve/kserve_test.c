/* SPDX-License-Identifier: BSD-3-Clause */
/* kserve: bodies of requests that are read, all that is refused, replies, failing memory. */
#include "serve/kserve.h"

#include "base/alloc.h"
#include "base/faulty_test.h"
#include "base/rng.h"
#include "tests/test.h"

static char why[256];

static heddle_status read_body(struct kserve_request *q, const char *body, size_t bytes,
                               size_t json_bytes)
{
    why[0] = '\0';
    return kserve_request_read(q, NULL, body, bytes, json_bytes, why, sizeof(why));
}

static void accept(struct kserve_request *q, const char *body)
{
    const heddle_status st = read_body(q, body, strlen(body), strlen(body));

    if (st != HEDDLE_OK)
        printf("%s\n", why);
    CHECK_OK(st);
}

TEST(numbers_flat_and_nested)
{
    static const char body[] =
        "{\"outputs\":[{\"name\":\"y\"}],\"id\":\"7\",\"inputs\":[{\"data\":[[1,2.5],[-3,4e0]],"
        "\"shape\":[2,2],\"datatype\":\"FP32\",\"name\":\"x\"},{\"name\":\"ids\",\"shape\":[3],"
        "\"datatype\":\"INT64\",\"data\":[1,-2,9223372036854775807]}],"
        "\"parameters\":{\"priority\":3,\"timeout\":1500,\"other\":{\"a\":[1]}}}";
    struct kserve_request q;

    accept(&q, body);
    CHECK_STR(q.id, "7");
    CHECK_EQ(q.priority, 3);
    CHECK_EQ(q.timeout_us, 1500);
    CHECK_EQ(q.nin, 2);
    CHECK_EQ(q.nout, 1);
    CHECK_STR(q.out[0].name, "y");
    CHECK(!q.out[0].is_binary);
    CHECK_STR(q.in[0].name, "x");
    CHECK_EQ(q.in[0].ndim, 2);
    CHECK_EQ(q.in[0].count, 4);
    CHECK(((const float *)q.in[0].data)[1] == 2.5f && ((const float *)q.in[0].data)[2] == -3.0f);
    CHECK_EQ(((const int64_t *)q.in[1].data)[2], INT64_MAX);
    CHECK_EQ(((const int64_t *)q.in[1].data)[1], -2);
    kserve_request_fini(&q);
}

TEST(binary_data_in_order)
{
    static const char json[] =
        "{\"parameters\":{\"binary_data_output\":true},\"inputs\":[{\"name\":\"a\",\"shape\":[3],"
        "\"datatype\":\"UINT8\",\"parameters\":{\"binary_data_size\":3}},{\"name\":\"b\","
        "\"shape\":[1,2],\"datatype\":\"FP16\",\"parameters\":{\"binary_data_size\":4}}],"
        "\"outputs\":[{\"name\":\"y\"},{\"name\":\"z\",\"parameters\":{\"binary_data\":false}}]}";
    const size_t n = sizeof(json) - 1;
    char body[sizeof(json) + 8];
    struct kserve_request q;

    memcpy(body, json, n);
    memcpy(body + n, "\"{[1234", 8);
    CHECK_OK(read_body(&q, body, n + 7, n));
    CHECK(memcmp(q.in[0].data, "\"{[", 3) == 0 && memcmp(q.in[1].data, "1234", 4) == 0);
    CHECK(q.out[0].is_binary && !q.out[1].is_binary);
    kserve_request_fini(&q);
    /* Too few bytes, too many, a length that lies. */
    CHECK_STATUS(read_body(&q, body, n + 6, n), HEDDLE_EINVAL);
    CHECK_STR(why, "the body ends before the data of input 'b'");
    kserve_request_fini(&q);
    body[n + 8] = '\0';
    CHECK_STATUS(read_body(&q, body, n + 8, n), HEDDLE_EINVAL);
    CHECK_STR(why, "1 bytes follow the data of the last input");
    kserve_request_fini(&q);
    CHECK_STATUS(read_body(&q, body, n, n + 1), HEDDLE_EINVAL);
    kserve_request_fini(&q);
    CHECK_STATUS(read_body(&q, body, n + 7, n - 1), HEDDLE_EINVAL);
    kserve_request_fini(&q);
}

#define INPUT(members) "{\"inputs\":[{" members "}]}"

TEST(refusals)
{
    static const char *const rows[][2] = {
        {"", "the JSON is malformed at byte 0: the text ends in the middle"},
        {"[]", "'request' is not an object"},
        {"{}", "the request has no inputs"},
        {"{\"inputs\":3}", "'inputs' is not an array"},
        {"{\"inputs\":[3]}", "'inputs' is not an object"},
        {INPUT(""), "an input has no name"},
        {INPUT("\"name\":\"x\""), "input 'x' has no datatype"},
        {INPUT("\"name\":\"x\",\"datatype\":\"FP32\""), "input 'x' has no shape"},
        {INPUT("\"name\":\"x\",\"datatype\":\"BYTES\""), "no datatype 'BYTES' is served"},
        {INPUT("\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1]"), "input 'x' has no data"},
        {INPUT("\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[-1],\"data\":[]"),
         "a dimension of a shape is not a whole number from 0 on"},
        {INPUT(
             "\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[4294967296,4294967296],\"data\":[]"),
         "a shape has too many elements"},
        {INPUT("\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1000000000000],\"data\":[1]"),
         "input 'x' has fewer numbers than its shape"},
        {INPUT("\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data\":[1]"),
         "a shape has more than 8 dimensions"},
        {INPUT("\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[2],\"data\":[1]"),
         "input 'x' has 1 numbers, its shape 2"},
        {INPUT("\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1],\"data\":[1,2]"),
         "input 'x' has more numbers than its shape"},
        {INPUT("\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1],\"data\":[null]"),
         "element 0 of input 'x' is no FP32 in JSON"},
        {INPUT("\"name\":\"x\",\"datatype\":\"FP16\",\"shape\":[1],\"data\":[1]"),
         "element 0 of input 'x' is no FP16 in JSON"},
        {INPUT("\"name\":\"x\",\"datatype\":\"INT8\",\"shape\":[2],\"data\":[-128,128]"),
         "element 1 of input 'x' is no INT8 in JSON"},
        {INPUT("\"name\":\"x\",\"datatype\":\"UINT8\",\"shape\":[1],\"data\":[-1]"),
         "element 0 of input 'x' is no UINT8 in JSON"},
        {INPUT("\"name\":\"x\",\"datatype\":\"BOOL\",\"shape\":[1],\"data\":[2]"),
         "element 0 of input 'x' is no BOOL in JSON"},
        {INPUT("\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1],\"data\":7"),
         "the data of input 'x' is not an array"},
        {INPUT("\"name\":\"a\\u0000b\""), "'name' has a zero byte"},
        {"{\"inputs\":[],\"parameters\":{\"timeout\":-1}}",
         "'timeout' is not a whole number from 0 on"},
        {"{\"inputs\":[{\"name\":\"x\",\"datatype\":\"INT8\",\"shape\":[0],\"data\":[]},"
         "{\"name\":\"x\",\"datatype\":\"INT8\",\"shape\":[0],\"data\":[]}]}",
         "two inputs are called 'x'"},
        {"{\"inputs\":[],\"outputs\":[{}]}", "an output has no name"},
        {"{\"inputs\":[]} x", "the JSON is malformed at byte 14: something follows the value"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct kserve_request q;

        CHECK_STATUS(read_body(&q, rows[i][0], strlen(rows[i][0]), strlen(rows[i][0])),
                     HEDDLE_EINVAL);
        CHECK_STR(why, rows[i][1]);
        kserve_request_fini(&q);
    }
}

TEST(replies_are_read_again)
{
    static const float x[] = {0.5f, -3.25f};
    static const int8_t small[] = {-128, 127, -1};
    const struct kserve_tensor out[] = {
        {.name = "x", .type = KSERVE_FP32, .ndim = 1, .dim = {2}, .count = 2, .data = x},
        {.name = "s\"", .type = KSERVE_INT8, .ndim = 2, .dim = {1, 3}, .count = 3, .data = small},
        {.name = "e", .type = KSERVE_UINT64, .ndim = 1, .dim = {0}}};
    struct heddle_json j;

    heddle_json_init(&j, NULL);
    kserve_reply_write(&j, "m", "1", "9", out, (const bool[]){false, false, true}, 3);
    CHECK_OK(heddle_json_finish(&j));
    CHECK_STR(j.buf, "{\"model_name\":\"m\",\"model_version\":\"1\",\"id\":\"9\",\"outputs\":["
                     "{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[2],\"data\":[0.5,-3.25]},"
                     "{\"name\":\"s\\\"\",\"datatype\":\"INT8\",\"shape\":[1,3],"
                     "\"data\":[-128,127,-1]},{\"name\":\"e\",\"datatype\":\"UINT64\","
                     "\"shape\":[0],\"parameters\":{\"binary_data_size\":0}}]}");
    heddle_json_fini(&j);
}

static const char sample[] =
    "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[2,1],\"data\":[[1],[2]]},"
    "{\"name\":\"b\",\"shape\":[1],\"datatype\":\"BOOL\",\"parameters\":{\"binary_data_size\":1}}],"
    "\"outputs\":[{\"name\":\"y\"}]}";

TEST(kth_allocation_fails)
{
    const size_t n = sizeof(sample) - 1;
    char body[sizeof(sample) + 1];
    struct faulty f;

    memcpy(body, sample, n);
    memcpy(body + n, "\1", 2);
    for (size_t k = 1; k == 1 || f.has_failed; k++) {
        struct kserve_request q;
        heddle_status st;

        faulty_init(&f, k);
        st = kserve_request_read(&q, &f.a, body, n + 1, n, NULL, 0);
        CHECK_STATUS(st, f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK);
        kserve_request_fini(&q);
        CHECK_EQ(f.nlive, 0);
    }
}

/* Cut anywhere, or with bytes changed: read or refused with a sentence. */
TEST(damaged_bodies)
{
    const size_t n = sizeof(sample) - 1, rounds = test_scale(20000);
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    for (size_t round = 0; round < rounds; round++) {
        const size_t len = round < n ? round : n;
        char *body = malloc(len + 1);
        struct kserve_request q;
        heddle_status st;

        CHECK(body != NULL);
        memcpy(body, sample, len);
        body[len] = '\0';
        if (round >= n)
            body[heddle_rng_below(&r, n)] = (char)heddle_rng_next(&r);
        st = read_body(&q, body, len, len);
        CHECK(st == HEDDLE_OK || (st == HEDDLE_EINVAL && why[0] != '\0'));
        kserve_request_fini(&q);
        free(body);
    }
}

TEST_MAIN(numbers_flat_and_nested, binary_data_in_order, refusals, replies_are_read_again,
          kth_allocation_fails, damaged_bodies)
