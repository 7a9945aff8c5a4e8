#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Names of nodes are names of hosts for programs under `softib run`.

node_names_test.py [--as root|nobody] [--only REGEX]
"""
import json

import harness

PROGRAM = harness.SOURCE / "tests/system/programs/node_names.c"


def addresses(fabric):
    text = fabric.softib("status", "--json", "--fabric", fabric.name).require().text
    return {node["name"]: node["addresses"][0]["ip"] for node in json.loads(text)["nodes"]}


def names(report, fabric):
    with report.case("every call of libc, four threads"):
        program = harness.build_program(fabric.runtime, PROGRAM)
        for node in range(2):
            fabric.run([program, "node1", addresses(fabric)["node1"]], node=node).require(r"^wrong: 0$")
    with report.case("Python"):
        script = "import socket; print(socket.gethostbyname('node0'), socket.getaddrinfo('node1', 1)[0][4][0])"
        known = addresses(fabric)
        fabric.run(["python3", "-c", script]).require(rf"^{known['node0']} {known['node1']}$")
    with report.case("a server's name serves its clients"):
        harness.need_program("ib_write_bw")
        server, client = fabric.pair(["ib_write_bw", "-d", "softib0", "-n", 100, "-s", 4096], nodes=(1, 0), host="node1")
        server.require(r"4096 +100")
        client.require(r"4096 +100")


def test(report, user):
    for layer in ("infiniband", "ethernet"):
        with harness.Fabric(user=user, link_layer=layer) as fabric:
            names(report, fabric)


harness.main("node_names", test)
