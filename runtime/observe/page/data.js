"use strict";
// The data of the page, and what is reckoned from it once.

const data = JSON.parse(document.getElementById("data").textContent);

// Columns of a work item, a copy and a theft.
const TILE = {device: 0, start: 1, ns: 2, name: 3, job: 4, first: 5, last: 6, tasks: 7, label: 8, further: 9};
const COPY = {device: 0, start: 1, ns: 2, kind: 3, bytes: 4, other: 5};
const THEFT = {device: 0, start: 1, ns: 2, victim: 3, taken: 4};
const COPY_KINDS = ["from the host", "to the host", "from a device", "within a memory"];

const lossIndex = Object.fromEntries(data.loss_fields.map((name, k) => [name, k]));
const statIndex = Object.fromEntries(data.stat_fields.map((name, k) => [name, k]));
const graphs = new Map(data.graphs.map(graph => [graph.graph, graph]));
const jobsByNumber = new Map(data.jobs.map(job => [job.job, job]));

// Rows of one device, in the order of their starts, and the row of the drawing that each stands in:
// items that overlap stand below each other.
function makeLane(rows) {
    rows.sort((a, b) => a[1] - b[1]);
    const start = Float64Array.from(rows, row => row[1]);
    const end = Float64Array.from(rows, row => row[1] + row[2]);
    const depth = new Uint8Array(rows.length);
    const ends = [];
    let longest = 0;
    for (let i = 0; i < rows.length; i++) {
        let at = ends.findIndex(free => free <= start[i]);
        if (at < 0)
            at = ends.length < 4 ? ends.length : 3;
        ends[at] = end[i];
        depth[i] = at;
        longest = Math.max(longest, end[i] - start[i]);
    }
    return {rows, start, end, depth, depths: Math.max(1, ends.length), longest};
}

function lanesOf(rows) {
    const lists = data.devices.map(() => []);
    for (const row of rows)
        lists[row[0]].push(row);
    return lists.map(makeLane);
}

function isChunk(row) {
    return row[TILE.tasks] === 0;
}

// How many work items a row stands for: short tasks that ran one after another share one.
function itemCount(row) {
    return Math.max(1, row[TILE.tasks]);
}

// The tasks of a row, in the order in which they ran.
function tasksOf(row) {
    return row[TILE.tasks] > 1 ? [row[TILE.first], ...row[TILE.further]] : [row[TILE.first]];
}

// The row of each work item of a row. Those that share it get an equal part of its time each.
function itemsOf(row) {
    const count = itemCount(row), start = row[TILE.start];
    if (count === 1)
        return [row];
    const cut = k => start + Math.floor(row[TILE.ns] * k / count);
    return tasksOf(row).map((task, k) => [row[TILE.device], cut(k), cut(k + 1) - cut(k), row[TILE.name],
                                          row[TILE.job], task, row[TILE.last], 1]);
}

const lanes = {
    tiles: lanesOf(data.tiles),
    copies: lanesOf(data.copies),
    waits: lanesOf(data.waits),
    thefts: lanesOf(data.thefts),
    pending: lanesOf(data.pending),
};

// Columns of a sample of a GPU's power, and the GPU of each device that has samples or a reason why not.
const SAMPLE = {at: 0, milliwatts: 1, megahertz: 2, isHeldDown: 3};
const gpus = data.power && data.power.gpus || [];
const gpuOf = data.devices.map((device, d) => gpus.find(gpu => gpu.devices.includes(d)) || null);

function samplesOf(d) {
    return gpuOf[d] && gpuOf[d].rows || [];
}

function endOfAll() {
    let end = 1;
    for (const list of Object.values(lanes))
        for (const lane of list)
            for (const t of lane.end)
                end = Math.max(end, t);
    for (const job of data.jobs)
        end = Math.max(end, job.start + job.ns);
    return end;
}

const spanNs = endOfAll();

// The names of codelets, those with most time first.
function codeletOrder() {
    const time = new Map();
    for (const row of data.tiles)
        time.set(row[TILE.name], (time.get(row[TILE.name]) || 0) + row[TILE.ns]);
    return [...time.keys()].sort((a, b) => time.get(b) - time.get(a));
}

const codelets = codeletOrder();
const COLOURS = 8;

// The style property that has the colour of a codelet.
const colourNames = new Map(codelets.map((name, k) => [name, k < COLOURS ? `--c${k}` : "--c-rest"]));

// --- Selection: all jobs, or one ---

const selection = {job: null};

function figures() {
    return selection.job || data.total;
}

function isSelected(jobNumber) {
    return selection.job === null || selection.job.job === jobNumber;
}

function selectedSpan() {
    return selection.job === null ? [0, spanNs]
                                  : [selection.job.start, selection.job.start + selection.job.ns];
}

function isInSpan(row) {
    const [from, to] = selectedSpan();
    return row[1] + row[2] >= from && row[1] <= to;
}

function jobName(job) {
    const graph = graphs.get(job.graph);
    return job.label || (graph && graph.label) || job.name;
}

// --- Texts ---

function significant(value, digits) {
    if (value === 0)
        return "0";
    const places = Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(value))));
    return value.toFixed(Math.min(places, 12));
}

function timeText(ns, digits = 4) {
    const units = [[1e9, "s"], [1e6, "ms"], [1e3, "\u00b5s"]];
    for (const [size, unit] of units)
        if (Math.abs(ns) >= size)
            return `${significant(ns / size, digits)} ${unit}`;
    return `${significant(ns, Math.min(digits, 3))} ns`;
}

function bytesText(bytes) {
    const units = ["B", "kB", "MB", "GB", "TB"];
    let k = 0;
    while (bytes >= 1000 && k < units.length - 1) {
        bytes /= 1000;
        k++;
    }
    return `${significant(bytes, 4)} ${units[k]}`;
}

function percentText(share) {
    return `${(100 * share).toFixed(2)} %`;
}

function countText(count) {
    return Math.round(count).toString().replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

// --- Elements ---

function element(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {}))
        made.setAttribute(name, value);
    made.append(...children);
    return made;
}

function swatch(property) {
    const made = element("i");
    made.style.background = `var(${property})`;
    return made;
}

function fill(id, ...children) {
    document.getElementById(id).replaceChildren(...children);
}

// A table. columns: {title, swatch, isText, value(row): what to sort by, show(row): text or element}.
function table(id, columns, rows, sum, sorted) {
    const target = document.getElementById(id);
    const body = element("tbody");
    const line = (row, kind) => element("tr", kind ? {class: kind} : {}, ...columns.map(column => {
        const cell = element("td", column.isText ? {class: "text"} : {});
        cell.append(column.show(row));
        return cell;
    }));
    const heads = columns.map(column => {
        const button = column.value ? element("button", {}, column.title) : column.title;
        const head = element("th", column.isText ? {class: "text"} : {}, button);
        if (column.swatch)
            head.prepend(swatch(column.swatch));
        return head;
    });
    const order = (column, direction) => {
        const list = rows.slice();
        if (column !== undefined)
            list.sort((a, b) => {
                const x = columns[column].value(a), y = columns[column].value(b);
                return direction * (x < y ? -1 : x > y ? 1 : 0);
            });
        heads.forEach((head, k) => head.setAttribute(
            "aria-sort", k !== column ? "none" : direction < 0 ? "descending" : "ascending"));
        body.replaceChildren(...list.map(row => line(row)));
        if (sum)
            body.append(line(sum, "sum"));
    };
    heads.forEach((head, k) => columns[k].value && head.lastChild.addEventListener("click", () => {
        const falls = head.getAttribute("aria-sort") !== "descending";
        order(k, falls ? -1 : 1);
    }));
    order(sorted, -1);
    target.replaceChildren(element("thead", {}, element("tr", {}, ...heads)), body);
}
