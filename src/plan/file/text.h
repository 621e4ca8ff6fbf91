/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PLAN_FILE_TEXT_H
#define HEDDLE_PLAN_FILE_TEXT_H

/*
 * Private to the readers: a file as lines and words, growing arrays, and
 * sentences with file and line.
 */
#include "plan/graph/graph.h"

struct heddle_plan_text {
    const struct heddle_plan_opts *o; /* complete */
    const char *path;                 /* borrowed, for sentences */
    char *text;                       /* text[len] == 0; words end in zeros */
    size_t len;
    size_t next;       /* where the next line begins */
    char *rest;        /* of the line at hand */
    char *word;        /* the latest */
    uint32_t line;     /* from 1 */
    bool has_comments; /* '#' at the beginning of a word ends a line */
};

HEDDLE_MUST_USE heddle_status heddle_plan_text_open(struct heddle_plan_text *t, const char *path,
                                                    const struct heddle_plan_opts *o);
void heddle_plan_text_close(struct heddle_plan_text *t);

/* To the next line that has a word; t->word is its first. HEDDLE_AGAIN: there is
 * none. HEDDLE_EFORMAT: not text. */
HEDDLE_MUST_USE heddle_status heddle_plan_text_line(struct heddle_plan_text *t);
/* The next word of this line, NULL: none. */
char *heddle_plan_text_word(struct heddle_plan_text *t);
/* HEDDLE_EFORMAT when the line has another word. */
HEDDLE_MUST_USE heddle_status heddle_plan_text_end(struct heddle_plan_text *t);

/* "path:line: sentence"; returns HEDDLE_EFORMAT. */
#define HEDDLE_PLAN_TEXT_BAD(t, ...)                                                               \
    heddle_why_line((t)->o->why, (t)->o->why_bytes, (t)->path, (t)->line, __VA_ARGS__)

/* A word (NULL: it is missing) as a number; `what` names it in the sentence. */
HEDDLE_MUST_USE heddle_status heddle_plan_text_u32(const struct heddle_plan_text *t,
                                                   const char *word, const char *what, uint32_t max,
                                                   uint32_t *out);
HEDDLE_MUST_USE heddle_status heddle_plan_text_bytes(const struct heddle_plan_text *t,
                                                     const char *word, const char *what,
                                                     uint64_t *out);
/* Finite, >= 0. */
HEDDLE_MUST_USE heddle_status heddle_plan_text_time(const struct heddle_plan_text *t,
                                                    const char *word, const char *what,
                                                    double *out);
/* Splits "key=value"; NULL: there is no '='. */
char *heddle_plan_text_value(char *word);

/* An array that grows; `elem` is set before. */
struct heddle_plan_vec {
    void *p;
    size_t n, cap, elem;
};
/* A new zeroed element at the end; NULL: no memory. */
void *heddle_plan_vec_add(struct heddle_plan_vec *v, const struct heddle_allocator *a);
void heddle_plan_vec_fini(struct heddle_plan_vec *v, const struct heddle_allocator *a);

/* --- the parts of our format ------------------------------------------------ */

#define HEDDLE_PLAN_GRAPH_MAGIC   "heddle-plan-graph"
#define HEDDLE_PLAN_MACHINE_MAGIC "heddle-plan-machine"
#define HEDDLE_PLAN_MAGIC         "heddle-plan"

/* Reads "MAGIC 1" at the line at hand. */
HEDDLE_MUST_USE heddle_status heddle_plan_text_magic(struct heddle_plan_text *t, const char *magic);

/* What a graph is put together from; line numbers of ops and values (none: value i
 * is on the line of op i). */
struct heddle_plan_parts {
    struct heddle_plan_vec ops, values, inputs, op_line, value_line;
    const char *name;
    double unit_s;
};
void heddle_plan_parts_init(struct heddle_plan_parts *p);
void heddle_plan_parts_fini(struct heddle_plan_parts *p, const struct heddle_allocator *a);
/* Checks, with the line in the sentence, and makes the graph. */
HEDDLE_MUST_USE heddle_status heddle_plan_parts_make(const struct heddle_plan_text *t,
                                                     const struct heddle_plan_parts *p,
                                                     struct heddle_plan_graph **out);

/* read_graph.c, read_dag.c, read_chain.c: behind the first line, up to its `end` or the
 * end of the file. */
HEDDLE_MUST_USE heddle_status heddle_plan_read_native(struct heddle_plan_text *t,
                                                      struct heddle_plan_graph **out);
/* t->word is the first word of the file. */
HEDDLE_MUST_USE heddle_status heddle_plan_read_dag(struct heddle_plan_text *t,
                                                   struct heddle_plan_graph **out);
HEDDLE_MUST_USE heddle_status heddle_plan_read_chain(struct heddle_plan_text *t,
                                                     struct heddle_plan_graph **out);
/* machine.c: behind the first line, to `end` (or, unless it must be there, the
 * end of the file). */
HEDDLE_MUST_USE heddle_status heddle_plan_read_machine(struct heddle_plan_text *t, double unit_s,
                                                       bool must_end,
                                                       struct heddle_plan_machine *out);

#endif /* HEDDLE_PLAN_FILE_TEXT_H */
