# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven over a pipe (Chrome DevTools Protocol): one page, no network."""
import json
import os
import shutil
import subprocess
import tempfile

PATIENCE_S = 120


class Browser:
    def __init__(self, program):
        to_read, self.to_browser = os.pipe()
        self.from_browser, to_write = os.pipe()
        self.profile = tempfile.mkdtemp(prefix="filch-page-")
        command = [program, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
                   "--disable-dev-shm-usage", "--disable-extensions", "--hide-scrollbars",
                   "--window-size=1400,1000", f"--user-data-dir={self.profile}",
                   "--remote-debugging-pipe", "about:blank"]
        # The protocol uses the descriptors 3 and 4.
        shell = f'exec "$@" 3<&{to_read} 4>&{to_write}'
        self.process = subprocess.Popen(["bash", "-c", shell, "browser"] + command,
                                        pass_fds=(to_read, to_write), stderr=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.number = 0
        self.rest = b""
        self.session = None
        self.complaints = []  # of the page: exceptions, errors and warnings on the console
        self.requests = []    # what the page asked for
        self.seen = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        except (OSError, EOFError):
            pass
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.to_browser)
        os.close(self.from_browser)
        shutil.rmtree(self.profile, ignore_errors=True)

    def receive(self):
        while b"\0" not in self.rest:
            part = os.read(self.from_browser, 1 << 20)
            if not part:
                raise EOFError("the browser is gone")
            self.rest += part
        text, self.rest = self.rest.split(b"\0", 1)
        message = json.loads(text)
        self.note(message)
        return message

    def note(self, message):
        method, about = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = about["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(f"console.{about['type']}: {about['args']}")
        elif method == "Log.entryAdded":
            self.complaints.append(about["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        if method:
            self.seen.append(method)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to_browser, data):]
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def open(self, path):
        """Opens a file; returns when the page has loaded."""
        self.complaints.clear()
        self.requests.clear()
        self.seen.clear()
        self.call("Page.navigate", url=f"file://{path}")
        while "Page.loadEventFired" not in self.seen:
            self.receive()

    def value(self, expression):
        """The value of a JavaScript expression; promises are awaited."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def scheme(self, name):
        """The system's colour scheme: light or dark. The page hears of it in a frame behind this."""
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": name}])
        self.value(f"""new Promise(done => {{
            const look = () => matchMedia("(prefers-color-scheme: {name})").matches
                ? done(true) : requestAnimationFrame(look);
            look();
        }})""")

    def settle(self):
        """Waits for two frames: what was asked for is drawn."""
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
                   ".then(() => true)")

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def picture(self, path):
        import base64
        size = self.value("[document.documentElement.scrollWidth,"
                          " document.documentElement.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1}
        answer = self.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(answer["data"]))
