/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pingpong: how far apart two cores are now.
 *
 * Purpose    prints the one-way transfer time of a cache line between the first
 *            two processors this process may use. On a virtual machine whose
 *            processors move, results of two threads compare only between
 *            moments of equal distance.
 * Measured   median of several short bursts, so that one interruption does not
 *            spoil it. With fewer than two processors it prints "ns":null.
 * Threads    two, each bound to one processor; `ball` is all they share.
 */
#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BURSTS = 15, ROUND_TRIPS = 1000 };

struct court {
    alignas(128) atomic_uint ball; /* odd: at the partner */
    alignas(128) int cpu;          /* of the partner */
};

static void bind_to(int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    /* A refusal leaves the placement to the system; still a measurement. */
    (void)sched_setaffinity(0, sizeof(set), &set);
}

static void *partner(void *arg)
{
    struct court *c = arg;

    bind_to(c->cpu);
    for (unsigned i = 0; i < BURSTS * ROUND_TRIPS; i++) {
        while (atomic_load_explicit(&c->ball, memory_order_acquire) != 2 * i + 1) {
        }
        atomic_store_explicit(&c->ball, 2 * i + 2, memory_order_release);
    }
    return NULL;
}

static double now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static double burst_ns(struct court *c, unsigned first)
{
    const double start = now_ns();

    for (unsigned i = first; i < first + ROUND_TRIPS; i++) {
        atomic_store_explicit(&c->ball, 2 * i + 1, memory_order_release);
        while (atomic_load_explicit(&c->ball, memory_order_acquire) != 2 * i + 2) {
        }
    }
    return (now_ns() - start) / (2.0 * ROUND_TRIPS);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return (x > y) - (x < y);
}

static int two_cpus(int cpu[2])
{
    cpu_set_t set;
    int n = 0;

    if (sched_getaffinity(0, sizeof(set), &set) != 0)
        return 0;
    for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
        if (CPU_ISSET((size_t)i, &set))
            cpu[n++] = i;
    return n;
}

int main(void)
{
    struct court c = {.ball = 0};
    double ns[BURSTS];
    pthread_t thread;
    int cpu[2];

    if (two_cpus(cpu) < 2) {
        printf("{\"name\":\"pingpong\",\"ns\":null}\n");
        return 0;
    }
    c.cpu = cpu[1];
    if (pthread_create(&thread, NULL, partner, &c) != 0) {
        fprintf(stderr, "pingpong: cannot start a thread\n");
        return 1;
    }
    bind_to(cpu[0]);
    for (unsigned b = 0; b < BURSTS; b++)
        ns[b] = burst_ns(&c, b * ROUND_TRIPS);
    pthread_join(thread, NULL);
    qsort(ns, BURSTS, sizeof(ns[0]), compare);
    printf("{\"name\":\"pingpong\",\"ns\":%.1f}\n", ns[BURSTS / 2]);
    return 0;
}
