# SPDX-License-Identifier: Apache-2.0
#
# The style of all figures, defined only here: terminals and fonts, the palette, the style of each system. The program of
# a figure sets name, width and height and loads this file.

set encoding utf8
set datafile separator tab columnheaders
set datafile missing "NaN"

# ---- terminals ------------------------------------------------------------------------------------------------------
# Sizes are CSS pixels, 96 to the inch, at the width at which a picture is printed; the PNG has 300 pixels to the inch. A
# program that loads this file may have set `kinds`.
if (!exists("kinds")) { kinds = "png svg pdf" }
font_name = "DejaVu Sans"
png_factor = 300 / 96.0
font_title = ",11"
font_label = ",9.5"
font_tic = ",8.5"
font_note = ",7.5"
open_png(w, h) = sprintf("set terminal pngcairo noenhanced size %d,%d font '%s,9.5' fontscale %g linewidth %g pointscale %g background rgb 'white'", \
    int(w * png_factor), int(h * png_factor), font_name, 0.75 * png_factor, png_factor, png_factor)
open_svg(w, h) = sprintf("set terminal svg noenhanced size %d,%d font '%s,9.5' linewidth 1 background rgb 'white'", w, h, font_name)
open_pdf(w, h) = sprintf("set terminal pdfcairo noenhanced size %.3fin,%.3fin font '%s,9.5' fontscale 0.75 linewidth 1 background rgb 'white'", \
    w / 96.0, h / 96.0, font_name)
open(kind) = (kind eq "png" ? open_png(width, height) : kind eq "svg" ? open_svg(width, height) : open_pdf(width, height)).sprintf("; set output '%s.%s'", name, kind)

# ---- numbers on bars -------------------------------------------------------------------------------------------------
short(v) = v >= 1e6 ? sprintf("%.3gM", v * 1e-6) : v >= 1e4 ? sprintf("%.3gK", v * 1e-3) : sprintf(v >= 1000 ? "%.0f" : "%.3g", v)
times(v) = (v < 0.1 ? sprintf("%.1g", v) : v < 10 ? sprintf("%.2g", v) : sprintf("%.0f", v))."×"
part(y) = strcol(y) eq "NaN" ? 0 : column(y)

# ---- the systems' styles ----------------------------------------------------------------------------------------------
# Names, colours and points are in plots/systems.json; `dmbench figure` writes them before this file. Without them, as for
# the curves of `validate` and `train`, gnuplot's colours for colour-blind readers are used.
set colorsequence podo
set dashtype 1 solid
set dashtype 2 (6,3)
set dashtype 3 (2,2)
set dashtype 4 (8,3,2,3)
color_note = "#555555"

# The value that a paper claims: a star, which no system has, with a rim that shows it on dark bars, too.
color_claim = "#222222"
style_claim = 900
style_rim = 901
set style line style_claim linecolor rgb color_claim linewidth 0.8 dashtype 3 pointtype 3 pointsize 0.75
set style line style_rim linecolor rgb "white" linewidth 3 pointtype 3 pointsize 0.8
set style textbox opaque noborder fillcolor rgb "white" margins 0.4, 0.2

# Variant v (0 to 3) of style i is line style i + 100 v: the same colour, other dashes, and open points from variant 1 on.
system_count = exists("systems") ? words(systems) : 0
if (system_count > 0) {
    do for [v = 0:3] {
        do for [i = 1:system_count] {
            set style line (i + 100 * v) linecolor rgb word(colors, i) linewidth 1.4 pointsize 0.55 \
                dashtype v + 1 pointtype int(word(v == 0 ? closed_points : open_points, i))
        }
    }
}

# The style and colour of a system, or of other-N; the colours of parts of a whole.
position_of(name) = (hit = 0, sum [k = 1:system_count] (word(systems, k) eq name ? (hit = k, 0) : 0), hit)
style_of(name, variant) = 100 * variant + position_of(name)
color_of(name) = word(colors, position_of(name))
part_color(at) = color_of(sprintf("other-%d", at + 1))

# ---- panels ---------------------------------------------------------------------------------------------------------
restore_tics = "set xtics nomirror norotate font font_tic offset 0, 0.35 scale 0.4; set ytics nomirror font font_tic offset 0.6, 0 scale 0.4; unset mxtics; unset mytics"
panel_look = restore_tics."; set border 3 linecolor rgb '#333333' linewidth 0.7; set grid ytics linetype 1 linecolor rgb '#D8D8D8' linewidth 0.5 dashtype 1; set title font font_label offset 0, -0.7; set style fill solid 0.9 noborder; unset key; set bars 0.6"
