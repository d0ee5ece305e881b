# SPDX-License-Identifier: Apache-2.0
"""What a page does, counted: calls of the canvas, calls of its own functions, elements. Counts are the same on
every machine; a clock is not."""

# Set up before a page's own code: frames begin with the canvas' whole ground.
CANVAS = """(() => {
    window.drawn = {frames: 0};
    const of = CanvasRenderingContext2D.prototype;
    for (const name of ["fillRect", "strokeRect", "fillText", "lineTo"]) {
        const call = of[name];
        of[name] = function (...list) {
            window.drawn[name] = (window.drawn[name] || 0) + 1;
            if (name === "fillRect" && list[0] === 0 && list[1] === 0)
                window.drawn.frames++;
            return call.apply(this, list);
        };
    }
})()"""

# Functions of the page's own, those declared at the top of its script.
FUNCTIONS = """(() => {
    window.called = 0;
    const text = [...document.scripts].map(of => of.type === "" ? of.textContent : "").join("\\n");
    for (const [, name] of text.matchAll(/^function ([A-Za-z]+)\\(/gm)) {
        const own = window[name];
        window[name] = function (...list) {
            window.called++;
            return own.apply(this, list);
        };
    }
    return true;
})()"""


class Work:
    """Counts in every page that opens while it is in use."""

    def __init__(self, browser):
        self.browser = browser
        self.script = browser.call("Page.addScriptToEvaluateOnNewDocument", source=CANVAS)["identifier"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=self.script)

    def drawn(self):
        """Calls of the canvas since the page was opened, or since they were last asked for; and frames."""
        self.browser.settle()
        counts = self.browser.value("window.drawn")
        self.browser.value("window.drawn = {frames: 0}")
        return counts

    def watch_functions(self):
        self.browser.value(FUNCTIONS)

    def calls(self, expression):
        """Calls of the page's functions while it does something. What is put off to the next frame is not in it."""
        return self.browser.value(f"(() => {{ window.called = 0; {expression}; return window.called; }})()")
