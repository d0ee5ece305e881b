// What filch-bench adds: the result of a workload, and the time of each repeat beside contenders.

function benchSeconds(seconds) {
    return seconds === null || seconds === undefined ? "\u2013" : timeText(seconds * 1e9);
}

function benchRate(value, unit) {
    if (value === null)
        return "\u2013";
    const prefixes = ["", "k", "M", "G", "T", "P"];
    let k = 0;
    while (value >= 1000 && k < prefixes.length - 1) {
        value /= 1000;
        k++;
    }
    return `${significant(value, 4)} ${prefixes[k]}${unit}/s`;
}

function showBenchFigures(result) {
    const figure = (value, what) => element("div", {class: "figure"}, element("b", {}, value),
                                            element("span", {}, what));
    const number = value => value === null ? "\u2013" : significant(value, 4);
    const made = [figure(benchSeconds(result.median_s), "time, median"),
                  figure(benchRate(result.rate, result.work_unit), "rate"),
                  figure(result.efficiency === null ? "\u2013" : percentText(result.efficiency),
                         "of the devices' speeds, each alone"),
                  figure(number(result.imbalance), "imbalance: longest busy device over the mean"),
                  figure(result.residual === null ? "\u2013" : result.residual.toExponential(2), "residual"),
                  figure(result.checked ? "yes" : "no", "checked")];
    if (result.bound)
        made.push(figure(number(result.bound.time_over_bound), "time over that of links or kernels alone"),
                  figure(number(result.bound.bytes_over_least), "bytes moved over the least possible"));
    for (const other of benchContenders(result))
        made.push(figure(number(other.ratio), `${other.name}: its time over filch's`));
    fill("bench-figures", ...made);
}

function benchContenders(result) {
    return result.contenders || (result.versus ? [result.versus] : []);
}

function showBenchRepeats(result) {
    const others = benchContenders(result);
    const series = [{name: "filch", seconds: result.seconds, colour: "--c0"}].concat(others.map(
        (other, k) => ({name: other.name, seconds: other.seconds, colour: `--c${k % (COLOURS - 1) + 1}`})));
    const longest = Math.max(...series.flatMap(of => of.seconds.filter(s => s !== null)), 1e-12);
    const bars = [];
    for (let repeat = 0; repeat < result.seconds.length; repeat++)
        for (const of of series) {
            const piece = element("span", {title: `${of.name}, repeat ${repeat + 1}`});
            piece.style.width = `${100 * (of.seconds[repeat] || 0) / longest}%`;
            piece.style.background = `var(${of.colour})`;
            bars.push(element("div", {class: "bar"}, element("span", {}, `${of.name} ${repeat + 1}`),
                              element("div", {}, piece), element("span", {}, benchSeconds(of.seconds[repeat]))));
        }
    fill("bench-repeats", ...bars);
}

function showBench() {
    const result = data.bench;
    document.getElementById("bench-section").hidden = !result;
    if (!result)
        return;
    document.getElementById("subject").textContent = result.workload;
    document.title = `filch: ${result.workload}`;
    document.getElementById("bench-text").textContent =
        `n = ${result.n}, tile ${result.tile}, ${result.precision} precision, policy ${result.policy}, ` +
        `${result.seconds.length} repeats. The rest of the page shows one more run, recorded and not counted.`;
    showBenchFigures(result);
    showBenchRepeats(result);
    const seconds = (title, key) => ({title, value: of => of[key], show: of => benchSeconds(of[key])});
    const count = (title, key) => ({title, value: of => of[key], show: of => countText(of[key])});
    table("bench-devices", [
        {title: "device", isText: true, value: of => of.name, show: of => of.name},
        {title: "speed alone", value: of => of.speed, show: of => benchRate(of.speed, result.work_unit)},
        seconds("busy", "busy_s"), seconds("waiting", "transfer_s"), seconds("idle", "idle_s"),
        count("tiles", "tiles"), count("stolen in", "stolen_in"), count("stolen out", "stolen_out"),
        {title: "bytes in", value: of => of.bytes_in, show: of => bytesText(of.bytes_in)},
        {title: "bytes out", value: of => of.bytes_out, show: of => bytesText(of.bytes_out)},
        {title: "from devices", value: of => of.bytes_peer, show: of => bytesText(of.bytes_peer)},
    ], result.devices);
}
