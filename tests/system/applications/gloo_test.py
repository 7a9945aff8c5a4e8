#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""gloo over its ibverbs transport: four ranks on two nodes, every result checked (gloo_check.cpp).

gloo_test.py [--as root|nobody] [--link-layer ethernet]
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness
from harness import Failed

PROGRAM = pathlib.Path(__file__).with_name("gloo_check.cpp")
RANKS = 4
# Index 0 of an Ethernet port is a link-local address, which gloo could use as well.
GID_INDEX = "1" if harness.ETHERNET else "0"


def test(report, user):
    if not pathlib.Path("/usr/include/gloo/config.h").exists():
        raise harness.Skipped("libgloo-dev is not installed (packages.txt)")
    with harness.Fabric(nodes=2, user=user) as fabric, report.case(f"{RANKS} ranks on 2 nodes"):
        program = harness.build_program(fabric.runtime, PROGRAM, compiler="g++", libraries=("-lgloo", "-libverbs"))
        meeting = user.make_dir("softib-gloo-")
        ranks = [fabric.start([program, str(rank), str(RANKS), meeting, "softib0", GID_INDEX], rank * 2 // RANKS)
                 for rank in range(RANKS)]
        for rank in ranks:
            fabric.end(rank, 60).require(r"^all numbers are right$")
        lines = fabric.softib("trace", "--fabric", fabric.name).text
        if "failed" in lines or "refused" in lines:
            raise Failed(f"the trace has\n{lines}")


harness.main("gloo", test)
