/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads recorded operations. The file is mapped, and checked completely before the first operation is returned.
 */
#include "workloads/record.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "workloads/keyset.h"
#include "workloads/record_format.h"

struct wl_replay {
    const unsigned char *bytes;
    uint64_t size, blocks; /* size of the file; offset of the first block */
    struct wl_record_info info;
};

static int file_map(struct wl_replay *replay, const char *path, struct dm_err *err) {
    struct stat status;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return dm_fail(err, DM_ERR_IO, "replay: %s cannot be opened: %s", path, strerror(errno));
    }
    void *mapped = MAP_FAILED;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_size >= (off_t)sizeof(struct wl_record_header)) {
        replay->size = (uint64_t)status.st_size;
        mapped = mmap(NULL, replay->size, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    close(fd);
    if (mapped == MAP_FAILED) {
        return dm_fail(err, DM_ERR_CORRUPT, "replay: %s is not a file of recorded operations (too short)", path);
    }
    replay->bytes = mapped;
    return 0;
}

static int header_read(struct wl_replay *replay, const char *path, struct dm_err *err) {
    struct wl_record_header header;
    assert(replay->bytes != NULL);
    memcpy(&header, replay->bytes, sizeof header);
    if (header.magic == WL_RECORD_MAGIC_1) {
        return dm_fail(err, DM_ERR_CORRUPT, "replay: %s is of version 1, without a hash; record it again", path);
    }
    if (header.magic != WL_RECORD_MAGIC) {
        return dm_fail(err, DM_ERR_CORRUPT,
                       "replay: %s is not a file of recorded operations, or comes from a machine of another byte order",
                       path);
    }
    if (header.complete != 1) {
        return dm_fail(err, DM_ERR_CORRUPT, "replay: %s was not completed; record it again", path);
    }
    if (header.config_bytes % 8 != 0 || header.config_bytes > replay->size - sizeof header || header.clients == 0) {
        return dm_fail(err, DM_ERR_CORRUPT, "replay: %s has a damaged header", path);
    }
    replay->blocks = sizeof header + header.config_bytes;
    replay->info = (struct wl_record_info){
        .seed = header.seed,
        .operations = header.operations,
        .recorded = header.recorded,
        .clients = header.clients,
        .scan_max = header.scan_max,
    };
    memcpy(replay->info.by_kind, header.by_kind, sizeof header.by_kind);
    return 0;
}

/* Reads the "name=value" lines after the header. */
static int config_read(const struct wl_replay *replay, const char *path, struct wl_config *config, struct dm_err *err) {
    const char *text = (const char *)replay->bytes + sizeof(struct wl_record_header);
    size_t bytes = replay->blocks - sizeof(struct wl_record_header);
    char *copy = strndup(text, bytes);
    if (copy == NULL) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "replay: no memory");
    }
    int rc = 0;
    char *rest = NULL;
    for (char *line = strtok_r(copy, "\n", &rest); line != NULL && rc == 0; line = strtok_r(NULL, "\n", &rest)) {
        char *equals = strchr(line, '=');
        if (equals == NULL) {
            rc = dm_fail(err, DM_ERR_CORRUPT, "'%.60s' is not an option", line);
            break;
        }
        *equals = '\0';
        rc = dm_opt_set(wl_options, config, line, equals + 1, err);
    }
    free(copy);
    return rc < 0 ? dm_fail_in(err, DM_ERR_CORRUPT, "replay: %s has a damaged configuration", path) : 0;
}

static bool block_is_sound(const struct wl_replay *replay, uint64_t offset, struct wl_record_block *block) {
    if (replay->size - offset < sizeof *block) {
        return false;
    }
    memcpy(block, replay->bytes + offset, sizeof *block);
    return block->client < replay->info.clients && block->count > 0 &&
           block->count <= (replay->size - offset - sizeof *block) / sizeof(struct wl_record_op);
}

static struct wl_record_op op_at(const struct wl_replay *replay, uint64_t block, uint64_t i) {
    struct wl_record_op op;
    memcpy(&op, replay->bytes + block + sizeof(struct wl_record_block) + i * sizeof op, sizeof op);
    return op;
}

static int blocks_check(const struct wl_replay *replay, const char *path, struct dm_err *err) {
    uint64_t found = 0;
    for (uint64_t offset = replay->blocks; offset < replay->size;) {
        struct wl_record_block block;
        if (!block_is_sound(replay, offset, &block)) {
            return dm_fail(err, DM_ERR_CORRUPT, "replay: %s is damaged or truncated at byte %" PRIu64, path, offset);
        }
        for (uint32_t i = 0; i < block.count; i++) {
            struct wl_record_op op = op_at(replay, offset, i);
            if (op.kind >= WL_OP_KIND_COUNT || op.key > WL_KEY_MAX || op.scan_length > replay->info.scan_max) {
                return dm_fail(err, DM_ERR_CORRUPT,
                               "replay: %s: operation %u of the block at byte %" PRIu64 " is damaged", path, i, offset);
            }
        }
        found += block.count;
        offset += sizeof block + block.count * sizeof(struct wl_record_op);
    }
    if (found != replay->info.recorded) {
        return dm_fail(err, DM_ERR_CORRUPT, "replay: %s holds %" PRIu64 " operations, but its header states %" PRIu64,
                       path, found, replay->info.recorded);
    }
    return 0;
}

static int hash_check(const struct wl_replay *replay, const char *path, struct dm_err *err) {
    struct wl_record_header header;
    XXH64_state_t state;
    memcpy(&header, replay->bytes, sizeof header);
    uint64_t stated = header.hash;
    header.hash = 0;
    XXH64_reset(&state, 0);
    XXH64_update(&state, replay->bytes + sizeof header, replay->size - sizeof header);
    XXH64_update(&state, &header, sizeof header);
    if (XXH64_digest(&state) != stated) {
        return dm_fail(err, DM_ERR_CORRUPT, "replay: %s was changed after it was recorded: its hash is another", path);
    }
    return 0;
}

int wl_replay_open(const char *path, struct wl_config *config, struct wl_replay **replay, struct dm_err *err) {
    *replay = NULL;
    struct wl_replay *opened = calloc(1, sizeof *opened);
    if (opened == NULL) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "replay: no memory");
    }
    int rc = file_map(opened, path, err);
    if (rc == 0) {
        rc = header_read(opened, path, err);
    }
    if (rc == 0) {
        rc = config_read(opened, path, config, err);
    }
    if (rc == 0) {
        rc = blocks_check(opened, path, err);
    }
    if (rc == 0) {
        rc = hash_check(opened, path, err);
    }
    if (rc < 0) {
        wl_replay_close(opened);
        return rc;
    }
    *replay = opened;
    return 0;
}

void wl_replay_close(struct wl_replay *replay) {
    if (replay != NULL) {
        if (replay->bytes != NULL) {
            munmap((void *)(uintptr_t)replay->bytes, replay->size);
        }
        free(replay);
    }
}

const struct wl_record_info *wl_replay_info(const struct wl_replay *replay) {
    return &replay->info;
}

struct wl_replay_cursor wl_replay_cursor_make(const struct wl_replay *replay, unsigned client, unsigned clients) {
    return (struct wl_replay_cursor){.replay = replay, .block = replay->blocks, .client = client, .clients = clients};
}

int wl_replay_next(struct wl_replay_cursor *cursor, struct wl_op *op) {
    const struct wl_replay *replay = cursor->replay;
    while (cursor->block < replay->size) {
        struct wl_record_block block;
        memcpy(&block, replay->bytes + cursor->block, sizeof block);
        if (block.client % cursor->clients == cursor->client && cursor->next < block.count) {
            struct wl_record_op recorded = op_at(replay, cursor->block, cursor->next++);
            *op = (struct wl_op){
                .kind = (enum wl_op_kind)recorded.kind, .key = recorded.key, .scan_length = recorded.scan_length};
            return 0;
        }
        cursor->block += sizeof block + block.count * sizeof(struct wl_record_op);
        cursor->next = 0;
    }
    return DM_NOT_FOUND;
}
