/* SPDX-License-Identifier: BSD-3-Clause */
/* What is loaded in the background: used, not used, asked for at the same time, wrong; and
 * devices that are closed meanwhile. The sanitizers and the stand-in's count of what is left
 * over say whether it was right. */
#include "base/faulty_test.h"
#include "base/thread.h"
#include "drive/cuda/rig_test.h"

enum { ROUNDS = 12, NTHREADS = 4 };

/* Until nothing waits and nothing is being loaded. */
static void settle(struct heddle_dev *dev)
{
    struct heddle_cuda_warm *w = &dev->warm;
    bool is_busy = true;

    while (is_busy) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        heddle_mutex_lock(&w->lock);
        is_busy = w->library[HEDDLE_CUDA_CUBLAS] < HEDDLE_CUDA_LOADED ||
                  w->library[HEDDLE_CUDA_CUSOLVER] < HEDDLE_CUDA_LOADED;
        heddle_mutex_unlock(&w->lock);
    }
}

static void run_twice(struct heddle_dev *dev)
{
    uint32_t v[64], n = 64;
    void *p = dev_new(dev, sizeof(v)), *function = NULL;
    void *args[] = {&p, &n};
    const struct heddle_cuda_shape shape = {.block = {64}};

    for (uint32_t i = 0; i < n; i++)
        v[i] = i;
    flat_now(dev, HEDDLE_COPY_IN, p, v, sizeof(v));
    CHECK_OK(heddle_cuda_dev_kernel(dev, cuda_test_ptx, 0, "twice", &function));
    CHECK_OK(heddle_cuda_dev_enqueue(dev, 0, function, &shape, args));
    CHECK_EQ(dev->api.cuStreamSynchronize(dev->queue[0].stream), 0);
    flat_now(dev, HEDDLE_COPY_OUT, p, v, sizeof(v));
    for (uint32_t i = 0; i < n; i++)
        CHECK_EQ(v[i], 2 * i);
    dev_free(dev, p, sizeof(v));
}

TEST(loaded_then_used)
{
    DEVICE(dev);
    void *handle = NULL, *other = NULL, *solver = NULL;
    heddle_status st;

    drv->prepare(dev, NULL);
    drv->prepare(dev, cuda_test_ptx);
    settle(dev);
    CHECK(dev->warm.library[HEDDLE_CUDA_CUBLAS] == HEDDLE_CUDA_LOADED);
    st = heddle_cuda_dev_handle(dev, 0, HEDDLE_CUDA_CUBLAS, &handle);
    CHECK(st == HEDDLE_OK || st == HEDDLE_ENOENT);
    CHECK(dev->warm.handle[HEDDLE_CUDA_CUBLAS] == NULL); /* it is the stream's now */
    if (st == HEDDLE_OK) {
        CHECK_OK(heddle_cuda_dev_handle(dev, 1, HEDDLE_CUDA_CUBLAS, &other));
        CHECK(handle != other);
        CHECK_OK(heddle_cuda_dev_handle(dev, 0, HEDDLE_CUDA_CUBLAS, &other));
        CHECK(handle == other);
    }
    st = heddle_cuda_dev_handle(dev, 2, HEDDLE_CUDA_CUSOLVER, &solver);
    CHECK(st == HEDDLE_OK || st == HEDDLE_ENOENT);
    run_twice(dev);
    drv->prepare(dev, cuda_test_ptx); /* it is there: nothing is loaded again */
    run_twice(dev);
    drv->close(dev);
}

/* What nobody takes is given back. */
TEST(loaded_in_vain)
{
    DEVICE(dev);

    drv->prepare(dev, cuda_test_ptx);
    drv->prepare(dev, NULL);
    settle(dev);
    drv->close(dev);
}

/* The sentence comes from the one who asks. */
TEST(wrong_image)
{
    static const char wrong[] = "no PTX";
    DEVICE(dev);
    void *function = NULL;

    drv->prepare(dev, wrong);
    drv->prepare(dev, NULL);
    settle(dev);
    CHECK_STATUS(heddle_cuda_dev_kernel(dev, wrong, 0, "twice", &function), HEDDLE_EINVAL);
    CHECK(drv->error(dev)[0] != '\0');
    run_twice(dev);
    drv->close(dev);
}

TEST(closed_at_once)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        DEVICE(dev);

        drv->prepare(dev, NULL);
        if (i % 2 == 0)
            drv->prepare(dev, cuda_test_ptx);
        if (i % 3 == 0)
            nanosleep(&(struct timespec){.tv_nsec = (long)i * 300000}, NULL);
        drv->close(dev);
    }
}

static void *prepare_many(void *arg)
{
    for (unsigned i = 0; i < 50; i++)
        drv->prepare(arg, i % 2 == 0 ? cuda_test_ptx : NULL);
    return NULL;
}

/* All at the same time: who comes first loads, and nothing is loaded twice. */
TEST(asked_meanwhile)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        DEVICE(dev);
        struct heddle_thread t[NTHREADS];
        void *handle = NULL;
        heddle_status st;

        for (unsigned k = 0; k < NTHREADS; k++)
            CHECK_OK(heddle_thread_create(&t[k], NULL, prepare_many, dev));
        run_twice(dev);
        st = heddle_cuda_dev_handle(dev, i % HEDDLE_CUDA_STREAMS, HEDDLE_CUDA_CUBLAS, &handle);
        CHECK(st == HEDDLE_OK || st == HEDDLE_ENOENT);
        st = heddle_cuda_dev_handle(dev, i % HEDDLE_CUDA_STREAMS, HEDDLE_CUDA_CUSOLVER, &handle);
        CHECK(st == HEDDLE_OK || st == HEDDLE_ENOENT);
        for (unsigned k = 0; k < NTHREADS; k++)
            CHECK_OK(heddle_thread_join(&t[k]));
        drv->close(dev);
    }
}

/* The k-th allocation fails: the image is loaded by who asks, or nobody gets it. */
TEST(no_memory)
{
    DEVICE(dev);
    struct faulty f;

    drv->close(dev);
    for (size_t k = 1; k == 1 || f.has_failed; k++) {
        struct heddle_dev *d = NULL;
        struct heddle_drive_env env;
        void *function = NULL;
        heddle_status st;

        faulty_init(&f, k);
        env = test_env(&f.a);
        st = drv->open(&env, 0, &d);
        if (st == HEDDLE_OK) {
            drv->prepare(d, cuda_test_ptx);
            st = heddle_cuda_dev_kernel(d, cuda_test_ptx, 0, "empty", &function);
            CHECK(st == HEDDLE_OK || st == HEDDLE_ENOMEM);
            drv->close(d);
        }
        CHECK_EQ(f.nlive, 0);
    }
}

TEST_MAIN(loaded_then_used, loaded_in_vain, wrong_image, closed_at_once, asked_meanwhile, no_memory)
