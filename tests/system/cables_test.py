#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Cables between ports: who reaches whom, and what the other end sees when one end goes down.

cables_test.py [--as root|nobody] [--link-layer ethernet] [--only REGEX]
"""

import harness
from harness import Failed

CONFIG = """
[[link]]
ports = ["node0/softib0/1", "node1/softib0/1"]
"""
PINGPONG = ["ibv_rc_pingpong", "-d", "softib0", *(["-g", "1"] if harness.ETHERNET else [])]
NO_ANSWER = r"Failed status transport retry counter exceeded \(12\)"


def ports(fabric):
    nodes = fabric.state()["nodes"]
    return {node["name"]: node["hcas"][0]["ports"][0] for node in nodes}


def set_port(fabric, node, direction):
    return fabric.softib("port", direction, "--node", node, "--fabric", fabric.name)


def reachability(report, fabric):
    with report.case("the two ends of a cable reach each other"):
        for side in fabric.pair(PINGPONG):
            side.require(r"1000 iters in")
    with report.case("ports without a cable reach each other"):
        for side in fabric.pair(PINGPONG, nodes=(2, 3)):
            side.require(r"1000 iters in")
    with report.case("a third node is not reached, and the trace says why"):
        if harness.ETHERNET:  # a GID is resolved when the queue pair connects, first the server's
            fabric.pair(PINGPONG, nodes=(2, 0))[0].require("Failed to modify QP to RTR", code=1)
            fabric.softib("trace", "--fabric", fabric.name).require("a cable leads to its other end only")
        else:
            fabric.pair(PINGPONG, nodes=(2, 0), server_ends=False)[1].require(NO_ANSWER, code=1)
            fabric.softib("trace", "--fabric", fabric.name).require(
                "LID 3 is that of node2, softib0, port 1, to which no way leads from here")
    with report.case("softib status shows the other end"):
        found = ports(fabric)
        if found["node1"].get("peer") != {"node": "node0", "hca": "softib0", "port": 1} or "peer" in found["node2"]:
            raise Failed(f"the ports are {found}")
        fabric.softib("status", "--fabric", fabric.name).require("cable to node1/softib0/1", "cable to node0/softib0/1")


def the_other_end(report, fabric):
    watch = ["ibv_asyncwatch", "-d", "softib0"]
    with report.case("a port that goes down takes the other end down"):
        watchers = [fabric.start(watch, node=node) for node in range(2)]
        for watcher in watchers:
            watcher.wait_for_text("async", 20)
        set_port(fabric, "node0", "down").require("is down")
        for watcher in watchers:
            watcher.wait_for_text("IBV_EVENT_PORT_ERR", 20)
        fabric.run(["ibv_devinfo", "-v"], node=0).require(r"state:\s+PORT_DOWN", r"phys_state:\s+DISABLED \(3\)")
        fabric.run(["ibv_devinfo", "-v"], node=1).require(r"state:\s+PORT_DOWN", r"phys_state:\s+POLLING \(2\)")
        fabric.run(["ibv_devinfo"], node=2).require(r"state:\s+PORT_ACTIVE")
    with report.case("it comes up when neither end is down"):
        set_port(fabric, "node1", "down").require("is down")
        set_port(fabric, "node0", "up").require("waits: the other end of its cable, node1/softib0/1, is down")
        set_port(fabric, "node1", "up").require("is up")
        for watcher in watchers:
            watcher.wait_for_text("IBV_EVENT_PORT_ACTIVE", 20)
            watcher.kill()
        for node in range(2):
            fabric.run(["ibv_devinfo"], node=node).require(r"state:\s+PORT_ACTIVE")


def pulled(report, fabric):
    with report.case("a connection whose cable is pulled fails"):
        port = harness.free_port()
        words = [*PINGPONG, "-n", 100000000, "-p", port]
        server = fabric.start(words, node=0)
        harness.wait_until(lambda: harness.is_listening(server.pid, port), 20, "the server to listen")
        client = fabric.start([*words, "127.0.0.1"], node=1)
        harness.wait_until(lambda: ports(fabric)["node1"]["counters"]["received_messages"] > 0, 20, "messages to flow")
        set_port(fabric, "node1", "down").require("is down")
        # The side that has sent last.
        harness.wait_until(lambda: not (server.running() and client.running()), 20, "a side to fail")
        failed = client if server.running() else server
        fabric.end(failed, 5).require(NO_ANSWER, code=1)
        for side in (server, client):
            if side.running():
                side.kill()
        set_port(fabric, "node1", "up").require("is up")
        fabric.pair(PINGPONG)[1].require(r"1000 iters in")


def test(report, user):
    with harness.Fabric(nodes=4, user=user, config=CONFIG) as fabric:
        reachability(report, fabric)
        the_other_end(report, fabric)
        pulled(report, fabric)


harness.main("cables", test)
