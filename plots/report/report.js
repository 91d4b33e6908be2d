/* SPDX-License-Identifier: Apache-2.0
 *
 * What makes results/report.html live: charts instead of pictures, the numbers of a point under the pointer, its result
 * and command on a click, filters, readings that are switched on and off, light and dark. Without this script the page
 * shows everything as pictures and tables. The data are those of harness/study/report_data.c.
 */
"use strict";

(function () {
    const root = document.documentElement;
    const data = JSON.parse(document.getElementById("data").textContent);
    const NUMBERS_FROM = 5; /* where the numbers of a point begin in its row */
    /* What the reader has chosen. Empty sets filter nothing. */
    const chosen = {verdicts: new Set(), systems: new Set(), text: "", readings: new Map()};
    const charts = new Map(); /* canvas to chart, of those on the screen */

    /* ---- elements ---- */

    /* A new element with attributes, and children that are elements or texts. */
    function make(tag, attributes, ...children) {
        const element = document.createElement(tag);
        Object.entries(attributes || {}).forEach(([name, value]) => {
            if (typeof value === "function") {
                element.addEventListener(name, value);
            } else if (value !== false && value !== null) {
                element.setAttribute(name, value === true ? "" : value);
            }
        });
        element.append(...children);
        return element;
    }

    function all(selector, within) {
        return Array.from((within || document).querySelectorAll(selector));
    }

    /* 12.34, 56.7 K, 8.901 M */
    function shown(value) {
        if (value === null || value === undefined) {
            return "-";
        }
        const size = Math.abs(value);
        for (const [unit, name] of [[1e9, " G"], [1e6, " M"], [1e4, " K"]]) {
            if (size >= unit) {
                return Number((value / (unit === 1e4 ? 1e3 : unit)).toPrecision(4)) + name;
            }
        }
        return String(Number(value.toPrecision(4)));
    }

    /* ---- light and dark ---- */

    function isDark() {
        const choice = root.dataset.theme;
        return choice ? choice === "dark" : window.matchMedia("(prefers-color-scheme: dark)").matches;
    }

    /* The reader's choice is kept where the browser keeps something for files. */
    function kept(value) {
        try {
            if (value !== undefined) {
                window.localStorage.setItem("dmbench-theme", value);
            }
            return window.localStorage.getItem("dmbench-theme");
        } catch (error) {
            return null;
        }
    }

    function addThemeSwitch() {
        const button = make("button", {id: "theme", type: "button"});
        const name = () => {
            button.textContent = isDark() ? "light" : "dark";
            button.title = "show the page " + button.textContent;
        };
        if (["light", "dark"].includes(kept())) {
            root.dataset.theme = kept();
        }
        button.addEventListener("click", () => {
            root.dataset.theme = isDark() ? "light" : "dark";
            kept(root.dataset.theme);
            name();
            redraw();
        });
        window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
            name();
            redraw();
        });
        name();
        document.getElementById("top").append(button);
    }

    /* ---- colours ---- */

    /* Those of plots/systems.json. */
    const MARKERS = {circle: "circle", square: "rect", triangle: "triangle", down: "triangle", diamond: "rectRot",
        pentagon: "rectRounded", cross: "crossRot", plus: "cross"};
    const DASHES = [[], [6, 3], [2, 2], [8, 3, 2, 3]];

    function lookOf(style) {
        const entry = data.systems[style] || {color: "#777777", marker: "circle"};
        return {color: readable(entry.color), marker: MARKERS[entry.marker] || "circle"};
    }

    /* On a dark ground a dark colour is mixed with white until it can be seen. */
    function readable(color) {
        const parts = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
        const light = (0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]) / 255;
        if (!isDark() || light > 0.42) {
            return color;
        }
        const share = (0.5 - light) / (1 - light);
        return "rgb(" + parts.map((part) => Math.round(part + (255 - part) * share)).join(",") + ")";
    }

    function faint(color, alpha) {
        const parts = color.startsWith("rgb") ? color.match(/\d+/g)
            : [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
        return "rgba(" + parts.slice(0, 3).join(",") + "," + alpha + ")";
    }

    /* ---- what is drawn ---- */

    /* The numbers of slots: [panel][series][case]. */
    function slotAt(figure, panel, series, at) {
        return (panel * figure.series.length + series) * caseCount(figure) + at;
    }

    function caseCount(figure) {
        return figure.slots.length / (figure.panels.length * figure.series.length);
    }

    function systemHidden(row) {
        const index = row >= 0 ? data.points[row][2] : "";
        return chosen.systems.size > 0 && index !== "" && !chosen.systems.has(index);
    }

    /* A point of a chart; null where there is nothing. */
    function pointOf(figure, plot, spot, values) {
        if (values.y === null || values.y === undefined || systemHidden(values.row)) {
            return null;
        }
        const point = {y: values.y, row: values.row, spot: spot};
        if (values.low !== undefined && values.low !== null && values.low < values.high) {
            point.yMin = values.low;
            point.yMax = values.high;
        }
        if (plot.kind === "metric") {
            point.x = values.x;
        } else if (figure.cases === null) {
            point.x = figure.x[slotAt(figure, spot.panel, spot.series, spot.at)];
        } else {
            point.x = spot.at;
        }
        return point.x === null ? null : point;
    }

    function basePoint(figure, plot, metric, spot) {
        const slot = slotAt(figure, spot.panel, spot.series, spot.at);
        return pointOf(figure, plot, spot, {
            y: plot.v[metric][slot],
            low: plot.low ? plot.low[metric][slot] : undefined,
            high: plot.high ? plot.high[metric][slot] : undefined,
            x: plot.x ? plot.x[slot] : undefined,
            row: figure.slots[slot],
        });
    }

    function readingPoint(figure, plot, metric, spot, reading) {
        const slot = slotAt(figure, spot.panel, spot.series, spot.at);
        const at = reading.slots.findIndex((pair) => pair[0] === slot);
        const number = figure.plots.indexOf(plot);
        return at < 0 ? null : pointOf(figure, plot, Object.assign({reading: reading.id}, spot), {
            y: reading.v[number][metric][at],
            x: reading.x[number] ? reading.x[number][at] : undefined,
            row: reading.slots[at][1],
        });
    }

    /* The points of each case by `pick`. Bars need every case, also one without a number; lines only what is there. */
    function pointsOf(figure, plot, pick) {
        const points = Array.from({length: caseCount(figure)}, (unused, at) => pick(at));
        return plot.kind === "bar" ? points.map((point, at) => point || {x: at, y: NaN, row: -1})
            : points.filter((point) => point !== null);
    }

    function dataset(plot, label, look, variant, points) {
        const line = plot.kind !== "bar";
        const intervals = points.some((point) => point.yMin !== undefined);
        return {
            type: (line ? "line" : "bar") + (intervals ? "WithErrorBars" : ""),
            label: label,
            data: points,
            borderColor: look.color,
            backgroundColor: line ? (variant > 0 ? faint(look.color, 0) : look.color)
                : faint(look.color, variant > 0 ? 0.35 : 0.85),
            borderWidth: line ? 2 : variant > 0 ? 1.5 : 0,
            borderDash: DASHES[variant % DASHES.length],
            pointStyle: look.marker,
            pointRadius: plot.kind === "time" ? 0 : 3.5,
            pointHoverRadius: 6,
            errorBarColor: look.color,
            errorBarWhiskerColor: look.color,
            errorBarWhiskerSize: 8,
            tension: 0,
        };
    }

    function seriesLabel(figure, plot, series, metric) {
        const label = figure.series[series][0] || figure.title;
        return plot.y.length > 1 ? label + ", " + plot.y[metric] : label;
    }

    function timeSets(figure, plot, panel) {
        const sets = [];
        figure.series.forEach((item, series) => {
            for (let at = 0; at < caseCount(figure); at++) {
                const slot = slotAt(figure, panel, series, at);
                const [times, values] = plot.time[slot];
                const points = times.map((time, i) => ({x: time, y: values[i], row: figure.slots[slot],
                    spot: {panel, series, at}}));
                if (points.length > 0 && !systemHidden(figure.slots[slot])) {
                    sets.push(dataset(plot, item[0], lookOf(item[1]), at, points));
                }
            }
        });
        return sets;
    }

    /* What the paper published, as open marks, or open bars beside ours. */
    function publishedSets(figure, plot, panel) {
        return plot.published.filter((item) => item.panel === panel).map((item) => {
            const series = item.series >= 0 ? item.series : 0;
            const look = lookOf(item.series >= 0 ? figure.series[series][1] : item.style);
            const pointAt = (pair) => (pair ? {x: pair[0], y: pair[1], published: item.label} : null);
            const points = plot.kind === "bar"
                ? pointsOf(figure, plot, (at) => pointAt(item.points.find((pair) => pair[0] === at)))
                : item.points.map(pointAt);
            return Object.assign(dataset(plot, item.label, look, 1, points), {
                backgroundColor: "rgba(0,0,0,0)", showLine: false, pointRadius: 6, pointStyle: "crossRot",
                borderWidth: 1.5,
            });
        });
    }

    function readingsOn(id) {
        const on = chosen.readings.get(id) || new Set();
        return data.figures[id].readings.filter((reading) => on.has(reading.id));
    }

    function setsOf(id, plot, panel) {
        const figure = data.figures[id];
        if (plot.kind === "time") {
            return timeSets(figure, plot, panel);
        }
        const sets = [];
        figure.series.forEach((item, series) => plot.y.forEach((unused, metric) => {
            const look = lookOf(item[1]);
            const label = seriesLabel(figure, plot, series, metric);
            const add = (name, variant, pick) => {
                const points = pointsOf(figure, plot, (at) => pick({panel, series, at}));
                if (points.some((point) => !Number.isNaN(point.y))) {
                    sets.push(dataset(plot, name, look, variant, points));
                }
            };
            add(label, metric, (spot) => basePoint(figure, plot, metric, spot));
            readingsOn(id).forEach((reading, number) => add(label + " (" + reading.id + ")", metric + 1 + number,
                (spot) => readingPoint(figure, plot, metric, spot, reading)));
        }));
        return sets.concat(publishedSets(figure, plot, panel));
    }

    /* The numbers that claims expect, as lines, or bands where they are ranges. Of two lines that are close the label
     * of the lower one is below it. */
    function claimMarks(plot, panel, colors) {
        const marks = {};
        const color = isDark() ? "#f08bb0" : "#B03060";
        const lines = plot.lines.filter((line) => line[0] === panel && line[1] !== null).sort((a, b) => b[1] - a[1]);
        lines.forEach((line, number) => {
            const above = number > 0 ? lines[number - 1][1] : Infinity;
            const close = above - line[1] < 0.15 * lines[0][1];
            marks["line" + number] = {
                type: "line", yMin: line[1], yMax: line[1], borderColor: color, borderWidth: 1, borderDash: [3, 3],
                label: {display: true, content: line[4].replace(/ \([^)]*\)$/, ""),
                    position: number % 2 === 0 ? "start" : "end",
                    yAdjust: close ? 7 : -7, backgroundColor: faint(colors.back, 0.7), color: color, padding: 0,
                    font: {size: 9, weight: "normal"}},
            };
            if (line[2] !== null && line[2] < line[3]) {
                marks["band" + number] = {type: "box", yMin: line[2], yMax: line[3], borderWidth: 0,
                    backgroundColor: faint(colors.ink, 0.07)};
            }
        });
        return marks;
    }

    /* ---- axes ---- */

    function xScale(figure, plot, panel, colors) {
        const grid = {color: colors.grid, drawOnChartArea: false};
        const ticks = {color: colors.soft, maxRotation: 0, autoSkipPadding: 6, font: {size: 10}};
        if (plot.kind === "bar" || (plot.kind === "line" && figure.cases !== null)) {
            return {type: "category", grid, ticks};
        }
        if (plot.kind === "line" && plot.x_log) {
            const values = Array.from(new Set(figure.x.filter((value) => value > 0))).sort((a, b) => a - b);
            return {type: "logarithmic", grid, min: values[0] / 1.15, max: values[values.length - 1] * 1.15,
                ticks: Object.assign({callback: shown}, ticks),
                afterBuildTicks: (axis) => { axis.ticks = values.map((value) => ({value})); }};
        }
        return {type: plot.x_log ? "logarithmic" : "linear", grid, beginAtZero: !plot.x_log,
            ticks: Object.assign({callback: shown}, ticks)};
    }

    /* 1, 2 and 5 of each decade, or 1 alone, from the last one below the lowest number to the first above the
     * highest. */
    function logSteps(low, high) {
        const decades = Math.log10(high / low);
        const steps = [];
        for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
            (decades > 2.5 ? [1] : [1, 2, 5]).forEach((digit) => steps.push(Number((digit + "e" + power))));
        }
        const first = Math.max(0, steps.findIndex((step) => step > low) - 1);
        const last = steps.findIndex((step) => step >= high);
        return steps.slice(first, last < 0 ? undefined : last + 1);
    }

    function yScale(plot, colors, titled, sets) {
        const scale = {
            type: "linear",
            beginAtZero: true,
            grace: "5%",
            grid: {color: colors.grid},
            ticks: {color: colors.soft, callback: shown, font: {size: 10}, maxTicksLimit: 8},
            title: {display: titled, text: plot.y_label, color: colors.soft},
        };
        const numbers = [];
        sets.forEach((set) => set.data.forEach((point) => {
            if (point.y > 0) {
                numbers.push(point.y);
            }
        }));
        if (plot.y_log && numbers.length > 0) {
            const steps = logSteps(Math.min(...numbers), Math.max(...numbers));
            Object.assign(scale, {type: "logarithmic", beginAtZero: false, grace: 0, min: steps[0],
                max: steps[steps.length - 1],
                afterBuildTicks: (axis) => { axis.ticks = steps.map((value) => ({value})); }});
        }
        return scale;
    }

    /* ---- charts ---- */

    function colorsNow() {
        const style = getComputedStyle(document.body);
        const probe = document.querySelector(".soft") || document.body;
        return {ink: style.color, back: style.backgroundColor, soft: getComputedStyle(probe).color,
            grid: faint(style.color, 0.12)};
    }

    function chartOf(canvas) {
        const id = canvas.dataset.figure, panel = Number(canvas.dataset.panel);
        const figure = data.figures[id], plot = figure.plots[Number(canvas.dataset.plot)];
        const colors = colorsNow();
        const single = figure.panels.length === 1;
        const sets = setsOf(id, plot, panel);
        return new window.Chart(canvas, {
            type: plot.kind === "bar" ? "bar" : "line",
            data: {labels: figure.cases ? figure.cases.map((label) => label.split("\n")) : undefined, datasets: sets},
            options: {
                animation: false,
                maintainAspectRatio: false,
                interaction: {mode: "nearest", intersect: false, axis: "xy"},
                scales: {x: xScale(figure, plot, panel, colors), y: yScale(plot, colors, single, sets)},
                onClick: (event, elements, chart) => {
                    if (elements.length > 0) {
                        showPoint(id, plot, chart.data.datasets[elements[0].datasetIndex].data[elements[0].index]);
                    }
                },
                plugins: {
                    legend: {display: false},
                    tooltip: {enabled: false, external: (context) => hover(id, plot, context)},
                    annotation: {annotations: claimMarks(plot, panel, colors)},
                    title: {display: figure.panels[panel] !== "", text: figure.panels[panel], color: colors.ink,
                        font: {weight: "normal", size: 12}, padding: 4},
                },
            },
        });
    }

    /* Only charts near the screen exist. */
    const watcher = new IntersectionObserver((entries) => entries.forEach((entry) => {
        const canvas = entry.target;
        if (entry.isIntersecting && !charts.has(canvas)) {
            charts.set(canvas, chartOf(canvas));
        } else if (!entry.isIntersecting && charts.has(canvas)) {
            charts.get(canvas).destroy();
            charts.delete(canvas);
        }
    }), {rootMargin: "600px 0px"});

    /* Draws the charts of a figure again, or all. */
    function redraw(id) {
        all(".live-plot").forEach((box) => {
            if (!id || box.dataset.figure === id) {
                putLegend(box);
            }
        });
        charts.forEach((chart, canvas) => {
            if (!id || canvas.dataset.figure === id) {
                chart.destroy();
                charts.set(canvas, chartOf(canvas));
            }
        });
    }

    function putLegend(box) {
        const figure = data.figures[box.dataset.figure], plot = figure.plots[Number(box.dataset.plot)];
        const entries = new Map();
        figure.panels.forEach((unused, panel) => setsOf(box.dataset.figure, plot, panel).forEach((set) => {
            entries.set(set.label, set);
        }));
        const legend = box.querySelector(".legend");
        legend.replaceChildren(...Array.from(entries.values()).map((set) => {
            const mark = make("span", {class: "mark"});
            mark.style.borderTopColor = set.borderColor;
            mark.style.borderTopStyle = set.borderDash.length > 0 ? "dashed" : "solid";
            if (set.pointStyle === "crossRot" && plot.kind !== "bar") {
                mark.className = "mark cross";
                mark.textContent = "×";
                mark.style.color = set.borderColor;
            } else if (plot.kind === "bar") {
                mark.className = "mark block";
                mark.style.background = set.backgroundColor;
                mark.style.borderColor = set.borderColor;
            }
            return make("span", {}, mark, set.label);
        }));
        legend.hidden = entries.size < 2;
    }

    /* A picture of gnuplot's gets a chart beside it, and a switch between them. */
    function addChart(holder) {
        const id = holder.closest("[data-figure]").dataset.figure;
        const figure = data.figures[id];
        const number = Number(holder.dataset.plot);
        if (!figure || !figure.slots.some((row) => row >= 0)) {
            return;
        }
        const plot = figure.plots[number];
        if (plot.kind === "table" || plot.kind === "stack") {
            return; /* the picture has all there is */
        }
        const wide = plot.kind === "bar" && caseCount(figure) * figure.series.length > 8;
        const panels = make("div", {class: "panels" + (figure.panels.length === 1 ? " single" : wide ? " broad" : "")});
        figure.panels.forEach((label, panel) => {
            const canvas = make("canvas", {"data-figure": id, "data-plot": number, "data-panel": panel, role: "img",
                "aria-label": plot.title + (label ? ", " + label : "")});
            panels.append(make("div", {class: "panel"}, canvas));
            watcher.observe(canvas);
        });
        const axes = plot.y_label + (plot.x_label ? " against " + plot.x_label : "");
        const box = make("div", {class: "live-plot", "data-figure": id, "data-plot": number},
            make("p", {class: "soft axes"}, axes), make("div", {class: "legend"}), panels);
        const files = holder.querySelector(".files");
        const picture = holder.querySelector(".picture");
        holder.classList.add("has-chart");
        holder.insertBefore(box, picture || holder.querySelector("details"));
        if (files && picture) {
            files.append(", ", make("button", {type: "button", class: "link", click: (event) => {
                const on = holder.classList.toggle("as-picture");
                event.target.textContent = on ? "as chart" : "as picture";
            }}, "as picture"));
        }
        putLegend(box);
    }

    /* ---- the numbers of a point ---- */

    const hoverBox = make("div", {id: "hover", role: "status", hidden: true});

    function nameOf(figure, plot, point) {
        const spot = point.spot;
        const parts = [figure.series[spot.series][0], figure.panels[spot.panel]];
        if (plot.kind === "time") {
            parts.push(plot.x_label + ": " + shown(point.x));
        } else if (figure.cases) {
            parts.push(figure.cases[spot.at].replace(/\n/g, " "));
        } else {
            parts.push(figure.x_label + ": " + shown(figure.x[slotAt(figure, spot.panel, spot.series, spot.at)]));
        }
        if (spot.reading) {
            parts.push("reading " + spot.reading);
        }
        return parts.filter((part) => part).join(" · ");
    }

    /* [name, value] of what a result has. */
    function factsOf(row) {
        const facts = data.columns.map((name, i) => [name, data.points[row][NUMBERS_FROM + i]])
            .filter((pair) => pair[1] !== null).map((pair) => [pair[0], shown(pair[1])]);
        if (data.points[row][3]) {
            facts.push(["limit", data.points[row][3]]);
        }
        return facts;
    }

    function factRows(facts) {
        return make("table", {}, make("tbody", {}, ...facts.map((pair) => make("tr", {}, make("td", {}, pair[0]),
            make("td", {class: "n"}, pair[1])))));
    }

    function hover(id, plot, context) {
        const item = context.tooltip.dataPoints && context.tooltip.dataPoints[0];
        if (context.tooltip.opacity === 0 || !item) {
            hoverBox.hidden = true;
            return;
        }
        const point = item.raw;
        const interval = point.yMin === undefined ? "" : " (" + shown(point.yMin) + " to " + shown(point.yMax) + ")";
        const value = [plot.y_label, shown(point.y) + interval];
        if (point.published) {
            hoverBox.replaceChildren(make("b", {}, point.published), factRows([value]));
        } else {
            hoverBox.replaceChildren(make("b", {}, nameOf(data.figures[id], plot, point)),
                factRows([value].concat(point.row >= 0 ? factsOf(point.row) : [])),
                make("p", {class: "soft"}, "a click shows its result and command"));
        }
        hoverBox.hidden = false;
        const area = context.chart.canvas.getBoundingClientRect();
        const left = area.left + context.tooltip.caretX + 14, top = area.top + context.tooltip.caretY + 14;
        const width = hoverBox.offsetWidth, height = hoverBox.offsetHeight;
        hoverBox.style.left = Math.max(4, Math.min(left, root.clientWidth - width - 4)) + "px";
        hoverBox.style.top = (top + height > window.innerHeight ? Math.max(4, top - height - 28) : top) + "px";
    }

    const pointBox = make("dialog", {id: "point", "aria-label": "A point of a figure"});

    function copyText(text, button) {
        const done = () => { button.textContent = "copied"; };
        const byHand = () => {
            const range = document.createRange();
            range.selectNodeContents(button.previousElementSibling);
            window.getSelection().removeAllRanges();
            window.getSelection().addRange(range);
            document.execCommand("copy");
            done();
        };
        if (navigator.clipboard) {
            navigator.clipboard.writeText(text).then(done, byHand);
        } else {
            byHand();
        }
    }

    function commandLine(text) {
        return make("div", {class: "command"}, make("code", {}, text),
            make("button", {type: "button", click: (event) => copyText(text, event.target)}, "copy"));
    }

    function showPoint(id, plot, point) {
        if (!point || point.row === undefined || point.row < 0) {
            return;
        }
        const row = data.points[point.row];
        const file = row[1] + "/" + row[0] + ".json";
        hoverBox.hidden = true;
        pointBox.replaceChildren(
            make("button", {type: "button", class: "close", click: () => pointBox.close()}, "close"),
            make("h3", {}, nameOf(data.figures[id], plot, point)),
            make("p", {class: "soft"}, id + ": " + plot.title),
            factRows([[plot.y_label, shown(point.y)]].concat(factsOf(point.row))),
            make("p", {}, "Result: ", make("a", {href: file}, file)),
            make("p", {}, "Run this point again:"),
            commandLine(row[4] || "dmbench run " + data.folder + "/" + file),
            make("p", {}, "Run the figure again:"),
            commandLine("dmbench figure " + id + " --scale " + data.scale + " --out " + data.folder));
        if (!pointBox.open) {
            pointBox.show();
        }
    }

    /* ---- readings ---- */

    function switchReading(id, reading, on) {
        const set = chosen.readings.get(id) || new Set();
        chosen.readings.set(id, set);
        if (on) {
            set.add(reading);
        } else {
            set.delete(reading);
        }
        all("#figure-" + CSS.escape(id) + " [data-reading]").forEach((item) => {
            item.classList.toggle("on", set.has(item.dataset.reading));
        });
    }

    function addReadings(article) {
        const id = article.dataset.figure;
        const figure = data.figures[id];
        if (!figure || figure.readings.length === 0) {
            return;
        }
        const buttons = figure.readings.map((reading) => make("button", {type: "button", "aria-pressed": "false",
            "data-switch": reading.id, title: reading.says + " (" + reading.from + ")", click: (event) => {
                const on = event.target.getAttribute("aria-pressed") !== "true";
                event.target.setAttribute("aria-pressed", on);
                switchReading(id, reading.id, on);
                redraw(id);
            }}, reading.id));
        const says = make("div", {class: "switches"}, make("span", {class: "soft"}, "Readings: "), ...buttons);
        article.querySelector(".plots").prepend(says);
    }

    /* ---- filters ---- */

    function isShown(element) {
        const verdict = element.dataset.verdict;
        const systems = (element.dataset.systems || "").split(" ");
        return (chosen.verdicts.size === 0 || !verdict || chosen.verdicts.has(verdict)) &&
            (chosen.systems.size === 0 || systems.some((name) => chosen.systems.has(name)));
    }

    function hasText(element) {
        return chosen.text === "" || element.textContent.toLowerCase().includes(chosen.text);
    }

    /* A figure is shown with its systems, and under a choice of verdicts only with a claim of one. */
    function filterFigure(figure) {
        const claims = all(".claim, .entry", figure);
        claims.forEach((claim) => { claim.hidden = !isShown(claim); });
        const visible = claims.some((claim) => !claim.hidden);
        const text = hasText(figure);
        const own = figure.dataset.figure !== undefined;
        const needsClaim = chosen.verdicts.size > 0 || !own;
        figure.hidden = !text || (own && !isShown(figure)) || (needsClaim && !visible);
        return !figure.hidden;
    }

    function applyFilters() {
        let figures = 0;
        const articles = all(".paper article.figure");
        articles.forEach((figure) => { figures += filterFigure(figure) && figure.dataset.figure ? 1 : 0; });
        all("section.paper").forEach((paper) => {
            paper.hidden = all("article.figure:not([hidden])", paper).length === 0;
        });
        all("#claims .entry").forEach((row) => { row.hidden = !isShown(row) || !hasText(row); });
        all("#contents [data-for]").forEach((link) => {
            link.parentElement.hidden = document.getElementById(link.dataset.for).hidden;
        });
        all("#contents details").forEach((item) => {
            item.parentElement.hidden = document.getElementById(item.dataset.paper).hidden;
        });
        const claims = all(".claim").filter((claim) => !claim.hidden && !claim.closest("article").hidden).length;
        document.getElementById("shown").textContent = figures + " of " + all("article[data-figure]").length +
            " figures, " + claims + " of " + all(".claim").length + " claims";
    }

    function toggleButton(text, attributes, set, value) {
        const button = make("button", Object.assign({type: "button", "aria-pressed": "false"}, attributes), text);
        button.addEventListener("click", () => {
            const on = button.getAttribute("aria-pressed") !== "true";
            button.setAttribute("aria-pressed", on);
            if (on) {
                set.add(value);
            } else {
                set.delete(value);
            }
            applyFilters();
            redraw();
        });
        return button;
    }

    function verdictButtons() {
        const counts = new Map();
        all(".claim").forEach((claim) => {
            counts.set(claim.dataset.verdict, (counts.get(claim.dataset.verdict) || 0) + 1);
        });
        return Array.from(counts.entries()).sort((a, b) => b[1] - a[1]).map(([verdict, count]) => {
            const text = verdict === "reading" ? "reproduced under a reading" : verdict.replace(/-/g, " ");
            return toggleButton(text + " " + count, {class: verdict, "data-choose-verdict": verdict}, chosen.verdicts,
                verdict);
        });
    }

    function systemButtons() {
        const names = new Set();
        all("article[data-systems]").forEach((figure) => {
            figure.dataset.systems.split(" ").forEach((name) => names.add(name));
        });
        return Array.from(names).filter((name) => name !== "").sort().map((name) => {
            const entry = data.systems[name];
            const label = entry && entry.name ? entry.name : name;
            return toggleButton(label, {"data-choose-system": name}, chosen.systems, name);
        });
    }

    function allReadings(on) {
        Object.keys(data.figures).forEach((id) => data.figures[id].readings.forEach((reading) => {
            switchReading(id, reading.id, on);
        }));
        all("[data-switch]").forEach((button) => button.setAttribute("aria-pressed", on));
        redraw();
    }

    function resetFilters() {
        chosen.verdicts.clear();
        chosen.systems.clear();
        chosen.text = "";
        all("#filters input[type=search]").forEach((input) => { input.value = ""; });
        all("#filters button[aria-pressed]").forEach((button) => button.setAttribute("aria-pressed", "false"));
        applyFilters();
        redraw();
    }

    function addFilters() {
        let waiting = 0;
        const search = make("input", {type: "search", placeholder: "words", "aria-label": "Show what has these words",
            input: (event) => {
                chosen.text = event.target.value.trim().toLowerCase();
                window.clearTimeout(waiting);
                waiting = window.setTimeout(applyFilters, 150);
            }});
        const readings = make("input", {type: "checkbox", change: (event) => allReadings(event.target.checked)});
        const box = make("details", {id: "filters"},
            make("summary", {}, "Filters: ", make("span", {id: "shown"})),
            make("div", {class: "switches"}, make("span", {class: "soft"}, "Verdict: "), ...verdictButtons()),
            make("div", {class: "switches"}, make("span", {class: "soft"}, "System: "), ...systemButtons()),
            make("div", {class: "switches"}, search, make("label", {}, readings, " all readings in the charts"),
                make("button", {type: "button", id: "reset", click: resetFilters}, "show all")));
        document.getElementById("overview").after(box);
    }

    /* ---- navigation ---- */

    function setCurrent(id) {
        all("#contents a[aria-current]").forEach((link) => link.removeAttribute("aria-current"));
        const link = document.querySelector("#contents [data-for=\"" + CSS.escape(id) + "\"]");
        if (!link) {
            return;
        }
        link.setAttribute("aria-current", "true");
        if (root.clientWidth > 900) {
            const own = link.closest("details");
            all("#contents details").forEach((item) => { item.open = item === own; });
            const nav = document.getElementById("contents");
            nav.scrollTop = link.offsetTop - nav.clientHeight / 3;
        }
    }

    function followReading() {
        const observer = new IntersectionObserver((entries) => {
            const first = entries.filter((entry) => entry.isIntersecting)[0];
            if (first) {
                setCurrent(first.target.id);
            }
        }, {rootMargin: "-10% 0px -75% 0px"});
        all("article[data-figure]").forEach((figure) => observer.observe(figure));
    }

    /* A link to what a filter hides shows it. */
    function showTarget() {
        const id = decodeURIComponent(window.location.hash.slice(1));
        const target = id && document.getElementById(id);
        if (target && target.closest("[hidden]")) {
            resetFilters();
            target.scrollIntoView();
        }
        if (target && target.tagName === "DETAILS") {
            target.open = true;
        }
    }

    window.Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
    document.body.append(hoverBox, pointBox);
    root.classList.add("live");
    addThemeSwitch();
    addFilters();
    all("article[data-figure]").forEach(addReadings);
    all(".plot").forEach(addChart);
    applyFilters();
    followReading();
    window.addEventListener("hashchange", showTarget);
    window.addEventListener("scroll", () => { hoverBox.hidden = true; }, {passive: true});
    document.addEventListener("keydown", (event) => {
        if (event.key === "Escape") {
            pointBox.close();
        }
    });
    showTarget();
}());
