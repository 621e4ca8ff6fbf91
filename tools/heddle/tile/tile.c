/* SPDX-License-Identifier: BSD-3-Clause */
/* tile: the table of the demo's kernel sets. */
#include "tile/tile.h"

#include <string.h>

#include "base/cond.h"
#include "heddle_config.h"

#define HEDDLE_TILE(name, on) HEDDLE_IF(on, extern const struct heddle_tile_ops heddle_tile_##name;)
#include "tile/tile.def"
#undef HEDDLE_TILE

const struct heddle_tile_ops *const heddle_tile_table[] = {
#define HEDDLE_TILE(name, on) HEDDLE_IF(on, &heddle_tile_##name, )
#include "tile/tile.def"
#undef HEDDLE_TILE
    NULL,
};

const struct heddle_tile_ops *tile_find(const char *name)
{
    for (unsigned i = 0; heddle_tile_table[i] != NULL; i++)
        if (strcmp(heddle_tile_table[i]->name, name) == 0)
            return heddle_tile_table[i];
    return NULL;
}
