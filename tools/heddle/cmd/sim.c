/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim: any program of Heddle in virtual time.
 *
 * How        a context takes what its program leaves open from the environment:
 *            so the program is started with HEDDLE_MACHINE and the like set, in
 *            place of this process. Its exit status is the program's. Contexts say
 *            on stderr what time has passed (HEDDLE_MESSAGES).
 * From a log instead of a program there is the log of a run: see sim/from_log.h.
 * Energy     with an energy model the program is a child, and its log is read
 *            afterwards.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "common/output.h"
#include "heddle/heddle.h"
#include "heddle/machine.h"
#include "sim/energy.h"
#include "sim/from_log.h"
#include "sim/opts.h"

extern const struct heddle_cmd heddle_cmd_sim; /* at the end */

enum { NOT_STARTED = 127 }; /* exit status, as a shell has it */

struct sim {
    struct cli *c;
    const char *machine, *policy, *faults, *devices, *log;
    const char *model, *weight, *slack, *caps;
    bool execute;
    heddle_energy *energy; /* the model, when it was given */
    char own_log[4096];    /* the file of a log that nobody asked for */
};

static int set(struct sim *s, const char *name, const char *value)
{
    if (value != NULL && setenv(name, value, 1) != 0)
        return cli_fail(s->c, "%s cannot be set: %s", name, strerror(errno));
    return 0;
}

/* A machine that makes no sense is better refused here than by the program. */
static int check_machine(struct sim *s)
{
    const char *source = s->machine;
    char why[320] = "";
    heddle_machine *m = NULL;

    if (source == NULL)
        source = getenv("HEDDLE_MACHINE");
    if (source == NULL || source[0] == '\0')
        return cli_error(s->c, "sim needs a --machine, or HEDDLE_MACHINE");
    if (heddle_machine_open(source, &m, why, sizeof(why)) != HEDDLE_OK)
        return cli_fail(s->c, "%s", why);
    heddle_machine_close(m);
    return 0;
}

/* So is a model. */
static int check_model(struct sim *s)
{
    char why[320] = "";

    if (s->model == NULL) {
        if (s->weight != NULL || s->slack != NULL || s->caps != NULL)
            return cli_error(s->c, "--energy-weight, --energy-slack and "
                                   "--power-cap need an --energy-model");
        return 0;
    }
    if (heddle_energy_read(NULL, s->model, &s->energy, why, sizeof(why)) != HEDDLE_OK)
        return cli_fail(s->c, "%s", why);
    return 0;
}

/* The log that joules are read from. */
static int make_log(struct sim *s)
{
    const char *tmp = getenv("TMPDIR");
    int fd;

    if (s->log != NULL)
        return 0;
    snprintf(s->own_log, sizeof(s->own_log), "%s/heddle-sim-XXXXXX",
             tmp != NULL && tmp[0] != '\0' ? tmp : "/tmp");
    fd = mkstemp(s->own_log);
    if (fd < 0) {
        const int rc = cli_fail(s->c, "%s cannot be made: %s", s->own_log, strerror(errno));

        s->own_log[0] = '\0';
        return rc;
    }
    close(fd);
    s->log = s->own_log;
    return 0;
}

/* Did a context write it? */
static bool has_log(const struct sim *s)
{
    struct stat info;

    return stat(s->log, &info) == 0 && info.st_size > 0;
}

struct probe {
    char why[320];
};

static void keep_sentence(void *user, enum heddle_severity severity, const char *text)
{
    struct probe *p = user;

    if (severity == HEDDLE_ERROR)
        snprintf(p->why, sizeof(p->why), "%s", text);
}

/* What contexts will refuse is better said here as well: with the environment as it
 * is now. */
static int check_options(struct sim *s)
{
    struct probe p = {""};
    const struct heddle_ctx_opts o = {
        .size = sizeof(o), .log = HEDDLE_OFF, .message = keep_sentence, .message_user = &p};
    heddle_ctx *ctx = NULL;
    const heddle_status st = heddle_ctx_create(&o, &ctx);

    (void)heddle_ctx_destroy(ctx);
    if (st == HEDDLE_OK)
        return 0;
    return cli_fail(s->c, "%s", p.why[0] != '\0' ? p.why : heddle_status_text(st));
}

static int start_here(struct sim *s, char **argv)
{
    (void)signal(SIGXFSZ, SIG_DFL); /* main() ignores it */
    execvp(argv[0], argv);
    return cli_fail(s->c, "'%s' cannot be started: %s", argv[0], strerror(errno));
}

/* Waits for it; the exit status. */
static int start_child(struct sim *s, char **argv)
{
    const pid_t pid = fork();
    int status = 0;

    if (pid < 0)
        return cli_fail(s->c, "no process can be started: %s", strerror(errno));
    if (pid == 0) {
        (void)start_here(s, argv);
        fflush(s->c->err);
        _exit(NOT_STARTED);
    }
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return cli_fail(s->c, "the program cannot be waited for: %s", strerror(errno));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int start(struct sim *s, char **argv)
{
    int rc = check_machine(s);

    if (rc == 0)
        rc = check_model(s);
    if (rc == 0)
        rc = set(s, "HEDDLE_ENERGY_MODEL", s->model);
    if (rc == 0)
        rc = set(s, "HEDDLE_ENERGY_WEIGHT", s->weight);
    if (rc == 0)
        rc = set(s, "HEDDLE_ENERGY_SLACK", s->slack);
    if (rc == 0)
        rc = set(s, "HEDDLE_POWER_CAP", s->caps);

    if (rc == 0)
        rc = set(s, "HEDDLE_MACHINE", s->machine);
    if (rc == 0)
        rc = set(s, "HEDDLE_SCHED", s->policy);
    if (rc == 0)
        rc = set(s, "HEDDLE_FAULTS", s->faults);
    if (rc == 0)
        rc = set(s, "HEDDLE_DEVICES", s->devices);
    if (rc == 0 && s->energy != NULL)
        rc = check_options(s);
    if (rc == 0 && s->energy != NULL)
        rc = make_log(s);
    if (rc == 0)
        rc = set(s, "HEDDLE_LOG_FILE", s->log);
    if (rc == 0 && s->log != NULL)
        rc = set(s, "HEDDLE_LOG_LEVEL", "1");
    if (rc == 0 && s->execute)
        rc = set(s, "HEDDLE_EXECUTE", "on");
    if (rc == 0 && s->energy == NULL && getenv("HEDDLE_MESSAGES") == NULL)
        rc = set(s, "HEDDLE_MESSAGES", "stderr");
    if (rc != 0)
        return rc;
    fflush(s->c->out);
    if (s->energy == NULL)
        return start_here(s, argv);
    rc = start_child(s, argv);
    if (!has_log(s)) /* or it has said why */
        return rc != 0 ? rc
                       : cli_fail(s->c, "the program ran no context that takes "
                                        "its options from the environment");
    return sim_energy_print(s->c, s->log, s->energy) != 0 && rc == 0 ? 1 : rc;
}

/* The log of a run instead of a program. */
static int convert(struct sim *s, const char *log, const char *out, bool has_program)
{
    if (has_program || s->machine != NULL || s->policy != NULL || s->log != NULL)
        return cli_error(s->c, "--from-log makes a machine of a run: it takes no program, and no "
                               "option but -o");
    if (s->c->json)
        return cli_error(s->c, "--from-log writes a machine file, which is not JSON");
    return sim_from_log(s->c, log, out);
}

static int sim_run(struct cli *c, int argc, char **argv)
{
    struct sim s = {.c = c};
    const char *from = NULL, *out = NULL;
    const struct cli_opt opts[] = {{"--machine", CLI_INPUT, &s.machine, 0, 0},
                                   {"--policy", CLI_STRING, &s.policy, 0, 0},
                                   {"--faults", CLI_STRING, &s.faults, 0, 0},
                                   {"--devices", CLI_STRING, &s.devices, 0, 0},
                                   {"--log", CLI_OUTPUT, &s.log, 0, 0},
                                   {"--execute", CLI_FLAG, &s.execute, 0, 0},
                                   {"--from-log", CLI_INPUT, &from, 0, 0},
                                   {"-o", CLI_OUTPUT, &out, 0, 0},
                                   {"--energy-model", CLI_INPUT, &s.model, 0, 0},
                                   {"--energy-weight", CLI_STRING, &s.weight, 0, 0},
                                   {"--energy-slack", CLI_STRING, &s.slack, 0, 0},
                                   {"--power-cap", CLI_STRING, &s.caps, 0, 0},
                                   {0}};
    int n = 1, rc;

    while (n < argc && strcmp(argv[n], "--") != 0)
        n++;
    if (cli_wants_help(n, argv)) /* behind "--" it is the program's */
        return cli_usage(c, "heddle", &heddle_cmd_sim);
    rc = cli_parse(c, "sim", n, argv, opts, NULL);
    if (rc == 0)
        rc = sim_check_policy(c, s.policy);
    if (rc != 0)
        return rc;
    if (from != NULL)
        return convert(&s, from, out, n < argc);
    if (out != NULL)
        return cli_error(c, "-o goes with --from-log");
    if (n + 1 >= argc)
        return cli_error(c, "sim needs a program behind '--'");
    for (int i = n + 1; i < argc && s.log != NULL && rc == 0; i++)
        rc = output_check_input(c, s.log, argv[i]);
    if (rc == 0 && s.log != NULL && getenv("HEDDLE_MACHINE") != NULL)
        rc = output_check_input(c, s.log, getenv("HEDDLE_MACHINE"));
    if (rc != 0)
        return rc;
    if (c->json && s.model == NULL)
        return cli_error(c, "sim prints nothing itself: give --json to the "
                            "program, behind '--'");
    rc = start(&s, argv + n + 1);
    heddle_energy_destroy(s.energy);
    if (s.own_log[0] != '\0')
        unlink(s.own_log);
    return rc;
}

const struct heddle_cmd heddle_cmd_sim = {
    .name = "sim",
    .help = "runs a program in virtual time on a described machine",
    .usage = "heddle sim --machine FILE [--policy P] [--devices LIST] [--faults F]\n"
             "    [--log FILE] [--execute] [--energy-model FILE [--power-cap LIST]\n"
             "    [--energy-weight W | --energy-slack D]] -- PROGRAM [ARGUMENTS]\n"
             "heddle sim --from-log LOG [-o FILE]\n"
             "\n"
             "  --machine  a machine file or starpu:DIR:NAME (default: "
             "HEDDLE_MACHINE)\n"
             "  --policy   scheduler, see 'heddle info'\n"
             "  --devices  of the machine (default: all)\n"
             "  --faults   what shall go wrong, as in 'lose gpu0 at_ms 5'\n"
             "  --log      a log of level 1 goes to FILE\n"
             "  --execute  call the functions of the tasks as well\n"
             "  --from-log a machine file from the log of a run, level 1: classes, links,\n"
             "             times of kernels\n"
             "  --energy-model   what the machine draws, docs/formats/energy.md: "
             "joules\n"
             "                   are printed after the program's output\n"
             "  --power-cap      states of devices, as in cuda0:250W,cuda1:150W\n"
             "  --energy-weight  how much joules count besides time, 0 to 1\n"
             "  --energy-slack   the fewest joules in so much more time, as in 5%\n"
             "Works for programs that take their options from the environment; "
             "--json\n"
             "is the program's, behind '--', but for the joules. The virtual time goes to "
             "stderr.\n",
    .run = sim_run,
    .has_own_help = true,
};
