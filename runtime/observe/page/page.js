// Puts the page together, and answers its controls.

function showSelected() {
    view.path = criticalPath();
    showFigures();
    showAdvice();
    showBounds();
    showLosses();
    showCodelets();
    showThefts();
    showCopies();
    showPath(view.path);
    showDevices();
    redraw();
}

function selectJob(number) {
    selection.job = number === null ? null : jobsByNumber.get(number);
    document.getElementById("job").value = number === null ? "" : String(number);
    showSelected();
    fitSelection();
}

function listJobs() {
    const select = document.getElementById("job");
    const all = data.total.jobs === 1 ? "all (1 job)" : `all (${countText(data.total.jobs)} jobs)`;
    select.replaceChildren(element("option", {value: ""}, all), ...data.jobs.slice(-200).map(job => element(
        "option", {value: String(job.job)}, `${job.job}: ${jobName(job)}, ${timeText(job.ns)}`)));
    select.addEventListener("change", () => selectJob(select.value === "" ? null : Number(select.value)));
}

function listenToScheme() {
    const buttons = [...document.querySelectorAll("#scheme button")];
    const choose = scheme => {
        if (scheme === "auto")
            document.documentElement.removeAttribute("data-scheme");
        else
            document.documentElement.setAttribute("data-scheme", scheme);
        for (const button of buttons)
            button.setAttribute("aria-pressed", String(button.dataset.scheme === scheme));
        readColours();
        redraw();
    };
    for (const button of buttons)
        button.addEventListener("click", () => choose(button.dataset.scheme));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
        readColours();
        redraw();
    });
    choose("auto");
}

layOut();
listenToScheme();
listJobs();
showMissing();
showLegend();
showJobs();
showBench();
showPower();
showSelected();
listenToTimeline();
draw();
