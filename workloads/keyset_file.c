/* SPDX-License-Identifier: Apache-2.0
 *
 * Sorted key files: SOSD's (a little-endian 64-bit count, then that many 32- or 64-bit keys) and raw ones (64-bit keys
 * without a count). The file is mapped and read once to check it. It is copied only if it cannot be used as it is.
 */
#include "workloads/keyset.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"

struct key_file {
    const char *path;
    const unsigned char *bytes; /* the first key in the mapped file */
    uint64_t count;
    unsigned width;    /* bytes of a key */
    uint64_t distinct; /* distinct keys that an index accepts */
};

static bool starts_with(const char *text, const char *prefix) {
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool wl_keyset_is_file(const char *key_set) {
    return starts_with(key_set, "sosd:") || starts_with(key_set, "raw:");
}

static uint64_t little_endian(const unsigned char *bytes, unsigned width) {
    uint64_t value = 0;
    for (unsigned i = width; i > 0; i--) {
        value = value << 8 | bytes[i - 1];
    }
    return value;
}

static uint64_t big_endian(const unsigned char *bytes) {
    uint64_t value = 0;
    for (unsigned i = 0; i < 8; i++) {
        value = value << 8 | bytes[i];
    }
    return value;
}

static uint64_t file_key(const struct key_file *file, uint64_t position) {
    return little_endian(file->bytes + position * file->width, file->width);
}

static int file_map(struct wl_keymap *map, const char *path, struct dm_err *err) {
    struct stat status;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0) {
        int rc = dm_fail(err, DM_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return rc;
    }
    int rc = 0;
    if (!S_ISREG(status.st_mode) || status.st_size < 8) {
        rc = dm_fail(err, DM_ERR_CORRUPT, "%s: holds no keys (%lld bytes)", path, (long long)status.st_size);
    } else {
        map->mapped_bytes = (size_t)status.st_size;
        map->mapped = mmap(NULL, map->mapped_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
        if (map->mapped == MAP_FAILED) {
            map->mapped = NULL;
            rc = dm_fail(err, DM_ERR_IO, "%s: cannot be mapped: %s", path, strerror(errno));
        }
    }
    close(fd);
    return rc;
}

/* The width at which `count` keys fill `bytes`; 0 if neither 8 nor 4 does. A name with _uint32 or _uint64 allows only
 * that width. */
static unsigned width_of(const char *path, uint64_t count, uint64_t bytes) {
    const char *name = strrchr(path, '/') != NULL ? strrchr(path, '/') : path;
    bool narrow = strstr(name, "_uint32") != NULL, wide = strstr(name, "_uint64") != NULL;
    if (!narrow && count <= bytes / 8 && count * 8 == bytes) {
        return 8;
    }
    return !wide && count <= bytes / 4 && count * 4 == bytes ? 4 : 0;
}

static int sosd_header(struct key_file *file, const struct wl_keymap *map, struct dm_err *err) {
    const unsigned char *start = map->mapped;
    uint64_t rest = map->mapped_bytes - 8;
    file->count = little_endian(start, 8);
    file->bytes = start + 8;
    file->width = width_of(file->path, file->count, rest);
    if (file->width != 0 && file->count > 0) {
        return 0;
    }
    if (file->count == 0) {
        return dm_fail(err, DM_ERR_CORRUPT, "%s: the count at its start is 0: no keys", file->path);
    }
    if (width_of(file->path, big_endian(start), rest) != 0) {
        return dm_fail(err, DM_ERR_CORRUPT, "%s: is big-endian; SOSD files are little-endian", file->path);
    }
    return dm_fail(
        err, DM_ERR_CORRUPT,
        "%s: the count at its start is %" PRIu64 " keys, but %" PRIu64
        " bytes follow (a key has 8 bytes, or 4 if the name contains _uint32; the file is truncated, or it has no "
        "count: then use raw:FILE)",
        file->path, file->count, rest);
}

static int raw_header(struct key_file *file, const struct wl_keymap *map, struct dm_err *err) {
    file->bytes = map->mapped;
    file->count = map->mapped_bytes / 8;
    file->width = 8;
    if (map->mapped_bytes % 8 != 0) {
        return dm_fail(err, DM_ERR_CORRUPT, "%s: %zu bytes are not a whole number of 8-byte keys", file->path,
                       map->mapped_bytes);
    }
    return 0;
}

/* Checks that keys ascend and counts the distinct ones. Warns once about repeated keys, and about the key that no index
 * accepts. */
static int file_check(struct key_file *file, struct dm_err *err) {
    uint64_t before = 0, repeated = 0, first_repeated = 0, excluded = 0;
    for (uint64_t i = 0; i < file->count; i++) {
        uint64_t key = file_key(file, i);
        if (i > 0 && key < before) {
            return dm_fail(err, DM_ERR_CORRUPT,
                           "%s: not sorted: the key at position %" PRIu64 " is %" PRIu64 ", the one before it %" PRIu64,
                           file->path, i, key, before);
        }
        if (i > 0 && key == before) {
            first_repeated = repeated++ == 0 ? i : first_repeated;
        } else if (key > WL_KEY_MAX) {
            excluded = 1;
        }
        before = key;
    }
    file->distinct = file->count - repeated - excluded;
    if (repeated > 0) {
        dm_log(DM_LOG_WARN, "%s: %" PRIu64 " keys are repeated (the first at position %" PRIu64 "): they are ignored",
               file->path, repeated, first_repeated);
    }
    if (excluded > 0) {
        dm_log(DM_LOG_WARN, "%s: its greatest key is 2^64 - 1, which is reserved for the indexes: it is ignored",
               file->path);
    }
    return 0;
}

/* Copies `keys` of the distinct keys: for each i the one of rank floor(i * distinct / keys). */
static int file_copy(struct wl_keymap *map, const struct key_file *file, uint64_t keys, struct dm_err *err) {
    map->owned = malloc(keys * sizeof map->owned[0]);
    if (map->owned == NULL) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "%s: no memory for %" PRIu64 " keys", file->path, keys);
    }
    uint64_t rank = 0, taken = 0;
    for (uint64_t i = 0; i < file->count && taken < keys; i++) {
        uint64_t key = file_key(file, i);
        if (i > 0 && key == file_key(file, i - 1)) {
            continue;
        }
        if (rank == (uint64_t)((unsigned __int128)taken * file->distinct / keys)) {
            map->owned[taken++] = key;
        }
        rank++;
    }
    map->sorted = map->owned;
    munmap(map->mapped, map->mapped_bytes);
    map->mapped = NULL;
    return 0;
}

static int file_open(struct wl_keymap *map, struct key_file *file, bool raw, uint64_t keys, struct dm_err *err) {
    DM_TRY(file_map(map, file->path, err));
    assert(map->mapped != NULL);
    DM_TRY(raw ? raw_header(file, map, err) : sosd_header(file, map, err));
    DM_TRY(file_check(file, err));
    if (file->distinct == 0 || keys > file->distinct) {
        return dm_fail(err, DM_ERR_INVALID, "%s: holds %" PRIu64 " different keys, but %" PRIu64 " were asked for",
                       file->path, file->distinct, keys > 0 ? keys : 1);
    }
    map->count = keys > 0 ? keys : file->distinct;
    const uint16_t probe = 1;
    bool little = *(const unsigned char *)&probe == 1;
    if (map->count == file->count && file->width == 8 && little) {
        map->sorted = (const uint64_t *)(const void *)file->bytes;
        return 0;
    }
    return file_copy(map, file, map->count, err);
}

int wl_keyset_file_open(struct wl_keymap *map, const char *key_set, uint64_t keys, struct dm_err *err) {
    bool raw = starts_with(key_set, "raw:");
    struct key_file file = {.path = strchr(key_set, ':') + 1};
    int rc = file_open(map, &file, raw, keys, err);
    if (rc < 0 && map->mapped != NULL) {
        munmap(map->mapped, map->mapped_bytes);
        map->mapped = NULL;
    }
    return rc;
}
