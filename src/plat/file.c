/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file: our own text format, docs/formats/machine.md.
 *
 * Structure   the lines are walked four times, each time for those whose turn it
 *             is: nodes and buses; classes and links, which name them; times,
 *             rates and faults, which name classes; aliases, which name kernels.
 *             So the order of lines is free. Within one turn it is kept.
 * Errors      the first one of the earliest turn, with its line.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/device.h"
#include "base/text.h"
#include "plat/build.h"
#include "plat/read.h"

#define NTURNS 4u

struct reader {
    struct heddle_plat_text *t;
    struct heddle_plat *p;
    unsigned nworkers;
    unsigned version;
    unsigned host_line, overhead_line, name_line;
    unsigned cls_line[HEDDLE_PLAT_MAX_CLASSES];
    unsigned node_line[HEDDLE_PLAT_MAX_NODES];
};

/* A line's "key value" pairs. */
struct key {
    const char *name;
    const char *value; /* NULL: not given */
};

#define BAD(r, ...) HEDDLE_PLAT_TEXT_BAD((r)->t, __VA_ARGS__)
#define ARRAY(x)    (sizeof(x) / sizeof((x)[0]))

static heddle_status take_keys(struct reader *r, unsigned first, struct key *key, size_t nkeys)
{
    const struct heddle_plat_text *t = r->t;

    for (unsigned i = first; i < t->nwords; i += 2) {
        struct key *k = NULL;

        for (size_t j = 0; j < nkeys; j++)
            if (strcmp(key[j].name, t->word[i]) == 0)
                k = &key[j];
        if (k == NULL)
            return BAD(r, "a %s has no %s", t->word[0], t->word[i]);
        if (k->value != NULL)
            return BAD(r, "%s is given twice", k->name);
        if (i + 1 == t->nwords)
            return BAD(r, "%s has no value", k->name);
        k->value = t->word[i + 1];
    }
    return HEDDLE_OK;
}

static heddle_status need_words(struct reader *r, unsigned n, const char *form)
{
    if (r->t->nwords == n)
        return HEDDLE_OK;
    return BAD(r, "the line should be: %s", form);
}

/* A number in (0, 1e15], or from 0 on where 0 is allowed; absent: *out stays. */
static heddle_status take_number(struct reader *r, const struct key *k, bool may_be_zero,
                                 double *out)
{
    double v;

    if (k->value == NULL)
        return HEDDLE_OK;
    if (!heddle_number_finite(k->value, &v) || v < 0 || v > 1e15)
        return BAD(r, "%s %s is no number from 0 to 1e15", k->name, k->value);
    if (!may_be_zero && !(v > 0))
        return BAD(r, "%s %s is not above 0", k->name, k->value);
    *out = v;
    return HEDDLE_OK;
}

static heddle_status take_name(struct reader *r, char *to, size_t cap, const char *from)
{
    if (heddle_plat_set_name(to, cap, from))
        return HEDDLE_OK;
    return BAD(r, "the name %.64s has more than %u letters", from, (unsigned)cap - 1);
}

static heddle_status too_many(struct reader *r, heddle_status st, const char *what, unsigned max)
{
    if (st != HEDDLE_EOVERFLOW)
        return st;
    return BAD(r, "there are more than %u %s", max, what);
}

/* ---- nodes, buses, classes, links ---------------------------------------- */

static heddle_status node_kind(struct reader *r, const struct key *k, struct heddle_plat_node *n)
{
    n->kind = strcmp(n->name, "host") == 0 ? HEDDLE_NODE_HOST : HEDDLE_NODE_DEVICE;
    if (k->value == NULL)
        return HEDDLE_OK;
    if (strcmp(k->value, "host") == 0)
        n->kind = HEDDLE_NODE_HOST;
    else if (strcmp(k->value, "device") == 0)
        n->kind = HEDDLE_NODE_DEVICE;
    else if (strcmp(k->value, "disk") == 0)
        n->kind = HEDDLE_NODE_DISK;
    else
        return BAD(r, "the kind of a node is host, device or disk, not %s", k->value);
    return HEDDLE_OK;
}

static heddle_status line_node(struct reader *r)
{
    struct key key[] = {{"kind", NULL}, {"bytes", NULL}};
    struct heddle_plat_node n = {0};
    int at;

    if (r->t->nwords < 2)
        return BAD(r, "a node needs a name");
    HEDDLE_TRY(take_name(r, n.name, sizeof(n.name), r->t->word[1]));
    HEDDLE_TRY(take_keys(r, 2, key, ARRAY(key)));
    HEDDLE_TRY(node_kind(r, &key[0], &n));
    if (key[1].value != NULL && heddle_parse_size(key[1].value, 0, &n.bytes) != HEDDLE_OK)
        return BAD(r, "bytes %s is no size", key[1].value);
    if (n.kind == HEDDLE_NODE_HOST) {
        if (r->host_line != 0)
            return BAD(r, "the host's memory was described in line %u", r->host_line);
        r->host_line = r->t->line;
    }
    /* The host's own name is free until it is given. */
    at = heddle_plat_find_node(r->p, n.name);
    if (at > 0 || (at == 0 && n.kind != HEDDLE_NODE_HOST))
        return BAD(r, "there is a node %s already", n.name);
    if (n.kind == HEDDLE_NODE_HOST) {
        r->p->node[0] = n;
        return HEDDLE_OK;
    }
    if (r->p->nnodes < HEDDLE_PLAT_MAX_NODES)
        r->node_line[r->p->nnodes] = r->t->line;
    return too_many(r, heddle_plat_add_node(r->p, &n), "nodes", HEDDLE_PLAT_MAX_NODES);
}

static heddle_status line_bus(struct reader *r)
{
    struct key key[] = {{"gbytes", NULL}};
    struct heddle_plat_bus b = {0};

    if (r->t->nwords < 2)
        return BAD(r, "a bus needs a name");
    HEDDLE_TRY(take_name(r, b.name, sizeof(b.name), r->t->word[1]));
    HEDDLE_TRY(take_keys(r, 2, key, ARRAY(key)));
    if (key[0].value == NULL)
        return BAD(r, "the bus %s needs gbytes", b.name);
    HEDDLE_TRY(take_number(r, &key[0], false, &b.bytes_per_ns));
    if (heddle_plat_find_bus(r->p, b.name) >= 0)
        return BAD(r, "there is a bus %s already", b.name);
    return too_many(r, heddle_plat_add_bus(r->p, &b), "buses", HEDDLE_PLAT_MAX_BUSES);
}

static heddle_status class_workers(struct reader *r, const char *value, struct heddle_plat_class *c)
{
    uint64_t n;

    if (value == NULL)
        return BAD(r, "the class %s needs workers", c->name);
    if (heddle_parse_u64(value, &n) != HEDDLE_OK || n == 0)
        return BAD(r, "workers %s is no number from 1 on", value);
    if (n > HEDDLE_PLAT_MAX_WORKERS - r->nworkers)
        return BAD(r, "there are more than %u workers", HEDDLE_PLAT_MAX_WORKERS);
    c->nworkers = (unsigned)n;
    r->nworkers += c->nworkers;
    return HEDDLE_OK;
}

static heddle_status class_node(struct reader *r, const char *value, struct heddle_plat_class *c)
{
    int node = 0;

    if (value == NULL && c->kind != HEDDLE_DEV_CPU)
        return BAD(r, "the class %s needs a node", c->name);
    if (value != NULL)
        node = heddle_plat_find_node(r->p, value);
    if (node < 0)
        return BAD(r, "there is no node %s", value);
    if (r->p->node[node].kind == HEDDLE_NODE_DISK)
        return BAD(r, "the node %s is a disk: nothing runs there", value);
    c->node = (unsigned)node;
    return HEDDLE_OK;
}

static heddle_status class_names(struct reader *r, const char *kind, const char *model,
                                 struct heddle_plat_class *c)
{
    char kinds[64];

    HEDDLE_TRY(take_name(r, c->name, sizeof(c->name), r->t->word[1]));
    if (heddle_plat_find_class(r->p, c->name) >= 0)
        return BAD(r, "there is a class %s already", c->name);
    if (kind == NULL)
        return BAD(r, "the class %s needs a kind", c->name);
    c->kind = heddle_device_of(kind);
    if (c->kind == 0)
        return BAD(r, "the kind of a class is %s, not %s",
                   heddle_device_names(kinds, sizeof(kinds)), kind);
    HEDDLE_TRY(take_name(r, c->model, sizeof(c->model), model != NULL ? model : c->name));
    if ((heddle_device_of(c->name) != 0 && heddle_device_of(c->name) != c->kind) ||
        (heddle_device_of(c->model) != 0 && heddle_device_of(c->model) != c->kind))
        return BAD(r, "the class %s is of kind %s and named as another kind", c->name, kind);
    return HEDDLE_OK;
}

static heddle_status line_class(struct reader *r)
{
    struct key key[] = {{"kind", NULL},      {"workers", NULL}, {"node", NULL},  {"model", NULL},
                        {"launch_us", NULL}, {"gflops", NULL},  {"gbytes", NULL}};
    struct heddle_plat_class c = {0};

    if (r->t->nwords < 2)
        return BAD(r, "a class needs a name");
    HEDDLE_TRY(take_keys(r, 2, key, ARRAY(key)));
    HEDDLE_TRY(class_names(r, key[0].value, key[3].value, &c));
    HEDDLE_TRY(class_workers(r, key[1].value, &c));
    HEDDLE_TRY(class_node(r, key[2].value, &c));
    HEDDLE_TRY(take_number(r, &key[4], true, &c.launch_ns));
    c.launch_ns *= 1e3;
    HEDDLE_TRY(take_number(r, &key[5], false, &c.gflops));
    HEDDLE_TRY(take_number(r, &key[6], false, &c.gbytes));
    if (r->p->ncls < HEDDLE_PLAT_MAX_CLASSES)
        r->cls_line[r->p->ncls] = r->t->line;
    return too_many(r, heddle_plat_add_class(r->p, &c), "classes", HEDDLE_PLAT_MAX_CLASSES);
}

static heddle_status link_add(struct reader *r, struct heddle_plat_link l)
{
    const char *from = r->p->node[l.from].name;
    const char *to = r->p->node[l.to].name;
    struct heddle_text name;

    if (heddle_plat_find_link(r->p, l.from, l.to) >= 0)
        return BAD(r, "there is a link from %s to %s already", from, to);
    heddle_text_init(&name, l.name, sizeof(l.name));
    heddle_text_add(&name, "%.14s-%.14s", from, to);
    return too_many(r, heddle_plat_add_link(r->p, &l), "links",
                    HEDDLE_PLAT_MAX_NODES * HEDDLE_PLAT_MAX_NODES);
}

static heddle_status link_end(struct reader *r, const char *name, unsigned *out)
{
    const int i = heddle_plat_find_node(r->p, name);

    if (i < 0)
        return BAD(r, "there is no node %s", name);
    *out = (unsigned)i;
    return HEDDLE_OK;
}

static heddle_status link_ends(struct reader *r, struct heddle_plat_link *l)
{
    if (r->t->nwords < 3)
        return BAD(r, "a %s needs two nodes", r->t->word[0]);
    HEDDLE_TRY(link_end(r, r->t->word[1], &l->from));
    HEDDLE_TRY(link_end(r, r->t->word[2], &l->to));
    if (l->from == l->to)
        return BAD(r, "a link from %s to itself makes no sense", r->t->word[1]);
    return HEDDLE_OK;
}

static heddle_status line_link(struct reader *r)
{
    struct key key[] = {{"gbytes", NULL}, {"latency_us", NULL}, {"bus", NULL}};
    struct heddle_plat_link l = {.bus = -1};

    HEDDLE_TRY(link_ends(r, &l));
    HEDDLE_TRY(take_keys(r, 3, key, ARRAY(key)));
    if (key[0].value == NULL)
        return BAD(r, "the %s needs gbytes", r->t->word[0]);
    HEDDLE_TRY(take_number(r, &key[0], false, &l.bytes_per_ns));
    HEDDLE_TRY(take_number(r, &key[1], true, &l.latency_ns));
    l.latency_ns *= 1e3;
    if (key[2].value != NULL)
        l.bus = heddle_plat_find_bus(r->p, key[2].value);
    if (key[2].value != NULL && l.bus < 0)
        return BAD(r, "there is no bus %s", key[2].value);
    HEDDLE_TRY(link_add(r, l));
    if (strcmp(r->t->word[0], "duplex") != 0)
        return HEDDLE_OK;
    return link_add(r, (struct heddle_plat_link){.from = l.to,
                                                 .to = l.from,
                                                 .bytes_per_ns = l.bytes_per_ns,
                                                 .latency_ns = l.latency_ns,
                                                 .bus = l.bus});
}

/* ---- times, rates, aliases, faults --------------------------------------- */

/* A kind, a class or a model. */
static heddle_status take_who(struct reader *r, const char *word, unsigned *who)
{
    const enum heddle_device kind = heddle_device_of(word);
    const int cls = heddle_plat_find_class(r->p, word);
    int type = -1;

    if (kind != 0) {
        *who = HEDDLE_PLAT_WHO_KIND(kind);
        return HEDDLE_OK;
    }
    if (cls >= 0) {
        *who = HEDDLE_PLAT_WHO_TYPE(r->p->cls[cls].type);
        return HEDDLE_OK;
    }
    for (unsigned i = 0; i < r->p->ncls; i++) {
        const struct heddle_plat_class *c = &r->p->cls[i];

        if (strcmp(c->model, word) != 0)
            continue;
        if (type >= 0 && (unsigned)type != c->type)
            return BAD(r, "the model %s is of two kinds: name a class", word);
        type = (int)c->type;
    }
    if (type < 0)
        return BAD(r, "there is no class, model or kind %s", word);
    *who = HEDDLE_PLAT_WHO_TYPE(type);
    return HEDDLE_OK;
}

/* `time` and, from version 2 on, `share`. */
static heddle_status line_time(struct reader *r)
{
    char **w = r->t->word;
    const bool is_share = strcmp(w[0], "share") == 0;
    struct key us = {"the time", NULL};
    uint64_t bytes;
    double v = 0;
    unsigned who;
    heddle_status st;

    if (is_share && r->version == 1)
        return BAD(r, "a share needs heddle-machine 2");
    HEDDLE_TRY(need_words(r, 5,
                          is_share ? "share KERNEL WHO BYTES MICROSECONDS"
                                   : "time KERNEL WHO BYTES MICROSECONDS"));
    HEDDLE_TRY(take_who(r, w[2], &who));
    if (is_share)
        who = HEDDLE_PLAT_WHO_SHARE(who);
    r->p->has_shares = r->p->has_shares || is_share;
    if (heddle_parse_size(w[3], 0, &bytes) != HEDDLE_OK)
        return BAD(r, "%s is no size", w[3]);
    us.value = w[4];
    HEDDLE_TRY(take_number(r, &us, true, &v));
    st = heddle_plat_table_add(r->p->table, w[1], who, (double)bytes, v * 1e3, false);
    if (st == HEDDLE_ESTATE)
        return BAD(r, "the %s of %s on %s for %s bytes is given twice", w[0], w[1], w[2], w[3]);
    return st;
}

static heddle_status line_rate(struct reader *r)
{
    char **w = r->t->word;
    struct key rate = {"the rate", NULL};
    double v = 0;
    unsigned who;
    heddle_status st;

    HEDDLE_TRY(need_words(r, 4, "rate KERNEL WHO GFLOPS"));
    HEDDLE_TRY(take_who(r, w[2], &who));
    rate.value = w[3];
    HEDDLE_TRY(take_number(r, &rate, false, &v));
    st = heddle_plat_table_rate(r->p->table, w[1], who, v);
    if (st == HEDDLE_ESTATE)
        return BAD(r, "the rate of %s on %s is given twice", w[1], w[2]);
    return st;
}

static heddle_status line_alias(struct reader *r)
{
    char **w = r->t->word;
    heddle_status st;

    HEDDLE_TRY(need_words(r, 3, "alias KERNEL NAME-IN-TIMINGS"));
    st = heddle_plat_table_alias(r->p->table, w[1], w[2]);
    if (st == HEDDLE_ENOENT)
        return BAD(r, "nothing is known of %s", w[2]);
    if (st == HEDDLE_ESTATE)
        return BAD(r, "%s has times, a rate or an alias already", w[1]);
    return st;
}

static heddle_status line_fault(struct reader *r)
{
    char why[200] = "";
    struct heddle_fault f;

    if (heddle_plat_parse_fault(r->p, r->t->word + 1, r->t->nwords - 1, &f, why, sizeof(why)) !=
        HEDDLE_OK)
        return BAD(r, "%s", why);
    return too_many(r, heddle_plat_push_fault(r->p, &f), "faults", HEDDLE_PLAT_MAX_FAULTS);
}

static heddle_status line_overhead(struct reader *r)
{
    struct heddle_plat *p = r->p;
    struct key key[] = {{"submit_us", NULL},
                        {"task_us", NULL},
                        {"wake_us", NULL},
                        {"drive_us", NULL},
                        {"notice_us", NULL}};
    double *const out[] = {&p->submit_ns, &p->task_ns, &p->wake_ns, &p->drive_ns, &p->notice_ns};

    _Static_assert(ARRAY(key) == ARRAY(out), "a key has no place");
    if (r->overhead_line != 0)
        return BAD(r, "the overheads were given in line %u", r->overhead_line);
    r->overhead_line = r->t->line;
    HEDDLE_TRY(take_keys(r, 1, key, r->version == 1 ? 2 : ARRAY(key)));
    for (size_t i = 0; i < ARRAY(key); i++) {
        HEDDLE_TRY(take_number(r, &key[i], true, out[i]));
        *out[i] *= 1e3;
    }
    /* Version 1 had submit_us as a fact that no task pays for. */
    p->charges = r->version > 1;
    return HEDDLE_OK;
}

static heddle_status line_name(struct reader *r)
{
    HEDDLE_TRY(need_words(r, 2, "name NAME"));
    if (r->name_line != 0)
        return BAD(r, "the name was given in line %u", r->name_line);
    r->name_line = r->t->line;
    return take_name(r, r->p->name, sizeof(r->p->name), r->t->word[1]);
}

/* ---- the whole ----------------------------------------------------------- */

static const struct {
    const char *word;
    unsigned turn;
    heddle_status (*read)(struct reader *r);
} line_table[] = {
    {"name", 0, line_name},         {"node", 0, line_node},   {"bus", 0, line_bus},
    {"overhead", 0, line_overhead}, {"class", 1, line_class}, {"link", 1, line_link},
    {"duplex", 1, line_link},       {"time", 2, line_time},   {"rate", 2, line_rate},
    {"fault", 2, line_fault},       {"share", 2, line_time},  {"alias", 3, line_alias},
};

static heddle_status read_line(struct reader *r, unsigned turn)
{
    for (size_t i = 0; i < ARRAY(line_table); i++)
        if (strcmp(line_table[i].word, r->t->word[0]) == 0)
            return line_table[i].turn == turn ? line_table[i].read(r) : HEDDLE_OK;
    return BAD(r, "no line begins with %.64s", r->t->word[0]);
}

static heddle_status read_head(struct reader *r)
{
    const heddle_status st = heddle_plat_text_next(r->t);

    if (st == HEDDLE_AGAIN)
        return BAD(r, "the file is empty: it should begin with "
                      "heddle-machine 1 or 2");
    HEDDLE_TRY(st);
    if (strcmp(r->t->word[0], "heddle-machine") != 0 || r->t->nwords != 2)
        return BAD(r, "the first line should be heddle-machine 1 or 2");
    if (strcmp(r->t->word[1], "1") != 0 && strcmp(r->t->word[1], "2") != 0)
        return BAD(r, "version %.64s is not known here, only 1 and 2 are", r->t->word[1]);
    r->version = r->t->word[1][0] == '1' ? 1 : 2;
    return HEDDLE_OK;
}

static heddle_status read_turn(struct reader *r, unsigned turn)
{
    heddle_status st;

    heddle_plat_text_rewind(r->t);
    HEDDLE_TRY(read_head(r));
    while ((st = heddle_plat_text_next(r->t)) == HEDDLE_OK)
        HEDDLE_TRY(read_line(r, turn));
    return st == HEDDLE_AGAIN ? HEDDLE_OK : st;
}

static heddle_status check_classes(struct reader *r)
{
    unsigned a, b;

    r->t->line = 0;
    if (r->p->ncls == 0)
        return BAD(r, "the machine has no class: nothing could run");
    if (heddle_plat_number_types(r->p, &a, &b))
        return HEDDLE_OK;
    r->t->line = r->cls_line[b];
    return BAD(r,
               "%s and %s have one model, so launch_us, gflops and gbytes must "
               "be equal",
               r->p->cls[a].name, r->p->cls[b].name);
}

static heddle_status check_nodes(struct reader *r)
{
    bool is_from;
    const unsigned i = heddle_plat_lost_node(r->p, &is_from);

    if (i == 0)
        return HEDDLE_OK;
    r->t->line = r->node_line[i];
    return BAD(r, "no links lead from %s to %s", is_from ? r->p->node[0].name : r->p->node[i].name,
               is_from ? r->p->node[i].name : r->p->node[0].name);
}

/* The file's name without folders and without what follows its last point. */
static void default_name(struct heddle_plat *p, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    const size_t n = dot != NULL && dot > base ? (size_t)(dot - base) : strlen(base);
    struct heddle_text t;

    heddle_text_init(&t, p->name, sizeof(p->name));
    heddle_text_mem(&t, base, n);
}

static heddle_status read_all(struct reader *r)
{
    for (unsigned turn = 0; turn < NTURNS; turn++) {
        HEDDLE_TRY(read_turn(r, turn));
        if (turn != 1)
            continue;
        HEDDLE_TRY(check_classes(r));
        HEDDLE_TRY(check_nodes(r));
    }
    return HEDDLE_OK;
}

static heddle_status read_open(struct reader *r, const struct heddle_allocator *a)
{
    heddle_status st = heddle_plat_new(a, &r->p);

    if (st != HEDDLE_OK)
        return st;
    default_name(r->p, r->t->path);
    st = read_all(r);
    if (st != HEDDLE_OK)
        heddle_plat_destroy(r->p);
    return st;
}

heddle_status heddle_plat_read_file(const struct heddle_allocator *a, const char *path,
                                    struct heddle_plat **plat_out, char *why, size_t cap)
{
    /* Both are too large for a stack that is not ours. */
    struct {
        struct heddle_plat_text t;
        struct reader r;
    } *m = heddle_zalloc(a, 1, sizeof(*m));
    heddle_status st;

    if (m == NULL)
        return HEDDLE_ENOMEM;
    m->t.a = a;
    m->t.path = path;
    m->t.why = why;
    m->t.cap = cap;
    m->r.t = &m->t;
    st = heddle_plat_text_open(&m->t);
    if (st == HEDDLE_OK) {
        st = read_open(&m->r, a);
        heddle_plat_text_close(&m->t);
    }
    if (st == HEDDLE_OK)
        *plat_out = m->r.p;
    heddle_free(a, m, sizeof(*m));
    return st;
}
