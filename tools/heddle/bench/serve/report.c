/* SPDX-License-Identifier: BSD-3-Clause */
/* bench/serve/report: a case as text, and as one JSON object. */
#include "bench/serve/serve.h"

void serve_fact(struct serve_case *k, const char *name, double value)
{
    for (size_t i = 0; i < SERVE_MAX_FACTS; i++) {
        if (k->fact[i].name != NULL)
            continue;
        k->fact[i].name = name;
        k->fact[i].value = value;
        return;
    }
}

void serve_load_facts(struct serve_case *k, const struct load_result *r)
{
    static const struct {
        const char *name;
        double share;
    } shares[] = {
        {"p50_us", 0.5}, {"p90_us", 0.9}, {"p99_us", 0.99}, {"p99.9_us", 0.999}, {"max_us", 1}};

    for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++)
        serve_fact(k, shares[i].name, (double)hist_at(&r->latency, shares[i].share) / 1e3);
    serve_fact(k, "mean_us", r->latency.n > 0 ? r->latency.sum / (double)r->latency.n / 1e3 : 0);
    if (r->planned > 0)
        serve_fact(k, "sent_late_p99_us", (double)hist_at(&r->late, 0.99) / 1e3);
    serve_fact(k, "good", (double)r->good);
    serve_fact(k, "refused", (double)r->refused);
    serve_fact(k, "bad", (double)(r->bad + r->broken + r->lost));
}

static bool meets(const struct serve_case *k, double limit)
{
    return k->rule == SERVE_AT_LEAST ? k->v.median >= limit : k->v.median <= limit;
}

static void print_text(struct serve_bench *b, const struct serve_case *k)
{
    FILE *f = b->c->out;

    fprintf(f, "%-7s %-12s %10.4g %s", k->part, k->name, k->v.median, k->unit);
    if (k->rounds > 1)
        fprintf(f, " [%.4g..%.4g]", k->v.min, k->v.max);
    if (k->rule != SERVE_NO_BAR)
        fprintf(f, "; must be %s %g: %s, aim %g: %s",
                k->rule == SERVE_AT_LEAST ? ">=" : "<=", k->must,
                meets(k, k->must) ? "met" : "MISSED", k->aim, meets(k, k->aim) ? "met" : "missed");
    fputc('\n', f);
    for (size_t i = 0; i < SERVE_MAX_FACTS && k->fact[i].name != NULL; i++)
        fprintf(f, "%s%s %.6g",
                i == 0       ? "        "
                : i % 6 == 0 ? ",\n        "
                             : ", ",
                k->fact[i].name, k->fact[i].value);
    fputs(k->fact[0].name != NULL ? "\n" : "", f);
    fflush(f);
}

static int print_json(struct serve_bench *b, const struct serve_case *k)
{
    struct heddle_json j;

    heddle_json_init_file(&j, b->c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "serve");
    heddle_json_key_str(&j, "version", heddle_version());
    heddle_json_key_str(&j, "machine", b->machine);
    heddle_json_key_str(&j, "part", k->part);
    heddle_json_key_str(&j, "case", k->name);
    heddle_json_key_str(&j, "unit", k->unit);
    heddle_json_key_uint(&j, "rounds", k->rounds);
    heddle_json_key_double(&j, "value", k->v.median);
    heddle_json_key_double(&j, "value_min", k->v.min);
    heddle_json_key_double(&j, "value_max", k->v.max);
    if (k->rule != SERVE_NO_BAR) {
        heddle_json_key_str(&j, "rule", k->rule == SERVE_AT_LEAST ? "value >=" : "value <=");
        heddle_json_key_double(&j, "must", k->must);
        heddle_json_key_double(&j, "aim", k->aim);
        heddle_json_key_bool(&j, "met", meets(k, k->must));
        heddle_json_key_bool(&j, "aim_met", meets(k, k->aim));
    }
    for (size_t i = 0; i < SERVE_MAX_FACTS && k->fact[i].name != NULL; i++)
        heddle_json_key_double(&j, k->fact[i].name, k->fact[i].value);
    return bench_json_end(b->c, &j);
}

int serve_report(struct serve_bench *b, const struct serve_case *k)
{
    b->nbars += k->rule != SERVE_NO_BAR;
    b->nmet += k->rule != SERVE_NO_BAR && meets(k, k->must);
    if (b->c->json)
        return print_json(b, k);
    print_text(b, k);
    return 0;
}
