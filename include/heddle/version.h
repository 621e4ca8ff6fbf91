/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_VERSION_H
#define HEDDLE_VERSION_H

/*
 * heddle/version.h - which Heddle this is.
 *
 * The macros say what the program was compiled with, heddle_version() what it
 * runs with. While the major version is 0, a new minor version may change the
 * interface.
 */
#include "heddle/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the headers that the program was compiled with. */
#define HEDDLE_VERSION_MAJOR 0
#define HEDDLE_VERSION_MINOR 1
#define HEDDLE_VERSION_PATCH 0
#define HEDDLE_VERSION       "0.1.0"

/* One number that can be compared: 0xMMmmpp. */
#define HEDDLE_VERSION_NUMBER                                                                      \
    (HEDDLE_VERSION_MAJOR * 0x10000 + HEDDLE_VERSION_MINOR * 0x100 + HEDDLE_VERSION_PATCH)

/* "major.minor.patch" of the library in use; static text, never NULL. */
HEDDLE_API const char *heddle_version(void);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_VERSION_H */
