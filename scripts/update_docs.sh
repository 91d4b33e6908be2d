#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Copies the results of the last ./run_all.sh into the documentation: the table of claims into docs/claims.md, the picture
# and the counts into README.md. tests/style/claims_test.sh fails when it has to be run.
set -eu
cd "$(dirname "$0")/.."

table=results/claims.md
picture=results/figures/overview/throughput.png
for file in "$table" "$picture"; do
    [ -s "$file" ] || {
        echo "scripts/update_docs.sh: there is no $file; run ./run_all.sh" >&2
        exit 1
    }
done

# The table's first line has the counts; text is folded at 120 columns.
counts() {
    head -n 1 "$table" | fold -s -w 120 | sed 's/ $//'
}
version=$(build/release/dmbench --version | head -n 1)
{
    echo "# The papers' claims, judged"
    echo
    echo "Made by \`./run_all.sh\` ($version)"
    echo "and copied here by \`scripts/update_docs.sh\`; [figures-and-claims.md](figures-and-claims.md) explains the verdicts."
    echo
    counts
    tail -n +2 "$table"
} >docs/claims.md
mkdir -p docs/images
cp "$picture" docs/images/overview.png

# Between the marks: the counts.
{
    sed '/<!-- claims -->/q' README.md
    counts
    sed -n '/<!-- claims: end -->/,$p' README.md
} >README.md.tmp
mv README.md.tmp README.md
