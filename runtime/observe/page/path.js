// The critical path of the run as it was: from the item that ended last, back to whatever ended last
// before each item could begin, a predecessor in the graph or the item before on the device.

// Positions of the items of each job of a graph, by task: the piece that ended last.
function itemsByTask(items) {
    const jobs = new Map();
    items.forEach((row, k) => {
        if (isChunk(row))
            return;
        let tasks = jobs.get(row[TILE.job]);
        if (!tasks)
            jobs.set(row[TILE.job], tasks = new Map());
        const known = tasks.get(row[TILE.first]);
        if (known === undefined || endOf(items[known]) < endOf(row))
            tasks.set(row[TILE.first], k);
    });
    return jobs;
}

function endOf(row) {
    return row[TILE.start] + row[TILE.ns];
}

// Lists of predecessors, from the lists of successors.
function predecessorsOf(graph) {
    if (graph.predecessors)
        return graph.predecessors;
    const begin = new Uint32Array(graph.tasks + 1), list = new Uint32Array(graph.successors.length);
    for (const to of graph.successors)
        begin[to + 1]++;
    for (let i = 0; i < graph.tasks; i++)
        begin[i + 1] += begin[i];
    const next = begin.slice();
    for (let from = 0; from < graph.tasks; from++)
        for (let k = graph.begin[from]; k < graph.begin[from + 1]; k++)
            list[next[graph.successors[k]]++] = from;
    graph.predecessors = {begin, list};
    return graph.predecessors;
}

// The item with the latest end of those of a device (in the order of ends) that ended by a time.
function lastBefore(items, order, time) {
    let low = 0, high = order.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (endOf(items[order[middle]]) <= time)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? order[low - 1] : -1;
}

// The item that ended last among those that a task without an item waited for; -1: none. Answers are kept
// in latest, by task: each task is looked at once a job.
function latestBeneath(graph, task, tasks, items, latest) {
    const {begin, list} = predecessorsOf(graph), open = [task];
    while (open.length > 0) {
        const next = open[open.length - 1], size = open.length;
        let found = -1;
        for (let k = begin[next]; k < begin[next + 1] && !latest.has(next); k++) {
            const item = tasks.get(list[k]) ?? latest.get(list[k]);
            if (item === undefined)
                open.push(list[k]);
            else if (item >= 0 && (found < 0 || endOf(items[item]) >= endOf(items[found])))
                found = item;
        }
        if (open.length > size)
            continue;
        if (!latest.has(next))
            latest.set(next, found);
        open.pop();
    }
    return latest.get(task);
}

// The item that ended last, but by a time, among those that a task waited for; -1: none. Tasks of filch's
// own, and those whose events are overwritten, have no item: the items before stand in their place.
function itemBefore(graph, task, tasks, items, latest, time) {
    const {begin, list} = predecessorsOf(graph), seen = new Set(), open = [task];
    let found = -1;
    while (open.length > 0) {
        const next = open.pop();
        for (let k = begin[next]; k < begin[next + 1]; k++) {
            if (seen.has(list[k]))
                continue;
            seen.add(list[k]);
            const own = tasks.get(list[k]);
            const item = own ?? latestBeneath(graph, list[k], tasks, items, latest);
            if (item >= 0 && endOf(items[item]) > time && own === undefined)
                open.push(list[k]); // a clock's error: one of the others may have ended by then
            else if (item >= 0 && endOf(items[item]) <= time &&
                     (found < 0 || endOf(items[item]) >= endOf(items[found])))
                found = item;
        }
    }
    return found;
}

// Returns {steps, compute, wait, rest, hasStructure}: steps from the first to the last, each with its row,
// the gap before it, and whether it waited for a "dependency", a "device" or the "start".
function criticalPath() {
    const items = data.tiles.filter(row => isSelected(row[TILE.job])).flatMap(itemsOf);
    const byTask = itemsByTask(items);
    const ends = data.devices.map(() => []);
    let at = -1, hasStructure = false;
    items.forEach((row, k) => {
        ends[row[TILE.device]].push(k);
        at = at < 0 || endOf(row) > endOf(items[at]) ? k : at;
    });
    for (const list of ends)
        list.sort((a, b) => endOf(items[a]) - endOf(items[b]));
    const steps = [];
    const seen = new Set(), latest = new Map();
    while (at >= 0 && !seen.has(at)) {
        const row = items[at];
        seen.add(at);
        let before = lastBefore(items, ends[row[TILE.device]], row[TILE.start]), via = "device";
        const graph = isChunk(row) ? undefined : graphs.get(row[TILE.last]);
        if (graph) {
            hasStructure = true;
            const job = row[TILE.job];
            if (!latest.has(job))
                latest.set(job, new Map());
            const other = itemBefore(graph, row[TILE.first], byTask.get(job), items, latest.get(job),
                                     row[TILE.start]);
            if (other >= 0 && (before < 0 || endOf(items[other]) >= endOf(items[before]))) {
                before = other;
                via = "dependency";
            }
        }
        const from = before >= 0 ? endOf(items[before]) : selectedSpan()[0];
        steps.push({row, gap: row[TILE.start] - from, via: before >= 0 ? via : "start"});
        at = before;
    }
    steps.reverse();
    const last = steps.length > 0 ? endOf(steps[steps.length - 1].row) : selectedSpan()[0];
    const sum = (list, value) => list.reduce((total, step) => total + value(step), 0);
    return {steps, hasStructure, compute: sum(steps, step => step.row[TILE.ns]),
            wait: sum(steps, step => step.gap), rest: Math.max(0, selectedSpan()[1] - last)};
}
