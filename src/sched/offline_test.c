/* SPDX-License-Identifier: BSD-3-Clause */
#include "sched/offline_test.h"

TEST(table)
{
    static const char *const machine[] = {"mirage", "attila", "idgraf"};
    static const unsigned size[] = {8, 10, 12, 16, 20, 24, 28, 32};
    static const double mixed[3][8] = {
{125.5, 202.1, 305.1, 619.8, 1165.1, 1998.5, 3162.2, 4710.4}, /* mirage */
{422.2, 529.7, 637.2, 852.2, 1357.1, 2100.3, 3232.8, 4770.4}, /* attila */
{221.3, 278.6, 335.9, 450.5, 621.5, 993.4, 1501.4, 2166.9}, /* idgraf */
};
    (void)mixed;

    for (int tr = 0; tr < 2; tr++)
        for (const struct heddle_sched_ops *const *o = heddle_sched_table;
             *o != NULL; o++) {
            double mean = 0, worst = 0;
            if (!(*o)->knows_classes || (getenv("POL") && strcmp(getenv("POL"), (*o)->name)))
                continue;
            printf("%-10s %s", (*o)->name, tr ? "tr" : "no");
            for (int m = 0; m < 3; m++)
                for (int i = 0; i < 8; i++) {
                    struct off_machine mach;
                    struct off_graph g;
                    struct off_run x;
                    struct off_options opt = {.has_transfers = tr, .depth = getenv("DEPTH") ? atoi(getenv("DEPTH")) : 0};
                    double r;

                    off_machine(&mach, machine[m]);
                    off_cholesky(&g, size[i]);
                    r = off_run(&x, &g, &mach, *o, &opt) / 1e6;
                    if (mixed[m][i] > 0) {
                        r /= mixed[m][i];
                        mean += r / 24;
                        worst = r > worst ? r : worst;
                        printf(" %.2f", r);
                    }
                    off_graph_fini(&g);
                }
            printf("  mean %.3f worst %.3f\n", mean, worst);
        }
}
TEST_MAIN(table)
