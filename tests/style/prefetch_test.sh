#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A compiler keeps the calls of a function that does nothing but prefetch. gcc takes such a function for one without
# effect; it had removed some of the simulator's, and verbs of few clients took half as long again.
. "$DM_SOURCE_DIR/tests/style/lib.sh"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cat >"$scratch/prefetch.c" <<'C'
#include "common/compiler.h"

void caller(const char *line, const char *range);

static DM_NO_INLINE void one_line(const char *pointer) {
    dm_prefetch_read(pointer);
    dm_prefetch_write(pointer);
    dm_prefetch_near(pointer);
}

static DM_NO_INLINE void many_lines(const char *from) {
    dm_prefetch_lines(from, 1024);
}

void caller(const char *line, const char *range) {
    one_line(line);
    many_lines(range);
}
C
found=0
for compiler in gcc clang; do
    command -v "$compiler" >/dev/null 2>&1 || continue
    found=1
    "$compiler" -std=c17 -O2 -I"$DM_SOURCE_DIR" -S -o "$scratch/prefetch.s" "$scratch/prefetch.c" ||
        complain "$compiler does not compile calls of common/compiler.h's prefetches"
    # The body of caller, up to the next function or the end.
    awk '/^caller:/ { on = 1; next } /^[a-z_.]*:/ && !/^\./ { on = 0 } on' "$scratch/prefetch.s" >"$scratch/caller"
    for function in one_line many_lines; do
        grep -q "$function" "$scratch/caller" || complain "$compiler removes the call of $function, which prefetches"
    done
done
[ "$found" = 1 ] || need gcc
finish
