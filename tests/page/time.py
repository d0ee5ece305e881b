#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""time.py REPORT.html [TIMES]: how long a headless Chromium takes to open a report, from the navigation to the frame that
shows it: each time in a browser of its own, and the median. A measurement, and no test."""
import os
import shutil
import statistics
import sys

from browser import Browser


def opening_ms(chromium, path):
    browser = Browser(chromium)
    try:
        browser.open(path)
        browser.settle()
        return browser.value("performance.now()")
    finally:
        browser.close()


def main():
    path, times = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 5
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if not chromium:
        sys.exit("no Chromium is installed")
    took = [opening_ms(chromium, path) for _ in range(times)]
    print(f"{os.path.getsize(path) / 1e6:.1f} MB, ms: {' '.join(f'{ms:.0f}' for ms in took)}; "
          f"median {statistics.median(took):.0f}")


if __name__ == "__main__":
    main()
