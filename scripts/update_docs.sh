#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Puts what ./run_all.sh last made into the documentation: the table of claims and the picture and counts of README.md.
# tests/style/claims_test.sh says when it has to be run.
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

version=$(build/release/dmbench --version | head -n 1)
{
    echo "# The papers' claims, judged"
    echo
    echo "Made by \`./run_all.sh\` ($version) and kept here by \`scripts/update_docs.sh\`; how claims are judged is in"
    echo "[figures-and-claims.md](figures-and-claims.md)."
    echo
    cat "$table"
} >docs/claims.md
mkdir -p docs/images
cp "$picture" docs/images/overview.png

# Between the marks: the counts, then each claim with its verdict.
{
    sed '/<!-- claims -->/q' README.md
    sed '/^### /,$d' "$table"
    echo "<!-- claims: end -->"
    echo
    echo "<details><summary>Each claim and its verdict</summary>"
    echo
    echo "| id | the paper says | verdict |"
    echo "|---|---|---|"
    sed 's/\\|/\&#124;/g' "$table" | awk -F ' [|] ' '/^[|] [a-z]+-/ { sub(/^[|] /, "", $1); print "| " $1 " | " $2 " | " $4 " |" }'
    echo
    echo "</details>"
    echo
    sed -n '/<!-- claims: rest -->/,$p' README.md
} >README.md.tmp
mv README.md.tmp README.md
