/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nvml: the energy of NVIDIA GPUs since their driver was loaded.
 *
 * How        the counter is brought up to date every 20 to 100 ms, on the GPU's own
 *            clock: reading it more often than every 50 ms tells nothing new. GPUs
 *            are found by their place on the bus, because CUDA and NVML count them
 *            in different orders.
 */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "meter/meter.h"

enum { MAX_GPUS = 64 };

struct nvml {
    struct heddle_nvml api;
    void *device[MAX_GPUS];
    size_t n;
};

/* GPU number i: where it is known, the number in CUDA's name. */
static void gpu_name(char name[HEDDLE_METER_NAME], const char *device, size_t i)
{
    const size_t n = strlen(device);
    struct heddle_text t;
    size_t digits = n;

    while (digits > 0 && device[digits - 1] >= '0' && device[digits - 1] <= '9')
        digits--;
    heddle_text_init(&t, name, HEDDLE_METER_NAME);
    if (digits < n)
        heddle_text_add(&t, "gpu%.20s", device + digits);
    else
        heddle_text_add(&t, "gpu%zu", i);
}

/* Takes it if its counter answers. */
static void gpu_take(struct nvml *v, void *device, const char *cuda, size_t i,
                     struct heddle_meter_found *found, char *why)
{
    struct heddle_meter_found *f = &found[v->n];
    unsigned long long mj = 0;
    struct heddle_text t;
    int err;

    *f = (struct heddle_meter_found){.range_uj = 0};
    gpu_name(f->name, cuda, i);
    heddle_text_init(&t, f->device, sizeof(f->device));
    heddle_text_str(&t, cuda);
    err = v->api.energy(device, &mj);
    if (err != 0) {
        heddle_meter_say(why, "%s has no energy counter: %.100s", f->name,
                         heddle_nvml_text(&v->api, err));
        return;
    }
    v->device[v->n++] = device;
}

static void take_listed(struct nvml *v, const struct heddle_meter_env *env,
                        struct heddle_meter_found *found, size_t cap, char *why)
{
    for (size_t i = 0; i < env->ngpus && v->n < cap; i++) {
        const struct heddle_meter_gpu *g = &env->gpu[i];
        void *device = NULL;
        const int err = v->api.by_pci(g->pci, &device);

        if (err == 0)
            gpu_take(v, device, g->device, i, found, why);
        else
            heddle_meter_say(why, "NVML does not know %.40s: %.100s", g->device,
                             heddle_nvml_text(&v->api, err));
    }
}

static void take_all(struct nvml *v, struct heddle_meter_found *found, size_t cap, char *why)
{
    unsigned n = 0;
    int err = v->api.count(&n);

    for (unsigned i = 0; err == 0 && i < n && v->n < cap; i++) {
        void *device = NULL;

        const int refused = v->api.by_index(i, &device);

        if (refused == 0)
            gpu_take(v, device, "cuda", i, found, why);
        else
            heddle_meter_say(why, "NVML does not show GPU %u: %.100s", i,
                             heddle_nvml_text(&v->api, refused));
    }
    if (err == 0 && n == 0)
        heddle_meter_say(why, "NVML knows no GPU");
    else if (v->n == 0)
        heddle_meter_say(why, "NVML shows no GPU: %.100s", heddle_nvml_text(&v->api, err));
}

static heddle_status nvml_open(void *self, const struct heddle_meter_env *env,
                               struct heddle_meter_found *found, size_t cap, size_t *n_out,
                               char *why)
{
    struct nvml *v = self;

    if (env->has_gpu_list && env->ngpus == 0) {
        heddle_meter_say(why, "no NVIDIA GPU is used");
        return HEDDLE_OK;
    }
    if (heddle_nvml_open(&v->api, env->nvml_library, why) != HEDDLE_OK)
        return HEDDLE_OK;
    if (v->api.energy == NULL || v->api.count == NULL || v->api.by_index == NULL ||
        v->api.by_pci == NULL) {
        heddle_meter_say(why, "the NVIDIA driver is too old to count energy");
        return HEDDLE_OK;
    }
    cap = cap < MAX_GPUS ? cap : MAX_GPUS;
    if (env->has_gpu_list)
        take_listed(v, env, found, cap, why);
    else
        take_all(v, found, cap, why);
    *n_out = v->n;
    return HEDDLE_OK;
}

static heddle_status nvml_read(void *self, size_t i, uint64_t *uj_out, char *why)
{
    const struct nvml *v = self;
    unsigned long long mj = 0;
    const int err = v->api.energy(v->device[i], &mj);

    if (err != 0) {
        snprintf(why, HEDDLE_METER_WHY, "NVML does not answer: %.100s",
                 heddle_nvml_text(&v->api, err));
        return HEDDLE_EIO;
    }
    if (mj > UINT64_MAX / 1000) {
        snprintf(why, HEDDLE_METER_WHY, "NVML says %llu millijoules", mj);
        return HEDDLE_EIO;
    }
    *uj_out = (uint64_t)mj * 1000;
    return HEDDLE_OK;
}

static void nvml_close(void *self)
{
    struct nvml *v = self;

    heddle_nvml_close(&v->api);
}

const struct heddle_meter_ops heddle_meter_nvml = {
    .name = "nvml",
    .help = "NVIDIA GPUs, through NVML",
    .period_ns = 50000000,
    .instance_size = sizeof(struct nvml),
    .open = nvml_open,
    .read = nvml_read,
    .close = nvml_close,
};
