#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Ports with several LIDs, whose ways differ, and connections that go from one to the other when a cable is pulled.

migration_test.py [--as root|nobody] [--only REGEX]

OpenSM gives each port two LIDs (LMC 1), and the ways to them different spines. ../programs/subnet/migration.c sends
datagrams from and to each, and messages without end over a connection that has the second LIDs as its alternate path.
It has no retries: a request that tried a broken path would fail.
"""
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness
from forwarding_test import counters, softib
from harness import Failed
from subnet_test import SECONDS, Manager, all_active, end_ports

SOURCE = pathlib.Path(__file__).resolve().parents[1] / "programs/subnet/migration.c"
LMC = 1
ROUNDS = 2  # to the second LIDs and back
MIGRATED = 0


def hops_to(fabric, node, bits):
    """From the other node to one of the LIDs of this one; None while there is no way."""
    lid = end_ports(fabric)[node]["lid"] + bits
    way = fabric.softib("path", str(1 - node), f"lid:{lid}", "--json", "--fabric", fabric.name)
    found = json.loads(way.text) if way.code == 0 else {"arrives": False}
    return found["hops"] if found["arrives"] else None


def first_cable(hops):
    """Between the sender's leaf and a spine."""
    return f"{hops[1]['from']}:{hops[1]['out']}"


def differ(fabric):
    """Whether the ways to both LIDs of both nodes are there, and have no cable between switches in common."""
    ways = [[hops_to(fabric, node, bits) for node in (0, 1)] for bits in range(2)]
    if any(hops is None for pair in ways for hops in pair):
        return False
    spines = [{hops[1]["to"] for hops in pair} for pair in ways]
    return not spines[0] & spines[1]


def several_lids(report, fabric, program):
    with report.case("two LIDs of each port, by different spines"):
        for node in range(2):
            fabric.run(["ibstat"], node).require(rf"LMC: {LMC}$")
        for node in range(2):
            one, other = (hops_to(fabric, node, bits) for bits in range(2))
            if one[1]["to"] == other[1]["to"]:
                raise Failed(f"both LIDs of node {node} are reached by {one[1]['to']}")
    with report.case("datagrams tell the LIDs that they came from and to"):
        server, client = pair(fabric, program, "bits")
        fabric.end(client, SECONDS).require()
        text = fabric.end(server, SECONDS).require().text
        wanted = [f"from {source} to {to}: source LID {source:+d}, path bits {to}" for source in range(2) for to in range(2)]
        if text.split("\n")[:-1] != wanted:
            raise Failed(f"the receiver says:\n{text}")


def pair(fabric, program, *words):
    port = harness.free_port()
    server = fabric.start([program, *words, port], 1)
    harness.wait_until(lambda: harness.is_listening(server.pid, port), SECONDS, "the receiver")
    return server, fabric.start([program, *words, port, harness.HOST], 0)


def ends_well(fabric, server, client):
    """All messages have come in order, over the paths that both sides say."""
    sides = [fabric.end(program, SECONDS).require() for program in (client, server)]
    sent, received = (re.search(rf"^{verb} (\d+)$", side.text, re.MULTILINE) for verb, side in
                      zip(("sent", "received"), sides))
    if not sent or not received or sent[1] != received[1]:
        raise Failed(f"{sides[0].text}\n{sides[1].text}")
    for side in sides:
        places = re.findall(r"^migrated to LID \+(\d), path bits (\d), state (\d)$", side.text, re.MULTILINE)
        if places != [("1", "1", str(MIGRATED)), ("0", "0", str(MIGRATED))]:
            raise Failed(f"{side.name} says:\n{side.text}")
    return int(sent[1])


def armed(client, times):
    harness.wait_until(lambda: client.text().count("armed") >= times or not client.running(), SECONDS, "both ends to be armed")


def by_cable(report, fabric, program, manager):
    with report.case("a cable that is pulled out under a connection, there and back") as remarks:
        server, client = pair(fabric, program, "cable", ROUNDS)
        for bits in range(ROUNDS):
            armed(client, bits + 1)
            here, there = (hops_to(fabric, 1, way) for way in (bits, 1 - bits))
            before = counters(fabric, there[1]["from_lid"], there[1]["out"])["PortXmitData"]
            cable = first_cable(here)
            softib(fabric, "cable", "down", cable)
            harness.wait_until(lambda: client.text().count("migrated") > bits or not client.running(), SECONDS,
                               "the migration")
            harness.wait_until(lambda: not client.running() or counters(
                fabric, there[1]["from_lid"], there[1]["out"])["PortXmitData"] > before, SECONDS, "data on the other way")
            sweeps = manager.read_log().count("SUBNET UP")
            softib(fabric, "cable", "up", cable)
            harness.wait_until(lambda: all_active(fabric) and differ(fabric) and
                               manager.read_log().count("SUBNET UP") > sweeps, SECONDS, "OpenSM to take the cable in")
        remarks.append(f"{ends_well(fabric, server, client)} messages")


def by_hand(report, fabric, program):
    with report.case("a program that migrates by itself, there and back") as remarks:
        remarks.append(f"{ends_well(fabric, *pair(fabric, program, 'hand', ROUNDS))} messages")


def main(report, user):
    folder = user.make_dir("softib-migration-")
    folder.chmod(0o755)
    program = harness.build_program(folder, SOURCE)
    with harness.Fabric(nodes=2, user=user, in_tree=True, extra=("--sm", "none")) as fabric:
        manager = Manager(fabric, 0, "-l", LMC)
        manager.wait_until_up()
        several_lids(report, fabric, program)
        by_hand(report, fabric, program)
        by_cable(report, fabric, program, manager)
        manager.end()


if __name__ == "__main__":
    harness.main("migration", main)
