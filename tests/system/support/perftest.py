# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Reads the output of perftest 4.5, and ends it early."""
import math
import pathlib
import re
import signal

import harness
from harness import Failed

NUMBER = r"(?:-?[\d.]+(?:e[+-]?\d+)?|-?nan|-?inf)"
HEADER = re.compile(r"^[ \t]*#bytes[ \t]+#iterations[ \t].*$", re.MULTILINE)
ROW = re.compile(rf"^[ \t]*(\d+)[ \t]+(\d+)((?:[ \t]+{NUMBER})+)[ \t]*$", re.MULTILINE)
COLUMNS = {  # by their number
    2: ("average", "per_second"),                                        # latency, -D
    3: ("peak", "average", "mega_messages"),                             # bandwidth
    7: ("min", "max", "typical", "average", "deviation", "p99", "p999"),  # latency
}
COMPLAINTS = (r"(?i)\berrors?\b", r"(?i)\bfail(ed|ure|s)?\b", r"(?i)couldn't", r"(?i)unable to", r"(?i)unsupported",
              r"(?i)not support(ed)?\b", r"(?i)invalid", r"(?i)doesn't support", r"(?i)syndrom", r"(?i)assertion",
              r"(?i)usage:", r"(?i)parser found", r"(?i)segmentation")
TRIES = harness.PERFTEST_TRIES  # also to connect
ALARMS = 3  # of -D


def rows(text):
    """[{"bytes": 8, "iterations": 1000, "average": 0.3 ...}], in the order printed."""
    header = HEADER.search(text)
    if not header:
        return []
    result = []
    for size, iterations, rest in ROW.findall(text, header.end()):
        values = [float(v) for v in rest.split()]
        result.append({"bytes": int(size), "iterations": int(iterations),
                       **dict(zip(COLUMNS.get(len(values), ()), values))})
    return result


def is_measured(row):
    """False if perftest failed to measure the processor's clock, since another process ran meanwhile: then its
    latencies are infinite or negative, its bandwidths 0, and it prints no message."""
    # Two decimals: messages of four bytes on a busy machine average 0.00 MB/s.
    best = max(row.get("average", math.nan), row.get("peak", 0), row.get("mega_messages", 0))
    return math.isfinite(best) and best > 0


def run(pair):
    """pair(): runs a server and its client, returns both results. Returns them, and the rows of the client; runs again
    if perftest could not measure the clock."""
    for _ in range(TRIES):
        server, client = pair()
        for side in (client, server):
            side.require(forbid=COMPLAINTS)
        found = rows(client.text)
        if all(is_measured(row) for row in found):
            break
    return server, client, found


def has_pending(pid, number):
    """Whether a signal of a process waits for its handler; False once the process has ended."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return False
    pending = int(re.search(r"^ShdPnd:\s*([0-9a-f]+)", status, re.MULTILINE)[1], 16)
    return pending >> (number - 1) & 1 == 1


class Endless:
    """A pair that goes on until it is told to end. Its messages have receives: the target of writes takes no alarms."""
    SECONDS = 120

    def __init__(self, fabric, words, server, client):
        """server, client: nodes. Before the last retry fails there is half a minute without a way."""
        self.fabric, self.place = fabric, server
        if "XRC" in words:
            harness.forget_xrc_domain()
        port = harness.free_port()
        words = [*words, "-D", "1000", "-u", "20", "-p", port]
        by_cm = "-R" in words
        listens = fabric.listens_by_cm if by_cm else harness.is_listening
        self.server = fabric.start(words, server)
        harness.wait_until(lambda: listens(self.server.pid, port) or not self.server.running(), self.SECONDS,
                           f"{self.server.describe()} to listen")
        self.client = fabric.start([*words, fabric.address(server) if by_cm else harness.HOST], client)
        self.programs = (self.client, self.server)
        self.alarms = dict.fromkeys(self.programs, 0)

    def check_running(self):
        for program in self.programs:
            if not program.running():
                raise Failed(f"{program.describe()} ended with {program.process.returncode}:\n"
                             f"{harness.tail(program.text())}")

    def hurry(self):
        """By the alarms at which perftest begins to measure, stops and ends, before they are due. One more would find
        its main() ended, and the handler works with variables of that."""
        for program in self.programs:
            if self.alarms[program] < ALARMS and program.running() and not has_pending(program.pid, signal.SIGALRM):
                program.process.send_signal(signal.SIGALRM)
                self.alarms[program] += 1
        return not any(program.running() for program in self.programs)

    def end(self):
        """After messages have arrived."""
        harness.wait_until(self.hurry, self.SECONDS, f"{self.client.describe()} to end")
        for program in self.programs:
            result = self.fabric.end(program, self.SECONDS)
            if not result.has_no_clock():
                result.require()
