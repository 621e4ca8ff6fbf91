/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * module: PTX, functions, launches.
 *
 * Structure  of the text of a module only the heads are read: which entries there
 *            are and the sizes of their parameters. What an entry does is in
 *            kernels.c; parameters that differ from those there are an error.
 * Threads    any.
 */
#include "fakecuda.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CUfunc_st {
    CUmodule module;
    CUfunction next;
    const struct fc_kernel *kernel;
    size_t shared_most;
};

struct CUmod_st {
    struct fc_obj obj;
    struct fc_lock lock;
    char *text;
    CUfunction functions;
};

enum { SHARED_PLAIN = 48 << 10, SHARED_MOST = 227 << 10 };

/* --- the text ------------------------------------------------------------ */

/* What is wrong with it; NULL: nothing that can be seen. */
static const char *text_check(const char *text)
{
    int depth = 0;

    if (strstr(text, ".version") == NULL)
        return "line 1; fatal : Missing .version directive";
    if (strstr(text, ".target") == NULL)
        return "line 2; fatal : Missing .target directive";
    for (const char *p = text; *p != '\0' && depth >= 0; p++)
        depth += (*p == '{') - (*p == '}');
    return depth != 0 ? "line 3; fatal : Parsing error near '}'" : NULL;
}

/* The parameter list of this entry, behind its bracket; NULL: no such entry. */
static const char *text_entry(const char *text, const char *name)
{
    const size_t n = strlen(name);

    while ((text = strstr(text, ".entry")) != NULL) {
        text += strlen(".entry");
        while (isspace((unsigned char)*text))
            text++;
        if (strncmp(text, name, n) != 0)
            continue;
        text += n;
        while (isspace((unsigned char)*text))
            text++;
        if (*text == '(')
            return text + 1;
        if (*text == '{' || *text == '.') /* without parameters */
            return ")";
    }
    return NULL;
}

/* Do the types of the list have the sizes the kernel knows? */
static bool text_fits(const char *list, const char *args)
{
    size_t i = 0;

    while (*list != ')' && *list != '\0') {
        const char *end = list + strcspn(list, ",)");
        const char *type = strstr(list, ".param");
        size_t bits = 0;

        if (type == NULL || type > end)
            break;
        for (type += strlen(".param"); type < end && bits == 0; type++)
            if (*type == '.' && strchr("busf", type[1]) != NULL)
                bits = strtoul(type + 2, NULL, 10);
        if (args[i] == '\0' || bits != 8 * fc_arg_bytes(args[i]))
            return false;
        i++;
        list = *end == ',' ? end + 1 : end;
    }
    return args[i] == '\0';
}

/* --- modules ------------------------------------------------------------- */

enum { OPTION_ERROR_LOG = 5, OPTION_ERROR_LOG_BYTES = 6 };

static void complain(const char *why, unsigned n, const unsigned *options, void **values)
{
    size_t cap = 0;

    for (unsigned i = 0; i < n; i++)
        if (options[i] == OPTION_ERROR_LOG_BYTES)
            cap = (size_t)(uintptr_t)values[i];
    for (unsigned i = 0; i < n; i++)
        if (options[i] == OPTION_ERROR_LOG && cap > 0)
            snprintf(values[i], cap, "ptxas application ptx input, %s\n", why);
}

CU(cuModuleLoadDataEx, CUmodule *out, const void *image, unsigned n, unsigned *options,
   void **values)
{
    const unsigned char *head = image;
    const char *why;
    CUcontext ctx;
    CUresult r = fc_enter(&ctx);
    size_t bytes;

    if (r == FC_OK)
        r = fc_capture_unsafe();
    if (r != FC_OK)
        return r;
    if (image == NULL)
        return FC_EVALUE;
    /* ELF, fatbin: code of a real device */
    if (memcmp(head,
               "\x7f"
               "ELF",
               4) == 0 ||
        memcmp(head, "\x50\xed\x55\xba", 4) == 0)
        return FC_EBINARY;
    why = text_check(image);
    if (why != NULL) {
        complain(why, n, options, values);
        return FC_EPTX;
    }
    bytes = strlen(image) + 1;
    *out = fc_new(sizeof(**out));
    (*out)->text = fc_new(bytes);
    memcpy((*out)->text, image, bytes);
    fc_obj_add(&(*out)->obj, FC_OBJ_MODULE, ctx);
    return FC_OK;
}

CU(cuModuleLoadData, CUmodule *out, const void *image)
{
    return cuModuleLoadDataEx(out, image, 0, NULL, NULL);
}

void fc_module_close(CUmodule m)
{
    CUfunction next;

    fc_obj_remove(&m->obj);
    for (CUfunction f = m->functions; f != NULL; f = next) {
        next = f->next;
        free(f);
    }
    free(m->text);
    free(m);
}

CU(cuModuleUnload, CUmodule m)
{
    CUcontext ctx;
    CUresult r = fc_enter_obj(&ctx, m, FC_OBJ_MODULE);

    if (r == FC_OK)
        r = fc_capture_unsafe();
    if (r == FC_OK)
        fc_module_close(m);
    return r;
}

static CUfunction function_new(CUmodule m, const struct fc_kernel *k)
{
    CUfunction f;

    fc_lock(&m->lock);
    f = m->functions;
    while (f != NULL && f->kernel != k)
        f = f->next;
    if (f == NULL) {
        f = fc_new(sizeof(*f));
        f->module = m;
        f->kernel = k;
        f->shared_most = SHARED_PLAIN;
        f->next = m->functions;
        m->functions = f;
    }
    fc_unlock(&m->lock);
    return f;
}

CU(cuModuleGetFunction, CUfunction *out, CUmodule m, const char *name)
{
    const struct fc_kernel *k;
    const char *list;
    CUcontext ctx;
    const CUresult r = fc_enter_obj(&ctx, m, FC_OBJ_MODULE);

    if (r != FC_OK)
        return r;
    list = text_entry(m->text, name);
    if (list == NULL)
        return FC_ENOTFOUND;
    k = fc_kernel_find(name);
    if (k == NULL || !text_fits(list, k->args)) {
        fprintf(stderr, "fakecuda: kernels.c has no %s%s\n", name,
                k != NULL ? " with these parameters" : "");
        return FC_ENOTFOUND;
    }
    *out = function_new(m, k);
    return FC_OK;
}

CU(cuFuncSetAttribute, CUfunction f, unsigned attribute, int value)
{
    enum { MAX_SHARED = 8 };
    CUcontext ctx;
    const CUresult r = fc_enter(&ctx);

    if (r != FC_OK)
        return r;
    if (attribute == MAX_SHARED) {
        if (value < 0 || value > SHARED_MOST)
            return FC_EVALUE;
        f->shared_most = (size_t)value;
    }
    return FC_OK;
}

/* --- launches ------------------------------------------------------------ */

static bool shape_is_valid(const unsigned grid[3], const unsigned block[3])
{
    if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0 || block[0] == 0 || block[1] == 0 ||
        block[2] == 0)
        return false;
    if (grid[0] > INT32_MAX || grid[1] > 65535 || grid[2] > 65535)
        return false;
    return block[0] <= 1024 && block[1] <= 1024 && block[2] <= 64 &&
           (uint64_t)block[0] * block[1] * block[2] <= 1024;
}

CUresult fc_launch_work(CUfunction f, const unsigned grid[3], const unsigned block[3],
                        size_t shared, void **args, struct fc_work *out)
{
    const struct fc_kernel *k = f->kernel;
    const size_t n = strlen(k->args);
    uint64_t threads = 1;
    char *at;

    if (!shape_is_valid(grid, block) || shared > f->shared_most || (n > 0 && args == NULL))
        return FC_EVALUE;
    for (int d = 0; d < 3; d++)
        threads *= (uint64_t)grid[d] * block[d];
    *out = (struct fc_work){.kind = FC_WORK_KERNEL, .ctx = f->module->obj.ctx};
    out->u.launch.kernel = k;
    out->u.launch.nthreads = threads;
    out->u.launch.function = f;
    out->u.launch.shared = (unsigned)shared;
    memcpy(out->u.launch.grid, grid, 3 * sizeof(*grid));
    memcpy(out->u.launch.block, block, 3 * sizeof(*block));
    out->blob_bytes = 8 * n;
    out->blob = n > 0 ? fc_new(out->blob_bytes) : NULL;
    at = out->blob;
    for (size_t i = 0; i < n; i++, at += 8)
        memcpy(at, args[i], fc_arg_bytes(k->args[i]));
    return FC_OK;
}

static CUresult launch(CUfunction f, const unsigned *grid, const unsigned *block, unsigned shared,
                       CUstream h, void **args)
{
    struct fc_work w;
    CUcontext ctx;
    CUstream s;
    CUresult r = fc_stream_of(h, &ctx, &s);

    if (r == FC_OK)
        r = fc_fail(ctx, FC_FAIL_LAUNCH);
    if (r != FC_OK)
        return r;
    if (f == NULL || f->module->obj.what != FC_OBJ_MODULE || f->module->obj.ctx != s->obj.ctx ||
        s->obj.ctx != ctx)
        return FC_EHANDLE;
    r = fc_launch_work(f, grid, block, shared, args, &w);
    return r != FC_OK ? r : fc_stream_work(s, &w);
}

/* Kernels here have no blocks that could wait for each other. */
CU(cuLaunchCooperativeKernel, CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
   unsigned by, unsigned bz, unsigned shared, CUstream h, void **args)
{
    const unsigned grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};

    return launch(f, grid, block, shared, h, args);
}

CU(cuLaunchKernel, CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
   unsigned bz, unsigned shared, CUstream h, void **args, void **extra)
{
    const unsigned grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};

    if (extra != NULL)
        return FC_ENOTSUPPORTED;
    return launch(f, grid, block, shared, h, args);
}
