#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""No class has more than 30 methods or 12 data members without a named reason.

check_classes.py [path ...]  checks the C++ files of these files or folders (default: src/). A class may be excused by
`classes: allow(<methods|members>) <reason>` in the comment before it. Constructors, destructors, operators and static
constants are no methods or members. A struct is a record, whose fields the specification gives: only its methods
count. Reads the text as clang-format leaves it: a body ends at a brace in the column of its head.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST_METHODS, MOST_MEMBERS = 30, 12
HEAD = re.compile(r"^( *)(?:template <.*> )?(class|struct|union) (?:(?:[A-Z]+(?:_[A-Z]+)+(?:\([^)]*\))?|\[\[\w+\]\]) )*((?:\w+::)*\w+)[^;(]*\{$")
NOTHING = re.compile(r"^(using|friend|typedef|static_assert|enum|class|struct|union|template <[^;]*> (friend|using|class|struct))\b")
CONSTANT = re.compile(r"^(static constexpr|static inline constexpr|constexpr static|inline static constexpr|static const) [^(]*(=|\{)")
ALLOW = re.compile(r"classes: allow\((methods|members)\) \S")


def statements(lines):
    """The declarations at the first level of a body, each in one line without what its own braces hold."""
    text, depth = "", 0
    for line in lines:
        line = re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])+\'', '""', line)
        line = re.sub(r"\s*//.*", "", line).strip()
        if not line or line.startswith("#") or (depth == 0 and not text.strip() and re.match(r"^(public|protected|private):", line)):
            continue
        for letter in line + " ":
            if depth == 0 or (letter == "}" and depth == 1):
                text += letter
            depth += (letter == "{") - (letter == "}")
            if depth == 0 and (letter == ";" or (letter == "}" and "(" in text and not line.rstrip().endswith(";") and
                                                 not re.search(r"=\s*\{\}$", text))):
                yield text.strip()
                text = ""
    if text.strip():
        yield text.strip()


def kind(statement, name):
    """"method", "member" or None."""
    plain = re.sub(r"\[\[[^]]*\]\]|alignas\([^)]*\)|\bIB_\w+\([^)]*\)", " ", statement)
    plain = re.sub(r"^template <[^()]*> ", "", plain).strip()
    plain = re.sub(r"^(requires [^;]*?\) )", "", plain)
    if re.match(r"^(enum|struct|union|class)\b[^;]*\} ?\w+(;| = |\{)", plain):
        return "member"  # declared together with its type
    if plain in (";", "") or NOTHING.match(plain) or CONSTANT.match(plain):
        return None
    before = re.split(r"[{=]", plain, maxsplit=1)[0] if "operator" not in plain else plain
    bare = before
    while (shorter := re.sub(r"<[^<>]*>", "", bare)) != bare:
        bare = shorter
    if "(" not in bare:
        return "member"
    if "operator" in bare or re.match(rf"^(explicit |virtual |constexpr |inline )*~?{name}\(", bare):
        return None
    if re.search(r"\(\*\w+\)\(", bare):
        return "member"
    return "method"


def classes(lines):
    """(line, class|struct|union, name, methods, members, what is excused) of each class."""
    for number, line in enumerate(lines):
        head = HEAD.match(line)
        if not head:
            continue
        indent, sort, name = head.groups()
        end = next((n for n in range(number + 1, len(lines)) if lines[n].startswith(indent + "}")), None)
        if end is None:
            continue
        excuses, above = set(), number - 1
        while above >= 0 and re.match(r"^\s*(//|template)", lines[above]):
            excuses |= set(ALLOW.findall(lines[above]))
            above -= 1
        kinds = [kind(s, name.split("::")[-1]) for s in statements(lines[number + 1:end])]
        yield number + 1, sort, name, kinds.count("method"), kinds.count("member"), excuses


def main(arguments):
    if "--help" in arguments or "-h" in arguments:
        print(__doc__)
        return 0
    paths = [pathlib.Path(a).resolve() for a in arguments] or [ROOT / "src"]
    files = [f for p in paths for f in (sorted(p.rglob("*")) if p.is_dir() else [p]) if f.suffix in (".h", ".cpp")]
    complaints = looked_at = 0
    for file in files:
        for line, sort, name, methods, members, excuses in classes(file.read_text().splitlines()):
            looked_at += 1
            for what, count, most in (("methods", methods, MOST_METHODS), ("members", members, MOST_MEMBERS)):
                over = count > most and not (sort != "class" and what == "members")
                if over != (what in excuses):
                    complaints += 1
                    where = f"{file.relative_to(ROOT)}:{line}: {sort} {name}"
                    print(f"{where} has {count} {what}, more than {most}: cut it, or name the reason in a comment, "
                          f"classes: allow({what}) REASON" if over else
                          f"{where} has {count} {what} and needs no classes: allow({what})")
    print(f"{looked_at} classes in {len(files)} files, {complaints} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
