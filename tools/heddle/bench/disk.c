/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/disk: data that do not fit into memory.
 *
 * How        C = C - A B^T on tiles that the runtime allocates, three times:
 *            in memory with room for all (the time of the arithmetic), then with
 *            a host budget of a third of the data and a disk. What could be
 *            reached is the longer of the arithmetic and of moving the bytes
 *            that were moved at the speed of the disk.
 * Disk       measured in the same folder with writes and reads of one tile each
 *            around the page cache, as the driver does it; where the file system
 *            does not know that, through it and to the disk (fdatasync).
 * Points     several orders of tiles: with large ones the arithmetic takes
 *            longest, with small ones the disk and the runtime matter more.
 * Order      along k the tiles of one C are used up before the next one; rows
 *            in blocks, so that a tile of B is used several times while it is
 *            there.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "bench/bench.h"
#include "demo/demo.h"
#include "sim/opts.h"

enum { PROBE_TILES = 32, MAX_TILES = 64, MIN_NB = 8, MAX_NB = 4096, MAX_ORDERS = 16 };

struct disk_bench {
    struct cli *c;
    const char *path, *policy, *kernels, *nb_text;
    const struct heddle_tile_ops *ops;
    uint64_t tiles, nb, workers, reps;
    uint64_t order[MAX_ORDERS];
    unsigned norders;
    uint64_t budget_tiles;

    double compute_ns, wall_ns;
    double read_rate, write_rate; /* bytes per ns */
    bool is_direct;
    uint64_t bytes_in, bytes_out; /* of the disk */
    bool is_right;
    char why[320];
};

static size_t tile_bytes(const struct disk_bench *b)
{
    return (size_t)(b->nb * b->nb) * sizeof(double);
}

static uint64_t data_bytes(const struct disk_bench *b)
{
    return 3 * b->tiles * b->tiles * tile_bytes(b);
}

/* --- kernels ------------------------------------------------------------- */

struct args {
    const struct heddle_tile_ops *ops;
    double value;
};

static struct tile exec_tile(struct heddle_exec *x, unsigned i)
{
    const struct heddle_layout *l = heddle_exec_layout(x, i);

    return (struct tile){heddle_exec_ptr(x, i), l->extent[0], l->extent[1], l->stride[1]};
}

static heddle_status run_fill(struct heddle_exec *x)
{
    const struct args *a = heddle_exec_arg(x);
    const struct tile t = exec_tile(x, 0);

    for (size_t j = 0; j < t.n; j++)
        for (size_t i = 0; i < t.m; i++)
            t.a[i + j * t.ld] = a->value;
    return HEDDLE_OK;
}

static heddle_status run_gemm(struct heddle_exec *x)
{
    const struct args *a = heddle_exec_arg(x);

    a->ops->gemm(exec_tile(x, 0), exec_tile(x, 1), exec_tile(x, 2));
    return HEDDLE_OK;
}

static const heddle_kernel kernel_fill = {
    .size = sizeof(heddle_kernel),
    .name = "fill",
    .noperands = 1,
    .mode = {HEDDLE_W},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_fill}}};

static const heddle_kernel kernel_gemm = {
    .size = sizeof(heddle_kernel),
    .name = "gemm",
    .noperands = 3,
    .mode = {HEDDLE_R, HEDDLE_R, HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_gemm}}};

/* --- one run ------------------------------------------------------------- */

struct run {
    struct disk_bench *b;
    heddle_ctx *ctx;
    heddle_handle **tile; /* A, B, C */
    double wall_ns;
    uint64_t bytes_in, bytes_out;
};

static void keep_sentence(void *user, enum heddle_severity severity, const char *text)
{
    struct disk_bench *b = user;

    if (severity == HEDDLE_ERROR)
        snprintf(b->why, sizeof(b->why), "%s", text);
}

static heddle_status submit(struct run *r, const heddle_kernel *k, double value,
                            heddle_handle *const op[3])
{
    const struct args a = {r->b->ops, value};

    return heddle_submit(
        r->ctx, k,
        &(struct heddle_call){.operand = {op[0], op[1], op[2]}, .arg = &a, .arg_bytes = sizeof(a)});
}

static heddle_status fill(struct run *r)
{
    const size_t n = r->b->tiles, nn = n * n;
    heddle_status st = HEDDLE_OK, waited;

    for (size_t i = 0; i < 3 * nn && st == HEDDLE_OK; i++) {
        st = heddle_handle_matrix(r->ctx, NULL, r->b->nb, r->b->nb, 0, HEDDLE_F64, &r->tile[i]);
        if (st == HEDDLE_OK)
            st = submit(r, &kernel_fill,
                        i < nn       ? 1.0
                        : i < 2 * nn ? 0.5
                                     : 0.0,
                        (heddle_handle *[3]){r->tile[i]});
    }
    waited = heddle_wait(r->ctx);
    return st != HEDDLE_OK ? st : waited;
}

/* C[i][j] -= A[i][k] B[j][k]^T, in blocks of rows that fit with a row of B. */
static heddle_status multiply(struct run *r)
{
    const size_t n = r->b->tiles, nn = n * n;
    const size_t rows = r->b->budget_tiles / (3 * n) > 0 ? r->b->budget_tiles / (3 * n) : 1;
    heddle_status st = HEDDLE_OK, waited;

    for (size_t block = 0; block < n; block += rows)
        for (size_t j = 0; j < n; j++)
            for (size_t i = block; i < n && i < block + rows; i++)
                for (size_t k = 0; k < n && st == HEDDLE_OK; k++)
                    st = submit(r, &kernel_gemm, 0,
                                (heddle_handle *[3]){r->tile[i * n + k], r->tile[nn + j * n + k],
                                                     r->tile[2 * nn + i * n + j]});
    waited = heddle_wait(r->ctx);
    return st != HEDDLE_OK ? st : waited;
}

/* Every element of C is -n nb / 2: sums of halves are exact. */
static heddle_status check(struct run *r)
{
    const size_t n = r->b->tiles, nn = n * n, count = r->b->nb * r->b->nb;
    const double want = -0.5 * (double)(n * r->b->nb);
    heddle_status st = HEDDLE_OK;

    for (size_t i = 2 * nn; i < 3 * nn && st == HEDDLE_OK; i++) {
        void *p = NULL;

        st = heddle_handle_acquire(r->tile[i], HEDDLE_R, &p);
        if (st != HEDDLE_OK)
            break;
        for (size_t e = 0; e < count; e++)
            if (((const double *)p)[e] != want)
                r->b->is_right = false;
        st = heddle_handle_release(r->tile[i]);
    }
    return st;
}

static void disk_traffic(struct run *r, uint64_t *in, uint64_t *out)
{
    struct heddle_memory_info m = {.size = sizeof(m)};

    *in = *out = 0;
    for (unsigned i = 1; heddle_ctx_get_memory(r->ctx, i, &m) == HEDDLE_OK; i++) {
        *in += m.bytes_in;
        *out += m.bytes_out;
    }
}

static heddle_status timed(struct run *r)
{
    uint64_t in, out, start;
    heddle_status st = fill(r);

    if (st != HEDDLE_OK)
        return st;
    disk_traffic(r, &in, &out);
    start = heddle_clock_ns();
    st = multiply(r);
    r->wall_ns = (double)(heddle_clock_ns() - start);
    disk_traffic(r, &r->bytes_in, &r->bytes_out);
    r->bytes_in -= in;
    r->bytes_out -= out;
    return st == HEDDLE_OK ? check(r) : st;
}

static heddle_status run_once(struct disk_bench *b, bool on_disk, struct run *r)
{
    const struct heddle_ctx_opts o = {.size = sizeof(o),
                                      .nworkers = (unsigned)b->workers,
                                      .sched = b->policy,
                                      .devices = "none",
                                      .log = HEDDLE_OFF,
                                      .model_dir = "",
                                      .memory_budget = on_disk
                                                           ? b->budget_tiles * tile_bytes(b)
                                                           : data_bytes(b) + (UINT64_C(1) << 20),
                                      .disk_path = on_disk ? b->path : NULL,
                                      .message = keep_sentence,
                                      .message_user = b,
                                      .ignore_env = true};
    struct heddle_error e = {.size = sizeof(e)};
    heddle_status st, closed;

    *r = (struct run){.b = b};
    r->tile = calloc(3 * b->tiles * b->tiles, sizeof(heddle_handle *));
    st = r->tile == NULL ? HEDDLE_ENOMEM : heddle_ctx_create(&o, &r->ctx);
    if (st == HEDDLE_OK)
        st = timed(r);
    if (st != HEDDLE_OK && r->ctx != NULL && b->why[0] == '\0' &&
        heddle_ctx_error(r->ctx, &e) == HEDDLE_OK)
        snprintf(b->why, sizeof(b->why), "%s", e.message);
    for (size_t i = 0; r->tile != NULL && i < 3 * b->tiles * b->tiles; i++)
        heddle_handle_unref(r->tile[i]);
    free(r->tile);
    closed = heddle_ctx_destroy(r->ctx);
    return st == HEDDLE_OK ? closed : st;
}

/* --- the disk ------------------------------------------------------------ */

static bool probe_pass(int fd, void *buf, size_t bytes, bool is_write)
{
    for (off_t i = 0; i < PROBE_TILES; i++) {
        const off_t at = i * (off_t)bytes;
        const ssize_t n = is_write ? pwrite(fd, buf, bytes, at) : pread(fd, buf, bytes, at);

        if (n != (ssize_t)bytes)
            return false;
    }
    return !is_write || fdatasync(fd) == 0;
}

static int probe(struct disk_bench *b)
{
    const size_t bytes = (tile_bytes(b) + 4095) / 4096 * 4096;
    void *buf = aligned_alloc(4096, bytes);
    char name[4200];
    uint64_t t0, t1, t2;
    bool is_ok;
    int fd, direct;

    snprintf(name, sizeof(name), "%s/heddle-bench-XXXXXX", b->path);
    fd = mkstemp(name);
    if (fd < 0 || buf == NULL) {
        free(buf);
        return cli_fail(b->c, "the folder '%s' cannot be written: %s", b->path, strerror(errno));
    }
    direct = open(name, O_RDWR | O_DIRECT | O_CLOEXEC);
    unlink(name);
    b->is_direct = direct >= 0;
    memset(buf, 1, bytes);
    is_ok = posix_fallocate(fd, 0, (off_t)(bytes * PROBE_TILES)) == 0;
    t0 = heddle_clock_ns();
    is_ok = is_ok && probe_pass(direct >= 0 ? direct : fd, buf, bytes, true);
    t1 = heddle_clock_ns();
    is_ok = is_ok && probe_pass(direct >= 0 ? direct : fd, buf, bytes, false);
    t2 = heddle_clock_ns();
    b->write_rate = (double)(bytes * PROBE_TILES) / (double)(t1 - t0);
    b->read_rate = (double)(bytes * PROBE_TILES) / (double)(t2 - t1);
    close(fd);
    if (direct >= 0)
        close(direct);
    free(buf);
    return is_ok ? 0
                 : cli_fail(b->c, "the disk of '%s' cannot be measured: %s", b->path,
                            strerror(errno));
}

/* --- output -------------------------------------------------------------- */

static int print(struct disk_bench *b)
{
    const double disk_ns =
        (double)b->bytes_in / b->write_rate + (double)b->bytes_out / b->read_rate;
    const double ideal = disk_ns > b->compute_ns ? disk_ns : b->compute_ns;
    struct heddle_json j;

    if (!b->c->json) {
        fprintf(b->c->out,
                "tile GEMM of %.1f MB in tiles of %" PRIu64 " with %.1f MB of "
                "memory: %.3f s\n"
                "  arithmetic in memory %.3f s, disk %.3f s (%.1f MB written at "
                "%.2f GB/s, %.1f MB read at %.2f GB/s%s)\n"
                "  %.1f %% of the best possible speed; the result is %s\n",
                (double)data_bytes(b) / 1e6, b->nb, (double)(b->budget_tiles * tile_bytes(b)) / 1e6,
                b->wall_ns / 1e9, b->compute_ns / 1e9, disk_ns / 1e9, (double)b->bytes_in / 1e6,
                b->write_rate, (double)b->bytes_out / 1e6, b->read_rate,
                b->is_direct ? "" : ", through the page cache", 100 * ideal / b->wall_ns,
                b->is_right ? "right" : "WRONG");
        return 0;
    }
    heddle_json_init_file(&j, b->c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "disk");
    heddle_json_key_str(&j, "version", heddle_version());
    heddle_json_key_uint(&j, "tiles", b->tiles);
    heddle_json_key_uint(&j, "nb", b->nb);
    heddle_json_key_uint(&j, "reps", b->reps);
    heddle_json_key_uint(&j, "data_bytes", data_bytes(b));
    heddle_json_key_uint(&j, "budget_bytes", b->budget_tiles * tile_bytes(b));
    heddle_json_key_double(&j, "wall_ns", b->wall_ns);
    heddle_json_key_double(&j, "compute_ns", b->compute_ns);
    heddle_json_key_double(&j, "disk_ns", disk_ns);
    heddle_json_key_uint(&j, "written_bytes", b->bytes_in);
    heddle_json_key_uint(&j, "read_bytes", b->bytes_out);
    heddle_json_key_double(&j, "write_gbytes", b->write_rate);
    heddle_json_key_double(&j, "read_gbytes", b->read_rate);
    heddle_json_key_bool(&j, "direct", b->is_direct);
    heddle_json_key_double(&j, "share", ideal / b->wall_ns);
    heddle_json_key_bool(&j, "right", b->is_right);
    return bench_json_end(b->c, &j);
}

/* --- the command --------------------------------------------------------- */

static int measure(struct disk_bench *b)
{
    struct run memory, disk;
    double in_memory[101], on_disk[101];
    int rc = probe(b);

    b->is_right = true;
    for (uint64_t i = 0; i < b->reps && rc == 0; i++) {
        heddle_status st = run_once(b, false, &memory);

        if (st == HEDDLE_OK)
            st = run_once(b, true, &disk);
        if (st != HEDDLE_OK)
            rc = cli_fail(b->c, "the run failed: %s",
                          b->why[0] != '\0' ? b->why : heddle_status_text(st));
        in_memory[i] = memory.wall_ns;
        on_disk[i] = disk.wall_ns;
    }
    if (rc != 0)
        return rc;
    b->compute_ns = bench_stat(in_memory, b->reps).median;
    b->wall_ns = bench_stat(on_disk, b->reps).median;
    b->bytes_in = disk.bytes_in;
    b->bytes_out = disk.bytes_out;
    rc = print(b);
    if (rc == 0 && !b->is_right)
        rc = cli_fail(b->c, "the product is wrong");
    return rc;
}

/* "128,256" */
static int parse_orders(struct disk_bench *b)
{
    const char *p = b->nb_text;

    for (b->norders = 0;; p++) {
        const size_t len = strcspn(p, ",");
        char word[16] = "";
        uint64_t v = 0;

        if (len < sizeof(word))
            snprintf(word, sizeof(word), "%.*s", (int)len, p);
        if (heddle_parse_u64(word, &v) != HEDDLE_OK || v < MIN_NB || v > MAX_NB ||
            b->norders == MAX_ORDERS)
            return cli_error(b->c,
                             "--nb is '%s', but it must be up to %d whole "
                             "numbers from %d to %d with commas between them",
                             b->nb_text, MAX_ORDERS, MIN_NB, MAX_NB);
        b->order[b->norders++] = v;
        p += len;
        if (*p == '\0')
            return 0;
    }
}

static int disk_run(struct cli *c, int argc, char **argv)
{
    struct disk_bench b = {.c = c, .path = ".", .tiles = 9, .nb_text = "64,128,256,384", .reps = 3};
    const struct cli_opt opts[] = {
        {"--path", CLI_STRING, &b.path, 0, 0},       {"--tiles", CLI_UINT, &b.tiles, 2, MAX_TILES},
        {"--nb", CLI_STRING, &b.nb_text, 0, 0},      {"--policy", CLI_STRING, &b.policy, 0, 0},
        {"--kernels", CLI_STRING, &b.kernels, 0, 0}, {"--workers", CLI_UINT, &b.workers, 1, 4096},
        {"--reps", CLI_UINT, &b.reps, 1, 101},       {0}};
    int rc = cli_parse(c, "bench disk", argc, argv, opts, NULL);

    if (rc == 0)
        rc = sim_check_policy(c, b.policy);
    if (rc == 0)
        rc = parse_orders(&b);
    if (rc != 0)
        return rc;
    b.ops = b.kernels == NULL ? heddle_tile_table[0] : tile_find(b.kernels);
    if (b.ops == NULL)
        return cli_error(c, "there are no kernels '%s' in this build", b.kernels);
    if (b.ops->setup != NULL)
        b.ops->setup();
    b.budget_tiles = b.tiles * b.tiles; /* a third */
    for (unsigned i = 0; i < b.norders && rc == 0; i++) {
        b.nb = b.order[i];
        rc = measure(&b);
    }
    return rc;
}

const struct heddle_cmd heddle_bench_disk = {
    .name = "disk",
    .help = "data three times the memory, against arithmetic and disk",
    .usage = "heddle bench disk [--path DIR] [--tiles N] [--nb NB,NB,...]\n"
             "    [--policy P]\n"
             "    [--kernels blas|plain] [--workers W] [--reps R] [--json]\n"
             "\n"
             "  --path     folder for the data (default: this one)\n"
             "  --tiles    along a side of the three matrices (default 9)\n"
             "  --nb       orders of tiles (default 64,128,256,384)\n"
             "  --policy   scheduler (default: the default)\n"
             "  --kernels  arithmetic by the BLAS or in plain C\n"
             "  --workers  (default: all cores)\n"
             "  --reps     medians over so many runs (default 3)\n"
             "The share is of the longer of the time in memory and of what the "
             "disk\n"
             "needs for the bytes that were moved.\n",
    .run = disk_run,
};
