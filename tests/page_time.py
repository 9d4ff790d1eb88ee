# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Opens a page of a flame graph again and again in a browser that runs already, for scripts/bench:

    page_time.py BROWSER PAGE [TIMES]

Prints for each time how many milliseconds after its call the graph was drawn.
"""

import os
import sys
import tempfile

from browser import Browser

program, path, *times = sys.argv[1:]
with tempfile.TemporaryDirectory() as scratch, Browser(program, scratch) as browser:
    page = browser.open(os.path.abspath(path))
    for _ in range(int(times[0]) if times else 10):
        page.call("Page.reload")
        drawn = None
        while drawn is None:
            drawn = page.run("performance.getEntriesByName('drawn')[0]?.startTime ?? null")
        print("%.0f" % drawn)
