/* SPDX-License-Identifier: BSD-3-Clause */
/* child: see child.h. */
#include "bench/serve/child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json_in.h"
#include "base/why.h"

enum { MAX_ARGS = 32, START_MS = 30000, STOP_S = 30, LINE_BYTES = 512 };

/* It ends with this process, however this process ends. */
static heddle_status spawn(struct child *k, char *const *argv, int out)
{
    char self[4096];
    const ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
    const pid_t parent = getpid();

    if (len <= 0)
        return HEDDLE_EIO;
    self[len] = '\0';
    k->pid = fork();
    if (k->pid == 0) {
        if (prctl(PR_SET_PDEATHSIG, (unsigned long)SIGTERM, 0ul, 0ul, 0ul) == 0 &&
            getppid() == parent && dup2(out, STDOUT_FILENO) >= 0)
            (void)execv(self, argv);
        _exit(127);
    }
    if (k->pid < 0)
        k->pid = 0;
    return k->pid != 0 ? HEDDLE_OK : HEDDLE_EIO;
}

/* Its first line; false: it ends without one, or says nothing for too long. */
static bool read_line(int fd, char line[LINE_BYTES])
{
    size_t n = 0;

    while (n < LINE_BYTES - 1) {
        struct pollfd p = {.fd = fd, .events = POLLIN};

        if (poll(&p, 1, START_MS) != 1 || read(fd, line + n, 1) != 1)
            return false;
        if (line[n] == '\n') {
            line[n] = '\0';
            return true;
        }
        n++;
    }
    return false;
}

static bool parse_port(const char *line, uint64_t *port)
{
    struct heddle_json_in in;
    struct heddle_json_item item;

    heddle_json_in_init(&in, line, strlen(line));
    while (heddle_json_next(&in, &item) > HEDDLE_JSON_BAD) {
        if (item.kind == HEDDLE_JSON_KEY && heddle_json_is(&item, "port"))
            return heddle_json_next(&in, &item) == HEDDLE_JSON_NUMBER &&
                   heddle_json_get_u64(&item, port) == HEDDLE_OK && *port <= UINT16_MAX;
    }
    return false;
}

heddle_status child_start(struct child *k, char *const *argv, char *why, size_t why_bytes)
{
    char *all[MAX_ARGS] = {(char *)"heddle"}, line[LINE_BYTES];
    uint64_t port = 0;
    int pipes[2];
    heddle_status st;

    *k = (struct child){.pid = 0, .out = -1};
    for (size_t i = 0; argv[i] != NULL && i + 2 < MAX_ARGS; i++)
        all[i + 1] = argv[i];
    if (pipe2(pipes, O_CLOEXEC) != 0)
        return heddle_why(why, why_bytes, HEDDLE_EIO, "no pipe: %s", heddle_why_errno(errno));
    st = spawn(k, all, pipes[1]);
    (void)close(pipes[1]);
    k->out = pipes[0];
    if (st == HEDDLE_OK && (!read_line(k->out, line) || !parse_port(line, &port)))
        st = HEDDLE_EIO;
    if (st != HEDDLE_OK) {
        (void)child_stop(k);
        return heddle_why(why, why_bytes, st, "the server '%s' does not start", argv[0]);
    }
    k->at = (struct sockaddr_in){.sin_family = AF_INET,
                                 .sin_port = htons((uint16_t)port),
                                 .sin_addr = {htonl(INADDR_LOOPBACK)}};
    return HEDDLE_OK;
}

int child_stop(struct child *k)
{
    const uint64_t end = heddle_clock_ns() + STOP_S * HEDDLE_NS_PER_S;
    const struct timespec nap = {.tv_nsec = 2000000};
    int status = 0;
    pid_t got = 0;

    if (k->pid == 0)
        return 0;
    (void)kill(k->pid, SIGTERM);
    while ((got = waitpid(k->pid, &status, WNOHANG)) == 0 && heddle_clock_ns() < end)
        (void)nanosleep(&nap, NULL);
    if (got == 0) {
        (void)kill(k->pid, SIGKILL);
        (void)waitpid(k->pid, &status, 0);
    }
    (void)close(k->out);
    *k = (struct child){.pid = 0, .out = -1};
    if (got == 0)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool child_is_alive(const struct child *k)
{
    siginfo_t info = {.si_pid = 0};

    /* It stays for child_stop() to be waited for. */
    return k->pid != 0 && waitid(P_PID, (id_t)k->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == 0;
}

uint64_t child_cpu_ns(const struct child *k)
{
    clockid_t id;

    return k->pid != 0 && clock_getcpuclockid(k->pid, &id) == 0 ? heddle_clock_read(id) : 0;
}

bool child_measure(const struct child *k, uint64_t *rss_bytes, uint64_t *files)
{
    unsigned long long pages = 0;
    char path[64];
    FILE *f;
    DIR *d;
    bool is_good;

    (void)snprintf(path, sizeof(path), "/proc/%d/statm", (int)k->pid);
    f = fopen(path, "re");
    if (f == NULL)
        return false;
    is_good = fscanf(f, "%*u %llu", &pages) == 1;
    (void)fclose(f);
    *rss_bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    (void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)k->pid);
    d = opendir(path);
    if (d == NULL)
        return false;
    *files = 0;
    for (const struct dirent *e = readdir(d); e != NULL; e = readdir(d))
        *files += e->d_name[0] != '.';
    (void)closedir(d);
    return is_good;
}
