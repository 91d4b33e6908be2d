#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# `dmbench figure`: pictures, tables and programs; sharing of points; what is missing; an interrupt; bad input. The
# figures are small ones in a separate folder of plots.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

mkdir -p plots/figures
cp "$DM_SOURCE_DIR/plots/style.gp" "$DM_SOURCE_DIR/plots/systems.json" plots/
cat >plots/figures/lines.json <<'JSON'
{
    "id": "lines", "title": "Lines of \"Sherman\"", "shows": "a line", "keeps": "everything",
    "config": {"index": "sherman", "keys": "1K", "ops": "2K", "warmup": "0"},
    "from": {"keys, ops, warmup, workload, clients": "assumed: a test"},
    "scales": {"quick": {"config": {}, "x": [2, 4]}, "paper": {"config": {"ops": "4K"}, "x": [2, 4, 8]}},
    "panels": [{"label": "A", "config": {"workload": "a"}}, {"label": "C", "config": {"workload": "c"}}],
    "series": [{"label": "null"}],
    "x": {"option": "clients", "label": "clients", "log": true},
    "plots": [
        {"id": "throughput", "kind": "line", "y_label": "Mops/s",
         "y": [{"path": "throughput_ops_per_s", "column": "mops", "factor": 1e-6}]},
        {"id": "latency", "kind": "line", "y_label": "us", "y_log": true,
         "y": [{"path": "ops.all.latency_ns.p50", "column": "p50", "label": "P50", "factor": 1e-3},
               {"path": "ops.all.latency_ns.p99", "column": "p99", "label": "P99", "factor": 1e-3}]}
    ]
}
JSON
cat >plots/figures/bars.json <<'JSON'
{
    "id": "bars", "title": "Bars", "shows": "bars", "keeps": "everything",
    "config": {"index": "sherman", "workload": "a", "keys": "1K", "ops": "2K", "warmup": "0"},
    "from": {"keys, ops, warmup, workload, clients": "assumed: a test"},
    "scales": {"quick": {"config": {}}, "paper": {"config": {}}},
    "series": [{"label": "null"}],
    "x": {"label": "cases", "cases": [
        {"label": "few: 50 %", "config": {"clients": 2}}, {"label": "twice\nas many", "config": {"clients": 4}}]},
    "plots": [{"id": "gain", "kind": "bar", "relative_to": "few: 50 %", "y_label": "Mops/s",
               "y": [{"path": "throughput_ops_per_s", "column": "mops", "factor": 1e-6}]}]
}
JSON

expect 0 figure --list --plots plots
holds out "lines: "
holds out "plots: throughput latency"
expect 0 figure all --plots plots --dry-run
holds out "2 figures, 4 points in results/points, 4 to run"
[ ! -e results ] || fail "a dry run wrote something"
# "published" leaves out what no paper has.
mkdir -p own/figures
cp plots/style.gp plots/systems.json own/
cp plots/figures/bars.json own/figures/
sed 's/"id": "lines",/"id": "lines", "own": true,/' plots/figures/lines.json >own/figures/lines.json
expect 0 figure published --plots own --dry-run
holds out "1 figures, 2 points"
expect 0 figure published lines --plots own --dry-run
holds out "2 figures, 4 points"
sed -i 's/"own": true/"own": 1/' own/figures/lines.json
expect 2 figure published --plots own --dry-run
holds err "own: "

# Without drawing: tables and programs; the points of the bars are two of the lines' points.
expect 0 figure all --plots plots --no-plot --out results --jobs 2
[ "$(find results/points -name '*.json' | wc -l)" -eq 4 ] || fail "points: $(find results/points)"
table=results/figures/lines/throughput.tsv
[ "$(wc -l <$table)" -eq 5 ] || fail "$(cat $table)"
[ "$(cut -f 1,2,5 $table | tr '\t\n' ', ')" = "panel,series,x A,null,2 A,null,4 C,null,2 C,null,4 " ] || fail "$(cat $table)"
! grep -q NaN results/figures/lines/latency.tsv || fail "$(cat results/figures/lines/latency.tsv)"
[ "$(cut -f 6 results/figures/bars/gain.tsv | sed -n 2p)" = 1 ] || fail "$(cat results/figures/bars/gain.tsv)"

# A second run runs nothing.
expect 0 figure all --plots plots --no-plot --out results
holds err "4 points: 4 there already, 0 to run"

# over time: a curve for each case of a series, a row for each slice
mkdir -p over/figures
cp plots/style.gp plots/systems.json over/
cat >over/figures/growth.json <<'JSON'
{
    "id": "growth", "title": "Growth", "shows": "inserts over time", "keeps": "everything",
    "config": {"index": "sherman", "workload": "load", "keys": "2K", "ops": "4K", "warmup": "0", "interval": "50us"},
    "from": {"keys, ops, warmup, workload, clients, interval": "assumed: a test"},
    "scales": {"quick": {"config": {}}, "paper": {"config": {}}},
    "series": [{"label": "Sherman"}],
    "x": {"label": "clients", "cases": [
        {"label": "few", "config": {"clients": 2}}, {"label": "more", "config": {"clients": 4}}]},
    "plots": [{"id": "pace", "kind": "time", "y_label": "Mops/s",
               "y": [{"path": "over_time.throughput_ops_per_s", "column": "mops", "factor": 1e-6}]}]
}
JSON
expect 0 figure growth --plots over --no-plot --out over_out
over=over_out/figures/growth/pace.tsv
[ "$(head -n 1 $over | tr '\t' ,)" = "panel,series,position,case,time_ms,mops,point" ] || fail "$(head -n 1 $over)"
[ "$(grep -c few $over)" -gt 10 ] || fail "a run of a millisecond has few slices of 50 us: $(cat $over)"
[ "$(cut -f 3 $over | sort -u | tr -d '\n')" = 01position ] || fail "$(cat $over)"
holds over_out/figures/growth/pace.gp "with lines"

if command -v gnuplot >/dev/null 2>&1; then
    expect 0 figure all --plots plots --out results
    for plot in lines/throughput lines/latency bars/gain; do
        for kind in png svg pdf gp tsv; do
            [ -s "results/figures/$plot.$kind" ] || fail "$plot.$kind is missing"
        done
        holds "results/figures/$plot.svg" "simulated (virtual time), profile cx6-100g"
        holds out "results/figures/$plot.png"
    done
    # The stored program draws the same picture again in its folder.
    cp results/figures/lines/throughput.svg first.svg
    (cd results/figures/lines && rm throughput.svg && gnuplot throughput.gp 2>"$work/gnuplot.err")
    [ ! -s gnuplot.err ] || fail "gnuplot says: $(cat gnuplot.err)"
    cmp -s first.svg results/figures/lines/throughput.svg || fail "the program draws another picture"
    # A panel that lacks a point reports it, and is not drawn from the remaining points.
    point=$(cut -f 7 $table | sed -n 2p)
    rm "results/points/$point.json"
    mkdir "results/points/$point.json"
    expect 1 figure lines --plots plots --out results
    holds err "1 of its points are missing"
    holds results/figures/lines/throughput.svg "1 of 2 points"
    rmdir "results/points/$point.json"
    # A plot that gnuplot fails to draw is reported; the others are drawn.
    mkdir broken
    printf '#!/bin/sh\ncase "$*" in *throughput.gp) echo "line 1: no" >&2; exit 1 ;; esac\nexec "%s" "$@"\n' \
        "$(command -v gnuplot)" >broken/gnuplot
    chmod +x broken/gnuplot
    rm results/figures/lines/latency.png
    expect_status=0
    PATH="$work/broken:$PATH" "$DMBENCH" figure lines --plots plots --out results >out 2>err || expect_status=$?
    [ "$expect_status" -eq 1 ] || fail "a plot not drawn: status $expect_status: $(cat err)"
    holds err "throughput.gp: gnuplot failed: line 1: no"
    [ ! -e results/figures/lines/throughput.png ] || fail "an old picture is left"
    [ -s results/figures/lines/latency.png ] || fail "the other plot was not drawn"
    # Without gnuplot tables are written, and the package is named.
    mkdir bin
    expect_status=0
    PATH="$work/bin" "$DMBENCH" figure bars --plots plots --out results >out 2>err || expect_status=$?
    [ "$expect_status" -eq 1 ] || fail "without gnuplot: status $expect_status: $(cat err)"
    holds err "gnuplot-nox"
    [ -s results/figures/bars/gain.tsv ] || fail "without gnuplot: no table"
    [ ! -e results/figures/bars/gain.png ] || fail "without gnuplot: an old picture is left"
elif [ "${CI:-}" = true ]; then
    missing gnuplot
fi

# A system that a paper compares with and that is not built is left out, and all outputs list it; an unknown one is an error.
echo '{"systems": {"fatnode": {"name": "Fat node tree", "color": "#000000", "marker": "circle"},
                   "slimnode": {"name": "Slim node tree", "color": "#111111", "marker": "circle"},
                   "sherman": {"name": "Sherman", "color": "#0072B2", "marker": "circle"}},
       "others": [{"color": "#33BBEE", "marker": "pentagon"}]}' >plots/systems.json
sed 's/"id": "lines"/"id": "systems"/; s/"series": .*/"series": [{"label": "null", "config": {"index": "null"}}, {"label": "Fat node tree", "config": {"index": "fatnode"}}],/' \
    plots/figures/lines.json >plots/figures/systems.json
expect 0 figure systems --plots plots --out results
holds err "systems: not built here: Fat node tree"
if command -v gnuplot >/dev/null 2>&1; then
    holds results/figures/systems/throughput.svg "not built here: Fat node tree"
fi
! grep -q "Fat node" results/figures/systems/throughput.tsv || fail "$(cat results/figures/systems/throughput.tsv)"
expect 0 figure systems --plots plots --list
holds out "not built here: Fat node tree"
sed 's/"fatnode"/"fatnod"/; s/"id": "systems"/"id": "unknown"/' plots/figures/systems.json >plots/figures/unknown.json
expect 2 figure unknown --plots plots --out results
holds err "series[1].config: unknown index 'fatnod' (did you mean 'fatnode'?"
rm plots/figures/unknown.json
sed 's/"index": "null"/"index": "slimnode"/; s/"id": "systems"/"id": "empty"/' plots/figures/systems.json >plots/figures/empty.json
expect 0 figure empty --plots plots --out results
[ ! -e results/figures/empty ] || fail "drew a figure of nothing"

# Two series of one index are distinguished.
sed 's/"series": .*/"series": [{"label": "null"}, {"label": "null again", "config": {"seed": 2}}],/; s/"id": "lines"/"id": "twins"/; s/"keys, /"seed, keys, /' \
    plots/figures/lines.json >plots/figures/twins.json
expect 0 figure twins --plots plots --out results --no-plot
holds results/figures/twins/throughput.gp 'style_of("sherman", 0)'
holds results/figures/twins/throughput.gp 'style_of("other-1", 0)'
rm plots/figures/twins.json

# A point whose operations ran out of memory is not used.
sed 's/"series": .*/"series": [{"label": "full", "config": {"workload": "load", "mix": "insert=1", "ops": "50K", "mn_memory": "1M"}}],/; s/"id": "lines"/"id": "full"/; s/"keys, /"mix, mn_memory, keys, /' \
    plots/figures/lines.json >plots/figures/full.json
expect 1 figure full --plots plots --out results --no-plot
holds err "ended in no_memory"
holds err "full: 4 of its points are missing"
rm plots/figures/full.json

# Any scale, seeds as repetitions, error bars.
expect 0 figure lines --plots plots --out smaller --scale 2.5 --repeat 3
[ "$(find smaller/points -name '*.json' | wc -l)" -eq 18 ] || fail "$(find smaller/points)"
grep -l '"ops": 1600,' smaller/points/*.json >found || fail "4K operations over 2.5 are not 1600"
grep -l '"keys": 400,' smaller/points/*.json >found || fail "1K keys over 2.5 are not 400"
holds smaller/figures/lines/throughput.tsv mops_low
if command -v gnuplot >/dev/null 2>&1; then
    holds smaller/figures/lines/throughput.gp yerrorlines
    holds smaller/figures/lines/throughput.svg "3 seeds"
fi

# A scale may have its own number of seeds: the first ones that are there already are kept. Another number wins.
sed 's/"quick": {/"quick": {"seeds": 3, /; s/"id": "lines"/"id": "seeds"/' plots/figures/lines.json >plots/figures/seeds.json
expect 0 figure seeds --plots plots --no-plot --out seeds --repeat 1
[ "$(find seeds/points -name '*.json' | wc -l)" -eq 4 ] || fail "$(find seeds/points)"
expect 0 figure seeds --plots plots --no-plot --out seeds --dry-run
holds out "12 points in seeds/points, 8 to run"
expect 0 figure seeds --plots plots --no-plot --out seeds
holds seeds/figures/seeds/throughput.tsv mops_low
[ "$(cat seeds/points/*.json | grep -c '"seed": 3')" -eq 4 ] || fail "$(grep '"seed"' seeds/points/*.json)"
expect 0 figure seeds --plots plots --out seeds --scale 2.5 --dry-run
holds out "6 points in seeds/points"
rm plots/figures/seeds.json

# A curve that another one covers is named, also if they have a case without x; a metric may have a number for that.
cat >plots/figures/covered.json <<'JSON'
{
    "id": "covered", "title": "Covered", "shows": "curves", "keeps": "everything",
    "config": {"index": "sherman", "keys": "1K", "ops": "2K", "warmup": "0", "clients": 2},
    "from": {"keys, ops, warmup, workload, clients": "assumed: a test"},
    "scales": {"quick": {"config": {}}, "paper": {"config": {}}},
    "series": [{"label": "one", "style": "sherman"}, {"label": "two", "style": "other-1"}],
    "x": {"label": "", "cases": [{"label": "a", "config": {"workload": "a"}}, {"label": "b", "config": {"workload": "b"}},
          {"label": "c", "config": {"workload": "c"}}]},
    "plots": [{"id": "absent", "kind": "line", "y_label": "gets", "x": {"path": "ops.update.count", "column": "updates"},
               "y": [{"path": "ops.get.count", "column": "gets"}]},
              {"id": "none", "kind": "line", "y_label": "gets",
               "x": {"path": "ops.update.count", "else": 0, "column": "updates"},
               "y": [{"path": "ops.get.count", "column": "gets"}]}]
}
JSON
expect 0 figure covered --plots plots --no-plot --out results
for plot in absent none; do
    holds results/figures/covered/$plot.gp "On each other: one (wide) and two"
done
[ "$(cut -f 2,5 results/figures/covered/absent.tsv | sed -n 4p)" = "one	NaN" ] || fail "$(cat results/figures/covered/absent.tsv)"
[ "$(cut -f 2,5 results/figures/covered/none.tsv | sed -n 4p)" = "one	0" ] || fail "$(cat results/figures/covered/none.tsv)"
sed -i 's/"else": 0/"else": []/' plots/figures/covered.json
expect 2 figure covered --plots plots
holds err "plots[1].x.else: must be a path or a number"
rm plots/figures/covered.json

# An interrupt: status 130, finished results stay, there is no partial file or picture, and the next run continues. One
# point ends soon and the other one never: once the first has a result, the second one runs.
sed 's/"id": "bars"/"id": "long"/; s/"clients": 4/"ops": "100G"/' plots/figures/bars.json >plots/figures/long.json
"$DMBENCH" figure long --plots plots --out long --jobs 2 >out 2>err &
pid=$!
once has_results long/points
interrupt INT
holds err "interrupted: 1 of 2 points done"
[ -z "$(find long -name '*.tmp.*')" ] || fail "left: $(find long)"
[ ! -e long/figures ] || fail "drew a figure from a part of its points"
expect 0 figure long --plots plots --out long --dry-run
holds out "2 points in long/points, 1 to run"

# Bad input.
bad() {
    wanted=$1
    reason=$2
    shift 2
    expect "$wanted" figure "$@"
    holds err "$reason"
    [ "$(wc -l <err)" -eq 1 ] || fail "more than one line: $(cat err)"
}
bad 2 "unknown figure 'linse' (did you mean 'lines'?" linse --plots plots
bad 2 "unknown figure 'fig12' (did you mean chime-12 or xstore-12? --list shows all)" fig12
bad 2 "name a figure" --plots plots
bad 2 "--scale" lines --scale huge --plots plots
bad 2 "--scale: '0.5'" lines --plots plots --scale 0.5
bad 2 "--sclae" lines --sclae quick
bad 2 "--jobs" lines --jobs -3
bad 1 "nowhere/figures" lines --plots nowhere
sed 's/"log": true/"lgo": true/' plots/figures/lines.json >plots/figures/typo.json
sed -i 's/"id": "lines"/"id": "typo"/' plots/figures/typo.json
bad 2 "plots/figures/typo.json: x: unknown member 'lgo'" typo --plots plots
head -c 300 plots/figures/lines.json >plots/figures/torn.json
bad 2 "plots/figures/torn.json:" torn --plots plots
sed 's/"keys": "1K"/"kesy": "1K"/; s/"keys, /"kesy, /; s/"id": "lines"/"id": "option"/' plots/figures/lines.json >plots/figures/option.json
bad 2 "kesy" option --plots plots
