/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cache: compiled programs on disk, a file each.
 *
 * File       <cache_dir>/opencl/<32 hex digits>.bin: a header, then the bytes that
 *            the implementation gave. The name is a hash of everything that the
 *            result depends on: source, options, device and driver.
 * Trust      the header repeats the hash and has the length and a checksum: a
 *            file that was cut, changed or renamed is as good as none. It guards
 *            against accidents: a user who can write there can run code here anyway.
 * Writing    into a file of its own, then renamed: a reader sees all or nothing,
 *            and processes that write the same program do not disturb each other.
 * Errors     none: without the file the program is compiled.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/text.h"
#include "drive/opencl/dev.h"

#define MAGIC      UINT64_C(0x316c636c64646568) /* "heddlcl1" */
#define MAX_BYTES  ((uint64_t)256 << 20)
#define PATH_BYTES 4096

struct header {
    uint64_t magic;
    uint64_t hash[2];
    uint64_t bytes;
    uint64_t sum;
};

/* Not cryptographic: two programs by accident, not on purpose. */
static uint64_t mix(uint64_t h, const void *data, size_t bytes)
{
    const unsigned char *p = data;

    for (size_t i = 0; i < bytes; i++) {
        h = (h ^ p[i]) * UINT64_C(0x100000001b3);
        h ^= h >> 29;
    }
    return h;
}

/* The final 0 is hashed too, so that "ab" "c" and "a" "bc" differ. */
static uint64_t hash_key(const struct heddle_opencl_key *key, uint64_t seed)
{
    uint64_t h = mix(seed, key->source, strlen(key->source) + 1);

    h = mix(h, key->options, strlen(key->options) + 1);
    return mix(h, key->device, strlen(key->device) + 1);
}

static void make_header(const struct heddle_opencl_key *key, struct header *h)
{
    memset(h, 0, sizeof(*h));
    h->magic = MAGIC;
    h->hash[0] = hash_key(key, UINT64_C(0xcbf29ce484222325));
    h->hash[1] = hash_key(key, UINT64_C(0x9e3779b97f4a7c15));
}

bool heddle_opencl_cache_path(const char *dir, const struct heddle_opencl_key *key, char *path,
                              size_t cap)
{
    struct heddle_text t;
    struct header h;

    make_header(key, &h);
    heddle_text_init(&t, path, cap);
    heddle_text_add(&t, "%s/opencl/%016llx%016llx.bin", dir, (unsigned long long)h.hash[0],
                    (unsigned long long)h.hash[1]);
    return !t.is_truncated;
}

static bool read_all(int fd, void *to, size_t bytes)
{
    for (char *p = to; bytes > 0;) {
        const ssize_t n = read(fd, p, bytes);

        if (n == 0 || (n < 0 && errno != EINTR))
            return false;
        p += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

static bool write_all(int fd, const void *from, size_t bytes)
{
    for (const char *p = from; bytes > 0;) {
        const ssize_t n = write(fd, p, bytes);

        if (n < 0 && errno != EINTR)
            return false;
        p += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

static heddle_status read_file(const struct heddle_allocator *a, int fd,
                               const struct heddle_opencl_key *key, unsigned char **data_out,
                               size_t *bytes_out)
{
    struct header want, h;
    unsigned char *data;
    struct stat sb;

    make_header(key, &want);
    if (fstat(fd, &sb) != 0 || !S_ISREG(sb.st_mode) || !read_all(fd, &h, sizeof(h)) ||
        h.magic != MAGIC || memcmp(h.hash, want.hash, sizeof(h.hash)) != 0 || h.bytes == 0 ||
        h.bytes > MAX_BYTES || (uint64_t)sb.st_size != sizeof(h) + h.bytes)
        return HEDDLE_ENOENT;
    data = heddle_alloc(a, (size_t)h.bytes);
    if (data == NULL)
        return HEDDLE_ENOMEM;
    if (!read_all(fd, data, (size_t)h.bytes) || mix(h.hash[0], data, (size_t)h.bytes) != h.sum) {
        heddle_free(a, data, (size_t)h.bytes);
        return HEDDLE_ENOENT;
    }
    *data_out = data;
    *bytes_out = (size_t)h.bytes;
    return HEDDLE_OK;
}

heddle_status heddle_opencl_cache_read(const struct heddle_allocator *a, const char *dir,
                                       const struct heddle_opencl_key *key,
                                       unsigned char **data_out, size_t *bytes_out)
{
    char path[PATH_BYTES];
    heddle_status st;
    int fd;

    if (!heddle_opencl_cache_path(dir, key, path, sizeof(path)))
        return HEDDLE_ENOENT;
    /* Without O_NONBLOCK a named pipe would block here. */
    fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return HEDDLE_ENOENT;
    st = read_file(a, fd, key, data_out, bytes_out);
    close(fd);
    return st;
}

/* Makes every folder that the path goes through. */
static void make_folders(char *path)
{
    for (char *p = path + 1; *p != '\0'; p++)
        if (*p == '/') {
            *p = '\0';
            (void)mkdir(path, 0700);
            *p = '/';
        }
}

void heddle_opencl_cache_write(const char *dir, const struct heddle_opencl_key *key,
                               const unsigned char *data, size_t bytes)
{
    char path[PATH_BYTES], own[PATH_BYTES];
    struct heddle_text t;
    struct header h;
    bool is_ok;
    int fd;

    if (bytes == 0 || bytes > MAX_BYTES || !heddle_opencl_cache_path(dir, key, path, sizeof(path)))
        return;
    heddle_text_init(&t, own, sizeof(own));
    heddle_text_add(&t, "%s.XXXXXX", path);
    if (t.is_truncated)
        return;
    make_folders(path);
    fd = mkostemp(own, O_CLOEXEC);
    if (fd < 0)
        return;
    make_header(key, &h);
    h.bytes = bytes;
    h.sum = mix(h.hash[0], data, bytes);
    is_ok = write_all(fd, &h, sizeof(h)) && write_all(fd, data, bytes);
    is_ok = close(fd) == 0 && is_ok;
    if (!is_ok || rename(own, path) != 0)
        (void)unlink(own);
}
