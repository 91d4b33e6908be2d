#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The report's script keeps the rules of plots/report/.eslintrc.json, and its libraries are those that their README lists.
. "$DM_SOURCE_DIR/tests/style/lib.sh"
folder=plots/report
while read -r file hash; do
    found=$(sha256sum "$folder/third_party/$file" | cut -d ' ' -f 1)
    [ "$found" = "$hash" ] || complain "$folder/third_party/$file: its hash is $found, README.md has $hash"
done <<LIST
$(sed -n 's/^| \([a-z-]*\.js\) .* \([0-9a-f]\{64\}\) |$/\1 \2/p' "$folder/third_party/README.md")
LIST
for file in "$folder"/third_party/*.js; do
    grep -qF "| $(basename "$file") |" "$folder/third_party/README.md" || complain "$file: is not in README.md"
done
need eslint
# Other builds of node than Debian's do not look for modules there.
NODE_PATH=/usr/share/nodejs eslint --format unix --no-eslintrc --config "$folder/.eslintrc.json" "$folder/report.js" ||
    complain "$folder/report.js: see above"
finish
