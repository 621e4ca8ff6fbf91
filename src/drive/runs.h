/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_DRIVE_RUNS_H
#define HEDDLE_DRIVE_RUNS_H

/* What drivers need to know about the host side of a copy. */
#include "drive/drive.h"

/*
 * The same bytes in the same order with the fewest and longest runs: dimensions
 * of one element go, dimensions that follow each other without a gap merge. A
 * dense box becomes ndim 0, a tile of a matrix ndim 1. Needs nruns > 0.
 */
struct heddle_runs heddle_runs_simplify(const struct heddle_runs *r);

/* Bytes from the first one to behind the last one, gaps included. */
size_t heddle_runs_span(const struct heddle_runs *r);

#endif /* HEDDLE_DRIVE_RUNS_H */
