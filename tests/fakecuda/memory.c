/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory: which bytes are whose.
 *
 * Structure  a treap by address over an array of nodes of fixed size. Blocks do not
 *            overlap.
 * Invariant  nodes come from the array, never from the heap: the sanitizers would
 *            take malloc() and free() of one for something that streams have to
 *            order.
 * Threads    any; one lock.
 */
#include "fakecuda.h"

enum { BLOCKS = 1 << 17 };

struct node {
    struct fc_block b;
    uint32_t rank;
    int left, right;
};

static struct fc_lock lock;
static struct node node[BLOCKS]; /* 0: none */
static int root, unused, nused;

static int node_new(const struct fc_block *b)
{
    int i = unused;

    if (i != 0)
        unused = node[i].left;
    else if (nused + 1 < BLOCKS)
        i = ++nused;
    else
        return 0;
    node[i] = (struct node){.b = *b, .rank = fc_random()};
    return i;
}

/* All before `at` to the left. */
static void split(int t, uintptr_t at, int *left, int *right)
{
    while (t != 0) {
        if (node[t].b.base < at) {
            *left = t;
            left = &node[t].right;
            t = *left;
        } else {
            *right = t;
            right = &node[t].left;
            t = *right;
        }
    }
    *left = *right = 0;
}

static int merge(int left, int right)
{
    int top = 0, *at = &top;

    while (left != 0 && right != 0) {
        if (node[left].rank > node[right].rank) {
            *at = left;
            at = &node[left].right;
            left = *at;
        } else {
            *at = right;
            at = &node[right].left;
            right = *at;
        }
    }
    *at = left != 0 ? left : right;
    return top;
}

/* The last one that begins at or before `at`; 0: none. */
static int floor_of(uintptr_t at)
{
    int t = root, best = 0;

    while (t != 0) {
        if (node[t].b.base <= at) {
            best = t;
            t = node[t].right;
        } else {
            t = node[t].left;
        }
    }
    return best;
}

bool fc_block_add(const struct fc_block *b)
{
    int i, left, right, before;

    fc_lock(&lock);
    before = floor_of(b->base + b->bytes - 1);
    i = before != 0 && node[before].b.base + node[before].b.bytes > b->base ? 0 : node_new(b);
    if (i != 0) {
        split(root, b->base, &left, &right);
        root = merge(merge(left, i), right);
    }
    fc_unlock(&lock);
    return i != 0;
}

bool fc_block_take(uintptr_t base, struct fc_block *out)
{
    int i, left, right, rest;

    fc_lock(&lock);
    i = floor_of(base);
    if (i != 0 && node[i].b.base != base)
        i = 0;
    if (i != 0) {
        *out = node[i].b;
        split(root, base, &left, &right);
        split(right, base + 1, &i, &rest);
        root = merge(left, rest);
        node[i].left = unused;
        unused = i;
    }
    fc_unlock(&lock);
    return i != 0;
}

bool fc_block_find(const void *at, size_t bytes, struct fc_block *out)
{
    const uintptr_t a = (uintptr_t)at;
    bool is_inside = false;
    int i;

    fc_lock(&lock);
    i = floor_of(a);
    if (i != 0) {
        const struct fc_block *b = &node[i].b;

        is_inside = a - b->base < b->bytes && bytes <= b->bytes - (a - b->base);
        if (is_inside && out != NULL)
            *out = *b;
    }
    fc_unlock(&lock);
    return is_inside;
}

bool fc_block_go(uintptr_t base)
{
    bool is_new = false;
    int i;

    fc_lock(&lock);
    i = floor_of(base);
    if (i != 0 && node[i].b.base == base && node[i].b.kind == FC_DEVICE) {
        is_new = !node[i].b.is_going;
        node[i].b.is_going = true;
    }
    fc_unlock(&lock);
    return is_new;
}

bool fc_block_of(CUcontext ctx, CUmemoryPool pool, struct fc_block *out)
{
    bool is_found = false;

    fc_lock(&lock);
    /* A node that is not used is not in the tree. */
    for (int i = 1; i <= nused && !is_found; i++) {
        const struct fc_block *b = &node[i].b;

        is_found = b->ctx == ctx && (pool == NULL || b->pool == pool) && floor_of(b->base) == i;
        if (is_found)
            *out = *b;
    }
    fc_unlock(&lock);
    return is_found;
}
