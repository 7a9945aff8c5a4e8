#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""test_report.py <junit file of ctest ...>   The skipped tests with their reasons, and the last output of failed
ones."""
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

GTEST_SKIP = re.compile(r": Skipped\n(?P<reason>(?:.*\n)*?)\n*\[  SKIPPED \] (?P<name>\S+)")
TELLING = re.compile(r"FAILED|Failure|ERROR|Sanitizer|timed out|killed|Assertion|assertion")
PASSED = re.compile(r"\s*(ok|skipped|\[ +(RUN|OK) +\]) ")  # such a line tells nothing, whatever the case is called
FEW, AROUND = 80, 6  # lines: of a failed test, after one that shows the failure


def skips(case, text):
    if case.find("skipped") is not None:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        yield case.get("name"), lines[-1] if lines else "no reason printed"
    for match in GTEST_SKIP.finditer(text):
        yield f"{case.get('name')}: {match['name']}", " ".join(match["reason"].split())


def telling_lines(text):
    """Returns the lines that show the failure, with some that follow and with all that are indented below them (what a
    program said, a backtrace); the last lines if there are none."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    chosen, left, outer = [], 0, None  # outer: how far the line is indented that the following ones may be below
    for line in lines:
        if PASSED.match(line):
            left, outer = 0, None
            continue
        indent = len(line) - len(line.lstrip())
        if outer is not None and indent <= outer:
            outer = None
        left -= 1
        if TELLING.search(line):
            left = AROUND
            outer = indent if outer is None else outer
        if left > 0 or outer is not None:
            chosen.append(line)
    return chosen[:FEW] or lines[-FEW:]


def main():
    skipped, failed = [], []
    for path in filter(pathlib.Path.exists, map(pathlib.Path, sys.argv[1:])):
        for case in ElementTree.parse(path).iter("testcase"):
            text = case.findtext("system-out") or ""
            skipped += [(path.stem, name, reason) for name, reason in skips(case, text)]
            if case.find("failure") is not None:
                failed.append((path.stem, case.get("name"), telling_lines(text)))
    print("=== skipped tests")
    for where, name, reason in skipped:
        print(f"  {where}: {name}: {reason}")
    print(f"  {len(skipped)} skipped" if skipped else "  none")
    for where, name, lines in failed:
        print(f"\n=== {where}: {name} failed")
        for line in lines:
            print(f"  | {line}")


main()
