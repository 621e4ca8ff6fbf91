/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_ENERGY_CMD_H
#define HEDDLE_TOOLS_ENERGY_CMD_H

/*
 * What the verbs of `heddle energy` share: logs, and the file of a model.
 *
 * Threads  the main thread.
 */
#include "cmd/cmd.h"
#include "heddle/energy.h"
#include "heddle/trace.h"

enum { ENERGY_PATH = 4096, ENERGY_LOGS = 256 };

/* Takes the operands out of argv, which has the options then. Returns their
 * number, at most `max`; more stay in argv. */
int energy_take_operands(const struct cli_opt *opts, int *argc, char **argv, const char **out,
                         int max);

/* 0, or the exit status after a sentence. */
int energy_open_log(struct cli *c, const char *path, heddle_log **out);

/* Where the model of the log's machine is kept; "": there is no folder. */
void energy_model_path(const heddle_log *log, char path[ENERGY_PATH]);

/* Reads `file`, or when that is NULL what is kept for the log's machine; `path`
 * gets which it was. 0, or the exit status after a sentence. */
int energy_open_model(struct cli *c, const char *file, const heddle_log *log,
                      char path[ENERGY_PATH], heddle_energy **out);

/* The same on another machine, whose description is the file `machine`; NULL: the
 * log's. */
int energy_open_model_for(struct cli *c, const char *file, const char *machine,
                          const heddle_log *log, char path[ENERGY_PATH], heddle_energy **out);

/* Makes the folders a file is in; those that are there are fine. */
void energy_make_folders(const char *path);

/* "12.3 kJ", "1.50 J", "250 mJ": three digits. */
const char *energy_text_joules(char buf[32], double joules);

#endif /* HEDDLE_TOOLS_ENERGY_CMD_H */
