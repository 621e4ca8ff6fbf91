/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_COMPOSE_H
#define HEDDLE_COMPOSE_H

/*
 * heddle/compose.h - make a log without a run.
 *
 * For runs of another runtime, and for schedules that were computed: the resulting log is
 * read, drawn and bounded like any other log.
 *
 * The rows are those of heddle/trace.h. To write a changed log, copy the view
 * of an open one, point it to other arrays, and write that:
 *
 *     struct heddle_log_view v = *heddle_log_get_view(log);
 *     v.tasks = mine;   (copied rows with other lane, start_ns, end_ns)
 *     v.lanes = others; v.nlanes = n;
 *     st = heddle_log_compose(&v, "schedule.log", NULL);
 *
 * To write one from nothing, begin with { .size = sizeof(v) } and fill in
 * kernels and lanes, then tasks, then deps, handles and accesses as needed.
 *
 * Threads:  any; a view that is being written must not change.
 * Errors:   functions return heddle_status; on failure the file that was begun is removed.
 */
#include "heddle/trace.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Writes the rows of `v` as a log to `path`. `opts` may be NULL; its `why` gets
 * a sentence on failure.
 *
 * What the rows must satisfy, and how they are written:
 *   any order   arrays need not be sorted; a reader sorts them
 *   indices     task.kernel, task.lane, access.handle, handle.parent, and the
 *               lanes of states, marks and events are indices, as when reading;
 *               lanes are written with their index as id
 *   ids         kernels[].id, handles[].id and nodes[].id must differ within
 *               their array, and are kept (events name handles by id, lanes and
 *               events name nodes by id)
 *   names       NULL and "" are fine; task.name is written, rows of attrs with
 *               key HEDDLE_LOG_ATTR_NAME are not (their value is a number of
 *               the log they came from)
 *   times       within 2^52 ns (52 days) of 0, end not before start. A task that
 *               has not run has lane HEDDLE_LOG_NO_LANE: then status, start
 *               and end do not matter. A task without submit_ns that needs a
 *               submission (it has not run, or has a parent, priority or
 *               prediction) counts as submitted when it was ready, else when it
 *               started, else at 0.
 *   states      end_ns is not written: a state lasts until the next one or
 *               until a task starts or ends there
 * Times are exact to the nanosecond. A log has at least one lane. wall_ns is
 * kept; 0: now. The facts about the file (bytes, nchunks, lost, version...) are
 * not looked at.
 *
 * HEDDLE_EINVAL  an argument is NULL, or a row is wrong: `why` says which
 * HEDDLE_EIO     the file cannot be written
 * HEDDLE_ENOMEM  no memory
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_log_compose(const struct heddle_log_view *v,
                                                            const char *path,
                                                            const struct heddle_log_opts *opts);

/*
 * Writes a log from a trace of StarPU: its tasks.rec and, unless it is NULL, a
 * file about the platform that names memory nodes and their workers. A worker
 * becomes a lane, a model a kernel; a task without start and end has not run.
 * Unknown fields are ignored. `opts` as above.
 *
 * HEDDLE_EINVAL   an argument is NULL
 * HEDDLE_ENOENT   one of the files is not there
 * HEDDLE_EFORMAT  a file is no trace of StarPU; `why` names the line
 * HEDDLE_EIO      a file cannot be read, or the log cannot be written
 * HEDDLE_ENOMEM   no memory
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_log_import(const char *tasks_rec,
                                                           const char *platform_rec,
                                                           const char *path,
                                                           const struct heddle_log_opts *opts);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_COMPOSE_H */
