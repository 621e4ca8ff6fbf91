/* SPDX-License-Identifier: BSD-3-Clause */
/* folder: which folder it is, what disk that is on, and how much room is left there. */
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

#include "base/text.h"
#include "drive/disk/disk.h"

const char *heddle_disk_folder(const struct heddle_drive_env *env)
{
    return env->path != NULL ? env->path : P_tmpdir;
}

uint64_t heddle_disk_left(const char *path)
{
    struct statvfs v;

    if (statvfs(path, &v) != 0)
        return 0;
    return (uint64_t)v.f_bavail * (v.f_frsize != 0 ? v.f_frsize : v.f_bsize);
}

void heddle_disk_model(dev_t dev, char *out, size_t cap)
{
    static const char *const where[] = {"device/model", "../device/model"};
    char path[96], line[48] = "";
    struct heddle_text t;

    for (size_t i = 0; i < 2 && line[0] == '\0'; i++) {
        FILE *f;

        heddle_text_init(&t, path, sizeof(path));
        heddle_text_add(&t, "/sys/dev/block/%u:%u/%s", major(dev), minor(dev), where[i]);
        f = fopen(path, "re");
        if (f == NULL)
            continue;
        if (fgets(line, sizeof(line), f) == NULL)
            line[0] = '\0';
        fclose(f);
        line[strcspn(line, "\n")] = '\0';
        for (size_t n = strlen(line); n > 0 && line[n - 1] == ' '; n--)
            line[n - 1] = '\0';
    }
    heddle_text_init(&t, out, cap);
    if (line[0] != '\0')
        heddle_text_add(&t, "disk:%s", line);
    else
        heddle_text_add(&t, "disk:%u:%u", major(dev), minor(dev));
}
