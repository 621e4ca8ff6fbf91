/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace/view/html: one page with everything in it.
 *
 * Purpose    tools/view/index.html with its style, its modules and the data in
 *            the place of the elements that refer to them. The result needs no
 *            other file and no network.
 * Bundle     the modules of files.txt, in that order, become one: lines that
 *            import are dropped, `export` at the start of a line too.
 * Data       each array is base64 of raw deflate (docs/formats/view.md).
 */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "trace/view/view.h"

/* --- base64 --------------------------------------------------------------- */

struct base64 {
    FILE *f;
    uint8_t rest[3];
    size_t nrest;
    char out[65536];
};

static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static inline void encode3(const uint8_t *p, char *q)
{
    const uint32_t v = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];

    q[0] = digit[v >> 18];
    q[1] = digit[v >> 12 & 63];
    q[2] = digit[v >> 6 & 63];
    q[3] = digit[v & 63];
}

/* A view_sink. */
static bool base64_put(void *user, const uint8_t *p, size_t n)
{
    struct base64 *e = user;
    size_t k = 0;

    while (n > 0) {
        if (e->nrest > 0 || n < 3) {
            e->rest[e->nrest++] = *p++;
            n--;
            if (e->nrest < 3)
                continue;
            encode3(e->rest, e->out + k);
            e->nrest = 0;
        } else {
            encode3(p, e->out + k);
            p += 3;
            n -= 3;
        }
        k += 4;
        if (k == sizeof e->out) {
            if (fwrite(e->out, 1, k, e->f) != k)
                return false;
            k = 0;
        }
    }
    return fwrite(e->out, 1, k, e->f) == k;
}

static bool base64_end(struct base64 *e)
{
    char out[4];
    const size_t n = e->nrest;

    if (n == 0)
        return true;
    while (e->nrest < 3)
        e->rest[e->nrest++] = 0;
    encode3(e->rest, out);
    if (n == 1)
        out[2] = '=';
    out[3] = '=';
    e->nrest = 0;
    return fwrite(out, 1, 4, e->f) == 4;
}

/* --- data ----------------------------------------------------------------- */

enum { PIECE = 32768 };

static bool put_planes(struct view_deflate *z, const struct view_array *x)
{
    const size_t size = view_type_bytes(x->type);
    const uint8_t *data = x->data;
    uint8_t piece[PIECE];

    for (size_t plane = 0; plane < size; plane++)
        for (size_t i = 0; i < x->n;) {
            size_t k = 0;

            for (; k < PIECE && i < x->n; i++)
                piece[k++] = data[i * size + plane];
            if (!view_deflate_put(z, piece, k))
                return false;
        }
    return true;
}

static bool put_dplanes(struct view_deflate *z, const struct view_array *x)
{
    const uint32_t *v = x->data;
    uint8_t piece[PIECE];

    for (unsigned shift = 0; shift < 32; shift += 8) {
        uint32_t last = 0;

        for (size_t i = 0; i < x->n;) {
            size_t k = 0;

            for (; k < PIECE && i < x->n; i++) {
                const uint32_t d = v[i] - last;

                last = v[i];
                piece[k++] = (uint8_t)((d << 1 ^ (0u - (d >> 31))) >> shift);
            }
            if (!view_deflate_put(z, piece, k))
                return false;
        }
    }
    return true;
}

static bool put_array(struct view_deflate *z, const struct view_pack *p, const struct view_array *x)
{
    switch (view_array_coding(p, x)) {
    case VIEW_PLANES: return put_planes(z, x);
    case VIEW_DPLANES: return put_dplanes(z, x);
    case VIEW_RAW: break;
    }
    return view_deflate_put(z, x->data, view_array_bytes(x));
}

static heddle_status put_pack(FILE *f, const struct view_pack *p, unsigned no)
{
    struct base64 *e = heddle_zalloc(p->a, 1, sizeof *e);
    struct view_deflate *z = NULL;
    bool is_ok = true;

    if (e == NULL || view_deflate_create(p->a, base64_put, e, &z) != HEDDLE_OK) {
        heddle_free(p->a, e, sizeof *e);
        return HEDDLE_ENOMEM;
    }
    e->f = f;
    fprintf(f, "<script type=\"application/json\" data-pack=\"%u\">%s</script>\n", no, p->dir);
    for (size_t i = 0; i < p->narrays && is_ok; i++) {
        fprintf(f,
                "<script type=\"application/x-heddle\" data-pack=\"%u\" "
                "data-array=\"%s\">",
                no, p->array[i].name);
        is_ok = put_array(z, p, &p->array[i]) && view_deflate_end(z) && base64_end(e) &&
                fputs("</script>\n", f) != EOF;
    }
    view_deflate_destroy(z);
    heddle_free(p->a, e, sizeof *e);
    return is_ok && !ferror(f) ? HEDDLE_OK : HEDDLE_EIO;
}

/* --- the page ------------------------------------------------------------- */

static const struct view_file *find_file(const char *name, size_t n)
{
    for (const struct view_file *x = view_files; x->name != NULL; x++)
        if (strlen(x->name) == n && memcmp(x->name, name, n) == 0)
            return x;
    return NULL;
}

/* The line at *p, with its newline; moves on. Its length; 0: the end. */
static size_t next_line(const char **p, const char *end, const char **line)
{
    const char *nl = *p < end ? memchr(*p, '\n', (size_t)(end - *p)) : NULL;
    const char *next = nl != NULL ? nl + 1 : end;

    *line = *p;
    *p = next;
    return (size_t)(next - *line);
}

static bool begins(const char *s, size_t n, const char *with)
{
    const size_t k = strlen(with);

    return n >= k && memcmp(s, with, k) == 0;
}

/* One module, as part of a larger one. */
static void put_module(FILE *f, const struct view_file *x)
{
    const char *p = (const char *)x->data, *end = p + x->size, *line;
    bool is_import = false;
    size_t n;

    while ((n = next_line(&p, end, &line)) > 0) {
        is_import = is_import || begins(line, n, "import ");
        if (is_import) {
            is_import = memchr(line, ';', n) == NULL;
            continue;
        }
        if (begins(line, n, "export ")) {
            line += 7;
            n -= 7;
        }
        fwrite(line, 1, n, f);
    }
}

/* The files that files.txt lists, one per line; '#' begins a comment. */
static void put_modules(FILE *f)
{
    const struct view_file *list = find_file("files.txt", 9), *x;
    const char *p, *end, *line;
    size_t n;

    fputs("<script type=\"module\">\n", f);
    p = list == NULL ? NULL : (const char *)list->data;
    end = list == NULL ? NULL : p + list->size;
    while (p != NULL && (n = next_line(&p, end, &line)) > 0) {
        while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == ' '))
            n--;
        x = n > 0 && line[0] != '#' ? find_file(line, n) : NULL;
        if (x != NULL)
            put_module(f, x);
    }
    fputs("</script>\n", f);
}

static void put_style(FILE *f, const char *line, size_t n)
{
    const char *name = memmem(line, n, "href=\"", 6), *end;
    const struct view_file *x = NULL;

    if (name != NULL) {
        name += 6;
        end = memchr(name, '"', n - (size_t)(name - line));
        x = end != NULL ? find_file(name, (size_t)(end - name)) : NULL;
    }
    fputs("<style>\n", f);
    if (x != NULL)
        fwrite(x->data, 1, x->size, f);
    fputs("</style>\n", f);
}

static void put_escaped(FILE *f, const char *s)
{
    for (; *s != '\0'; s++)
        switch (*s) {
        case '<': fputs("&lt;", f); break;
        case '>': fputs("&gt;", f); break;
        case '&': fputs("&amp;", f); break;
        case '"': fputs("&quot;", f); break;
        default: fputc((unsigned char)*s < 0x20 ? ' ' : *s, f);
        }
}

heddle_status view_page_write(FILE *f, const char *title, struct view_pack *const *packs,
                              unsigned n)
{
    const struct view_file *page = find_file("index.html", 10);
    const char *p = (const char *)page->data, *end = p + page->size, *line;
    heddle_status st = HEDDLE_OK;
    size_t len;

    while (st == HEDDLE_OK && (len = next_line(&p, end, &line)) > 0) {
        if (memmem(line, len, "<title>", 7) != NULL) {
            fputs("<title>", f);
            put_escaped(f, title);
            fputs("</title>\n", f);
        } else if (memmem(line, len, "rel=\"stylesheet\"", 16) != NULL) {
            put_style(f, line, len);
        } else if (memmem(line, len, "<script type=\"module\"", 21) != NULL) {
            put_modules(f);
        } else if (memmem(line, len, "<!-- packs -->", 14) != NULL) {
            for (unsigned i = 0; i < n && st == HEDDLE_OK; i++)
                st = put_pack(f, packs[i], i);
        } else {
            fwrite(line, 1, len, f);
        }
    }
    if (st == HEDDLE_OK && ferror(f))
        st = HEDDLE_EIO;
    return st;
}
