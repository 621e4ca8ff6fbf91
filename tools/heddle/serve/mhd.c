/* SPDX-License-Identifier: BSD-3-Clause */
/* mhd: loads libmicrohttpd. */
#include "serve/mhd.h"

#include <dlfcn.h>
#include <string.h>

#include "base/why.h"

heddle_status mhd_load(struct mhd *m, char *why, size_t why_bytes)
{
    static const char *const names[] = {"libmicrohttpd.so.12", "libmicrohttpd.so"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && m->library == NULL; i++)
        m->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (m->library == NULL)
        return heddle_why(why, why_bytes, HEDDLE_ENOSYS,
                          "libmicrohttpd is not installed (Debian: libmicrohttpd12)");
        /* C has no cast from an object's address to a function's. */
#define HTTP_CALL(name)                                                                            \
    {                                                                                              \
        void *p = dlsym(m->library, "MHD_" #name);                                                 \
        if (p == NULL)                                                                             \
            return heddle_why(why, why_bytes, HEDDLE_ENOSYS,                                       \
                              "this libmicrohttpd has no MHD_" #name);                             \
        memcpy(&m->name, &p, sizeof(p));                                                           \
    }
#include "serve/http.def"
#undef HTTP_CALL
    return HEDDLE_OK;
}

void mhd_unload(struct mhd *m)
{
    if (m->library != NULL)
        (void)dlclose(m->library);
    m->library = NULL;
}
