/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace serve: the page of a log on loopback, for logs that are large or still
 * grow.
 *
 * Live  the log is read again when its size has changed, at most once per
 *       second and for at most a quarter of the time, so a page stays quick to
 *       answer while a long log grows.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "trace_cmd.h"
#include "view_cmd.h"

struct serve_args {
    const char *title;
    uint64_t port;
    bool is_live, is_url_only;
    char names[256];
};

/* One log that may grow. */
struct source {
    struct view_opts opts;
    int64_t bytes;    /* when it was read last */
    uint64_t next_ns; /* not before that */
};

struct live {
    struct source source[VIEW_MAX_PACKS];
};

static int64_t file_bytes(const char *path)
{
    struct stat sb;

    return stat(path, &sb) == 0 ? (int64_t)sb.st_size : -1;
}

/* A quarter of the time at most, once per second at most. */
static void pace(struct source *x, uint64_t begin_ns)
{
    const uint64_t now = heddle_clock_ns(), took = now - begin_ns;

    x->next_ns =
        now + (3 * took > HEDDLE_NS_PER_S ? 3 * took : HEDDLE_NS_PER_S);
}

static int load(struct cli *c, struct source *x, struct view_pack **out)
{
    const uint64_t begin = heddle_clock_ns();
    int rc;

    x->bytes = file_bytes(x->opts.file);
    x->opts.generation++;
    rc = view_load(c, &x->opts, out);
    pace(x, begin);
    return rc;
}

/* The same without sentences: what could not be read is tried again later. */
static void reload(struct source *x, struct view_pack **next)
{
    const uint64_t begin = heddle_clock_ns();
    struct view_pack *pack = NULL;
    heddle_log *log = NULL;

    x->bytes = file_bytes(x->opts.file);
    if (heddle_log_open(x->opts.file, NULL, &log) == HEDDLE_OK) {
        x->opts.generation++;
        if (view_pack_create(log, &x->opts, &pack) == HEDDLE_OK) {
            view_pack_unref(*next);
            *next = pack;
        }
        heddle_log_close(log);
    }
    pace(x, begin);
}

/* A view_tick. */
static void follow(void *user, struct view_site *s)
{
    struct live *l = user;

    for (unsigned i = 0; i < s->npacks; i++) {
        struct source *x = &l->source[i];

        if (heddle_clock_ns() >= x->next_ns &&
            file_bytes(x->opts.file) != x->bytes)
            reload(x, &s->next[i]);
    }
}

static int announce(struct cli *c, const struct view_site *s,
                    const struct serve_args *a)
{
    struct heddle_json j;
    heddle_status st = HEDDLE_OK;
    char url[64];

    snprintf(url, sizeof url, "http://127.0.0.1:%u/", (unsigned)s->port);
    if (c->json) {
        heddle_json_init_file(&j, c->out);
        heddle_json_object(&j);
        heddle_json_key_str(&j, "url", url);
        heddle_json_key_uint(&j, "port", s->port);
        heddle_json_key_int(&j, "pid", getpid());
        heddle_json_key_bool(&j, "live", a->is_live);
        heddle_json_end(&j);
        heddle_json_line(&j);
        st = heddle_json_finish(&j);
        heddle_json_fini(&j);
    } else if (a->is_url_only) {
        fprintf(c->out, "%s\n", url);
    } else {
        fprintf(c->out, "%s is at %s until Ctrl-C\n", a->names, url);
    }
    if (st == HEDDLE_OK && fflush(c->out) != 0)
        st = HEDDLE_EIO;
    return st == HEDDLE_OK ? 0 : cli_output_failed(c, st);
}

/* The page as a string; free it with s->page_len + 1 bytes. */
static int make_page(struct cli *c, struct view_site *s, const char *title)
{
    FILE *f = tmpfile();
    heddle_status st = f == NULL ? HEDDLE_EIO : HEDDLE_OK;
    long n = -1;

    if (st == HEDDLE_OK)
        st = view_page_write(f, title, NULL, 0);
    if (st == HEDDLE_OK && (n = ftell(f)) < 0)
        st = HEDDLE_EIO;
    if (st == HEDDLE_OK) {
        rewind(f);
        s->page = heddle_zalloc(NULL, (size_t)n + 1, 1);
        s->page_len = (size_t)n;
        st = s->page == NULL                               ? HEDDLE_ENOMEM
             : fread(s->page, 1, (size_t)n, f) < (size_t)n ? HEDDLE_EIO
                                                           : HEDDLE_OK;
    }
    if (f != NULL)
        fclose(f);
    return st == HEDDLE_OK ? 0
                           : cli_fail(c, "the page cannot be made: %s",
                                      heddle_status_text(st));
}

static int serve(struct cli *c, struct view_site *s, struct live *l,
                 const struct serve_args *a)
{
    heddle_status st;
    int fd, rc;

    if (view_listen(s, (uint16_t)a->port, &fd) != HEDDLE_OK)
        return cli_fail(c, "port %u of 127.0.0.1 cannot be used: %s",
                        (unsigned)a->port, strerror(errno));
    rc = announce(c, s, a);
    if (rc != 0) {
        close(fd);
        return rc;
    }
    st = view_serve(s, fd, a->is_live ? follow : NULL, l);
    return st == HEDDLE_OK
               ? 0
               : cli_fail(c, "the server ended: %s",
                          st == HEDDLE_EIO ? strerror(errno)
                                           : heddle_status_text(st));
}

static int serve_run(struct cli *c, int argc, char **argv)
{
    struct serve_args a = {0};
    struct cli_args args = {.max = VIEW_MAX_PACKS};
    const struct cli_opt opts[] = {
        {.name = "--port", .kind = CLI_UINT, .out = &a.port, .max = 65535},
        {.name = "--title", .kind = CLI_STRING, .out = &a.title},
        {.name = "--live", .kind = CLI_FLAG, .out = &a.is_live},
        {.name = "--open-url-only", .kind = CLI_FLAG, .out = &a.is_url_only},
        {.name = NULL},
    };
    struct view_site s = {0};
    struct live l = {0};
    int rc = cli_parse(c, "trace serve", argc, argv, opts, &args);

    if (rc == 0 && args.n < 1)
        rc = cli_error(c, "trace serve needs the file of a log");
    s.npacks = rc == 0 ? args.n : 0;
    for (unsigned i = 0; i < s.npacks && rc == 0; i++) {
        l.source[i].opts =
            (struct view_opts){.file = args.operand[i],
                               .title = a.title,
                               .npacks = args.n,
                               .is_live = a.is_live,
                               .bounds = a.is_live ? NULL : view_bounds};
        rc = load(c, &l.source[i], &s.pack[i]);
    }
    view_title(a.names, sizeof a.names, args.operand, args.n);
    if (rc == 0)
        rc = make_page(c, &s, a.title != NULL ? a.title : a.names);
    if (rc == 0)
        rc = serve(c, &s, &l, &a);
    for (unsigned i = 0; i < VIEW_MAX_PACKS; i++) {
        view_pack_unref(s.pack[i]);
        view_pack_unref(s.next[i]);
    }
    if (s.page != NULL)
        heddle_free(NULL, s.page, s.page_len + 1);
    return rc;
}

const struct heddle_cmd heddle_trace_verb_serve = {
    .name = "serve",
    .help = "show the log in a browser, over loopback",
    .usage =
        "heddle trace serve LOG [LOG2] [--port P] [--live] [--title T]\n"
        "                   [--open-url-only] [--json]\n"
        "\n"
        "  LOG2             a second run, side by side with the first\n"
        "  --port P         of 127.0.0.1; default any that is free\n"
        "  --live           follow a log that a running program writes\n"
        "  --title T        instead of the name of the log\n"
        "  --open-url-only  print the address and nothing else\n"
        "  --json           the address as one JSON object\n"
        "\n"
        "Prints the address and serves until Ctrl-C. Nobody outside of this\n"
        "machine can connect.\n",
    .run = serve_run,
};
