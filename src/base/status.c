/* SPDX-License-Identifier: BSD-3-Clause */
/* status: names and texts, from the one list in heddle/status.h. */
#include "heddle/status.h"

const char *heddle_status_text(heddle_status st)
{
    switch ((int)st) {
#define HEDDLE_STATUS_CASE(name, value, text)                                                      \
    case value: return text;
        HEDDLE_STATUS_LIST(HEDDLE_STATUS_CASE)
#undef HEDDLE_STATUS_CASE
    default: return "unknown status";
    }
}

const char *heddle_status_name(heddle_status st)
{
    switch ((int)st) {
#define HEDDLE_STATUS_CASE(name, value, text)                                                      \
    case value: return #name;
        HEDDLE_STATUS_LIST(HEDDLE_STATUS_CASE)
#undef HEDDLE_STATUS_CASE
    default: return "HEDDLE_UNKNOWN";
    }
}
