#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Every port on a way counts exactly the packets and bytes that pass it, for each transport.

counters_test.py [--as root|nobody] [--only REGEX]

../programs/subnet/counted.c sends a number of messages from node 0 to node 1 of a fat tree; perfquery reads the
extended counters of all ports before and after. They have to grow by what the headers of IBA volume 1, clause 9 add up
to. The packets of perfquery itself are those that it has counted between two readings without other traffic.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness
from forwarding_test import counters, path
from harness import Failed
from subnet_test import SECONDS, elements

SOURCE = pathlib.Path(__file__).resolve().parents[1] / "programs/subnet/counted.c"
LRH, GRH, BTH, ICRC, AETH, RETH, DETH, XRCETH = 8, 40, 12, 4, 4, 16, 8, 4
BASE = LRH + BTH + ICRC
MTU = 1024
COUNT = 500
NAMES = ("Data", "Pkts", "UnicastPkts", "MulticastPkts")
CASES = [("RC", "send", 1000), ("RC", "send", 5001), ("RC", "write", 1000), ("RC", "write", 5001), ("RC", "read", 1000),
         ("RC", "read", 5001), ("UC", "send", 5001), ("UC", "write", 1000), ("XRC", "send", 5001), ("UD", "send", 1001),
         ("group", "send", 1001)]


def packets_of(size):
    """Of a message over a connection, and the bytes of its payload with padding."""
    return max(1, -(-size // MTU)), size + -size % 4


def expected(transport, operation, size):
    """Packets and bytes of a message there, and of what comes back."""
    count, payload = packets_of(size)
    if operation == "read":
        middle = max(0, count - 2)
        return (1, BASE + RETH), (count, count * BASE + payload + (count - middle) * AETH)
    if transport in ("UD", "group"):
        return (1, BASE + DETH + payload + (GRH if transport == "group" else 0)), (0, 0)
    each = BASE + (XRCETH if transport == "XRC" else 0)
    there = (count, count * each + payload + (RETH if operation == "write" else 0))
    return there, (1, BASE + AETH) if transport != "UC" else (0, 0)


def ends_of(hops):
    """(LID, port, direction) of each port that packets pass."""
    return [(hop["from_lid"], hop["out"], "Xmit") for hop in hops] + [(hop["to_lid"], hop["in"], "Rcv") for hop in hops]


def reading(fabric, ports):
    return {port: counters(fabric, *port) for port in ports}


def send(fabric, program, transport, operation, size):
    port = harness.free_port()
    words = [program, transport, operation, COUNT, size, port]
    server = fabric.start(words, 1)
    harness.wait_until(lambda: harness.is_listening(server.pid, port) or not server.running(), SECONDS, "the receiver")
    fabric.run([*words, harness.HOST], 0).require()
    fabric.end(server, SECONDS).require()


def all_ports(fabric):
    for element in elements(fabric):
        lid = next(port["lid"] for port in element["ports"] if "lid" in port)
        for port in element["ports"]:
            if port["port"] != 0:
                yield lid, port["port"]


def check(fabric, program, case):
    transport = case[0]
    ports = list(all_ports(fabric))
    way = {"there": ends_of(path(fabric, 0, 1)["hops"]), "back": ends_of(path(fabric, 1, 0)["hops"])}
    readings = [reading(fabric, ports) for _ in range(2)]
    send(fabric, program, *case)
    readings.append(reading(fabric, ports))
    for port in ports:
        for direction in ("Xmit", "Rcv"):
            wanted = [0, 0]
            for side, (packets, size) in zip(way.values(), expected(*case)):
                if (*port, direction) in side:
                    wanted = [wanted[0] + COUNT * packets, wanted[1] + COUNT * size]
            unicast, multicast = (0, wanted[0]) if transport == "group" else (wanted[0], 0)
            wanted = [wanted[1] // 4, wanted[0], unicast, multicast]
            for name, value in zip(NAMES, wanted):
                key = name.replace("Pkts", f"{direction}Pkts") if "cast" in name else f"{direction}{name}"
                before, noise, after = (one[port][f"Port{key}"] for one in readings)
                if after - noise - (noise - before) != value:
                    raise Failed(f"LID {port[0]}, port {port[1]}: Port{key} has grown by {after - noise}, of which "
                                 f"{noise - before} are of perfquery, and not {value}; the ways are {way}")


def main(report, user):
    harness.need_program("perfquery")
    folder = user.make_dir("softib-counters-")
    folder.chmod(0o755)
    program = harness.build_program(folder, SOURCE)
    with harness.Fabric(nodes=2, user=user, in_tree=True, extra=("--sm", "direct")) as fabric:
        for node in range(2):  # softibd's own queue pairs come with the first use of a node
            fabric.run(["true"], node)
        for case in CASES:
            with report.case(f"{COUNT} messages: {case[0]}, {case[1]}, {case[2]} bytes"):
                check(fabric, program, case)


if __name__ == "__main__":
    harness.main("counters", main)
