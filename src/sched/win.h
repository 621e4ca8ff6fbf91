/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_SCHED_WIN_H
#define HEDDLE_SCHED_WIN_H

/*
 * The window: the submitted tasks that have not ended, as the policies that know
 * classes see them.
 *
 * Records  one per task of the window, found by `aux`. Records are laid down in the
 *          order of submission, so that a walk backwards meets every successor
 *          before its predecessors.
 * Sorts    the costs of each sort of task. The window asks the view for costs now and
 *          then and keeps them: no policy asks for costs while it decides.
 * Ranks    rank of a task = its own weight + the longest path behind it. The first pop
 *          or push after submissions computes the ranks in one walk backwards.
 * Load     how long each worker is still busy, as far as the costs tell.
 *
 * Threads  `lock` guards everything; each function below says whether its caller holds
 *          the lock. The view and the allocator are called without it.
 * Memory   without memory a task has no record (aux 0): it has no rank, and the policy
 *          places it by what the view says at that moment. No function fails.
 */
#include "base/spin.h"
#include "sched/heap.h"

enum {
    HEDDLE_WIN_CLASSES = 64, /* more are refused */
    HEDDLE_WIN_PREDS = 6,    /* kept in the record; more need memory */
    HEDDLE_WIN_CHUNK = 256,  /* records in a chunk */
    HEDDLE_WIN_PAGE = 256,   /* chunks in a page of the directory */
    HEDDLE_WIN_PAGES = 256,
    HEDDLE_WIN_LEAF = 1024,  /* sorts in a leaf of their table, and leaves */
    HEDDLE_WIN_MEASURES = 3, /* runs that make a cost trustworthy */
    HEDDLE_WIN_ANYONE = -2,
    HEDDLE_WIN_PRICES = 16, /* types with prices; with more, only time counts */
};

/* A sort on a class. */
struct heddle_win_cost {
    double ns;      /* NAN: unknown; INFINITY: cannot run */
    float sure;     /* the view's confidence */
    uint32_t nrun;  /* ended there */
    uint32_t nout;  /* given there and not ended */
    uint32_t nback; /* came back from there: declined, for example */
    uint32_t nfar;  /* not measured there since, as their data are elsewhere */
    float joules;   /* above idle; 0 unless there is an objective */
};

struct heddle_win_sort {
    unsigned number;
    _Atomic uint32_t due;  /* > 0: ask the view again */
    _Atomic int32_t only;  /* the one class that can run it; -1: there are more */
    uint32_t nseen;        /* tasks submitted so far */
    uint32_t nlive;        /* submitted, not popped */
    uint32_t bucket;       /* the policy's: where its tasks queue */
    uint32_t index, epoch; /* the policy's: a number for a time */
    double weight;         /* ns: what it adds to a path */
    double read, written;  /* bytes */
    double best;           /* least trusted ns over all classes; NAN: none */
    unsigned best_cls;
    struct heddle_win_sort *next; /* of all that had a task */
    bool is_known;                /* every class that can run it is trusted */
    struct heddle_win_cost c[];   /* per class */
};

struct heddle_win_leaf {
    _Atomic(struct heddle_win_sort *) sort[HEDDLE_WIN_LEAF];
};

/* Predecessors that do not fit into a record. */
struct heddle_win_more {
    struct heddle_win_more *next; /* when its task has ended */
    uint32_t n, cap;
    uint32_t aux[];
};

struct heddle_win_rec {
    struct heddle_win_sort *sort;
    uint64_t seq;   /* order of submission from 1; 0: not in use */
    double rank;    /* ns */
    double tail;    /* longest rank of a successor */
    double nod;     /* sum over successors of 1 / its predecessors */
    double own;     /* ns it adds to a path; 0: the weight of its sort */
    double est;     /* the policy's: ns it was placed or popped with */
    double since;   /* when it was popped */
    double fetch;   /* the policy's: ns its data were away when it was pushed */
    float cold;     /* bytes it updates that no task of the window wrote */
    uint32_t index; /* the policy's */
    uint32_t late;  /* the policy's */
    uint32_t npred;
    struct heddle_win_more *more; /* NULL: all are in pred */
    uint32_t pred[HEDDLE_WIN_PREDS];
    int prio;
    int16_t cls;    /* the policy's: where it is queued; -1: nowhere */
    int16_t target; /* the policy's: the class or type it should run on; -1: none */
    bool is_out;    /* popped and not ended */
    bool is_sent;   /* placed to be measured, and counted as given */
    bool is_flat;   /* goes by its submission, before all that go by rank */
    uint8_t bin;    /* the policy's */
};

struct heddle_win_chunk {
    struct heddle_win_chunk *prev, *next;
    uint32_t id;    /* its records are id * CHUNK + i + 1 */
    uint32_t nused; /* laid down */
    uint32_t nlive; /* not ended */
    struct heddle_win_rec rec[HEDDLE_WIN_CHUNK];
};

/* How busy a worker is: what was popped and has not ended. */
struct heddle_win_worker {
    double begun; /* when the first of them began, as far as known */
    double sum;   /* ns of all of them */
    unsigned n;
};

struct heddle_win {
    struct heddle_spin lock;
    const struct heddle_sched_env *env; /* NULL: no classes */
    struct heddle_sched_env copy;

    struct heddle_win_chunk **page[HEDDLE_WIN_PAGES]; /* by id / PAGE */
    uint32_t nchunks;
    struct heddle_win_chunk *first, *last; /* in the order of submission */
    struct heddle_win_chunk *spare;        /* empty ones, through next */
    struct heddle_win_more *garbage;       /* freed by the next submitted() */
    uint64_t seq;                          /* last one given */
    uint64_t swept;                        /* ranks are known up to here */
    uint64_t swept_all;                    /* `seq` at the last walk over everything */
    size_t nlive;                          /* records in use */
    bool weighs_mean;                      /* ranks by mean times, not by the least */
    bool has_prio;                         /* the user gave priorities */
    bool is_flat;                          /* new records are */
    double top;                            /* greatest rank seen */

    _Atomic(struct heddle_win_leaf *) sort[HEDDLE_WIN_LEAF];
    struct heddle_win_sort *sorts; /* through next */
    bool has_choice;               /* some sort could run on more than one type */
    uint64_t lost;                 /* bit: class */
    uint32_t version;              /* of the costs: changes with them */
    double bytes;                  /* the most that a task writes */

    double joule_ns; /* what a joule is worth; 0: only time counts */
    /* When it does not, from heddle_win_tune(): ns of the whole that a ns of a worker
     * of each type costs, and about when the last task should end. */
    double price[HEDDLE_WIN_PRICES];
    double finish;
    uint32_t tunings;
    uint64_t tuned; /* `seq` at the last one */

    struct heddle_win_worker *worker;
    uint64_t turn;            /* for what goes round */
    _Atomic uint64_t nqueued; /* a hint: a worker that finds 0 need not lock */
};

/* What is known about a task before a policy decides; made without the lock. */
struct heddle_win_ask {
    double now;
    double ns[HEDDLE_WIN_CLASSES];
    double sure[HEDDLE_WIN_CLASSES];
    double fetch[HEDDLE_WIN_CLASSES];
    struct heddle_win_sort *s; /* NULL: no memory; `ns` is all there is */
};

heddle_status heddle_win_init(struct heddle_win *w, const struct heddle_sched_env *env);
void heddle_win_fini(struct heddle_win *w);

/* Lays down a record; NULL without memory. Returns with the lock held. */
struct heddle_win_rec *heddle_win_submitted(struct heddle_win *w, struct heddle_sched_task *t,
                                            struct heddle_sched_task *const *pred, unsigned npred);

/* For push(): asks the view. Takes and gives the lock when costs are due.
 * Afterwards take the lock. */
void heddle_win_ask(struct heddle_win *w, struct heddle_sched_task *t, bool wants_fetch,
                    struct heddle_win_ask *q);

/* With the lock: the task's record, or NULL. */
static inline struct heddle_win_rec *heddle_win_rec(const struct heddle_win *w,
                                                    const struct heddle_sched_task *t)
{
    const uint32_t i = t->aux - 1, c = i / HEDDLE_WIN_CHUNK;

    if (t->aux == 0 || c >= w->nchunks)
        return NULL;
    return &w->page[c / HEDDLE_WIN_PAGE][c % HEDDLE_WIN_PAGE]->rec[i % HEDDLE_WIN_CHUNK];
}

/* With the lock: one task more is queued, or less. */
static inline void heddle_win_queued(struct heddle_win *w, int by)
{
    /* Relaxed, for a hint; written under the lock only. */
    heddle_store_rlx(&w->nqueued, heddle_load_rlx(&w->nqueued) + (uint64_t)by);
}

/* May the worker begin at once with what it asks for? A core asks only when it is
 * free, or when its task waits for others: then it must not be refused. */
static inline bool heddle_win_is_free(const struct heddle_win *w, unsigned worker)
{
    return w->worker[worker].n == 0 ||
           w->copy.cls[w->copy.class_of[worker]].kind == HEDDLE_SCHED_CORES;
}

/* About when a task will run: see order() in sched.h. Takes the lock. */
double heddle_win_order(struct heddle_win *w, const struct heddle_sched_task *t, int *type_out);

/* With the lock: makes ranks of what is new. */
void heddle_win_rank(struct heddle_win *w);

/* With the lock: all records, and new ones, go by their submission; or not. */
void heddle_win_flatten(struct heddle_win *w, bool is_flat);

/* With the lock: the task was popped by `worker` and will take `ns`. */
void heddle_win_popped(struct heddle_win *w, struct heddle_win_rec *r, unsigned worker, double now,
                       double ns);

/* With the lock: it has ended. */
void heddle_win_end(struct heddle_win *w, const struct heddle_sched_task *t, unsigned worker,
                    double now, double ns);

/* ended() of a policy: takes the lock and returns with it. */
void heddle_win_ended(struct heddle_win *w, const struct heddle_sched_task *t, unsigned worker,
                      double ns);

/* With the lock: when a worker of the class would begin something that has `ns`
 * of queued work before it. */
double heddle_win_begin(const struct heddle_win *w, unsigned cls, double now, double ns);
double heddle_win_busy(const struct heddle_win *w, unsigned worker, double now);

/* With the lock: no worker will pop for the class any more. */
void heddle_win_lost(struct heddle_win *w, unsigned cls);

/* With the lock: the cost to decide with. INFINITY: cannot run. NAN: not known
 * well enough. */
double heddle_win_ns(const struct heddle_win *w, const struct heddle_win_ask *q, unsigned cls);
static inline double heddle_win_sort_ns(const struct heddle_win *w, const struct heddle_win_sort *s,
                                        unsigned cls)
{
    return (w->lost >> cls & 1) != 0 ? __builtin_inf() : s->c[cls].ns;
}

/* With the lock: what the energy of a task of the sort is worth on the class, in
 * ns; 0 when only time counts. Energies are finite. */
static inline double heddle_win_energy_ns(const struct heddle_win *w,
                                          const struct heddle_win_sort *s, unsigned cls)
{
    return w->joule_ns * (double)s->c[cls].joules;
}

/* With the lock, before something is chosen: now and then, prices are made anew,
 * and what a joule is worth, if the policy has to find it. */
void heddle_win_tune_now(struct heddle_win *w, double now);
static inline void heddle_win_tune(struct heddle_win *w, double now)
{
    if (HEDDLE_UNLIKELY(w->copy.energy != NULL))
        heddle_win_tune_now(w, now);
}

/* With the lock, when energy counts: what a task costs on a class where it would end
 * at `end`, in ns of the whole run: the time of the worker, its energy, and how much
 * later the last task would end. */
double heddle_win_price(const struct heddle_win *w, const struct heddle_win_sort *s,
                        const struct heddle_win_rec *r, unsigned cls, double end);

/* With the lock: a class that should measure this task; -1: none, decide by cost;
 * HEDDLE_WIN_ANYONE: no cost is known, any free worker takes it. */
int heddle_win_explore(struct heddle_win *w, const struct heddle_win_ask *q,
                       struct heddle_win_rec *r);
/* With the lock: may the class take a task that is for anyone? Not too many at
 * once before they are measured, and not where others would wait for it. */
bool heddle_win_may_try(const struct heddle_win *w, const struct heddle_win_rec *r, unsigned cls);

/* Order of tasks with records: the user's priority, rank, submission. */
bool heddle_win_before(const void *win, const struct heddle_sched_task *a,
                       const struct heddle_sched_task *b);
/* Without classes: priority, then push number in aux. */
bool heddle_win_before_plain(const void *ctx, const struct heddle_sched_task *a,
                             const struct heddle_sched_task *b);

/* From 0 (last) to 1 (first): where a task stands in the order. */
double heddle_win_level(const struct heddle_win *w, const struct heddle_win_rec *r);

#endif /* HEDDLE_SCHED_WIN_H */
