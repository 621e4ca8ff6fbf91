/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_SAMPLE_H
#define HEDDLE_CORE_SAMPLE_H

/* Energy counters, into the log. */
#include <stdbool.h>
#include <stdint.h>

#include "heddle/ctx.h"

/* The option energy: "off", "auto" or a period, and where the kernel's files are. */
struct energy_choice {
    bool is_off;
    uint64_t period_ns; /* 0: each source its own */
    const char *sysfs;  /* NULL: /sys */
};

/* NULL is "auto". False: malformed, or a period under 100 us or over an hour. */
bool heddle_energy_parse(const char *text, struct energy_choice *out);
/* In this order, all but take() alone. ctx->sampler is NULL where energy is not
 * recorded; then they do nothing. */
heddle_status heddle_sampler_open(heddle_ctx *ctx, const struct heddle_ctx_opts *o);
/* Lanes of the log that it needs, the last ones. */
uint32_t heddle_sampler_lanes(const heddle_ctx *ctx);
/* The log is there: definitions, or why there are no samples; the first sample. */
void heddle_sampler_begin(heddle_ctx *ctx, const struct heddle_ctx_opts *o);
void heddle_sampler_start(heddle_ctx *ctx);
/* Is the caller its thread, in a callback of the user? */
bool heddle_sampler_is_self(const heddle_ctx *ctx);
/* A sample of everything now. Any thread. */
void heddle_sampler_take(heddle_ctx *ctx);
/* The last sample; the thread is gone afterwards. */
void heddle_sampler_end(heddle_ctx *ctx);
void heddle_sampler_close(heddle_ctx *ctx);

#endif /* HEDDLE_CORE_SAMPLE_H */
