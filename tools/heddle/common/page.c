/* SPDX-License-Identifier: BSD-3-Clause */
/* common/page: the style of pages, and texts in them. */
#include "common/page.h"

const char page_head[] =
    "<meta name=viewport content=\"width=device-width\">\n<style>\n"
    ":root{--bg:#fff;--fg:#222;--dim:#666;--grid:#e2e2e2;--keep:#0b62a4;"
    "--again:#c8501e;--move:#1a7f4b;--line:#c2185b;--fill:#0b62a433}\n"
    "@media (prefers-color-scheme:dark){:root{--bg:#16181c;--fg:#e6e6e6;"
    "--dim:#a0a4aa;--grid:#33363c;--keep:#5eb1ef;--again:#ff9462;"
    "--move:#5fce94;--line:#ff80ab;--fill:#5eb1ef33}}\n"
    "body{background:var(--bg);color:var(--fg);font:14px system-ui,sans-serif;"
    "max-width:1100px;margin:1em auto;padding:0 1em}\n"
    "h1{font-size:20px}h2{font-size:16px;margin-top:1.6em}\n"
    "svg{width:100%;height:auto}text{fill:var(--fg);font-size:12px}"
    ".dim{fill:var(--dim);color:var(--dim)}\n"
    ".keep{fill:var(--keep)}.again{fill:var(--again)}.move{fill:var(--move)}"
    ".box{fill:var(--keep);fill-opacity:.55;stroke:var(--bg);"
    "stroke-width:.4}.box.again{fill:var(--again)}.box.move{fill:var(--move)}\n"
    ".mem{fill:var(--fill);stroke:var(--keep)}.budget{stroke:var(--line);"
    "stroke-dasharray:6 4}.grid{stroke:var(--grid)}\n"
    ".curve{fill:none;stroke:var(--keep);stroke-width:1.6}"
    ".bound{fill:none;stroke:var(--dim);stroke-dasharray:3 3}\n"
    "table{border-collapse:collapse}td,th{padding:2px 12px 2px 0;"
    "text-align:right}td:first-child,th:first-child{text-align:left}\n"
    "</style>\n";

void page_text(FILE *f, const char *s)
{
    for (; *s != '\0'; s++) {
        if (*s == '<')
            fputs("&lt;", f);
        else if (*s == '>')
            fputs("&gt;", f);
        else if (*s == '&')
            fputs("&amp;", f);
        else if (*s == '"')
            fputs("&quot;", f);
        else if ((unsigned char)*s < 32 || *s == 127)
            fputc('?', f);
        else
            fputc(*s, f);
    }
}
