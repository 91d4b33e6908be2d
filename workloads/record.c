/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes recorded operations. Layout, in the machine's byte order: a header, the configuration as text, then blocks.
 * Each client fills its own block; it takes the lock only to write the block to the file. The header's totals are
 * written at the end, so an incomplete file can be recognised.
 */
#include "workloads/record.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/output_file.h"
#include "workloads/record_format.h"

enum { BLOCK_OPS = 1024 };

struct wl_recorder {
    FILE *file;
    char *path;
    pthread_mutex_t lock; /* protects the file, the header's totals, the hash and the failure */
    struct wl_record_header header;
    XXH64_state_t hash; /* of what follows the header */
    int failed_errno;
};

struct wl_recorder_stream {
    struct wl_recorder *recorder;
    struct wl_record_block block;
    struct wl_record_op ops[BLOCK_OPS];
};

static void put(struct wl_recorder *recorder, const void *bytes, size_t count) {
    if (recorder->failed_errno == 0 && fwrite(bytes, 1, count, recorder->file) != count) {
        recorder->failed_errno = errno != 0 ? errno : EIO;
    }
}

static void put_hashed(struct wl_recorder *recorder, const void *bytes, size_t count) {
    XXH64_update(&recorder->hash, bytes, count);
    put(recorder, bytes, count);
}

/* The options as "name=value" lines, padded with zero bytes to a multiple of 8. */
static char *config_text(const struct wl_config *config, size_t *bytes) {
    char *text = NULL;
    FILE *out = open_memstream(&text, bytes);
    if (out == NULL) {
        return NULL;
    }
    for (const struct dm_opt *row = wl_options; row->name != NULL; row++) {
        char value[4096];
        dm_opt_format(row, config, value, sizeof value);
        fprintf(out, "%s=%s\n", row->name, value);
    }
    while (ftell(out) % 8 != 0) {
        fputc(0, out);
    }
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static void recorder_free(struct wl_recorder *recorder) {
    if (recorder->file != NULL) {
        fclose(recorder->file);
    }
    pthread_mutex_destroy(&recorder->lock);
    free(recorder->path);
    free(recorder);
}

static void header_begin(struct wl_recorder *recorder, const struct wl_record_info *info, size_t config_bytes) {
    recorder->header = (struct wl_record_header){
        .magic = WL_RECORD_MAGIC,
        .seed = info->seed,
        .operations = info->operations,
        .clients = info->clients,
        .config_bytes = (uint32_t)config_bytes,
    };
}

int wl_recorder_open(const char *path, const struct wl_config *config, const struct wl_record_info *info,
                     struct wl_recorder **recorder, struct dm_err *err) {
    *recorder = NULL;
    struct wl_recorder *opened = calloc(1, sizeof *opened);
    if (opened == NULL) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "record %s: no memory", path);
    }
    pthread_mutex_init(&opened->lock, NULL);
    size_t config_bytes = 0;
    char *text = config_text(config, &config_bytes);
    opened->path = strdup(path);
    if (text == NULL || opened->path == NULL) {
        free(text);
        recorder_free(opened);
        return dm_fail(err, DM_ERR_NO_MEMORY, "record %s: no memory", path);
    }
    int rc = dm_output_check(path, true, err); /* the header is written once more at the end */
    opened->file = rc == 0 ? dm_output_open(path, err) : NULL;
    if (opened->file == NULL) {
        free(text);
        recorder_free(opened);
        return dm_fail_in(err, DM_ERR_IO, "record %s", path);
    }
    header_begin(opened, info, config_bytes);
    put(opened, &opened->header, sizeof opened->header);
    XXH64_reset(&opened->hash, 0);
    put_hashed(opened, text, config_bytes);
    free(text);
    *recorder = opened;
    return 0;
}

int wl_recorder_close(struct wl_recorder *recorder, struct dm_err *err) {
    if (recorder == NULL) {
        return 0;
    }
    recorder->header.complete = 1;
    XXH64_update(&recorder->hash, &recorder->header, sizeof recorder->header);
    recorder->header.hash = XXH64_digest(&recorder->hash);
    if (recorder->failed_errno == 0 && fseek(recorder->file, 0, SEEK_SET) != 0) {
        recorder->failed_errno = errno;
    }
    put(recorder, &recorder->header, sizeof recorder->header);
    int rc = 0;
    if (recorder->failed_errno != 0) {
        dm_output_abandon(recorder->file, recorder->path);
        rc = dm_fail(err, DM_ERR_IO, "%s: cannot write: %s", recorder->path, strerror(recorder->failed_errno));
    } else {
        rc = dm_output_close(recorder->file, recorder->path, err);
    }
    recorder->file = NULL;
    recorder_free(recorder);
    return rc < 0 ? dm_fail_in(err, rc, "record") : 0;
}

void wl_recorder_abandon(struct wl_recorder *recorder) {
    if (recorder != NULL) {
        dm_output_abandon(recorder->file, recorder->path);
        recorder->file = NULL;
        recorder_free(recorder);
    }
}

struct wl_recorder_stream *wl_recorder_stream_open(struct wl_recorder *recorder, unsigned client) {
    struct wl_recorder_stream *stream = calloc(1, sizeof *stream);
    if (stream != NULL) {
        stream->recorder = recorder;
        stream->block.client = client;
    }
    return stream;
}

static void block_write(struct wl_recorder_stream *stream) {
    struct wl_recorder *recorder = stream->recorder;
    struct wl_record_header *header = &recorder->header;
    pthread_mutex_lock(&recorder->lock);
    header->recorded += stream->block.count;
    for (uint32_t i = 0; i < stream->block.count; i++) {
        const struct wl_record_op *op = &stream->ops[i];
        header->by_kind[op->kind]++;
        header->scan_max = op->scan_length > header->scan_max ? op->scan_length : header->scan_max;
    }
    put_hashed(recorder, &stream->block, sizeof stream->block);
    put_hashed(recorder, stream->ops, stream->block.count * sizeof stream->ops[0]);
    pthread_mutex_unlock(&recorder->lock);
    stream->block.count = 0;
}

void wl_recorder_add(struct wl_recorder_stream *stream, const struct wl_op *op) {
    stream->ops[stream->block.count++] =
        (struct wl_record_op){.key = op->key, .scan_length = op->scan_length, .kind = (uint32_t)op->kind};
    if (stream->block.count == BLOCK_OPS) {
        block_write(stream);
    }
}

void wl_recorder_stream_close(struct wl_recorder_stream *stream) {
    if (stream != NULL) {
        if (stream->block.count > 0) {
            block_write(stream);
        }
        free(stream);
    }
}
