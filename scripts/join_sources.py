#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""join_sources.py <folder> <prefix> <include folders, "a;b"> <source ...>   Writes <folder>/<prefix>_<n>.cpp, each of
which includes several of the sources, and prints what to compile in their place, one file a line (cmake/joined.cmake).

Two sources are not joined if a name that one of them keeps to itself (in a namespace without a name, static, an alias,
a macro) occurs in the other: it would be defined twice, or would be found in place of another one.
"""
import pathlib
import re
import sys

LINES = 2500  # of the sources of one joined file: more of them give two cores too little to share
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
WORD = re.compile(r"(?:(?:\.|->|::)\s*)?\b([A-Za-z_]\w*)")
DECLARED = re.compile(r"([A-Za-z_]\w*)\s*(?:\(|=|\{|;|\[|:(?!:))")
USING = re.compile(r"^(?:using|namespace)\s+(?:namespace\s+)?((?:\w+::)*(\w+)|(\w+)\s*=[^;{]*);", re.MULTILINE)
STATIC = re.compile(r"^(?:static|enum)\b[^;{(=]*?(\w+)\s*[;{(=]", re.MULTILINE)
MACRO = re.compile(r"^[ \t]*#[ \t]*define\s+(\w+)", re.MULTILINE)
KEYWORDS = {"if", "for", "while", "switch", "return", "sizeof", "alignas", "decltype", "operator", "const", "noexcept",
            "public", "private", "protected", "template", "requires", "explicit", "default", "static_assert",
            "TEST", "TEST_F", "TEST_P", "INSTANTIATE_TEST_SUITE_P", "std", "void", "bool", "int"}


def top_level(text):
    """Returns the text of the namespaces without a name, without what stands in braces or parentheses in it."""
    kept = []
    for match in re.finditer(r"\bnamespace\s*\{", text):
        braces, parens = 1, 0
        for char in text[match.end():]:
            if char in "{}":
                braces += 1 if char == "{" else -1
                if braces == 0:
                    break
            if braces == 1 + (char == "{") and parens == 0:
                kept.append(char)
            if char in "()":
                parens += 1 if char == "(" else -1
    return "".join(kept)


class Source:
    def __init__(self, path):
        self.path = path
        raw = path.read_text()
        text = TOKEN.sub(" ", raw)
        self.lines = raw.count("\n")
        self.usings = {m[2] or m[3]: m[1] for m in USING.finditer(text)}  # the same twice is no mistake
        self.macros = set(MACRO.findall(text))
        self.own = set(self.macros)
        for found in (DECLARED.findall(top_level(text)), STATIC.findall(text), self.usings):
            self.own.update(found)
        self.own -= KEYWORDS
        self.words = {m[1] for m in WORD.finditer(text) if m[0][0] not in ".-:"} | self.own

    def meets(self, other):
        same = {name for name, text in self.usings.items() if other.usings.get(name) == text}
        return bool((self.own & other.words | other.own & self.words) - same)


def groups(sources):
    made = []
    for source in sources:
        fits = (group for group in made if sum(one.lines for one in group) + source.lines <= LINES and
                not any(one.macros or source.meets(one) for one in group))
        group = None if source.macros else next(fits, None)  # a macro may be for the headers that follow it
        if group is None:
            made.append([source])
        else:
            group.append(source)
    return made


def main():
    folder, prefix, includes = pathlib.Path(sys.argv[1]), sys.argv[2], [pathlib.Path(p) for p in sys.argv[3].split(";")]
    folder.mkdir(parents=True, exist_ok=True)
    number = 0
    for group in groups([Source(pathlib.Path(path)) for path in sys.argv[4:]]):
        if len(group) == 1:
            print(group[0].path)
            continue
        # Names without the folder of this clone, so that ccache serves others.
        names = [one.path.relative_to(next(p for p in includes if one.path.is_relative_to(p))) for one in group]
        text = "".join(f'#include "{name}"\n' for name in names)
        file = folder / f"{prefix}_{number}.cpp"
        number += 1
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
        print(file)


main()
