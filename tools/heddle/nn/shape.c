/* SPDX-License-Identifier: BSD-3-Clause */
/* nn/shape: shapes of inputs from the command line. */
#include "nn/shape.h"

#include <stdlib.h>
#include <string.h>

bool nn_pair(const char *list, const char *name, char *out, size_t bytes)
{
    const size_t n = strlen(name);

    while (list != NULL && *list != '\0') {
        const size_t len = strcspn(list, ",");

        if (len > n && strncmp(list, name, n) == 0 && list[n] == '=' && len - n - 1 < bytes) {
            memcpy(out, list + n + 1, len - n - 1);
            out[len - n - 1] = '\0';
            return true;
        }
        list += len + (list[len] == ',');
    }
    return false;
}

int nn_shape(struct cli *c, const char *what, const char *list, const struct heddle_nn_port *p,
             struct heddle_nn_tensor *t)
{
    char text[200];
    const char *s = text;

    t->ndim = p->ndim < 0 ? 0 : (unsigned)p->ndim;
    memcpy(t->dim, p->dim, sizeof(t->dim));
    if (nn_pair(list, p->name, text, sizeof(text)))
        for (t->ndim = 0; *s != '\0' && t->ndim < HEDDLE_NN_DIMS;) {
            char *end;

            t->dim[t->ndim++] = strtoll(s, &end, 10);
            if (end == s || (*end != 'x' && *end != '\0'))
                return cli_error(c, "%s: '%s' is no shape: write 1x3x224x224", what, text);
            s = end + (*end == 'x');
        }
    t->bytes = heddle_nn_type_size(t->type);
    for (unsigned d = 0; d < t->ndim; d++) {
        if (t->dim[d] < 0)
            t->dim[d] = 1; /* a dimension that the model leaves open */
        if (__builtin_mul_overflow(t->bytes, (size_t)t->dim[d], &t->bytes))
            return cli_error(c, "%s: the shape of input '%s' overflows", what, p->name);
    }
    return 0;
}
