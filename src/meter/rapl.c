/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rapl: counters of processors, as the kernel's powercap shows them in files.
 *
 * How        class/powercap has a folder per zone, intel-rapl:0, and one per part
 *            of a zone, intel-rapl:0:2 (AMD's have the same names). Packages and
 *            their memory are taken. The other parts (cores, graphics) are in the
 *            package's counter already, and psys contains the packages. The same
 *            package may appear again as intel-rapl-mmio:0.
 * Errors     files that only root may read are the rule, not the exception: the
 *            sentence says so.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/text.h"
#include "meter/meter.h"

enum { MAX_ZONES = 1024, MAX_INDEX = 100000, PATH_BYTES = 512, NONE = -1 };

struct rapl {
    int fd[HEDDLE_METER_MOST];
    size_t n;
};

struct zone {
    bool is_mmio;
    int index;
    int part; /* NONE: the zone itself */
};

/* --- zones ---------------------------------------------------------------- */

/* Digits, MAX_INDEX at most. NULL: there is no such number. */
static const char *scan_index(const char *s, int *out)
{
    int v = 0;

    if (*s < '0' || *s > '9')
        return NULL;
    for (; *s >= '0' && *s <= '9'; s++) {
        v = 10 * v + (*s - '0');
        if (v > MAX_INDEX)
            return NULL;
    }
    *out = v;
    return s;
}

static bool zone_parse(const char *name, struct zone *z)
{
    static const char plain[] = "intel-rapl:", mmio[] = "intel-rapl-mmio:";
    const char *s = NULL;

    *z = (struct zone){.part = NONE};
    if (strncmp(name, plain, sizeof(plain) - 1) == 0)
        s = name + sizeof(plain) - 1;
    else if (strncmp(name, mmio, sizeof(mmio) - 1) == 0)
        s = name + sizeof(mmio) - 1;
    z->is_mmio = name[sizeof("intel-rapl") - 1] == '-';
    s = s == NULL ? NULL : scan_index(s, &z->index);
    if (s != NULL && *s == ':')
        s = scan_index(s + 1, &z->part);
    return s != NULL && *s == '\0';
}

static bool zone_before(const struct zone *a, const struct zone *b)
{
    if (a->is_mmio != b->is_mmio)
        return b->is_mmio;
    if (a->index != b->index)
        return a->index < b->index;
    return a->part < b->part;
}

/* Sorted, so that the numbers of domains do not depend on the folder. */
static size_t zones_list(DIR *d, struct zone *zone)
{
    const struct dirent *e;
    size_t n = 0, i;
    struct zone z;

    while (n < MAX_ZONES && (e = readdir(d)) != NULL) {
        if (!zone_parse(e->d_name, &z))
            continue;
        for (i = n++; i > 0 && zone_before(&z, &zone[i - 1]); i--)
            zone[i] = zone[i - 1];
        zone[i] = z;
    }
    return n;
}

static bool zone_path(const char *root, const struct zone *z, const char *file,
                      char path[PATH_BYTES])
{
    struct heddle_text t;

    heddle_text_init(&t, path, PATH_BYTES);
    heddle_text_add(&t, "%s/intel-rapl%s:%d", root, z->is_mmio ? "-mmio" : "", z->index);
    if (z->part != NONE)
        heddle_text_add(&t, ":%d", z->part);
    heddle_text_add(&t, "/%s", file);
    return !t.is_truncated;
}

/* --- domains --------------------------------------------------------------- */

/* Letters, digits and a few signs: a name is a word in the log. */
static bool is_word(const char *s)
{
    static const char signs[] = "-_.";

    for (; *s != '\0'; s++)
        if (!(*s >= 'a' && *s <= 'z') && !(*s >= 'A' && *s <= 'Z') && !(*s >= '0' && *s <= '9') &&
            strchr(signs, *s) == NULL)
            return false;
    return true;
}

/* "package-0", or "dram-0" of it. False: nothing that is wanted. */
static bool zone_name(const char *root, const struct zone *z, char name[HEDDLE_METER_NAME])
{
    static const char package[] = "package-";
    const struct zone top = {z->is_mmio, z->index, NONE};
    char path[PATH_BYTES], text[HEDDLE_METER_NAME];
    struct heddle_text t;

    if (!zone_path(root, &top, "name", path) ||
        heddle_small_read(path, text, sizeof(text)) != HEDDLE_OK ||
        strncmp(text, package, sizeof(package) - 1) != 0 || !is_word(text))
        return false;
    heddle_text_init(&t, name, HEDDLE_METER_NAME);
    if (z->part == NONE) {
        heddle_text_str(&t, text);
        return !t.is_truncated;
    }
    heddle_text_add(&t, "dram-%s", text + sizeof(package) - 1);
    return !t.is_truncated && zone_path(root, z, "name", path) &&
           heddle_small_read(path, text, sizeof(text)) == HEDDLE_OK && strcmp(text, "dram") == 0;
}

static heddle_status rapl_value(int fd, uint64_t *out, char *why)
{
    char text[32], words[128];
    struct heddle_text t;
    heddle_status st = heddle_small_pread(fd, text, sizeof(text));

    if (st == HEDDLE_OK)
        st = heddle_parse_u64(text, out);
    if (st == HEDDLE_OK)
        return HEDDLE_OK;
    heddle_text_init(&t, why, HEDDLE_METER_WHY);
    if (st == HEDDLE_EIO)
        heddle_text_add(&t, "the counter cannot be read: %s",
                        strerror_r(errno, words, sizeof(words)));
    else
        heddle_text_str(&t, "the file of the counter holds no number");
    return HEDDLE_EIO;
}

/* Opens and tries it. */
static int zone_open(const char *root, const struct zone *z, char *why)
{
    char path[PATH_BYTES], words[128], problem[HEDDLE_METER_WHY] = "";
    uint64_t v;
    int fd;

    if (!zone_path(root, z, "energy_uj", path))
        return -1;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == EACCES)
        heddle_meter_say(why, "%.160s may be read by root only", path);
    else if (fd < 0)
        heddle_meter_say(why, "%.160s: %s", path, strerror_r(errno, words, sizeof(words)));
    else if (rapl_value(fd, &v, problem) != HEDDLE_OK) {
        heddle_meter_say(why, "%.140s: %s", path, problem);
        close(fd);
        fd = -1;
    }
    return fd;
}

static void zone_take(struct rapl *r, const char *root, const struct zone *z,
                      struct heddle_meter_found *found, char *why)
{
    struct heddle_meter_found *f = &found[r->n];
    char path[PATH_BYTES], name[HEDDLE_METER_NAME];
    int fd;

    if (!zone_name(root, z, name))
        return;
    for (size_t i = 0; i < r->n; i++)
        if (strcmp(found[i].name, name) == 0)
            return;
    fd = zone_open(root, z, why);
    if (fd < 0)
        return;
    r->fd[r->n++] = fd;
    *f = (struct heddle_meter_found){.device = "cpu"};
    memcpy(f->name, name, sizeof(name));
    /* Without a range, a counter that goes back is not followed. */
    if (!zone_path(root, z, "max_energy_range_uj", path) ||
        heddle_small_number(path, &f->range_uj) != HEDDLE_OK)
        f->range_uj = 0;
}

/* --- the plug-in ------------------------------------------------------------ */

static heddle_status rapl_open(void *self, const struct heddle_meter_env *env,
                               struct heddle_meter_found *found, size_t cap, size_t *n_out,
                               char *why)
{
    struct rapl *r = self;
    char root[PATH_BYTES];
    struct heddle_text t;
    struct zone *zone;
    size_t n;
    DIR *d;

    heddle_text_init(&t, root, sizeof(root));
    heddle_text_add(&t, "%s/class/powercap", env->sysfs != NULL ? env->sysfs : "/sys");
    d = opendir(root);
    if (d == NULL) {
        heddle_meter_say(why, "%.200s is not there", root);
        return HEDDLE_OK;
    }
    zone = heddle_zalloc(env->alloc, MAX_ZONES, sizeof(*zone));
    if (zone == NULL) {
        closedir(d);
        return HEDDLE_ENOMEM;
    }
    n = zones_list(d, zone);
    closedir(d);
    for (size_t i = 0; i < n && r->n < cap && r->n < HEDDLE_METER_MOST; i++)
        zone_take(r, root, &zone[i], found, why);
    heddle_free(env->alloc, zone, MAX_ZONES * sizeof(*zone));
    if (r->n == 0)
        heddle_meter_say(why, "%.200s has no processor package", root);
    *n_out = r->n;
    return HEDDLE_OK;
}

static heddle_status rapl_read(void *self, size_t i, uint64_t *uj_out, char *why)
{
    const struct rapl *r = self;

    return rapl_value(r->fd[i], uj_out, why);
}

static void rapl_close(void *self)
{
    struct rapl *r = self;

    for (size_t i = 0; i < r->n; i++)
        close(r->fd[i]);
}

const struct heddle_meter_ops heddle_meter_rapl = {
    .name = "rapl",
    .help = "processor packages and memory, files of powercap",
    .period_ns = 10000000,
    .instance_size = sizeof(struct rapl),
    .open = rapl_open,
    .read = rapl_read,
    .close = rapl_close,
};
