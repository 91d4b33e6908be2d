# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# What the tests of the report share: a folder of plots with a figure of four panels, one of bars, one without a system
# that is built, and three claims. Sourced, in the folder of a test.
mkdir -p plots/figures
cp "$DM_SOURCE_DIR/plots/style.gp" plots/
# Systems that a paper compares with, and that are not built.
echo '{"systems": {"sherman": {"name": "Sherman", "color": "#0072B2", "marker": "circle"},
                   "fatnode": {"name": "Fat node tree", "color": "#000000", "marker": "circle"},
                   "slimnode": {"name": "Slim node tree", "color": "#111111", "marker": "circle"}},
       "others": [{"color": "#33BBEE", "marker": "pentagon"}]}' >plots/systems.json
cat >plots/figures/small.json <<'JSON'
{
    "id": "small", "title": "A <small> & \"quoted\" figure", "shows": "two systems", "keeps": "everything",
    "config": {"profile": "cx6-100g", "keys": "1K", "ops": "2K", "warmup": "0"},
    "scales": {"quick": {"config": {}, "x": [2, 4]}, "paper": {"config": {"ops": "4K"}, "x": [2, 4, 8]}},
    "panels": [{"label": "A", "config": {"workload": "a"}}, {"label": "B", "config": {"workload": "b"}},
               {"label": "C", "config": {"workload": "c"}}, {"label": "F", "config": {"workload": "f"}}],
    "series": [{"label": "Sherman", "config": {"index": "sherman"}}, {"label": "Fatnode", "config": {"index": "fatnode"}}],
    "from": {"profile, keys, ops, warmup, clients": "stated: section 1", "workload": "assumed: a test"},
    "readings": [{"id": "two", "says": "two seeds", "from": "code: a/b c.h", "config": {"seed": 2}}],
    "published": [{"label": "paper: Sherman", "plot": "throughput", "panel": "C", "series": "Sherman",
                   "source": "figure 1",
                   "x": [2, 4], "y": [0.5, 1]}],
    "x": {"option": "clients", "label": "clients", "log": true},
    "plots": [{"id": "throughput", "kind": "line", "y_label": "Mops/s",
               "y": [{"path": "throughput_ops_per_s", "column": "mops", "factor": 1e-6}]}]
}
JSON
# Bars, one of which the paper has.
cat >plots/figures/bars.json <<'JSON'
{
    "id": "bars", "title": "Bars", "shows": "one system", "keeps": "everything",
    "config": {"profile": "cx6-100g", "keys": "1K", "ops": "2K", "warmup": "0", "workload": "c"},
    "scales": {"quick": {"config": {}}, "paper": {"config": {"ops": "4K"}}},
    "series": [{"label": "Sherman", "config": {"index": "sherman"}}],
    "from": {"profile, keys, ops, warmup": "stated: section 1", "workload": "assumed: a test",
             "two: clients": "assumed: a test", "four: clients": "assumed: a test"},
    "published": [{"label": "paper: Sherman", "plot": "throughput", "series": "Sherman", "source": "figure 1",
                   "x": ["four"], "y": [0.5]}],
    "x": {"label": "", "cases": [{"label": "two", "config": {"clients": 2}}, {"label": "four", "config": {"clients": 4}}]},
    "plots": [{"id": "throughput", "kind": "bar", "y_label": "Mops/s",
               "y": [{"path": "throughput_ops_per_s", "column": "mops", "factor": 1e-6}]}]
}
JSON
sed 's/"sherman"/"slimnode"/; s/"id": "small"/"id": "nothing"/' plots/figures/small.json >plots/figures/nothing.json
echo '{}' >plots/sensitivity.json
echo '{}' >plots/metrics.json
mkdir plots/claims
cat >plots/claims/p.json <<'JSON'
{"claims": [
  {"id": "one", "paper": "P", "figure": "1", "text": "it <rises>", "kind": "trend", "reads": "small",
   "checks": [{"value": "rises(mops{Sherman, C})"}]},
  {"id": "rate", "paper": "P", "figure": "1", "text": "a rate", "kind": "value", "reads": "small",
   "checks": [{"what": "with 4", "value": "mops{Sherman, C, 4}", "expect": 1, "tolerance": 9}]},
  {"id": "two", "paper": "P", "figure": "1", "text": "over Fatnode", "kind": "ratio", "reads": "small",
   "checks": [{"value": "mops{Sherman, C, 4}", "over": "mops{Fatnode, C, 4}", "expect": 2}]}
]}
JSON
