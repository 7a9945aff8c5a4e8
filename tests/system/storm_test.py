#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""1,000 clients that connect by librdmacm, leave and are killed at random, and leave nothing behind.

storm_test.py [--as root|nobody] [--only REGEX] [--link-layer ethernet] [--tree]
SOFTIB_SEED=n repeats the clients and the order of the kills; SOFTIB_CLIENTS=n has more of them.

Clients that are not killed must be served as their requests say (programs/storm.c): accepted, rejected with their
private data of any length, disconnected. Afterwards the server has no connection, and softibd no id, object, client or
descriptor more than before; after a third storm it has not more memory than after the second, but for the lines of its
trace, which has a bound of its own (Trace::kLines).
"""
import os
import pathlib
import random
import signal

import harness
from harness import Failed

CONFIG = """[[node]]
name = "node0"
addresses = ["127.80.0.1"]
[[node]]
name = "node1"
addresses = ["127.80.0.2"]
"""
SERVER = "127.80.0.1"
PORT = "7471"
SECONDS = 300
# The growth that a storm may cause: the allocator's holes are in other places, and each line of the trace (at most
# 4,096) has its text, its likeness and the names of both programs. Measured: 1.2 KiB for a line.
MOST_GROWTH = 1.06
TRACE_LINE_KIB = 1.5


class Storms:
    def __init__(self, fabric, program, seed, clients):
        self.fabric, self.program, self.seed, self.clients = fabric, program, seed, clients
        for node in range(2):  # softibd's own queue pairs come with the first use of a node
            fabric.run(["cat", "/dev/infiniband/rdma_cm"], node)
        self.server = fabric.start([program, "server", SERVER, PORT], 0)
        harness.wait_until(lambda: self.state()["rdma_cm"] or not self.server.running(), 40, "the server to listen")
        self.before = self.state()
        self.descriptors = self.count_descriptors()

    def state(self):
        state = self.fabric.state()
        for one in state["rdma_cm"]:
            one.pop("age_ms")
        return state

    def count_descriptors(self):
        return len(os.listdir(f"/proc/{self.before['pid']}/fd"))

    def memory(self):
        """Of softibd, in KiB: its heap and the pages of device memory."""
        lines = pathlib.Path(f"/proc/{self.before['pid']}/status").read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith(("RssAnon", "RssShmem")))

    def storm(self, number):
        result = self.fabric.run([self.program, "clients", SERVER, PORT, self.clients, self.seed + number], 1, SECONDS)
        if not self.server.running():
            raise Failed(f"the server ended with {self.server.process.returncode}:\n{harness.tail(self.server.text())}")
        result.require(r"^\d+ clients, [1-9]\d* served, [1-9]\d* killed$")
        self.leaves_nothing()
        return result.text.strip()

    def differences(self):
        now = self.state()
        found = [f"{key}: {now[key]}, not {self.before[key]}" for key in ("rdma_cm", "objects")
                 if now[key] != self.before[key]]
        if len(now["clients"]) != len(self.before["clients"]):
            found.append(f"clients: {now['clients']}")
        if self.count_descriptors() > self.descriptors:
            found.append(f"descriptors: {self.count_descriptors()}, not {self.descriptors}")
        return found

    def leaves_nothing(self):
        try:
            harness.wait_until(lambda: not self.differences(), 60, "what the clients had to be gone")
        except Failed:
            raise Failed("softibd has more than before: " + "; ".join(self.differences())[:3000]) from None

    def end(self):
        os.kill(self.server.pid, signal.SIGTERM)
        self.fabric.end(self.server, 40).require("^0 connections left$")
        harness.wait_until(lambda: not self.state()["rdma_cm"], 40, "the server's id to be gone")


def test(report, user):
    seed = harness.seed()
    clients = int(os.environ.get("SOFTIB_CLIENTS", "1000"))
    print(f"  SOFTIB_SEED={seed}")
    folder = user.make_dir("softib-storm-")
    folder.chmod(0o755)
    source = pathlib.Path(__file__).resolve().parent / "programs/storm.c"
    with report.case(f"{clients} clients, three times") as remarks, \
            harness.Fabric(nodes=2, user=user, config=CONFIG) as fabric:
        storms = Storms(fabric, harness.build_program(folder, source, libraries=("-lrdmacm", "-libverbs")), seed, clients)
        remarks.append(storms.storm(0))
        storms.storm(1)  # by now all that stays once it was used is there
        first, lines = storms.memory(), storms.state()["trace_last"]
        storms.storm(2)
        second, lines = storms.memory(), storms.state()["trace_last"] - lines
        remarks.append(f"softibd: {first} and {second} KiB, {lines} lines of its trace")
        if second > MOST_GROWTH * first + TRACE_LINE_KIB * lines:
            raise Failed(f"softibd has {second} KiB after the third storm, and had {first} after the second; its trace "
                         f"has {lines} lines more")
        storms.end()


harness.main("storm", test)
