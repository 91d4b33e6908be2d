#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A file has at most 800 lines, a function at most 70, a line at most 120 characters; a line of a document too, unless it is
# of a table. Relies on the format that
# format_test.sh holds: a function's brace ends an unindented line, and its end is a brace alone.
. "$DM_SOURCE_DIR/tests/style/lib.sh"
for file in $(sources '*.c' '*.h'); do
    lines=$(wc -l <"$file")
    [ "$lines" -le 800 ] || complain "$file: $lines lines, more than 800"
    long=$(awk '
        /^[A-Za-z_].*\) \{$/ || /^    +[^ ].*\) \{$/ && open == 0 && pending { open = NR; name = $0 }
        { pending = /^[A-Za-z_].*[,(]$/ || (pending && /^ .*,$/) }
        /^\}/ && open { if (NR - open + 1 > 70) print FILENAME ":" open ": a function of " NR - open + 1 " lines, more than 70"; open = 0 }
    ' "$file")
    [ -z "$long" ] || complain "$long"
    wide=$(awk 'length($0) > 120 { gsub(/[\200-\277]/, ""); if (length($0) > 120) { print FILENAME ":" NR ": wider than 120"; exit } }' "$file")
    [ -z "$wide" ] || complain "$wide"
done
for file in $(sources '*.md'); do
    # Continuation bytes of UTF-8 are no characters.
    wide=$(awk '!/^\|/ && length($0) > 120 { gsub(/[\200-\277]/, ""); if (length($0) > 120) print FILENAME ":" NR ": wider than 120" }' "$file")
    [ -z "$wide" ] || complain "$wide"
done
finish
