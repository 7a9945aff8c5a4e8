#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The house rules that no compiler knows. Each complaint says what to do instead.

tidy.py [path ...]  checks these files or folders (default: the whole repository). A line may be excused with
`tidy: allow(<rule>) <reason>` in a comment on it or on the line before.
"""
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CPP = {".h", ".cpp"}
NO_SPDX = {".json", ".md", ".txt", ".toml", ".svg", ".png", ".pcap", ".bin", ".gitignore", ""}
NEEDS_SPDX_ANYWAY = {"CMakeLists.txt", "packages.txt", "layers.txt", ".clang-format", ".clang-tidy"}
SPDX = "SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only"
NOT_OURS = {".git", "build", "__pycache__", ".cache", "results"}
DATA_FOLDERS = ("fuzz/corpus/", "vectors/", "LICENSES/", "tests/data/")
LARGEST_BLOB = 256 * 1024
GUARD = re.compile(r"^#pragma once$|^#ifndef \w+_H_?$", re.MULTILINE)  # the second for headers shared with C
ALLOW = re.compile(r"tidy: allow\((\w+)\) \S")

# rule -> (files it concerns, what it looks for, what to do instead)
ANY_CPP = r"\.(h|cpp)$"
LINE_RULES = {
    "sleep": (r"(_test\.cpp|_fuzz\.cpp|^tests/.*\.(h|cpp|py|sh))$",
              r"\b(sleep_for|sleep_until|usleep|nanosleep|time\.sleep)\s*\(|\bsleep\s*\(\s*\w|^\s*sleep [\d.]",
              "use virtual time, or wait for the event itself with a deadline"),
    "todo": (r"\.(h|cpp|py|sh|cmake)$|CMakeLists\.txt$|^scripts/[^.]*$", r"\b(TODO|FIX" r"ME|XX" r"X|HA" r"CK)\b",
             "do it now, or describe the limit in the documentation"),
    "dead_code": (ANY_CPP, r"^\s*//\s*(?!NOLINT)([\w:<>*&.\->\[\]]+\s?){1,3}(\([^()]*\)\s*;|=[^=].*;|\(.*\)\s*\{)$|^\s*#\s*if 0",
                  "delete commented-out code; git remembers it"),
    "assert": (ANY_CPP, r"(?<![\w_])assert\s*\(|<cassert>|\bNDEBUG\b", "use IB_ASSERT, which is always on"),
    "namespace": (r"\.h$", r"^\s*using namespace", "name what is used; a header must not open a namespace for others"),
    "header": (ANY_CPP, r"^\s*#\s*include <(expected|format|print|source_location|regex|bits/.*)>",
               "not in clang 14 or too heavy: use base/result.h, fmt, std::string_view"),
    "merge": (r"", r"^(<<<<<<<|>>>>>>>) ", "finish the merge"),
}


def files(paths):
    for top in map(pathlib.Path, paths or [ROOT]):
        for folder, folders, names in os.walk(top.resolve()) if top.is_dir() else [(top.resolve().parent, [], [top.name])]:
            folders[:] = sorted(f for f in folders if f not in NOT_OURS)
            for path in (pathlib.Path(folder, name) for name in sorted(names)):
                if path.is_file() and not path.is_symlink():
                    yield str(path.relative_to(ROOT)), path


def whole_file_complaints(name, path, lines):
    is_script = path.suffix == "" and name.startswith(("scripts/", ".ci/"))
    if path.name in NEEDS_SPDX_ANYWAY or path.suffix not in NO_SPDX or is_script:
        if not any(SPDX in line for line in lines[:3]):
            yield 1, "spdx", f"the first lines must contain: {SPDX}"
    if path.suffix in CPP | {".py"}:
        limit = 1000 if "_test" in path.stem or name.startswith("tests/") else 500
        if len(lines) > limit:
            yield limit, "length", f"{len(lines)} lines, at most {limit}: split it by what changes together"
    if path.suffix in CPP and not re.fullmatch(r"[a-z0-9_]+", path.stem):
        yield 1, "name", "name the file in snake_case"
    if path.suffix == ".h" and not name.startswith("include/") and not GUARD.search("\n".join(lines)):
        yield 1, "pragma", "begin the header with #pragma once"


def line_complaints(name, lines):
    for rule, (concerned, pattern, advice) in LINE_RULES.items():
        if not re.search(concerned, name) or name == "scripts/tidy.py":
            continue
        wanted = re.compile(pattern)
        for number, line in enumerate(lines, 1):
            if wanted.search(line):
                yield number, rule, f"'{line.strip()[:60]}': {advice}"


def excused(lines, number, rule):
    return any(match and match[1] == rule for match in map(ALLOW.search, lines[max(0, number - 2):number]))


def main():
    count = 0
    for name, path in files(sys.argv[1:]):
        if name.startswith(DATA_FOLDERS) or "/vectors/" in name:
            continue
        if path.stat().st_size > LARGEST_BLOB:
            print(f"{name}: {path.stat().st_size} bytes: keep large data out of the repository, generate it")
            count += 1
            continue
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        lines = text.splitlines()
        for number, rule, advice in (*whole_file_complaints(name, path, lines), *line_complaints(name, lines)):
            if not excused(lines, number, rule):
                print(f"{name}:{number}: [{rule}] {advice}")
                count += 1
    print(f"house rules: {count} complaints" if count else "house rules: ok")
    return bool(count)


sys.exit(main())
