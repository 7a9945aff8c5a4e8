# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Reads the output of `ucx_perftest -f`."""
import re

ROW = re.compile(r"^(?:Final:)?[ \t]+(\d+)((?:[ \t]+[\d.]+){7})[ \t]*$", re.MULTILINE)
COLUMNS = ("median_us", "average_us", "overall_us", "average_mb", "overall_mb", "average_rate", "overall_rate")
COMPLAINTS = (r"\bERROR\b", r"\bWARN\b", r"(?i)failed", r"(?i)assert", r"==== backtrace")


def result(text):
    """{"iterations": n, "median_us": ...} of the last row, or None. MB are 2^20 bytes."""
    found = ROW.findall(text)
    if not found:
        return None
    iterations, rest = found[-1]
    return {"iterations": int(iterations), **dict(zip(COLUMNS, map(float, rest.split())))}
