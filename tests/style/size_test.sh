#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A file has at most 800 lines, a function at most 70, a line at most 120 characters; a line of a document too, unless it is
# of a table. Relies on the format that format_test.sh holds: a function's brace ends an unindented line, and its end is a
# brace alone.
. "$DM_SOURCE_DIR/tests/style/lib.sh"
# One pass over all files, since a process for each takes longer. Continuation bytes of UTF-8 are no characters; names of
# files hold no blanks.
# shellcheck disable=SC2016
wide='length($0) > 120 { gsub(/[\200-\277]/, ""); if (length($0) > 120) print FILENAME ":" FNR ": wider than 120" }'
# shellcheck disable=SC2046
found=$(awk '
    FNR == 1 { open = pending = 0 }
    FNR == 801 { print FILENAME ": more than 800 lines" }
    /^[A-Za-z_].*\) \{$/ || /^    +[^ ].*\) \{$/ && open == 0 && pending { open = FNR }
    { pending = /^[A-Za-z_].*[,(]$/ || (pending && /^ .*,$/) }
    /^\}/ && open {
        if (FNR - open + 1 > 70) print FILENAME ":" open ": a function of " FNR - open + 1 " lines, more than 70"
        open = 0
    }
    '"$wide" $(sources '*.c' '*.h'))
[ -z "$found" ] || complain "$found"
# shellcheck disable=SC2046
found=$(awk '!/^\|/ && '"$wide" $(sources '*.md'))
[ -z "$found" ] || complain "$found"
finish
