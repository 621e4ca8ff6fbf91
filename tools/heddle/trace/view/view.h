/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_TRACE_VIEW_VIEW_H
#define HEDDLE_TOOLS_TRACE_VIEW_VIEW_H

/*
 * The data of the trace page (docs/formats/view.md), and the page itself.
 *
 *   trace/view/pack.c     a log and its explanation become columns
 *   trace/view/array.c    columns: added, found, freed
 *   trace/view/time.c     the columns that are not about tasks
 *   trace/view/dir.c      the directory of the columns, JSON
 *   trace/view/bound.c    lower bounds, for the directory
 *   trace/view/energy.c   joules, for the directory
 *   trace/view/sketch.c   instead of an explanation, when that takes too long
 *   trace/view/deflate.c  raw deflate
 *   trace/view/huffman.c  its codes
 *   trace/view/html.c     one page that holds everything
 *   trace/view/http.c     requests and answers
 *   trace/view/serve.c    the same page and columns over loopback
 *
 * Threads  one at a time per object.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/json.h"
#include "heddle/alloc.h"
#include "heddle/energy.h"
#include "heddle/explain.h"
#include "heddle/status.h"
#include "heddle/trace.h"

/* --- columns -------------------------------------------------------------- */

#define VIEW_NONE UINT32_MAX

enum view_type { VIEW_U8, VIEW_U16, VIEW_U32, VIEW_I32, VIEW_F32, VIEW_F64 };

/* How an array is written. */
enum view_coding {
    VIEW_RAW,    /* elements as they are */
    VIEW_PLANES, /* the low bytes of all, then the next bytes, ... */
    VIEW_DPLANES /* the same with the zigzag of differences; U32 and I32 */
};

struct view_array {
    char name[16];
    enum view_type type;
    bool is_steady; /* neighbours are alike: VIEW_DPLANES when packed */
    size_t n;       /* > 0 */
    void *data;     /* in the machine's order: little endian */
};

enum { VIEW_MAX_CURVES = 64, VIEW_MAX_ARRAYS = 48 + 2 * VIEW_MAX_CURVES };

struct view_curve {
    char name[64];
    enum heddle_explain_curve_kind kind;
    double max;
    double limit;         /* NaN: none */
    int array_t, array_v; /* places in arrays[] */
};

/* Places of a lane's entries in the columns. */
struct view_lane {
    uint32_t first, n;
    uint32_t gap_first, gap_n;
};

struct view_pack {
    const struct heddle_allocator *a;
    struct view_array array[VIEW_MAX_ARRAYS];
    size_t narrays;
    struct view_curve curve[VIEW_MAX_CURVES];
    size_t ncurves;
    struct view_lane *lane;
    size_t nlanes;
    uint64_t unit_ns;
    size_t ntasks, nruns, nedges;
    bool is_packed; /* arrays are written in planes, not raw */
    char *dir;      /* JSON without '<' */
    size_t dir_len;
    size_t dir_cap; /* bytes allocated */
    uint64_t generation;
    unsigned nrefs;
};

struct view_opts {
    const struct heddle_allocator *allocator; /* NULL: the default */
    const char *title;                        /* NULL: the file */
    const char *file;
    uint64_t generation;
    unsigned npacks;
    bool is_live;
    bool is_packed; /* see struct view_pack */
    bool is_quick;  /* the tasks, without an explanation */
    /* Writes "bounds", and "bounds_why" when there are none. NULL: none. */
    void (*bounds)(struct heddle_json *j, void *user);
    void *bounds_user;
    const heddle_energy *energy; /* NULL: only what was measured is shown */
    const char *energy_file;     /* where it came from */
};

/* HEDDLE_ENOMEM, HEDDLE_EINVAL. The log may be closed afterwards. One reference
 * is the caller's. */
HEDDLE_MUST_USE heddle_status view_pack_create(const heddle_log *log, const struct view_opts *o,
                                               struct view_pack **out);
struct view_pack *view_pack_ref(struct view_pack *p);
void view_pack_unref(struct view_pack *p); /* NULL is fine */

/* NULL: no such array. */
const struct view_array *view_pack_find(const struct view_pack *p, const char *name);
size_t view_array_bytes(const struct view_array *x);
size_t view_type_bytes(enum view_type t);
const char *view_type_name(enum view_type t);
enum view_coding view_array_coding(const struct view_pack *p, const struct view_array *x);

/* Free it with view_sketch_destroy() and the same allocator. HEDDLE_ENOMEM. */
HEDDLE_MUST_USE heddle_status view_sketch_create(const heddle_log *log,
                                                 const struct heddle_allocator *a,
                                                 struct heddle_explain **out);
/* NULL is fine. */
void view_sketch_destroy(struct heddle_explain *x, const struct heddle_allocator *a);

/* The directory; trace/view/dir.c. */
HEDDLE_MUST_USE heddle_status view_dir_create(struct view_pack *p, const heddle_log *log,
                                              const struct heddle_explain *x,
                                              const struct view_opts *o);

/* Keys "energy" and "energy_why" of the directory. HEDDLE_ENOMEM. */
HEDDLE_MUST_USE heddle_status view_put_energy(struct heddle_json *j, const heddle_log *log,
                                              const struct heddle_explain *x,
                                              const struct view_opts *o);

/* --- deflate -------------------------------------------------------------- */

struct view_deflate;

/* Takes the bytes; false: they could not be written, no more are wanted. */
typedef bool view_sink(void *user, const uint8_t *p, size_t n);

HEDDLE_MUST_USE heddle_status view_deflate_create(const struct heddle_allocator *a, view_sink *sink,
                                                  void *user, struct view_deflate **out);
/* NULL is fine. */
void view_deflate_destroy(struct view_deflate *z);
/* More of the stream; what the sink said. */
bool view_deflate_put(struct view_deflate *z, const uint8_t *p, size_t n);
/* Ends the stream; the next put begins a new one. */
bool view_deflate_end(struct view_deflate *z);

/* --- the page ------------------------------------------------------------- */

/* A file of the page, inside the tool. */
struct view_file {
    const char *name;
    const unsigned char *data;
    size_t size;
};

/* Ends with name NULL; made by the build from tools/view. */
extern const struct view_file view_files[];

/*
 * Writes the page with the data of n runs; n = 0: the page of a server.
 * HEDDLE_EIO: errno says why. HEDDLE_ENOMEM.
 */
HEDDLE_MUST_USE heddle_status view_page_write(FILE *f, const char *title,
                                              struct view_pack *const *packs, unsigned n);

/* --- server --------------------------------------------------------------- */

enum { VIEW_MAX_PACKS = 2 };

/* What a server hands out. */
struct view_site {
    char *page; /* as the page of a server */
    size_t page_len;
    struct view_pack *pack[VIEW_MAX_PACKS];
    struct view_pack *next[VIEW_MAX_PACKS]; /* newer; takes over when the
                                               directory is asked for */
    unsigned npacks;
    uint16_t port;
};

/* The answer to a request. */
struct view_answer {
    char head[640]; /* status line and headers; the body too when it is short */
    size_t head_len;
    const void *body; /* of the site, or of `pack` */
    size_t body_len;
    struct view_pack *pack; /* referenced, or NULL */
    bool is_last;           /* the connection is closed afterwards */
};

enum { VIEW_MAX_REQUEST = 8192 };

/*
 * Looks at what came over a connection, n <= VIEW_MAX_REQUEST bytes. Returns
 * how many of them are the first request, after *ans was set; 0: it is not
 * whole yet.
 */
size_t view_http_answer(struct view_site *s, const char *in, size_t n, struct view_answer *ans);
/* Lets go of what the answer holds. Zeroed memory is fine. */
void view_answer_fini(struct view_answer *ans);

/* Called between requests, several times per second. */
typedef void view_tick(void *user, struct view_site *s);

/* Listens on 127.0.0.1; port 0: any. *fd_out, and s->port, are set. */
HEDDLE_MUST_USE heddle_status view_listen(struct view_site *s, uint16_t port, int *fd_out);
/* Serves until SIGINT or SIGTERM; closes fd. `tick` may be NULL. HEDDLE_EIO,
 * HEDDLE_ENOMEM. */
HEDDLE_MUST_USE heddle_status view_serve(struct view_site *s, int fd, view_tick *tick, void *user);

#endif /* HEDDLE_TOOLS_TRACE_VIEW_VIEW_H */
