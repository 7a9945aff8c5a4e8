#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""librpma: a client and a server that check all that they exchange (rpma_check.c), with each kind of receive queue.

rpma_test.py [--as root|nobody] [--link-layer ethernet] [--only REGEX]
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness
from harness import Failed

PROGRAM = pathlib.Path(__file__).with_name("rpma_check.c")
KINDS = {"one": "one completion queue", "receives": "a receive completion queue", "shared": "one channel for both",
         "srq": "a shared receive queue"}
SECONDS = 60


def test(report, user):
    if not pathlib.Path("/usr/include/librpma.h").exists():
        raise harness.Skipped("librpma-dev is not installed (packages.txt)")
    with harness.Fabric(nodes=2, user=user) as fabric:
        program = harness.build_program(fabric.runtime, PROGRAM, libraries=("-lrpma", "-libverbs"))
        address = fabric.address(0)
        for kind, title in KINDS.items():
            if not report.wanted(title):
                continue
            with report.case(title):
                port = str(harness.free_port())
                server = fabric.start([program, "server", kind, address, port], 0)
                harness.wait_until(lambda: fabric.listens_by_cm(server.pid, port) or not server.running(), SECONDS,
                                   "the server to listen")
                client = fabric.run([program, "client", kind, address, port], 1, SECONDS)
                for side in (client, fabric.end(server, SECONDS)):
                    side.require(r"^all rounds are right$")
        lines = fabric.softib("trace", "--fabric", fabric.name).require().text
        if lines:
            raise Failed(f"the trace has\n{lines}")


harness.main("librpma", test)
