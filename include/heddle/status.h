/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_STATUS_H
#define HEDDLE_STATUS_H

/*
 * heddle/status.h - what every call returns.
 *
 * 0 is success, a negative value is a failure, a positive value is neither ("not yet").
 * Heddle never aborts, exits or prints because of what the caller or the machine did: the
 * status is the only report, and the context keeps the sentence that explains it
 * (heddle_ctx_error).
 */
#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HEDDLE_API      __attribute__((visibility("default")))
#define HEDDLE_MUST_USE __attribute__((warn_unused_result))
#else
#define HEDDLE_API
#define HEDDLE_MUST_USE
#endif

/* One line per status: X(name, value, text). */
#define HEDDLE_STATUS_LIST(X)                                                                      \
    X(HEDDLE_OK, 0, "success")                                                                     \
    X(HEDDLE_AGAIN, 1, "not yet, ask again")                                                       \
    X(HEDDLE_EINVAL, -1, "invalid argument")                                                       \
    X(HEDDLE_ENOMEM, -2, "out of memory")                                                          \
    X(HEDDLE_ENOSYS, -3, "not available in this build or on this machine")                         \
    X(HEDDLE_ECANCELED, -4, "cancelled")                                                           \
    X(HEDDLE_ETIMEDOUT, -5, "deadline passed")                                                     \
    X(HEDDLE_EDEADLK, -6, "would wait for itself")                                                 \
    X(HEDDLE_ECYCLE, -7, "the dependencies form a cycle")                                          \
    X(HEDDLE_EACCESS, -8, "access that was not declared or not granted")                           \
    X(HEDDLE_ESTATE, -9, "not allowed in this state")                                              \
    X(HEDDLE_EIO, -10, "input or output failed")                                                   \
    X(HEDDLE_EFORMAT, -11, "malformed file")                                                       \
    X(HEDDLE_EVERSION, -12, "unsupported version")                                                 \
    X(HEDDLE_EDEV, -13, "device lost or broken")                                                   \
    X(HEDDLE_ETASK, -14, "a task failed")                                                          \
    X(HEDDLE_ENOVARIANT, -15, "no variant can run this task")                                      \
    X(HEDDLE_EDECLINED, -16, "the variant declined, nothing was written")                          \
    X(HEDDLE_EOVERFLOW, -17, "a size does not fit")                                                \
    X(HEDDLE_ENOENT, -18, "no such thing")

/* What a call returns. */
typedef enum heddle_status {
#define HEDDLE_STATUS_ENUM(name, value, text) name = value,
    HEDDLE_STATUS_LIST(HEDDLE_STATUS_ENUM)
#undef HEDDLE_STATUS_ENUM
} heddle_status;

/* The text of a status; "unknown status" for any other value. Never NULL. */
HEDDLE_API const char *heddle_status_text(heddle_status st);

/* The name of a status, "HEDDLE_EINVAL"; never NULL. */
HEDDLE_API const char *heddle_status_name(heddle_status st);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_STATUS_H */
