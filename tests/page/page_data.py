# SPDX-License-Identifier: Apache-2.0
"""The data in a report, and what a check says."""
import json
import re


def check(truth, what):
    if not truth:
        raise AssertionError(what)


def data_of(path):
    text = open(path, encoding="utf-8").read()
    found = re.search(r'<script type="application/json" id="data">\n(.*?)</script>', text, re.S)
    return json.loads(found.group(1))
