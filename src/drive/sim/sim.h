/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_DRIVE_SIM_SIM_H
#define HEDDLE_DRIVE_SIM_SIM_H

/*
 * The world of simulated devices: one virtual clock, one heap of events, the
 * links of a machine description.
 *
 * Each class of the description (cores included) is one device of the driver
 * `sim`, in order; its streams are the class's workers. Copies of a device go over
 * the link between its memory node and the other one: a link carries one copy at
 * a time, in order; links that share a bus share its bandwidth (max-min fair).
 * A kernel takes model_ns on its stream. A kernel with a share_ns wants the share
 * share_ns / model_ns of its device; when the kernels of a device together want more than
 * all of it, they share it max-min fairly and take longer.
 *
 * Deterministic: events are ordered by (time, order of creation); nothing depends
 * on addresses, threads or the real clock.
 *
 * With `executes`, memory is real (one allocation per buffer, distinct from the
 * host's), copies are real at the moment they end, and a launch runs its function
 * at the moment it starts. Without `executes`, alloc() returns distinct fake addresses and
 * no memory is touched.
 */
#include <stdbool.h>
#include <stdint.h>

#include "drive/drive.h"
#include "plat/plat.h"

struct heddle_sim;

/* `plat` is borrowed. HEDDLE_ENOMEM. */
HEDDLE_MUST_USE heddle_status heddle_sim_create(const struct heddle_allocator *a,
                                                const struct heddle_plat *plat, bool executes,
                                                struct heddle_sim **sim_out);
void heddle_sim_destroy(struct heddle_sim *s);

/* ns since the beginning. */
uint64_t heddle_sim_now(const struct heddle_sim *s);

/*
 * Goes to the next event and ends the operations that end there: calls done().
 * False: nothing is in flight. progress() of a sim device does nothing. Re-entrant:
 * done() may call it.
 */
bool heddle_sim_step(struct heddle_sim *s);

/* Calls op->done(op, HEDDLE_OK) after `ns`. For costs that are no kernel. */
void heddle_sim_after(struct heddle_sim *s, double ns, struct heddle_op *op);

/* Kernels and copies of device `cls` take `factor` times as long from now on. */
void heddle_sim_slow_down(struct heddle_sim *s, unsigned cls, double factor);
/* The device disappears: see HEDDLE_EDEV in drive.h. */
void heddle_sim_lose(struct heddle_sim *s, unsigned cls);

/* The estimated ns until a copy of `bytes` from one node to another would end if
 * it were given now, what is queued before it included. INFINITY: no way. */
double heddle_sim_copy_ns(const struct heddle_sim *s, unsigned from, unsigned to, uint64_t bytes);

/* Busy ns of a link so far, and bytes carried. */
void heddle_sim_link_use(const struct heddle_sim *s, unsigned link, uint64_t *busy_ns_out,
                         uint64_t *bytes_out);

#endif /* HEDDLE_DRIVE_SIM_SIM_H */
