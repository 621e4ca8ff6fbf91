/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * serve: networks behind HTTP.
 *
 * Purpose    KServe's protocol version 2 for ONNX files; see serve/server.h.
 * Signals    are blocked before the first thread starts and waited for by the main thread:
 *            SIGTERM and SIGINT answer what has come and end, a second one ends at once;
 *            SIGHUP changes nothing, so that a server outlives its terminal.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/why.h"
#include "cmd/cmd.h"
#include "heddle/heddle.h"
#include "serve/net.h"
#include "serve/server.h"

extern const struct heddle_cmd heddle_cmd_serve; /* at the end */

struct serve {
    struct cli *c;
    const char *address, *devices;
    uint64_t port, workers, max_batch, max_queue, max_running, max_body, max_connections, idle,
        spin, max_held, max_sequences, max_cache;
    heddle_ctx *ctx;
    size_t nworkers, nmodels;
    char name[CLI_OPERANDS][KSERVE_MAX_NAME];
    const char *path[CLI_OPERANDS];
};

/* "NAME=FILE", or a file whose name gives the model's. */
static int take_model(struct serve *s, const char *operand)
{
    const char *is = strchr(operand, '='), *slash = strrchr(operand, '/');
    const char *from = is != NULL ? operand : slash != NULL ? slash + 1 : operand;
    size_t n = is != NULL ? (size_t)(is - operand) : strlen(from);
    char *name = s->name[s->nmodels];

    if (is == NULL && n > 5 && strcmp(from + n - 5, ".onnx") == 0)
        n -= 5;
    if (n == 0 || n >= KSERVE_MAX_NAME)
        return cli_error(s->c, "'%s' gives the model no name", operand);
    memcpy(name, from, n);
    name[n] = '\0';
    s->path[s->nmodels++] = is != NULL ? is + 1 : operand;
    return 0;
}

static struct serve_model *load(void *user, const char *name, struct serve_graveyard *graveyard,
                                char *why, size_t why_bytes)
{
    const struct serve *s = user;
    const struct serve_model_opts o = {.name = name,
                                       .max_queue = (size_t)s->max_queue,
                                       .max_batch = (size_t)s->max_batch,
                                       .max_running = (size_t)s->max_running,
                                       .max_eager = s->nworkers,
                                       .max_sequences = (size_t)s->max_sequences,
                                       .max_cache_bytes = s->max_cache << 20};
    struct serve_model *m = NULL;

    for (size_t i = 0; i < s->nmodels; i++) {
        if (strcmp(s->name[i], name) == 0 &&
            net_open(s->ctx, s->path[i], &o, graveyard, &m, why, why_bytes) == HEDDLE_OK)
            return m;
    }
    return NULL;
}

static void say_ready(const struct serve *s, const struct server *server)
{
    const char *address = s->address != NULL ? s->address : "127.0.0.1";
    const bool is_v6 = strchr(address, ':') != NULL;

    fprintf(s->c->out,
            s->c->json ? "{\"address\":\"%s%s%s\",\"port\":%u}\n"
                       : "serving on http://%s%s%s:%u/v2\n",
            is_v6 ? "[" : "", address, is_v6 ? "]" : "", server_port(server));
    fflush(s->c->out);
}

static int serve_until_signal(struct serve *s, const sigset_t *signals)
{
    char why[400] = "";
    const char *names[CLI_OPERANDS];
    const struct server_opts o = {.address = s->address,
                                  .port = (uint16_t)s->port,
                                  .max_body = (size_t)s->max_body << 20,
                                  .max_held = (size_t)s->max_held << 20,
                                  .max_connections = (unsigned)s->max_connections,
                                  .idle_s = (unsigned)s->idle,
                                  .load = load,
                                  .user = s,
                                  .why = why,
                                  .why_bytes = sizeof(why)};
    struct server *server = NULL;
    int number = 0;

    for (size_t i = 0; i < s->nmodels; i++)
        names[i] = s->name[i];
    if (server_start(&o, names, s->nmodels, &server) != HEDDLE_OK)
        return cli_fail(s->c, "%s", why);
    say_ready(s, server);
    (void)sigwait(signals, &number);
    /* A second signal ends the process, in case a request never ends. */
    (void)pthread_sigmask(SIG_UNBLOCK, signals, NULL);
    server_stop(server);
    return 0;
}

static int serve_in_context(struct serve *s)
{
    /* The main thread waits for signals: it is no worker. */
    const struct heddle_ctx_opts o = {.size = sizeof(o),
                                      .nworkers = (unsigned)s->workers,
                                      .helps = HEDDLE_OFF,
                                      .spin_us = (unsigned)s->spin,
                                      .devices = s->devices};
    struct heddle_ctx_stats stats = {.size = sizeof(stats)};
    sigset_t signals;
    int rc;

    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL); /* threads inherit this */
    (void)signal(SIGHUP, SIG_IGN);
    if (heddle_ctx_create(&o, &s->ctx) != HEDDLE_OK)
        return cli_fail(s->c, "no context can be made");
    s->nworkers = heddle_ctx_get_stats(s->ctx, &stats) == HEDDLE_OK ? stats.nworkers : 1;
    if (s->max_running == 0)
        s->max_running = 2 * s->nworkers;
    rc = serve_until_signal(s, &signals);
    heddle_ctx_destroy(s->ctx);
    return rc;
}

static int serve_run(struct cli *c, int argc, char **argv)
{
    struct serve s = {.c = c,
                      .port = 8000,
                      .max_batch = 8,
                      .max_queue = 256,
                      .max_body = 64,
                      .max_held = 4096,
                      .max_connections = 16384,
                      .max_sequences = 8,
                      .max_cache = 1024,
                      .idle = 60,
                      .spin = 20}; /* the HTTP server and its clients want the cores too */
    const struct cli_opt opts[] = {
        {"--address", CLI_STRING, &s.address, 0, 0},
        {"--port", CLI_UINT, &s.port, 0, 65535},
        {"--workers", CLI_UINT, &s.workers, 1, 4096},
        {"--devices", CLI_STRING, &s.devices, 0, 0},
        {"--max-batch", CLI_UINT, &s.max_batch, 1, 256},
        {"--max-queue", CLI_UINT, &s.max_queue, 1, 1000000},
        {"--max-running", CLI_UINT, &s.max_running, 1, 4096},
        {"--max-sequences", CLI_UINT, &s.max_sequences, 1, 256},
        {"--max-cache", CLI_UINT, &s.max_cache, 1, 1 << 20},
        {"--max-body", CLI_UINT, &s.max_body, 1, 65536},
        {"--max-held", CLI_UINT, &s.max_held, 1, 1 << 30},
        {"--max-connections", CLI_UINT, &s.max_connections, 1, 1000000},
        {"--idle", CLI_UINT, &s.idle, 1, 86400},
        {"--spin", CLI_UINT, &s.spin, 1, 1000000},
        {0},
    };
    struct cli_args args = {.max = CLI_OPERANDS, .are_words = true};
    int rc = cli_parse(c, "serve", argc, argv, opts, &args);

    if (rc != 0)
        return rc;
    if (args.n == 0)
        return cli_error(c, "serve needs a MODEL: an ONNX file");
    for (unsigned i = 0; i < args.n && rc == 0; i++)
        rc = take_model(&s, args.operand[i]);
    return rc != 0 ? rc : serve_in_context(&s);
}

const struct heddle_cmd heddle_cmd_serve = {
    .name = "serve",
    .help = "answers requests over HTTP with networks from ONNX files",
    .usage = "  MODEL ...             ONNX files, or NAME=FILE\n"
             "  --port N              default 8000; 0: the system chooses\n"
             "  --address A           default 127.0.0.1: this machine alone\n"
             "  --workers N           cores\n"
             "  --devices LIST        as HEDDLE_DEVICES\n"
             "  --max-batch N         rows computed together, default 8\n"
             "  --max-queue N         requests that may wait per model, default 256\n"
             "  --max-running N       batches at once per model, default twice the cores\n"
             "  --max-sequences N     of a decoder that generate tokens together, default 8\n"
             "  --max-cache MIB       keys and values of a decoder, default 1024\n"
             "  --max-body MIB        largest request, default 64\n"
             "  --max-held MIB        requests that are read or computed, default 4096\n"
             "  --max-connections N   default 16384\n"
             "  --idle SECONDS        a connection without progress ends, default 60\n"
             "  --spin US             an idle worker looks for work so long, default 20\n"
             "  --json                the address as one JSON object\n"
             "SIGTERM and SIGINT answer what has come, then end the server.\n",
    .run = serve_run,
};
