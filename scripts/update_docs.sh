#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Copies the results of the last ./run_all.sh --complete into the documentation: the table of claims into docs/claims.md, the
# comparison with published results of whole indexes into docs/end-to-end.md, the picture, the counts and that comparison's
# overview into README.md. tests/style/claims_test.sh and tests/style/end_to_end_test.sh fail when it has to be run.
# With --end-to-end only that comparison is copied, with --claims only the table of claims and its counts, with --scales
# only what the archive in results/paper-scale has: the claims at quick and paper scale side by side, and the comparison with
# published results at their sizes, docs/end-to-end-published.md, with the counts of both in README.md.
set -eu
cd "$(dirname "$0")/.."

table=results/claims.md
picture=results/figures/overview/throughput.png
end_to_end=results/end_to_end.md
archive=results/paper-scale/points.zst
scales="## Quick and paper scale side by side"
wanted="$table $picture $end_to_end"
[ $# -le 1 ] || {
    echo "scripts/update_docs.sh: one option at most" >&2
    exit 2
}
case ${1:-} in
'') ;;
--end-to-end) wanted=$end_to_end ;;
--claims) wanted=$table ;;
--scales) wanted=$archive ;;
*)
    echo "scripts/update_docs.sh: '$1' is neither --end-to-end, --claims nor --scales" >&2
    exit 2
    ;;
esac
for file in $wanted; do
    [ -s "$file" ] || {
        echo "scripts/update_docs.sh: there is no $file; run ./run_all.sh --complete" >&2
        exit 1
    }
done

# counts FILE [LINE]: its first line, or that LINE, has the counts; text is folded at 120 columns.
counts() {
    sed -n "${2:-1}p" "$1" | fold -s -w 120 | sed 's/ $//'
}

# between MARK COMMAND...: replaces what is between two marks of README.md by the command's output.
between() {
    mark=$1
    shift
    {
        sed "/<!-- $mark -->/q" README.md
        "$@"
        sed -n "/<!-- $mark: end -->/,\$p" README.md
    } >README.md.tmp
    mv README.md.tmp README.md
}

# The counts, and the table of experiments that follows them.
overview() {
    counts "$end_to_end"
    awk '/^## / { exit } NR > 1 && !NF { blank = 1; next } NR > 1 { if (blank) print ""; blank = 0; print }' "$end_to_end"
}
# end_to_end_page TITLE COMMAND FILE: the page of one comparison.
end_to_end_page() {
    echo "# $1"
    echo
    echo "Made by \`$2\` and copied here by \`scripts/update_docs.sh\`;"
    echo "[methodology.md](methodology.md#whole-indexes-beside-published-results) explains the columns."
    echo
    counts "$3"
    tail -n +2 "$3"
}
end_to_end_copy() {
    end_to_end_page "Whole indexes beside published results" "dmbench validate --end-to-end" "$end_to_end" \
        >docs/end-to-end.md
    between end-to-end overview
}
# The same at the published sizes, by the results of the archive.
published_copy() {
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    build/release/dmbench archive unpack "$archive" --out "$work" >&2
    build/release/dmbench validate --end-to-end --scale paper --no-run --stale keep --out "$work" >&2 || [ $? -eq 3 ]
    end_to_end_page "Whole indexes beside published results, at the published sizes" \
        "dmbench validate --end-to-end --scale paper" "$work/end_to_end.md" >docs/end-to-end-published.md
    between published counts "$work/end_to_end.md"
}
# The part of docs/claims.md with both scales stays as it is.
claims_copy() {
    beside=$(sed -n "/^$scales/,\$p" docs/claims.md)
    version=$(build/release/dmbench --version | head -n 1)
    {
        echo "# The papers' claims, judged"
        echo
        echo "Made by \`./run_all.sh --complete\` ($version)"
        echo "and copied here by \`scripts/update_docs.sh\`; [figures-and-claims.md](figures-and-claims.md) explains the verdicts."
        echo
        counts "$table"
        tail -n +2 "$table"
        [ -z "$beside" ] || printf '\n%s\n' "$beside"
    } >docs/claims.md
    between claims counts "$table"
}
scales_copy() {
    build/release/dmbench archive unpack "$archive" --out results >&2
    build/release/dmbench claims --beside paper --markdown --stale keep --out results >results/claims_scales.md
    alone=$(sed "/^$scales/,\$d" docs/claims.md)
    {
        printf '%s\n\n%s\n\n' "$alone" "$scales"
        echo "Claims that have results at the papers' scale, from \`$archive\`; reasons where the verdicts"
        echo "differ are those of paper scale. A reading whose points are missing there does not count, and a claim may be"
        echo "judged by a part of its figure."
        echo
        head -n 2 results/claims_scales.md | sed 's/^/- /' | fold -s -w 118 | sed 's/ $//; /^- /!s/^/  /'
        tail -n +3 results/claims_scales.md
    } >docs/claims.md.tmp
    mv docs/claims.md.tmp docs/claims.md
    between claims-paper counts results/claims_scales.md 2
}
if [ "${1:-}" = --scales ]; then
    scales_copy
    published_copy
    exit 0
fi
[ "${1:-}" = --claims ] || end_to_end_copy
[ "${1:-}" != --end-to-end ] || exit 0
claims_copy
[ "${1:-}" != --claims ] || exit 0
mkdir -p docs/images
# The README shows the picture at the width of a page; the results keep it as it was, at that of a column.
build/release/dmbench figure overview --stale keep --png --width 17.8 --out results >&2
cp "$picture" docs/images/overview.png
build/release/dmbench figure overview --stale keep --out results >&2
