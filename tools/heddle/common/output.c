/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * common/output: files that a command was asked for.
 *
 * Invariants (1) a target that existed is whole at every moment
 *            (2) what is no plain file is never removed, and an input is never written
 *            (3) after a failure nothing is left that was not there before
 */
#include "common/output.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define OWN ".heddle-XXXXXX" /* the folder, until it is empty again */

/* --- what may be written --------------------------------------------------- */

static bool is_one_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool output_is_same(const char *a, const char *b)
{
    struct stat sa, sb;

    return stat(a, &sa) == 0 && stat(b, &sb) == 0 && is_one_file(&sa, &sb);
}

static bool begins(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

/* Is `path` a name of a descriptor, or of what the standard streams are? */
static bool is_open_already(const char *path, const struct stat *sb)
{
    struct stat std;

    if (begins(path, "/dev/fd/") || begins(path, "/proc/self/fd/") ||
        strcmp(path, "/dev/stdout") == 0 || strcmp(path, "/dev/stderr") == 0)
        return true;
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        if (fstat(fd, &std) == 0 && is_one_file(sb, &std))
            return true;
    return false;
}

static bool is_null_device(const struct stat *sb)
{
    return S_ISCHR(sb->st_mode) && sb->st_rdev == makedev(1, 3);
}

/* A terminal is a character device of the majors that Linux gives to terminals. */
static bool is_terminal(const struct stat *sb)
{
    const unsigned n = major(sb->st_rdev);

    return S_ISCHR(sb->st_mode) && (n == 4 || n == 5 || (n >= 136 && n <= 143));
}

bool output_is_in_place(const char *path)
{
    struct stat sb;

    return stat(path, &sb) == 0 && (S_ISFIFO(sb.st_mode) || is_null_device(&sb) ||
                                    is_terminal(&sb) || is_open_already(path, &sb));
}

int output_check(struct cli *c, const char *name, const char *path)
{
    struct stat sb;

    if (strcmp(path, "-") == 0)
        return cli_error(c, "%s needs the name of a file, or /dev/stdout", name);
    if (stat(path, &sb) == 0) {
        if (S_ISREG(sb.st_mode) || output_is_in_place(path))
            return 0;
        return cli_error(c, "'%s' is %s and is not overwritten", path,
                         S_ISDIR(sb.st_mode) ? "a folder" : "no plain file");
    }
    if (lstat(path, &sb) == 0)
        return cli_error(c, "'%s' is a link that leads nowhere and is not written", path);
    return 0; /* output_begin() says what is in the way */
}

int output_check_input(struct cli *c, const char *path, const char *input)
{
    struct stat sb;

    if (!output_is_same(path, input))
        return 0;
    if (stat(path, &sb) == 0 && !S_ISREG(sb.st_mode))
        return 0; /* a terminal or a pipe has two ends */
    return cli_error(c, "'%s' is an input and would be overwritten", path);
}

/* --- writing --------------------------------------------------------------- */

static int cannot_write(const struct output *o, int e)
{
    return cli_fail(o->c, "the file '%s' cannot be written: %s", o->path,
                    strerror(e != 0 ? e : EIO));
}

/* A folder beside the target, or among temporary files, and in it a file with the
 * target's own name: a library that looks at the name, or writes parts next to it, finds
 * what it expects. */
static bool make_folder(struct output *o)
{
    const char *slash = strrchr(o->target, '/'), *tmp = getenv("TMPDIR");
    const char *name = slash != NULL ? slash + 1 : o->target;
    const int dir = (int)(name - o->target);
    int n;

    if (tmp == NULL || tmp[0] == '\0')
        tmp = "/tmp";
    if (o->is_in_place)
        n = snprintf(o->folder, sizeof(o->folder), "%s/" OWN, tmp);
    else
        n = snprintf(o->folder, sizeof(o->folder), "%.*s" OWN, dir, o->target);
    errno = ENAMETOOLONG;
    if (n > 0 && (size_t)n < sizeof(o->folder) && mkdtemp(o->folder) != NULL) {
        n = snprintf(o->at, sizeof(o->at), "%s/%s", o->folder, name);
        if (n > 0 && (size_t)n < sizeof(o->at))
            return true;
        (void)rmdir(o->folder);
        errno = ENAMETOOLONG;
    }
    o->folder[0] = '\0';
    return false;
}

/* 0, or the exit status after a sentence. */
static int look(struct output *o, struct cli *c, const char *path)
{
    struct stat sb;

    *o = (struct output){.c = c, .path = path, .is_in_place = output_is_in_place(path)};
    if (strlen(path) >= sizeof(o->at))
        return cannot_write(o, ENAMETOOLONG);
    snprintf(o->at, sizeof(o->at), "%s", path);
    snprintf(o->target, sizeof(o->target), "%s", path);
    if (o->is_in_place || stat(path, &sb) != 0)
        return 0;
    o->mode = sb.st_mode & 07777;
    if (access(path, W_OK) != 0 || realpath(path, o->target) == NULL)
        return cannot_write(o, errno);
    return 0;
}

int output_begin(struct output *o, struct cli *c, const char *path)
{
    const int rc = look(o, c, path);

    if (rc != 0)
        return rc;
    return make_folder(o) ? 0 : cannot_write(o, errno);
}

/* Each file of the folder: goes to where the target is, or away. Returns 0 or errno. */
static int empty_folder(struct output *o, bool is_kept)
{
    DIR *d = o->folder[0] != '\0' ? opendir(o->folder) : NULL;
    const int dir = (int)(strlen(o->folder) - strlen(OWN));
    char from[2 * PATH_MAX], to[2 * PATH_MAX];
    int failed = 0;

    if (d == NULL)
        return o->folder[0] != '\0' ? errno : 0;
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        snprintf(from, sizeof(from), "%s/%s", o->folder, e->d_name);
        snprintf(to, sizeof(to), "%.*s%s", dir, o->folder, e->d_name);
        if (is_kept && failed == 0 && rename(from, to) != 0)
            failed = errno;
        (void)unlink(from); /* unless it was renamed */
    }
    closedir(d);
    (void)rmdir(o->folder);
    return failed;
}

/* The file that a library wrote goes into a target that stays. Returns 0 or errno. */
static int copy_over(const struct output *o)
{
    FILE *from = fopen(o->at, "re"), *to = from != NULL ? fopen(o->path, "we") : NULL;
    int failed = to == NULL ? errno : 0;
    char part[1 << 16];
    size_t n;

    while (failed == 0 && (n = fread(part, 1, sizeof(part), from)) > 0)
        if (fwrite(part, 1, n, to) != n)
            failed = errno;
    if (failed == 0 && ferror(from) != 0)
        failed = EIO;
    if (from != NULL)
        fclose(from);
    if (to != NULL && fclose(to) != 0 && failed == 0)
        failed = errno;
    return failed;
}

int output_begin_stream(struct output *o, struct cli *c, const char *path)
{
    int rc = look(o, c, path);

    if (rc == 0 && !o->is_in_place && !make_folder(o))
        rc = cannot_write(o, errno);
    if (rc != 0)
        return rc;
    o->f = fopen(o->at, "we");
    if (o->f == NULL) {
        const int e = errno;

        (void)empty_folder(o, false);
        return cannot_write(o, e);
    }
    errno = 0; /* the first write that fails sets it */
    return 0;
}

int output_end(struct output *o, int rc)
{
    int e = 0;

    if (o->f != NULL) {
        e = ferror(o->f) != 0 ? (errno != 0 ? errno : EIO) : 0;
        if (fclose(o->f) != 0 && e == 0)
            e = errno;
    } else if (rc == 0 && o->is_in_place) {
        e = copy_over(o);
    }
    if (rc == 0 && e == 0 && o->mode != 0)
        (void)chmod(o->at, o->mode);
    if (rc != 0 || e != 0 || o->is_in_place)
        (void)empty_folder(o, false);
    else
        e = empty_folder(o, true);
    return rc == 0 && e != 0 ? cannot_write(o, e) : rc;
}

int output_fail(const struct output *o, const char *why)
{
    const char *at = o->folder[0] != '\0' ? strstr(why, o->at) : NULL;

    if (at == NULL)
        return cli_fail(o->c, "%s", why);
    return cli_fail(o->c, "%.*s%s%s", (int)(at - why), why, o->path, at + strlen(o->at));
}
