#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Every commit after the revision at which the rule began has a subject "area: verb object" of at most 100 characters and
# a body of at least two lines: why, and the evidence (CONTRIBUTING.md). Merges are left out, and trailers are no body.
. "$DM_SOURCE_DIR/tests/style/lib.sh"
need git
first=549aa8db84c8e09e548c113a8254142fb49a1edc

# judge BASE: prints what is wrong with the commits after BASE, in the current repository.
judge() {
    git log --no-merges --format='%x01%h%x02%s%x02%b' "$1..HEAD" | awk -v RS='\001' -F '\002' '
        NR > 1 {
            body = 0
            count = split($3, lines, "\n")
            for (at = 1; at <= count; at++)
                if (lines[at] ~ /[^ \t]/ && lines[at] !~ /^[A-Z][A-Za-z-]*-by: /) body++
            if ($2 !~ /^[a-z0-9][A-Za-z0-9_.,\/ -]*: [^ ]+ [^ ]/)
                print $1 ": \"" $2 "\": the subject is not \"area: verb object\""
            if (length($2) > 100) print $1 ": \"" $2 "\": a subject of " length($2) " characters, at most 100"
            if (body < 2) print $1 ": \"" $2 "\": no body that says why and shows the evidence"
        }'
}

# In a repository of its own, each fault is found once and nothing else is.
self_test() {
    tree=$(mktemp -d)
    (
        cd "$tree"
        git init -q .
        commit() {
            git -c user.name=test -c user.email=test@test -c commit.gpgsign=false commit -q --allow-empty \
                --cleanup=verbatim -m "$1"
        }
        body="

It was wrong.
Evidence: a test."
        commit "start"
        base=$(git rev-parse HEAD)
        commit "tree: split the leaf$body"
        commit "style, docs: name two areas$body"
        judge "$base"
        echo "=="
        commit "split the leaf$body"
        commit "tree: split$body"
        commit "tree: split a leaf without a body"
        commit "tree: split a leaf with one line and a trailer

It was wrong.

Reviewed-by: test <test@test>"
        commit "tree: $(printf 'a %.0s' $(seq 50))$body"
        judge "$base" | wc -l
    )
    rm -rf "$tree"
}
[ "$(self_test | tr -d ' \n')" = "==5" ] || complain "the self-test of this script fails: $(self_test)"

if ! git rev-parse --git-dir >/dev/null 2>&1; then
    [ "$failures" -eq 0 ] || finish
    echo "skipped: this is no git repository"
    exit 77
fi
if ! git merge-base --is-ancestor "$first" HEAD 2>/dev/null; then
    [ "$failures" -eq 0 ] || finish
    echo "skipped: the history does not reach back to $first (a shallow clone?)"
    exit 77
fi
wrong=$(judge "$first")
[ -z "$wrong" ] || complain "$wrong"
finish
