/* SPDX-License-Identifier: BSD-3-Clause */
/* sized: the size fields of public structs, see sized.h. */
#include "base/sized.h"

#include <stdbool.h>
#include <string.h>

#include "base/why.h"

#define BEYOND 65536 /* no header has so much more than the library knows */

static size_t size_of(const void *s)
{
    size_t size;

    memcpy(&size, s, sizeof(size));
    return size;
}

static bool is_zero(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != 0)
            return false;
    return true;
}

static heddle_status refuse(const char *name, size_t size, char *why, size_t why_bytes)
{
    if (size == 0)
        return heddle_why(why, why_bytes, HEDDLE_EINVAL,
                          "%s has no size: set its field size to sizeof(%s)", name, name);
    return heddle_why(why, why_bytes, HEDDLE_EINVAL,
                      "%s has the size %zu: set its field size to sizeof(%s)", name, size, name);
}

static heddle_status refuse_rest(const char *name, size_t size, size_t known, char *why,
                                 size_t why_bytes)
{
    return heddle_why(why, why_bytes, HEDDLE_EINVAL,
                      "%s has %zu bytes, and fields beyond the %zu that this library knows are "
                      "set: leave these zero, or run with the library of that header",
                      name, size, known);
}

static bool is_size(size_t size, size_t known, size_t least)
{
    return size >= least && (size <= known || size - known < BEYOND);
}

heddle_status heddle_sized_get(const char *name, void *to, size_t known, const void *from,
                               char *why, size_t why_bytes)
{
    const size_t size = from == NULL ? known : size_of(from);
    const size_t n = from == NULL ? 0 : size < known ? size : known;

    if (!is_size(size, known, sizeof(size)))
        return refuse(name, size, why, why_bytes);
    if (size > known && !is_zero((const unsigned char *)from + known, size - known))
        return refuse_rest(name, size, known, why, why_bytes);
    if (n > 0)
        memcpy(to, from, n);
    memset((unsigned char *)to + n, 0, known - n);
    memcpy(to, &known, sizeof(known));
    return HEDDLE_OK;
}

heddle_status heddle_sized_get_opts(const char *name, void *to, size_t known, const void *from,
                                    size_t why_at)
{
    const size_t size = from == NULL ? known : size_of(from);
    char *why = NULL;
    size_t why_bytes = 0;

    /* A forgotten size: the struct has all fields of some header. */
    if (from != NULL && (size == 0 || size >= why_at + sizeof(why) + sizeof(why_bytes))) {
        memcpy(&why, (const unsigned char *)from + why_at, sizeof(why));
        memcpy(&why_bytes, (const unsigned char *)from + why_at + sizeof(why), sizeof(why_bytes));
    }
    return heddle_sized_get(name, to, known, from, why, why_bytes);
}

heddle_status heddle_sized_room(const char *name, const void *out, size_t known, size_t least,
                                char *why, size_t why_bytes)
{
    if (out == NULL)
        return heddle_why(why, why_bytes, HEDDLE_EINVAL, "there is no place for %s", name);
    if (is_size(size_of(out), known, least))
        return HEDDLE_OK;
    return refuse(name, size_of(out), why, why_bytes);
}

void heddle_sized_put(void *out, const void *from, size_t known)
{
    const size_t size = size_of(out);
    const size_t n = size < known ? size : known;

    memcpy((unsigned char *)out + sizeof(size), (const unsigned char *)from + sizeof(size),
           n - sizeof(size));
    memset((unsigned char *)out + n, 0, size - n);
}

void heddle_sized_clear(void *out)
{
    const size_t size = size_of(out);

    if (size > sizeof(size))
        memset((unsigned char *)out + sizeof(size), 0, size - sizeof(size));
}
