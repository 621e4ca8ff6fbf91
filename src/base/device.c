/* SPDX-License-Identifier: BSD-3-Clause */
/* device: names and numbers of the kinds of devices, from HEDDLE_DEVICE_LIST. */
#include "base/device.h"

#include <string.h>
#include <strings.h>

#include "base/text.h"

#define HEDDLE_DEVICE_NUMBER(name, constant, number, with)                                         \
    _Static_assert((number) > 0 && (number) <= HEDDLE_DEVICE_MOST, #name);
HEDDLE_DEVICE_LIST(HEDDLE_DEVICE_NUMBER)

static const char *const device_name[HEDDLE_DEVICE_MOST + 1] = {
#define HEDDLE_DEVICE_NAME(name, constant, number, with) [number] = #name,
    HEDDLE_DEVICE_LIST(HEDDLE_DEVICE_NAME)};

const char *heddle_device_name(enum heddle_device kind)
{
    return heddle_device_is_known(kind) ? device_name[kind] : "unknown";
}

enum heddle_device heddle_device_of(const char *name)
{
    for (unsigned k = 1; k <= HEDDLE_DEVICE_MOST; k++)
        if (device_name[k] != NULL && strcmp(device_name[k], name) == 0)
            return (enum heddle_device)k;
    return (enum heddle_device)0;
}

enum heddle_device heddle_device_at_start(const char *text)
{
    for (unsigned k = 1; k <= HEDDLE_DEVICE_MOST; k++)
        if (device_name[k] != NULL &&
            strncasecmp(text, device_name[k], strlen(device_name[k])) == 0)
            return (enum heddle_device)k;
    return (enum heddle_device)0;
}

const char *heddle_device_names(char *out, size_t cap)
{
    const char *last = NULL;
    struct heddle_text t;

    heddle_text_init(&t, out, cap);
    for (unsigned k = 1; k <= HEDDLE_DEVICE_MOST; k++) {
        if (device_name[k] == NULL)
            continue;
        if (last != NULL)
            heddle_text_add(&t, "%s%s", t.len > 0 ? ", " : "", last);
        last = device_name[k];
    }
    heddle_text_add(&t, " or %s", last);
    return out;
}
