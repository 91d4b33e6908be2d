#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# `dmbench report`: one self-contained page that lists what is missing and fits desktop and phone screens, tested in headless
# Chromium. The figure and the claims are small ones in a separate folder of plots. With DM_REPORT=FILE that page is
# tested instead; with DM_SCREENSHOTS=FOLDER pictures of it are kept. report_browser_test.sh tests what its script does.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# The page is tested here, not memory: run_tests.sh names a program without a sanitizer, which is faster.
DMBENCH=${DM_PLAIN_DMBENCH:-$DMBENCH}

# shellcheck source=tests/cli/report_plots.sh
. "$DM_SOURCE_DIR/tests/cli/report_plots.sh"

# Before anything was run the page reports that.
expect 0 report --plots plots
page=results/report.html
holds $page "8 of its 8 points are missing"
holds $page "None of its systems is built here"
holds $page "validate --json"
holds err "something of 2 figures is missing"

command -v gnuplot >/dev/null || missing gnuplot
expect 0 figure all --plots plots
expect 0 claims --plots plots --run
holds $page "No maps here"
expect 0 map --x value_size=8..32 --y clients=1..2 --workload c --keys 1K --ops 2K --indexes sherman,chime --start 2 --resolution 2 --name who
expect 0 map --x cache=100KB,1MB --y rdwc=on,off --keys 1K --ops 500 --indexes sherman,chime --name listed
"$DMBENCH" validate --json >results/validation.json || [ $? -eq 3 ] || fail "validate"
expect 0 report --plots plots
holds $page '<svg xmlns:xlink'
holds $page 'A &lt;small&gt; &amp; &quot;quoted&quot; figure'
holds $page '<span class="v reproduced">reproduced</span>'
holds $page 'Fatnode is not built here'
holds $page '<td>ops</td><td>2K</td><td>stated: section 1</td>'
holds $page '<td>A: workload</td><td>a</td><td>assumed: a test</td>'
holds $page 'reading <b>two</b>: two seeds <span class="soft">(code: a/b c.h)</span>'
holds $page '<td class="n">1 ± 900 %</td><td class="n">'
holds $page '<li data-reading="two"><span class="dot reproduced"></span><b>two</b>: reproduced ('
holds $page 'paper: Sherman <span class="soft">(figure 1)</span>'
holds $page 'READ 64 B, idle'
holds $page '<tr><td><code>link_gbps</code></td>'
holds $page 'validate --end-to-end</code> writes end_to_end.json'
holds $page '<a href="#paper-P">P</a> <span class="soft">1 figure, 3 claims</span>'
holds $page '<b>3 claims</b>: 2 <span class="v reproduced">reproduced</span>, 1 <span class="v not-run">not run</span>'
holds $page '<a href="#maps">Which index, when</a>'
grep -Eq '^<tr><th>2</th><td title="[^"]*Sherman: [0-9.e+]*&#10;[^"]*"><a href="points/[0-9a-f]{16}\.json">(CHIME|Sherman)</a>' $page ||
    fail "no best system in the map"
# Values of a list keep their order and their units.
holds $page '<tr><th></th><th>100KB</th><th>1MB</th></tr>'
[ "$(grep -o '^<tr><th>o[nf]*</th>' $page | tr -d '\n')" = "<tr><th>off</th><tr><th>on</th>" ] || fail "rows of a map: $(grep '<th>o' $page)"
# A claim is once in the page, and is beside the figure that it reads.
[ "$(grep -c 'id="claim-rate"' $page)" -eq 1 ] || fail "a claim is not in the page once"
awk '/id="figure-small"/ { inside = 1 } /<\/article>/ { inside = 0 } inside && /id="claim-rate" data-verdict="reproduced" data-systems="sherman"/ { found = 1 }
    END { exit !found }' $page || fail "the claim is not beside its figure"
# The numbers of a picture are in a table, each with a link to its result.
grep -Eq '<td>C</td><td>4</td><td class="n"><a href="points/[0-9a-f]{16}\.json">[0-9.]+</a></td>' $page || fail "no number with its result"
holds $page 'Systems not built here: Fatnode'
! grep -q "are missing" $page || fail "says that something is missing: $(grep missing $page)"
! grep -Eiq '<script[^>]* src|<link|@import|(src|href)="https?:' $page || fail "the page needs something beside itself"
sed -e '/^<script type/d' -e '/^<script>$/,/^<\/script>$/d' $page >still.html
! grep -q '<script' still.html || fail "a script that is not one of the known ones"
grep -o 'href="[a-z][^"#]*"' still.html | sed 's/href="//; s/"//' | sort -u >links
[ "$(wc -l <links)" -ge 12 ] || fail "links: $(cat links)"
while read -r link; do
    [ -s "results/$link" ] || fail "the link $link leads nowhere"
done <links
grep -o 'href="#[^"]*"' still.html | sed 's/href="#//; s/"//' | sort -u | while read -r id; do
    grep -qF " id=\"$id\"" $page || fail "the link #$id leads nowhere"
done
# Ids inside pictures are unique in the page.
[ "$(grep -o ' id=["'\''][^"'\'']*' still.html | sort | uniq -d | wc -l)" -eq 0 ] || fail "an id is there twice"

# At another scale there is no picture, and the existing one is not shown instead.
expect 0 report --plots plots --scale paper
holds $page "no picture at scale paper here"
! grep -q 'class="picture' $page || fail "a picture of another scale is in the page"
expect 0 report --plots plots
expect 2 report everything --plots plots
expect 2 report --plots plots --scale tiny
holds err "--scale"

chromium=$(command -v chromium || true)
[ -n "$chromium" ] || missing "chromium: the page was not looked at"
cp "${DM_REPORT:-$page}" "$work/report.html"
browser() {
    timeout 60 "$chromium" --headless --no-sandbox --disable-gpu --hide-scrollbars --allow-file-access-from-files \
        --user-data-dir="$work/profile" "$@" 2>browser.err
}
# look WIDTH HEIGHT: the page in a frame of that width; nothing may exceed the width.
look() {
    cat >frame.html <<HTML
<body style="margin:0"><iframe id="f" src="report.html" style="border:0;width:$1px;height:$2px"></iframe><script>
document.getElementById("f").onload = e => {
  const d = e.target.contentDocument, r = d.documentElement;
  const wide = [...d.querySelectorAll("main *")].filter(x => !x.closest(".wide") && x.getBoundingClientRect().right > $1 + 1);
  document.body.dataset.found = "scroll " + r.scrollWidth + " of $1, wide " + wide.length + ", pictures " + d.querySelectorAll("svg[role=img]").length;
};
</script></body>
HTML
    browser --virtual-time-budget=10000 --dump-dom "file://$work/frame.html" >dom.html || fail "chromium: $(cat browser.err)"
    grep -q "scroll $1 of $1, wide 0, pictures [1-9]" dom.html || fail "at $1: $(grep -o 'data-found="[^"]*"' dom.html)"
    browser --window-size="$(($1 > 500 ? $1 : 500)),$2" --screenshot="$work/report-$1.png" "file://$work/frame.html" >/dev/null ||
        fail "chromium: $(cat browser.err)"
    [ -s "report-$1.png" ] || fail "no picture of the page"
    [ -z "${DM_SCREENSHOTS:-}" ] || cp "report-$1.png" "$DM_SCREENSHOTS"
}
look 1280 "${DM_HEIGHT:-1600}"
look 390 "${DM_HEIGHT:-1600}"
browser --no-pdf-header-footer --print-to-pdf="$work/report.pdf" "file://$work/report.html" >/dev/null || fail "chromium: $(cat browser.err)"
[ "$(head -c 5 report.pdf)" = "%PDF-" ] || fail "cannot be printed"
[ -z "${DM_SCREENSHOTS:-}" ] || cp report.pdf "$DM_SCREENSHOTS"
