/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run: a fuzz target without libFuzzer.
 *
 *   run TARGET SEEDS...          every seed whole, cut and damaged, from one random seed
 *   run --write FOLDER           the seeds that the target makes, as files
 *
 * SEEDS are files and folders. Bytes that once broke a reader become a seed.
 */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "base/rng.h"
#include "tests/fuzz/fuzz.h"
#include "tests/test.h"

enum { COPIES = 400, SEED_BYTES_MAX = 1 << 16 };

static struct heddle_rng rng;
static size_t nseeds;

/* One to four changes: a byte, a bit, a piece that is gone, doubled or copied. */
static size_t damage(uint8_t *p, size_t n)
{
    for (uint32_t k = 1 + heddle_rng_below32(&rng, 4); k > 0 && n > 1; k--) {
        const size_t at = heddle_rng_below(&rng, n), len = 1 + heddle_rng_below(&rng, n - at);
        const size_t some = len < 16 ? len : 16;

        switch (heddle_rng_below32(&rng, 6)) {
        case 0: p[at] = (uint8_t)heddle_rng_next(&rng); break;
        case 1: p[at] ^= (uint8_t)(1u << heddle_rng_below32(&rng, 8)); break;
        case 2: p[at] = "0 9-\n.%e#\xff"[heddle_rng_below32(&rng, 10)]; break;
        case 3: n = heddle_rng_below32(&rng, 4) == 0 ? at : n; break;
        case 4:
            memmove(p + at, p + at + some, n - at - some);
            n -= some;
            break;
        default: memmove(p + heddle_rng_below(&rng, n - some + 1), p + at, some); break;
        }
    }
    return n;
}

/* A copy of exactly that size: the sanitizer sees the first byte behind it. */
static void one(const uint8_t *p, size_t n)
{
    uint8_t *copy = malloc(n + (n == 0));

    CHECK(copy != NULL);
    memcpy(copy, p, n);
    fuzz_one(copy, n);
    free(copy);
}

static void seed(const uint8_t *p, size_t n)
{
    uint8_t *bad = malloc(n + 1);

    CHECK(bad != NULL);
    one(p, n);
    for (size_t i = 0; i < test_scale(COPIES); i++) {
        memcpy(bad, p, n);
        one(bad, damage(bad, n));
    }
    free(bad);
    nseeds++;
}

static void seed_file(const char *path)
{
    uint8_t *p = malloc(SEED_BYTES_MAX);
    FILE *f = fopen(path, "rb");
    size_t n;

    CHECK(f != NULL && p != NULL);
    n = fread(p, 1, SEED_BYTES_MAX, f);
    CHECK(n < SEED_BYTES_MAX);
    fclose(f);
    seed(p, n);
    free(p);
}

static void seeds_at(const char *path)
{
    struct dirent **e = NULL;
    int n = scandir(path, &e, NULL, alphasort);
    char at[4096];

    if (n < 0)
        seed_file(path);
    for (int i = 0; i < n; i++) {
        snprintf(at, sizeof(at), "%s/%s", path, e[i]->d_name);
        if (e[i]->d_name[0] != '.')
            seed_file(at);
        free(e[i]);
    }
    free(e);
}

static void write_seeds(const char *folder)
{
    size_t n = 0;
    uint8_t *p;

    for (unsigned i = 0; (p = fuzz_seed(i, &n)) != NULL; i++) {
        char path[4096];
        FILE *f;

        snprintf(path, sizeof(path), "%s/made-%u", folder, i);
        f = fopen(path, "wb");
        CHECK(f != NULL && fwrite(p, 1, n, f) == n);
        CHECK(fclose(f) == 0);
        free(p);
    }
}

int main(int argc, char **argv)
{
    size_t n = 0;
    uint8_t *p;

    if (argc == 3 && strcmp(argv[1], "--write") == 0) {
        write_seeds(argv[2]);
        return 0;
    }
    heddle_rng_seed(&rng, test_seed());
    printf("HEDDLE_SEED=%llu\n", (unsigned long long)test_seed());
    fflush(stdout);
    for (unsigned i = 0; (p = fuzz_seed(i, &n)) != NULL; i++) {
        seed(p, n);
        free(p);
    }
    for (int i = 1; i < argc; i++)
        seeds_at(argv[i]);
    printf("%zu seeds\n", nseeds);
    return nseeds > 0 ? 0 : 1;
}
