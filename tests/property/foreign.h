/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TESTS_PROPERTY_FOREIGN_H
#define HEDDLE_TESTS_PROPERTY_FOREIGN_H

/* A thread that does not belong to Heddle and does things a little later. */
#include <stdint.h>

struct foreign;

struct foreign *foreign_start(uint64_t seed);
/* Any thread. fn(user) is called soon, in some order. */
void foreign_ask(struct foreign *f, void (*fn)(void *user), void *user);
/* Waits until all that was asked for is done; more may be asked meanwhile. */
void foreign_stop(struct foreign *f);

#endif /* HEDDLE_TESTS_PROPERTY_FOREIGN_H */
