/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_SCHED_FORECAST_RUN_H
#define HEDDLE_SCHED_FORECAST_RUN_H

/* Private to the forecast: what forecast_area.c and forecast_run.c do for the search. */
#include "sched/forecast.h"

/* Fills `fast`, the successors, and `order` and `first`: the free tasks of each sort, most slack
 * first. False: some task can run nowhere. */
bool heddle_forecast_prepare(struct heddle_forecast *p);

/* Fills `share` (zeroed first) with the solution of the area bound; sort `home` stays on its
 * fastest type. */
void heddle_forecast_area(struct heddle_forecast *p, unsigned home,
                          double share[][HEDDLE_FORECAST_TYPES]);

/* The length of the schedule in which each task runs on its type in `trial`, by the
 * ranks in `key`; INFINITY: it is not shorter than `limit`. Afterwards cls[] says on
 * which class each task ran. */
double heddle_forecast_run(struct heddle_forecast *p, double limit);

#endif /* HEDDLE_SCHED_FORECAST_RUN_H */
