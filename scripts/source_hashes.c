/* SPDX-License-Identifier: Apache-2.0
 *
 * A program of the build: writes a C file with a hash of the sources of each component, so that a result can say by
 * which sources it was made. Comments, blanks and line breaks do not count.
 *
 *     source_hashes LIST ROOT OUT.c
 *
 * LIST has lines of a component, a blank and a file below ROOT; lines of one component follow each other.
 */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { LINE_BYTES = 4096 };

/* The text of a C file that is read character by character. */
struct reader {
    const char *at;
    bool in_directive; /* its line break ends it, so that counts */
    char last;         /* the last character that was hashed */
    XXH3_state_t *hash;
};

static void put(struct reader *reader, char character) {
    XXH3_64bits_update(reader->hash, &character, 1);
    reader->last = character;
}

static bool is_word(char character) {
    return isalnum((unsigned char)character) || character == '_';
}

/* A blank separates two words, or two signs that could be one; anywhere else it is format. */
static void put_blank(struct reader *reader, char next) {
    if (next != '\0' && is_word(reader->last) == is_word(next) && reader->last != '\n') {
        put(reader, ' ');
    }
}

static void skip_comment(struct reader *reader) {
    const char *end = reader->at[1] == '/' ? strchr(reader->at, '\n') : strstr(reader->at + 2, "*/");
    if (end == NULL) {
        reader->at += strlen(reader->at);
    } else {
        reader->at = reader->at[1] == '/' ? end : end + 2;
    }
}

/* Blanks, continued lines, comments. Returns whether there were any. */
static bool skip_blanks(struct reader *reader) {
    const char *begin = reader->at;
    for (;;) {
        char here = reader->at[0], next = here != '\0' ? reader->at[1] : '\0';
        if (here == '\\' && next == '\n') {
            reader->at += 2;
        } else if (here == '/' && (next == '/' || next == '*')) {
            skip_comment(reader);
        } else if (here == '\n' && reader->in_directive) {
            put(reader, '\n');
            reader->in_directive = false;
            reader->at++;
        } else if (here != '\0' && isspace((unsigned char)here)) {
            reader->at++;
        } else {
            return reader->at != begin;
        }
    }
}

/* A text or a character as it is. */
static void put_quoted(struct reader *reader) {
    char quote = *reader->at;
    do {
        if (*reader->at == '\\' && reader->at[1] != '\0') {
            put(reader, *reader->at++);
        }
        put(reader, *reader->at++);
    } while (*reader->at != quote && *reader->at != '\0');
    if (*reader->at == quote) {
        put(reader, *reader->at++);
    }
}

static void put_source(XXH3_state_t *hash, const char *text) {
    struct reader reader = {.at = text, .last = '\n', .hash = hash};
    bool line_begins = true;
    while (*reader.at != '\0') {
        const char *before = reader.at;
        bool blank = skip_blanks(&reader);
        line_begins = line_begins || memchr(before, '\n', (size_t)(reader.at - before)) != NULL;
        if (*reader.at == '\0') {
            break;
        }
        if (line_begins && *reader.at == '#') {
            put(&reader, '\n');
            reader.in_directive = true;
        } else if (blank) {
            put_blank(&reader, *reader.at);
        }
        line_begins = false;
        if (*reader.at == '"' || *reader.at == '\'') {
            put_quoted(&reader);
        } else {
            put(&reader, *reader.at++);
        }
    }
    put(&reader, '\0');
}

static char *read_file(const char *root, const char *name) {
    char path[2 * LINE_BYTES];
    snprintf(path, sizeof(path), "%s/%s", root, name);
    FILE *file = fopen(path, "rb");
    long size = file != NULL && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    char *text = size >= 0 ? calloc((size_t)size + 1, 1) : NULL;
    bool is_whole = text != NULL && fseek(file, 0, SEEK_SET) == 0 && fread(text, 1, (size_t)size, file) == (size_t)size;
    if (!is_whole) {
        fprintf(stderr, "source_hashes: %s: %s\n", path, strerror(errno));
        exit(1);
    }
    fclose(file);
    return text;
}

static void hash_lines(FILE *list, const char *root, FILE *out) {
    char line[LINE_BYTES], component[LINE_BYTES] = "";
    XXH3_state_t *hash = XXH3_createState();
    bool more = hash != NULL;
    while (more) {
        more = fgets(line, sizeof(line), list) != NULL;
        char *name = more ? strchr(line, ' ') : NULL;
        if (more && name == NULL) {
            continue;
        }
        if (more) {
            line[strcspn(line, "\n")] = '\0';
            *name++ = '\0';
        }
        if (!more || strcmp(component, line) != 0) {
            if (component[0] != '\0') {
                fprintf(out, "    {\"%s\", \"%016llx\"},\n", component, (unsigned long long)XXH3_64bits_digest(hash));
            }
            XXH3_64bits_reset(hash);
            snprintf(component, sizeof(component), "%s", more ? line : "");
        }
        if (more) {
            char *text = read_file(root, name);
            XXH3_64bits_update(hash, name, strlen(name) + 1);
            put_source(hash, text);
            free(text);
        }
    }
    XXH3_freeState(hash);
}

int main(int argc, char **argv) {
    FILE *list = argc == 4 ? fopen(argv[1], "r") : NULL, *out = list != NULL ? fopen(argv[3], "w") : NULL;
    if (out == NULL) {
        fprintf(stderr, "usage: source_hashes LIST ROOT OUT.c\n");
        return 2;
    }
    fprintf(out, "/* Made by the build. */\n#include \"harness/run/sources.h\"\n\n"
                 "const struct hx_source_hash hx_source_hashes[] = {\n");
    hash_lines(list, argv[2], out);
    fprintf(out, "    {NULL, NULL},\n};\n");
    fclose(list);
    return fclose(out) == 0 ? 0 : 1;
}
