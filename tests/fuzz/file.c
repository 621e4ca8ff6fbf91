/* SPDX-License-Identifier: BSD-3-Clause */
/* file: bytes as a file, without a disk. */
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

const char *fuzz_file(const uint8_t *data, size_t bytes)
{
    static int fd = -1;
    static char path[32];

    if (fd < 0) {
        fd = memfd_create("fuzz", MFD_CLOEXEC);
        FUZZ_CHECK(fd >= 0);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    }
    FUZZ_CHECK(ftruncate(fd, 0) == 0);
    FUZZ_CHECK(pwrite(fd, data, bytes, 0) == (ssize_t)bytes);
    return path;
}
