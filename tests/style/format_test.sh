#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Every C file is formatted as .clang-format says.
. "$DM_SOURCE_DIR/tests/style/lib.sh"
need clang-format
for file in $(sources '*.c' '*.h'); do
    clang-format --dry-run -Werror "$file" >/dev/null 2>&1 || complain "$file: run clang-format -i $file"
done
finish
