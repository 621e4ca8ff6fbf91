/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parse: the kernel's text formats.
 *
 * Purpose    pure functions of text, and the few calls that fetch it. No
 *            stdio: it would allocate behind the allocator's back.
 * Errors     files that are missing or odd are normal on some machines; the
 *            callers have a default for each.
 */
#include "topo/parse.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

/* Bytes read, 0 at the end, -1 on failure. */
static ssize_t read_some(int fd, char *buf, size_t n)
{
    ssize_t got;

    do
        got = read(fd, buf, n);
    while (got < 0 && errno == EINTR);
    return got;
}

static heddle_status read_all(int fd, char *buf, size_t cap)
{
    size_t len = 0;

    while (len < cap) {
        const ssize_t got = read_some(fd, buf + len, cap - len);

        if (got < 0)
            return HEDDLE_EIO;
        if (got == 0)
            break;
        len += (size_t)got;
    }
    if (len == cap)
        return HEDDLE_EOVERFLOW;
    if (len > 0 && buf[len - 1] == '\n')
        len--;
    buf[len] = '\0';
    return HEDDLE_OK;
}

heddle_status heddle_topo_read(char *buf, size_t cap, const char *root, const char *fmt, ...)
{
    char path[512];
    struct heddle_text t;
    heddle_status st;
    va_list ap;
    int fd;

    heddle_text_init(&t, path, sizeof(path));
    heddle_text_str(&t, root);
    va_start(ap, fmt);
    heddle_text_vadd(&t, fmt, ap);
    va_end(ap);
    if (t.is_truncated)
        return HEDDLE_EOVERFLOW;
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return HEDDLE_ENOENT;
    st = read_all(fd, buf, cap);
    close(fd);
    return st;
}

heddle_status heddle_topo_lines_open(struct heddle_topo_lines *l, const char *root,
                                     const char *path)
{
    char full[512];
    struct heddle_text t;

    l->begin = 0;
    l->end = 0;
    l->is_open = false;
    l->is_cut = false;
    heddle_text_init(&t, full, sizeof(full));
    heddle_text_str(&t, root);
    heddle_text_str(&t, path);
    if (t.is_truncated)
        return HEDDLE_EOVERFLOW;
    l->fd = open(full, O_RDONLY | O_CLOEXEC);
    if (l->fd < 0)
        return HEDDLE_ENOENT;
    l->is_open = true;
    return HEDDLE_OK;
}

/* Makes room and reads on; false when nothing more came. */
static bool lines_fill(struct heddle_topo_lines *l)
{
    ssize_t got;

    memmove(l->buf, l->buf + l->begin, l->end - l->begin);
    l->end -= l->begin;
    l->begin = 0;
    /* One byte stays free for the zero after a last line without newline. */
    if (l->end + 1 >= sizeof(l->buf))
        return false;
    got = read_some(l->fd, l->buf + l->end, sizeof(l->buf) - 1 - l->end);
    if (got <= 0)
        return false;
    l->end += (size_t)got;
    return true;
}

/* Drops everything up to the next newline. */
static void lines_skip(struct heddle_topo_lines *l)
{
    for (;;) {
        char *nl = memchr(l->buf + l->begin, '\n', l->end - l->begin);

        if (nl != NULL) {
            l->begin = (size_t)(nl - l->buf) + 1;
            return;
        }
        l->begin = l->end;
        if (!lines_fill(l))
            return;
    }
}

char *heddle_topo_lines_next(struct heddle_topo_lines *l)
{
    char *line, *nl;

    if (!l->is_open)
        return NULL;
    if (l->is_cut)
        lines_skip(l);
    l->is_cut = false;
    do {
        line = l->buf + l->begin;
        nl = memchr(line, '\n', l->end - l->begin);
        if (nl != NULL) {
            *nl = '\0';
            l->begin = (size_t)(nl - l->buf) + 1;
            return line;
        }
    } while (lines_fill(l));
    if (l->end == 0)
        return NULL;
    /* The file ended without a newline, or the line fills the buffer. */
    l->is_cut = l->end + 1 == sizeof(l->buf);
    l->buf[l->end] = '\0';
    l->begin = l->end;
    return l->buf;
}

void heddle_topo_lines_close(struct heddle_topo_lines *l)
{
    if (l->is_open)
        close(l->fd);
    l->is_open = false;
}

/* Digits at the front of *s; false when there are none or too many. */
static bool take_int(const char **s, int *out)
{
    int v = 0;

    if (**s < '0' || **s > '9')
        return false;
    for (; **s >= '0' && **s <= '9'; (*s)++) {
        if (v > (INT_MAX - 9) / 10)
            return false;
        v = v * 10 + (**s - '0');
    }
    *out = v;
    return true;
}

bool heddle_topo_list_next(const char **s, int *lo_out, int *hi_out)
{
    const char *p = *s;
    int lo, hi;

    while (*p == ',' || *p == ' ' || *p == '\t')
        p++;
    if (!take_int(&p, &lo))
        return false;
    hi = lo;
    if (*p == '-') {
        p++;
        if (!take_int(&p, &hi) || hi < lo)
            return false;
    }
    if (*p != ',' && *p != '\0' && *p != '\n')
        return false;
    *s = p;
    *lo_out = lo;
    *hi_out = hi;
    return true;
}

bool heddle_topo_list_has(const char *s, int v)
{
    int lo, hi;

    while (heddle_topo_list_next(&s, &lo, &hi)) {
        if (v >= lo && v <= hi)
            return true;
    }
    return false;
}

int heddle_topo_list_first(const char *s)
{
    int lo, hi;

    return heddle_topo_list_next(&s, &lo, &hi) ? lo : -1;
}

unsigned heddle_topo_list_count(const char *s)
{
    unsigned n = 0;
    int lo, hi;

    while (heddle_topo_list_next(&s, &lo, &hi))
        n += (unsigned)(hi - lo) + 1;
    return n;
}

const char *heddle_topo_value(const char *line, const char *key)
{
    const size_t n = strlen(key);

    if (strncmp(line, key, n) != 0)
        return NULL;
    line += n;
    line += strspn(line, " \t");
    if (*line != ':')
        return NULL;
    line++;
    return line + strspn(line, " \t");
}

bool heddle_topo_kib(const char *s, uint64_t *bytes_out)
{
    char digits[24];
    const size_t n = strspn(s, "0123456789");
    uint64_t v;

    if (n == 0 || n >= sizeof(digits) || strcmp(s + n, " kB") != 0)
        return false;
    memcpy(digits, s, n);
    digits[n] = '\0';
    if (heddle_parse_u64(digits, &v) != HEDDLE_OK || v > UINT64_MAX / 1024)
        return false;
    *bytes_out = v * 1024;
    return true;
}

static bool is_octal(char c)
{
    return c >= '0' && c <= '7';
}

void heddle_topo_unescape(char *s)
{
    char *to = s;

    while (*s != '\0') {
        if (s[0] == '\\' && is_octal(s[1]) && is_octal(s[2]) && is_octal(s[3])) {
            *to++ = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + s[3] - '0');
            s += 4;
        } else {
            *to++ = *s++;
        }
    }
    *to = '\0';
}
