#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Tests of tidy.py and check_classes.py: each rule of prose complains about its example and about nothing else; the
methods and members of a class are counted.
"""
import pathlib
import unittest

import check_classes
import tidy

TREE = tidy.Tree()


def rules_of(name, *lines):
    """The rules that the lines break as the content of a file of that name, without those about the whole file."""
    path = pathlib.Path(name)
    whole = set(tidy.whole_file_complaints(name, path, lines))
    return [rule for number, rule, advice in tidy.complaints(name, path, list(lines), TREE)
            if (number, rule, advice) not in whole and not tidy.excused(lines, number, rule)]


def of_comment(*lines):
    return rules_of("src/io/irp.h", *[f"// {line}" for line in lines])


class Prose(unittest.TestCase):
    def test_a_plain_sentence_is_fine(self):
        for text in ("Returns false if no request is outstanding.", 'The motto is "whoever posts, executes".',
                     "What does a sleep do to a queue pair?", "A number that is not known.", "0: none"):
            self.assertEqual(of_comment(text), [], text)

    def test_a_sentence_does_not_begin_with_a_pronoun(self):
        for text in ("Who never posted one is not about to.", "What post() does is lost.", "Whose key it is, decides.",
                     "It waits. Whoever changes it wakes it."):
            self.assertEqual(of_comment(text), ["prose"], text)
        self.assertEqual(of_comment("The caller changes", "Who is a name here."), [])  # the middle of a sentence
        self.assertEqual(of_comment("The caller changes it.", "Who is next, waits."), ["prose"])

    def test_code_has_no_knowledge_and_no_wishes(self):
        for text in ("The cache knows the key.", "Asks softibd.", "softibd believes it.", "It is closed for good."):
            self.assertEqual(of_comment(text), ["prose"], text)
        self.assertEqual(of_comment("The function `know` is a name."), [])

    def test_results_are_spelled_out(self):
        for text in ("False: no such one.", "Takes it. nullptr: there is none.", "Takes it; true: it was the last."):
            self.assertEqual(of_comment(text), ["prose"], text)
        self.assertEqual(rules_of("src/io/irp.h", "Irp* next;  // nullptr: none"), [])

    def test_every_kind_of_comment_is_read(self):
        said = "Asks the system."
        for name, line in (("src/io/irp.cpp", f"int x;  // {said}"), ("tests/system/programs/ring.c", f"/* {said} */"),
                           ("scripts/tidy_test.py", f"# {said}"), ("cmake/checks.cmake", f"# {said}"),
                           ("CMakeLists.txt", f"a()  # {said}"), ("docs/cli.md", said), ("packages.txt", f"gdb  # {said}")):
            self.assertEqual(rules_of(name, "", line), ["prose"], name)
        self.assertEqual(rules_of("scripts/setup", "#!/bin/sh", f"# {said}"), ["prose"])
        self.assertEqual(rules_of("bench/run", "#!/usr/bin/python3", f'"""{said}"""'), ["prose"])
        self.assertEqual(rules_of("tests/system/programs/ring.c", "/* One.", f" * {said} */"), ["prose"])
        self.assertEqual(rules_of("docs/cli.md", "", "```", said, "```"), [])

    def test_a_line_may_be_excused(self):
        self.assertEqual(of_comment("Asks.  tidy: allow(prose) the name of a state"), [])


class Documents(unittest.TestCase):
    def test_lines_are_short(self):
        self.assertEqual(rules_of("docs/cli.md", "", "x " * 61), ["columns"])
        self.assertEqual(rules_of("docs/cli.md", "", "|" + "x" * 230 + "|"), [])
        self.assertEqual(rules_of("cmake/checks.cmake", "# " + "x " * 60), ["columns"])

    def test_nothing_tells_the_order_of_work(self):
        for text in ("It no longer blocks.", "softib now supports it.", "The next session adds it.", "Recently added."):
            self.assertEqual(rules_of("docs/cli.md", "", text), ["history"], text)
        self.assertEqual(of_comment("An earlier session has made it."), ["history"])
        self.assertEqual(of_comment("The queue no longer has it."), [])

    def test_cited_files_exist(self):
        self.assertEqual(rules_of("docs/cli.md", "", "See `docs/no_such_page.md`."), ["link"])
        self.assertEqual(rules_of("docs/cli.md", "", "See [status](status.md) and `io/irp.h`."), [])
        self.assertEqual(of_comment("As in no_such_file.h."), ["link"])


class Folders(unittest.TestCase):
    def test_a_folder_holds_forty_files(self):
        some = [f"src/io/file{n}.h" for n in range(40)] + ["src/io/test/one.h"] + [f"fuzz/corpus/a_fuzz/{n}" for n in range(99)]
        self.assertEqual(tidy.crowded_folders(some), [])
        self.assertEqual(tidy.crowded_folders([*some, "src/io/one_more.h"]), [("src/io", 41)])


class Classes(unittest.TestCase):
    def counts(self, *body, before=()):
        row, *_ = check_classes.classes([*before, "class IB_API Sample final : public Base {", *body, "};"])
        self.assertEqual(row[1:3], ("class", "Sample"))
        return row[3:]

    def test_methods_are_counted(self):
        self.assertEqual(self.counts(
            " public:", "  Sample() = default;", "  explicit Sample(int of) : of_(of) {}", "  ~Sample();",
            "  Sample& operator=(const Sample&) = delete;",
            "  int one() const { return 1; }", "  // A comment; with (parentheses).",
            "  int two(std::uint32_t first,", "          std::function<void(int)> second = {});",
            "  template <class T>", "  T three() {", "    if (is()) { return {}; }", "    return {};", "  }",
            "  static bool four();", "  [[nodiscard]] virtual int five() = 0;", "  using Six = int (*)(int);",
            "  friend class Seven;"), (5, 0, set()))

    def test_members_are_counted(self):
        self.assertEqual(self.counts(
            " private:", "  static constexpr int kNone = 0;", "  enum class Kind { One, Two };", "  struct Part {",
            "    int a;", "    int b;", "  };", "  int one_ = 0;", "  std::function<void(int)> two_;",
            "  std::array<int, 3> three_{};  // Comment;", "  Part four_{1, 2};", "  struct {", "    int c;", "  } five_;",
            "  int (*six_)(int) = nullptr;"), (0, 6, set()))

    def test_an_excuse_stands_in_the_comment_before(self):
        self.assertEqual(self.counts(before=["// A record.", "// classes: allow(members) a reason"]), (0, 0, {"members"}))
        self.assertEqual(self.counts(before=["// classes: allow(members) a reason", "int x;"]), (0, 0, set()))

    def test_a_declaration_is_no_class(self):
        self.assertEqual(list(check_classes.classes(["class Sample;", "enum class Way { Up };"])), [])


if __name__ == "__main__":
    unittest.main()
