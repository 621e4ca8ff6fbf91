/* SPDX-License-Identifier: BSD-3-Clause */
/* host: total and available memory, from the kernel's meminfo. */
#include "drive/host.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* The number of KiB behind `word`, in bytes. */
static uint64_t field(const char *text, const char *word)
{
    const char *s = strstr(text, word);
    uint64_t kib = 0;

    if (s == NULL)
        return 0;
    for (s += strlen(word); *s == ' '; s++)
        ;
    for (; *s >= '0' && *s <= '9'; s++)
        kib = kib * 10 + (uint64_t)(*s - '0');
    return kib << 10;
}

void heddle_host_memory(uint64_t *total_out, uint64_t *free_out)
{
    const int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
    char text[1024]; /* both lines are among the first three */
    ssize_t n = 0;

    if (fd >= 0) {
        n = read(fd, text, sizeof(text) - 1);
        close(fd);
    }
    text[n > 0 ? n : 0] = '\0';
    *total_out = field(text, "MemTotal:");
    *free_out = field(text, "MemAvailable:");
}
