#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Completion events (events.c): those that nobody reads cost no more than others and are not lost, the own one comes
before that of an answer, and a completion queue that runs over gives the events of an adapter.

events_test.py [--as root|nobody] [--link-layer ethernet] [--only REGEX]
"""
import re

import harness
from harness import Failed

PROGRAM = harness.SOURCE / "tests/system/programs/events.c"
GOOD = r"^0 rules broken$"
MESSAGES = 10000  # a pipe holds 8,192 events
CALLS_PER_MESSAGE = 5  # a byte in each direction, the event or a look at the pipe, and late events that move


def count_calls(summary):
    """The calls that `strace -c` has counted."""
    return sum(int(line.split()[3]) for line in summary.splitlines() if re.search(r" (write|ioctl)$", line))


def test(report, user):
    with harness.Fabric(nodes=1, user=user) as fabric:
        program = harness.build_program(fabric.runtime, PROGRAM)
        with report.case("an answer's event does not overtake the own one"):
            fabric.run([program, "order", "300"]).require(GOOD)
        with report.case("a queue that runs over gives one event for itself and for each of its queue pairs"):
            fabric.run([program, "overrun"]).require(GOOD)
        with report.case("no event is lost if nobody reads them until the sender has ended"):
            fabric.run([program, "unread", str(MESSAGES)]).require(GOOD)
        with report.case("and each of them costs the same") as remarks:
            harness.need_program("strace")
            log = fabric.runtime / "strace.log"
            words = ["strace", "-f", "-c", "-e", "trace=write,ioctl", "-o", log, program, "unread", str(MESSAGES)]
            fabric.run(words, seconds=120).require(GOOD)
            calls = count_calls(log.read_text())
            remarks.append(f"{calls} calls")
            if not MESSAGES <= calls <= CALLS_PER_MESSAGE * MESSAGES:
                raise Failed(f"{calls} calls for {MESSAGES} messages:\n{log.read_text()}")


harness.main("completion events", test)
