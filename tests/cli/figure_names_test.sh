#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# `dmbench figure` takes a figure by the words that a reader of its paper has for it, and names the candidates if there
# are several. Nothing is run.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# is ID WORDS: they name that figure, which is said unless they are its id.
is() {
    expect 0 figure "$2" --dry-run
    holds out " $1: "
    holds err "'$2' is $1: "
}
is chime-12 "chime figure 12"
is chime-3a "CHIME, Fig. 3a"
is chime-3a "figure 3 A of Chime"
is chime-18c "chime 18c"
is chime-t1 "chime table 1"
is dolphin-t2 "Table 2 of the Dolphin paper"
is hstore-11b-time "hstore 11b time"
is sherman-clients "Sherman clients"
expect 0 figure chime-12 --dry-run
[ ! -s err ] || fail "an id is explained: $(cat err)"
expect 0 figure "chime figure 12" chime-12 --dry-run
holds out "1 figures"

# may WORDS CANDIDATES
may() {
    expect 2 figure "$1" --dry-run
    holds err "'$1' may be $2: name one of them"
}
may "chime 3" "chime-3a-learned, chime-3a-radix, chime-3a, chime-3b, chime-3d"
may "rolex figure 20" "rolex-20-delta, rolex-20-epsilon"
may "figure 12" "chime-12-opt, chime-12, xstore-12"

# a slip of the finger runs nothing
expect 2 figure sherman-client --dry-run
holds err "did you mean 'sherman-clients'?"
expect 2 figure "smart figure 9" --dry-run
holds err "unknown figure"
expect 2 figure "" --dry-run
holds err "unknown figure"
expect 2 figure "figure" --dry-run
