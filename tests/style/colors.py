# SPDX-License-Identifier: Apache-2.0
#
# Colours and markers of plots/systems.json: any two series of one figure differ, also for readers who do not see red or
# green. Usage: colors.py PLOTS
#
# How protanopes and deuteranopes see a colour: Machado, Oliveira and Fernandes, A physiologically-based model for
# simulation of color vision deficiency, 2009, table 1, severity 1.0, on linear RGB. How different two colours are: the
# CIEDE2000 formula. 2.3 is a difference that is just noticed; 12 is one between colours that have different names.

import glob
import itertools
import json
import math
import sys

LEAST = 12.0
SEEN = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
}
TO_XYZ = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041))
WHITE = (0.95047, 1.0, 1.08883)


def linear(color):
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]


def product(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector)) for row in matrix]


def lab(rgb):
    def root(t):
        return t ** (1 / 3) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116

    x, y, z = [root(value / white) for value, white in zip(product(TO_XYZ, rgb), WHITE)]
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def seen(color, eyes):
    return lab([min(1, max(0, value)) for value in product(SEEN[eyes], linear(color))])


def difference(one, other):
    """CIEDE2000 of two colours in CIELAB."""
    chroma = (math.hypot(*one[1:]) + math.hypot(*other[1:])) / 2
    stretch = 1.5 - 0.5 * math.sqrt(chroma**7 / (chroma**7 + 25**7))
    c1, c2 = [math.hypot(p[1] * stretch, p[2]) for p in (one, other)]
    h1, h2 = [math.degrees(math.atan2(p[2], p[1] * stretch)) % 360 for p in (one, other)]
    turn = (h2 - h1 + 180) % 360 - 180 if c1 * c2 else 0
    d_hue = 2 * math.sqrt(c1 * c2) * math.sin(math.radians(turn) / 2)
    light, c_mean = (one[0] + other[0]) / 2, (c1 + c2) / 2
    hue = (h1 + turn / 2) % 360 if c1 * c2 else h1 + h2
    t = (1 - 0.17 * math.cos(math.radians(hue - 30)) + 0.24 * math.cos(math.radians(2 * hue))
         + 0.32 * math.cos(math.radians(3 * hue + 6)) - 0.2 * math.cos(math.radians(4 * hue - 63)))
    s_light = 1 + 0.015 * (light - 50) ** 2 / math.sqrt(20 + (light - 50) ** 2)
    s_chroma, s_hue = 1 + 0.045 * c_mean, 1 + 0.015 * c_mean * t
    cross = (-2 * math.sqrt(c_mean**7 / (c_mean**7 + 25**7))
             * math.sin(math.radians(60 * math.exp(-(((hue - 275) / 25) ** 2)))))
    a, b, c = (other[0] - one[0]) / s_light, (c2 - c1) / s_chroma, d_hue / s_hue
    return math.sqrt(a * a + b * b + c * c + cross * b * c)


def styles_of(figure, styles):
    """The styles of a figure's series, chosen as in harness/study/figure.c."""
    taken = []
    for series in figure["series"]:
        index = series.get("config", {}).get("index", figure["config"].get("index"))
        free = [name for name in styles if name.startswith("other-") and name not in taken]
        usual = index if index in styles and index not in taken else free[0] if free else "other-1"
        taken.append(series.get("style", usual))
    return taken


def main():
    plots = sys.argv[1]
    with open(plots + "/systems.json", encoding="utf-8") as file:
        table = json.load(file)
    styles = dict(table["systems"])
    styles.update({f"other-{i + 1}": style for i, style in enumerate(table["others"])})
    found, checked = 0, 0
    for path in sorted(glob.glob(plots + "/figures/*.json")):
        with open(path, encoding="utf-8") as file:
            used = styles_of(json.load(file), styles)
        for one, other in itertools.combinations(used, 2):
            checked += 1
            if styles[one]["marker"] == styles[other]["marker"]:
                print(f"{path}: {one} and {other} have the same marker")
                found += 1
            for eyes in SEEN:
                apart = difference(seen(styles[one]["color"], eyes), seen(styles[other]["color"], eyes))
                if apart < LEAST:
                    print(f"{path}: {one} and {other} are {apart:.1f} apart ({eyes}), less than {LEAST:g}")
                    found += 1
    if checked == 0:
        print("no two series were compared")
    return 1 if found or checked == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
