# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Tests of the heatmap and of the page of two profiles, for viewer.py."""

import os
import re

from view import FILLS, View, check, contrast, equal


class Heatmap(View):
    """A page of the heatmap."""

    suffix = ".heatmap.html"

    def choose_file(self, name):
        buttons = "[...document.querySelectorAll('#files-body button')]"
        self.page.run("%s.find(b => b.textContent === '%s').click()" % (buttons, name))
        self.page.settle()

    def code(self):
        """Of each line that is shown: number, self, total, code; of others what they say."""
        return self.rows("code")

    def line(self, number):
        return next(row for row in self.code() if row[0] == number)

    def focused(self):
        return self.page.run("document.activeElement.dataset.line ?? document.activeElement.textContent")


def test_heatmap_figures(browser):
    view = Heatmap(browser, "shop")
    equal("title", view.text("title"), "python3 shop.py")
    check("100 samples · 1.01 s of CPU time" in view.text("summary"), "summary", view.text("summary"))
    rows = view.rows("lines-body")
    equal("the hottest line", rows[0], ["40.0 %", "40.0 %", "json/decoder.py:353raw_decode"])
    equal("the next one", rows[1], ["20.0 %", "20.0 %", "shop/tree.py:6total"])
    files = view.rows("files-body")
    equal("hottest file", files[0][:2], ["50.0 %", "50.0 %"])
    equal("a file with recursion", files[1], ["27.0 %", "27.0 %", "shop/tree.py/srv/shop/tree.py"])
    equal("in no line", view.rows("elsewhere-body"), [["3.0 %", "[no Python frames]"]])
    check("was not read" in view.text("file-note"), "without code", view.text("file-note"))
    equal("its lines", view.line("353"), ["353", "40.0 %", "40.0 %", "in raw_decode"])
    view.choose_file("shop/main.py")
    equal("note", view.page.run("document.getElementById('file-note').hidden"), True)
    equal("code, after a tab", view.line("61"), ["61", "0.0 %", "75.0 %", "        serve(queue)"])
    equal("code that is markup", view.line("90"), ["90", "0.0 %", "95.0 %", 'while "<b>":'])
    equal("a line without samples", view.line("62"), ["62", "", "", "line 62"])
    equal("folded", view.code()[0], ["52 lines without samples: 1 to 52"])
    view.page.run("document.querySelector('#code .gap button').click()")
    equal("unfolded", view.code()[0], ["1", "", "", "line 1"])
    view.choose_file("shop/tree.py")
    check("changed after the process began" in view.text("file-note"), "changed", view.text("file-note"))
    view.choose_file("shop/price.py")
    check("may not read" in view.text("file-note"), "denied", view.text("file-note"))
    equal("a line that is near", view.code(), [["~14", "13.0 %", "13.0 %", "in price"]])
    view.choose_file("ink/page.py")
    equal("not known", view.code()[-2:], [["Line not known:"], ["?", "7.0 %", "7.0 %", "in render"]])
    view.search("total")
    equal("search of a function", [row[2][:14] for row in view.rows("files-body")], ["shop/tree.py/s"])
    view.search("/main|price/")
    equal("search of files", len(view.rows("files-body")), 2)
    view.search("(")
    equal("none", view.text("files-rest"), "None of that name.")
    view.search("")
    view.choose_file("shop/main.py")
    view.page.run("document.activeElement.blur()")
    view.page.key("h")
    equal("H", view.focused(), "90")
    equal("fragment", view.fragment(), "#file=4&line=90")
    view.page.key("p")
    view.page.key("p")
    equal("P", view.focused(), "61")
    check("/srv/shop/main.py:61 in serve\nself 0.0 % (0 samples" in view.text("status"), "status", view.text("status"))
    view.page.key("n")
    equal("N", view.focused(), "64")
    view.page.key("Escape")
    equal("Escape", view.focused(), "shop/main.py")
    view.picture("heatmap")
    view.check_quiet()
    again = Heatmap(browser, "shop", fragment="#file=1&line=6")
    equal("shared", (again.text("file-title"), again.focused()), ("/srv/shop/tree.py", "6"))
    again.check_quiet()
    for fragment in "#file=-1&line=x", "#file=1e9&line=1e99", "#file=__proto__":
        again = Heatmap(browser, "shop", fragment=fragment)
        equal(fragment, again.text("file-title"), "/usr/lib/python3.12/json/decoder.py")
        again.check_quiet()


def test_heatmap_hostile(browser):
    view = Heatmap(browser, "hostile", dark=True)
    seen = ""
    for number in range(len(view.rows("files-body"))):
        view.page.run("document.querySelectorAll('#files-body button')[%d].click()" % number)
        seen += "".join("".join(row) + "\n" for row in view.code())
    equal("a script of theirs ran", view.page.run("typeof window.broken"), "undefined")
    equal("elements", view.page.run("[document.scripts.length, document.images.length]"), [1, 0])
    for text in (
        "</script><script>window.broken = 1</script>",
        "\u241b[31mred\u241b[0m\u2407\u2408",
        "\u27e8U+202E\u27e9reversed\u27e8U+202C\u27e9\u27e8U+2066\u27e9",
        "\ufffd\ufffd not UTF-8 \ufffd\ufffd",
        "L" * 400 + " \u2026 9600 more bytes",
        "@PROFILE@",
    ):
        check(text in seen, "no line", text[:60])
    check(
        not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]", seen),
        "a control character is shown as it is",
    )
    view.picture("heatmap-hostile")
    view.check_quiet()


HEATMAP_COLORS = """[...document.querySelectorAll("#code td")].filter(e => e.textContent).map(e => {
    const style = getComputedStyle(e), parts = text => text.match(/[\\d.]+/g).map(Number);
    return [parts(style.color), parts(style.backgroundColor), parts(getComputedStyle(document.body).backgroundColor)];
})"""


def test_heatmap_themes(browser):
    for dark in False, True:
        view = Heatmap(browser, "shop", dark=dark)
        equal("theme", view.page.run("document.documentElement.dataset.theme"), "dark" if dark else "light")
        for name in "json/decoder.py", "shop/tree.py":
            view.choose_file(name)
            for text, behind, page in view.page.run(HEATMAP_COLORS):
                alpha = behind[3] if len(behind) > 3 else 1
                mixed = tuple(alpha * a + (1 - alpha) * b for a, b in zip(behind, page))
                check(contrast(text[:3], mixed) >= 4.5, dark, text, "on", mixed, "%.1f" % contrast(text[:3], mixed))
        view.picture("heatmap-dark" if dark else "heatmap-light")
        view.choose("theme", "light" if dark else "dark")
        equal("switched", view.page.run("document.documentElement.dataset.theme"), "light" if dark else "dark")
        view.check_quiet()
    without = view.page.run(
        """[...document.querySelectorAll("input, select, button")].filter(e =>
        !(e.labels?.length || e.getAttribute("aria-label") || e.textContent.trim())).map(e => e.id)"""
    )
    equal("without a label", without, [])
    Heatmap(browser, "shop", dark=True).check_paper("file", "code")


def test_heatmap_small(browser):
    for name, width, height in ("100000", 1200, 800), ("shop", 640, 480), ("shop", 360, 640):
        view = Heatmap(browser, name, width=width, height=height, touch=width < 400)
        equal(
            "%s at %d: wider than the window" % (name, width),
            view.page.run("document.documentElement.scrollWidth <= innerWidth"),
            True,
        )
        view.picture("heatmap-%s-%d" % (name, width))
        view.check_quiet()


def test_diff(browser):
    view = View(browser, "diff")
    check(view.text("title").endswith("shop.pbp → " + os.path.join(View.folder, "changed.pbp")), view.text("title"))
    summary = view.text("summary")
    check("base: python3 shop.py · 100 samples · in 1.5 s · 673 ms a second\nnew: " in summary, "summary", summary)
    check("Not shown of base, as lost: 3 samples." in view.text("notes"), "notes", view.text("notes"))
    rows = view.rows("functions-body")
    equal("first row", rows[0], ["+22.0", "+22.0", "cached/srv/shop/cache.py:2"])
    changes = {row[2].split("/")[0]: row[:2] for row in rows}
    equal("raw_decode", changes["raw_decode"], ["\u221220.0", "\u221220.0"])
    equal("total", changes["total"], ["+18.0", "+18.0"])
    equal("price", changes["price"], ["\u221213.0", "\u221213.0"])
    equal("<module>", changes["<module>"], ["0.0", "+2.0"])
    equal("controls of a run", view.page.run("document.getElementById('by').parentElement.hidden"), True)
    equal("legend", view.page.run("document.getElementById('legend').hidden"), False)
    view.page.click(*view.at(0.5, 3))  # behind JSONDecoder.decode
    check(
        view.text("status").startswith(
            "total (/srv/shop/tree.py:5) · shop\ntotal +20.0 points: base 25.0 % (168.4 ms a second), "
            "new 45.0 % (303.0 ms a second)"
        ),
        "status",
        view.text("status"),
    )
    check("zoom=" in view.fragment(), "fragment", view.fragment())
    view.press("reset")
    view.choose("width", "base")
    view.page.click(*view.at(0.1, 3))
    check(view.text("status").startswith("JSONDecoder.decode"), "width of the base", view.text("status"))
    view.press("reset")
    view.choose("width", "new")
    view.search("cached")
    check(view.text("matched").startswith("22.0 % match"), "matched", view.text("matched"))
    view.search("")
    view.press("inverted")
    view.page.click(*view.at(0.001, 1))
    check(
        view.text("status").startswith("total") and "total +18.0 points" in view.text("status"),
        "callers",
        view.text("status"),
    )
    view.check_quiet()
    with open(os.path.join(View.folder, "diff.html"), encoding="utf-8") as file:
        page = file.read().replace('"pruned": 0, "pruned_stacks": 0', '"pruned": 5, "pruned_stacks": 7')
    with open(os.path.join(View.folder, "less.html"), "w", encoding="utf-8") as file:
        file.write(page)
    less = View(browser, "less").text("notes")
    check(re.search(r" as \[pruned\].* [\d.]+ % of both, 7 stacks", less), "pruned", less)
    for dark in False, True:
        view = View(browser, "diff", dark=dark)
        text = (0xF6, 0xF6, 0xFA) if dark else (0x11, 0x11, 0x14)
        skipped = {(0x16, 0x17, 0x1B), (0xD2, 0xE3, 0xFC)} if dark else {(255, 255, 255), (0x00, 0x25, 0x6E)}
        fills = [tuple(int(part) for part in fill.split(",")) for fill in view.page.run(FILLS)]
        fills = [fill for fill in fills if fill not in skipped]
        check(any(r > b + 20 for r, _, b in fills) and any(b > r + 20 for r, _, b in fills), "no red or no blue", fills)
        for fill in fills:
            check(contrast(fill, text) >= 4.5, fill, "contrast %.1f" % contrast(fill, text))
        view.picture("diff-dark" if dark else "diff-light")
        view.check_quiet()
