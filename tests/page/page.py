# SPDX-License-Identifier: Apache-2.0
"""page.py PROGRAM CHROMIUM DRIVER NVML BENCH: reports of PROGRAM and of filch-bench, or of PROGRAM alone where BENCH is
empty, in a browser. What the page shows is compared with its data; nothing may appear on the console, and nothing be loaded; in both colour schemes."""
import json
import os
import re
import subprocess
import sys
import tempfile

from browser import Browser
from many import check_many
from page_data import check, data_of

MACHINE = """{"link": {"bandwidth": 2e9, "latency_us": 1}, "devices": [
    {"name": "fast", "speed": 1e6, "score": 1, "overhead_us": 1, "memory": 1048576},
    {"name": "slow", "speed": 2e5, "score": 1, "overhead_us": 1, "memory": 1048576}]}"""
UNITS = {"ns": 1, "\u00b5s": 1e3, "ms": 1e6, "s": 1e9}
SIZES = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}


def near(shown, value, what, digits=3.3):
    check(abs(shown - value) <= abs(value) * 10 ** -digits + 1e-9, f"{what}: {shown}, not {value}")


def count(text):
    return int(re.sub(r"\s", "", text))


def quantity(text, units):
    number, unit = text.split()[:2]
    return float(number) * units[unit]


def percent(text):
    return float(text.split()[0]) / 100


def cells(browser, table):
    """The texts of a table's body."""
    return browser.value(f"[...document.querySelectorAll('#{table} tbody tr')].map("
                         "row => [...row.cells].map(cell => cell.textContent))")


def titles(browser, table):
    return browser.value(f"[...document.querySelectorAll('#{table} th')].map(cell => cell.textContent)")


def check_figures(browser, data, of, jobs):
    shown = dict(browser.value("[...document.querySelectorAll('#figures .figure')].map("
                               "of => [of.dataset.figure, of.querySelector('b').textContent])"))
    stat = {name: sum(row[k] for row in of["stats"]) for k, name in enumerate(data["stat_fields"])}
    check(count(shown["jobs"]) == jobs, "jobs")
    check(count(shown["items"]) == stat["tiles"], "items")
    check(count(shown["stolen"]) == stat["stolen_in"], "items stolen")
    check(count(shown["devices"]) == len(data["devices"]), "devices")
    near(quantity(shown["bytes"], SIZES), stat["bytes_in"] + stat["bytes_out"] + stat["bytes_peer"], "bytes")
    if of["bound"] > 0:
        check(abs(percent(shown["efficiency"]) - of["efficiency"]) < 1e-4, "efficiency")
    failed = of["failed"] + of["skipped"]
    check(count(shown.get("failed", "0")) == failed, "failed")


def check_losses(browser, data, of):
    rows = cells(browser, "losses")
    wall = data["loss_fields"].index("wall")
    expected = list(zip([device["name"] for device in data["devices"]], of["losses"]))
    if len(expected) > 1:
        expected.append(("all", [sum(column) for column in zip(*of["losses"])]))
    check(len(rows) == len(expected), "rows of losses")
    for row, (name, losses) in zip(rows, expected):
        check(row[0] == name, f"losses of {name}")
        for k, part in enumerate(data["parts"]):
            share = losses[data["loss_fields"].index(part["name"])] / losses[wall] if losses[wall] else 0
            check(abs(percent(row[k + 1]) - share) < 1e-4, f"{part['name']} of {name}: {row[k + 1]}, {share}")
        near(quantity(row[-1], UNITS), losses[wall], f"time of {name}")


def items_of(row):
    """How many work items a row stands for."""
    return max(1, row[7])


def check_codelets(browser, data, wanted):
    tiles = [row for row in data["tiles"] if wanted(row[4])]
    rows = {row[0]: row for row in cells(browser, "codelets")}
    names = {data["names"][row[3]] for row in tiles}
    check(set(rows) == names, f"codelets {sorted(rows)}, not {sorted(names)}")
    for name in names:
        own = [row for row in tiles if data["names"][row[3]] == name]
        items, total = sum(map(items_of, own)), sum(row[2] for row in own)
        times = [row[2] / items_of(row) for row in own]
        shown = rows[name]
        check(count(shown[1]) == items, f"items of {name}")
        for k, value in ((2, total), (4, total / items), (5, min(times)), (6, max(times))):
            # A time below a microsecond has three digits.
            near(quantity(shown[k], UNITS), value, f"column {k} of {name}", 2.3)


def check_matrix(browser, table, names, values, read):
    """values: {(row, column): number}; the page leaves out rows and columns without any."""
    rows, heads = cells(browser, table), titles(browser, table)
    shown = {}
    for row in rows:
        for head, text in zip(heads[1:], row[1:]):
            if text != "\u2013":
                shown[row[0], head.split(" ", 1)[1]] = read(text)
    expected = {(names[a], names[b]): value for (a, b), value in values.items() if value > 0}
    check(set(shown) == set(expected), f"{table}: {shown}, not {expected}")
    for key, value in expected.items():
        near(shown[key], value, f"{table} {key}")


def check_thefts(browser, data):
    taken = {}
    for thief, _, _, victim, entries in data["thefts"]:
        taken[thief, victim] = taken.get((thief, victim), 0) + entries
    check_matrix(browser, "thefts", [device["name"] for device in data["devices"]], taken, count)


def check_copies(browser, data):
    moved, host = {}, len(data["devices"])
    for device, _, _, kind, amount, other in data["copies"]:
        far = host if other < 0 else other
        key = (device, far) if kind == 1 else (far, device)
        moved[key] = moved.get(key, 0) + amount
    names = [device["name"] for device in data["devices"]] + ["host memory"]
    check_matrix(browser, "copies", names, moved, lambda text: quantity(text, SIZES))


def check_path(browser, data, wanted):
    """The steps follow each other, each behind a predecessor or on its device, and end at the end."""
    steps = browser.value("view.path.steps.map(step => [step.row, step.gap, step.via])")
    graphs = {graph["graph"]: graph for graph in data["graphs"]}
    tiles = [row for row in data["tiles"] if wanted(row[4])]
    check(bool(steps) == bool(tiles), "a path")
    if not steps:
        return
    last = steps[-1][0]
    check(last[1] + last[2] == max(row[1] + row[2] for row in tiles), "the path ends with the last item")
    check(steps[0][2] == "start", "the first step waits for the start")
    edges = waits = 0
    for (before, _, _), (row, gap, via) in zip(steps, steps[1:]):
        check(gap == row[1] - before[1] - before[2] and gap >= 0, f"gap before {row}")
        if via == "device":
            check(row[0] == before[0], f"{row} waited for its device")
            continue
        waits += 1
        graph = graphs[row[6]]
        begin, end = graph["begin"][before[5]], graph["begin"][before[5] + 1]
        check(before[4] == row[4], "both are of the same job")
        if row[5] in graph["successors"][begin:end]:
            edges += 1
    # Others wait through a task of filch's own, which has no item.
    check(edges > 0 or waits == 0, "some steps follow the graph")
    # The schedule is known where the clock is virtual.
    check(waits > 0 or not data["virtual"] or not wanted(data["jobs"][0]["job"]), "dependencies count")
    shown = sum(count(row[1]) for row in cells(browser, "path"))
    check(shown == len(steps), "items on the path")


def luminance(colour):
    parts = [int(x) for x in re.findall(r"\d+", colour)[:3]]
    return sum(weight * part / 255 for weight, part in zip((0.2126, 0.7152, 0.0722), parts))


def pixel(browser, x, y):
    return browser.value(f"""(() => {{
        const copy = new OffscreenCanvas(1, 1).getContext("2d", {{willReadFrequently: true}});
        const ratio = devicePixelRatio || 1;
        copy.drawImage(canvas, Math.floor({x} * ratio), Math.floor({y} * ratio), 1, 1, 0, 0, 1, 1);
        const data = copy.getImageData(0, 0, 1, 1).data;
        return `rgb(${{data[0]}}, ${{data[1]}}, ${{data[2]}})`;
    }})()""")


def check_stretch(browser, data):
    """A row that stands for several items: the pointer tells how many, which, and the time of each."""
    row = max(data["tiles"], key=items_of)
    if items_of(row) == 1:
        return
    told = browser.value(f"describeItem({json.dumps(row)})")
    check(f"{items_of(row)} items" in told["title"], f"the title tells {items_of(row)} items: {told}")
    rows = dict(told["rows"])
    check(count(rows["tasks"].split(",")[0]) == row[5], f"the first task is {row[5]}: {told}")
    near(quantity(rows["time of each"], UNITS), row[2] / items_of(row), "time of each", 2.3)
    parts = browser.value(f"itemsOf({json.dumps(row)})")
    check([part[5] for part in parts] == [row[5]] + row[9], "a part of the time for each task")
    check(sum(part[2] for part in parts) == row[2] and parts[0][1] == row[1], "the parts add up")
    check(all(a[1] + a[2] == b[1] for a, b in zip(parts, parts[1:])), "one part follows the other")


def check_timeline(browser, data):
    """The longest item: drawn in its codelet's colour, and told when the pointer is on it."""
    item = max(data["tiles"], key=lambda row: row[2])
    index = data["tiles"].index(item)
    browser.value("document.getElementById('timeline').scrollIntoView({block: 'center'})")
    browser.value(f"show({item[1]} - {item[2]}, {item[1]} + 2 * {item[2]})")
    browser.settle()
    place = browser.value(f"""(() => {{
        const lane = lanes.tiles[{item[0]}], row = view.rows[{item[0]}];
        const at = lane.rows.findIndex(of => of[1] === {item[1]} && of[2] === {item[2]});
        const box = canvas.getBoundingClientRect(), middle = xOf({item[1]} + {item[2]} * 0.9);
        return {{x: middle, y: row.y + (lane.depth[at] + 0.5) * row.item, left: box.left, top: box.top,
                 colour: view.colours[colourNames.get({item[3]})]}};
    }})()""")
    for scheme in ("dark", "light"):
        browser.scheme(scheme)
        browser.settle()
        colour = browser.value(f"view.colours[colourNames.get({item[3]})]")
        # A line of the axis, one pixel wide, may cross the item.
        drawn = [pixel(browser, place["x"] + beside, place["y"] + 4) for beside in (0, 2)]
        check(colour in drawn, f"item {index} is drawn in {scheme}: {drawn}, not {colour}")
    browser.mouse("mouseMoved", place["left"] + place["x"], place["top"] + place["y"])
    check(not browser.value("document.getElementById('hover').hidden"), "the pointer is on an item")
    text = browser.value("document.getElementById('hover').textContent")
    name = data["names"][item[8] if len(item) > 8 and item[8] is not None else item[3]]
    check(name in text and data["devices"][item[0]]["name"] in text, f"hover tells {name}: {text}")
    check_stretch(browser, data)
    before = browser.value("view.to - view.from")
    browser.mouse("mouseWheel", place["left"] + place["x"], place["top"] + place["y"], deltaX=0, deltaY=-100)
    browser.settle()
    check(browser.value("view.to - view.from") < before, "the wheel zooms in")
    check(browser.value(f"Math.abs(xOf({item[1]} + {item[2]} * 0.9) - {place['x']})") < 1, "about the pointer")
    from_before = browser.value("view.from")
    browser.mouse("mousePressed", place["left"] + place["x"], place["top"] + place["y"], button="left", clickCount=1)
    browser.mouse("mouseMoved", place["left"] + place["x"] + 50, place["top"] + place["y"], button="left", buttons=1)
    browser.mouse("mouseReleased", place["left"] + place["x"] + 50, place["top"] + place["y"], button="left",
                  clickCount=1)
    browser.settle()
    check(browser.value("view.from") < from_before, "dragging moves the view")
    browser.value("document.getElementById('show-path').click()")
    browser.value("document.getElementById('zoom-fit').click()")
    browser.settle()
    check(browser.value("view.from === 0 && view.to === spanNs"), "Fit shows all")


def check_power(browser, data):
    """Power and clocks in the table of devices and on the timeline."""
    gpus = data.get("power", {}).get("gpus", [])
    heads = titles(browser, "devices")
    check(("power" in heads) == bool(gpus), "a column of power where a GPU was measured")
    for gpu in gpus:
        for d in gpu["devices"]:
            row = dict(zip(heads, next(row for row in cells(browser, "devices")
                                       if row[0] == data["devices"][d]["name"])))
            for head, name, unit in (("power", "watts", "W"), ("SM clock", "megahertz", "MHz")):
                numbers = [float(x) for x in re.findall(r"[\d.]+", row[head])]
                check(unit in row[head] and len(numbers) == 3, f"{head}: {row[head]}")
                for shown, key in zip(numbers, ("mean", "least", "most")):
                    near(shown, gpu[name][key], f"{head}, {key}", 2.8)
            check(browser.value(f"view.rows[{d}].power > 0"), "a line of power")
            told = dict(browser.value(f"describePower({d}, {gpu['rows'][-1][0]})")["rows"])
            near(float(told["power"].split()[0]), gpu["rows"][-1][1] / 1000, "power under the pointer")
    if any(gpu["held_down"]["by_power"] > 0 for gpu in gpus):
        text = browser.value("document.getElementById('power-text').textContent")
        check("The limit of the power held the clock of" in text, f"text of the power: {text}")


def check_schemes(browser):
    ground = "getComputedStyle(document.body).backgroundColor"
    text = "getComputedStyle(document.body).color"
    for scheme in ("light", "dark"):
        browser.scheme(scheme)
        browser.settle()
        for switch, expected in (("auto", scheme), ("dark", "dark"), ("light", "light"), ("auto", scheme)):
            browser.value(f"document.querySelector('[data-scheme={switch}]').click()")
            browser.settle()
            behind, before = luminance(browser.value(ground)), luminance(browser.value(text))
            check((behind < 0.2 and before > 0.7) if expected == "dark" else (behind > 0.8 and before < 0.3),
                  f"system {scheme}, switch {switch}: {behind}, {before}")
            canvas = luminance(pixel(browser, 2, 2))
            check((canvas < 0.2) == (expected == "dark"), f"the timeline follows: {switch}")


def check_page(browser, path, title):
    data = data_of(path)
    browser.scheme("light")
    browser.open(path)
    browser.settle()
    check(browser.requests == [f"file://{path}"], f"the page loads {browser.requests}")
    took = browser.value("performance.getEntriesByType('navigation')[0].loadEventEnd")
    print(f"{title}: {len(data['tiles'])} items, {os.path.getsize(path)} bytes, loaded in {took:.0f} ms")
    everything = lambda job: True
    check_figures(browser, data, data["total"], data["total"]["jobs"])
    check_losses(browser, data, data["total"])
    check_codelets(browser, data, everything)
    check_thefts(browser, data)
    check_copies(browser, data)
    check_path(browser, data, everything)
    check(len(cells(browser, "jobs")) == len(data["jobs"]), "jobs")
    advice = browser.value("[...document.querySelectorAll('#advice li')].map(of => of.textContent)")
    check(len(advice) == len(data["total"]["advice"]), "advice")
    for shown, given in zip(advice, data["total"]["advice"]):
        check(given["text"] in shown, f"advice: {shown}")
    check(browser.value("document.getElementById('missing').hidden") == (data["events_overwritten"] == 0),
          "missing events are told")
    check_power(browser, data)
    check_timeline(browser, data)
    for job in data["jobs"]:
        browser.value(f"selectJob({job['job']})")
        browser.settle()
        check_figures(browser, data, job, 1)
        check_losses(browser, data, job)
        check_codelets(browser, data, lambda number: number == job["job"])
        check_path(browser, data, lambda number: number == job["job"])
    browser.value("selectJob(null)")
    check_schemes(browser)
    check(browser.complaints == [], f"the page complains: {browser.complaints}")
    return data


def check_bench(browser, data):
    """The page of a run of filch-bench is the same page, with the run's result on top."""
    result = data["bench"]
    check(not browser.value("document.getElementById('bench-section').hidden"), "the section of the bench")
    check(browser.value("document.title") == f"filch: {result['workload']}", "title")
    shown = browser.value("[...document.querySelectorAll('#bench-figures .figure')].map(of => of.textContent)")
    number, unit = re.match(r"([\d.]+) (\S+)time, median", shown[0]).groups()
    near(float(number) * UNITS[unit] / 1e9, result["median_s"], "median")
    check("yeschecked" in shown, f"the result was checked: {shown}")
    bars = browser.value("[...document.querySelectorAll('#bench-repeats .bar')].map(of => of.lastChild.textContent)")
    check(len(bars) == len(result["seconds"]), "a bar a repeat")
    for text, seconds in zip(bars, result["seconds"]):
        near(quantity(text, UNITS) / 1e9, seconds, "a repeat")
    rows, heads = cells(browser, "bench-devices"), titles(browser, "bench-devices")
    check([row[0] for row in rows] == [of["name"] for of in result["devices"]], "devices of the bench")
    for row, of in zip(rows, result["devices"]):
        check(count(row[heads.index("tiles")]) == of["tiles"], f"tiles of {of['name']}")


def report_of(command, path, settings):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, **settings})
    return path


def main():
    program, chromium, driver, nvml, bench = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="filch-page-") as folder:
        machine = os.path.join(folder, "machine.json")
        with open(machine, "w", encoding="utf-8") as file:
            file.write(MACHINE)
        runs = [("simulated", f"sim:{machine}", 3000, {}),
                ("host", "host:2@any", 50000, {"FILCH_TRACE_EVENTS": "200000"}),
                # Its tasks are the host's: the GPUs are idle, and measured.
                ("GPUs", "cuda,host:1@any", 30000,
                 {"LD_LIBRARY_PATH": os.path.dirname(driver), "FILCH_NVML": nvml,
                  "FAKECUDA_CONFIG": '{"devices": [{"count": 2}]}'}),
                ("too many events", "host:1@any", 2000, {"FILCH_TRACE_EVENTS": "500"})]
        browser = Browser(chromium)
        try:
            for title, devices, tasks, settings in runs:
                path = os.path.join(folder, "report.html")
                report_of([program, devices, str(tasks)], path, {**settings, "FILCH_REPORT": path})
                data = check_page(browser, path, title)
                check(browser.value("document.getElementById('bench-section').hidden"), "no section of the bench")
                check([job["label"] for job in data["jobs"][:2]] == ["first", "second"], "labels of jobs")
                check((data["events_overwritten"] > 0) == (title == "too many events"), "missing events")
                check(bool(data.get("power")) == (title == "GPUs"), "power of GPUs")
                if title == "simulated":
                    check(data["thefts"] and data["copies"], "thefts and copies")
                if title == "host":
                    tasks_of = [task for row in data["tiles"] if row[7] > 0 and row[4] == data["jobs"][0]["job"]
                                for task in [row[5]] + (row[9] if row[7] > 1 else [])]
                    check(sorted(tasks_of) == list(range(tasks)), "every task is there, once")
                    check(len(data["tiles"]) < tasks, "short tasks share rows")
            if bench:
                report_of([bench, "run", "cholesky", "--n", "300", "--tile", "50", "--devices", "host:2@any",
                           "--repeat", "3", "--check", "--report", path], path, {})
                check_bench(browser, check_page(browser, path, "bench"))
            paths = [os.path.join(folder, f"{tasks}.html") for tasks in (5_000, 50_000)]
            for path, tasks in zip(paths, (5_000, 50_000)):  # two jobs each
                report_of([program, f"sim:{machine}", str(tasks)], path,
                          {"FILCH_REPORT": path, "FILCH_TRACE_EVENTS": "400000"})
            check_many(browser, *paths)
        finally:
            browser.close()


main()
