# SPDX-License-Identifier: Apache-2.0
#
# The style of all figures, defined only here: terminals and fonts, the palette, the style of each system. The program of
# a figure sets name, width and height and loads this file.

set encoding utf8
set datafile separator tab columnheaders
set datafile missing "NaN"

# ---- terminals ------------------------------------------------------------------------------------------------------
# Sizes are those of the SVG. A figure of four panels is 886 units wide, so that printed over two columns (7 inches) text
# of 12 units is 7 points high. The PNG has png_factor times as many pixels.
kinds = "png svg pdf"
font_name = "DejaVu Sans"
png_factor = 2.5
font_title = ",14"
font_small = ",10"
font_tiny = ",8"
open_png(w, h) = sprintf("set terminal pngcairo noenhanced size %d,%d font '%s,12' fontscale %g linewidth %g pointscale %g background rgb 'white'", \
    int(w * png_factor), int(h * png_factor), font_name, 0.75 * png_factor, png_factor, png_factor)
open_svg(w, h) = sprintf("set terminal svg noenhanced size %d,%d font '%s,12' linewidth 1 background rgb 'white'", w, h, font_name)
open_pdf(w, h) = sprintf("set terminal pdfcairo noenhanced size %.3fin,%.3fin font '%s,12' fontscale 0.6 linewidth 1 background rgb 'white'", \
    w / 96.0, h / 96.0, font_name)
open(kind) = (kind eq "png" ? open_png(width, height) : kind eq "svg" ? open_svg(width, height) : open_pdf(width, height)).sprintf("; set output '%s.%s'", name, kind)

# ---- palette --------------------------------------------------------------------------------------------------------
# The colours of Okabe and Ito and three dark ones, which colour-blind readers can distinguish. Each system also has its
# own point type, so that readers can distinguish the systems in grey. A system never changes its position in this list;
# new systems are added at the end.
systems = "sherman chime rolex xstore_d dolphin hstore smart marlin fg emt clover race cell null drtm_tree"
colors = "#0072B2 #D55E00 #009E73 #E69F00 #CC79A7 #56B4E9 #000000 #882255 #999933 #44AA99 #661100 #332288 #777777 #AAAAAA #B8860B"
closed_points = "7 5 9 13 11 15 7 5 9 13 11 15 7 5 9"
open_points = "6 4 8 12 10 14 6 4 8 12 10 14 6 4 8"
set dashtype 1 solid
set dashtype 2 (6,3)
set dashtype 3 (2,2)
set dashtype 4 (8,3,2,3)
system_count = words(systems)
color_note = "#555555"

# The value that a paper claims, drawn as a line across a panel.
color_claim = "#B03060"
style_claim = 900
set style line style_claim linecolor rgb color_claim linewidth 1.2 dashtype 3

# Variant v (0 to 3) of system i is style i + 100 v: the same colour, other dashes, and open points from variant 1 on.
# In a figure of variants of one system, its further series have the styles of their own names.
do for [v = 0:3] {
    do for [i = 1:system_count] {
        set style line (i + 100 * v) linecolor rgb word(colors, i) linewidth 1.8 pointsize 0.7 \
            dashtype v + 1 pointtype int(word(v == 0 ? closed_points : open_points, i))
    }
}

# The style of a system. A name that is not in the list has position `otherwise`, counted from the end.
position_of(name) = (hit = 0, sum [k = 1:system_count] (word(systems, k) eq name ? (hit = k, 0) : 0), hit)
style_of(name, otherwise, variant) = 100 * variant + (position_of(name) > 0 ? position_of(name) : system_count - otherwise)

# ---- panels ---------------------------------------------------------------------------------------------------------
restore_tics = "set xtics nomirror font font_small scale 0.5; set ytics nomirror font font_small scale 0.5"
panel_look = restore_tics."; set border 3 linecolor rgb '#333333' linewidth 0.8; set grid ytics linetype 1 linecolor rgb '#D8D8D8' linewidth 0.6 dashtype 1; set title font ',11.5' offset 0, -0.6; set style fill solid 0.85 noborder; set key font ',11' samplen 3 spacing 1.15; set offsets 0, 0, graph 0.1, 0"
