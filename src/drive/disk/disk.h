/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_DRIVE_DISK_DISK_H
#define HEDDLE_DRIVE_DISK_DISK_H

/*
 * What the sources of the disk driver share; private to them.
 *
 *   disk.c    the driver: streams, threads, memory
 *   folder.c  the folder, its disk, the room there
 *   space.c   which ranges of the file are free
 *   io.c      one copy between the file and the host
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "drive/drive.h"

/* Of every range, and of everything that is read or written around the page
 * cache: no disk asks for more. */
#define HEDDLE_DISK_ALIGN 4096u
/* Of the buffer that copies go through when the host's side has gaps or is not
 * aligned. */
#define HEDDLE_DISK_STAGE ((size_t)2 << 20)

extern const struct heddle_driver heddle_driver_disk;

/* --- folder.c ------------------------------------------------------------- */

/* The folder that the options name, or that of temporary files. */
const char *heddle_disk_folder(const struct heddle_drive_env *env);
/* Bytes that any program may still write to the folder's disk. */
uint64_t heddle_disk_left(const char *path);
/* The name that the maker gave the disk of a file system, for the models; where there is none,
 * the kernel's number of the file system. */
void heddle_disk_model(dev_t dev, char *out, size_t cap);

/* --- space.c -------------------------------------------------------------- */

struct heddle_disk_range {
    uint64_t at, bytes;
};

/* Free ranges of a file: ascending, never adjacent, never empty. One thread. */
struct heddle_disk_space {
    const struct heddle_allocator *alloc;
    struct heddle_disk_range *range;
    size_t n, cap;
    uint64_t end;  /* of the file; everything below is a free range or taken */
    uint64_t used; /* bytes taken */
};

/* Makes sure that give() finds room while at most `nlive` ranges are taken.
 * HEDDLE_ENOMEM. */
HEDDLE_MUST_USE heddle_status heddle_disk_space_reserve(struct heddle_disk_space *s, size_t nlive);
void heddle_disk_space_fini(struct heddle_disk_space *s);
/* The smallest free range that is large enough. False: there is none. */
bool heddle_disk_space_take(struct heddle_disk_space *s, uint64_t bytes, uint64_t *at_out);
void heddle_disk_space_give(struct heddle_disk_space *s, uint64_t at, uint64_t bytes);
/* Free bytes right before the end: a file has to grow by that much less. */
uint64_t heddle_disk_space_tail(const struct heddle_disk_space *s);
/* The file has grown. */
void heddle_disk_space_grow(struct heddle_disk_space *s, uint64_t bytes);

/* --- io.c ----------------------------------------------------------------- */

struct heddle_disk_file {
    int fd;        /* through the page cache */
    int direct_fd; /* around it; -1: this file system cannot */
};

/* A copy on its way. */
struct heddle_disk_copy {
    bool is_write; /* host -> file */
    uint64_t at;   /* in the file */
    char *host;
    struct heddle_runs runs;
};

/* `path`: a folder. HEDDLE_EIO: errno says why. */
HEDDLE_MUST_USE heddle_status heddle_disk_file_open(struct heddle_disk_file *f, const char *path);
void heddle_disk_file_close(struct heddle_disk_file *f);
/* Makes the file longer, with room for it on the disk. HEDDLE_ENOMEM: there is
 * no room. HEDDLE_EIO. errno says why; the file is as long as it was. */
HEDDLE_MUST_USE heddle_status heddle_disk_file_grow(struct heddle_disk_file *f, uint64_t end,
                                                    uint64_t bytes);
/* Does it, on the calling thread. `stage` has HEDDLE_DISK_STAGE bytes and is
 * aligned. 0, or an errno. */
int heddle_disk_transfer(const struct heddle_disk_file *f, const struct heddle_disk_copy *c,
                         char *stage);

static inline uint64_t heddle_disk_round(uint64_t bytes)
{
    return (bytes + HEDDLE_DISK_ALIGN - 1) / HEDDLE_DISK_ALIGN * HEDDLE_DISK_ALIGN;
}

#endif /* HEDDLE_DRIVE_DISK_DISK_H */
