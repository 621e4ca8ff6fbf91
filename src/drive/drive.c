/* SPDX-License-Identifier: BSD-3-Clause */
/* drive: the table of drivers, one per kind of device and those of drive.def. */
#include "drive/drive.h"

#include <string.h>

#include "base/cond.h"
#include "heddle_config.h"

#define HEDDLE_DRIVER(name, on)                                                                    \
    HEDDLE_IF(on, extern const struct heddle_driver heddle_driver_##name;)
#define HEDDLE_KIND(name, constant, number, on) HEDDLE_DRIVER(name, on)
HEDDLE_DEVICE_LIST(HEDDLE_KIND)
#include "drive/drive.def"
#undef HEDDLE_DRIVER

const struct heddle_driver *const heddle_driver_table[] = {
#define HEDDLE_DRIVER(name, on) HEDDLE_IF(on, &heddle_driver_##name, )
    HEDDLE_DEVICE_LIST(HEDDLE_KIND)
#include "drive/drive.def"
#undef HEDDLE_DRIVER
        NULL,
};

const struct heddle_driver *heddle_driver_find(const char *name)
{
    for (size_t i = 0; heddle_driver_table[i] != NULL; i++)
        if (strcmp(heddle_driver_table[i]->name, name) == 0)
            return heddle_driver_table[i];
    return NULL;
}
