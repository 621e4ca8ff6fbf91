/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nvml_lib: NVIDIA's management library, loaded when it is wanted. Its functions
 * are declared here: no header of NVIDIA is needed to build.
 *
 * Threads    NVML may be called from any thread; starts are counted by itself.
 */
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include "meter/meter.h"

#define LIBRARY "libnvidia-ml.so.1"

/* The kernel module's own node, the first GPU, the GPU of a WSL machine. */
static const char *const device_nodes[] = {"/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg"};

bool heddle_nvml_has_node(void)
{
    for (size_t i = 0; i < sizeof(device_nodes) / sizeof(device_nodes[0]); i++)
        if (access(device_nodes[i], F_OK) == 0)
            return true;
    return false;
}

/* memcpy: ISO C does not convert between void * and pointers to functions. */
#define FUNCTION(out, name)                                                                        \
    do {                                                                                           \
        void *fn_ = dlsym(n->lib, name);                                                           \
                                                                                                   \
        memcpy(&(out), &fn_, sizeof(fn_));                                                         \
    } while (0)

/* What an old driver lacks is NULL. */
static heddle_status start(struct heddle_nvml *n, char *why)
{
    int (*init)(void);
    int err;

    FUNCTION(init, "nvmlInit_v2");
    FUNCTION(n->count, "nvmlDeviceGetCount_v2");
    FUNCTION(n->by_index, "nvmlDeviceGetHandleByIndex_v2");
    FUNCTION(n->by_pci, "nvmlDeviceGetHandleByPciBusId_v2");
    FUNCTION(n->energy, "nvmlDeviceGetTotalEnergyConsumption");
    FUNCTION(n->power, "nvmlDeviceGetPowerUsage");
    FUNCTION(n->text, "nvmlErrorString");
    if (init == NULL) {
        heddle_meter_say(why, LIBRARY " is too old");
        return HEDDLE_ENOSYS;
    }
    err = init();
    if (err != 0) {
        heddle_meter_say(why, "NVML does not start: %.100s", heddle_nvml_text(n, err));
        return HEDDLE_ENOSYS;
    }
    FUNCTION(n->shutdown, "nvmlShutdown"); /* it has started */
    return HEDDLE_OK;
}

heddle_status heddle_nvml_open(struct heddle_nvml *n, const char *library, char *why)
{
    const char *words;
    heddle_status st;

    *n = (struct heddle_nvml){0};
    if (library == NULL && !heddle_nvml_has_node()) {
        heddle_meter_say(why, "there is no NVIDIA device node");
        return HEDDLE_ENOSYS;
    }
    n->lib = dlopen(library != NULL ? library : LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (n->lib == NULL) {
        words = dlerror();
        heddle_meter_say(why, "NVML cannot be loaded: %.180s",
                         words != NULL ? words : LIBRARY " is not there");
        return HEDDLE_ENOSYS;
    }
    st = start(n, why);
    if (st != HEDDLE_OK)
        heddle_nvml_close(n);
    return st;
}

void heddle_nvml_close(struct heddle_nvml *n)
{
    if (n->shutdown != NULL)
        (void)n->shutdown();
    if (n->lib != NULL)
        dlclose(n->lib);
    *n = (struct heddle_nvml){0};
}

const char *heddle_nvml_text(const struct heddle_nvml *n, int error)
{
    const char *text = n->text != NULL ? n->text(error) : NULL;

    return text != NULL ? text : "an error without a name";
}
