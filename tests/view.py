# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the tests of pages share (viewer.py): a page as a person sees it, and what is found to be wrong."""

import os

ROW = 18
problems = []


def check(condition, *words):
    if not condition:
        problems.append(" ".join(str(word) for word in words))


def equal(what, is_, should):
    check(is_ == should, "%s: %r and not %r" % (what, is_, should))


class View:
    """A page of the viewer."""

    suffix = ".html"
    folder = pictures = None

    def __init__(self, browser, name, **how):
        self.page = browser.open(os.path.join(View.folder, name + self.suffix), **how)
        self.name = name

    def text(self, name):
        return self.page.run("document.getElementById('%s').textContent" % name)

    def box(self):
        return self.page.run(
            "(r => [r.x, r.y, r.width, r.height])(document.getElementById('canvas').getBoundingClientRect())"
        )

    def at(self, share, row):
        """Where a row of boxes is, at a share of the width."""
        x, y, width, _ = self.box()
        return x + share * width, y + row * ROW + ROW / 2

    def choose(self, name, value):
        self.page.run(
            "(e => { e.value = '%s'; e.dispatchEvent(new Event('change')); })(document.getElementById('%s'))"
            % (value, name)
        )
        self.page.settle()

    def search(self, text):
        self.page.run(
            "(e => { e.value = %r; e.dispatchEvent(new Event('input')); })(document.getElementById('search'))"
            % text
        )
        self.page.settle()

    def press(self, name):
        self.page.run("document.getElementById('%s').click()" % name)
        self.page.settle()

    def choose_function(self, name):
        buttons = "[...document.querySelectorAll('#functions-body button')]"
        self.page.run("%s.find(b => b.textContent === '%s').click()" % (buttons, name))
        self.page.settle()

    def focus(self):
        self.page.run("document.getElementById('canvas').focus()")

    def rows(self, body):
        """Of a table: the texts of its cells."""
        return self.page.run(
            "[...document.getElementById('%s').rows].map(r => [...r.cells].map(c => c.textContent))" % body
        )

    def fragment(self):
        return self.page.run("location.hash")

    def picture(self, name):
        if View.pictures:
            self.page.screenshot(os.path.join(View.pictures, name + ".png"))

    def check_paper(self, scrolled, body):
        """What a dark page prints is light, as a whole, and without what can only be clicked."""
        pdf = self.page.call("Page.printToPDF")["data"]
        check(len(pdf) > 1000, "nothing is printed")
        equal("after printing", self.page.run("document.documentElement.dataset.theme"), "dark")
        self.page.run("window.dispatchEvent(new Event('beforeprint'))")
        equal("on paper", self.page.run("document.documentElement.dataset.theme"), "light")
        self.page.call("Emulation.setEmulatedMedia", media="print")
        self.page.settle()
        hidden, whole, rows = self.page.run(
            """((element, body) => [getComputedStyle(document.getElementById("toolbar")).display,
            element.scrollHeight <= element.clientHeight + 1, body.getBoundingClientRect().bottom <=
            document.documentElement.scrollHeight])(document.getElementById('%s'), document.getElementById('%s'))"""
            % (scrolled, body)
        )
        equal("toolbar on paper", hidden, "none")
        check(whole and rows, "a table is cut off on paper")
        self.picture(self.name + "-paper")

    def check_quiet(self):
        equal(self.name + ": errors", self.page.errors, [])
        equal(self.name + ": asked the network for", self.page.requests, [])


def luminance(color):
    parts = [part / 255 for part in color]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a, b):
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


FILLS = """(canvas => {
    const context = canvas.getContext("2d"), found = new Set();
    for (let y = 1; y < canvas.height && y < 400; y += 18)
        for (let x = 0; x < canvas.width; x += 2)
            found.add([...context.getImageData(x, y, 1, 1).data.slice(0, 3)].join());
    return [...found];
})(document.getElementById("canvas"))"""
