/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_ENERGY_H
#define HEDDLE_ENERGY_H

/*
 * heddle/energy.h - what a run costs in joules: the energy model.
 *
 * The model is linear. A machine draws its idle power all the time; a task adds
 * watts of its own while it runs, and a byte that moves adds joules:
 *
 *     energy = idle watts x time + sum of (active watts x seconds of the task)
 *            + sum of (joules per byte x bytes moved)
 *
 * Idle power is per domain: what one counter counts, such as the package of a
 * processor ("package-0") or a GPU ("gpu0"). Active power is above idle, per
 * kernel and device, and where it is known per variant and size. A cap is a
 * state of a device in which tasks take longer and draw less.
 *
 * Models are fitted from logs (heddle/energy_fit.h), or written by hand:
 * docs/formats/energy.md. Everything that predicts, bounds, schedules or draws
 * energy uses this object.
 *
 * Devices   are named as types of workers are in heddle/log_graph.h: "cpu",
 *           "cuda0", a machine's "cuda small". A row for "cuda" holds for every
 *           device of that kind that has none of its own: a name matches when it
 *           is equal, else when it is equal without digits at its end ("cuda0":
 *           "cuda"), else by its first word, else a row of "*".
 *
 * Threads:  a model that no one changes may be read from any thread.
 * Errors:   functions return heddle_status; on failure nothing has changed.
 */
#include <stddef.h>
#include <stdint.h>

#include "heddle/alloc.h"
#include "heddle/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An energy model. */
typedef struct heddle_energy heddle_energy;

/* The longest name of a domain, kernel, variant, device or cap, in bytes. */
#define HEDDLE_ENERGY_NAME_MAX 255

/* A domain: what one counter counts. Strings are borrowed for the time of a call. */
struct heddle_energy_domain {
    size_t size; /* sizeof(struct heddle_energy_domain) */
    const char *name;
    const char *device; /* whose tasks it counts: "cpu", "cuda0"; NULL or "": none */
    double idle_watts;  /* >= 0 */
    double low, high;   /* interval of confidence; both 0: not known */
};

/* The watts that a task adds while it runs, above idle. */
struct heddle_energy_active {
    size_t size;         /* sizeof(struct heddle_energy_active) */
    const char *kernel;  /* "*": any that has no row */
    const char *device;  /* "*": any */
    const char *variant; /* NULL or "": any */
    uint64_t bytes;      /* of all operands; 0: any */
    double watts;        /* >= 0 */
    double low, high;    /* interval of confidence; both 0: not known */
    uint32_t group;      /* rows of one group > 0 could not be told apart: they
                            share their watts */
    uint64_t count;      /* tasks it was fitted from; 0: given by hand */
};

/* A state of a device: time and active watts are multiplied. */
struct heddle_energy_cap {
    size_t size; /* sizeof(struct heddle_energy_cap) */
    const char *device;
    const char *name;    /* "250W"; unique for its device */
    double time_factor;  /* > 0 */
    double watts_factor; /* > 0 */
};

/*
 * Makes a model.
 *
 * HEDDLE_OK      *out is an empty model; end it with heddle_energy_destroy()
 * HEDDLE_EINVAL  out is NULL
 * HEDDLE_ENOMEM  no memory
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_energy_create(const struct heddle_allocator *alloc,
                                                              heddle_energy **out);

/* Frees a model. NULL is fine. */
HEDDLE_API void heddle_energy_destroy(heddle_energy *e);

/*
 * Adds a row, or replaces the one of the same name (domain), of the same kernel,
 * device, variant and bytes (active), or of the same device and name (cap).
 *
 * HEDDLE_EINVAL  a name is missing, empty or too long, a number is negative or
 *                not finite, low > high
 * HEDDLE_ENOMEM  no memory
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status
heddle_energy_set_domain(heddle_energy *e, const struct heddle_energy_domain *row);
HEDDLE_API HEDDLE_MUST_USE heddle_status
heddle_energy_set_active(heddle_energy *e, const struct heddle_energy_active *row);
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_energy_set_cap(heddle_energy *e,
                                                               const struct heddle_energy_cap *row);

/* Joules per byte that is moved between memories; 0 unless it was set. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_energy_set_move(heddle_energy *e,
                                                                double joules_per_byte);
HEDDLE_API double heddle_energy_get_move(const heddle_energy *e);

/* Row i, in the order in which the rows were added. Set out->size before; strings
 * live as long as the model is unchanged. HEDDLE_ENOENT: there are no more. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_energy_get_domain(const heddle_energy *e, size_t i,
                                                                  struct heddle_energy_domain *out);
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_energy_get_active(const heddle_energy *e, size_t i,
                                                                  struct heddle_energy_active *out);
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_energy_get_cap(const heddle_energy *e, size_t i,
                                                               struct heddle_energy_cap *out);

/* The watts above idle that a task adds, from the row that fits the task best: first the row
 * with the best fit of the device counts, then of the kernel, then of the variant, then of the
 * bytes; among rows for other bytes the nearest. `variant` may be NULL. NAN: no row fits. */
HEDDLE_API double heddle_energy_watts(const heddle_energy *e, const char *kernel,
                                      const char *variant, const char *device, uint64_t bytes);

/* How well a row for `name` fits a device, by the rule under "Devices" above: 4 equal, 3 equal
 * without digits, 2 by the first word, 1 a row of "*"; 0: the row does not fit, or an argument
 * is NULL. */
HEDDLE_API unsigned heddle_energy_fit_device(const char *name, const char *device);

/* Idle watts of all domains together. */
HEDDLE_API double heddle_energy_idle_watts(const heddle_energy *e);

/*
 * Reads a file, docs/formats/energy.md; `why` (why_bytes bytes; may be NULL) has one
 * sentence with the line on failure.
 *
 * HEDDLE_ENOENT   the file is not there
 * HEDDLE_EIO      the file cannot be read
 * HEDDLE_EFORMAT  the file is malformed, or a number in it makes no sense
 * HEDDLE_EINVAL   an argument is NULL
 * HEDDLE_ENOMEM   no memory
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_energy_read(const struct heddle_allocator *alloc,
                                                            const char *path, heddle_energy **out,
                                                            char *why, size_t why_bytes);

/* Writes a model to a file, which changes as a whole or not at all. HEDDLE_EIO: the file cannot
 * be written; `why` as above. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_energy_write(const heddle_energy *e,
                                                             const char *path, char *why,
                                                             size_t why_bytes);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_ENERGY_H */
