/* SPDX-License-Identifier: BSD-3-Clause */
/* file: reads a whole file, and never waits for a pipe. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"

static heddle_status bad(const char **what, heddle_status st, const char *sentence)
{
    *what = sentence;
    return st;
}

static heddle_status read_all(int fd, char *text, size_t len, const char **what)
{
    size_t got = 0;

    while (got < len) {
        const ssize_t n = read(fd, text + got, len - got);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return bad(what, HEDDLE_EIO, "the file cannot be read");
        if (n == 0)
            return bad(what, HEDDLE_EIO, "the file became shorter");
        got += (size_t)n;
    }
    return HEDDLE_OK;
}

static heddle_status check(int fd, size_t max_bytes, size_t *len, const char **what)
{
    struct stat sb;

    if (fstat(fd, &sb) != 0)
        return bad(what, HEDDLE_EIO, "the file cannot be read");
    if (S_ISDIR(sb.st_mode))
        return bad(what, HEDDLE_EFORMAT, "this is a folder, not a file");
    if (!S_ISREG(sb.st_mode))
        return bad(what, HEDDLE_EFORMAT, "this is not a regular file");
    if (sb.st_size < 0 || (uint64_t)sb.st_size > max_bytes)
        return bad(what, HEDDLE_EFORMAT, "the file is too large");
    *len = (size_t)sb.st_size;
    return HEDDLE_OK;
}

static heddle_status read_fd(int fd, size_t max_bytes, const struct heddle_allocator *a,
                             char **text_out, size_t *len_out, const char **what)
{
    size_t len = 0;
    char *text;
    heddle_status st = check(fd, max_bytes, &len, what);

    if (st != HEDDLE_OK)
        return st;
    text = heddle_alloc(a, len + 1);
    if (text == NULL)
        return bad(what, HEDDLE_ENOMEM, "no memory to read the file");
    text[len] = '\0';
    st = read_all(fd, text, len, what);
    if (st != HEDDLE_OK) {
        heddle_free(a, text, len + 1);
        return st;
    }
    *text_out = text;
    *len_out = len;
    return HEDDLE_OK;
}

heddle_status heddle_file_read(const char *path, size_t max_bytes, const struct heddle_allocator *a,
                               char **text_out, size_t *len_out, const char **what_out)
{
    heddle_status st;
    int fd;

    *text_out = NULL;
    *len_out = 0;
    /* O_NONBLOCK: a pipe must not hold us up, only to be refused. */
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return bad(what_out, HEDDLE_ENOENT, "there is no such file");
    if (fd < 0)
        return bad(what_out, HEDDLE_EIO, "the file cannot be opened");
    st = read_fd(fd, max_bytes, a, text_out, len_out, what_out);
    (void)close(fd);
    return st;
}
