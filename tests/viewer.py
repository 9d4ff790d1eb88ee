# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Uses the pages of flame graphs, and others (viewer_others.py), as a person would, in a real browser:

    viewer.py BROWSER FOLDER TEST [PICTURES]

FOLDER has the pages that the TEST looks at, as `profiles` makes them of made.h: NAME.html. With a folder for
PICTURES, screenshots are left there. Prints what is wrong; exit 1 then.
"""

import os
import re
import sys
import tempfile

import viewer_others
from browser import Browser
from view import FILLS, ROW, View, check, contrast, equal, problems


def test_figures(browser):
    view = View(browser, "shop")
    equal("title", view.text("title"), "python3 shop.py")
    check(
        "100 samples" in view.text("summary") and "1.01 s" in view.text("summary"),
        "summary",
        view.text("summary"),
    )
    check(
        "as lost: 3 samples." in view.text("notes") and "verified: 1 sample." in view.text("notes"),
        "notes",
        view.text("notes"),
    )
    check("total 100.0 % (100 samples, 1.01 s)" in view.text("status"), "status", view.text("status"))
    rows = {row[2]: row[:2] for row in view.rows("functions-body")}
    equal("raw_decode", rows["raw_decode/usr/lib/python3.12/json/decoder.py:345"], ["40.0 %", "40.0 %"])
    equal("a function with recursion", rows["total/srv/shop/tree.py:5"], ["27.0 %", "27.0 %"])
    equal("<module>", rows["<module>/srv/shop/main.py:1"], ["0.0 %", "95.0 %"])
    equal("first row", view.rows("functions-body")[0][2][:10], "raw_decode")
    view.page.run("document.querySelector('[data-sort=total]').click()")
    equal("first row by total", view.rows("functions-body")[0][2][:8], "<module>")
    check(
        "period ns" in view.text("metadata") and "99" in view.text("metadata"),
        "metadata",
        view.text("metadata"),
    )
    view.picture("light")
    view.check_quiet()


def test_zoom(browser):
    view = View(browser, "shop")
    view.page.click(*view.at(0.1, 3))  # JSONDecoder.decode
    check(
        view.text("status").startswith(
            "JSONDecoder.decode (/usr/lib/python3.12/json/decoder.py:338) · json\n"
            "total 50.0 % (50 samples, 0.505 s), 100.0 % of the zoom; self 10.0 %"
        ),
        "click",
        view.text("status"),
    )
    check("zoom=" in view.fragment(), "fragment", view.fragment())
    equal("table in the zoom", len(view.rows("functions-body")), 2)
    view.page.click(*view.at(0.95, 3))  # the box has all the width now
    check(view.text("status").startswith("JSONDecoder.decode"), "zoomed", view.text("status"))
    view.page.run("history.back()")
    view.page.settle()
    equal("after Back", view.fragment(), "")
    view.focus()
    for key in "ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight":
        view.page.key(key)
    check(view.text("status").startswith("total (/srv/shop/tree.py:8)"), "arrows", view.text("status"))
    view.page.key("Enter")
    check(
        view.text("status").startswith("total") and "zoom=" in view.fragment(), "Enter", view.text("status")
    )
    fragment = view.fragment()
    view.page.key("Escape")
    equal("after Escape", view.fragment(), "")
    view.page.click(*view.at(0.999, 9))  # nothing is there
    equal("beside the boxes", view.fragment(), "")
    view.check_quiet()
    again = View(browser, "shop", fragment=fragment)
    check(again.text("status").startswith("total (/srv/shop/tree.py:8)"), "shared", again.text("status"))


def test_search(browser):
    view = View(browser, "shop")
    view.search("total")
    equal("matched", view.text("matched"), "27.0 % (27 samples, 0.273 s) match")
    equal("rows that match", [row[2][:5] for row in view.rows("functions-body")], ["total"])
    view.picture("search")
    view.search("/^(serve|price)$/")
    equal("regex", view.text("matched"), "95.0 % (95 samples, 0.96 s) match")
    view.search("DECODER.PY")
    equal("file, other case", view.text("matched"), "50.0 % (50 samples, 0.505 s) match")
    view.search("/(/")
    equal("bad regex", view.text("matched"), "not a regular expression, or too costly")
    for costly in "/(a+)+$/", "/" + "[a-z]*" * 9 + "0/", "/" + "a?" * 30 + "a" * 30 + "/", "/" + "(a|b)" * 30 + "/":
        view.search(costly)
        equal("costly regex", view.text("matched"), "not a regular expression, or too costly")
    view.search("/^.*/tree.*[.]py$|^(?:se)?rve\\?$/")
    equal("another regex", view.text("matched"), "27.0 % (27 samples, 0.273 s) match")
    view.search("nothing of that name")
    equal("no match", view.text("matched"), "0.0 % (0 samples, 0 s) match")
    check("q=nothing" in view.fragment(), "fragment", view.fragment())
    view.search("")
    equal("no search", (view.text("matched"), view.fragment()), ("", ""))
    view.focus()
    view.page.key("/")
    equal("/", view.page.run("document.activeElement.id"), "search")
    view.check_quiet()


def test_views(browser):
    view = View(browser, "shop")
    view.press("inverted")
    equal(
        "pressed", view.page.run("document.getElementById('inverted').getAttribute('aria-pressed')"), "true"
    )
    view.page.click(*view.at(0.1, 1))
    check(
        view.text("status").startswith("raw_decode") and "total 40.0 %" in view.text("status"),
        "callers",
        view.text("status"),
    )
    view.page.click(*view.at(0.1, 2))
    check(
        view.text("status").startswith("JSONDecoder.decode") and "total 40.0 %" in view.text("status"),
        "its caller",
        view.text("status"),
    )
    check("self" not in view.text("status"), "self among callers", view.text("status"))
    equal("colours of callers", view.page.run("document.getElementById('color').disabled"), True)
    view.search("total")
    equal("matched among callers", view.text("matched"), "27.0 % (27 samples, 0.273 s) match")
    view.picture("callers")
    view.search("")
    view.press("inverted")
    view.press("flipped")
    x, y, _, height = view.box()
    view.page.click(x + 5, y + height - 1.5 * ROW)
    check(view.text("status").startswith("<module>"), "flames", view.text("status"))
    view.picture("flames")
    view.press("flipped")
    view.choose("by", "function")
    view.page.click(*view.at(0.1, 2))
    check(
        "serve (/srv/shop/main.py:60)" in view.text("status") and "total 82.0 %" in view.text("status"),
        "functions",
        view.text("status"),
    )
    view.choose("color", "self")
    check("by=function" in view.fragment() and "color=self" in view.fragment(), "fragment", view.fragment())
    view.picture("self")
    view.check_quiet()


def test_lines(browser):
    view = View(browser, "shop")
    view.choose_function("serve")
    equal("lines of serve", view.rows("lines-body"), [["61", "0.0 %", "75.0 %"], ["64", "0.0 %", "7.0 %"]])
    equal("title", view.text("lines-title"), "Lines of serve /srv/shop/main.py:60")
    view.picture("lines")
    view.press("lines-close")
    equal("closed", view.page.run("document.getElementById('lines').hidden"), True)
    view.choose_function("total")
    equal(
        "lines with recursion", view.rows("lines-body"), [["6", "20.0 %", "20.0 %"], ["8", "7.0 %", "27.0 %"]]
    )
    view.focus()
    view.page.key("Escape")
    view.page.key("ArrowDown")
    view.page.key("ArrowDown")
    view.page.key("l")
    check(view.text("lines-title").startswith("Lines of serve"), "key L", view.text("lines-title"))
    view.search("price")
    view.page.run("(b => { b.focus(); b.click(); })(document.querySelector('#functions-body button'))")
    view.page.settle()
    equal("an approximate line", view.rows("lines-body"), [["~14", "13.0 %", "13.0 %"]])
    equal(
        "focus in the table",
        view.page.run("document.activeElement.textContent + document.activeElement.ariaPressed"),
        "pricetrue",
    )
    view.check_quiet()


def test_addresses(browser):
    for fragment in "sort=x&zoom=-1&scope=1.5", "sort=__proto__&zoom=1.5&scope=-7", "zoom=1e9&scope=1e9&fn=x":
        view = View(browser, "shop", fragment="#" + fragment)
        check("total 100.0 % (100 samples" in view.text("status"), fragment, view.text("status"))
        check(view.rows("functions-body")[0][2].startswith("raw_decode"), fragment, "rows")
        view.check_quiet()
    equal(
        "Of, of one process",
        view.page.run("getComputedStyle(document.getElementById('scope').parentElement).display"),
        "none",
    )


def test_threads(browser):
    view = View(browser, "threads")
    options = view.page.run("[...document.getElementById('scope').options].map(o => o.textContent)")
    equal("title", view.text("title"), "python3 shop.py · 3 processes")
    equal(
        "scopes",
        (len(options), options[:3]),
        (12, ["all", "all, merged", "process 102 (python3 worker.py), 48.0 %"]),
    )
    view.choose("scope", view.page.run("document.getElementById('scope').options[2].value"))
    check("total 48.0 % (48 samples" in view.text("status"), "one process", view.text("status"))
    view.choose("scope", "-1")
    view.page.click(*view.at(0.1, 1))
    check(
        view.text("status").startswith("<module>") and "total 100.0 %" in view.text("status"),
        "merged",
        view.text("status"),
    )
    view.press("inverted")
    view.choose("by", "function")
    view.page.click(*view.at(0.1, 3))
    check(
        view.text("status").startswith("<module>") and "total 64.0 %" in view.text("status"),
        "merged callers",
        view.text("status"),
    )
    view.picture("threads")
    view.check_quiet()
    view = View(browser, "crowd")
    equal("so many threads", view.page.run("document.getElementById('scope').value"), "-1")
    check("all are merged" in view.text("notes"), "notes", view.text("notes"))
    view.page.click(*view.at(0.5, 2))
    check(view.text("status").startswith("serve (/srv/shop/main.py"), "merged at once", view.text("status"))
    view.choose("scope", "0")
    equal("all of so many", view.fragment(), "#scope=0")
    view.check_quiet()


def test_waits(browser):
    """Each reason for a wait has a colour of its own, which a legend names, and none is that of code."""
    shares = {"sleep": 30, "lock": 20, "I/O": 15, "": 11, "waits for the GIL": 10, "child process": 6}
    shares.update({"waits for a CPU": 5, "system call": 2, "GC": 1})
    for dark in False, True:
        view = View(browser, "waits", dark=dark)
        width, fills, until = view.box()[2], {}, 0
        for name, share in shares.items():
            until += share
            x = int(until * width / 100) - 3
            fills[name] = tuple(
                view.page.run(
                    "[...document.getElementById('canvas').getContext('2d')"
                    ".getImageData(%d, %d, 1, 1).data.slice(0, 3)]" % (x, 3 * ROW + 2)
                )
            )
        equal("different colours", len(set(fills.values())), len(fills))
        text = (0xF6, 0xF6, 0xFA) if dark else (0x11, 0x11, 0x14)
        for name, fill in fills.items():
            check(contrast(fill, text) >= 4.5, name, fill, "contrast %.1f" % contrast(fill, text))
        for name, color in view.page.run(
            """[...document.querySelectorAll("#reasons i")].map(i =>
            [i.nextSibling.textContent, getComputedStyle(i).backgroundColor.match(/[\\d.]+/g).map(Number)])"""
        ):
            near = name in fills and all(abs(a - b) <= 1 for a, b in zip(color, fills[name]))
            check(near, "legend:", name, color, "and not", fills.get(name))
        equal("legend", view.text("reasons").count("sleep"), 1)
        check(re.search(r"total 100[.]0 % \([\d.,]+ s\);", view.text("status")), "time", view.text("status"))
        view.picture("waits-dark" if dark else "waits-light")
        view.choose("color", "self")
        equal("legend of self time", view.page.run("document.getElementById('reasons').hidden"), True)
        view.check_quiet()
    view.choose("color", "module")
    view.press("flipped")
    view.page.call("Emulation.setEmulatedMedia", features=[{"name": "forced-colors", "value": "active"}])
    boxes, (pressed, other) = view.page.run(
        """(fill => [[...document.querySelectorAll("#reasons i")].map(fill),
        ["flipped", "inverted"].map(name => fill(document.getElementById(name)))])
        (element => getComputedStyle(element).backgroundColor)"""
    )
    check(len(set(boxes)) > 5, "a legend in the reader's colours:", boxes)
    check(pressed != other, "a pressed button in the reader's colours:", pressed)
    view.page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    view.check_paper("tables", "functions-body")
    view = View(browser, "shop")
    equal("legend without reasons", view.page.run("document.getElementById('reasons').hidden"), True)


def test_hostile(browser):
    for dark in False, True:
        view = View(browser, "hostile", dark=dark)
        view.choose("by", "function" if dark else "line")
        for box in range(17):
            view.page.click(*view.at(0.03 + box * 0.0568, 2))
            view.press("reset")
        equal("a script of theirs ran", view.page.run("typeof window.broken"), "undefined")
        equal("elements", view.page.run("[document.scripts.length, document.images.length]"), [1, 0])
        equal("title", view.page.run("document.title"), "</title><script>window.broken = 1</script>")
        names = [row[2] for row in view.rows("functions-body")]
        for name in (
            "</script><script>window.broken = 1</script>",
            "\\x1b[31mred\\x1b[0m\\x07\\x08\\x0d\\x0a\\x09",
            "\\u202ereversed\\u202c\\u2066",
            "\\xff\\xfe not UTF-8 \\xc0\\x80",
            "[unnamed]",
            "__proto__",
            "имя 名前 🐍 e\u0301",
            "@PROFILE@",
            "L" * 10000,
        ):
            check(any(text.startswith(name) for text in names), "no function", name[:60])
        check(
            not any(
                re.search("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]", text)
                for text in names
            ),
            "a control character is shown as it is",
        )
        view.search("L" * 10000)
        check("match" in view.text("matched"), "search of a long name")
        view.picture("hostile-dark" if dark else "hostile")
        view.check_quiet()


def test_many(browser):
    view = View(browser, "100000")
    total = view.page.run("document.getElementById('summary').textContent")
    check(total.startswith("1,094,124 samples"), "summary", total)
    check("total 100.0 % (1,094,124 samples" in view.text("status"), "status", view.text("status"))
    view.picture("many")
    view.page.click(*view.at(0.01, 3))
    view.search("method_268")
    check(re.match(r"\d+\.\d % \(\d", view.text("matched")), "matched", view.text("matched"))
    view.search("")
    view.press("inverted")
    check("total 100.0 % (1,094,124 samples" in view.text("status"), "callers", view.text("status"))
    view.picture("many-callers")
    equal("rows", len(view.rows("functions-body")), 200)
    view.check_quiet()


def test_pruned(browser):
    check(os.path.getsize(os.path.join(View.folder, "600000.html")) < 20e6, "the file is too large")
    view = View(browser, "600000")
    check("total 100.0 % (6,843,846 samples" in view.text("status"), "status", view.text("status"))
    check(
        re.search(
            r"Summed up as \[pruned\].*: \d+\.\d % \([\d,]+ samples.*of [\d,]+ stacks", view.text("notes")
        ),
        "notes",
        view.text("notes"),
    )
    view.search("/^\\[pruned\\]$/")
    pruned = view.page.run(
        "[...document.querySelectorAll('#metadata dt')].find(e => e.textContent === 'pruned')"
        ".nextSibling.textContent"
    )
    check(
        "({:,} samples,".format(int(pruned)) in view.text("matched"),
        pruned,
        "are pruned, and found",
        view.text("matched"),
    )
    view.check_quiet()


def test_deep(browser):
    view = View(browser, "deep")
    equal("a recursion", view.rows("functions-body"), [["100.0 %", "100.0 %", "down/srv/shop/deep.py:3"]])
    view.page.run("document.getElementById('scroller').scrollTop = 1e9")
    view.page.settle()
    view.page.click(*view.at(0.0001, 20))
    status = view.text("status")
    check(re.match(r"down .*\n+total 0\.\d+ % \(\d+ samples?, ", status), "at the bottom", status)
    check("100.0 % of the zoom" in status, "zoomed", status)
    view.search("deep.py")
    equal("matched", view.text("matched"), "100.0 % (20,000 samples, 202.02 s) match")
    view.choose_function("down")
    equal("lines", [row[0] for row in view.rows("lines-body")], ["4"])
    view.press("reset")
    view.press("inverted")
    equal("callers", view.rows("functions-body"), [["100.0 %", "100.0 %", "down/srv/shop/deep.py:3"]])
    view.press("flipped")
    view.check_quiet()


def test_one(browser):
    view = View(browser, "tiny")
    view.page.click(*view.at(0.5, 1))
    check(
        view.text("status").startswith("only (one.py:1)") and "(1 sample, 0.01 s)" in view.text("status"),
        "status",
        view.text("status"),
    )
    view.press("inverted")
    view.press("flipped")
    view.check_quiet()


def test_small(browser):
    for name in "shop", "hostile", "100000":
        for width, height in (640, 480), (360, 640):
            view = View(browser, name, width=width, height=height, touch=width < 400)
            equal(
                "%s at %d: wider than the window" % (name, width),
                view.page.run("document.documentElement.scrollWidth <= innerWidth"),
                True,
            )
            check(view.box()[2] > 0.9 * width, "the graph has", view.box()[2], "of", width)
            view.picture("%s-%d" % (name, width))
            view.check_quiet()
    view = View(browser, "shop", width=800, height=360, touch=True)
    check(view.box()[3] > 0.7 * 360, "on its side, the graph has", view.box()[3])
    equal(
        "what stays over it", view.page.run("getComputedStyle(document.querySelector('footer')).position"), "static"
    )
    check(
        "pinch-zoom" in view.page.run("getComputedStyle(document.getElementById('canvas')).touchAction"), "no zoom by touch"
    )
    view.picture("low")
    view = View(browser, "shop", width=360, height=640, touch=True)
    view.page.run("document.getElementById('graph').scrollIntoView()")
    view.page.settle()
    view.page.tap(*view.at(0.1, 1))
    check(view.text("status").startswith("<module>"), "first touch", view.text("status"))
    equal("after the first touch", view.fragment(), "")
    view.page.tap(*view.at(0.1, 1))
    check("zoom=" in view.fragment(), "second touch", view.fragment())
    view.check_quiet()


def test_themes(browser):
    for dark in False, True:
        view = View(browser, "hostile", dark=dark)
        theme = "dark" if dark else "light"
        equal("theme", view.page.run("document.documentElement.dataset.theme"), theme)
        text = (0xF6, 0xF6, 0xFA) if dark else (0x11, 0x11, 0x14)
        skipped = {(0x16, 0x17, 0x1B), (0xD2, 0xE3, 0xFC)} if dark else {(255, 255, 255), (0x00, 0x25, 0x6E)}
        for color in "module", "self":
            view.choose("color", color)
            fills = [tuple(int(part) for part in fill.split(",")) for fill in view.page.run(FILLS)]
            fills = [fill for fill in fills if fill not in skipped]
            check(len(fills) > (12 if color == "module" else 1), color, "has only", len(fills), "colours")
            for fill in fills:
                check(contrast(fill, text) >= 4.5, theme, color, fill, "contrast %.1f" % contrast(fill, text))
        view.choose("theme", "light" if dark else "dark")
        equal(
            "switched", view.page.run("document.documentElement.dataset.theme"), "light" if dark else "dark"
        )
        for name in "text", "soft":
            colors = view.page.run(
                "(s => [s.getPropertyValue('--%s'), s.getPropertyValue('--page'), "
                "s.getPropertyValue('--panel')])(getComputedStyle(document.documentElement))" % name
            )
            own, *behind = [tuple(bytes.fromhex(color.strip()[1:])) for color in colors]
            check(all(contrast(own, color) >= 4.5 for color in behind), name, colors)
        view.check_quiet()


def test_labels(browser):
    view = View(browser, "shop")
    without = view.page.run(
        """[...document.querySelectorAll("input, select, button, canvas")].filter(e =>
        !(e.labels?.length || e.getAttribute("aria-label") || e.textContent.trim())).map(e => e.id)"""
    )
    equal("without a label", without, [])
    equal(
        "not in the order of the keyboard",
        view.page.run("document.querySelectorAll('[tabindex]:not([tabindex=\"0\"])').length"),
        0,
    )


_, program, folder, wanted, *more = sys.argv
View.folder = folder = os.path.abspath(folder)
View.pictures = more[0] if more else None
with tempfile.TemporaryDirectory(dir=folder) as scratch, Browser(program, scratch) as the_browser:
    tests = {**globals(), **vars(viewer_others)}
    tests["test_" + wanted](the_browser)
for problem in problems:
    print(problem)
sys.exit(1 if problems else 0)
