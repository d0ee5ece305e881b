// Figures, advice and tables of the selected jobs.

function showFigures() {
    const of = figures(), span = selectedSpan();
    const stat = name => of.stats.reduce((sum, row) => sum + row[statIndex[name]], 0);
    const figure = (value, what, id) => element("div", {class: "figure", "data-figure": id},
                                                element("b", {}, value), element("span", {}, what));
    const bytes = stat("bytes_in") + stat("bytes_out") + stat("bytes_peer");
    fill("figures",
         figure(timeText(span[1] - span[0]),
                data.virtual ? "virtual time, first to last" : "time, first to last", "time"),
         figure(of.bound > 0 ? percentText(of.efficiency) : "\u2013", "of the bound reached", "efficiency"),
         figure(countText(data.devices.length), "devices", "devices"),
         figure(countText(selection.job ? 1 : data.total.jobs), "jobs", "jobs"),
         figure(countText(stat("tiles")), "work items", "items"),
         figure(countText(stat("stolen_in")), "items stolen", "stolen"),
         figure(bytesText(bytes), "copied between memories", "bytes"),
         ...of.failed + of.skipped > 0
             ? [figure(countText(of.failed + of.skipped), "tasks or items failed, skipped", "failed")] : []);
}

function showMissing() {
    const texts = [];
    if (data.events_overwritten > 0)
        texts.push(`${countText(data.events_overwritten)} events are missing: older ones made room for ` +
                   "newer ones. The timeline, the critical path and the codelets show what is left; the " +
                   "breakdown counts everything. FILCH_TRACE_EVENTS makes more room.");
    if (data.copies_missed > 0)
        texts.push(`${countText(data.copies_missed)} copies could not be recorded.`);
    const missing = document.getElementById("missing");
    missing.hidden = texts.length === 0;
    missing.textContent = texts.join(" ");
}

function showAdvice() {
    fill("advice", ...figures().advice.map(advice => {
        const part = data.parts.find(other => other.name === advice.about);
        const title = part ? part.title : advice.about === "path" ? "longest path" : "no large loss";
        return element("li", {}, element("b", {}, `${title}: `), advice.text);
    }));
}

function showBounds() {
    const of = figures();
    const texts = [selection.job ? `The job took ${timeText(of.wall)}.`
                                 : `The jobs took ${timeText(of.wall)}, one by one.`];
    if (of.area > 0)
        texts.push(`All work at the best speeds seen takes the devices ${timeText(of.area)}.`);
    if (of.path > 0)
        texts.push(`The longest path of dependent tasks takes ${timeText(of.path)}.`);
    document.getElementById("bounds").textContent = texts.join(" ");
}

function sumOf(rows) {
    return rows.reduce((sum, row) => sum.map((value, k) => value + row[k]),
                       new Array(data.loss_fields.length).fill(0));
}

function lossShare(row, part) {
    const wall = row[lossIndex.wall];
    return wall > 0 ? row[lossIndex[part.name]] / wall : 0;
}

function showLosses() {
    const rows = figures().losses.map((row, d) => ({name: data.devices[d].name, row}));
    const sum = {name: "all", row: sumOf(figures().losses)};
    fill("loss-bars", ...rows.slice(0, 64).concat(rows.length > 1 ? [sum] : []).map(({name, row}) => {
        const bar = element("div");
        for (const part of data.parts) {
            const share = lossShare(row, part);
            if (share <= 0)
                continue;
            const piece = element("span", {title: `${part.title}: ${percentText(share)}, ` +
                                                  timeText(row[lossIndex[part.name]])});
            piece.style.width = `${100 * share}%`;
            piece.style.background = `var(--${part.name})`;
            bar.append(piece);
        }
        return element("div", {class: "bar"}, element("span", {title: name}, name), bar,
                       element("span", {title: "busy"}, percentText(lossShare(row, data.parts[0]))));
    }));
    const columns = [{title: "device", isText: true, show: of => of.name}];
    for (const part of data.parts)
        columns.push({title: part.title, swatch: `--${part.name}`, value: of => lossShare(of.row, part),
                      show: of => percentText(lossShare(of.row, part))});
    columns.push({title: "time", value: of => of.row[lossIndex.wall],
                  show: of => timeText(of.row[lossIndex.wall])});
    table("losses", columns, rows, rows.length > 1 ? sum : null);
    fill("meanings", ...data.parts.flatMap(part => [
        element("dt", {}, swatch(`--${part.name}`), part.title), element("dd", {}, part.meaning)]));
}

function codeletRows() {
    const byName = new Map(codelets.map(name => [name, {name, count: 0, sum: 0, least: Infinity, most: 0,
                                                        devices: data.devices.map(() => [0, 0])}]));
    for (const row of data.tiles) {
        if (!isSelected(row[TILE.job]))
            continue;
        const of = byName.get(row[TILE.name]), device = of.devices[row[TILE.device]];
        const count = itemCount(row), sum = row[TILE.ns];
        of.count += count;
        of.sum += sum;
        of.least = Math.min(of.least, sum / count);
        of.most = Math.max(of.most, sum / count);
        device[0] += count;
        device[1] += sum;
    }
    return [...byName.values()].filter(of => of.count > 0);
}

function showCodelets() {
    const rows = codeletRows(), all = rows.reduce((sum, of) => sum + of.sum, 0);
    const columns = [
        {title: "codelet", isText: true, value: of => data.names[of.name],
         show: of => element("span", {}, swatch(colourNames.get(of.name)), data.names[of.name])},
        {title: "items", value: of => of.count, show: of => countText(of.count)},
        {title: "time", value: of => of.sum, show: of => timeText(of.sum)},
        {title: "share", value: of => of.sum, show: of => percentText(all > 0 ? of.sum / all : 0)},
        {title: "mean", value: of => of.sum / of.count, show: of => timeText(of.sum / of.count)},
        {title: "least", value: of => of.least, show: of => timeText(of.least)},
        {title: "most", value: of => of.most, show: of => timeText(of.most)},
    ];
    data.devices.slice(0, 16).forEach((device, d) => columns.push({
        title: `mean on ${device.name}`,
        value: of => of.devices[d][0] > 0 ? of.devices[d][1] / of.devices[d][0] : -1,
        show: of => of.devices[d][0] > 0 ? timeText(of.devices[d][1] / of.devices[d][0]) : "\u2013"}));
    table("codelets", columns, rows, null, 2);
}

// A table of numbers by two kinds of names; rows and columns without a number are left out.
function matrix(id, corner, rowNames, columnNames, values, show) {
    const used = k => values.some(row => row[k] > 0);
    const columns = [{title: corner, isText: true, show: of => of.name}];
    columnNames.forEach((name, k) => used(k) && columns.push({
        title: name, value: of => of.row[k],
        show: of => of.row[k] > 0 ? show(of.row[k], of.index, k) : "\u2013"}));
    const rows = values.map((row, index) => ({name: rowNames[index], row, index}))
                       .filter(of => of.row.some(value => value > 0));
    if (rows.length > 0)
        table(id, columns, rows);
    else
        fill(id);
}

function zeros(count) {
    return Array.from({length: count}, () => new Array(count).fill(0));
}

function showThefts() {
    const names = data.devices.map(device => device.name), taken = zeros(names.length);
    let count = 0, items = 0;
    for (const row of data.thefts) {
        if (!isInSpan(row))
            continue;
        taken[row[THEFT.device]][row[THEFT.victim]] += row[THEFT.taken];
        items += row[THEFT.taken];
        count++;
    }
    const stolen = figures().stats.reduce((sum, row) => sum + row[statIndex.stolen_in], 0);
    const texts = count === 0 ? [] : [
        `${countText(count)} thefts took ${countText(items)} tasks or pieces of ranges. A row is the ` +
        "device that took, a column the device that had the work."];
    if (stolen > items)
        texts.push(`${countText(stolen - items)} ${count > 0 ? "further " : ""}items came from the queue that ` +
                   "devices share, or from another device's part of a range.");
    document.getElementById("thefts-text").textContent =
        texts.length > 0 ? texts.join(" ") : "No device took work from another.";
    matrix("thefts", "taken by \\ from", names, names.map(name => `from ${name}`), taken, countText);
}

// Bytes and time of copies, by source and target; the last place is the host.
function copySums() {
    const host = data.devices.length, bytes = zeros(host + 1), time = zeros(host + 1);
    for (const row of data.copies) {
        if (!isInSpan(row))
            continue;
        const device = row[COPY.device], other = row[COPY.other] < 0 ? host : row[COPY.other];
        const isOut = row[COPY.kind] === 1;
        const from = isOut ? device : other, to = isOut ? other : device;
        bytes[from][to] += row[COPY.bytes];
        time[from][to] += row[COPY.ns];
    }
    return {bytes, time};
}

function showCopies() {
    const names = data.devices.map(device => device.name).concat("host memory"), {bytes, time} = copySums();
    const sum = bytes.flat().reduce((a, b) => a + b, 0);
    document.getElementById("copies-text").textContent = sum === 0
        ? "Nothing was copied between memories."
        : `${bytesText(sum)}. A row is the source, a column the target; in brackets the mean rate of a copy.`;
    matrix("copies", "from \\ to", names, names.map(name => `to ${name}`), bytes, (value, from, to) =>
        `${bytesText(value)} (${time[from][to] > 0 ? significant(value / time[from][to], 3) : "?"} GB/s)`);
}

function showPath(path) {
    const span = selectedSpan(), all = span[1] - span[0], byName = new Map();
    const share = ns => percentText(all > 0 ? ns / all : 0);
    for (const step of path.steps) {
        const name = step.row[TILE.name];
        const of = byName.get(name) || {name, count: 0, compute: 0, wait: 0, device: 0};
        byName.set(name, of);
        of.count++;
        of.compute += step.row[TILE.ns];
        of.wait += Math.max(0, step.gap);
        of.device += step.via === "device";
    }
    document.getElementById("path-text").textContent = path.steps.length === 0
        ? "No work item was recorded."
        : `What the end waited for, as it ran: ${countText(path.steps.length)} items, ` +
          `${timeText(path.compute)} of work (${share(path.compute)}) and ${timeText(path.wait)} of gaps ` +
          `(${share(path.wait)}), then ${timeText(path.rest)} to the end (${share(path.rest)}). ` + (path.hasStructure
              ? "An item waits for a predecessor in the graph, or for the item before on its device."
              : "Without dependencies (batches, open graphs) an item waits for the one before on its device.");
    table("path", [
        {title: "codelet", isText: true, value: of => data.names[of.name],
         show: of => element("span", {}, swatch(colourNames.get(of.name)), data.names[of.name])},
        {title: "items on the path", value: of => of.count, show: of => countText(of.count)},
        {title: "work", value: of => of.compute, show: of => timeText(of.compute)},
        {title: "share of the time", value: of => of.compute, show: of => share(of.compute)},
        {title: "gaps before", value: of => of.wait, show: of => timeText(of.wait)},
        {title: "waited for the device", value: of => of.device, show: of => countText(of.device)},
    ], [...byName.values()], null, 2);
}

function showJobs() {
    const shown = data.jobs.slice(-200);
    document.getElementById("jobs-text").textContent = data.total.jobs > shown.length
        ? `The newest ${countText(shown.length)} of ${countText(data.total.jobs)} jobs.` : "";
    table("jobs", [
        {title: "job", value: of => of.job, show: of => {
            const button = element("button", {title: "show this job alone"}, countText(of.job));
            button.addEventListener("click", () => selectJob(of.job));
            return button;
        }},
        {title: "name", isText: true, value: jobName, show: jobName},
        {title: "result", isText: true, value: of => of.status, show: of => of.status},
        {title: "start", value: of => of.start, show: of => timeText(of.start)},
        {title: "time", value: of => of.ns, show: of => timeText(of.ns)},
        {title: "tasks or items", value: of => of.total, show: of => countText(of.total)},
        {title: "bound", value: of => of.bound, show: of => of.bound > 0 ? timeText(of.bound) : "\u2013"},
        {title: "reached", value: of => of.efficiency,
         show: of => of.bound > 0 ? percentText(of.efficiency) : "\u2013"},
    ], shown);
}

// A quantity of a GPU that may not have been measured.
function measured(d, name) {
    const of = gpuOf[d] && gpuOf[d][name];
    return of && of.why === undefined ? of : null;
}

function rangeText(of, unit) {
    return of ? `${significant(of.mean, 4)} ${unit} (${significant(of.least, 4)} to ${significant(of.most, 4)})`
              : "not measured";
}

function showPower() {
    const texts = [];
    if (data.power && data.power.why)
        texts.push(`Power and clocks were not measured: ${data.power.why}.`);
    for (const gpu of gpus) {
        const names = gpu.devices.map(d => data.devices[d].name).join(", ");
        const reasons = new Set([gpu.why, ...["watts", "megahertz", "held_down"].map(
            name => gpu[name] && gpu[name].why)].filter(why => why));
        if (reasons.size > 0)
            texts.push(`Not all of ${names} was measured: ${[...reasons].join("; ")}.`);
        const held = measured(gpu.devices[0], "held_down");
        if (held && held.by_power > 0)
            texts.push(`The limit of the power held the clock of ${names} down in ` +
                       `${percentText(held.by_power)} of the samples.`);
        if (held && held.by_heat > 0)
            texts.push(`Heat held the clock of ${names} down in ${percentText(held.by_heat)} of the samples.`);
    }
    document.getElementById("power-text").textContent = texts.join(" ");
}

function powerColumns() {
    if (gpus.length === 0)
        return [];
    const column = (title, name, unit) => ({
        title, value: device => (measured(device.index, name) || {mean: -1}).mean,
        show: device => gpuOf[device.index] ? rangeText(measured(device.index, name), unit) : "\u2013"});
    return [column("power", "watts", "W"), column("SM clock", "megahertz", "MHz")];
}

function showDevices() {
    const of = figures(), stat = (d, name) => of.stats[d][statIndex[name]];
    const count = (title, name, show = countText) => ({
        title, value: device => stat(device.index, name), show: device => show(stat(device.index, name))});
    table("devices", [
        {title: "device", isText: true, value: device => device.name, show: device => device.name},
        {title: "model", isText: true, value: device => device.model, show: device => device.model || "\u2013"},
        {title: "score", value: device => device.score, show: device => significant(device.score, 4)},
        count("work items", "tiles"), count("stolen in", "stolen_in"), count("stolen out", "stolen_out"),
        count("bytes in", "bytes_in", bytesText), count("bytes out", "bytes_out", bytesText),
        count("from devices", "bytes_peer", bytesText), count("evictions", "evicted"),
        ...powerColumns(),
    ], data.devices.map((device, index) => ({...device, index})));
}
