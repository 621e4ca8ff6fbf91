/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * env: every variable of the list sets its option, an option that is set stays,
 * a malformed value is refused with a sentence and changes nothing.
 */
#include "core/env.h"
#include "heddle/perf.h"
#include "test.h"

static void clear_all(void)
{
    for (const struct heddle_env_var *v = heddle_env_list(); v->name; v++)
        unsetenv(v->name);
}

static struct heddle_ctx_opts apply(heddle_status want)
{
    struct heddle_ctx_opts o = {.size = sizeof(o)};
    char why[200] = "x";

    CHECK_STATUS(heddle_env_apply(&o, why, sizeof(why)), want);
    CHECK_EQ(why[0] == '\0', want == HEDDLE_OK);
    return o;
}

TEST(list_is_complete)
{
    size_t n = 0;

    for (const struct heddle_env_var *v = heddle_env_list(); v->name; v++) {
        CHECK(strncmp(v->name, "HEDDLE_", 7) == 0);
        CHECK(v->value != NULL && v->value[0] != '\0');
        CHECK(v->help != NULL && v->help[0] != '\0');
        n++;
    }
    CHECK_EQ(n, 34);
}

TEST(nothing_set_changes_nothing)
{
    struct heddle_ctx_opts o;

    clear_all();
    o = apply(HEDDLE_OK);
    CHECK_EQ(o.size, sizeof(o));
    CHECK(o.nworkers == 0 && o.stack_bytes == 0 && o.spin_us == 0);
    CHECK(o.window == 0 && o.memory_budget == 0 && o.watchdog_ms == 0);
    CHECK(o.sched == NULL && o.log_path == NULL && o.model_dir == NULL);
    CHECK(o.bind == HEDDLE_DEFAULT && o.helps == HEDDLE_DEFAULT);
    CHECK(o.log == HEDDLE_DEFAULT && o.log_level == 0);
    CHECK(o.check == HEDDLE_DEFAULT && o.models == HEDDLE_DEFAULT);
}

TEST(all_kinds)
{
    struct heddle_ctx_opts o;

    clear_all();
    setenv("HEDDLE_WORKERS", "3", 1);
    setenv("HEDDLE_SCHED", "prio", 1);
    setenv("HEDDLE_BIND", "off", 1);
    setenv("HEDDLE_HELPS", "on", 1);
    setenv("HEDDLE_STACK", "64K", 1);
    setenv("HEDDLE_SPIN_US", "50", 1);
    setenv("HEDDLE_WINDOW", "1000", 1);
    setenv("HEDDLE_MEMORY", "1.5GiB", 1);
    setenv("HEDDLE_LOG", "0", 1);
    setenv("HEDDLE_LOG_LEVEL", "3", 1);
    setenv("HEDDLE_LOG_FILE", "run.hlog", 1);
    setenv("HEDDLE_ENERGY", "20ms", 1);
    setenv("HEDDLE_CHECK", "yes", 1);
    setenv("HEDDLE_MODELS", "true", 1);
    setenv("HEDDLE_MODEL_DIR", "models", 1);
    setenv("HEDDLE_WATCHDOG_MS", "250", 1);
    setenv("HEDDLE_ENERGY_WEIGHT", "0.25", 1);
    setenv("HEDDLE_ENERGY_SLACK", "5%", 1);
    o = apply(HEDDLE_OK);
    CHECK_NEAR(o.energy_weight, 0.25, 0);
    CHECK_NEAR(o.energy_slack, 0.05, 1e-15);
    CHECK_EQ(o.nworkers, 3);
    CHECK_STR(o.sched, "prio");
    CHECK_EQ(o.bind, HEDDLE_OFF);
    CHECK_EQ(o.helps, HEDDLE_ON);
    CHECK_EQ(o.stack_bytes, 65536);
    CHECK_EQ(o.spin_us, 50);
    CHECK_EQ(o.window, 1000);
    CHECK_EQ(o.memory_budget, 3u << 29);
    CHECK_EQ(o.log, HEDDLE_OFF);
    CHECK_EQ(o.log_level, 3);
    CHECK_STR(o.log_path, "run.hlog");
    CHECK_STR(o.energy, "20ms");
    CHECK_EQ(o.check, HEDDLE_ON);
    CHECK_EQ(o.models, HEDDLE_ON);
    CHECK_STR(o.model_dir, "models");
    CHECK_EQ(o.watchdog_ms, 250);
    clear_all();
}

TEST(shares_are_from_0_to_1)
{
    static const char *const bad[] = {"1.5", "-0.1", "x", "0.5x", "101%", "nan", "5%%", "%"};

    clear_all();
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        setenv("HEDDLE_ENERGY_WEIGHT", bad[i], 1);
        (void)apply(HEDDLE_EINVAL);
    }
    clear_all();
}

TEST(caller_wins)
{
    struct heddle_ctx_opts o = {.size = sizeof(o),
                                .nworkers = 7,
                                .sched = "eager",
                                .bind = HEDDLE_ON,
                                .memory_budget = 5,
                                .model_dir = ""};
    char why[200];

    clear_all();
    setenv("HEDDLE_WORKERS", "3", 1);
    setenv("HEDDLE_SCHED", "prio", 1);
    setenv("HEDDLE_BIND", "off", 1);
    setenv("HEDDLE_MEMORY", "10%", 1);
    setenv("HEDDLE_MODEL_DIR", "models", 1);
    CHECK_OK(heddle_env_apply(&o, why, sizeof(why)));
    CHECK_EQ(o.nworkers, 7);
    CHECK_STR(o.sched, "eager");
    CHECK_EQ(o.bind, HEDDLE_ON);
    CHECK_EQ(o.memory_budget, 5);
    CHECK_STR(o.model_dir, "");
    clear_all();
}

TEST(older_names)
{
    struct heddle_ctx_opts o;

    clear_all();
    setenv("HEDDLE_PLAN", "old.place", 1);
    o = apply(HEDDLE_OK);
    CHECK_STR(o.placement, "old.place");
    CHECK_STR(o.plan, "old.place"); /* one field with two names */
    setenv("HEDDLE_PLACEMENT", "new.place", 1);
    CHECK_STR(apply(HEDDLE_OK).placement, "new.place");
    clear_all();
}

TEST(ignored_when_asked)
{
    struct heddle_ctx_opts o = {.size = sizeof(o), .ignore_env = true};
    char why[200];

    clear_all();
    setenv("HEDDLE_WORKERS", "many", 1);
    CHECK_OK(heddle_env_apply(&o, why, sizeof(why)));
    CHECK_EQ(o.nworkers, 0);
    clear_all();
}

TEST(empty_is_not_set)
{
    struct heddle_ctx_opts o;

    clear_all();
    for (const struct heddle_env_var *v = heddle_env_list(); v->name; v++)
        setenv(v->name, "", 1);
    o = apply(HEDDLE_OK);
    CHECK_EQ(o.nworkers, 0);
    CHECK(o.sched == NULL && o.log_path == NULL);
    CHECK_STR(o.model_dir, ""); /* here it says: in memory */
    clear_all();
}

TEST(percent_of_memory)
{
    size_t half, all;

    clear_all();
    setenv("HEDDLE_MEMORY", "50%", 1);
    half = apply(HEDDLE_OK).memory_budget;
    setenv("HEDDLE_MEMORY", "100%", 1);
    all = apply(HEDDLE_OK).memory_budget;
    /* Other programs take and give memory meanwhile. */
    CHECK(half > (1u << 20) && half > all / 4 && half < all);
    clear_all();
}

TEST(malformed)
{
    static const char *const bad[][2] = {
        {"HEDDLE_WORKERS", "many"},
        {"HEDDLE_WORKERS", "-1"},
        {"HEDDLE_WORKERS", "3 "},
        {"HEDDLE_WORKERS", "4294967296"},
        {"HEDDLE_WORKERS", "99999999999999999999999"},
        {"HEDDLE_BIND", "maybe"},
        {"HEDDLE_STACK", "64X"},
        {"HEDDLE_STACK", "25%"},
        {"HEDDLE_STACK", "99999999999E"},
        {"HEDDLE_MEMORY", "101%"},
        {"HEDDLE_MEMORY", "%"},
        {"HEDDLE_LOG_LEVEL", "4"},
        {"HEDDLE_LOG_LEVEL", "debug"},
        {"HEDDLE_CHECK", "2"},
        {"HEDDLE_WATCHDOG_MS", "1s"},
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct heddle_ctx_opts o = {.size = sizeof(o)};
        char why[200];

        clear_all();
        setenv("HEDDLE_SCHED", "prio", 1);
        setenv("HEDDLE_LOG", "off", 1);
        setenv(bad[i][0], bad[i][1], 1);
        CHECK_STATUS(heddle_env_apply(&o, why, sizeof(why)), HEDDLE_EINVAL);
        CHECK(strstr(why, bad[i][0]) != NULL);
        CHECK(strstr(why, bad[i][1]) != NULL);
        CHECK(o.sched == NULL && o.log == HEDDLE_DEFAULT);
        CHECK_STATUS(heddle_env_apply(&o, NULL, 0), HEDDLE_EINVAL);
    }
    clear_all();
}

/* --- variables that do not exist -------------------------------------------------- */

static unsigned nmessages;
static char told[300];

static void hear(void *user, enum heddle_severity severity, const char *text)
{
    CHECK(user == &nmessages && severity == HEDDLE_WARNING);
    nmessages++;
    snprintf(told, sizeof(told), "%s", text);
}

TEST(unknown_variables_are_named)
{
    char name[100] = "HEDDLE_";

    clear_all();
    setenv("HEDDLE_WORKERS", "2", 1);
    setenv("XHEDDLE_WORKERS", "2", 1);
    heddle_env_report_unknown(hear, &nmessages);
    CHECK_EQ(nmessages, 0);
    setenv("HEDDLE_WORKRES", "2", 1);
    heddle_env_report_unknown(hear, &nmessages);
    CHECK_EQ(nmessages, 1);
    CHECK_STR(told, "the environment variable HEDDLE_WORKRES is not known, did you mean "
                    "HEDDLE_WORKERS?");
    unsetenv("HEDDLE_WORKRES");
    /* A name that is longer than any buffer, and one that is near no other. */
    memset(name + 7, 'X', sizeof(name) - 8);
    setenv(name, "1", 1);
    heddle_env_report_unknown(hear, &nmessages);
    CHECK_EQ(nmessages, 2);
    CHECK(strstr(told, "is not known") != NULL && strstr(told, "did you mean") == NULL);
    unsetenv(name);
    clear_all();
}

TEST(cache_dir)
{
    char buf[64];

    setenv("XDG_CACHE_HOME", "/c", 1);
    setenv("HOME", "/h", 1);
    heddle_env_cache_dir(buf, sizeof(buf));
    CHECK_STR(buf, "/c/heddle");
    setenv("XDG_CACHE_HOME", "c", 1);
    heddle_env_cache_dir(buf, sizeof(buf));
    CHECK_STR(buf, "/h/.cache/heddle");
    unsetenv("XDG_CACHE_HOME");
    heddle_env_cache_dir(buf, 10); /* another folder would be wrong */
    CHECK_STR(buf, "");
    unsetenv("HOME");
    heddle_env_cache_dir(buf, sizeof(buf));
    CHECK_STR(buf, "");
}

TEST_MAIN(list_is_complete, nothing_set_changes_nothing, all_kinds, shares_are_from_0_to_1,
          caller_wins, older_names, ignored_when_asked, empty_is_not_set, percent_of_memory,
          malformed, unknown_variables_are_named, cache_dir)
