// SPDX-License-Identifier: BSD-3-Clause
//
// tbb: the streams on oneTBB.
//
// Purpose    what a C++ programmer has.
// Measured   independent: task_group::run() per task and wait(), in an arena of
//            W threads of which the submitting one is the first ("tbb-group").
//            chain, random, cholesky: oneTBB infers no dependencies and its
//            task groups have none, so the stream becomes a flow graph of
//            continue_nodes ("tbb-flow"): the program finds the edges itself
//            (last writer, readers since), builds nodes and edges, starts the
//            sources and waits. All of that is timed; a graph may not grow
//            while it runs, so nothing overlaps. Taking it down is not timed.
// Threads    the kernel runs on the threads of the arena.

#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include <tbb/flow_graph.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include "stream.h"

namespace
{

using node = tbb::flow::continue_node<tbb::flow::continue_msg>;
using kernel_fn = void (*)(const struct stream *s, size_t i);

constexpr uint32_t nobody = UINT32_MAX;

void kernel_empty(const struct stream *, size_t) {}

struct tbb_peer {
    tbb_peer(int workers, kernel_fn k)
        : limit(tbb::global_control::max_allowed_parallelism, static_cast<size_t>(workers)),
          arena(workers, 1), kernel(k)
    {
    }

    tbb::global_control limit;
    tbb::task_arena arena;
    kernel_fn kernel;
};

void run_group(const tbb_peer &tp, const struct stream &s, peer_times *t)
{
    tbb::task_group group;
    const kernel_fn kernel = tp.kernel;
    const struct stream *sp = &s;

    peer_start(t);
    for (size_t i = 0; i < s.ntasks; i++)
        group.run([=] { kernel(sp, i); });
    peer_submitted(t);
    group.wait();
    peer_end(t);
}

// The edges of a stream, found as a runtime would find them.
class edges
{
  public:
    explicit edges(size_t nhandles) : writer(nhandles, nobody), readers(nhandles) {}

    // Calls add(j) for each task j that task i has to wait for.
    template <typename Add> void visit(uint32_t i, const stream_task &task, const Add &add)
    {
        for (uint32_t k = 0; k + 1 < task.n; k++) {
            const uint32_t h = task.h[k];

            if (writer[h] != nobody)
                add(writer[h]);
            readers[h].push_back(i);
        }
        if (task.n == 0)
            return;
        const uint32_t h = task.h[task.n - 1];
        if (readers[h].empty() && writer[h] != nobody)
            add(writer[h]);
        for (const uint32_t j : readers[h])
            add(j);
        readers[h].clear();
        writer[h] = i;
    }

  private:
    std::vector<uint32_t> writer;
    std::vector<std::vector<uint32_t>> readers;
};

void run_flow(const tbb_peer &tp, const struct stream &s, peer_times *t)
{
    tbb::flow::graph graph;
    std::deque<node> nodes;
    std::vector<uint32_t> sources;
    edges found(s.nhandles);
    const kernel_fn kernel = tp.kernel;
    const struct stream *sp = &s;

    peer_start(t);
    for (uint32_t i = 0; i < s.ntasks; i++) {
        bool is_source = true;

        nodes.emplace_back(graph, [=](const tbb::flow::continue_msg &) { kernel(sp, i); });
        found.visit(i, s.tasks[i], [&](uint32_t j) {
            tbb::flow::make_edge(nodes[j], nodes[i]);
            is_source = false;
        });
        if (is_source)
            sources.push_back(i);
    }
    for (const uint32_t i : sources)
        nodes[i].try_put(tbb::flow::continue_msg());
    peer_submitted(t);
    graph.wait_for_all();
    peer_end(t);
}

int tbb_run(struct peer *p, struct peer_times *t)
{
    auto *tp = static_cast<tbb_peer *>(p->self);

    try {
        tp->arena.execute([&] {
            if (p->stream.nhandles == 0)
                run_group(*tp, p->stream, t);
            else
                run_flow(*tp, p->stream, t);
        });
    } catch (const std::exception &e) {
        std::fprintf(stderr, "tbb: %s\n", e.what());
        return 1;
    }
    return 0;
}

int tbb_open(struct peer *p)
{
    const bool is_flow = p->stream.nhandles != 0;

    p->name = is_flow ? "tbb-flow" : "tbb-group";
    peer_keep_memory();
    p->self = new (std::nothrow)
        tbb_peer(static_cast<int>(p->opts.workers), p->opts.is_check ? stream_check : kernel_empty);
    if (p->self == nullptr)
        std::fprintf(stderr, "tbb: no memory\n");
    return p->self == nullptr;
}

void tbb_close(struct peer *p)
{
    delete static_cast<tbb_peer *>(p->self);
}

} // namespace

int main(int argc, char **argv)
{
    static const struct peer_ops ops = {tbb_open, tbb_run, tbb_close};

    return peer_main(argc, argv, &ops);
}
