/* SPDX-License-Identifier: BSD-3-Clause */
/* common/progress: how far the tasks of a run are. */
#include "common/progress.h"

#include <inttypes.h>
#include <unistd.h>

void progress_begin(struct progress *p, const struct cli *c, bool is_wanted, uint64_t total)
{
    *p = (struct progress){.out = c->out,
                           .is_on = !c->json && is_wanted,
                           .is_terminal = isatty(fileno(c->out)) == 1,
                           .total = total};
}

static void progress_bar(struct progress *p, unsigned percent, uint64_t done)
{
    char bar[41];

    for (unsigned i = 0; i < 40; i++)
        bar[i] = i < percent * 40 / 100 ? '#' : '.';
    bar[40] = '\0';
    fprintf(p->out, "\r  [%s] %3u %%  %" PRIu64 " of %" PRIu64 " tasks", bar, percent, done,
            p->total);
    fflush(p->out);
}

void progress_tick(void *user, uint64_t done)
{
    struct progress *p = user;
    const unsigned percent = p->total == 0 ? 100 : (unsigned)(100 * done / p->total);

    if (!p->is_on || percent <= p->shown)
        return;
    if (p->is_terminal) {
        progress_bar(p, percent, done);
        p->shown = percent;
    } else if (percent / 25 > p->shown / 25) {
        fprintf(p->out, "  %u %% of the tasks done\n", percent / 25 * 25);
        fflush(p->out);
        p->shown = percent;
    }
}

void progress_line(struct progress *p, const char *text)
{
    if (!p->is_on || !p->is_terminal)
        return;
    fprintf(p->out, "\r  %-70s", text);
    fflush(p->out);
}

void progress_end(struct progress *p)
{
    if (p->is_on && p->is_terminal)
        fputc('\n', p->out);
}
