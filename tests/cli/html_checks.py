"""Checks of the HTML report in a browser.

usage: html_checks.py FOLDER   with nsys.html and gaps.csv, and pages of made-up values
"""
import csv
import os
import sys

from browser import Browser

folder = os.path.abspath(sys.argv[1])
failures = []


def check(condition, *words):
    if not condition:
        failures.append(" ".join(str(word) for word in words))
        print("FAILED:", *words, file=sys.stderr)


def path(name):
    return os.path.join(folder, name)


def canvas_at(browser):
    return browser.run("const box = document.getElementById('canvas').getBoundingClientRect();"
                       "return [box.left, box.top];")


def middle(browser, box):
    left, top = canvas_at(browser)
    return left + box[0] + box[2] / 2, top + box[1] + box[3] / 2


def show_top(browser):
    browser.run("document.getElementById('timeline').scrollIntoView();")
    browser.settle()


def strip_width(browser, box):
    """Pixels in the colour of the gap's class around its middle, at the lower edge of its band."""
    return browser.run("""
        const [left, top, width, height, , name] = arguments[0];
        const canvas = document.getElementById("canvas");
        const probe = document.createElement("canvas").getContext("2d");
        probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--" + name);
        probe.fillRect(0, 0, 1, 1);
        const wanted = probe.getImageData(0, 0, 1, 1).data;
        const y = Math.floor(top + height - 1), from = Math.floor(left) - 8;
        const data = canvas.getContext("2d").getImageData(from, y, Math.ceil(width) + 16, 1).data;
        const same = (x) => [0, 1, 2].every((k) => Math.abs(data[4 * x + k] - wanted[k]) < 48);
        const centre = Math.round(left + width / 2) - from;
        let first = centre, last = centre;
        if (!same(centre)) return 0;
        while (same(first - 1)) first--;
        while (same(last + 1)) last++;
        return last - first + 1;""", box)


# --- the parts ---

def check_gaps(browser):
    """Each large gap of the CSV is as wide on the canvas as its time says."""
    with open(path("gaps.csv"), newline="") as file:
        rows = list(csv.DictReader(file))
    files = list(dict.fromkeys(row["file"] for row in rows))
    n_drawn = 0
    for side, name in enumerate(files):
        times = [int(row["ns"]) for row in rows if row["file"] == name]
        boxes = browser.run("return gexec.gaps(arguments[0], 0)", side)
        check([box[4] for box in boxes] == times, name, "gaps of the page are not those of the CSV")
        order = sorted(range(len(times)), key=lambda i: -times[i])
        for i in order[:4] + order[len(order) // 4:len(order) // 4 + 3] + order[len(order) // 2:len(order) // 2 + 3]:
            start = browser.run("const device = gexec.data.sides[arguments[0]].devices[0];"
                                "return device.gap.start[arguments[1]];", side, i)
            browser.run("gexec.show(arguments[0], arguments[1])", start - times[i], start + 3 * times[i])
            left, right = browser.run("return gexec.plot()")
            first, last = browser.run("return gexec.window()")
            box = browser.run("return gexec.gaps(arguments[0], 0)[arguments[1]]", side, i)
            wanted = times[i] / (last - first) * (right - left)
            check(abs(box[2] - wanted) < 0.01, "gap", i, "of", times[i], "ns:", box[2], "not", wanted)
            # Gaps that only a hair of work parts look like one; those of steps are pale.
            parted = browser.run("""
                const boxes = gexec.gaps(arguments[0], 0), i = arguments[1];
                const gap = gexec.data.sides[arguments[0]].devices[0].gap;
                return !gap.between_steps[i] &&
                    (i === 0 || boxes[i][0] - boxes[i - 1][0] - boxes[i - 1][2] > 2) &&
                    (i + 1 === boxes.length || boxes[i + 1][0] - boxes[i][0] - boxes[i][2] > 2);""",
                                 side, i)
            if parted:
                drawn = strip_width(browser, box)
                n_drawn += 1
                check(abs(drawn - wanted) <= 1.01, "gap of", times[i], "ns is drawn", drawn,
                      "pixels wide, not", wanted)
    check(n_drawn >= 4, "only", n_drawn, "gaps could be measured")
    browser.run("gexec.show(...gexec.home())")


def check_keys(browser):
    browser.run("document.getElementById('canvas').focus({ preventScroll: true });")
    browser.keys("Home")
    home = browser.run("return gexec.window()")
    check(home == browser.run("return gexec.home()"), "Home does not show all")
    browser.keys("+")
    zoomed = browser.run("return gexec.window()")
    check(abs((zoomed[1] - zoomed[0]) / (home[1] - home[0]) - 0.5) < 1e-6, "+ does not halve", home, zoomed)
    browser.keys("ArrowRight")
    moved = browser.run("return gexec.window()")
    check(moved[0] > zoomed[0] and abs((moved[1] - moved[0]) - (zoomed[1] - zoomed[0])) < 1,
          "ArrowRight does not move", zoomed, moved)
    browser.keys("ArrowLeft", "ArrowLeft")
    check(browser.run("return gexec.window()")[0] < moved[0], "ArrowLeft does not move")
    browser.keys("-")
    browser.keys("Home")
    check(browser.run("return gexec.window()") == home, "Home does not go back")


def check_mouse(browser):
    left, right = browser.run("return gexec.plot()")
    x0, y0 = canvas_at(browser)
    x, y = x0 + left + (right - left) * 0.25, y0 + 60
    before = browser.run("return gexec.window()")
    browser.wheel(x, y, -240)
    after = browser.run("return gexec.window()")
    check(after[1] - after[0] < before[1] - before[0], "the wheel does not zoom", before, after)
    for window in (before, after):
        window.append(window[0] + (round(x) - x0 - left) / (right - left) * (window[1] - window[0]))
    check(abs(after[2] - before[2]) < (after[1] - after[0]) / 500, "the wheel moves what is under it")
    browser.mouse(("move", x + 200, y), ("down",), ("move", x + 150, y), ("move", x + 100, y), ("up",))
    dragged = browser.run("return gexec.window()")
    wanted = (after[1] - after[0]) * 100 / (right - left)
    check(abs(dragged[0] - after[0] - wanted) < wanted / 50, "a drag does not move by its length", after, dragged)
    check(browser.run("return gexec.selected()") == -1, "a drag picks an op")
    browser.click("#zoom-fit")
    check(browser.run("return gexec.window()") == before[:2], "the button does not show all")


def check_picking(browser):
    # A bar that is wide enough to be hit.
    show_top(browser)
    bars = browser.run("return gexec.bars(0, 0, 0)")
    i = max(range(len(bars)), key=lambda k: bars[k][2])
    browser.run("const row = gexec.data.sides[0].devices[0].rows[0], i = arguments[0];"
                "gexec.show(row.start[i] - 2 * row.ns[i], row.start[i] + 3 * row.ns[i]);", i)
    bar = browser.run("return gexec.bars(0, 0, 0)[arguments[0]]", i)
    browser.mouse(("move", *middle(browser, bar)), ("down",), ("up",))
    op = browser.run("return gexec.selected()")
    check(op == bar[4] and op >= 0, "a click does not pick the op:", op, bar[4])
    check(browser.run("return [...document.querySelectorAll('tr.picked')].map((row) => Number(row.dataset.op))") == [op],
          "the op's row is not picked")
    colour = browser.run("""
        const at = document.getElementById("canvas").getContext("2d").getImageData(arguments[0], arguments[1], 1, 1).data;
        const mark = getComputedStyle(document.documentElement).getPropertyValue("--mark").trim();
        return ["#" + [...at].slice(0, 3).map((v) => v.toString(16).padStart(2, "0")).join(""), mark];""",
                         round(bar[0] + bar[2] / 2), round(bar[1] + 2))
    check(colour[0] == colour[1], "the op is not marked on the timeline", colour)
    others = browser.run("return gexec.bars(1, 0, 0).some((bar) => bar[4] === arguments[0])", op)
    check(others, "the op is not on the other side")
    browser.run("document.getElementById('canvas').focus({ preventScroll: true });")
    browser.keys("Escape")
    check(browser.run("return gexec.selected()") == -1, "Escape does not let go")
    browser.click("#op-table tbody tr:nth-child(3) .pick")
    check(browser.run("return gexec.selected() === Number(document.querySelector('tr.picked').dataset.op)"),
          "a click in the table does not pick")
    browser.click("tr.picked .pick")
    check(browser.run("return gexec.selected()") == -1, "a second click does not let go")
    # What a gap is, is told.
    show_top(browser)
    browser.run("const device = gexec.data.sides[0].devices[0], i = device.largest[0];"
                "gexec.show(device.gap.start[i] - device.gap.ns[i], device.gap.start[i] + 2 * device.gap.ns[i]);")
    largest = browser.run("return gexec.gaps(0, 0)[gexec.data.sides[0].devices[0].largest[0]]")
    browser.mouse(("move", *middle(browser, largest)))
    tip = browser.run("const tip = document.getElementById('tip'); return tip.hidden ? '' : tip.textContent;")
    check(largest[5] + " gap" in tip, "no tip on a gap:", tip)
    browser.run("gexec.show(...gexec.home())")


def column(browser, index):
    return browser.run("return [...document.querySelectorAll('#op-table tbody tr.op')].map((row) => row.cells[arguments[0]].textContent)",
                       index)


def check_sorting(browser):
    def sorted_as():
        return browser.run("return [...document.querySelectorAll('#op-table thead tr:last-child th')].map((th) => th.getAttribute('aria-sort'))")

    names = column(browser, 0)
    check(sorted_as().count("descending") == 1, "no column is sorted at first", sorted_as())
    browser.click("#op-table thead tr:last-child th:first-child button")
    check(sorted_as()[0] == "ascending", "a click does not sort", sorted_as())
    ordered = column(browser, 0)
    check(ordered != names and sorted(ordered) == sorted(names), "sorting loses or keeps rows as they were")
    browser.keys("Enter")
    check(sorted_as()[0] == "descending", "Enter does not turn the order", sorted_as())
    check(column(browser, 0) == ordered[::-1], "the other order is not the reverse")


def check_width(browser, name):
    for width in (1280, 390):
        browser.size(width, 900)
        seen = browser.run("return [document.documentElement.scrollWidth, innerWidth]")
        check(seen[0] <= width and seen[1] == width, name, "scrolls sideways at", width, seen)
        wide = browser.run("""
            return [...document.querySelectorAll("main *, header *")].filter((one) =>
                one.getBoundingClientRect().right > innerWidth + 1 && !one.closest(".scroll"))
                .map((one) => one.tagName + "." + one.className).slice(0, 5);""")
        check(not wide, name, "at", width, "these stick out:", wide)
    browser.size(1280, 900)


def luminance(colour):
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    parts = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(a, b):
    light, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def check_themes(browser, name):
    papers = []
    for scheme in ("light", "dark"):
        browser.prefer(scheme)
        colours = browser.run("const style = getComputedStyle(document.documentElement);"
                              "return Object.fromEntries(['paper', 'sheet', 'ink', 'soft', 'mark', 'host', 'launch', 'device']"
                              ".map((one) => [one, style.getPropertyValue('--' + one).trim()]));")
        papers.append(colours["paper"])
        for text, least in (("ink", 7), ("soft", 4.5), ("mark", 4.5), ("host", 3), ("launch", 3), ("device", 3)):
            for ground in ("paper", "sheet"):
                found = contrast(colours[text], colours[ground])
                check(found >= least, scheme, text, "on", ground, "has a contrast of", round(found, 2))
    check(luminance(papers[0]) > 0.8 and luminance(papers[1]) < 0.05, name, "is not light, then dark:", papers)
    browser.prefer("light")
    browser.click("#theme")
    check(browser.run("return document.documentElement.dataset.theme") == "dark", "the button changes nothing")
    browser.click("#theme")
    browser.run("localStorage.clear();")


def check_structure(browser, name, has_profile):
    headings = browser.run("return [...document.querySelectorAll('h1, h2')].map((one) => one.textContent)")
    check(all(headings), name, "has an empty heading", headings)
    check(("Roofline" in headings) == has_profile, name, "shows a roofline that it should not, or lacks one")
    ids = browser.run("const ids = [...document.querySelectorAll('[id]')].map((one) => one.id);"
                      "return ids.filter((id, i) => ids.indexOf(id) !== i);")
    check(not ids, name, "has ids twice:", ids)
    unnamed = browser.run("return [...document.querySelectorAll('button, canvas[tabindex], [role=region], svg')].filter((one) =>"
                          "!one.textContent.trim() && !one.getAttribute('aria-label') && !one.getAttribute('aria-labelledby')).map((one) => one.outerHTML);")
    check(not unnamed, name, "has things without a name:", unnamed)
    texts = browser.run("return document.body.innerText")
    for word in ("undefined", "NaN", "[object", "Infinity"):
        check(word not in texts, name, "says", word)


def check_print(browser, name):
    browser.run("window.dispatchEvent(new Event('beforeprint'))")
    browser.chrome("Emulation.setEmulatedMedia", media="print")
    browser.settle()
    check(browser.run("return getComputedStyle(document.getElementById('theme')).display") == "none",
          name, "prints its buttons")
    check(browser.run("return document.documentElement.dataset.theme") == "light", name, "prints dark")
    browser.run("window.dispatchEvent(new Event('afterprint'))")
    browser.chrome("Emulation.setEmulatedMedia", media="")
    browser.settle()


def shoot(browser, name):
    to = os.environ.get("GX_SCREENSHOTS")
    if not to:
        return
    for scheme in ("light", "dark"):
        for width, scale in ((1280, 1), (390, 2)):
            browser.size(width, 900, scale)
            browser.prefer(scheme)
            browser.shoot(os.path.join(to, "%s_%s_%d.png" % (name[:-5], scheme, width)))
    browser.size(1280, 900)
    browser.prefer("light")


def check_page(browser, name, has_profile):
    browser.prefer("light")
    browser.open(path(name))
    browser.settle()
    check_structure(browser, name, has_profile)
    check_width(browser, name)
    check_themes(browser, name)
    check_print(browser, name)
    shoot(browser, name)
    errors = browser.errors()
    check(not errors, name, "console:", errors)


def main():
    pages = {"nsys.html": False, "profile.html": True, "lacking.html": True, "empty.html": False,
             "names.html": False, "many.html": False}
    with Browser() as browser:
        browser.size(1280, 900)
        for name, has_profile in pages.items():
            if os.path.exists(path(name)):
                check_page(browser, name, has_profile)
        for name in ("nsys.html", "profile.html"):
            if not os.path.exists(path(name)):
                continue
            browser.open(path(name))
            show_top(browser)
            if name == "nsys.html":
                check_gaps(browser)
            check_keys(browser)
            check_mouse(browser)
            check_picking(browser)
            check_sorting(browser)
            # That the checks read pixels is none of the page's doing.
            errors = [words for words in browser.errors() if "willReadFrequently" not in words]
            check(not errors, name, "console:", errors)
    print("%d expectations were not met" % len(failures) if failures else "all as expected")
    return 1 if failures else 0


sys.exit(main())
