/* SPDX-License-Identifier: Apache-2.0
 *
 * Buffered reading of lines from stdio or from a zstd stream.
 */
#include "workloads/line_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "common/input_file.h"

#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION /* the small files of a fuzzer then fill buffers more than once */
enum { BUFFER_BYTES = 1 << 10, RAW_BYTES = 1 << 6 };
#else
enum { BUFFER_BYTES = 1 << 20, RAW_BYTES = 1 << 17 };
#endif

struct wl_line_reader {
    FILE *file;
    char *path;
    ZSTD_DStream *zstd; /* NULL for a plain file */
    ZSTD_inBuffer raw;
    bool frame_open; /* the compressed stream is inside a frame */
    bool ended;
    uint64_t line;
    size_t start, end; /* unread text in `text` */
    char raw_bytes[RAW_BYTES];
    char text[BUFFER_BYTES + 1]; /* one more byte for the terminator */
};

static const unsigned char ZSTD_MAGIC[4] = {0x28, 0xb5, 0x2f, 0xfd};

static int reader_start(struct wl_line_reader *reader, struct dm_err *err) {
    reader->raw = (ZSTD_inBuffer){reader->raw_bytes, 0, 0};
    reader->frame_open = false;
    reader->ended = false;
    reader->line = 0;
    reader->start = reader->end = 0;
    if (reader->zstd != NULL && ZSTD_isError(ZSTD_initDStream(reader->zstd))) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "%s: no memory to decompress", reader->path);
    }
    return 0;
}

int wl_line_reader_open(const char *path, struct wl_line_reader **reader, struct dm_err *err) {
    unsigned char magic[sizeof ZSTD_MAGIC];
    *reader = NULL;
    struct wl_line_reader *opened = malloc(sizeof *opened);
    if (opened == NULL) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "%s: no memory", path);
    }
    opened->zstd = NULL;
    opened->path = strdup(path);
    opened->file = dm_input_open(path);
    if (opened->file == NULL || opened->path == NULL) {
        int rc = dm_fail(err, DM_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));
        wl_line_reader_close(opened);
        return rc;
    }
    if (fread(magic, 1, sizeof magic, opened->file) == sizeof magic && memcmp(magic, ZSTD_MAGIC, sizeof magic) == 0) {
        opened->zstd = ZSTD_createDStream();
        if (opened->zstd == NULL) {
            wl_line_reader_close(opened);
            return dm_fail(err, DM_ERR_NO_MEMORY, "%s: no memory to decompress", path);
        }
    }
    int rc = wl_line_reader_rewind(opened, err);
    if (rc < 0) {
        wl_line_reader_close(opened);
        return rc;
    }
    *reader = opened;
    return 0;
}

void wl_line_reader_close(struct wl_line_reader *reader) {
    if (reader != NULL) {
        if (reader->file != NULL) {
            fclose(reader->file);
        }
        ZSTD_freeDStream(reader->zstd);
        free(reader->path);
        free(reader);
    }
}

int wl_line_reader_rewind(struct wl_line_reader *reader, struct dm_err *err) {
    if (fseek(reader->file, 0, SEEK_SET) != 0) {
        return dm_fail(err, DM_ERR_IO, "%s: cannot be read from its start: %s", reader->path, strerror(errno));
    }
    clearerr(reader->file);
    return reader_start(reader, err);
}

static int file_read(struct wl_line_reader *reader, void *into, size_t capacity, size_t *got, struct dm_err *err) {
    *got = fread(into, 1, capacity, reader->file);
    if (*got < capacity && ferror(reader->file)) {
        return dm_fail(err, DM_ERR_IO, "%s: cannot be read after line %" PRIu64 ": %s", reader->path, reader->line,
                       strerror(errno));
    }
    return 0;
}

/* Decompresses into the free space at the end of the text: at least one byte, except at the end of the file. */
static int zstd_fill(struct wl_line_reader *reader, size_t *got, struct dm_err *err) {
    ZSTD_outBuffer out = {reader->text + reader->end, BUFFER_BYTES - reader->end, 0};
    while (out.pos == 0) {
        if (reader->raw.pos == reader->raw.size) {
            reader->raw.pos = 0;
            DM_TRY(file_read(reader, reader->raw_bytes, RAW_BYTES, &reader->raw.size, err));
            if (reader->raw.size == 0 && reader->frame_open) {
                return dm_fail(err, DM_ERR_CORRUPT, "%s: the compressed data ends early, after line %" PRIu64,
                               reader->path, reader->line);
            }
            if (reader->raw.size == 0) {
                break;
            }
        }
        size_t rest = ZSTD_decompressStream(reader->zstd, &out, &reader->raw);
        if (ZSTD_isError(rest)) {
            return dm_fail(err, DM_ERR_CORRUPT, "%s: damaged compressed data after line %" PRIu64 ": %s", reader->path,
                           reader->line, ZSTD_getErrorName(rest));
        }
        reader->frame_open = rest != 0;
    }
    *got = out.pos;
    return 0;
}

/* Moves the unread text to the front of the buffer and reads more text after it. */
static int fill(struct wl_line_reader *reader, struct dm_err *err) {
    size_t got = 0;
    memmove(reader->text, reader->text + reader->start, reader->end - reader->start);
    reader->end -= reader->start;
    reader->start = 0;
    if (reader->zstd != NULL) {
        DM_TRY(zstd_fill(reader, &got, err));
    } else {
        DM_TRY(file_read(reader, reader->text + reader->end, BUFFER_BYTES - reader->end, &got, err));
    }
    reader->end += got;
    reader->ended = got == 0;
    return 0;
}

int wl_line_reader_next(struct wl_line_reader *reader, char **line, size_t *bytes, struct dm_err *err) {
    for (;;) {
        char *start = reader->text + reader->start;
        size_t left = reader->end - reader->start;
        size_t looked = left < WL_LINE_MAX ? left : WL_LINE_MAX;
        char *stop = memchr(start, '\n', looked);
        if (stop == NULL && left >= WL_LINE_MAX) {
            return dm_fail(err, DM_ERR_CORRUPT, "%s:%" PRIu64 ": the line is longer than %d bytes: not a text file?",
                           reader->path, reader->line + 1, WL_LINE_MAX);
        }
        if (stop == NULL && !reader->ended) {
            DM_TRY(fill(reader, err));
            continue;
        }
        if (stop == NULL && left == 0) {
            return DM_NOT_FOUND;
        }
        size_t length = stop != NULL ? (size_t)(stop - start) : left;
        reader->start += length + (stop != NULL ? 1 : 0);
        reader->line++;
        if (length > 0 && start[length - 1] == '\r') {
            length--;
        }
        start[length] = '\0';
        *line = start;
        *bytes = length;
        return 0;
    }
}

uint64_t wl_line_reader_line(const struct wl_line_reader *reader) {
    return reader->line;
}
