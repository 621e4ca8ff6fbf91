/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BASE_DEVICE_H
#define HEDDLE_BASE_DEVICE_H

/*
 * What modules ask about the kinds of devices (HEDDLE_DEVICE_LIST of heddle/device.h) without
 * knowing any of them. What else there is to say about a kind is in the table of its driver
 * (drive/drive.h).
 */
#include <stdbool.h>
#include <stddef.h>

#include "heddle/device.h"

enum { HEDDLE_DEVICE_MOST = 7 }; /* the largest number of a kind */

static inline bool heddle_device_is_known(unsigned kind)
{
#define HEDDLE_DEVICE_IS(name, constant, number, with) || kind == (number)
    return false HEDDLE_DEVICE_LIST(HEDDLE_DEVICE_IS);
#undef HEDDLE_DEVICE_IS
}

/* The kind of that name; 0: there is none. */
enum heddle_device heddle_device_of(const char *name);

/* The kind whose name a text begins with, in letters of either case: "cuda0.1", "OpenCL 0";
 * 0: there is none. */
enum heddle_device heddle_device_at_start(const char *text);

/* "cpu, cuda or opencl", for sentences. Returns `out`. */
const char *heddle_device_names(char *out, size_t cap);

#endif /* HEDDLE_BASE_DEVICE_H */
