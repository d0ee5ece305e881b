// The timeline: one canvas, drawn anew for each view. Items narrower than a pixel are summed up.

const LABELS = 132, AXIS = 24, JOBS = 20, COPIES = 7, POWER = 14;

const canvas = document.getElementById("canvas");
const pen = canvas.getContext("2d");
const view = {from: 0, to: spanNs, path: null, showsPath: false, colours: {}, drawn: false};

// Heights: each device has a row as high as its overlapping items ask for, and a strip of copies.
function layOut() {
    const unit = data.devices.length <= 16 ? 26 : data.devices.length <= 64 ? 16 : 9;
    let y = AXIS + JOBS + 4;
    view.rows = data.devices.map((device, d) => {
        const depths = lanes.tiles[d].depths, hasCopies = lanes.copies[d].rows.length > 0;
        const height = depths === 1 ? unit : Math.max(7, Math.round(unit / depths * 1.4)) * depths;
        const row = {y, height, item: height / depths, copies: hasCopies ? COPIES : 0,
                     power: measured(d, "watts") && samplesOf(d).length > 0 ? POWER : 0};
        y += height + row.copies + row.power + 5;
        return row;
    });
    view.height = y + 2;
}

// Canvases know no custom properties: a hidden element resolves them for the scheme in force.
function readColours() {
    const probe = element("span", {hidden: ""});
    document.body.append(probe);
    const names = ["--panel", "--text", "--quiet", "--line", "--row", "--accent", "--theft", "--path", "--data",
                   "--starved", "--c-rest"];
    for (let k = 0; k < COLOURS; k++)
        names.push(`--c${k}`);
    for (const name of names) {
        probe.style.color = `var(${name})`;
        view.colours[name] = getComputedStyle(probe).color;
    }
    probe.remove();
}

function xOf(t) {
    return LABELS + (t - view.from) / (view.to - view.from) * (view.width - LABELS);
}

function timeAt(x) {
    return view.from + (x - LABELS) / (view.width - LABELS) * (view.to - view.from);
}

// Position of the first row of a lane that may reach into the view.
function firstIn(lane, from) {
    let low = 0, high = lane.start.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (lane.start[middle] < from - lane.longest)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Draws the rows of a lane as boxes. box(i): {y, height, colour}. Boxes within one pixel become one,
// as opaque as the pixel is covered, in the colour of the last.
function drawLane(lane, box) {
    const columns = new Map();
    for (let i = firstIn(lane, view.from); i < lane.rows.length && lane.start[i] < view.to; i++) {
        if (lane.end[i] < view.from)
            continue;
        const left = xOf(lane.start[i]), right = xOf(lane.end[i]), {y, height, colour} = box(i);
        if (right - left >= 1) {
            const x = Math.max(left, LABELS);
            pen.fillStyle = colour;
            pen.fillRect(x, y, right - x - (right - left > 4 ? 1 : 0), height);
            continue;
        }
        const x = Math.floor(left);
        const column = columns.get(y) || {x: -1, cover: 0};
        if (column.x !== x) {
            flush(column);
            column.x = x;
            column.cover = 0;
        }
        Object.assign(column, {y, height, colour, cover: column.cover + right - left});
        columns.set(y, column);
    }
    for (const column of columns.values())
        flush(column);
    pen.globalAlpha = 1;
}

function flush(column) {
    if (column.x >= LABELS) {
        pen.globalAlpha = Math.min(1, 0.25 + column.cover);
        pen.fillStyle = column.colour;
        pen.fillRect(column.x, column.y, 1, column.height);
        pen.globalAlpha = 1;
    }
}

function drawTexts(lane, row) {
    pen.fillStyle = view.colours["--panel"];
    for (let i = firstIn(lane, view.from); i < lane.rows.length && lane.start[i] < view.to; i++) {
        const left = Math.max(xOf(lane.start[i]), LABELS), right = xOf(lane.end[i]);
        if (right - left < 34 || row.item < 12)
            continue;
        const count = itemCount(lane.rows[i]);
        const text = itemName(lane.rows[i]) + (count > 1 ? `, ${countText(count)} items` : "");
        pen.save();
        pen.beginPath();
        pen.rect(left, row.y, right - left - 3, row.height);
        pen.clip();
        pen.fillText(text, left + 4, row.y + (lane.depth[i] + 0.5) * row.item);
        pen.restore();
    }
}

function itemName(row) {
    return data.names[row[TILE.label] ?? row[TILE.name]];
}

// The power of a device's GPU as a line, from 0 to the most; thick where its limit held the clock down.
function drawPower(d) {
    const row = view.rows[d], bottom = row.y + row.height + row.copies + row.power;
    const most = 1000 * measured(d, "watts").most, samples = samplesOf(d);
    pen.save();
    pen.beginPath();
    pen.rect(LABELS, bottom - row.power, view.width - LABELS, row.power);
    pen.clip();
    pen.strokeStyle = pen.fillStyle = view.colours["--accent"];
    pen.beginPath();
    for (const sample of samples) {
        const x = xOf(sample[SAMPLE.at]), y = bottom - 1 - sample[SAMPLE.milliwatts] / most * (row.power - 3);
        pen.lineTo(x, y);
        if (sample[SAMPLE.isHeldDown])
            pen.fillRect(x - 1, y - 1, 3, 3);
    }
    pen.stroke();
    pen.restore();
}

// The sample of a device's GPU nearest to a time, as a text for the pointer.
function describePower(d, t) {
    let best = samplesOf(d)[0];
    for (const sample of samplesOf(d))
        if (Math.abs(sample[SAMPLE.at] - t) < Math.abs(best[SAMPLE.at] - t))
            best = sample;
    const rows = [["device", data.devices[d].name], ["power", `${significant(best[SAMPLE.milliwatts] / 1000, 4)} W`]];
    if (best[SAMPLE.megahertz] > 0)
        rows.push(["SM clock", `${best[SAMPLE.megahertz]} MHz`]);
    rows.push(["clock held down by the power's limit", best[SAMPLE.isHeldDown] ? "yes" : "no"],
              ["at", timeText(best[SAMPLE.at], 6)]);
    return {title: "power and clock", rows};
}

function drawDevice(d) {
    const row = view.rows[d], tiles = lanes.tiles[d], colours = view.colours;
    pen.fillStyle = colours["--row"];
    pen.fillRect(LABELS, row.y, view.width - LABELS, row.height + row.copies + row.power);
    pen.fillStyle = colours["--text"];
    pen.textAlign = "right";
    if (row.height >= 9)
        pen.fillText(data.devices[d].name, LABELS - 10, row.y + row.height / 2, LABELS - 16);
    pen.textAlign = "left";
    drawLane(lanes.waits[d], () => ({y: row.y + row.height - 2, height: 2, colour: colours["--starved"]}));
    drawLane(tiles, i => ({y: row.y + tiles.depth[i] * row.item, height: row.item - (tiles.depths > 1 ? 1 : 0),
                           colour: colours[colourNames.get(tiles.rows[i][TILE.name])]}));
    drawLane(lanes.pending[d], () => ({y: row.y + row.height - 3, height: 3, colour: colours["--quiet"]}));
    drawTexts(tiles, row);
    if (row.copies > 0)
        drawLane(lanes.copies[d], () => ({y: row.y + row.height + 1, height: row.copies - 1,
                                          colour: colours["--data"]}));
    if (row.power > 0)
        drawPower(d);
    pen.fillStyle = colours["--theft"];
    const thefts = lanes.thefts[d];
    let last = -10;
    for (let i = firstIn(thefts, view.from); i < thefts.rows.length && thefts.start[i] < view.to; i++) {
        const x = Math.round(xOf(thefts.end[i]));
        if (x < LABELS || x - last < 2)
            continue;
        pen.fillRect(x - 1, row.y, 2, Math.min(6, row.height));
        last = x;
    }
}

function niceStep(span, most) {
    const power = 10 ** Math.floor(Math.log10(span / most));
    return [1, 2, 5, 10].map(k => k * power).find(step => span / step <= most);
}

function drawAxis() {
    const step = niceStep(view.to - view.from, Math.max(2, (view.width - LABELS) / 110));
    const digits = Math.max(3, Math.ceil(Math.log10(Math.max(1, view.to / step))) + 1);
    pen.textAlign = "center";
    for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) {
        const x = Math.round(xOf(t)) + 0.5;
        pen.strokeStyle = view.colours["--line"];
        pen.beginPath();
        pen.moveTo(x, AXIS - 4);
        pen.lineTo(x, view.height);
        pen.stroke();
        pen.fillStyle = view.colours["--quiet"];
        if (x > LABELS + 20 && x < view.width - 24)
            pen.fillText(t === 0 ? "0" : timeText(t, digits), x, AXIS - 13);
    }
    pen.textAlign = "left";
}

// Tells a stroke that repeats: it is within one pixel, and the stroke before of the same key was in it.
function makeRepeats() {
    const last = new Map();
    return (left, right, key) => {
        const x = Math.floor(left), repeats = right - left < 1 && last.get(key) === x;
        last.set(key, x);
        return repeats;
    };
}

function drawJobs() {
    const repeats = makeRepeats();
    pen.fillStyle = view.colours["--quiet"];
    pen.textAlign = "right";
    pen.fillText("jobs", LABELS - 10, AXIS + JOBS / 2);
    pen.textAlign = "left";
    for (const job of data.jobs) {
        const left = Math.max(LABELS, xOf(job.start)), right = Math.min(view.width, xOf(job.start + job.ns));
        if (right <= LABELS || left >= view.width || repeats(left, right, isSelected(job.job)))
            continue;
        pen.globalAlpha = isSelected(job.job) ? 1 : 0.35;
        pen.strokeStyle = view.colours["--accent"];
        pen.strokeRect(Math.round(left) + 0.5, AXIS + 0.5, Math.max(1, Math.round(right - left) - 1), JOBS - 5);
        if (right - left > 40) {
            pen.fillStyle = view.colours["--text"];
            pen.fillText(`${jobName(job)} (${job.job})`, left + 5, AXIS + JOBS / 2 - 1, right - left - 8);
        }
        pen.globalAlpha = 1;
    }
}

function drawPath() {
    const place = row => {
        const of = view.rows[row[TILE.device]];
        return {left: xOf(row[TILE.start]), right: xOf(endOf(row)), y: of.y, height: of.height};
    };
    const repeats = makeRepeats();
    pen.strokeStyle = view.colours["--path"];
    pen.lineWidth = 1.5;
    pen.beginPath();
    let before = null;
    for (const step of view.path.steps) {
        const at = place(step.row);
        if (before !== null && at.left < view.width && at.left >= LABELS && before.right >= LABELS &&
            !repeats(before.right, at.left, `${before.y} ${at.y}`)) {
            pen.moveTo(before.right, before.y + before.height / 2);
            pen.lineTo(at.left, at.y + at.height / 2);
        }
        if (at.right > LABELS && at.left < view.width && !repeats(at.left, at.right, at.y)) {
            pen.moveTo(Math.max(at.left, LABELS), at.y + at.height / 2);
            pen.lineTo(Math.max(at.right, Math.floor(at.left) + 1), at.y + at.height / 2);
        }
        before = at;
    }
    pen.stroke();
    pen.lineWidth = 1;
}

function draw() {
    const ratio = window.devicePixelRatio || 1;
    view.width = Math.max(LABELS + 60, canvas.parentElement.clientWidth);
    canvas.width = Math.round(view.width * ratio);
    canvas.height = Math.round(view.height * ratio);
    canvas.style.height = `${view.height}px`;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.font = "12px system-ui, 'DejaVu Sans', sans-serif";
    pen.textBaseline = "middle";
    pen.fillStyle = view.colours["--panel"];
    pen.fillRect(0, 0, view.width, view.height);
    for (let d = 0; d < data.devices.length; d++)
        drawDevice(d);
    drawAxis();
    drawJobs();
    if (view.showsPath && view.path)
        drawPath();
    document.getElementById("range").textContent =
        `${timeText(view.from)} to ${timeText(view.to)} (${timeText(view.to - view.from)})`;
    view.drawn = true;
}

let isAsked = false;
function redraw() {
    if (isAsked)
        return;
    isAsked = true;
    requestAnimationFrame(() => {
        isAsked = false;
        draw();
    });
}

// --- Moving about ---

function show(from, to) {
    const length = Math.min(spanNs, Math.max(to - from, 10));
    view.from = Math.min(Math.max(0, from), spanNs - length);
    view.to = view.from + length;
    redraw();
}

function zoom(factor, x) {
    const at = Math.max(view.from, timeAt(x));
    show(at - (at - view.from) * factor, at + (view.to - at) * factor);
}

function fitSelection() {
    const [from, to] = selectedSpan(), margin = selection.job ? (to - from) * 0.02 : 0;
    show(from - margin, to + margin);
}

// --- What lies below the pointer ---

function rowAt(lane, t, slack, depth) {
    let best = null;
    for (let i = firstIn(lane, t - slack); i < lane.rows.length && lane.start[i] <= t + slack; i++)
        if (lane.end[i] >= t - slack && (depth === undefined || lane.depth[i] === depth))
            best = lane.rows[i];
    return best;
}

function describe(x, y) {
    const d = view.rows.findIndex(row => y >= row.y && y < row.y + row.height + row.copies + row.power);
    if (x < LABELS || d < 0)
        return null;
    const row = view.rows[d], t = timeAt(x), pixel = timeAt(x + 1) - t;
    if (y >= row.y + row.height + row.copies)
        return describePower(d, t);
    if (y >= row.y + row.height) {
        const copy = rowAt(lanes.copies[d], t, pixel);
        return copy && {title: `copy ${COPY_KINDS[copy[COPY.kind]]}`, rows: [
            ["device", data.devices[d].name],
            ["other end", copy[COPY.other] < 0 ? "host memory" : data.devices[copy[COPY.other]].name],
            ["bytes", bytesText(copy[COPY.bytes])],
            ["rate", copy[COPY.ns] > 0 ? `${significant(copy[COPY.bytes] / copy[COPY.ns], 4)} GB/s` : "?"],
            ["start", timeText(copy[COPY.start], 6)], ["time", timeText(copy[COPY.ns])]]};
    }
    const theft = y < row.y + 6 ? rowAt(lanes.thefts[d], t, 2 * pixel) : null;
    if (theft)
        return {title: "theft", rows: [
            ["taken by", data.devices[d].name], ["from", data.devices[theft[THEFT.victim]].name],
            ["entries", countText(theft[THEFT.taken])], ["start", timeText(theft[THEFT.start], 6)]]};
    const item = rowAt(lanes.tiles[d], t, pixel / 2, Math.floor((y - row.y) / row.item));
    return item ? describeItem(item) : null;
}

function describeItem(item) {
    const job = jobsByNumber.get(item[TILE.job]), count = itemCount(item);
    const rows = [["device", data.devices[item[TILE.device]].name]];
    if (item[TILE.label] != null)
        rows.push(["codelet", data.names[item[TILE.name]]]);
    rows.push(isChunk(item) ? ["items", `${countText(item[TILE.first])} to ${countText(item[TILE.last] - 1)}`]
                            : [count > 1 ? "tasks" : "task", taskText(item)]);
    rows.push(["job", job ? `${jobName(job)} (${job.job})` : countText(item[TILE.job])],
              ["start", timeText(item[TILE.start], 6)], ["time", timeText(item[TILE.ns])]);
    if (count > 1)
        rows.push(["time of each", timeText(item[TILE.ns] / count)]);
    return {title: itemName(item) + (count > 1 ? `: ${countText(count)} items` : ""), rows};
}

function taskText(item) {
    const most = 6, tasks = tasksOf(item);
    return tasks.slice(0, most).map(countText).join(", ") + (tasks.length > most ? ", \u2026" : "");
}

function hover(event) {
    const box = document.getElementById("hover"), place = canvas.getBoundingClientRect();
    const found = describe(event.clientX - place.left, event.clientY - place.top);
    box.hidden = !found;
    if (!found)
        return;
    box.replaceChildren(element("b", {}, found.title), element("table", {}, ...found.rows.map(
        ([what, value]) => element("tr", {}, element("td", {}, what), element("td", {}, value)))));
    const left = event.clientX + 16 + box.offsetWidth < innerWidth ? event.clientX + 16
                                                                   : event.clientX - 16 - box.offsetWidth;
    const top = Math.min(event.clientY + 14, innerHeight - box.offsetHeight - 8);
    box.style.left = `${Math.max(0, left)}px`;
    box.style.top = `${Math.max(0, top)}px`;
}

function listenToTimeline() {
    let grip = null;
    canvas.addEventListener("wheel", event => {
        event.preventDefault();
        zoom(Math.exp(Math.sign(event.deltaY) * 0.25), event.offsetX);
    }, {passive: false});
    canvas.addEventListener("pointerdown", event => {
        grip = {x: event.offsetX, from: view.from, to: view.to};
        canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointerup", () => { grip = null; });
    canvas.addEventListener("pointermove", event => {
        hover(event);
        if (grip === null)
            return;
        const moved = (grip.x - event.offsetX) / (view.width - LABELS) * (grip.to - grip.from);
        show(grip.from + moved, grip.to + moved);
    });
    canvas.addEventListener("pointerleave", () => { document.getElementById("hover").hidden = true; });
    canvas.addEventListener("dblclick", () => show(0, spanNs));
    canvas.addEventListener("keydown", event => {
        const step = (view.to - view.from) / 8, middle = LABELS + (view.width - LABELS) / 2;
        const keys = {"+": () => zoom(0.7, middle), "-": () => zoom(1.4, middle), "0": () => show(0, spanNs),
                      ArrowLeft: () => show(view.from - step, view.to - step),
                      ArrowRight: () => show(view.from + step, view.to + step)};
        if (keys[event.key]) {
            keys[event.key]();
            event.preventDefault();
        }
    });
    const centre = () => LABELS + (view.width - LABELS) / 2;
    document.getElementById("zoom-in").addEventListener("click", () => zoom(0.6, centre()));
    document.getElementById("zoom-out").addEventListener("click", () => zoom(1 / 0.6, centre()));
    document.getElementById("zoom-fit").addEventListener("click", fitSelection);
    document.getElementById("show-path").addEventListener("change", event => {
        view.showsPath = event.target.checked;
        redraw();
    });
    new ResizeObserver(redraw).observe(canvas.parentElement);
}

function showLegend() {
    const entry = (property, text) => element("span", {}, swatch(property), text);
    const entries = codelets.slice(0, COLOURS).map(name => entry(colourNames.get(name), data.names[name]));
    if (codelets.length > COLOURS)
        entries.push(entry("--c-rest", `${codelets.length - COLOURS} other codelets`));
    if (data.copies.length > 0)
        entries.push(entry("--data", "copies"));
    if (view.rows.some(row => row.power > 0))
        entries.push(entry("--accent", "power, dots where its limit held the clock down"));
    entries.push(entry("--theft", "thefts"), entry("--starved", "waits"));
    fill("legend", ...entries);
}
