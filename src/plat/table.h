/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PLAT_TABLE_H
#define HEDDLE_PLAT_TABLE_H

/*
 * How long kernels take: for each kernel, and for each type of class or kind of device
 * (the word WHO of a machine file), the measured times by bytes, and perhaps a rate.
 */
#include <stdbool.h>
#include <stddef.h>

#include "heddle/alloc.h"
#include "heddle/status.h"

struct heddle_plat_table;

/* `who` of a type of class, and of a kind of device. */
#define HEDDLE_PLAT_WHO_TYPE(type) ((unsigned)(type))
#define HEDDLE_PLAT_WHO_KIND(kind) (1u << 16 | (unsigned)(kind))

/* The same for what a kernel takes of a device that others use as well. */
#define HEDDLE_PLAT_WHO_SHARE(who) (1u << 20 | (who))

HEDDLE_MUST_USE heddle_status heddle_plat_table_create(const struct heddle_allocator *a,
                                                       struct heddle_plat_table **table_out);
void heddle_plat_table_destroy(struct heddle_plat_table *t);

/*
 * One timing. bytes >= 0, ns >= 0, finite. With `merges`, timings of equal bytes
 * become their mean; else HEDDLE_ESTATE: there is one already. HEDDLE_ENOMEM.
 */
HEDDLE_MUST_USE heddle_status heddle_plat_table_add(struct heddle_plat_table *t, const char *kernel,
                                                    unsigned who, double bytes, double ns,
                                                    bool merges);

/* flops per ns, > 0. HEDDLE_ESTATE: there is a rate already. */
HEDDLE_MUST_USE heddle_status heddle_plat_table_rate(struct heddle_plat_table *t,
                                                     const char *kernel, unsigned who, double rate);

/*
 * `kernel` has the timings of `name`.
 *
 * HEDDLE_ENOENT  nothing is known of `name`
 * HEDDLE_ESTATE  `kernel` has timings, or another alias
 */
HEDDLE_MUST_USE heddle_status heddle_plat_table_alias(struct heddle_plat_table *t,
                                                      const char *kernel, const char *name);

/*
 * ns by the timings, else by the kernel's rate, for the first of `who` that knows:
 * first one with exactly these bytes, then one with other bytes, then one with a
 * rate. NAN: none.
 */
double heddle_plat_table_time(const struct heddle_plat_table *t, const char *kernel,
                              const unsigned *who, unsigned nwho, double bytes, double flops);

#endif /* HEDDLE_PLAT_TABLE_H */
