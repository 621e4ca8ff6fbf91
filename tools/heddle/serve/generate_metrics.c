/* SPDX-License-Identifier: BSD-3-Clause */
/* generate_metrics: the numbers of generators, for /metrics. */
#include "serve/generate.h"
#include "serve/server_own.h"

static const struct {
    const char *name, *help, *type;
    size_t at;
} rows[] = {
#define ROW(field, name, help, type)                                                               \
    {                                                                                              \
        "heddle_generate_" name, help, type, offsetof(struct generator_numbers, field)             \
    }
    ROW(tokens, "tokens", "tokens that were generated", "counter"),
    ROW(prompt_tokens, "prompt_tokens", "tokens of prompts that were read", "counter"),
    ROW(steps, "steps", "steps of the running batch", "counter"),
    ROW(good, "success", "requests that got their tokens", "counter"),
    ROW(failed, "failure", "requests that failed", "counter"),
    ROW(refused, "refused", "requests refused because too many waited", "counter"),
    ROW(cancelled, "cancelled", "requests whose client went away", "counter"),
    ROW(nqueued, "waiting", "requests in the queue", "gauge"),
    ROW(nrunning, "running", "requests in the running batch", "gauge"),
    ROW(cache_bytes, "cache_bytes", "memory of keys and values", "gauge"),
#undef ROW
};

void server_generate_metrics(struct heddle_text *t, struct serve_model *const *model, size_t n)
{
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        bool has_head = false;

        for (size_t i = 0; i < n; i++) {
            struct generator_numbers now;
            const char *at = (const char *)&now + rows[r].at;

            if (model[i]->generator == NULL)
                continue;
            if (!has_head)
                heddle_text_add(t, "# HELP %s %s\n# TYPE %s %s\n", rows[r].name, rows[r].help,
                                rows[r].name, rows[r].type);
            has_head = true;
            generator_get_numbers(model[i]->generator, &now);
            heddle_text_add(t, "%s{model=\"%s\",version=\"1\"} %llu\n", rows[r].name,
                            model[i]->name,
                            (unsigned long long)*(const uint64_t *)(const void *)at);
        }
    }
}
