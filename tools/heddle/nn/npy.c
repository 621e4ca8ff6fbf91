/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * npy: NumPy's file format, versions 1 to 3: a magic, the length of a header, the header as a
 * Python dictionary of three keys, the elements. Little-endian and C order only.
 */
#include "nn/npy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NPY_HEADER = 4096 };

static const struct {
    const char *descr;
    int type;
} npy_types[] = {
    {"<f4", HEDDLE_NN_F32}, {"<f8", HEDDLE_NN_F64}, {"<f2", HEDDLE_NN_F16}, {"|u1", HEDDLE_NN_U8},
    {"|i1", HEDDLE_NN_I8},  {"<u2", HEDDLE_NN_U16}, {"<i2", HEDDLE_NN_I16}, {"<i4", HEDDLE_NN_I32},
    {"<i8", HEDDLE_NN_I64}, {"<u4", HEDDLE_NN_U32}, {"<u8", HEDDLE_NN_U64}, {"|b1", HEDDLE_NN_BOOL},
};

enum { NPY_TYPES = sizeof(npy_types) / sizeof(npy_types[0]) };

/* The text behind a key of the header; NULL: it is not there. */
static const char *npy_key(const char *header, const char *key)
{
    const char *p = strstr(header, key);

    p = p == NULL ? NULL : strchr(p, ':');
    return p == NULL ? NULL : p + 1 + strspn(p + 1, " ");
}

static const char *npy_shape(const char *p, struct heddle_nn_tensor *t)
{
    if (p == NULL || *p != '(')
        return "its header has no shape";
    p++;
    for (t->ndim = 0;;) {
        char *end;

        p += strspn(p, " ,");
        if (*p == ')')
            return NULL;
        if (*p < '0' || *p > '9' || t->ndim == HEDDLE_NN_DIMS)
            return "its shape cannot be read, or has too many dimensions";
        errno = 0;
        t->dim[t->ndim++] = strtoll(p, &end, 10);
        if (errno != 0)
            return "a dimension is too large";
        p = end;
    }
}

static const char *npy_header(const char *header, struct heddle_nn_tensor *t)
{
    const char *descr = npy_key(header, "'descr'"), *order = npy_key(header, "'fortran_order'");
    const char *what;

    t->type = 0;
    for (unsigned i = 0; descr != NULL && i < NPY_TYPES; i++)
        if (strncmp(descr + 1, npy_types[i].descr, 3) == 0)
            t->type = npy_types[i].type;
    if (t->type == 0)
        return "its type is none that a network takes, or not little-endian";
    if (order == NULL || strncmp(order, "False", 5) != 0)
        return "its order is Fortran's; save numpy.ascontiguousarray() of it";
    what = npy_shape(npy_key(header, "'shape'"), t);
    if (what != NULL)
        return what;
    t->bytes = heddle_nn_type_size(t->type);
    for (unsigned d = 0; d < t->ndim; d++)
        if (__builtin_mul_overflow(t->bytes, (size_t)t->dim[d], &t->bytes))
            return "its size overflows";
    return NULL;
}

static const char *npy_open(FILE *f, struct heddle_nn_tensor *t)
{
    unsigned char head[12];
    char header[NPY_HEADER];
    size_t len, more;
    const char *what;

    if (fread(head, 1, 8, f) != 8 || memcmp(head, "\x93NUMPY", 6) != 0 || head[6] < 1 ||
        head[6] > 3)
        return "it is no .npy file";
    more = head[6] == 1 ? 2 : 4;
    if (fread(head + 8, 1, more, f) != more)
        return "it ends in its header";
    len = (size_t)head[8] | (size_t)head[9] << 8;
    if (more == 4)
        len |= (size_t)head[10] << 16 | (size_t)head[11] << 24;
    if (len >= sizeof(header) || fread(header, 1, len, f) != len)
        return "it ends in its header";
    header[len] = '\0';
    what = npy_header(header, t);
    if (what != NULL)
        return what;
    t->data = malloc(t->bytes > 0 ? t->bytes : 1);
    if (t->data == NULL)
        return "there is no memory for it";
    return fread(t->data, 1, t->bytes, f) == t->bytes ? NULL : "it ends before its last element";
}

bool npy_read(const char *path, struct heddle_nn_tensor *t, const char **what_out)
{
    FILE *f = fopen(path, "rb");

    memset(t, 0, sizeof(*t));
    *what_out = f == NULL ? strerror(errno) : npy_open(f, t);
    if (f != NULL)
        (void)fclose(f);
    if (*what_out != NULL)
        npy_free(t);
    return *what_out == NULL;
}

bool npy_write(const char *path, const struct heddle_nn_tensor *t)
{
    const char *descr = "<u2";
    char dict[512], head[10] = "\x93NUMPY\x01";
    int len;
    FILE *f;
    bool ok;

    for (unsigned i = 0; i < NPY_TYPES; i++)
        if (npy_types[i].type == t->type)
            descr = npy_types[i].descr;
    len = snprintf(dict, sizeof(dict), "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (unsigned d = 0; d < t->ndim; d++)
        len += snprintf(dict + len, sizeof(dict) - (size_t)len, "%lld,%s", (long long)t->dim[d],
                        d + 1 < t->ndim ? " " : "");
    len += snprintf(dict + len, sizeof(dict) - (size_t)len, "), }");
    while ((len + 11) % 64 != 0)
        dict[len++] = ' ';
    dict[len++] = '\n';
    head[7] = 0;
    head[8] = (char)(len & 0xff);
    head[9] = (char)(len >> 8);
    f = fopen(path, "wb");
    if (f == NULL)
        return false;
    ok = fwrite(head, 1, sizeof(head), f) == sizeof(head) &&
         fwrite(dict, 1, (size_t)len, f) == (size_t)len &&
         fwrite(t->data, 1, t->bytes, f) == t->bytes;
    return fclose(f) == 0 && ok;
}

void npy_free(struct heddle_nn_tensor *t)
{
    free(t->data);
    t->data = NULL;
}
