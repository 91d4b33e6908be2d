# SPDX-License-Identifier: Apache-2.0
#
# Writes the C code of a page, which is what its blocks of "c" hold, to the file `out`, with the page's lines for the
# messages of the compiler unless `bare` is set.
/^```c$/ {
    if (!bare) printf "#line %d \"%s\"\n", NR + 1, FILENAME >out
    inside = 1
    next
}
/^```$/ { inside = 0 }
inside { print >out }
