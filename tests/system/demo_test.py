#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The demo, as scripts/demo runs it once everything is built: each row of its table has a figure and a limit, and the
commands under "Try next" work as printed.

demo_test.py     (ctest demo)
"""
import os
import re
import shutil
import sys
import tempfile

import harness
from harness import Failed, Program, Result, Skipped

ROW = re.compile(r"^  (ib_\S.*?)  .* (\d+\.\d+) (us|GB/s) +(\d+\.\d+) (us|GB/s) +\S", re.MULTILINE)
WANTED = {"ib_write_lat", "ib_send_lat", "ib_read_lat", "ib_atomic_lat", "ib_write_bw"}


def run(words, seconds, env=None):
    program = Program(words, env=env)
    return Result(program, program.wait(seconds), seconds)


def show(remarks):
    """Returns the text of the demo after checking its table."""
    text = run([sys.executable, harness.SOURCE / "bench/demo.py"], 300).require("^Try next", forbid=["FAILED"]).text
    rows = ROW.findall(text)
    missing = WANTED - {row[0].split()[0] for row in rows}
    if missing:
        raise Failed(f"no row for {', '.join(sorted(missing))}:\n{text}")
    for program, value, unit, limit, of in rows:
        if unit != of or float(value) <= 0 or float(limit) <= 0:
            raise Failed(f"{program}: {value} {unit} beside {limit} {of}:\n{text}")
    if shutil.which("rping") and len(re.findall(r"^established +TCP .* rping \(pid \d+\)$", text, re.MULTILINE)) != 2:
        raise Failed(f"no connection with two ends:\n{text}")
    no_network = re.search(r"^No TCP/IP over ib0 here: (.+)", text, re.MULTILINE)
    if shutil.which("ping") and shutil.which("iperf3") and not no_network:
        for pattern in (r"^  ping .* rtt .* ms$", r"^  iperf3 .* bits/sec +receiver$"):
            if not re.search(pattern, text.replace("Gbits", "bits").replace("Mbits", "bits"), re.MULTILINE):
                raise Failed(f"no {pattern!r} in:\n{text}")
    remarks.append(no_network[1] if no_network else "ping and iperf3 over ib0")
    remarks.append(f"{len(rows)} programs")
    return text


def commands(text):
    """The commands under "Try next": a line has a command, spaces, and its purpose."""
    lines = text.split("Try next", 1)[1].splitlines()[1:]
    return [re.split(r" {2,}", line.strip())[0] for line in lines if line.startswith("  ")]


def try_out(command):
    """In a network namespace, since perftest takes a fixed port, and with a runtime directory of its own."""
    if os.getuid() != 0:
        raise Skipped("a network namespace needs root")
    place = tempfile.mkdtemp(prefix="softib-demo-")
    env = dict(os.environ, PATH=f"{harness.BIN}:{os.environ['PATH']}:/sbin:/usr/sbin", SOFTIB_RUNTIME_DIR=place)
    try:
        inside = f"ip link set lo up && {{ {command}; }}"
        run(["unshare", "--net", "sh", "-c", inside], 60, env).require(r"\S")
    finally:
        shutil.rmtree(place)


def main():
    report = harness.Report("demo")
    text = ""
    with report.case("the table") as remarks:
        text = show(remarks)
    if text:
        with report.case("three commands to try next"):
            if len(commands(text)) != 3:
                raise Failed(f"they are {commands(text)}")
        for command in commands(text):
            with report.case(command):
                try_out(command)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
