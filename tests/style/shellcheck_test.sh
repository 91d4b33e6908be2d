#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Every script passes shellcheck.
. "$DM_SOURCE_DIR/tests/style/lib.sh"
need shellcheck
for file in $(sources '*.sh') .ci/run; do
    shellcheck -x -P "$(dirname "$file")" -e SC1091 "$file" || complain "$file: shellcheck"
done
finish
