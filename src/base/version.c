/* SPDX-License-Identifier: BSD-3-Clause */
/* version: the version the library was built as. */
#include "heddle/version.h"

const char *heddle_version(void)
{
    return HEDDLE_VERSION;
}
