/* SPDX-License-Identifier: BSD-3-Clause */
/* bench/case: cases with bars, as text and as JSON objects. */
#include "bench/case.h"

#include <string.h>

#include "base/text.h"

void bench_case_fact(struct bench_case *k, const char *name, double value)
{
    for (size_t i = 0; i + 1 < BENCH_CASE_FACTS; i++) {
        if (k->fact[i].name != NULL)
            continue;
        k->fact[i].name = name;
        k->fact[i].value = value;
        return;
    }
}

static const struct {
    const char *text, *json;
    bool is_least;
} rules[] = {
    [BENCH_NO_BAR] = {NULL, NULL, false},
    [BENCH_RATIO_AT_MOST] = {"<=", "ratio <=", false},
    [BENCH_RATIO_AT_LEAST] = {">=", "ratio >=", true},
    [BENCH_VALUE_AT_MOST] = {"<=", "heddle <=", false},
    [BENCH_VALUE_AT_LEAST] = {">=", "heddle >=", true},
};

static bool meets(const struct bench_case *k, const struct bench_stat v[3], double limit)
{
    const bool is_ratio = k->rule == BENCH_RATIO_AT_MOST || k->rule == BENCH_RATIO_AT_LEAST;
    const double x = v[is_ratio ? 2 : 0].median;

    return k->rule == BENCH_NO_BAR || (rules[k->rule].is_least ? x >= limit : x <= limit);
}

static void print_text(struct cli *c, const struct bench_case *k, const struct bench_stat v[3],
                       bool is_met, bool is_aimed)
{
    FILE *f = c->out;

    fprintf(f, "%-10s %-22s %10.4g %s", k->part, k->name, v[0].median, k->unit);
    if (!k->is_alone)
        fprintf(f, ", %s %.4g, ratio %.3f [%.3f..%.3f]", k->raw_name != NULL ? k->raw_name : "raw",
                v[1].median, v[2].median, v[2].min, v[2].max);
    if (k->rule != BENCH_NO_BAR)
        fprintf(f, "; must be %s %g: %s, aim %g: %s", rules[k->rule].text, k->must,
                is_met ? "met" : "MISSED", k->aim, is_aimed ? "met" : "missed");
    fputc('\n', f);
    for (size_t i = 0; k->fact[i].name != NULL; i++)
        fprintf(f, "%s%s %.4g%s", i == 0 ? "                      " : ", ", k->fact[i].name,
                k->fact[i].value, k->fact[i + 1].name == NULL ? "\n" : "");
    fflush(f);
}

static void json_stat(struct heddle_json *j, const char *name, const struct bench_stat *v)
{
    static const char *const suffix[] = {"", "_min", "_max"};
    const double number[] = {v->median, v->min, v->max};
    struct heddle_text t;
    char key[32];

    for (size_t i = 0; i < 3; i++) {
        heddle_text_init(&t, key, sizeof(key));
        heddle_text_add(&t, "%s%s", name, suffix[i]);
        heddle_json_key_double(j, key, number[i]);
    }
}

static int print_json(struct cli *c, const char *bench, const char *machine,
                      const struct bench_case *k, const struct bench_stat v[3], bool is_met,
                      bool is_aimed)
{
    struct heddle_json j;

    heddle_json_init_file(&j, c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", bench);
    heddle_json_key_str(&j, "version", heddle_version());
    heddle_json_key_str(&j, "machine", machine);
    heddle_json_key_str(&j, "part", k->part);
    heddle_json_key_str(&j, "case", k->name);
    heddle_json_key_str(&j, "unit", k->unit);
    heddle_json_key_uint(&j, "rounds", k->n);
    json_stat(&j, "heddle", &v[0]);
    if (!k->is_alone) {
        heddle_json_key_str(&j, "against", k->raw_name != NULL ? k->raw_name : "raw");
        json_stat(&j, "raw", &v[1]);
        json_stat(&j, "ratio", &v[2]);
    }
    if (k->rule != BENCH_NO_BAR) {
        heddle_json_key_str(&j, "rule", rules[k->rule].json);
        heddle_json_key_double(&j, "must", k->must);
        heddle_json_key_double(&j, "aim", k->aim);
        heddle_json_key_bool(&j, "met", is_met);
        heddle_json_key_bool(&j, "aim_met", is_aimed);
    }
    for (size_t i = 0; k->fact[i].name != NULL; i++)
        heddle_json_key_double(&j, k->fact[i].name, k->fact[i].value);
    return bench_json_end(c, &j);
}

int bench_case_report(struct cli *c, const char *bench, const char *machine, struct bench_case *k,
                      struct bench_tally *tally)
{
    double ratio[BENCH_CASE_ROUNDS] = {0};
    struct bench_stat v[3];
    bool is_met, is_aimed;

    for (size_t i = 0; i < k->n; i++)
        ratio[i] = k->is_alone ? 0 : k->heddle[i] / k->raw[i];
    v[0] = bench_stat(k->heddle, k->n);
    v[1] = bench_stat(k->raw, k->n);
    v[2] = bench_stat(ratio, k->n);
    is_met = meets(k, v, k->must);
    is_aimed = meets(k, v, k->aim);
    tally->ncases++;
    tally->nbars += k->rule != BENCH_NO_BAR;
    tally->nmet += k->rule != BENCH_NO_BAR && is_met;
    tally->naimed += k->rule != BENCH_NO_BAR && is_aimed;
    if (c->json)
        return print_json(c, bench, machine, k, v, is_met, is_aimed);
    print_text(c, k, v, is_met, is_aimed);
    return 0;
}

int bench_tally_report(struct cli *c, const char *bench, const char *machine,
                       const struct bench_tally *tally, double seconds)
{
    struct heddle_json j;
    struct heddle_text t;
    char name[64];

    if (!c->json) {
        fprintf(c->out, "%u of %u bars are met, on %s, in %.0f s\n", tally->nmet, tally->nbars,
                machine, seconds);
        return 0;
    }
    heddle_text_init(&t, name, sizeof(name));
    heddle_text_add(&t, "%s summary", bench);
    heddle_json_init_file(&j, c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", name);
    heddle_json_key_str(&j, "machine", machine);
    heddle_json_key_uint(&j, "cases", tally->ncases);
    heddle_json_key_uint(&j, "bars", tally->nbars);
    heddle_json_key_uint(&j, "met", tally->nmet);
    heddle_json_key_uint(&j, "aim_met", tally->naimed);
    heddle_json_key_double(&j, "seconds", seconds);
    return bench_json_end(c, &j);
}

int bench_parse_only(struct cli *c, const char *list, const char *(*part)(size_t i), size_t n,
                     unsigned *mask_out)
{
    const char *p = list;
    struct heddle_text t;
    char names[300];

    *mask_out = p == NULL ? ~0u : 0;
    while (p != NULL) {
        const size_t len = strcspn(p, ",");
        size_t i = 0;

        while (i < n && (strlen(part(i)) != len || strncmp(part(i), p, len) != 0))
            i++;
        if (i == n)
            break;
        *mask_out |= 1u << i;
        p = p[len] == ',' ? p + len + 1 : NULL;
    }
    if (p == NULL)
        return 0;
    heddle_text_init(&t, names, sizeof(names));
    for (size_t i = 0; i < n; i++)
        heddle_text_add(&t, "%s%s", i == 0 ? "" : i + 1 == n ? " and " : ", ", part(i));
    return cli_error(c, "--only is '%s', but it must be some of %s, with commas between them", list,
                     names);
}
