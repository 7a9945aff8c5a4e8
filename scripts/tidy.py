#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The house rules that no compiler checks. Each complaint has the remedy.

tidy.py [path ...]  checks these files or folders (default: the whole repository). A line may be excused with
`tidy: allow(<rule>) <reason>` in a comment on it or on the line before.
"""
import collections
import io
import os
import pathlib
import re
import sys
import tokenize

ROOT = pathlib.Path(__file__).resolve().parent.parent
CPP = {".h", ".cpp"}
NO_SPDX = {".json", ".txt", ".toml", ".svg", ".png", ".pcap", ".bin", ".gitignore", ""}
NEEDS_SPDX_ANYWAY = {"CMakeLists.txt", "packages.txt", "layers.txt", ".clang-format", ".clang-tidy"}
SPDX = "SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only"
NOT_OURS = {".git", "build", "__pycache__", ".cache", "results"}
DATA_FOLDERS = ("fuzz/corpus/", "vectors/", "LICENSES/", "tests/data/")
LARGEST_BLOB = 256 * 1024
MOST_FILES = 40
HASH_COMMENTS, HASH_NAMES = {".cmake", ".sh", ".toml", ".in"}, {"CMakeLists.txt", "packages.txt", "layers.txt", "Containerfile"}
GUARD = re.compile(r"^#pragma once$|^#ifndef \w+_H_?$", re.MULTILINE)  # the second for headers shared with C
ALLOW = re.compile(r"tidy: allow\((\w+)\) \S")

# rule -> (files it concerns, pattern it looks for, remedy)
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

# Documents. A row of a table is one line and cannot be wrapped: it has a limit of its own.
COLUMNS, ROW_COLUMNS = 120, 240
GENERATED_PAGES = {"docs/pyverbs.md"}  # tests/system/pyverbs_test.py writes it
GENERATED = {"docs/control_matrix.md"}  # a column per condition: control_matrix_document_test.cpp writes the tables
HISTORY = re.compile(r"\b(this|last|next|earlier|later) (session|issue)\b|\b[Ii]ssue #?\d+|\bTODO\b|\b[Rr]ecently\b|"
                     r"\bnow (supports?|also|works?)\b|\bno longer\b|\bused to (be|have|take|do)\b|\b(not yet|by now)\b|"
                     r"\bthe day before\b|\bformerly\b")
# Prose of documents and comments (docs/style.md).
STOCK = re.compile(r"\b(for good|anew|for ever|by other hands|(in|at) (this|that|the) very moment|learn[st]?|believes?|"
                   r"wish(es)?|knows?|knew|asks?|asked|(its|our|softibd's) books)\b", re.IGNORECASE)
PRONOUN = re.compile(r"(?:^|[.:;] )(Who|Whoever|Whose|Whom|What) [^?]*(?:[.:;]|$)")  # except questions
FRAGMENT = re.compile(r"(?:^|\. )((?:True|False|Failures?|Nothing|None|nullptr|Null): \S.*)|; ((?:true|false|nullptr): \S.*)")
HISTORY_OF_CODE = re.compile(r"\b(this|last|next|earlier|later) (session|issue)\b|\b[Ii]ssue #?\d+|\b[Rr]ecently\b|"
                             r"\bformerly\b|\bthe day before\b|\b(not yet|now) implemented\b|\bused to (be|have|take|do)\b")

# Names of files. A bare name is that of a file somewhere in the tree; a path is one from the root, from src/, or from
# beside it.
FILE_NAME = re.compile(r"(?<![\w<./$~>}-])((?:[\w*.-]+/)*[\w*-]+\.(?:h|cpp|py|md|c|toml|map|cmake)|(?:docs|tests|scripts|bench)/[\w/*.-]*\w)"
                       r"(?![\w/*-]|\.\w|>)")
FOREIGN = re.compile(r"^(infiniband|rdma|sys|linux|asm|net|netinet)/\w+\.h$|"  # headers of the system
                     r"^_\w+\.cpp$|^docs/design/NNNN|^BUILD/|"  # suffixes and patterns of names
                     r"^(my_driver\.cpp|ping\.toml)$|"  # files that a user of the examples writes
                     r"^(drivers/infiniband/core/sysfs\.c|(tests/)?run_tests\.py|test_\w+\.py)$")  # Linux, rdma-core
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
QUOTED = re.compile(r"`([^`\s]+)`")


class Tree:
    """The files of the repository, to look names up."""

    def __init__(self):
        self.names = {name for name, _ in files([])}
        self.folders = {str(parent) for name in self.names for parent in pathlib.PurePath(name).parents} - {"."}
        self.tops = {f.removeprefix("src/").split("/")[0] for f in self.folders}
        self.base_names = {pathlib.PurePath(name).name for name in self.names}

    def has(self, wanted, beside):
        """Returns whether the path exists, from the root, src/ or the file that names it; may be a pattern."""
        wanted = wanted.rstrip("/")
        if re.fullmatch(r"docs/design/\d{4}", wanted):  # a page by its number
            return any(ROOT.glob(wanted + "-*.md"))
        for start in ("", "src", str(pathlib.PurePath(beside).parent)):
            path = os.path.normpath(os.path.join(start, wanted))
            if path in self.names or path in self.folders or ("*" in wanted and any(ROOT.glob(path))):
                return True
        return False

    def has_name(self, wanted, beside):
        if "/" not in wanted and "*" not in wanted:
            return wanted in self.base_names
        return self.has(wanted, beside) or ("*" in wanted and "/" not in wanted and any(ROOT.rglob(wanted)))

    def is_ours(self, wanted):
        """Returns whether the path looks like one of this repository: it begins with a folder of it."""
        return "/" in wanted and wanted.split("/")[0] in self.tops and re.fullmatch(r"[\w./*-]+", wanted)


def files(paths):
    for top in map(pathlib.Path, paths or [ROOT]):
        for folder, folders, names in os.walk(top.resolve()) if top.is_dir() else [(top.resolve().parent, [], [top.name])]:
            folders[:] = sorted(f for f in folders if f not in NOT_OURS)
            for path in (pathlib.Path(folder, name) for name in sorted(names)):
                if path.is_file() and not path.is_symlink():
                    yield str(path.relative_to(ROOT)), path


def whole_file_complaints(name, path, lines):
    generated = name in GENERATED_PAGES
    if path.name in NEEDS_SPDX_ANYWAY or (path.suffix not in NO_SPDX and not generated) or is_script(name, path):
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


def is_script(name, path):
    return path.suffix == "" and name.startswith(("scripts/", ".ci/", "bench/"))


def comments(name, path, lines):
    """(line number, text) of each line of comment, without its marks."""
    if path.suffix in CPP:
        yield from slash_comments(lines)
    elif path.suffix == ".c":
        yield from slash_comments(lines)
        yield from block_comments(lines)
    elif path.suffix == ".py" or (is_script(name, path) and "python" in lines[0]):
        for token in tokenize.generate_tokens(io.StringIO("\n".join(lines) + "\n").readline):
            if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and token.string.startswith('"""')):
                for offset, line in enumerate(token.string.splitlines()):
                    yield token.start[0] + offset, line.strip().strip('#"').strip()
    elif path.suffix in HASH_COMMENTS or path.name in HASH_NAMES or is_script(name, path):
        for number, line in enumerate(lines, 1):
            found = re.search(r"(?:^|\s)# +(.*)", line)
            if found and "SPDX-" not in line:
                yield number, found[1].strip()


def slash_comments(lines):
    for number, line in enumerate(lines, 1):
        found = re.search(r"(?:^|\s)//+(.*)", line)
        if found and "http" not in line and "SPDX-" not in line:
            yield number, found[1].strip()


def block_comments(lines):
    inside = False
    for number, line in enumerate(lines, 1):
        found = re.search(r"/\*(.*)", line)
        text = found[1] if found else line if inside else None
        if text is not None and "SPDX-" not in text:
            yield number, text.split("*/")[0].strip().lstrip("*").strip()
        inside = "*/" not in line if found else inside and "*/" not in line


def prose_of(lines):
    """(line number, text) of a document, without code and the rows of tables."""
    in_code = False
    for number, line in enumerate(lines, 1):
        in_code ^= line.lstrip().startswith("```")
        if not in_code and not line.startswith(("|", "<!--")):
            yield number, line.lstrip("# ") if line.startswith("#") else line


def prose_complaints(numbered, trailing=frozenset()):
    """`trailing`: the lines whose comment follows code; such a comment may explain a value ("nullptr: none")."""
    previous, previous_number = "", 0
    for number, text in numbered:
        if number != previous_number + 1:
            previous = ""
        plain = re.sub(r"`[^`]*`|\[IBA[^]]*\]", "X", text)
        plain = re.sub(r"^\s*([*-]|\d+\.) ", "", plain)
        if STOCK.search(plain):
            yield number, "prose", f"'{STOCK.search(plain)[0]}': a plain word, or none"
        begins_sentence = not previous or previous.endswith((".", ":", ";"))
        found = PRONOUN.search(plain if begins_sentence else "x" + plain)
        if found:
            yield number, "prose", f"'{found[0].strip('.:; ')[:40]}': begin the sentence with the thing itself"
        found = FRAGMENT.search(plain if begins_sentence else "x" + plain)
        if found and number not in trailing:
            yield number, "prose", f"'{(found[1] or found[2])[:40]}': spell it out, \"Returns ... if ...\""
        previous, previous_number = plain.strip(), number


def document_complaints(name, lines, tree):
    in_code = False
    for number, line in enumerate(lines, 1):
        in_code ^= line.lstrip().startswith("```")
        limit = ROW_COLUMNS if line.startswith("|") and not in_code else COLUMNS
        if len(line) > limit and name not in GENERATED and not re.search(r"https?://\S{60}", line):
            yield number, "columns", f"{len(line)} columns, at most {limit}: wrap the text, shorten the cells"
        if in_code or number == 1:
            continue
        if HISTORY.search(line):
            yield number, "history", f"'{HISTORY.search(line)[0]}': say how it is, not in which order it came about"
        links = [l for l in LINK.findall(line) if "://" not in l]
        wrong = [l for l in links if not (ROOT / name).parent.joinpath(l).exists()]
        wrong += [q for q in QUOTED.findall(line) if tree.is_ours(q) and not FOREIGN.match(q) and not tree.has(q, name)]
        wrong += [q for q in QUOTED.findall(line) if "/" not in q and FILE_NAME.fullmatch(q) and not FOREIGN.match(q)
                  and not tree.has_name(q, name)]
        for each in wrong:
            yield number, "link", f"'{each}' does not exist: name the file that holds it"
    yield from prose_complaints(prose_of(lines))


def comment_complaints(name, path, lines, tree):
    texts = list(comments(name, path, lines))
    for number, text in texts:
        for wanted in FILE_NAME.findall(text):
            if not FOREIGN.match(wanted) and not tree.has_name(wanted, name):
                yield number, "link", f"'{wanted}' does not exist: name the file that holds it"
        if HISTORY_OF_CODE.search(text):
            yield number, "history", f"'{HISTORY_OF_CODE.search(text)[0]}': say how it is, not in which order it came about"
        if not name.endswith((".h", ".cpp")) and len(lines[number - 1]) > COLUMNS:
            yield number, "columns", f"{len(lines[number - 1])} columns, at most {COLUMNS}: wrap the comment"
    marks = ("//", "#", "*", "/*", '"')
    trailing = {number for number, _ in texts if path.suffix in CPP and not lines[number - 1].lstrip().startswith(marks)}
    yield from prose_complaints(texts, trailing)


def crowded_folders(names):
    """(folder, count) of each that holds too many of the files. Fuzzers write their corpora, nobody reads these."""
    counts = collections.Counter(str(pathlib.PurePath(name).parent) for name in names if not name.startswith("fuzz/corpus/"))
    return sorted((folder, count) for folder, count in counts.items() if count > MOST_FILES)


def excused(lines, number, rule):
    return any(match and match[1] == rule for match in map(ALLOW.search, lines[max(0, number - 2):number]))


def complaints(name, path, lines, tree):
    yield from whole_file_complaints(name, path, lines)
    yield from line_complaints(name, lines)
    if path.suffix == ".md":
        yield from document_complaints(name, lines, tree)
    else:
        yield from comment_complaints(name, path, lines, tree)


def main():
    count = 0
    tree = Tree()
    for folder, number in crowded_folders(tree.names):
        print(f"{folder}/: {number} files, at most {MOST_FILES}: make folders that name its parts")
        count += 1
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
        for number, rule, advice in complaints(name, path, lines, tree):
            if not excused(lines, number, rule):
                print(f"{name}:{number}: [{rule}] {advice}")
                count += 1
    print(f"house rules: {count} complaints" if count else "house rules: ok")
    return bool(count)


if __name__ == "__main__":
    sys.exit(main())
