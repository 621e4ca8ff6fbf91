/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace/view/source: a log that a server shows, read and explained in the background.
 */
#include "trace/view/source.h"

#include <sys/stat.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "trace/cmd.h"

enum { QUICK_TASKS = 1500000 }; /* from here on they are shown first */

enum { REST, BUSY, DONE }; /* of `state` */

static int64_t file_bytes(const char *path)
{
    struct stat sb;

    return stat(path, &sb) == 0 ? (int64_t)sb.st_size : -1;
}

static struct view_opts next_opts(struct view_source *x, bool is_quick)
{
    return (struct view_opts){
        .file = x->file,
        .title = x->title,
        .npacks = x->npacks,
        .generation = ++x->generation,
        .is_live = x->is_live || is_quick, /* more will come */
        .is_quick = is_quick,
        .energy = x->energy,
        .energy_file = x->energy_file,
    };
}

/* Bounds of a run that is not over, or not explained yet, would not last. */
static heddle_status make_pack(const heddle_log *log, const struct view_opts *o,
                               struct view_pack **out)
{
    return o->is_live ? view_pack_create(log, o, out) : view_pack_bounded(log, o, out);
}

/* The other thread. What cannot be read now is tried again when it has grown. */
static void *work(void *arg)
{
    struct view_source *x = arg;

    if (x->log == NULL && heddle_log_open(x->file, NULL, &x->log) != HEDDLE_OK)
        x->log = NULL;
    if (x->log != NULL && make_pack(x->log, &x->opts, &x->result) != HEDDLE_OK)
        x->result = NULL;
    heddle_log_close(x->log);
    x->log = NULL;
    trace_memory_return();
    heddle_store_rel(&x->state, DONE); /* pairs with the load in tick */
    return NULL;
}

static void start(struct view_source *x)
{
    const struct heddle_thread_opts o = {.name = "heddle-log"};

    x->opts = next_opts(x, false);
    x->begin_ns = heddle_clock_ns();
    heddle_store_rlx(&x->state, BUSY);
    if (heddle_thread_create(&x->thread, &o, work, x) != HEDDLE_OK) {
        heddle_store_rlx(&x->state, REST);
        x->next_ns = x->begin_ns + HEDDLE_NS_PER_S;
    }
}

int view_source_open(struct cli *c, struct view_source *x, struct view_pack **out)
{
    const struct cli_args args = {.operand = {x->file}, .n = 1, .max = 1};
    heddle_status st;
    bool is_quick;
    int rc;

    x->begin_ns = heddle_clock_ns();
    x->bytes = file_bytes(x->file);
    rc = trace_open(c, "serve", &args, &x->log);
    if (rc != 0)
        return rc;
    is_quick = heddle_log_get_view(x->log)->ntasks >= QUICK_TASKS;
    x->opts = next_opts(x, is_quick);
    st = make_pack(x->log, &x->opts, out);
    if (st != HEDDLE_OK)
        rc = cli_fail(c, "%s: %s", x->file, heddle_status_text(st));
    else if (!x->is_live) /* one that is being written is never whole */
        trace_warn_partial(c, x->file, x->log);
    if (rc == 0 && is_quick) {
        start(x);
    } else {
        heddle_log_close(x->log);
        x->log = NULL;
        trace_memory_return();
    }
    return rc;
}

static void finish(struct view_source *x, struct view_pack **next)
{
    const uint64_t now = heddle_clock_ns(), took = now - x->begin_ns;

    if (heddle_thread_join(&x->thread) != HEDDLE_OK)
        return; /* it is not this one: cannot be */
    heddle_store_rlx(&x->state, REST);
    x->next_ns = now + (3 * took > HEDDLE_NS_PER_S ? 3 * took : HEDDLE_NS_PER_S);
    if (x->result != NULL) {
        view_pack_unref(*next);
        *next = x->result;
        x->result = NULL;
        x->is_offered = true;
    }
}

void view_source_tick(struct view_source *x, struct view_pack **next)
{
    int64_t bytes;

    if (heddle_load_acq(&x->state) == DONE)
        finish(x, next);
    if (x->is_offered && *next == NULL) { /* it took over */
        x->is_offered = false;
        trace_memory_return();
    }
    if (!x->is_live || heddle_load_rlx(&x->state) != REST || heddle_clock_ns() < x->next_ns)
        return;
    bytes = file_bytes(x->file);
    if (bytes == x->bytes)
        return;
    x->bytes = bytes;
    start(x);
}

bool view_source_close(struct view_source *x)
{
    struct view_pack *last = NULL;

    if (heddle_load_acq(&x->state) == BUSY)
        return false;
    if (heddle_load_rlx(&x->state) == DONE)
        finish(x, &last);
    view_pack_unref(last);
    heddle_log_close(x->log);
    x->log = NULL;
    return true;
}
