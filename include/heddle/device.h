/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_DEVICE_H
#define HEDDLE_DEVICE_H

/*
 * heddle/device.h - the kinds of devices that run tasks.
 *
 * A variant of a kernel names the kind that it is written for. Logs and models keep the numbers,
 * which never change.
 */
#include <stdint.h>

#include "heddle/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * One row per kind: X(name, CONSTANT, number, the build switch of its driver). The name is also the
 * folder of the driver in src/drive, the kind in files that describe machines, the word in
 * HEDDLE_DEVICES, and the beginning of the names of its devices and of their lanes in a log
 * ("cuda0", "cuda0.1"). Numbers go from 1 to 7.
 */
#define HEDDLE_DEVICE_LIST(X)                                                                      \
    X(cpu, CPU, 1, 1)                                                                              \
    X(cuda, CUDA, 2, HEDDLE_WITH_CUDA)                                                             \
    X(opencl, OPENCL, 3, HEDDLE_WITH_OPENCL)

/* A kind of device: HEDDLE_DEV_CPU = 1 and so on. */
enum heddle_device {
#define HEDDLE_DEVICE_CONSTANT(name, constant, number, with) HEDDLE_DEV_##constant = (number),
    HEDDLE_DEVICE_LIST(HEDDLE_DEVICE_CONSTANT)
#undef HEDDLE_DEVICE_CONSTANT
};

/* A set of kinds of devices; HEDDLE_DEVS_ANY is no restriction. */
typedef uint32_t heddle_devices;

/* The set of one kind (an enum heddle_device), and no restriction. */
#define HEDDLE_DEVS(kind) ((heddle_devices)1 << (kind))
#define HEDDLE_DEVS_ANY   ((heddle_devices)0)

/* The set of each kind: HEDDLE_DEVS_CPU, HEDDLE_DEVS_CUDA, HEDDLE_DEVS_OPENCL. */
enum {
#define HEDDLE_DEVICE_SET(name, constant, number, with) HEDDLE_DEVS_##constant = 1 << (number),
    HEDDLE_DEVICE_LIST(HEDDLE_DEVICE_SET)
#undef HEDDLE_DEVICE_SET
};

/* "cpu", "cuda", "opencl"; "unknown" for anything else. Never NULL. */
HEDDLE_API const char *heddle_device_name(enum heddle_device kind);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_DEVICE_H */
