# SPDX-License-Identifier: Apache-2.0
#
# report_browser.py PAGE ARTEFACTS: tries what the script of the report of report_plots.sh does, in headless Chromium, and
# writes screenshots. Prints the commands that a click on a point shows.
import json
import os
import shutil
import sys

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

DESK, PHONE = (1280, 900), (360, 780)


def fail(text):
    print(f"FAILED: {text}", file=sys.stderr)
    sys.exit(1)


def check(condition, text):
    if not condition:
        fail(text)


class Browser:
    def __init__(self, page):
        options = webdriver.ChromeOptions()
        for option in ("headless=new", "no-sandbox", "disable-gpu", "hide-scrollbars", "disable-dev-shm-usage"):
            options.add_argument(f"--{option}")
        options.binary_location = shutil.which("chromium")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
        self.page = page

    def js(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    def until(self, text, what):
        try:
            WebDriverWait(self.driver, 60).until(lambda unused: self.js(text))
        except Exception as error:
            fail(f"{what}: {error}")

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def open(self, size, dark=False, script=True):
        media = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size == PHONE}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
        self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not script})
        self.driver.get("file://" + self.page)

    def screenshot(self, path):
        self.driver.save_screenshot(path)
        check(os.path.getsize(path) > 10000, f"{path}: an empty screenshot")

    def visible(self, selector):
        return self.js("return [...document.querySelectorAll(arguments[0])].filter(e => e.checkVisibility()).length", selector)

    def fits(self, width, what):
        found = self.js("return document.documentElement.scrollWidth")
        check(found <= width, f"{what}: {found} pixels wide, more than {width}")

    def quiet(self):
        errors = [entry for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
        check(not errors, f"console: {errors}")


# The chart of a panel, scrolled to; its points as [x, y] in the window, with what they show.
PANEL = """
const canvas = document.querySelectorAll("#figure-" + arguments[1] + " canvas")[arguments[0]];
canvas.scrollIntoView({block: "center"});
const chart = Chart.getChart(canvas);
if (!chart) { return null; }
const area = canvas.getBoundingClientRect();
return chart.data.datasets.map((set, i) => ({label: set.label, points: chart.getDatasetMeta(i).data.map((at, k) => {
    const raw = set.data[k];
    return {x: area.left + at.x, y: area.top + at.y, value: raw.y, low: raw.yMin, high: raw.yMax, row: raw.row};
})}));
"""


def panel(browser, number, figure="small"):
    browser.js(PANEL, number, figure)
    browser.until(f"return Chart.getChart(document.querySelectorAll('#figure-{figure} canvas')[{number}]) !== undefined",
                  "no chart near the screen")
    return browser.js(PANEL, number, figure)


def pointer(browser, point, click=False):
    actions = ActionChains(browser.driver, duration=50)
    actions.w3c_actions.pointer_action.move_to_location(round(point["x"]) - 3, round(point["y"]))
    actions.w3c_actions.pointer_action.move_to_location(round(point["x"]), round(point["y"]))
    if click:
        actions.w3c_actions.pointer_action.click()
    actions.perform()


def short(value):
    """As the script shows a number: four digits, with K from 10 000 on."""
    for unit, name in ((1e9, " G"), (1e6, " M"), (1e4, " K")):
        if abs(value) >= unit:
            return f"{float(f'{value / (1e3 if unit == 1e4 else unit):.4g}'):g}{name}"
    return f"{float(f'{value:.4g}'):g}"


def try_point(browser, folder):
    sets = panel(browser, 2)
    ours = [item for item in sets if item["label"] == "Sherman"]
    check(len(ours) == 1 and len(ours[0]["points"]) == 2, f"panel C: {sets}")
    check(any(item["label"] == "paper: Sherman" for item in sets), f"the paper's numbers are not drawn: {sets}")
    point = ours[0]["points"][1]
    check(point["low"] < point["value"] < point["high"], f"no interval of three seeds: {point}")
    pointer(browser, point)
    browser.until("return !document.getElementById('hover').hidden", "nothing under the pointer")
    text = browser.find("#hover").text
    row = browser.js("return JSON.parse(document.getElementById('data').textContent).points[arguments[0]]", point["row"])
    with open(f"{folder}/points/{row[0]}.json", encoding="utf8") as file:
        result = json.load(file)
    check("Sherman · C · clients: 4" in text, f"hover: {text}")
    check(result["config"]["clients"] == 4 and result["config"]["workload"] == "c", "the hash is that of another point")
    check(f"throughput (ops/s) {short(result['throughput_ops_per_s'])}" in text, f"hover: {text}, result: {result}")
    p99 = result["ops"]["get"]["latency_ns"]["p99"] / 1e3
    check(f"P99 (µs) {short(p99)}" in text, f"hover: {text}, P99 of the result: {p99}")
    check(result["bottleneck"]["resource"] in text, f"hover: {text}")

    pointer(browser, point, click=True)
    browser.until("return document.getElementById('point').open", "a click shows nothing")
    link = browser.find("#point a").get_attribute("href")
    check(link == f"file://{folder}/points/{row[0]}.json", f"link: {link}")
    for code in browser.driver.find_elements(By.CSS_SELECTOR, "#point .command code"):
        print(code.text)
    browser.find("#point .command button").click()
    browser.until("return document.querySelector('#point .command button').textContent === 'copied'", "cannot be copied")
    browser.find("#point .close").click()
    check(not browser.js("return document.getElementById('point').open"), "cannot be closed")


def try_bars(browser):
    """A bar that is not there does not keep others from being drawn."""
    sets = panel(browser, 0, "bars")
    check([item["label"] for item in sets] == ["Sherman", "paper: Sherman"], f"bars: {sets}")
    published = [point["value"] for point in sets[1]["points"]]
    check(published[0] is None and published[1] == 0.5, f"published bars: {published}")
    pointer(browser, sets[0]["points"][1])
    browser.until("return document.getElementById('hover').textContent.includes('Sherman · four')", "no bar under the pointer")
    for canvas in browser.driver.find_elements(By.CSS_SELECTOR, "canvas"):
        browser.js("arguments[0].scrollIntoView({block: 'center'})", canvas)
        drawn = "return Chart.getChart(arguments[0]) !== undefined"
        WebDriverWait(browser.driver, 60).until(lambda unused, one=canvas: browser.js(drawn, one))


def try_readings(browser):
    before = [item["label"] for item in panel(browser, 2)]
    browser.js("document.querySelector('[data-switch=two]').click()")
    after = [item["label"] for item in panel(browser, 2)]
    check(sorted(after) == sorted(before + ["Sherman (two)"]), f"reading on: {after}, off: {before}")
    check(browser.visible("#claim-rate .readings li.on") == 1, "the claim does not show that its reading is on")
    browser.js("document.querySelector('[data-switch=two]').click()")
    check([item["label"] for item in panel(browser, 2)] == before, "a reading cannot be switched off")
    check(browser.visible(".readings li.on") == 0, "a reading is still on")


def try_filters(browser):
    def shown():
        return [browser.visible(selector) for selector in (".claim", "article[data-figure]", "#claims .entry")]

    browser.js("document.getElementById('filters').open = true")
    check(shown() == [3, 3, 3], f"shown at the beginning: {shown()}")
    browser.find("[data-choose-verdict=not-run]").click()
    check(shown() == [1, 1, 1] and browser.visible("#claim-two") == 1, f"shown of those not run: {shown()}")
    check("1 of 3 figures, 1 of 3 claims" in browser.find("#shown").text, browser.find("#shown").text)
    check(browser.visible("#contents [data-for=figure-nothing]") == 0, "the navigation has what is not shown")
    # A link to what is not shown shows it.
    browser.js("window.location.hash = 'claim-rate'")
    browser.until("return document.getElementById('claim-rate').checkVisibility()", "a link does not show its target")
    check(shown() == [3, 3, 3], f"shown after a link: {shown()}")
    browser.find("[data-choose-system=sherman]").click()
    check(shown() == [3, 2, 3], f"shown of Sherman: {shown()}")
    browser.find("#reset").click()
    check(shown() == [3, 3, 3], f"shown after a reset: {shown()}")
    browser.find("#filters input[type=search]").send_keys("no such words")
    browser.until("return !document.getElementById('figure-small').checkVisibility()", "words filter nothing")
    browser.find("#reset").click()
    check(shown() == [3, 3, 3], f"shown after a reset: {shown()}")


def background(browser):
    return browser.js("return getComputedStyle(document.body).backgroundColor")


def try_theme(browser):
    light = background(browser)
    browser.js("document.getElementById('theme').click()")
    dark = background(browser)
    check(light == "rgb(255, 255, 255)" and dark != light, f"light {light}, dark {dark}")
    browser.js("document.getElementById('theme').click()")
    check(background(browser) == light, "cannot be switched back")
    browser.js("localStorage.clear()")
    browser.open(DESK, dark=True)
    check(background(browser) == dark, f"the system's dark is {background(browser)}")


def try_pictures(browser):
    check(browser.visible("svg[role=img]") == 0 and browser.visible("canvas") == 5, "charts and pictures at once")
    browser.js("document.querySelector('#figure-small button.link').click()")
    check(browser.visible("svg[role=img]") == 1 and browser.visible("canvas") == 1, "no picture instead of the charts")


def try_without_script(browser):
    for size in (DESK, PHONE):
        browser.open(size, script=False)
        check(browser.visible("svg[role=img]") == 2, "without script there is no picture")
        check(browser.visible("canvas, button, #filters") == 0, "without script there is something that needs it")
        check(browser.visible(".claim") == 3, "without script there are no claims")
        check(browser.js("return document.querySelectorAll('.values td.n a').length") >= 8, "without script no numbers")
        browser.fits(size[0], "without script")


def main(page, artefacts):
    browser = Browser(page)
    try:
        browser.open(DESK)
        check(browser.js("return document.documentElement.classList.contains('live')"), "the script did not run")
        browser.fits(DESK[0], "desk")
        try_point(browser, os.path.dirname(page))
        try_bars(browser)
        try_readings(browser)
        try_filters(browser)
        try_theme(browser)
        try_pictures(browser)
        for size, name in ((DESK, "desk"), (PHONE, "phone")):
            for dark in (False, True):
                browser.open(size, dark)
                browser.fits(size[0], name)
                panel(browser, 0)
                browser.screenshot(f"{artefacts}/report-{name}-{'dark' if dark else 'light'}.png")
        browser.js("document.getElementById('filters').open = true")
        browser.js("[...document.querySelectorAll('details')].forEach(item => { item.open = true; })")
        browser.fits(PHONE[0], "phone, everything open")
        browser.quiet()
        try_without_script(browser)
    finally:
        browser.driver.quit()


main(os.path.abspath(sys.argv[1]), sys.argv[2])
