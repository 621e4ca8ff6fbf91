/* SPDX-License-Identifier: BSD-3-Clause */
/* json_in: our reader of JSON. */
#include "base/json_in.h"

#include <math.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

static void use(const struct heddle_json_item *item)
{
    char buf[64];
    size_t len = 0;
    int64_t whole = 0;
    double d = 0;

    (void)heddle_json_is(item, "key");
    if (heddle_json_get_string(item, buf, sizeof(buf), &len) == HEDDLE_OK)
        FUZZ_CHECK(len < sizeof(buf) && buf[len] == '\0');
    if (heddle_json_get_double(item, &d) == HEDDLE_OK)
        FUZZ_CHECK(!isnan(d));
    (void)!heddle_json_get_i64(item, &whole);
}

void fuzz_one(const uint8_t *data, size_t bytes)
{
    char *text = malloc(bytes + 1);
    struct heddle_json_item item;
    struct heddle_json_in j;
    enum heddle_json_kind kind;
    size_t n = 0;

    FUZZ_CHECK(text != NULL);
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    heddle_json_in_init(&j, text, bytes);
    while ((kind = heddle_json_next(&j, &item)) != HEDDLE_JSON_DONE && kind != HEDDLE_JSON_BAD) {
        use(&item);
        FUZZ_CHECK(++n <= bytes);
    }
    FUZZ_CHECK(kind == HEDDLE_JSON_DONE || j.what != NULL);
    heddle_json_in_init(&j, text, bytes);
    if (heddle_json_next(&j, &item) != HEDDLE_JSON_BAD)
        (void)heddle_json_skip(&j, &item);
    free(text);
}
