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
# Names of files hold no blanks.
texts=$(sources '*.c' '*.h' '*.def' '*.sh' '*.py' '*.gp' '*.txt' '*.md' '*.json' '*.properties' run .clang-tidy '*report.js' '*report.css')
# shellcheck disable=SC2086
found=$(grep -HnE "(^|[^A-Za-z_])($later)([^A-Za-z_]|\$)" $texts) || true
[ -z "$found" ] || complain "promises of later work: $found"
# shellcheck disable=SC2086
found=$(grep -HnE "(^|[^A-Za-z0-9_.}])($paths)" $texts) || true
[ -z "$found" ] || complain "paths of one machine: $found"
# shellcheck disable=SC2046
found=$(awk 'FNR <= 3 && /SPDX-License-Identifier: Apache-2\.0/ { stated[FILENAME] = 1 }
    END { for (i = 1; i < ARGC; i++) if (!(ARGV[i] in stated)) print ARGV[i] }' \
    $(sources '*.c' '*.h' '*.sh' '*.py' '*.gp' '*report.js' '*report.css'))
[ -z "$found" ] || complain "no SPDX line at the top: $found"
self_test=$(python3 tests/style/words.py --self-test) || complain "the self-test of words.py fails: $self_test"
# shellcheck disable=SC2046
python3 tests/style/words.py $(sources '*.c' '*.h' '*.def' '*.sh' '*.py' '*.gp' '*.txt' '*.md' \
    '*.json' '*.properties' .ci/run .clang-tidy '*report.js' '*report.css') || complain "words for which the field has its own, see above"
finish
