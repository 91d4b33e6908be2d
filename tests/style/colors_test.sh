#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Series of one figure have different markers, and colours that colour-blind readers distinguish; two that are alike are
# found.
. "$DM_SOURCE_DIR/tests/style/lib.sh"

need python3
python3 tests/style/colors.py plots || complain "series that are alike, see above"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp -r plots/figures "$folder/"
sed 's/#D55E00/#E09000/' plots/systems.json >"$folder/systems.json"
if python3 tests/style/colors.py "$folder" >/dev/null; then
    complain "two oranges are not found"
fi
finish
