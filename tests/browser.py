# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Opens pages in headless Chromium, by the protocol of its developer tools over a pipe; nothing but Python is
needed.

    with Browser("/usr/bin/chromium", folder) as browser:
        page = browser.open("/path/x.html", width=1200, height=800)
        page.run("document.title")

"""

import base64
import json
import os
import select
import subprocess
import time

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
]


class Browser:
    """A browser of its own, which leaves nothing outside of a folder, and ends with this program."""

    def __init__(self, program, folder):
        to_child, self.out = os.pipe()
        self.into, from_child = os.pipe()
        self.number = 0
        self.bytes = b""
        self.events = []

        def numbers():  # the browser reads from 3 and writes to 4
            a, b = os.dup(to_child), os.dup(from_child)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            [program, *FLAGS, "--user-data-dir=" + folder, "about:blank"],
            preexec_fn=numbers,
            close_fds=False,
            env=dict(os.environ, HOME=folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_child)
        os.close(from_child)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close")
        except (OSError, RuntimeError):
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def receive(self, seconds):
        end = time.monotonic() + seconds
        while b"\0" not in self.bytes:
            if not select.select([self.into], [], [], max(0, end - time.monotonic()))[0]:
                raise RuntimeError("the browser does not answer")
            more = os.read(self.into, 1 << 20)
            if not more:
                raise RuntimeError("the browser has ended")
            self.bytes += more
        message, self.bytes = self.bytes.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=None, seconds=60, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive(seconds)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError("%s: %s" % (method, answer["error"]))
                return answer["result"]
            self.events.append(answer)

    def open(self, path, width=1200, height=800, dark=False, touch=False, fragment=""):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        return Page(self, session, "file://" + path + fragment, width, height, dark, touch)


class Page:
    """One tab. What went wrong in it, and what it asked the network for, is in `errors` and `requests`."""

    def __init__(self, browser, session, address, width, height, dark, touch):
        self.browser, self.session = browser, session
        for domain in "Page", "Runtime", "Network", "Log":
            self.call(domain + ".enable")
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=touch,
        )
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}],
        )
        if touch:
            self.call("Emulation.setTouchEmulationEnabled", enabled=True)
        self.go(address)

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def go(self, address):
        self.call("Page.navigate", url=address)
        for _ in range(2000):
            if self.run("document.readyState") == "complete" and self.run("location.href") != "about:blank":
                break
            time.sleep(0.01)
        self.settle()

    def settle(self):
        """Returns after the next two frames have been drawn."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def run(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError("%s: %s" % (expression, result["exceptionDetails"]))
        return result["result"].get("value")

    def key(self, key, text=None):
        for kind in "keyDown", "keyUp":
            extra = {"text": text} if text and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **extra)
        self.settle()

    def click(self, x, y, count=1):
        for kind in "mouseMoved", "mousePressed", "mouseReleased":
            button = {} if kind == "mouseMoved" else {"button": "left", "clickCount": count}
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **button)
        self.settle()

    def tap(self, x, y):
        self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        self.settle()

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def own(self, method):
        return [
            event["params"]
            for event in self.browser.events
            if event.get("sessionId") == self.session and event.get("method") == method
        ]

    @property
    def errors(self):
        entries = [
            entry["entry"]["text"]
            for entry in self.own("Log.entryAdded")
            if entry["entry"]["level"] == "error"
        ]
        return entries + [str(event["exceptionDetails"]) for event in self.own("Runtime.exceptionThrown")]

    @property
    def requests(self):
        addresses = [event["request"]["url"] for event in self.own("Network.requestWillBeSent")]
        return [address for address in addresses if not address.startswith("file:")]
