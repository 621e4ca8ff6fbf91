/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_ONNX_WIRE_H
#define HEDDLE_ONNX_WIRE_H

/*
 * Private to onnx: messages as tables of fields, and the decoder that reads any of them.
 *
 * Invariants (1) no byte outside of the message is read, whatever its lengths say
 *            (2) memory is at most WIRE_FLOOR + WIRE_RATIO times the bytes of the file
 *            (3) nesting is at most WIRE_DEPTH
 */
#include "base/compiler.h"
#include "base/scratch.h"
#include "onnx/onnx.h"

enum { WIRE_DEPTH = 100, WIRE_FLOOR = 1 << 26, WIRE_RATIO = 16, WIRE_FIELDS = 24 };

enum wire_kind {
    WIRE_INT,     /* int64_t */
    WIRE_FLOAT,   /* float */
    WIRE_TEXT,    /* const char *, zero-terminated */
    WIRE_BYTES,   /* struct heddle_onnx_bytes */
    WIRE_MESSAGE, /* pointer to a message */
    /* a pointer and, behind it, a size_t: */
    WIRE_INTS,     /* int64_t; packed or not, as all numbers */
    WIRE_FLOATS,   /* float */
    WIRE_DOUBLES,  /* double */
    WIRE_TEXTS,    /* const char * */
    WIRE_BYTESES,  /* struct heddle_onnx_bytes */
    WIRE_MESSAGES, /* the message itself */
    WIRE_KINDS
};

struct wire_decoder;

struct wire_field {
    const char *name;
    uint32_t number;
    uint16_t kind; /* enum wire_kind */
    uint16_t offset;
    const struct wire_message *message;
    int64_t fallback; /* WIRE_INT: its value where it is absent */
};

struct wire_message {
    const char *name;
    size_t bytes;
    const struct wire_field *field;
    size_t nfields; /* <= WIRE_FIELDS */
    /* Optional: looks at the message once it is complete. */
    heddle_status (*finish)(struct wire_decoder *d, void *obj);
};

struct wire_decoder {
    const uint8_t *base; /* for offsets in sentences */
    const char *file;    /* for sentences */
    const struct heddle_onnx_opts *opts;
    struct heddle_scratch *mem;
    char *chunk; /* small pieces come out of it */
    size_t chunk_left;
    size_t budget, used;
    unsigned depth;
    struct {
        const char *name;
        size_t idx;
    } path[WIRE_DEPTH];
    /* External tensors, as they are found; every one of them is a struct
     * heddle_onnx_tensor whose data are missing. */
    struct onnx_external *external;
};

struct onnx_external {
    struct heddle_onnx_tensor *tensor;
    struct onnx_external *next;
};

/* Zeroed memory that goes with the file; NULL: none, or more than invariant (2) allows. The
 * sentence is said. */
void *heddle_onnx_take(struct wire_decoder *d, size_t n, size_t bytes);

/* HEDDLE_EFORMAT, with the sentence "FILE: in graph.node[3]: ...". */
HEDDLE_PRINTF(2, 3)
heddle_status heddle_onnx_bad(struct wire_decoder *d, const char *fmt, ...);

/* Decodes bytes into obj, which is zeroed. HEDDLE_EFORMAT, HEDDLE_ENOMEM. */
HEDDLE_MUST_USE heddle_status heddle_onnx_wire(struct wire_decoder *d, const struct wire_message *m,
                                               const uint8_t *ptr, size_t bytes, void *obj);

/* tensor.c: counts, checks and converts. */
heddle_status heddle_onnx_finish_tensor(struct wire_decoder *d, void *obj);
/* tensor.c: takes `len` bytes of an external file as the data of a tensor. */
heddle_status heddle_onnx_set_raw(struct wire_decoder *d, struct heddle_onnx_tensor *t,
                                  const void *ptr, size_t len);

/* external.c: one external file after another. `dir` ends with '/', or is "". */
struct onnx_mapping {
    void *ptr;
    size_t bytes;
    const char *location;
    struct onnx_mapping *next;
};
heddle_status heddle_onnx_map_external(struct wire_decoder *d, const char *dir,
                                       struct onnx_mapping **list);
/* Maps a regular file; ptr is NULL when it is empty. *what_out: what went wrong. */
heddle_status heddle_onnx_map_fd(int fd, struct onnx_mapping *m, const char **what_out);
void heddle_onnx_unmap(struct onnx_mapping *list);
/* heddle_onnx_give_back() for the files of a list. */
void heddle_onnx_unread(const struct onnx_mapping *list, const void *data, size_t bytes);

extern const struct wire_message *const heddle_onnx_messages[4]; /* by enum heddle_onnx_kind */

#endif /* HEDDLE_ONNX_WIRE_H */
