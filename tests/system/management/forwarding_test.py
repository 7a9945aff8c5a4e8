#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Messages follow the subnet: the tables of the switches, cables, partitions and multicast trees decide what arrives,
and every port on the way counts it.

forwarding_test.py [--as root|nobody] [--only REGEX]
"""
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness
from harness import Failed
from subnet_test import SECONDS, Manager, all_active, end_ports, subnet
from support.perftest import Endless

SMP = pathlib.Path(__file__).resolve().parents[1] / "programs/umad/smp.py"
TREE = "fat-tree:levels=2,ports=4"  # 8 adapters at 4 leaves, 2 spines
LINEAR = "0x19"  # LinearForwardingTable
NO_PORT = "ff"
LINES = 30


def softib(fabric, *words, code=0):
    return fabric.softib(*words, "--fabric", fabric.name).require(code=code)


def set_smp(fabric, route, attribute, modifier, *changes):
    fabric.run([sys.executable, SMP, "set", route, attribute, str(modifier), *changes], 0).require()


def path(fabric, one, other):
    return json.loads(softib(fabric, "path", one, other, "--json").text)


def lid_of(fabric, node):
    return end_ports(fabric)[node]["lid"]


def set_table(fabric, lid, port):
    """Of the switch at the cable of node 0."""
    set_smp(fabric, "0,1", LINEAR, lid // 64, f"{lid % 64}={port}")


def words_of(fabric):
    return softib(fabric, "trace").text


def one_way(report, fabric, last):
    for kind, words in (("RC", ["ib_write_bw", "-c", "RC"]), ("UC", ["ib_send_bw", "-c", "UC"]),
                        ("UD", ["ib_send_lat", "-c", "UD"]), ("XRC", ["ib_send_bw", "-c", "XRC"])):
        with report.case(f"{kind} between leaves"):
            harness.forget_xrc_domain()
            for result in fabric.pair([*words, "-n", "500", "-s", "1024"], nodes=(last, 0)):
                result.require()


def counters(fabric, lid, port):
    text = fabric.run(["perfquery", "-x", str(lid), str(port)], 0).require().text
    return {name: int(value) for name, value in re.findall(r"^(Port\w+):\.*(\d+)$", text, re.MULTILINE)}


def check_counters(report, fabric, last):
    with report.case("each port on the way counts the data"):
        hops = path(fabric, last, 0)["hops"]
        ends = [(hop["from_lid"], hop["out"], "PortXmitData") for hop in hops]
        ends += [(hop["to_lid"], hop["in"], "PortRcvData") for hop in hops]
        before = [counters(fabric, lid, port)[name] for lid, port, name in ends]
        messages, size = 3000, 4096
        for result in fabric.pair(["ib_write_bw", "-n", str(messages), "-s", str(size)], nodes=(0, last)):
            result.require()
        after = [counters(fabric, lid, port)[name] for lid, port, name in ends]
        grown = [(b - a) * 4 for a, b in zip(before, after)]
        least = messages * size
        if not all(least <= one <= least * 1.2 for one in grown) or len(ends) < 6:
            raise Failed(f"{messages} writes of {size} bytes, and the ports {ends} count {grown} bytes more")
        if max(grown) - min(grown) > 64 * 1024:  # MADs of these very queries
            raise Failed(f"the ports of one way differ: {grown}")


def fails(fabric, last, *patterns):
    """A connection there does not work, and the trace says why."""
    server, client = fabric.pair(["ib_write_bw", "-n", "100", "-u", "8"], nodes=(last, 0), server_ends=False)
    if client.code == 0:
        raise Failed(f"{client.name} arrives:\n{harness.tail(client.text)}")
    for pattern in patterns:
        if not re.search(pattern, words_of(fabric)):
            raise Failed(f"no {pattern!r} in `softib trace`:\n{harness.tail(words_of(fabric), LINES)}")


def arrives(fabric, last):
    for result in fabric.pair(["ib_write_lat", "-n", "100", "-u", "8"], nodes=(last, 0)):
        result.require()


def damage(report, fabric, last):
    lid = lid_of(fabric, last)
    port = path(fabric, 0, last)["hops"][1]["out"]
    with report.case("a table without the LID stops RC, and the trace names the switch"):
        set_table(fabric, lid, NO_PORT)
        fails(fabric, last, rf"the way to LID {lid} ends at switch \S+, port \d+: the table")
        set_table(fabric, lid, f"{port:02x}")
        arrives(fabric, last)
    with report.case("UD to a LID without an entry is lost, and comes when there is one"):
        set_table(fabric, lid, NO_PORT)
        lost = fabric.run(["perfquery", "-t", "200", str(lid), "1"], 0)
        if lost.code == 0:
            raise Failed(f"{lost.name}: an answer without a way")
        set_table(fabric, lid, f"{port:02x}")
        fabric.run(["perfquery", str(lid), "1"], 0).require()


def cable(report, fabric, last):
    with report.case("a cable of the way that is pulled out, and other ways where softib manages"):
        hop = path(fabric, 0, last)["hops"][1]
        end = f"{hop['from_guid']}:{hop['out']}"
        softib(fabric, "cable", "down", end)
        arrives(fabric, last)
        if path(fabric, 0, last)["hops"][1]["out"] == hop["out"]:
            raise Failed("the way still begins with the cable that is down")
        softib(fabric, "cable", "up", end)
        arrives(fabric, last)
    with report.case("traffic goes on when the cable of its only way comes back in time"):
        end = f"node{last}:1"
        pair = Endless(fabric, ["ib_send_bw"], last, 0)
        fabric.wait_for_packets(pair.client, SECONDS)
        softib(fabric, "cable", "down", end)
        softib(fabric, "cable", "up", end)
        fabric.wait_for_packets(pair.client, SECONDS)
        pair.end()


def group(report, fabric, last):
    with report.case("multicast over the switches"):
        words = ["stdbuf", "-oL", "mckey", "-m", "239.78.1.1", "-C", "5"]
        receivers = [fabric.start([*words, "-b", fabric.address(node)], node) for node in (last, 2)]
        for receiver in receivers:
            receiver.wait_for_text("joined dgid", SECONDS)
        fabric.run([*words, "-b", fabric.address(0), "-s"], 0).require()
        for receiver in receivers:
            fabric.end(receiver, SECONDS).require()


def by_softib(report, user):
    with subnet(user, TREE) as fabric:
        last = len(end_ports(fabric)) - 1
        one_way(report, fabric, last)
        check_counters(report, fabric, last)
        damage(report, fabric, last)
        cable(report, fabric, last)
        group(report, fabric, last)


def by_opensm(report, user):
    with subnet(user, TREE, "--sm", "none") as fabric:
        manager = Manager(fabric)
        manager.wait_until_up()
        last = len(end_ports(fabric)) - 1
        one_way(report, fabric, last)
        group(report, fabric, last)
        with report.case("RC moves when OpenSM routes round a cable"):
            hop = path(fabric, 0, last)["hops"][1]
            pair = Endless(fabric, ["ib_send_bw"], last, 0)
            fabric.wait_for_packets(pair.client, SECONDS)
            softib(fabric, "cable", "down", f"{hop['from_guid']}:{hop['out']}")
            harness.wait_until(lambda: path(fabric, 0, last)["arrives"], SECONDS, "another way")
            fabric.wait_for_packets(pair.client, SECONDS)
            pair.end()
            sweeps = manager.read_log().count("SUBNET UP")
            softib(fabric, "cable", "up", f"{hop['from_guid']}:{hop['out']}")
            harness.wait_until(lambda: all_active(fabric) and manager.read_log().count("SUBNET UP") > sweeps, SECONDS,
                               "OpenSM to take the cable in")
        manager.end("(IB_TIMEOUT)")  # of its requests over the cable


def main(report, user):
    for name in ("perfquery", "ib_write_bw", "mckey"):
        harness.need_program(name)
    by_softib(report, user)
    by_opensm(report, user)


if __name__ == "__main__":
    harness.main("forwarding", main)
