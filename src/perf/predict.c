/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * predict: record and predict, and the guess for a shape never measured.
 *
 * Guess      the first of these that is possible: a curve through the measured
 *            shapes of the series (3 sizes or more), the roofline times the
 *            median of measured over roofline (1 or 2), the roofline, nothing.
 * Cost       predict of a measured shape is one load. A guess is kept in the
 *            entry until the series' `gen` moves; the curve is fitted again
 *            when gen grew by an eighth, so the number of fits is logarithmic
 *            in the number of samples.
 * Threads    `fit_lock` is tried, never waited for: a thread that does not get
 *            it answers with what it has. All words are relaxed because each
 *            stands for itself; entries are reached by acquire loads.
 */
#include <string.h>

#include "base/compiler.h"
#include "perf/model.h"

#define CONFIDENCE_PRIOR  0.1
#define CONFIDENCE_SCALED 0.2
#define COLLECT           256 /* measured shapes looked at for one fit */
#define GEN_EVERY         64  /* samples of an entry that move gen, once many */

static double work_of(double flops, double bytes)
{
    return flops > 0.0 ? flops : bytes;
}

static double series_roofline(const struct heddle_perf_series *s, double flops, double bytes)
{
    struct heddle_perf_device d = heddle_perf_device_default;

    if (s->peaks != NULL) {
        d.peak_flops = heddle_load_rlx(&s->peaks->peak_flops);
        d.peak_bytes_per_s = heddle_load_rlx(&s->peaks->peak_bytes_per_s);
        d.overhead_ns = heddle_load_rlx(&s->peaks->overhead_ns);
    }
    return heddle_perf_roofline(&d, flops, bytes);
}

/* What a fit is made of: measured entries of known work, evenly chosen. */
struct sample_set {
    struct heddle_fit_point point[COLLECT];
    double ratio[COLLECT]; /* measured over roofline */
    size_t n;
};

static size_t series_length(struct heddle_perf_series *s)
{
    size_t n = 0;

    for (struct heddle_perf_entry *e = heddle_load_acq(&s->first); e != NULL;
         e = heddle_load_acq(&e->next))
        n++;
    return n;
}

static void collect(struct heddle_perf_series *s, struct sample_set *set)
{
    const size_t step = series_length(s) / COLLECT + 1;
    struct heddle_perf_entry *e = heddle_load_acq(&s->first);
    struct heddle_estimate est;

    set->n = 0;
    for (size_t i = 0; e != NULL && set->n < COLLECT; i++, e = heddle_load_acq(&e->next)) {
        const double flops = heddle_load_rlx(&e->flops);
        const double bytes = heddle_load_rlx(&e->bytes);

        heddle_history_unpack(heddle_load_rlx(&e->history.est), &est);
        if (i % step != 0 || est.source != HEDDLE_EST_MEASURED || work_of(flops, bytes) <= 0.0)
            continue;
        set->point[set->n].x = work_of(flops, bytes);
        set->point[set->n].y = est.ns;
        set->ratio[set->n++] = est.ns / series_roofline(s, flops, bytes);
    }
}

/* Needs fit_lock. */
static void series_refit(struct heddle_perf_series *s, uint32_t gen)
{
    struct sample_set set;

    if (s->fit_gen != 0 && gen - s->fit_gen <= s->fit_gen / 8)
        return;
    collect(s, &set);
    s->scale = set.n > 0 ? heddle_fit_median(set.ratio, set.n) : 0.0;
    heddle_fit_compute(set.point, set.n, &s->fit);
    s->fit_gen = gen;
}

static void guess_prior(double roofline, struct heddle_estimate *est)
{
    memset(est, 0, sizeof(*est));
    if (roofline > 0.0) {
        est->ns = roofline;
        est->confidence = CONFIDENCE_PRIOR;
        est->source = HEDDLE_EST_PRIOR;
    }
}

bool heddle_model_guess(struct heddle_perf_series *s, double flops, double bytes,
                        struct heddle_estimate *est_out)
{
    const uint32_t gen = heddle_load_rlx(&s->gen);
    const double roofline = series_roofline(s, flops, bytes);

    guess_prior(roofline, est_out);
    if (roofline <= 0.0)
        return true;
    if (!heddle_spin_trylock(&s->fit_lock))
        return false;
    series_refit(s, gen);
    if (s->fit.kind != HEDDLE_FIT_NONE) {
        const double work = work_of(flops, bytes);

        est_out->ns = heddle_fit_eval(&s->fit, work);
        est_out->confidence = heddle_fit_confidence(&s->fit, work);
        est_out->source = HEDDLE_EST_FIT;
    } else if (s->scale > 0.0) {
        est_out->ns = roofline * s->scale;
        est_out->confidence = CONFIDENCE_SCALED;
        est_out->source = HEDDLE_EST_SCALED;
    }
    heddle_spin_unlock(&s->fit_lock);
    return true;
}

/* Makes a guess and keeps it, unless a measurement arrives first. */
HEDDLE_COLD static uint64_t entry_guess(struct heddle_perf_entry *e, uint64_t seen)
{
    const uint32_t gen = heddle_load_rlx(&e->series->gen);
    struct heddle_estimate est;
    const bool is_final =
        heddle_model_guess(e->series, heddle_load_rlx(&e->flops), heddle_load_rlx(&e->bytes), &est);
    uint64_t word;

    word = heddle_history_pack(&est);
    if (!heddle_cas_acqrel(&e->history.est, &seen, word))
        return seen;
    if (is_final)
        heddle_store_rlx(&e->guess_gen, gen);
    return word;
}

void heddle_perf_predict(struct heddle_perf_entry *entry, struct heddle_estimate *est_out)
{
    uint64_t word = heddle_load_rlx(&entry->history.est);

    if (HEDDLE_UNLIKELY(heddle_history_source(word) != HEDDLE_EST_MEASURED) &&
        heddle_load_rlx(&entry->guess_gen) != heddle_load_rlx(&entry->series->gen))
        word = entry_guess(entry, word);
    heddle_history_unpack(word, est_out);
}

void heddle_perf_record(struct heddle_perf_entry *entry, double ns)
{
    const uint64_t n = heddle_history_record(&entry->history, ns);

    /* 1, 2, 4, ... 32 and then every 64th tell the series something new. */
    if (HEDDLE_UNLIKELY(n <= HEDDLE_HISTORY_SAMPLES ? (n & (n - 1)) == 0 : n % GEN_EVERY == 0) &&
        n != 0)
        heddle_add_rlx(&entry->series->gen, 1);
}

void heddle_perf_entry_info(const struct heddle_perf_entry *entry,
                            struct heddle_perf_info *info_out)
{
    const struct heddle_perf_series *s = entry->series;
    struct heddle_history_stats stats;

    heddle_history_stats(&entry->history, &stats);
    *info_out = (struct heddle_perf_info){
        .kernel = s->kernel->name,
        .variant = s->variant,
        .device = s->device,
        .version = s->version,
        .shape = entry->shape,
        .flops = heddle_load_rlx(&entry->flops),
        .bytes = heddle_load_rlx(&entry->bytes),
        .ns = stats.ns,
        .mad_ns = stats.mad_ns,
        .confidence = stats.confidence,
        .count = heddle_load_rlx(&entry->before) + heddle_load_rlx(&entry->history.head),
        .ignored = heddle_load_rlx(&entry->history.ignored),
    };
}
