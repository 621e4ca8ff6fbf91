/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_ONNX_ONNX_H
#define HEDDLE_ONNX_ONNX_H

/*
 * Contract of the reader of ONNX files: messages as C structs.
 *
 * A file is mapped, not read: the raw data of tensors stay where they are, and so do those of
 * external files, which must be in the folder of the model or below. Everything else (names,
 * lists) is copied into one block of memory that goes with the file.
 *
 * The reader checks the wire format, lengths, sizes and depths, and that the data of a tensor are
 * as long as its type and dimensions say. What a model means is not its business: nothing here
 * knows an operator.
 *
 * Lists are a pointer and a count behind it; a message that is absent is NULL, a text that is
 * absent is "". Unknown fields are skipped. Of a message that occurs twice the last one counts.
 *
 * Threads  an open file does not change; any number of threads may read it.
 * Errors   one sentence, which names the file, where in the message, and what is wrong.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/alloc.h"
#include "heddle/status.h"

/* TensorProto.DataType. X(name, number, bytes per element in memory, bits per element in a file).
 * A string counts as one struct heddle_onnx_bytes. */
#define HEDDLE_ONNX_TYPE_LIST(X)                                                                   \
    X(FLOAT, 1, 4, 32)                                                                             \
    X(UINT8, 2, 1, 8)                                                                              \
    X(INT8, 3, 1, 8)                                                                               \
    X(UINT16, 4, 2, 16)                                                                            \
    X(INT16, 5, 2, 16)                                                                             \
    X(INT32, 6, 4, 32)                                                                             \
    X(INT64, 7, 8, 64)                                                                             \
    X(STRING, 8, 16, 0)                                                                            \
    X(BOOL, 9, 1, 8)                                                                               \
    X(FLOAT16, 10, 2, 16)                                                                          \
    X(DOUBLE, 11, 8, 64)                                                                           \
    X(UINT32, 12, 4, 32)                                                                           \
    X(UINT64, 13, 8, 64)                                                                           \
    X(COMPLEX64, 14, 8, 64)                                                                        \
    X(COMPLEX128, 15, 16, 128)                                                                     \
    X(BFLOAT16, 16, 2, 16)                                                                         \
    X(FLOAT8E4M3FN, 17, 1, 8)                                                                      \
    X(FLOAT8E4M3FNUZ, 18, 1, 8)                                                                    \
    X(FLOAT8E5M2, 19, 1, 8)                                                                        \
    X(FLOAT8E5M2FNUZ, 20, 1, 8)                                                                    \
    X(UINT4, 21, 1, 4)                                                                             \
    X(INT4, 22, 1, 4)                                                                              \
    X(FLOAT4E2M1, 23, 1, 4)                                                                        \
    X(FLOAT8E8M0, 24, 1, 8)                                                                        \
    X(UINT2, 25, 1, 2)                                                                             \
    X(INT2, 26, 1, 2)

enum heddle_onnx_type {
    HEDDLE_ONNX_UNDEFINED = 0,
#define HEDDLE_ONNX_TYPE_ENUM(name, number, bytes, bits) HEDDLE_ONNX_##name = number,
    HEDDLE_ONNX_TYPE_LIST(HEDDLE_ONNX_TYPE_ENUM)
#undef HEDDLE_ONNX_TYPE_ENUM
        HEDDLE_ONNX_NTYPES
};

/* Bytes that need not be text. */
struct heddle_onnx_bytes {
    const char *ptr; /* NULL: absent */
    size_t len;
};

/* A pair of texts: metadata, external data. */
struct heddle_onnx_pair {
    const char *key, *value;
};

struct heddle_onnx_tensor {
    const char *name;
    int64_t type; /* enum heddle_onnx_type, checked */
    const int64_t *dim;
    size_t ndims;
    size_t count;     /* elements: the product of the dimensions */
    const void *data; /* `bytes` bytes, little-endian, as in raw_data; perhaps not aligned. NULL:
                         no elements, strings, or a tensor that says nothing about its data */
    size_t bytes;
    const struct heddle_onnx_bytes *string; /* STRING: `count` of them */
    size_t nstrings;

    /* What the wire says; `data` is made of it. */
    struct heddle_onnx_bytes raw;
    const float *floats;
    size_t nfloats;
    const int64_t *ints32;
    size_t nints32;
    const int64_t *ints64;
    size_t nints64;
    const double *doubles;
    size_t ndoubles;
    const int64_t *uints64;
    size_t nuints64;
    const struct heddle_onnx_pair *external;
    size_t nexternal;
    int64_t location; /* 1: in the external file */
    const void *segment;
};

struct heddle_onnx_sparse {
    const struct heddle_onnx_tensor *values, *indices;
    const int64_t *dim;
    size_t ndims;
};

/* SequenceProto and OptionalProto: what elem_type says it holds. */
struct heddle_onnx_sequence {
    const char *name;
    int64_t elem_type; /* 1 tensor, 2 sparse, 3 sequence, 4 map, 5 optional; 0: nothing */
    const struct heddle_onnx_tensor *tensor;
    size_t ntensors;
    const struct heddle_onnx_sparse *sparse;
    size_t nsparses;
    const struct heddle_onnx_sequence *sequence;
    size_t nsequences;
    const struct heddle_onnx_map *map;
    size_t nmaps;
    const struct heddle_onnx_sequence *optional;
    size_t noptionals;
};

struct heddle_onnx_map {
    const char *name;
    int64_t key_type;
    const int64_t *key;
    size_t nkeys;
    const struct heddle_onnx_bytes *string_key;
    size_t nstring_keys;
    const struct heddle_onnx_sequence *values;
};

struct heddle_onnx_dim {
    int64_t value;     /* -1: not given */
    const char *param; /* the symbol; "": none */
};

struct heddle_onnx_shape {
    const struct heddle_onnx_dim *dim;
    size_t ndims;
};

/* TypeProto.Tensor and .SparseTensor */
struct heddle_onnx_tensor_type {
    int64_t type;
    const struct heddle_onnx_shape *shape; /* NULL: of any rank */
};

/* TypeProto.Map */
struct heddle_onnx_map_type {
    int64_t key;
    const struct heddle_onnx_value_type *value;
};

/* TypeProto.Sequence and .Optional */
struct heddle_onnx_elem_type {
    const struct heddle_onnx_value_type *elem;
};

/* TypeProto: at most one is not NULL. */
struct heddle_onnx_value_type {
    const struct heddle_onnx_tensor_type *tensor, *sparse;
    const struct heddle_onnx_elem_type *sequence, *optional;
    const struct heddle_onnx_map_type *map;
};

struct heddle_onnx_value_info {
    const char *name;
    const struct heddle_onnx_value_type *type;
};

/* AttributeProto.AttributeType */
enum heddle_onnx_attr_type {
    HEDDLE_ONNX_ATTR_NONE = 0,
    HEDDLE_ONNX_ATTR_FLOAT = 1,
    HEDDLE_ONNX_ATTR_INT = 2,
    HEDDLE_ONNX_ATTR_STRING = 3,
    HEDDLE_ONNX_ATTR_TENSOR = 4,
    HEDDLE_ONNX_ATTR_GRAPH = 5,
    HEDDLE_ONNX_ATTR_FLOATS = 6,
    HEDDLE_ONNX_ATTR_INTS = 7,
    HEDDLE_ONNX_ATTR_STRINGS = 8,
    HEDDLE_ONNX_ATTR_TENSORS = 9,
    HEDDLE_ONNX_ATTR_GRAPHS = 10,
    HEDDLE_ONNX_ATTR_SPARSE = 11,
    HEDDLE_ONNX_ATTR_SPARSES = 12,
    HEDDLE_ONNX_ATTR_TYPE = 13,
    HEDDLE_ONNX_ATTR_TYPES = 14
};

struct heddle_onnx_attr {
    const char *name;
    const char *ref; /* in a function: the attribute of the caller that is meant; "": none */
    int64_t type;    /* enum heddle_onnx_attr_type; guessed from the content in old files */
    float f;
    int64_t i;
    struct heddle_onnx_bytes s;
    const struct heddle_onnx_tensor *t;
    const struct heddle_onnx_graph *g;
    const float *floats;
    size_t nfloats;
    const int64_t *ints;
    size_t nints;
    const struct heddle_onnx_bytes *strings;
    size_t nstrings;
    const struct heddle_onnx_tensor *tensors;
    size_t ntensors;
    const struct heddle_onnx_graph *graphs;
    size_t ngraphs;
    const struct heddle_onnx_sparse *sparse;
    const struct heddle_onnx_value_type *value_type;
};

struct heddle_onnx_node {
    const char *const *input; /* "": this optional input is absent */
    size_t ninputs;
    const char *const *output;
    size_t noutputs;
    const char *name, *op_type, *domain, *overload;
    const struct heddle_onnx_attr *attr;
    size_t nattrs;
};

struct heddle_onnx_graph {
    const char *name;
    const struct heddle_onnx_node *node;
    size_t nnodes;
    const struct heddle_onnx_tensor *init;
    size_t ninits;
    const struct heddle_onnx_sparse *sparse_init;
    size_t nsparse_inits;
    const struct heddle_onnx_value_info *input;
    size_t ninputs;
    const struct heddle_onnx_value_info *output;
    size_t noutputs;
    const struct heddle_onnx_value_info *value_info;
    size_t nvalue_infos;
};

struct heddle_onnx_opset {
    const char *domain;
    int64_t version;
};

struct heddle_onnx_function {
    const char *name, *domain, *overload;
    const char *const *input;
    size_t ninputs;
    const char *const *output;
    size_t noutputs;
    const char *const *attr_name;
    size_t nattr_names;
    const struct heddle_onnx_attr *attr; /* with default values */
    size_t nattrs;
    const struct heddle_onnx_node *node;
    size_t nnodes;
    const struct heddle_onnx_opset *opset;
    size_t nopsets;
};

struct heddle_onnx_model {
    int64_t ir_version;
    const char *producer, *producer_version, *domain;
    int64_t model_version;
    const struct heddle_onnx_graph *graph; /* never NULL in a file that was opened */
    const struct heddle_onnx_opset *opset;
    size_t nopsets;
    const struct heddle_onnx_pair *metadata;
    size_t nmetadata;
    const struct heddle_onnx_function *function;
    size_t nfunctions;
};

/* What a file holds. */
enum heddle_onnx_kind {
    HEDDLE_ONNX_MODEL,
    HEDDLE_ONNX_TENSOR,
    HEDDLE_ONNX_SEQUENCE,
    HEDDLE_ONNX_OPTIONAL
};

struct heddle_onnx_opts {
    const struct heddle_allocator *alloc; /* NULL: the default */
    char *why;                            /* a sentence; may be NULL */
    size_t why_bytes;
};

/* An open file: the member of its kind is set. */
struct heddle_onnx_file {
    const struct heddle_onnx_model *model;
    const struct heddle_onnx_tensor *tensor;
    const struct heddle_onnx_sequence *sequence; /* also OPTIONAL */
    size_t file_bytes, external_bytes, memory_bytes;
    struct onnx_own *own;
};

/*
 * Maps a file and its external files, and decodes it. The files must not shrink while they are
 * open.
 *
 * HEDDLE_OK        *out is yours; end it with heddle_onnx_close()
 * HEDDLE_ENOENT    no such file, or an external file is missing
 * HEDDLE_EIO       it cannot be read
 * HEDDLE_EFORMAT   not such a message, damaged, or an external file outside of the folder
 * HEDDLE_ENOMEM
 */
HEDDLE_MUST_USE heddle_status heddle_onnx_open(const char *path, enum heddle_onnx_kind kind,
                                               const struct heddle_onnx_opts *opts,
                                               struct heddle_onnx_file **out);

/* The same from memory, which must stay; `name` stands for the file in sentences. External data
 * are refused. */
HEDDLE_MUST_USE heddle_status heddle_onnx_decode(const void *ptr, size_t bytes, const char *name,
                                                 enum heddle_onnx_kind kind,
                                                 const struct heddle_onnx_opts *opts,
                                                 struct heddle_onnx_file **out);

/* NULL is fine. */
void heddle_onnx_close(struct heddle_onnx_file *f);

/* These bytes will hardly be read again: whole pages of them that are in a mapped file leave the
 * resident memory of the process, and come back when they are read. Bytes elsewhere stay. */
void heddle_onnx_give_back(const struct heddle_onnx_file *f, const void *data, size_t bytes);

/* "float", "int64"; "undefined" for any other number. */
const char *heddle_onnx_type_name(int64_t type);
/* Bytes of an element in memory; 0: no such type. */
size_t heddle_onnx_type_bytes(int64_t type);
/* Bits of an element in a file; 0: no such type, or strings. */
unsigned heddle_onnx_type_bits(int64_t type);

#endif /* HEDDLE_ONNX_ONNX_H */
