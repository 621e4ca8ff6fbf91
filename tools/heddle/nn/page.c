/* SPDX-License-Identifier: BSD-3-Clause */
/* nn/page: the page of `heddle nn show`: one file, no script, nothing from elsewhere. */
#include "common/page.h"

#include <string.h>

#include "nn/show.h"

/* Behind the style of all pages. */
static const char page_style[] =
    "<style>body{max-width:none}.graphs{display:flex;gap:24px;align-items:flex-start}"
    ".graphs>div{overflow:auto;max-height:85vh;flex:1;border:1px solid var(--grid);"
    "border-radius:6px;padding:0 8px}"
    "svg.graph text{text-anchor:middle;pointer-events:none;font-size:12px}"
    ".edge{fill:none;stroke:var(--dim);stroke-opacity:.55}"
    "g rect{fill-opacity:.3;stroke-width:1}"
    ".runs rect{fill:var(--keep);stroke:var(--keep)}"
    ".joined rect{fill:var(--move);stroke:var(--move)}"
    ".slow rect{fill:var(--again);stroke:var(--again)}"
    ".none rect{fill:none;stroke:var(--dim);stroke-dasharray:3 3}"
    "g:hover rect{fill-opacity:.7}g:target rect{fill-opacity:.8;stroke-width:3}"
    ".key span{padding:1px 8px;margin-right:8px;border:1px solid var(--grid);border-radius:4px}"
    "td.text{text-align:left}details{margin:.3em 0}</style>\n";

static void page_sums(const struct heddle_nn_view *v, FILE *f)
{
    struct nn_sum s[6];

    nn_sums(v, s);
    fputs("<table><tr><th></th><th>operators</th><th>GFLOP</th><th>moved</th></tr>\n", f);
    for (int i = 0; i < 6; i++)
        if (s[i].n > 0)
            fprintf(f, "<tr><td>%s%s</td><td>%u</td><td>%.3f</td><td>%s</td></tr>\n",
                    i < 5 ? "before: " : "after: ", i < 5 ? nn_fate_text[i] : "tasks", s[i].n,
                    s[i].flops * 1e-9, nn_bytes_text(s[i].bytes).text);
    fputs("</table>\n", f);
}

/* The changes of a pass, those of the same operators together. */
static void page_changes(const struct heddle_nn_view *v, unsigned pass, FILE *f)
{
    fputs("<table><tr><th>what came</th><th>what went</th></tr>\n", f);
    for (unsigned i = 0; i < v->nchanges; i++) {
        const struct heddle_nn_change *x = &v->change[i];

        if (x->pass != pass)
            continue;
        fputs("<tr><td>", f);
        page_text(f, x->made != NULL ? x->made : "the memory of the operand");
        fputs(" ", f);
        page_text(f, x->name != NULL ? x->name : "");
        fputs("</td><td class=text>", f);
        for (unsigned k = 0; k < x->ngone; k++) {
            fputs(k > 0 ? ", " : "", f);
            page_text(f, x->gone[k]);
            fputs(" <span class=dim>", f);
            page_text(f, x->gone_name[k]);
            fputs("</span>", f);
        }
        fputs("</td></tr>\n", f);
    }
    fputs("</table>\n", f);
}

static void page_passes(const struct heddle_nn_view *v, FILE *f)
{
    fputs("<h2>What the passes did</h2>\n", f);
    for (unsigned i = 0; i < v->npasses; i++) {
        fputs("<details><summary><b>", f);
        page_text(f, v->pass[i].name);
        fprintf(f, "</b>: %u changes, %u operators went. ", v->pass[i].nchanges, v->pass[i].ngone);
        page_text(f, v->pass[i].what);
        fputs("</summary>\n", f);
        if (v->pass[i].nchanges > 0)
            page_changes(v, i, f);
        fputs("</details>\n", f);
    }
}

bool nn_page_write(const struct heddle_nn_view *v, const char *model, FILE *f)
{
    bool is_good;

    fputs("<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8>\n<title>", f);
    page_text(f, model);
    fprintf(f, "</title>\n%s%s</head><body>\n<h1>", page_head, page_style);
    page_text(f, model);
    fputs("</h1>\n", f);
    page_sums(v, f);
    fprintf(f, "<p>Activations of a request take %s; no plan needs less than %s.</p>\n",
            nn_bytes_text((double)v->arena_bytes).text, nn_bytes_text((double)v->peak_bytes).text);
    page_passes(v, f);
    fputs("<h2>Before and after</h2>\n"
          "<p class=key>Point at an operator for its shapes, bytes and work; a click on one before "
          "leads to the task that does its work. <span style=\"border-color:var(--keep)\">runs by "
          "itself</span><span style=\"border-color:var(--move)\">joined</span>"
          "<span style=\"border-color:var(--again)\">reference kernel</span>"
          "<span style=\"border-style:dashed\">no work</span> Constants are not drawn.</p>\n"
          "<div class=graphs><div>\n",
          f);
    is_good = nn_draw(v, false, f);
    fputs("</div><div>\n", f);
    is_good = is_good && nn_draw(v, true, f);
    fputs("</div></div>\n</body></html>\n", f);
    return is_good;
}
