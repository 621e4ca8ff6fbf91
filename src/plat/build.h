/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PLAT_BUILD_H
#define HEDDLE_PLAT_BUILD_H

/*
 * Making a description, for its readers: parts are added, then it is finished.
 * What is wrong with a part, its reader says; what is wrong with the whole, finish
 * does.
 */
#include "plat/plat.h"
#include "plat/table.h"

#define HEDDLE_PLAT_MAX_NODES   64u
#define HEDDLE_PLAT_MAX_CLASSES 256u
#define HEDDLE_PLAT_MAX_WORKERS 4096u
#define HEDDLE_PLAT_MAX_BUSES   256u
#define HEDDLE_PLAT_MAX_FAULTS  1024u

/* A machine with the node "host" and nothing else. */
HEDDLE_MUST_USE heddle_status heddle_plat_new(const struct heddle_allocator *a,
                                              struct heddle_plat **plat_out);

/* Append a copy. HEDDLE_ENOMEM; HEDDLE_EOVERFLOW: too many. */
HEDDLE_MUST_USE heddle_status heddle_plat_add_node(struct heddle_plat *p,
                                                   const struct heddle_plat_node *n);
HEDDLE_MUST_USE heddle_status heddle_plat_add_class(struct heddle_plat *p,
                                                    const struct heddle_plat_class *c);
HEDDLE_MUST_USE heddle_status heddle_plat_add_link(struct heddle_plat *p,
                                                   const struct heddle_plat_link *l);
HEDDLE_MUST_USE heddle_status heddle_plat_add_bus(struct heddle_plat *p,
                                                  const struct heddle_plat_bus *b);
HEDDLE_MUST_USE heddle_status heddle_plat_push_fault(struct heddle_plat *p,
                                                     const struct heddle_fault *f);

int heddle_plat_find_bus(const struct heddle_plat *p, const char *name);

/* Copies a name; false: it is too long or empty. */
bool heddle_plat_set_name(char *to, size_t cap, const char *from);

/* Numbers the types. False: the classes number *a and *b have one model, but
 * different rates. */
bool heddle_plat_number_types(struct heddle_plat *p, unsigned *a, unsigned *b);

/* The first node without a way from or to the host; 0: there is none. */
unsigned heddle_plat_lost_node(const struct heddle_plat *p, bool *is_from_out);

/* The words of a fault, without "fault", into *f; the sentence into why. */
HEDDLE_MUST_USE heddle_status heddle_plat_parse_fault(const struct heddle_plat *p,
                                                      char *const *word, unsigned nwords,
                                                      struct heddle_fault *f, char *why,
                                                      size_t cap);

/* The readers. */
HEDDLE_MUST_USE heddle_status heddle_plat_read_file(const struct heddle_allocator *a,
                                                    const char *path, struct heddle_plat **plat_out,
                                                    char *why, size_t cap);
HEDDLE_MUST_USE heddle_status heddle_plat_read_starpu(const struct heddle_allocator *a,
                                                      const char *dir, const char *name,
                                                      struct heddle_plat **plat_out, char *why,
                                                      size_t cap);
/* Part of the latter: the histories of all kernels for the types that cores and
 * accelerators have; -1: there are none. */
struct heddle_plat_owners {
    int cpu, cuda;
    unsigned ncuda;
};
HEDDLE_MUST_USE heddle_status heddle_plat_read_histories(struct heddle_plat *p, const char *dir,
                                                         const char *name,
                                                         struct heddle_plat_owners owners,
                                                         char *why, size_t cap);

#endif /* HEDDLE_PLAT_BUILD_H */
