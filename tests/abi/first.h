/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TESTS_ABI_FIRST_H
#define HEDDLE_TESTS_ABI_FIRST_H

/*
 * The structs and functions that a first program needs, as the first header with a
 * promise had them. Never edit this file: it stands for programs that were compiled
 * long ago. It includes no header of Heddle but that of the statuses.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/status.h"

struct first_ctx_opts {
    size_t size;
    unsigned nworkers;
    const char *sched;
    int bind, helps;
    size_t stack_bytes;
    unsigned spin_us, window;
    size_t memory_budget;
    int log, log_level;
    const char *energy, *log_path;
    int check, models;
    const char *model_dir;
    unsigned watchdog_ms;
    void (*message)(void *user, int severity, const char *text);
    void *message_user;
    void *allocator[3];
    const char *devices;
    size_t device_memory;
    const char *disk_path;
    size_t disk_bytes;
    const char *machine;
    int execute;
    const char *faults, *plan;
    bool ignore_env;
    const char *energy_model;
    const void *energy_object;
    double energy_weight, energy_slack;
    const char *power_cap;
    char *why;
    size_t why_bytes;
};

struct first_variant {
    const char *name;
    int device;
    heddle_status (*run)(void *x);
    unsigned gang;
    size_t scratch_bytes;
    unsigned digits;
    bool is_urgent;
    uint64_t reserved[2];
};

struct first_kernel {
    size_t size;
    const char *name;
    unsigned noperands;
    int mode[16];
    struct first_variant variants[8];
    void *cost, *expand, *want_expand;
    uint64_t version;
};

struct first_task_opts {
    size_t size;
    const char *name;
    void *const *after;
    size_t nafter;
    void *group;
    uint64_t timeout_ns;
    unsigned retries;
    void (*done)(void *user, heddle_status st);
    void *done_user;
    void **event_out;
    unsigned variant;
    uint32_t devices;
    unsigned digits;
};

struct first_call {
    void *operand[6];
    const void *arg;
    size_t arg_bytes;
    int priority;
    unsigned noperands;
    void *const *operands;
    const int *modes;
    const struct first_task_opts *opts;
    uint64_t reserved[2];
};

struct first_launch {
    size_t size;
    const void *binding;
    size_t nbindings;
    const void *arg;
    size_t nargs;
    int priority;
    bool (*again)(void *user, unsigned pass);
    void *again_user;
    const struct first_task_opts *opts;
};

struct first_error {
    size_t size;
    heddle_status status;
    uint64_t task;
    char task_name[64];
    char kernel[64];
    char message[320];
};

struct first_stats {
    size_t size;
    unsigned nworkers;
    const char *sched;
    uint64_t submitted, done, executed, failed, cancelled, steals, parks;
    size_t cell_bytes;
    uint64_t cells;
    size_t data_bytes;
    uint64_t virtual_ns, copied_bytes, evictions;
};

enum { FIRST_RW = 3, FIRST_CPU = 1, FIRST_F64 = 7 };

heddle_status heddle_ctx_create(const struct first_ctx_opts *opts, void **ctx);
heddle_status heddle_ctx_destroy(void *ctx);
heddle_status heddle_ctx_error(void *ctx, struct first_error *error);
heddle_status heddle_ctx_get_stats(void *ctx, struct first_stats *out);
heddle_status heddle_wait(void *ctx);
heddle_status heddle_handle_vector(void *ctx, void *ptr, size_t n, int dtype, void **h);
void heddle_handle_unref(void *h);
heddle_status heddle_submit(void *ctx, const struct first_kernel *k, const struct first_call *call);
heddle_status heddle_submit_n(void *ctx, const struct first_kernel *k,
                              const struct first_call *call, size_t n, size_t *n_out);
heddle_status heddle_graph_begin(void *ctx, void **g);
heddle_status heddle_graph_submit(void *g, const struct first_kernel *k,
                                  const struct first_call *call);
heddle_status heddle_graph_end(void *g);
heddle_status heddle_graph_launch(void *g, const struct first_launch *l);
void heddle_graph_unref(void *g);
void *heddle_exec_ptr(void *x, unsigned i);
const void *heddle_exec_arg(void *x);

#endif /* HEDDLE_TESTS_ABI_FIRST_H */
