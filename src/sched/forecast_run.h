/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_SCHED_FORECAST_RUN_H
#define HEDDLE_SCHED_FORECAST_RUN_H

/* Private to the forecast: see forecast_run.c. */
#include "sched/forecast.h"

/* The length of the schedule in which each task runs on its type in `trial`, by the
 * ranks in `key`; INFINITY: it is not shorter than `limit`. Afterwards cls[] says on
 * which class each task ran. */
double heddle_forecast_run(struct heddle_forecast *p, double limit);

#endif /* HEDDLE_SCHED_FORECAST_RUN_H */
