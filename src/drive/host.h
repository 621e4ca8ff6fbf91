/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_DRIVE_HOST_H
#define HEDDLE_DRIVE_HOST_H

/* The host's memory, for devices that live in it. */
#include <stdint.h>

/* Bytes of the machine, and bytes that can be had now without swapping; 0: the
 * system does not tell. Containers are not looked at: topo does that. */
void heddle_host_memory(uint64_t *total_out, uint64_t *free_out);

#endif /* HEDDLE_DRIVE_HOST_H */
