# SPDX-License-Identifier: Apache-2.0
"""A report of very many items: what the page draws is bounded by its pixels, the elements that it makes by devices,
codelets and jobs, and what its script does grows as the items do. Nothing is judged by a clock."""
from page_data import check, data_of
from work import Work

ELEMENTS = 700  # of a page with two devices, five codelets and four jobs
FRAMES = 3      # of a page that opens: drawn at once, when its width is known, when its colours are
# Work for n items and what they waited for, with sorting: n log n, of 10^4 and of 10^5 items.
GROWTH = 10 * 5 / 4 * 1.2


def strokes(counts):
    return sum(counts.get(name, 0) for name in ("fillRect", "strokeRect", "fillText", "lineTo"))


def pixels(browser):
    """The most strokes of a frame: one a column of pixels in each of a device's lanes (waits, items by depth, pending,
    copies, thefts), on the path there, and at its bends. Items that end and begin in one column could be two: here
    they are not, and the clock is virtual."""
    return browser.value("view.width * lanes.tiles.reduce((sum, of) => sum + of.depths + 4 + 1 + lanes.tiles.length, 0)")


def count_page(browser, work, path):
    """Counts of a page that opens, is looked at as a whole with the critical path, and closely."""
    browser.open(path)
    opened = work.drawn()
    most = pixels(browser)
    check(1 <= opened["frames"] <= FRAMES, f"frames of a page that opens: {opened['frames']}")
    check(strokes(opened) <= opened["frames"] * most, f"strokes: {opened}, at most {most} a frame")
    check(browser.complaints == [], f"the page complains: {browser.complaints}")
    browser.value("view.showsPath = true; show(0, spanNs)")
    whole = work.drawn()
    check(whole["frames"] == 1 and strokes(whole) <= most, f"strokes with the path: {whole}, at most {most}")
    work.watch_functions()
    middle = "const from = spanNs / 2, to = from + spanNs / 1000"
    inside = browser.value(f"(() => {{ {middle}; return lanes.tiles.flatMap(of => of.rows)"
                           ".filter(row => row[1] < to && row[1] + row[2] > from).length; })()")
    browser.value("view.showsPath = false")
    return {"items": browser.value("data.tiles.length"), "inside": inside,
            "steps": browser.value("view.path.steps.length"),
            "elements": browser.value("document.querySelectorAll('*').length"),
            "select": work.calls("showSelected()"), "whole": work.calls("draw()"),
            "close": work.calls(f"{middle}; view.from = from; view.to = to; draw()"),
            "hover": work.calls("describe(view.width / 2, view.rows[0].y + 3)")}


def check_many(browser, few_path, many_path):
    with Work(browser) as work:
        few, many = (count_page(browser, work, path) for path in (few_path, many_path))
    print(f"few: {few}\nmany: {many}")
    check(few["items"] >= 10_000 and many["items"] >= 100_000 and many["items"] == len(data_of(many_path)["tiles"]),
          "10^4 and 10^5 items")
    check(many["steps"] >= 10_000, "a long path")
    for counts in (few, many):
        check(counts["elements"] <= ELEMENTS, f"elements: {counts['elements']}")
        check(counts["close"] <= 200 + 12 * counts["inside"], f"calls for what is in a view: {counts}")
        check(counts["hover"] <= 30, f"calls for the pointer: {counts}")
    for name in ("select", "whole"):
        check(many[name] <= GROWTH * few[name], f"calls of {name} grow from {few[name]} to {many[name]}")
