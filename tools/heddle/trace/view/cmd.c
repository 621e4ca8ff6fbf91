/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace/view/cmd: from the names of files to packs and pages, with sentences.
 */
#include "trace/view/cmd.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "common/output.h"
#include "trace/cmd.h"

int view_load(struct cli *c, const struct view_opts *o, struct view_pack **out)
{
    const struct cli_args args = {.operand = {o->file}, .n = 1, .max = 1};
    heddle_log *log = NULL;
    heddle_status st;
    int rc = trace_open(c, "view", &args, &log);

    if (rc != 0)
        return rc;
    st = view_pack_bounded(log, o, out);
    if (st != HEDDLE_OK)
        rc = cli_fail(c, "%s: %s", o->file, heddle_status_text(st));
    else if (!o->is_live) /* one that is being written is never whole */
        trace_warn_partial(c, o->file, log);
    heddle_log_close(log);
    return rc;
}

int view_energy_open(struct cli *c, const char *file, heddle_energy **out)
{
    char why[512] = "";

    *out = NULL;
    if (file == NULL || heddle_energy_read(NULL, file, out, why, sizeof why) == HEDDLE_OK)
        return 0;
    return cli_fail(c, "%s", why);
}

int view_save(struct cli *c, const char *file, const char *title, struct view_pack *const *packs,
              unsigned n)
{
    struct output o;
    heddle_status st;
    int rc = output_begin_stream(&o, c, file);

    if (rc != 0)
        return rc;
    st = view_page_write(o.f, title, packs, n);
    if (st != HEDDLE_OK && st != HEDDLE_EIO) /* of the stream: output_end() says why */
        rc = cli_fail(c, "the page '%s' cannot be written: %s", file, heddle_status_text(st));
    return output_end(&o, rc);
}

void view_title(char *buf, size_t bytes, const char *const *logs, unsigned n)
{
    struct heddle_text t;

    heddle_text_init(&t, buf, bytes);
    for (unsigned i = 0; i < n; i++) {
        const char *slash = strrchr(logs[i], '/');

        if (i > 0)
            heddle_text_str(&t, " and ");
        heddle_text_str(&t, slash != NULL ? slash + 1 : logs[i]);
    }
}
