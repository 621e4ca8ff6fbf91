/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fakeml: the part of NVML that the project calls: the power a device draws. It is
 * 100 W and the number of the device behind the point: 100.001 W for number 1.
 */
#include <stdlib.h>
#include <string.h>

#include "fakecuda.h"

enum { ML_OK = 0, ML_UNINITIALIZED = 1, ML_INVALID_ARGUMENT = 2 };
enum { ML_NOT_FOUND = 6 };

static _Atomic unsigned nusers;

#define ML(name, ...)                                                          \
    FC_EXPORT int name(__VA_ARGS__);                                           \
    int name(__VA_ARGS__)

ML(nvmlInit_v2, void)
{
    atomic_fetch_add(&nusers, 1);
    return ML_OK;
}

ML(nvmlShutdown, void)
{
    if (atomic_load(&nusers) == 0)
        return ML_UNINITIALIZED;
    atomic_fetch_sub(&nusers, 1);
    return ML_OK;
}

/* The handle is the number of the device in its PCI address. */
ML(nvmlDeviceGetHandleByPciBusId_v2, const char *id, void **out)
{
    const char *colon = strrchr(id, ':');
    unsigned long n;

    if (atomic_load(&nusers) == 0)
        return ML_UNINITIALIZED;
    n = colon != NULL ? strtoul(colon + 1, NULL, 16) : 0;
    if (n == 0 || n > FC_DEVICES)
        return ML_NOT_FOUND;
    *out = (void *)(uintptr_t)n;
    return ML_OK;
}

ML(nvmlDeviceGetPowerUsage, void *device, unsigned *milliwatts_out)
{
    if (atomic_load(&nusers) == 0)
        return ML_UNINITIALIZED;
    if (device == NULL)
        return ML_INVALID_ARGUMENT;
    *milliwatts_out = 100000 + (unsigned)(uintptr_t)device;
    return ML_OK;
}
