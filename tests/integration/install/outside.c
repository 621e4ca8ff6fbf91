/* SPDX-License-Identifier: BSD-3-Clause */
/* A program of somebody else: the installed headers and library, no more. */
#include <heddle/heddle.h>
#include <heddle/version.h>

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    const char *want = argc > 1 ? argv[1] : HEDDLE_VERSION;

    printf("heddle %s, %s\n", heddle_version(), heddle_status_text(HEDDLE_OK));
    return strcmp(heddle_version(), want) != 0;
}
