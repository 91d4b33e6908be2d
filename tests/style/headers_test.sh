#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Every header compiles alone: it includes what it uses.
. "$DM_SOURCE_DIR/tests/style/lib.sh"
compiler=${CC:-gcc}
need "$compiler"
for header in $(sources '*.h'); do
    # cmocka's header wants these before it, so those of tests have all of it from the file that includes them.
    before=""
    case $header in
    tests/*) before="#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>" ;;
    esac
    printf '%s\n#include "%s"\n' "$before" "$header" |
        "$compiler" -std=c17 -D_GNU_SOURCE -Wall -Wextra -Werror -fsyntax-only -DDM_TEST_DATA='""' -DDM_SOURCE_DIR='""' \
            -I. -Itests -I"$(dirname "$header")" -x c - 2>&1 | sed -n '1,3p' | grep . && complain "$header: does not compile alone"
done
finish
