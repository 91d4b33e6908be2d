#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Words that are refused: promises of later work, paths of one machine, and the words of words.py, for which the field
# has its own (CONTRIBUTING.md, "Words"). Every source states its licence. The words are put together here so that this
# file does not hold them.
. "$DM_SOURCE_DIR/tests/style/lib.sh"
need python3
later="TO""DO|FIX""ME|XX""X|HA""CK"
paths="/ho""me/[a-z]|/ro""ot/|/wo""rk/|/Us""ers/[A-Za-z]"
for file in $(sources '*.c' '*.h' '*.def' '*.sh' '*.py' '*.gp' '*.txt' '*.md' '*.json' '*.properties' run .clang-tidy '*report.js' '*report.css'); do
    found=$(grep -nE "(^|[^A-Za-z_])($later)([^A-Za-z_]|\$)" "$file" | head -n 1) || true
    [ -z "$found" ] || complain "$file:$found: a promise of later work"
    found=$(grep -nE "(^|[^A-Za-z0-9_.}])($paths)" "$file" | head -n 1) || true
    [ -z "$found" ] || complain "$file:$found: a path of one machine"
done
for file in $(sources '*.c' '*.h' '*.sh' '*.py' '*.gp' '*report.js' '*report.css'); do
    head -n 3 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' || complain "$file: no SPDX line at the top"
done
self_test=$(python3 tests/style/words.py --self-test) || complain "the self-test of words.py fails: $self_test"
# Names of files hold no blanks.
# shellcheck disable=SC2046
python3 tests/style/words.py $(sources '*.c' '*.h' '*.def' '*.sh' '*.py' '*.gp' '*.txt' '*.md' \
    '*.json' '*.properties' .ci/run .clang-tidy '*report.js' '*report.css') || complain "words for which the field has its own, see above"
finish
