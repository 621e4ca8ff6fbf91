/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace serve: the page of a log on loopback, for logs that are large or still
 * grow.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/json.h"
#include "trace/view/source.h"

struct serve_args {
    const char *title, *energy_file;
    uint64_t port;
    bool is_live, is_url_only;
    char names[256];
};

/* A view_tick. */
static void follow(void *user, struct view_site *s)
{
    struct view_source *x = user;

    for (unsigned i = 0; i < s->npacks; i++)
        view_source_tick(&x[i], &s->next[i]);
}

static int announce(struct cli *c, const struct view_site *s, const struct serve_args *a)
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
    return st == HEDDLE_OK ? 0 : cli_fail(c, "the page cannot be made: %s", heddle_status_text(st));
}

static int serve(struct cli *c, struct view_site *s, struct view_source *x,
                 const struct serve_args *a)
{
    heddle_status st;
    int fd, rc;

    if (view_listen(s, (uint16_t)a->port, &fd) != HEDDLE_OK)
        return cli_fail(c, "port %u of 127.0.0.1 cannot be used: %s", (unsigned)a->port,
                        strerror(errno));
    rc = announce(c, s, a);
    if (rc != 0) {
        close(fd);
        return rc;
    }
    st = view_serve(s, fd, follow, x);
    return st == HEDDLE_OK ? 0
                           : cli_fail(c, "the server ended: %s",
                                      st == HEDDLE_EIO ? strerror(errno) : heddle_status_text(st));
}

static int serve_run(struct cli *c, int argc, char **argv)
{
    struct serve_args a = {0};
    struct cli_args args = {.max = VIEW_MAX_PACKS};
    const struct cli_opt opts[] = {
        {.name = "--port", .kind = CLI_UINT, .out = &a.port, .max = 65535},
        {.name = "--title", .kind = CLI_STRING, .out = &a.title},
        {.name = "--energy-model", .kind = CLI_STRING, .out = &a.energy_file},
        {.name = "--live", .kind = CLI_FLAG, .out = &a.is_live},
        {.name = "--open-url-only", .kind = CLI_FLAG, .out = &a.is_url_only},
        {.name = NULL},
    };
    struct view_site s = {0};
    struct view_source x[VIEW_MAX_PACKS] = {0};
    heddle_energy *energy = NULL;
    bool is_busy = false;
    int rc = cli_parse(c, "trace serve", argc, argv, opts, &args);

    if (rc == 0 && args.n < 1)
        rc = cli_error(c, "trace serve needs the file of a log");
    if (rc == 0)
        rc = view_energy_open(c, a.energy_file, &energy);
    s.npacks = rc == 0 ? args.n : 0;
    for (unsigned i = 0; i < s.npacks && rc == 0; i++) {
        x[i].file = args.operand[i];
        x[i].title = a.title;
        x[i].npacks = args.n;
        x[i].is_live = a.is_live;
        x[i].energy = energy;
        x[i].energy_file = a.energy_file;
        rc = view_source_open(c, &x[i], &s.pack[i]);
    }
    view_title(a.names, sizeof a.names, args.operand, args.n);
    if (rc == 0)
        rc = make_page(c, &s, a.title != NULL ? a.title : a.names);
    if (rc == 0)
        rc = serve(c, &s, x, &a);
    for (unsigned i = 0; i < VIEW_MAX_PACKS; i++) {
        is_busy |= !view_source_close(&x[i]);
        view_pack_unref(s.pack[i]);
        view_pack_unref(s.next[i]);
    }
    if (s.page != NULL)
        heddle_free(NULL, s.page, s.page_len + 1);
    if (is_busy) { /* no request waits for an explanation any more */
        fflush(NULL);
        _exit(rc);
    }
    heddle_energy_destroy(energy);
    return rc;
}

const struct heddle_cmd heddle_trace_verb_serve = {
    .name = "serve",
    .help = "show the log in a browser, over loopback",
    .usage = "heddle trace serve LOG [LOG2] [--port P] [--live] [--title T]\n"
             "                   [--energy-model FILE] [--open-url-only] [--json]\n"
             "\n"
             "  LOG2             a second run, side by side with the first\n"
             "  --port P         of 127.0.0.1; default any that is free\n"
             "  --live           follow a log that a running program writes\n"
             "  --title T        instead of the name of the log\n"
             "  --energy-model   what kernels draw, for joules per kernel\n"
             "  --open-url-only  print the address and nothing else\n"
             "  --json           the address as one JSON object\n"
             "\n"
             "Prints the address and serves until Ctrl-C. Nobody outside of this\n"
             "machine can connect.\n",
    .run = serve_run,
};
