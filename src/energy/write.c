/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes the file of an energy model, docs/formats/energy.md: to a file beside
 * it, which takes its place when it is complete.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "base/why.h"
#include "heddle/energy.h"

#define MAGIC      "heddle-energy"
#define PATH_BYTES 4096
#define GIGA       1e9

struct writer {
    FILE *f;
    bool has_failed;
};

static void put(struct writer *w, const char *s)
{
    const size_t n = strlen(s);

    if (fwrite(s, 1, n, w->f) != n)
        w->has_failed = true;
}

static bool needs_quotes(const char *s)
{
    for (size_t i = 0; s[i] != '\0'; i++)
        if ((unsigned char)s[i] <= 32 || s[i] == 127 || s[i] == '"' || s[i] == '\\' || s[i] == '#')
            return true;
    return false;
}

/* " NAME" */
static void put_name(struct writer *w, const char *s)
{
    char buf[4 * HEDDLE_ENERGY_NAME_MAX + 8];
    struct heddle_text t;

    put(w, " ");
    if (!needs_quotes(s)) {
        put(w, s);
        return;
    }
    heddle_text_init(&t, buf, sizeof(buf));
    heddle_text_str(&t, "\"");
    for (size_t i = 0; s[i] != '\0'; i++) {
        const unsigned char c = (unsigned char)s[i];

        if (c < 32 || c == 127)
            heddle_text_add(&t, "\\x%02x", (unsigned)c);
        else if (c == '"' || c == '\\')
            heddle_text_add(&t, "\\%c", c);
        else
            heddle_text_mem(&t, &s[i], 1);
    }
    heddle_text_str(&t, "\"");
    put(w, buf);
}

static void put_number(struct writer *w, const char *key, double v)
{
    char buf[64];
    struct heddle_text t;

    heddle_text_init(&t, buf, sizeof(buf));
    heddle_text_double(&t, v);
    put(w, key);
    put(w, buf);
}

static void put_whole(struct writer *w, const char *key, uint64_t v)
{
    char buf[64];
    struct heddle_text t;

    heddle_text_init(&t, buf, sizeof(buf));
    heddle_text_add(&t, "%llu", (unsigned long long)v);
    put(w, key);
    put(w, buf);
}

static void put_range(struct writer *w, double low, double high)
{
    if (low == 0 && high == 0)
        return;
    put_number(w, " low ", low);
    put_number(w, " high ", high);
}

static void put_rows(struct writer *w, const heddle_energy *e)
{
    struct heddle_energy_domain d = {.size = sizeof(d)};
    struct heddle_energy_active a = {.size = sizeof(a)};
    struct heddle_energy_cap c = {.size = sizeof(c)};

    for (size_t i = 0; heddle_energy_get_domain(e, i, &d) == HEDDLE_OK; i++) {
        put(w, "domain");
        put_name(w, d.name);
        put_number(w, " idle_watts ", d.idle_watts);
        if (d.device[0] != '\0') {
            put(w, " device");
            put_name(w, d.device);
        }
        put_range(w, d.low, d.high);
        put(w, "\n");
    }
    for (size_t i = 0; heddle_energy_get_active(e, i, &a) == HEDDLE_OK; i++) {
        put(w, "active");
        put_name(w, a.kernel);
        put_name(w, a.device);
        put_number(w, " watts ", a.watts);
        if (a.variant[0] != '\0') {
            put(w, " variant");
            put_name(w, a.variant);
        }
        if (a.bytes > 0)
            put_whole(w, " bytes ", a.bytes);
        put_range(w, a.low, a.high);
        if (a.group > 0)
            put_whole(w, " group ", a.group);
        if (a.count > 0)
            put_whole(w, " count ", a.count);
        put(w, "\n");
    }
    for (size_t i = 0; heddle_energy_get_cap(e, i, &c) == HEDDLE_OK; i++) {
        put(w, "cap");
        put_name(w, c.device);
        put_name(w, c.name);
        put_number(w, " time ", c.time_factor);
        put_number(w, " watts ", c.watts_factor);
        put(w, "\n");
    }
    if (heddle_energy_get_move(e) > 0) {
        put_number(w, "move joules_per_gb ", heddle_energy_get_move(e) * GIGA);
        put(w, "\n");
    }
}

/* What new files are allowed, as mkstemp() allows less. */
static mode_t new_mode(const char *path)
{
    struct stat s;

    return stat(path, &s) == 0 ? s.st_mode & 0777 : 0644;
}

heddle_status heddle_energy_write(const heddle_energy *e, const char *path, char *why,
                                  size_t why_bytes)
{
    char own[PATH_BYTES + 8], real[PATH_BYTES];
    struct heddle_text t;
    struct writer w = {0};
    int fd;

    if (e == NULL || path == NULL || path[0] == '\0')
        return heddle_why(why, why_bytes, HEDDLE_EINVAL, "a model and a file name are needed");
    if (realpath(path, real) != NULL) /* a link to a file stays one */
        path = real;
    heddle_text_init(&t, own, sizeof(own));
    heddle_text_add(&t, "%s.XXXXXX", path);
    if (t.is_truncated)
        return heddle_why(why, why_bytes, HEDDLE_EIO, "%.100s...: the name is too long", path);
    fd = mkostemp(own, O_CLOEXEC);
    if (fd >= 0)
        w.f = fdopen(fd, "w");
    if (w.f == NULL) {
        const int error = errno;

        if (fd >= 0) {
            (void)close(fd);
            (void)unlink(own);
        }
        return heddle_why(why, why_bytes, HEDDLE_EIO, "%s cannot be written: %s", path,
                          heddle_why_errno(error));
    }
    put(&w, MAGIC " 1\n");
    put_rows(&w, e);
    (void)fchmod(fd, new_mode(path));
    if (fclose(w.f) != 0)
        w.has_failed = true;
    if (!w.has_failed && rename(own, path) == 0)
        return HEDDLE_OK;
    (void)unlink(own);
    return heddle_why(why, why_bytes, HEDDLE_EIO, "%s cannot be written", path);
}
