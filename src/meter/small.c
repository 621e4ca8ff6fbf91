/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * small: what plug-ins share: sentences, and files of the kernel that hold one line.
 *
 * A name may lead to anything (tests give such trees): nothing here waits, and no
 * more than a line is read.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/text.h"
#include "base/why.h"
#include "meter/meter.h"

void heddle_meter_say(char *why, const char *fmt, ...)
{
    va_list ap;

    if (why[0] != '\0')
        return;
    va_start(ap, fmt);
    (void)heddle_why_va(why, HEDDLE_METER_WHY, HEDDLE_OK, fmt, ap);
    va_end(ap);
}

heddle_status heddle_small_pread(int fd, char *out, size_t cap)
{
    ssize_t n;
    char *end;

    do
        n = pread(fd, out, cap, 0);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return HEDDLE_EIO;
    end = memchr(out, '\n', (size_t)n);
    if (end == NULL && (size_t)n == cap)
        return HEDDLE_EFORMAT;
    if (end == NULL)
        end = out + n;
    *end = '\0';
    /* A zero inside would hide what follows. */
    return strlen(out) == (size_t)(end - out) ? HEDDLE_OK : HEDDLE_EFORMAT;
}

heddle_status heddle_small_read(const char *path, char *out, size_t cap)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    heddle_status st;
    int err;

    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR ? HEDDLE_ENOENT : HEDDLE_EIO;
    st = heddle_small_pread(fd, out, cap);
    err = errno;
    close(fd);
    errno = err;
    return st;
}

heddle_status heddle_small_number(const char *path, uint64_t *out)
{
    char text[32];

    HEDDLE_TRY(heddle_small_read(path, text, sizeof(text)));
    return heddle_parse_u64(text, out) == HEDDLE_OK ? HEDDLE_OK : HEDDLE_EFORMAT;
}
