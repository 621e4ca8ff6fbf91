/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log_energy: models fitted to the samples of a damaged log, the energy of its run, and
 * the log again with samples of a power plant.
 */
#include "heddle/energy_fit.h"
#include "tests/fuzz/log.h"

static void with_model(const heddle_log *log, const heddle_energy *m)
{
    char why[200] = "";
    struct heddle_energy_counter slow = {.size = sizeof(slow)};
    const struct heddle_energy_plant_opts o = {
        .size = sizeof(o), .cpu = &slow, .gpu = &slow, .why = why, .why_bytes = sizeof(why)};
    struct heddle_energy_run *run = NULL;
    heddle_status st = heddle_energy_counter_find("gpu", &slow);

    FUZZ_CHECK(st == HEDDLE_OK);

    if (heddle_energy_run_create(NULL, m, log, &run) == HEDDLE_OK)
        heddle_energy_run_destroy(run);
    st = heddle_energy_plant_write(log, m, &o, FUZZ_NOWHERE);
    FUZZ_SENTENCE(st, why);
}

static heddle_energy *by_hand(void)
{
    const struct heddle_energy_domain cpu = {
        .size = sizeof(cpu), .name = "package-0", .device = "cpu", .idle_watts = 40};
    const struct heddle_energy_active any = {
        .size = sizeof(any), .kernel = "*", .device = "cpu", .watts = 5};
    heddle_energy *m = NULL;

    FUZZ_CHECK(heddle_energy_create(NULL, &m) == HEDDLE_OK);
    FUZZ_CHECK(heddle_energy_set_domain(m, &cpu) == HEDDLE_OK);
    FUZZ_CHECK(heddle_energy_set_active(m, &any) == HEDDLE_OK);
    return m;
}

void fuzz_one(const uint8_t *data, size_t bytes)
{
    const heddle_log *const log = fuzz_log(data, bytes);
    char why[200] = "";
    const struct heddle_energy_fit_opts o = {
        .size = sizeof(o), .nbootstrap = 2, .why = why, .why_bytes = sizeof(why)};
    struct heddle_energy_fit_report *report = NULL;
    heddle_energy *m = NULL;

    if (log == NULL)
        return;
    if (heddle_energy_fit(&log, 1, &o, &m, &report) == HEDDLE_OK) {
        with_model(log, m);
        heddle_energy_destroy(m);
        heddle_energy_fit_report_destroy(report);
    }
    m = by_hand();
    with_model(log, m);
    heddle_energy_destroy(m);
    heddle_log_close((heddle_log *)(uintptr_t)log);
}
