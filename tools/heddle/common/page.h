/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_COMMON_PAGE_H
#define HEDDLE_TOOLS_COMMON_PAGE_H

/* What pages that the tool writes have in common: HTML with SVG in it, no script,
 * nothing from elsewhere. */
#include <stdio.h>

/* Goes into <head>: the viewport, and a style with light and dark colours. */
extern const char page_head[];

/* A text from outside, so that nothing in it is markup. */
void page_text(FILE *f, const char *s);

#endif /* HEDDLE_TOOLS_COMMON_PAGE_H */
