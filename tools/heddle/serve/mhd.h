/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_SERVE_MHD_H
#define HEDDLE_TOOLS_SERVE_MHD_H

/* libmicrohttpd's functions, found when they are needed: the tool runs without the library. */
#include <microhttpd.h>
#include <stddef.h>

#include "heddle/status.h"

struct mhd {
    void *library;
#define HTTP_CALL(name) __typeof__(&MHD_##name) name;
#include "serve/http.def"
#undef HTTP_CALL
};

/* HEDDLE_ENOSYS and a sentence: the library, or one of its functions, is not there. Zeroed memory
 * before; mhd_unload() in every case. */
HEDDLE_MUST_USE heddle_status mhd_load(struct mhd *m, char *why, size_t why_bytes);
void mhd_unload(struct mhd *m);

#endif /* HEDDLE_TOOLS_SERVE_MHD_H */
