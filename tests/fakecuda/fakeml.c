/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fakeml: the part of NVML that the project calls: the power a device draws, and the
 * energy since some moment. It is 100 W and the number of the device behind the point:
 * 100.001 W for number 1.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fakecuda.h"

enum { ML_OK = 0, ML_UNINITIALIZED = 1, ML_INVALID_ARGUMENT = 2 };
enum { ML_NOT_SUPPORTED = 3, ML_NOT_FOUND = 6 };

static _Atomic unsigned nusers;

#define ML(name, ...)                                                                              \
    FC_EXPORT int name(__VA_ARGS__);                                                               \
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

/* NVML does not look at CUDA_VISIBLE_DEVICES. */
static unsigned ndevices(void)
{
    const char *s = getenv("FAKECUDA_DEVICES");
    const unsigned long n = s != NULL ? strtoul(s, NULL, 10) : 1;

    return n < FC_DEVICES ? (unsigned)n : FC_DEVICES;
}

ML(nvmlDeviceGetCount_v2, unsigned *out)
{
    if (atomic_load(&nusers) == 0)
        return ML_UNINITIALIZED;
    *out = ndevices();
    return ML_OK;
}

ML(nvmlDeviceGetHandleByIndex_v2, unsigned i, void **out)
{
    if (atomic_load(&nusers) == 0)
        return ML_UNINITIALIZED;
    if (i >= ndevices())
        return ML_INVALID_ARGUMENT;
    *out = (void *)(uintptr_t)(i + 1);
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

/* Millijoules, brought up to date every 20 ms as with a GPU. FAKECUDA_ENERGY=0: this
 * model has no counter. */
ML(nvmlDeviceGetTotalEnergyConsumption, void *device, unsigned long long *millijoules_out)
{
    const char *s = getenv("FAKECUDA_ENERGY");
    struct timespec t;
    unsigned mw = 0;
    int err;

    if (s != NULL && strcmp(s, "0") == 0)
        return ML_NOT_SUPPORTED;
    err = nvmlDeviceGetPowerUsage(device, &mw);
    if (err != ML_OK)
        return err;
    clock_gettime(CLOCK_MONOTONIC, &t);
    *millijoules_out =
        ((unsigned long long)t.tv_sec * 50 + (unsigned long long)t.tv_nsec / 20000000) * mw / 50;
    return ML_OK;
}

FC_EXPORT const char *nvmlErrorString(int error);
const char *nvmlErrorString(int error)
{
    switch (error) {
    case ML_OK: return "Success";
    case ML_NOT_SUPPORTED: return "Not Supported";
    case ML_NOT_FOUND: return "Not Found";
    default: return "Some Other Error";
    }
}
