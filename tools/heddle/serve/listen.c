/* SPDX-License-Identifier: BSD-3-Clause */
/* listen: see listen.h. */
#include "serve/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text.h"
#include "base/why.h"

enum { BACKLOG = 1024, SPARE_FILES = 64 };

unsigned listen_connections(unsigned wanted)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) != 0)
        return wanted;
    if (r.rlim_cur < (rlim_t)wanted + SPARE_FILES) {
        r.rlim_cur =
            r.rlim_max < (rlim_t)wanted + SPARE_FILES ? r.rlim_max : (rlim_t)wanted + SPARE_FILES;
        (void)setrlimit(RLIMIT_NOFILE, &r);
        if (getrlimit(RLIMIT_NOFILE, &r) != 0)
            return wanted;
    }
    if (r.rlim_cur >= (rlim_t)wanted + SPARE_FILES)
        return wanted;
    return r.rlim_cur > 2 * SPARE_FILES ? (unsigned)r.rlim_cur - SPARE_FILES : SPARE_FILES;
}

static int try_listen(const struct addrinfo *a)
{
    const int on = 1;
    const int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);

    if (fd < 0)
        return -1;
    /* Without it a server could not follow its predecessor on the same port at once. */
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, a->ai_addr, a->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0) {
        const int e = errno;

        (void)close(fd);
        errno = e;
        return -1;
    }
    return fd;
}

static uint16_t port_of(int fd)
{
    struct sockaddr_storage a;
    socklen_t len = sizeof(a);

    if (getsockname(fd, (struct sockaddr *)&a, &len) != 0)
        return 0;
    if (a.ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)&a)->sin6_port);
    return ntohs(((const struct sockaddr_in *)&a)->sin_port);
}

heddle_status listen_open(const char *where, uint16_t number, int *fd_out, uint16_t *port_out,
                          char *why, size_t why_bytes)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV | AI_NUMERICHOST};
    const char *address = where != NULL ? where : "127.0.0.1";
    struct addrinfo *found = NULL;
    char port[8];
    struct heddle_text t;
    int e, fd;

    heddle_text_init(&t, port, sizeof(port));
    heddle_text_add(&t, "%u", number);
    e = getaddrinfo(address, port, &hints, &found);
    if (e != 0)
        return heddle_why(why, why_bytes, HEDDLE_EIO, "'%s' is not an address", address);
    fd = try_listen(found);
    e = errno;
    freeaddrinfo(found);
    if (fd < 0)
        return heddle_why(why, why_bytes, HEDDLE_EIO, "cannot listen on %s, port %u: %s", address,
                          number, heddle_why_errno(e));
    *fd_out = fd;
    *port_out = port_of(fd);
    return HEDDLE_OK;
}
