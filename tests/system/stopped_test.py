#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A process that is stopped in the middle of a work request (SIGSTOP, a debugger): clients without a connection to it
go on, `softib status` names it, and work that waits for it goes on once it does
(docs/design/0009-stopped-processes.md).

stopped_test.py [--as root|nobody] [--only REGEX]
"""
import os
import signal

import harness
from harness import Failed

PROGRAM = harness.SOURCE / "tests/system/programs/without_softibd.c"
STOPS = 40  # attempts to stop the client inside a request


def is_awaited(fabric, pid):
    return pid in [poster["pid"] for poster in fabric.state()["posters_waited_for"]]


def start_pair(fabric, port):
    """Messages of 1 MiB, each a system call that takes a hundred microseconds."""
    words = ["ib_write_bw", "-s", 1 << 20, "-D", 60, "-p", port]
    server = fabric.start(words, 0, path="process_vm")
    harness.wait_until(lambda: harness.is_listening(server.pid, port) or not server.running(), 20, "ib_write_bw to listen")
    before = fabric.sent_messages()
    client = fabric.start([*words, harness.HOST], 1, path="process_vm")
    harness.wait_until(lambda: fabric.sent_messages() > before + 100, 30, "messages to flow")
    return server, client


def stop_inside_a_request(fabric):
    """The client of a pair, stopped in the middle of a message; its server has got SIGTERM and waits for it."""
    for _ in range(STOPS):
        server, client = start_pair(fabric, harness.free_port())
        os.kill(client.pid, signal.SIGSTOP)
        server.process.terminate()
        try:
            harness.wait_until(lambda pid=client.pid: is_awaited(fabric, pid), 2, "softibd to wait for the client")
            return client
        except Failed:
            client.kill()
            server.kill()
    raise Failed(f"in {STOPS} stops the client was never inside a request")


def test(report, user):
    with harness.Fabric(nodes=2, user=user) as fabric:
        with report.case("unrelated programs go on") as remarks:
            client = stop_inside_a_request(fabric)
            for words in (["ibv_rc_pingpong", "-g", 0, "-n", 100], ["ibv_ud_pingpong", "-g", 0, "-n", 100]):
                server, other = fabric.pair(words, seconds=30)
                server.require()
                other.require()
            if not is_awaited(fabric, client.pid):
                raise Failed("the stopped client is no longer waited for: the programs had nothing to pass")
            remarks.append("registered, exchanged, destroyed beside a process that was stopped in a request")
        with report.case("status and trace name it"):
            fabric.softib("status", "--fabric", fabric.name).require(r"waited for, inside a work request",
                                                                      rf"pid {client.pid} \(ib_write_bw\)")
            harness.wait_until(lambda: str(client.pid) in fabric.softib("trace", "--fabric", fabric.name).text, 10,
                               "a line of the trace about the stopped client")
        with report.case("what waited for it goes on once it does"):
            os.kill(client.pid, signal.SIGCONT)
            harness.wait_until(lambda: not fabric.state()["posters_waited_for"], 20, "nobody to be waited for")
            if client.wait(60) is None:
                raise Failed(f"the client did not end after its server had gone:\n{harness.tail(client.text())}")
            harness.wait_until(lambda: not fabric.state()["clients"], 20, "no client to be left")
        with report.case("one that is killed while it is stopped holds up nobody"):
            client = stop_inside_a_request(fabric)
            client.kill()
            harness.wait_until(lambda: not fabric.state()["posters_waited_for"], 20, "nobody to be waited for")
            harness.wait_until(lambda: not fabric.state()["clients"], 20, "no client to be left")
            if any(fabric.state()["objects"].values()):
                raise Failed(f"left behind: {fabric.state()['objects']}")
    without_softibd(report, user)


def without_softibd(report, user):
    with report.case("after the end of softibd, who has many queue pairs waits for it once") as remarks:
        with harness.Fabric(nodes=1, user=user) as fabric:
            program = harness.build_program(fabric.runtime, PROGRAM)
            result = fabric.run([program, fabric.state()["pid"]], path="process_vm", seconds=120)
            remarks.append(result.text.strip())
            result.require(r"^yields: few \(\d+\), a poll: Input/output error$")


harness.main("stopped processes", test)
