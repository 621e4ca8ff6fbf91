/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_SIM_FROM_LOG_H
#define HEDDLE_TOOLS_SIM_FROM_LOG_H

/*
 * A machine file from a run: its classes, memories and links, and how long its kernels took.
 *
 * Times    the median over the executions of a kernel that ended well on a class with operands
 *          of the same size together. Members of gangs and tasks that became smaller tasks are
 *          left out: a machine file has one worker's time of one task.
 */
#include "cmd/cmd.h"

/* Reads the log and writes the machine to `out_path`, or (NULL) prints it. Returns the exit
 * status. */
int sim_from_log(struct cli *c, const char *log_path, const char *out_path);

#endif /* HEDDLE_TOOLS_SIM_FROM_LOG_H */
