/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perf: the same counters of processors as events of the kernel's power PMU, for
 * users who may read those and not the files.
 *
 * How        bus/event_source/devices/power says what to ask for: its type, the
 *            CPUs that answer (one per package), and for each event its number and
 *            how many joules one count is. Counts have 64 bits and do not wrap.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/number.h"
#include "base/text.h"
#include "meter/meter.h"

enum { PATH_BYTES = 512, MAX_PACKAGES = 64, MAX_CPU = 1 << 20 };

#define PMU "bus/event_source/devices/power"

struct perf {
    struct {
        int fd;
        double uj; /* of one count */
    } counter[HEDDLE_METER_MOST];
    size_t n;
};

/* What is looked for, and what it is called here. */
static const struct {
    const char *event, *name;
} wanted[] = {{"energy-pkg", "package"}, {"energy-ram", "dram"}};

struct event {
    uint32_t type;
    uint64_t config;
    double uj;
};

/* --- what the kernel says --------------------------------------------------- */

static const char *sysfs_of(const struct heddle_meter_env *env)
{
    return env->sysfs != NULL ? env->sysfs : "/sys";
}

HEDDLE_PRINTF(4, 5)
static heddle_status read_line(const struct heddle_meter_env *env, char *out, size_t cap,
                               const char *fmt, ...)
{
    char path[PATH_BYTES];
    struct heddle_text t;
    va_list ap;

    heddle_text_init(&t, path, sizeof(path));
    heddle_text_add(&t, "%s/", sysfs_of(env));
    va_start(ap, fmt);
    heddle_text_vadd(&t, fmt, ap);
    va_end(ap);
    return t.is_truncated ? HEDDLE_ENOENT : heddle_small_read(path, out, cap);
}

/* Hexadecimal digits behind "0x", 8 of them at most. NULL: none. */
static const char *scan_hex(const char *s, uint64_t *out)
{
    uint64_t v = 0;
    unsigned n = 0;

    if (s[0] != '0' || s[1] != 'x')
        return NULL;
    for (s += 2; n < 9; s++, n++) {
        if (*s >= '0' && *s <= '9')
            v = 16 * v + (uint64_t)(*s - '0');
        else if (*s >= 'a' && *s <= 'f')
            v = 16 * v + (uint64_t)(*s - 'a') + 10;
        else
            break;
    }
    *out = v;
    return n > 0 && n < 9 ? s : NULL;
}

/* "event=0x02": bits 0 to 7 of the number, or all of it as this PMU has no more. */
static bool event_config(const char *text, uint64_t *out)
{
    static const char key[] = "event=";
    const char *end = NULL;

    if (strncmp(text, key, sizeof(key) - 1) == 0)
        end = scan_hex(text + sizeof(key) - 1, out);
    return end != NULL && *end == '\0';
}

/* False: the PMU has no such event, or what it says makes no sense. */
static bool event_find(const struct heddle_meter_env *env, const char *name, struct event *e,
                       char *why)
{
    char text[64];
    double joules;

    if (read_line(env, text, sizeof(text), PMU "/events/%s", name) != HEDDLE_OK)
        return false;
    if (!event_config(text, &e->config)) {
        heddle_meter_say(why, "the event %s is \"%.40s\", which is not understood", name, text);
        return false;
    }
    if (read_line(env, text, sizeof(text), PMU "/events/%s.scale", name) != HEDDLE_OK ||
        !heddle_number_finite(text, &joules) || !(joules > 0) || joules > 1) {
        heddle_meter_say(why, "the event %s does not say what one count is", name);
        return false;
    }
    e->uj = joules * 1e6;
    return true;
}

/* "0,24" or "0-1": the CPUs that answer. */
static size_t cpus_parse(const char *s, int cpu[MAX_PACKAGES])
{
    uint64_t first, last;
    size_t n = 0;

    while (*s != '\0') {
        for (first = 0; *s >= '0' && *s <= '9' && first < MAX_CPU; s++)
            first = 10 * first + (uint64_t)(*s - '0');
        last = first;
        if (*s == '-')
            for (last = 0, s++; *s >= '0' && *s <= '9' && last < MAX_CPU; s++)
                last = 10 * last + (uint64_t)(*s - '0');
        if ((*s != ',' && *s != '\0') || last < first || last >= MAX_CPU)
            return 0;
        for (; first <= last && n < MAX_PACKAGES; first++)
            cpu[n++] = (int)first;
        s += *s == ',';
    }
    return n;
}

/* --- opening ----------------------------------------------------------------- */

static int perf_call(const struct heddle_meter_env *env, struct perf_event_attr *attr, int cpu)
{
    if (env->perf_open != NULL)
        return env->perf_open(env->perf_user, attr, cpu);
    return (int)syscall(SYS_perf_event_open, attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static void refused(const char *event, int err, char *why)
{
    char words[128];

    if (err == EACCES || err == EPERM)
        heddle_meter_say(why,
                         "the event %s is refused: kernel.perf_event_paranoid above 0 "
                         "leaves it to root",
                         event);
    else
        heddle_meter_say(why, "the event %s cannot be opened: %s", event,
                         strerror_r(err, words, sizeof(words)));
}

static void package_name(const struct heddle_meter_env *env, const char *kind, int cpu, size_t i,
                         char name[HEDDLE_METER_NAME])
{
    struct heddle_text t;
    char text[32];
    uint64_t v;

    if (read_line(env, text, sizeof(text), "devices/system/cpu/cpu%d/topology/physical_package_id",
                  cpu) != HEDDLE_OK ||
        heddle_parse_u64(text, &v) != HEDDLE_OK || v > MAX_CPU)
        v = i;
    heddle_text_init(&t, name, HEDDLE_METER_NAME);
    heddle_text_add(&t, "%s-%llu", kind, (unsigned long long)v);
}

static heddle_status perf_open(void *self, const struct heddle_meter_env *env,
                               struct heddle_meter_found *found, size_t cap, size_t *n_out,
                               char *why)
{
    struct perf *p = self;
    int cpu[MAX_PACKAGES];
    char text[256];
    uint64_t type = 0;
    size_t ncpus;

    if (read_line(env, text, sizeof(text), PMU "/type") != HEDDLE_OK ||
        heddle_parse_u64(text, &type) != HEDDLE_OK || type > UINT32_MAX) {
        heddle_meter_say(why, "%.150s/" PMU " is not there", sysfs_of(env));
        return HEDDLE_OK;
    }
    ncpus =
        read_line(env, text, sizeof(text), PMU "/cpumask") == HEDDLE_OK ? cpus_parse(text, cpu) : 0;
    if (ncpus == 0)
        heddle_meter_say(why, "the power PMU does not say which CPUs answer");
    for (size_t w = 0; w < sizeof(wanted) / sizeof(wanted[0]); w++) {
        struct event e;

        if (!event_find(env, wanted[w].event, &e, why))
            continue;
        for (size_t i = 0; i < ncpus && p->n < cap; i++) {
            struct perf_event_attr attr = {
                .type = (uint32_t)type, .size = sizeof(attr), .config = e.config};
            const int fd = perf_call(env, &attr, cpu[i]);

            if (fd < 0) {
                refused(wanted[w].event, errno, why);
                continue;
            }
            p->counter[p->n].fd = fd;
            p->counter[p->n].uj = e.uj;
            found[p->n] = (struct heddle_meter_found){.device = "cpu"};
            package_name(env, wanted[w].name, cpu[i], i, found[p->n].name);
            p->n++;
        }
    }
    if (p->n == 0)
        heddle_meter_say(why, "the power PMU has no event for a package");
    *n_out = p->n;
    return HEDDLE_OK;
}

static heddle_status perf_read(void *self, size_t i, uint64_t *uj_out, char *why)
{
    const struct perf *p = self;
    uint64_t count = 0;
    ssize_t n;
    double uj;

    do
        n = read(p->counter[i].fd, &count, sizeof(count));
    while (n < 0 && errno == EINTR);
    uj = (double)count * p->counter[i].uj;
    /* 2^63: what is above would take a machine thousands of years. */
    if (n != (ssize_t)sizeof(count) || !(uj < 9.2e18)) {
        snprintf(why, HEDDLE_METER_WHY, "the event gives no count");
        return HEDDLE_EIO;
    }
    *uj_out = (uint64_t)uj;
    return HEDDLE_OK;
}

static void perf_close(void *self)
{
    struct perf *p = self;

    for (size_t i = 0; i < p->n; i++)
        close(p->counter[i].fd);
}

const struct heddle_meter_ops heddle_meter_perf = {
    .name = "perf",
    .help = "the same, as events of the power PMU",
    .period_ns = 10000000,
    .instance_size = sizeof(struct perf),
    .open = perf_open,
    .read = perf_read,
    .close = perf_close,
};
