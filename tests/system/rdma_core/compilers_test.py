#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Builds the release of this tree with compilers of another Debian, in a fresh root of it with the packages that
scripts/setup names: warnings are errors, and what was built runs. By hand: each takes as long as a build.

compilers_test.py [--suite SUITE] [--quick] [--only REGEX] COMPILER...
COMPILER: a package of that Debian, which is named as its program: g++-14, clang-19. --suite: trixie if absent.
--quick: without optimisation, a third of the time; warnings of the optimiser are not seen.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness
import packages_test as packages

QUICK = "-D CMAKE_BUILD_TYPE=Debug -D CMAKE_CXX_FLAGS=-O0"
BUILD = """
set -e
cmake -S /opt/source --preset release -B build -D CMAKE_CXX_COMPILER={program} -D BUILD_TESTING=OFF -D IB_WERROR=ON \\
  -D IB_JOIN='data;control' {more} > log 2>&1 || {{ cat log; exit 1; }}
cmake --build build > log 2>&1 || {{ grep -E -A 12 'error|warning|FAILED' log | head -n 200; exit 1; }}
build/bin/softib doctor --help > /dev/null
{program} --version | head -n 1
"""


def words():
    """The suite, and the compilers."""
    suite, rest, given = "trixie", [], iter(sys.argv[1:])
    for word in given:
        if word == "--suite":
            suite = next(given)
        elif word == "--only":
            next(given)  # harness.Report reads it
        elif word != "--quick":
            rest.append(word)
    return suite, rest


def needed():
    """Packages of a build of the release."""
    section = re.search(r"^# build\n(.*?)^# ", (harness.SOURCE / "packages.txt").read_text(), re.MULTILINE | re.DOTALL)
    return re.findall(r"^[^\s#]+", section.group(1), re.MULTILINE)


def copy_source(root):
    listed = subprocess.run(["git", "-C", harness.SOURCE, "ls-files", "-z"], check=True, capture_output=True, text=True)
    for name in filter(None, listed.stdout.split("\0")):
        target = root / "opt/source" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(harness.SOURCE / name, target)


def main():
    suite, compilers = words()
    if not compilers:
        sys.exit(__doc__)
    report = harness.Report("compilers")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="softib-compilers-"))
    folder.chmod(0o755)
    root = None
    try:
        with report.case(f"a root with {', '.join(compilers)} ({suite})"):
            include = "--include=" + ",".join([*needed(), *compilers])
            root = packages.bare_root(folder, suite, [include, "--aptopt=Acquire::Check-Valid-Until \"false\""],
                                      packages.own_mirror())
            copy_source(root)
        for compiler in compilers if root is not None else []:
            with report.case(compiler) as remarks:
                program = compiler.replace("clang-", "clang++-")
                script = BUILD.format(program=program, more=QUICK if "--quick" in sys.argv else "")
                remarks.append(packages.in_root(root, script, seconds=3600).splitlines()[-1])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(report.finish())


if __name__ == "__main__":
    main()
