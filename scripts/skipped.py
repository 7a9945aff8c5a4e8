#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Lists the tests that were skipped and why, from the junit files of ctest."""
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

GTEST_SKIP = re.compile(r": Skipped\n(?P<reason>(?:.*\n)*?)\n*\[  SKIPPED \] (?P<name>\S+)")


def skips(path):
    for case in ElementTree.parse(path).iter("testcase"):
        text = case.findtext("system-out") or ""
        if case.find("skipped") is not None:
            lines = [line.strip() for line in text.splitlines() if line.strip()]
            yield case.get("name"), lines[-1] if lines else "no reason printed"
        for match in GTEST_SKIP.finditer(text):
            yield f"{case.get('name')}: {match['name']}", " ".join(match["reason"].split())


def main():
    count = 0
    for path in map(pathlib.Path, sys.argv[1:]):
        if not path.exists():
            continue
        for name, reason in skips(path):
            print(f"  {path.stem}: {name}: {reason}")
            count += 1
    print(f"  {count} skipped" if count else "  none")


main()
