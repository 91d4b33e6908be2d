#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# run_all.sh: options, all steps from build to picture, resuming and an interrupt. A fake cmake installs the program under
# test instead of building one, so that the script is tested.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

mkdir -p tree/plots/figures bin
cp -r "$DM_SOURCE_DIR/run_all.sh" "$DM_SOURCE_DIR/scripts" tree/
cp "$DM_SOURCE_DIR/plots/style.gp" "$DM_SOURCE_DIR/plots/systems.json" tree/plots/
cat >bin/cmake <<SH
#!/bin/sh
echo "cmake \$*" >>"$work/cmake.log"
[ ! -e "$work/cmake.fails" ] || { echo "the compiler is unhappy"; exit 1; }
mkdir -p build/release
cat >build/release/dmbench <<'PROGRAM'
#!/bin/sh
# Like the real one: points outside their tolerance are a verdict.
case \$1 in validate) echo '{"points": []}' && exit 3 ;; esac
exec "$DMBENCH" "\$@" --plots plots
PROGRAM
chmod +x build/release/dmbench
SH
# Packages are tested elsewhere; here all are installed.
printf '#!/bin/sh\nexit 0\n' >tree/scripts/setup.sh
chmod +x bin/cmake tree/scripts/setup.sh
PATH=$work/bin:$PATH
cat >tree/plots/figures/small.json <<'JSON'
{
    "id": "small", "title": "Small", "shows": "bars", "keeps": "everything",
    "config": {"index": "sherman", "workload": "c", "keys": "1K", "warmup": "0"},
    "from": {"workload, keys, warmup, seed, ops": "assumed: a test"},
    "scales": {"quick": {"config": {"set": {"fill": 0.7}}}, "paper": {"config": {"seed": 7}}},
    "series": [{"label": "Sherman"}],
    "x": {"label": "length", "cases": [
        {"label": "short", "config": {"ops": "2K"}}, {"label": "long: 100 %", "config": {"ops": "4K"}}]},
    "plots": [{"id": "throughput", "kind": "bar", "y_label": "Mops/s",
               "y": [{"path": "throughput_ops_per_s", "column": "mops", "factor": 1e-6}]}]
}
JSON
# script STATUS WORDS...
script() {
    wanted=$1
    shift
    status=0
    tree/run_all.sh "$@" >out 2>err || status=$?
    [ "$status" -eq "$wanted" ] || fail "run_all.sh $*: status $status instead of $wanted: $(cat err)"
}
bad() {
    reason=$1
    shift
    script 2 "$@"
    holds err "$reason"
    [ "$(wc -l <err)" -eq 1 ] || fail "more than one line: $(cat err)"
    [ ! -e cmake.log ] || fail "run_all.sh $*: built something"
}
# Its neighbour refuses what it does not know, rather than copy everything.
for option in --claim "--claims --scales"; do
    status=0
    # shellcheck disable=SC2086
    tree/scripts/update_docs.sh $option 2>err || status=$?
    [ "$status" -eq 2 ] || fail "update_docs.sh $option: status $status: $(cat err)"
done
bad "unknown option '--sclae'" --sclae quick
bad "unknown option 'quick'" quick
bad "--scale: 'huge'" --scale huge
bad "--scale needs a value" --scale
bad "no figure 'tiny'; there are: small" --only tiny
bad "--jobs: '0'" --jobs 0
bad "--jobs: 'x'" --jobs=x
bad "--stale: 'maybe'" --stale maybe
bad "--from-archive: 'nothing.zst'" --from-archive nothing.zst
bad "'--clean=no': unknown, or takes no value" --clean=no
bad "'--complete=no': unknown, or takes no value" --complete=no
script 0 --help
holds out "--build-only"
[ ! -e cmake.log ] || fail "--help built something"

script 0 --build-only
[ -x tree/build/release/dmbench ] || fail "nothing was built"
[ ! -e tree/results ] || fail "--build-only ran something"
holds cmake.log "--preset release"

if command -v gnuplot >/dev/null 2>&1; then
    script 0
    holds err "2 points: 0 there already, 2 to run"
    holds out "results/figures/small/throughput.png"
    [ -s tree/results/figures/small/throughput.png ] || fail "no picture"
    script 0 --only small --jobs 1 --scale=quick
    holds err "2 points: 2 there already, 0 to run"

    # With claims they are judged and reported, in a first run and in a second one.
    echo '{}' >tree/plots/sensitivity.json
    echo '{}' >tree/plots/metrics.json
    mkdir tree/plots/claims
    cat >tree/plots/claims/p.json <<'JSON'
{"claims": [{"id": "small", "paper": "P", "figure": "1", "text": "it moves", "kind": "trend",
    "reads": "small", "checks": [{"value": "mops{Sherman, short} > 0"}]}]}
JSON
    mkdir tree/plots/maps
    cat >tree/plots/maps/tiny.json <<'JSON'
{"id": "tiny", "title": "A tiny map", "shows": "little", "config": {"workload": "c", "keys": "1K", "ops": "200"},
 "scales": {"quick": {"config": {}}}, "x": {"values": "clients=1,2", "label": "clients"},
 "y": {"values": "cache=0,1MB", "label": "cache"}, "systems": [{"label": "Sherman", "config": {"index": "sherman"}},
                                                               {"label": "CHIME", "config": {"index": "chime"}}]}
JSON
    # Without --complete one seed a point, no maps and no published results; with it all of them, from the same points on.
    script 0
    holds err "2 points: 2 there already, 0 to run"
    holds err "run_all.sh --complete adds"
    holds tree/results/claims.md "1 reproduced"
    [ ! -e tree/results/maps ] || fail "maps without --complete"
    [ ! -e tree/results/end_to_end.txt ] || fail "published results without --complete"
    for _ in first second; do
        script 0 --complete
        holds tree/results/maps/tiny.md "# A tiny map"
        [ -e tree/results/end_to_end.txt ] || fail "no published results"
        holds tree/results/claims.md "1 reproduced"
        holds tree/results/report.html "it moves"
        holds out "1 claims: 1 reproduced"
    done

    # A point that fails every time leaves all else: the other claims, the maps and the report. Status 1 says so.
    # A folder with the name of its result lets it fail.
    sed 's/"small"/"broken"/; s/"keys": "1K"/"keys": "3K"/' tree/plots/figures/small.json >tree/plots/figures/broken.json
    expect 0 figure broken --plots tree/plots --dry-run --json
    mkdir "tree/results/points/$(sed -n 's/.*"point": "\([0-9a-f]*\)".*/\1/p' out | head -n 1).json"
    sed 's/"small"/"broken"/g; s/it moves/it breaks/' tree/plots/claims/p.json >tree/plots/claims/q.json
    rm -r tree/results/claims.md tree/results/report.html tree/results/maps tree/results/end_to_end.txt
    script 1 --complete
    holds tree/results/claims.md "1 reproduced"
    holds tree/results/report.html "it moves"
    [ -e tree/results/maps/tiny.md ] || fail "no maps, as another point failed"
    [ -e tree/results/end_to_end.txt ] || fail "no published results, as another point failed"
    rm tree/plots/figures/broken.json tree/plots/claims/q.json
    find tree/results/points -name '*.json' -type d -exec rmdir {} +
    script 0 --complete

    # From an archive the same is drawn and judged, and nothing is run.
    expect 0 archive pack packed.zst --scale quick --plots tree/plots --out tree/results
    rm -r tree/results/points tree/results/figures tree/results/claims.md
    script 0 --from-archive packed.zst # a path from the user's folder, not from the project's
    holds err "2 points: 2 there already, 0 to run"
    [ -s tree/results/figures/small/throughput.png ] || fail "no picture from the archive"
    holds tree/results/claims.md "1 reproduced"
    rm -r tree/plots/claims
fi

# An interrupt of the script alone ends its children, too. At scale paper one point ends soon and the other one never:
# once the first has a result, the second one runs.
sed -i 's/4K/100G/' tree/plots/figures/small.json
wanted=$(($(find tree/results/points -name '*.json' 2>/dev/null | wc -l) + 1))
tree/run_all.sh --scale paper --jobs 2 >out 2>err &
pid=$!
once has_results tree/results/points "$wanted"
interrupt TERM
holds err "interrupted: 1 of 2 points done"
[ -z "$(find tree/results -name '*.tmp.*')" ] || fail "left: $(find tree/results)"

# A build that fails reports why, and nothing is run.
: >cmake.fails
script 1
holds err "the compiler is unhappy"
rm cmake.fails

script 0 --clean
[ ! -e tree/build/release ] || fail "--clean left the build"
[ ! -e tree/results/points ] || fail "--clean left results"
