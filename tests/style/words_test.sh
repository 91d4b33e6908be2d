#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Words that have no place in what is kept: promises of later work, paths of somebody's machine; and every source says
# its licence. The words are put together here so that this file does not hold them.
. "$DM_SOURCE_DIR/tests/style/lib.sh"
later="TO""DO|FIX""ME|XX""X|HA""CK"
paths="/ho""me/[a-z]|/ro""ot/|/wo""rk/|/Us""ers/[A-Za-z]"
for file in $(sources '*.c' '*.h' '*.def' '*.sh' '*.py' '*.gp' '*.txt' '*.md' '*.json' '*.properties' run .clang-tidy); do
    found=$(grep -nE "(^|[^A-Za-z_])($later)([^A-Za-z_]|\$)" "$file" | head -n 1) || true
    [ -z "$found" ] || complain "$file:$found: a promise of later work"
    found=$(grep -nE "(^|[^A-Za-z0-9_.}])($paths)" "$file" | head -n 1) || true
    [ -z "$found" ] || complain "$file:$found: a path of one machine"
done
for file in $(sources '*.c' '*.h' '*.sh' '*.py' '*.gp'); do
    head -n 3 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' || complain "$file: no SPDX line at the top"
done
finish
