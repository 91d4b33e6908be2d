#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Every C file is formatted as .clang-format says.
. "$DM_SOURCE_DIR/tests/style/lib.sh"
need clang-format
# Many files a process, since it takes longer to begin than to read a file.
unformatted=$(sources '*.c' '*.h' | xargs -n 64 clang-format --dry-run -Werror 2>&1) ||
    complain "run clang-format -i on: $(echo "$unformatted" | sed -n 's/^\([^: ]*\):[0-9].*/\1/p' | sort -u | tr '\n' ' ')"
finish
