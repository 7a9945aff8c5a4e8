#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Threads of programs: cancelled in the middle of calls, on small stacks, and processes that end in a signal handler.
The programs are cancelled_calls.c and small_stacks.c.

threads_test.py [--as root|nobody]
"""
import harness

PROGRAMS = harness.SOURCE / "tests/system/programs"
GOOD = r"^good$"
MOST_OF_DATA, MOST_OF_CONTROL = 4096, 16384  # bytes of stack


def cancelled(report, fabric):
    program = harness.build_program(fabric.runtime, PROGRAMS / "cancelled_calls.c", libraries=("-libverbs", "-lrdmacm"))
    for words, name in ((["pending"], "no call but a wait is a cancellation point"),
                        (["random", "60"], "threads that are cancelled at any moment"),
                        (["waiting"], "threads that are cancelled while they wait for events"),
                        (["exit", "40"], "a signal handler ends the process in the middle of a call")):
        with report.case(name):
            fabric.run([program, *words], seconds=120).require(GOOD)


def stacks(report, fabric):
    program = harness.build_program(fabric.runtime, PROGRAMS / "small_stacks.c")
    for path in ("auto", "adopted", "process_vm", "bounce"):
        with report.case(f"stacks, memory path {path}") as remarks:
            words = ["env", f"SOFTIB_MEMORY_PATH={path}", program, MOST_OF_DATA, MOST_OF_CONTROL]
            done = fabric.run(words, seconds=120).require(GOOD)
            needs = {line[:44].strip(): int(line[44:]) for line in done.text.splitlines() if line[44:].strip().isdigit()}
            data = {name: need for name, need in needs.items() if name.startswith(("ibv_p", "ibv_req", "ibv_wr"))}
            most = max(data, key=data.get)
            remarks.append(f"at most {data[most]} bytes in {most}")


def test(report, user):
    with harness.Fabric(nodes=2, user=user, config=harness.WITH_ADDRESSES) as fabric:
        cancelled(report, fabric)
        stacks(report, fabric)


harness.main("threads", test)
