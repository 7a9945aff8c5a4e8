#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Builds and runs verbs_rules.c: the rules of libibverbs, from its manual pages and from adapters;
ethernet_rules.c, those of Ethernet ports, with the bytes of two_queue_pairs.c; and port_counters.c.

verbs_rules_test.py [--as root|nobody] [--link-layer ethernet] [--only REGEX]
"""
import os
import shutil
import subprocess
import tempfile

import harness
from harness import Failed


def build(directory, name):
    compiler = harness.need_program("cc")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), f"programs/{name}.c")
    program = os.path.join(directory, name)
    done = subprocess.run([compiler, "-O2", "-Wall", "-Wextra", "-Werror", "-o", program, source, "-libverbs"],
                          timeout=60, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"cc {name}.c:\n{done.stderr}")
    return program


def packets(fabric, way):
    """Of both ports, when their programs have ended."""
    counters = [f"/sys/class/infiniband/softib0/ports/{port}/counters/port_{way}_packets" for port in (1, 2)]
    return sum(map(int, fabric.run(["cat", *counters]).require().text.split()))


def test(report, user):
    directory = tempfile.mkdtemp(prefix="softib-rules-")
    os.chmod(directory, 0o755)
    try:
        with harness.Fabric(nodes=1, user=user) as fabric:
            with report.case("verbs_rules") as remarks:
                done = fabric.run([build(directory, "verbs_rules")]).require(r"^0 rules broken$")
                remarks.append(done.text.splitlines()[0])
            with report.case("every_wr"):
                fabric.run([build(directory, "every_wr")]).require(r"^0 rules broken$")
            if harness.ETHERNET:
                with report.case("ethernet_rules"):
                    fabric.run([build(directory, "ethernet_rules")]).require(r"^0 rules broken$")
                with report.case("two_queue_pairs, also over fork"):
                    program = build(directory, "two_queue_pairs")
                    fabric.run([program]).require(r"^good$")
                    fabric.run([program, "fork"]).require(r"^good$")
        with harness.Fabric(nodes=1, ports=2, user=user) as fabric:
            with report.case("port_counters, and as much is sent as received"):
                fabric.run([build(directory, "port_counters")]).require(r"^0 rules broken$")
                sent, received = packets(fabric, "xmit"), packets(fabric, "rcv")
                if sent < 100 or received != sent + 1:  # the one to a group came to two ports
                    raise Failed(f"{sent} packets sent, {received} received")
    finally:
        shutil.rmtree(directory)


harness.main("verbs rules", test)
