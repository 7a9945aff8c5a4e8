#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""rdma-core's own test suite (Debian's python3-pyverbs), unmodified: no test may fail, crash or hang, and every
skip must be in pyverbs_suite/skips.txt with its true reason.

pyverbs_test.py [--as root|nobody] [--link-layer ethernet] [--only REGEX of modules] [--write-docs]
--write-docs: rewrites docs/pyverbs.md from this run.
"""
import collections
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import harness
from harness import Failed, Skipped

OURS = pathlib.Path(__file__).resolve().parent / "pyverbs_suite"
SUITE = pathlib.Path("/usr/share/doc/rdma-core/tests")
PYTHON = "/usr/bin/python3"  # pyverbs is built for Debian's python
NOT_GENERIC = re.compile(r"^test_(mlx5|efa|cuda)")
EXPECTED_PASSES = 140
DOCUMENT = harness.SOURCE / "docs/pyverbs.md"  # of InfiniBand ports
SECONDS_PER_RUN = 150


def unpack(folder):
    if not SUITE.is_dir():
        raise Skipped(f"{SUITE} is not there (package python3-pyverbs)")
    tests = folder / "tests"
    shutil.copytree(SUITE, tests)
    for path in tests.glob("*.gz"):
        subprocess.run(["gunzip", "-f", path], timeout=60, check=True)
    for path in (folder, tests, *tests.iterdir()):
        os.chmod(path, 0o755 if path.is_dir() else 0o644)
    listed = subprocess.run([PYTHON, "tests/run_tests.py", "--list-tests"], timeout=60, cwd=folder, text=True, capture_output=True,
                            check=False, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    names = [line.strip() for line in listed.stdout.splitlines() if line.startswith("tests.")]
    modules = collections.defaultdict(list)
    for name in names:
        module = name.split(".")[1]
        if not NOT_GENERIC.match(module):
            modules[module].append(name)
    if not modules:
        raise Failed(f"run_tests.py --list-tests lists nothing:\n{harness.tail(listed.stdout + listed.stderr)}")
    return modules


class Outcome:
    def __init__(self, what, reason=""):
        self.what, self.reason = what, reason


def read_outcomes(path):
    outcomes = {}
    for line in path.read_text().splitlines():
        entry = json.loads(line)
        old = outcomes.get(entry["test"])
        if entry["what"] == "started" or old is None or old.what in ("started", "passed"):
            outcomes[entry["test"]] = Outcome(entry["what"], entry["reason"])
    return outcomes


def address_of(fabric):
    state = fabric.state()
    return state["nodes"][0]["addresses"][0]["ip"]


def run_module(fabric, folder, module, names):
    """{test: Outcome}. After a crash or a hang the remaining tests run in a new process."""
    outcomes = {}
    left = list(names)
    surroundings = dict(fabric.base_env, SOFTIB_TEST_ADDRESS=address_of(fabric))
    while left:
        results = fabric.runtime / f"{module}.{len(left)}.json"
        words = [PYTHON, "-B", folder / "driver.py", results, "tests/run_tests.py", "--dev", "softib0", "--port", "1",
                 "-v", *left]
        program = harness.Program(fabric.command(words), env=surroundings, cwd=folder)
        fabric.programs.append(program)
        result = fabric.end(program, SECONDS_PER_RUN)
        new = read_outcomes(results) if results.exists() else {}
        for name in left:
            outcome = new.get(name)
            if outcome and outcome.what == "started":
                why = "hung: killed" if result.code is None else f"crashed: {ending(result.code)}"
                outcomes[name] = Outcome("crashed", f"{why}\n{harness.tail(result.text, 40)}")
            elif outcome:
                outcomes[name] = outcome
        if not new:
            for name in left:
                outcomes[name] = Outcome("crashed", f"nothing ran: {ending(result.code)}\n{harness.tail(result.text)}")
        elif result.code is not None and result.code < 0 and not any(o.what == "started" for o in new.values()):
            last = list(new)[-1]
            outcomes[last] = Outcome("crashed", f"after it: {ending(result.code)}\n{harness.tail(result.text, 40)}")
        still = [name for name in left if name not in outcomes]
        if len(still) == len(left):
            break
        left = still
    return outcomes


def ending(code):
    if code is None:
        return f"not ended after {SECONDS_PER_RUN} s"
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


class Expected:
    """A line of skips.txt: <regex of tests> | <regex of the reason printed> | <the true reason>"""

    def __init__(self, line, number):
        parts = [part.strip() for part in line.split(" | ")]
        if len(parts) != 3:
            raise Failed(f"line {number} of the skips: three columns expected: {line}")
        self.tests, self.printed, self.why = re.compile(parts[0]), re.compile(parts[1]), parts[2]

    def fits(self, name, reason):
        return self.tests.search(name) and self.printed.search(reason)


def expected_skips():
    lines = (OURS / "skips.txt").read_text().splitlines()
    if harness.ETHERNET:
        lines += (OURS / "ethernet_skips.txt").read_text().splitlines()
    return [Expected(line, n) for n, line in enumerate(lines, 1) if line.strip() and not line.startswith("#")]


def short(name):
    return name.removeprefix("tests.")


def one_line(text):
    return " ".join(text.split())


def true_reason(expected, name, reason):
    return next((e.why for e in expected if e.fits(name, reason)), None)


def write_docs(outcomes, expected):
    count = collections.Counter(o.what for o in outcomes.values())
    by_module = collections.defaultdict(collections.Counter)
    for name, outcome in outcomes.items():
        by_module[name.split(".")[1]][outcome.what] += 1
    lines = [
        "# rdma-core's test suite on softib", "",
        "Generated by `tests/system/pyverbs_test.py --write-docs`; do not edit. The suite is the one of Debian 12's",
        "`python3-pyverbs`, unmodified; tests for one vendor's hardware (mlx5, efa, cuda) are left out.", "",
        f"{len(outcomes)} tests: **{count['passed']} passed, {count['failed'] + count['error']} failed, "
        f"{count['crashed']} crashed, {count['skipped']} skipped**.", "",
        "| module | passed | failed | skipped |", "|---|---|---|---|"]
    for module in sorted(by_module):
        c = by_module[module]
        lines.append(f"| {module} | {c['passed']} | {c['failed'] + c['error'] + c['crashed']} | {c['skipped']} |")
    lines += ["", "## Skipped tests", "",
              "The suite prints the reason in the second column; the third is the reason here (from",
              "`tests/system/pyverbs_suite/skips.txt`).", "",
              "| test | the suite says | why |", "|---|---|---|"]
    for name in sorted(n for n, o in outcomes.items() if o.what == "skipped"):
        reason = one_line(outcomes[name].reason)
        why = true_reason(expected, name, reason) or "**unexpected**"
        lines.append(f"| {short(name)} | {reason.replace('|', '/')[:160]} | {why} |")
    bad = sorted(n for n, o in outcomes.items() if o.what in ("failed", "error", "crashed"))
    if bad:
        lines += ["", "## Failed tests", "", "| test | what |", "|---|---|"]
        lines += [f"| {short(n)} | {outcomes[n].what}: {one_line(outcomes[n].reason)[-160:].replace('|', '/')} |" for n in bad]
    DOCUMENT.write_text("\n".join(lines) + "\n")
    print(f"wrote {DOCUMENT}")


def documented_skips():
    rows = re.findall(r"^\| (test_\w+\.\w+\.\w+) \| .* \| .* \|$", DOCUMENT.read_text(), re.MULTILINE)
    return [f"tests.{name}" for name in rows]


def free_huge_pages():
    return int(re.search(r"^HugePages_Free: +(\d+)$", pathlib.Path("/proc/meminfo").read_text(), re.MULTILINE).group(1))


def without_pages(name, outcome):
    """A failed test of huge pages counts as skipped if other programs have taken all of them."""
    taken = outcome.what in ("failed", "error") and "_huge_" in name and free_huge_pages() == 0
    return Outcome("skipped", "There are no huge pages left: other programs have taken them") if taken else outcome


def judge(report, module, run, expected):
    with report.case(module) as remarks:
        outcomes = {name: without_pages(name, outcome) for name, outcome in run().items()}
        count = collections.Counter(o.what for o in outcomes.values())
        remarks.append(", ".join(f"{n} {what}" for what, n in sorted(count.items())))
        bad = []
        for name, outcome in outcomes.items():
            reason = one_line(outcome.reason)
            if outcome.what == "skipped" and true_reason(expected, name, reason) is None:
                bad.append(f"{short(name)}: skipped with a reason that skips.txt does not have: {reason}")
            elif outcome.what not in ("passed", "skipped"):
                bad.append(f"{short(name)}: {outcome.what}\n{harness.tail(outcome.reason)}")
        if bad:
            raise Failed(f"{remarks[0]}\n    " + "\n    ".join(bad))


@contextlib.contextmanager
def huge_pages(wanted=16):
    """Some tests need a huge page: reserves some for the duration if this user may. Two runs side by side each add
    their own; MPI programs beside this test take those that they find."""
    setting = pathlib.Path("/proc/sys/vm/nr_hugepages")
    added = 0
    try:
        before = int(setting.read_text())
        setting.write_text(str(before + wanted))
        added = int(setting.read_text()) - before  # memory may be too fragmented for all
    except OSError:
        pass  # the tests skip themselves, with their reason
    try:
        yield
    finally:
        if added > 0:
            setting.write_text(str(max(0, int(setting.read_text()) - added)))


def test(report, user):
    expected = expected_skips()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="softib-pyverbs-"))
    everything = {}
    try:
        modules = unpack(folder)
        shutil.copy(OURS / "driver.py", folder / "driver.py")
        os.chmod(folder / "driver.py", 0o644)
        with huge_pages(), harness.Fabric(nodes=1, user=user) as fabric:
            for module, names in sorted(modules.items()):
                if report.wanted(module):
                    def run(module=module, names=names):
                        outcomes = run_module(fabric, folder, module, names)
                        everything.update(outcomes)
                        return outcomes
                    judge(report, module, run, expected)
        passed = sum(o.what == "passed" for o in everything.values())
        if report.only is None:
            with report.case(f"at least {EXPECTED_PASSES} tests pass") as remarks:
                remarks.append(f"{passed} of {len(everything)}")
                if passed < EXPECTED_PASSES:
                    raise Failed(f"{passed} of {len(everything)} passed")
                unused = [e for e in expected if not any(o.what == "skipped" and e.fits(n, one_line(o.reason))
                                                         for n, o in everything.items()) and not harness.ETHERNET]
                for line in unused:
                    remarks.append(f"skips.txt: nothing fits {line.tests.pattern!r} any more")
        if report.only is None and not harness.ETHERNET and "--write-docs" not in sys.argv:
            with report.case(f"{DOCUMENT.name} does not say of tests that pass that they are skipped") as remarks:
                skips = documented_skips()
                remarks.append(f"{len(skips)} skips")
                wrong = [short(n) for n in skips if n not in everything or everything[n].what == "passed"]
                if wrong or not skips:
                    raise Failed("write it anew with --write-docs; it has " + ", ".join(wrong or ["none at all"]))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if "--write-docs" in sys.argv:
        write_docs(everything, expected)


harness.main("rdma-core's test suite", test)
