/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_COMMON_OVERHEAD_H
#define HEDDLE_TOOLS_COMMON_OVERHEAD_H

/*
 * What the runtime itself costs on this machine, measured: the line `overhead` of a
 * machine file of version 2 (docs/formats/machine.md).
 *
 * Threads  the main thread.
 */
#include <stdio.h>

#include "heddle/heddle.h"

/* ns; 0: not measured. */
struct overhead {
    double submit_ns; /* one heddle_submit() */
    double wake_ns;   /* until a core that sleeps begins a task */
    double drive_ns;  /* per task of a device on the device thread */
    double notice_ns; /* from its end until the program knows */
    double single_ns; /* an empty task of a device, from submission to wait */
};

/* The first two, by tasks for cores. Where there is one worker, nobody is woken. */
heddle_status overhead_measure(heddle_ctx *ctx, struct overhead *out);

/* The others, after these two, by tasks of a device: `empty` updates one operand,
 * does nothing, and has no variant for cores. */
heddle_status overhead_drive(heddle_ctx *ctx, const heddle_kernel *empty, struct overhead *out);

/* The line, with its end. */
void overhead_write(FILE *f, const struct overhead *o);

#endif /* HEDDLE_TOOLS_COMMON_OVERHEAD_H */
