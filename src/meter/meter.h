/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_METER_METER_H
#define HEDDLE_METER_METER_H

/*
 * Energy counters: the contract of a plug-in, and what core and drive use of the
 * module beside heddle/energy_meter.h.
 *
 * A plug-in is one file <name>.c that defines heddle_meter_<name>, and one line in
 * meter.def. It finds counters and reads raw values; meter.c turns these into
 * energy that never decreases.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "heddle/alloc.h"
#include "heddle/energy_meter.h"
#include "heddle/status.h"

struct perf_event_attr;

enum {
    HEDDLE_METER_NAME = 64,  /* bytes of the name of a domain or device */
    HEDDLE_METER_WHY = 240,  /* bytes of a sentence */
    HEDDLE_METER_MOST = 256, /* domains of one source */
};

/* A GPU whose CUDA name is known: "cuda0" is the one at "0000:3b:00.0". */
struct heddle_meter_gpu {
    char device[HEDDLE_METER_NAME];
    char pci[32];
};

/* Where to look. Read during heddle_meter_create() only. */
struct heddle_meter_env {
    const struct heddle_allocator *alloc;
    const char *sysfs; /* NULL: "/sys" */
    /* NVML: NULL is libnvidia-ml.so.1, if the machine has a device node. */
    const char *nvml_library;
    bool has_gpu_list; /* these alone; without, every GPU that NVML knows */
    const struct heddle_meter_gpu *gpu;
    size_t ngpus;
    /* For tests, as perf_event_open() without its constant arguments; NULL: the
     * system call. */
    int (*perf_open)(void *user, struct perf_event_attr *attr, int cpu);
    void *perf_user;
};

/* --- plug-ins ------------------------------------------------------------ */

/* What a plug-in has found, in its own order. */
struct heddle_meter_found {
    char name[HEDDLE_METER_NAME];
    char device[HEDDLE_METER_NAME];
    uint64_t range_uj; /* largest value before it starts again at 0; 0: never */
};

struct heddle_meter_ops {
    const char *name;
    const char *help;
    uint64_t period_ns;
    size_t instance_size; /* zeroed before open() */
    /*
     * Finds counters that can be read: at most `cap` of them are described, and
     * *n_out is their number. `why` (HEDDLE_METER_WHY bytes, "" before) gets a
     * sentence when there are none or some cannot be read: that is no failure.
     * HEDDLE_ENOMEM alone is. close() follows in every case.
     */
    heddle_status (*open)(void *self, const struct heddle_meter_env *env,
                          struct heddle_meter_found *found, size_t cap, size_t *n_out, char *why);
    /* Microjoules since any moment. On failure HEDDLE_EIO and a sentence. */
    heddle_status (*read)(void *self, size_t i, uint64_t *uj_out, char *why);
    void (*close)(void *self);
};

/* NULL-terminated; built from meter.def. */
extern const struct heddle_meter_ops *const heddle_meter_table[];

/* heddle_meter_open() with all there is to say. `table`: NULL is all of them. */
HEDDLE_MUST_USE heddle_status heddle_meter_create(const struct heddle_meter_env *env,
                                                  const struct heddle_meter_ops *const *table,
                                                  heddle_meter **out);

size_t heddle_meter_ndomains(const heddle_meter *m);

/* Why there is no domain at all: the sentences of the sources, one after another.
 * "" when there is one. Returns `out`. */
const char *heddle_meter_explain(const heddle_meter *m, char *out, size_t cap);

/* --- followers of counters (follow.c) ------------------------------------ */

/* A raw counter as energy since the first reading. */
struct heddle_follow {
    uint64_t range; /* as above */
    uint64_t last;  /* raw */
    uint64_t last_ns;
    uint64_t sum;
    bool has_last;
    bool has_gap; /* to be told with the next sample */
};

/* Takes a reading of time `ns`. False: it makes no sense and is dropped, `why`
 * (HEDDLE_METER_WHY bytes) says so. */
bool heddle_follow_take(struct heddle_follow *f, uint64_t raw, uint64_t ns, char *why);

/* --- for plug-ins (small.c) ----------------------------------------------- */

/* A sentence of HEDDLE_METER_WHY bytes, unless there is one: the first problem is
 * told, later ones are often the same. */
HEDDLE_PRINTF(2, 3)
void heddle_meter_say(char *why, const char *fmt, ...);

/* One line of a small file without its end, at most cap - 1 bytes; longer ones are
 * HEDDLE_EFORMAT. HEDDLE_ENOENT, HEDDLE_EIO: errno says why. */
HEDDLE_MUST_USE heddle_status heddle_small_read(const char *path, char *out, size_t cap);
/* The same of an open file, from its beginning. */
HEDDLE_MUST_USE heddle_status heddle_small_pread(int fd, char *out, size_t cap);
/* The same for what is a decimal number; HEDDLE_EFORMAT when it is none. */
HEDDLE_MUST_USE heddle_status heddle_small_number(const char *path, uint64_t *out);

/* --- NVML (nvml_lib.c; not in builds without CUDA) ------------------------ */

struct heddle_nvml {
    void *lib; /* NULL: not open */
    int (*shutdown)(void);
    int (*count)(unsigned *n);
    int (*by_index)(unsigned i, void **device);
    int (*by_pci)(const char *id, void **device);
    int (*energy)(void *device, unsigned long long *millijoules);
    int (*power)(void *device, unsigned *milliwatts);
    const char *(*text)(int error);
};

/* Is there a device node of an NVIDIA GPU? Without, its libraries are not loaded:
 * that takes long and may load a kernel module. */
bool heddle_nvml_has_node(void);

/* Loads and starts NVML, `library` as in the environment. HEDDLE_ENOSYS: `why`
 * (HEDDLE_METER_WHY bytes) has a sentence. */
HEDDLE_MUST_USE heddle_status heddle_nvml_open(struct heddle_nvml *n, const char *library,
                                               char *why);
/* Zeroed memory is fine. */
void heddle_nvml_close(struct heddle_nvml *n);
/* What an error of NVML means; never NULL. */
const char *heddle_nvml_text(const struct heddle_nvml *n, int error);

#endif /* HEDDLE_METER_METER_H */
