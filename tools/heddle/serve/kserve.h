/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_SERVE_KSERVE_H
#define HEDDLE_TOOLS_SERVE_KSERVE_H

/*
 * The bodies of inference requests and replies, as KServe's protocol version 2 has
 * them: JSON, and behind it, with the binary extension, the bytes of tensors.
 *
 * A request names its inputs, each with a type, a shape, and data: an array of numbers
 * (nested or flat), or `binary_data_size` bytes behind the JSON. It may name the outputs
 * it wants. Parameters that are understood: `priority`, `timeout` (microseconds),
 * `binary_data`, `binary_data_output`, `binary_data_size`, and those of struct kserve_generate;
 * others are passed over.
 *
 * Threads  a request and a reply belong to one thread at a time.
 * Errors   one sentence for the client; HEDDLE_EINVAL is the client's fault.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "base/json_in.h"
#include "base/scratch.h"
#include "heddle/status.h"

/* X(name, bytes of an element, is a number with a fraction, has a sign) */
#define KSERVE_TYPE_LIST(X)                                                                        \
    X(BOOL, 1, false, false)                                                                       \
    X(UINT8, 1, false, false)                                                                      \
    X(UINT16, 2, false, false)                                                                     \
    X(UINT32, 4, false, false)                                                                     \
    X(UINT64, 8, false, false)                                                                     \
    X(INT8, 1, false, true)                                                                        \
    X(INT16, 2, false, true)                                                                       \
    X(INT32, 4, false, true)                                                                       \
    X(INT64, 8, false, true)                                                                       \
    X(FP16, 2, true, true)                                                                         \
    X(BF16, 2, true, true)                                                                         \
    X(FP32, 4, true, true)                                                                         \
    X(FP64, 8, true, true)

enum kserve_type {
#define KSERVE_TYPE_ENUM(name, bytes, is_real, has_sign) KSERVE_##name,
    KSERVE_TYPE_LIST(KSERVE_TYPE_ENUM)
#undef KSERVE_TYPE_ENUM
        KSERVE_NTYPES
};

enum { KSERVE_MAX_DIMS = 8, KSERVE_MAX_TENSORS = 64, KSERVE_MAX_NAME = 256, KSERVE_FEW = 2 };

/* "FP32"; bytes of an element. */
const char *kserve_type_name(enum kserve_type t);
size_t kserve_type_bytes(enum kserve_type t);

struct kserve_tensor {
    char name[KSERVE_MAX_NAME];
    enum kserve_type type;
    unsigned ndim;
    int64_t dim[KSERVE_MAX_DIMS];
    size_t count;     /* elements */
    const void *data; /* dense; borrowed from the body (then of any alignment) or the
                         request's */
};

struct kserve_want {
    char name[KSERVE_MAX_NAME];
    bool is_binary;
};

/* What a request asks of a decoder; zero: not said. */
struct kserve_generate {
    uint64_t max_tokens, top_k, seed;
    double temperature, top_p;
    int64_t stop; /* a token */
    bool has_stop;
};

/* Reads the value of a member of JSON behind its key, if it is one of these. HEDDLE_EINVAL: the
 * value makes no sense. */
HEDDLE_MUST_USE heddle_status kserve_generate_member(struct heddle_json_in *j,
                                                     const struct heddle_json_item *key,
                                                     struct kserve_generate *g, bool *is_known,
                                                     char *why, size_t why_bytes);

struct kserve_request {
    char id[KSERVE_MAX_NAME]; /* "": none */
    uint64_t priority;        /* 0: none; 1 is the most urgent */
    uint64_t timeout_us;      /* 0: none */
    struct kserve_generate generate;
    bool is_binary;           /* outputs that say nothing themselves are binary */
    size_t nin, nout;         /* nout 0: all outputs */
    struct kserve_tensor *in; /* `few_in`, or in `mem`: most requests have one */
    struct kserve_want *out;
    struct kserve_tensor few_in[KSERVE_FEW];
    struct kserve_want few_out[KSERVE_FEW];
    struct heddle_scratch mem;
};

/*
 * Reads a body, which has a zero behind its bytes and outlives the request, which stays where it
 * is until kserve_request_fini(). json_bytes: the
 * value of Inference-Header-Content-Length, or `bytes`. kserve_request_fini()
 * may follow in any case.
 *
 * HEDDLE_EINVAL  the body is no such request: `why` says what is wrong where
 * HEDDLE_ENOMEM
 */
HEDDLE_MUST_USE heddle_status kserve_request_read(struct kserve_request *r,
                                                  const struct heddle_allocator *a,
                                                  const char *body, size_t bytes, size_t json_bytes,
                                                  char *why, size_t why_bytes);
void kserve_request_fini(struct kserve_request *r);

/* The JSON of a reply, which says how many bytes of each binary output follow. `is_binary`
 * has a flag for each tensor. A number that is not finite is null in JSON: the binary
 * extension has all numbers. */
void kserve_reply_write(struct heddle_json *j, const char *model, const char *version,
                        const char *id, const struct kserve_tensor *out, const bool *is_binary,
                        size_t n);

#endif /* HEDDLE_TOOLS_SERVE_KSERVE_H */
