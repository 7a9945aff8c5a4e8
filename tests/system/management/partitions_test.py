#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Partitions across switches: a message arrives if and only if the P_Keys of its two sides share a partition with one
full member at least, and each port of a switch that enforces partitions on its way lets its P_Key pass: it has the
partition, as a full member or a limited one.

partitions_test.py [--as root|nobody] [--only REGEX]

../programs/subnet/partitions.c sends one by each transport for each pair of full, limited and foreign P_Keys. Those
that do not arrive end as with hardware: RC and XRC with "retry exceeded", the others with success. The port that drops
a packet counts it, and `softib trace` names that port.
"""
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness
from forwarding_test import path, words_of
from harness import Failed
from subnet_services_test import NODE_GUID, file_of
from subnet_test import SECONDS, Manager

PROGRAMS = pathlib.Path(__file__).resolve().parents[1] / "programs"
RELIABLE, OTHERS = ("RC", "XRC"), ("UC", "UD", "group")
SUCCESS, RETRY_EXCEEDED = 0, 12
DEFAULT, FULL, LIMITED, FOREIGN, FOREIGN_LIMITED = 0xffff, 0x8001, 0x0001, 0x8002, 0x0002
SENT = (FULL, LIMITED, FOREIGN, FOREIGN_LIMITED)  # entries 1 to 4 of both adapters
PORT_INFO, PKEYS = 0x15, 0x16
ENFORCEMENT, VIOLATIONS = 43, slice(46, 48)  # bytes of a PortInfo
IN, OUT = 8, 4
DIRECTIONS = ((IN, "in"), (OUT, "out"))
BOTH = ((IN | OUT, "in and out"),)  # at the first port
LINE = re.compile(r"^(\w+) ([0-9a-f]{4}) ([0-9a-f]{4}) status (\d+) arrived ([01])$", re.MULTILINE)


def share(one, other):
    return one & 0x7fff == other & 0x7fff and (one | other) & 0x8000 != 0


def messages(fabric, words):
    """From node 0 to node 1: the lines of the sender."""
    port = harness.free_port()
    server = fabric.start([*words, port], 1)
    harness.wait_until(lambda: harness.is_listening(server.pid, port) or not server.running(), SECONDS, "the receiver")
    client = fabric.run([*words, port, harness.HOST], 0).require()
    fabric.end(server, SECONDS).require()
    return LINE.findall(client.text)


class Subnet:
    """Node 0 and node 1 with their leaves and spines."""

    def __init__(self, fabric, program, smp):
        self.fabric, self.program, self.smp_program = fabric, program, smp
        self.there, self.back = (path(fabric, one, 1 - one)["hops"] for one in (0, 1))
        self.enforced = {}  # by the name of a switch and a port: directions and P_Keys

    def route(self, count):
        """From node 0, over so many cables of the way to node 1."""
        return ",".join(["0", *(str(hop["out"]) for hop in self.there[:count])])

    def smp(self, kind, *words):
        return self.fabric.run([sys.executable, self.smp_program, kind, *map(str, words)], 0).require().text.strip()

    def give_pkeys(self):
        table = "".join(f"{pkey:04x}" for pkey in (DEFAULT, *SENT))
        for cables in (0, len(self.there)):
            self.smp("set", self.route(cables), PKEYS, 0, f"0={table}")

    def ports(self):
        """Of the switches on the way to node 1: route, name, number, LID."""
        for cables, hop in enumerate(self.there[1:], 1):
            before = self.there[cables - 1]
            yield self.route(cables), before["to"], before["in"], before["to_lid"]
            yield self.route(cables), hop["from"], hop["out"], hop["from_lid"]

    def enforce(self, route, name, port, directions, pkeys):
        table = "".join(f"{pkey:04x}" for pkey in (DEFAULT, *pkeys)).ljust(20, "0")
        self.smp("set", route, PKEYS, port << 16, f"0={table}")
        self.smp("set", route, PORT_INFO, port, f"{ENFORCEMENT}={directions:02x}/0c")
        self.enforced = {(name, port): (directions, (DEFAULT, *pkeys))} if directions else {}

    def drops_at(self, hops, pkey):
        """The first port of the way that does not let the packet pass."""
        for hop in hops:
            for port, direction in (((hop["from"], hop["out"]), OUT), ((hop["to"], hop["in"]), IN)):
                directions, pkeys = self.enforced.get(port, (0, ()))
                if directions & direction and not any(pkey & 0x7fff == one & 0x7fff for one in pkeys):
                    return port
        return None

    def expected(self, transport, one, other):
        """Status, whether it arrives, and the port of a switch that drops it or its answer."""
        port = self.drops_at(self.there, one)
        if port is None and transport in RELIABLE and share(one, other):
            port = self.drops_at(self.back, other)
        arrives = port is None and share(one, other)
        return SUCCESS if arrives or transport in OTHERS else RETRY_EXCEEDED, arrives, port

    def send_all(self):
        words = [self.program, ",".join((*RELIABLE, *OTHERS)), "1", str(len(SENT))]
        return messages(self.fabric, words)

    def counted(self):
        """By ports of switches that enforce partitions, and by the adapter of node 1."""
        ports = {}
        for _, name, port, lid in self.ports():
            text = self.fabric.run(["perfquery", str(lid), str(port)], 0).require().text
            ports[name, port] = sum(map(int, re.findall(r"^Port(?:Xmit|Rcv)ConstraintErrors:\.*(\d+)$", text, re.MULTILINE)))
        info = bytes.fromhex(self.smp("get", self.route(len(self.there)), PORT_INFO, 1))
        return ports, int.from_bytes(info[VIOLATIONS], "big")

    def check(self):
        before, violations_before = self.counted()
        rows = self.send_all()
        if len(rows) != len(RELIABLE + OTHERS) * len(SENT) ** 2:
            raise Failed(f"{len(rows)} messages were sent")
        droppers = set()
        violations = 0
        for transport, one, other, *outcome in rows:
            status, arrives, port = self.expected(transport, int(one, 16), int(other, 16))
            if [int(word) for word in outcome] != [status, int(arrives)]:
                raise Failed(f"{transport} from {one} to {other}: status and arrival are {outcome}, not {status}, {arrives}; "
                             f"enforced: {self.enforced}")
            droppers.update([port] if port else [])
            violations += not arrives and port is None
        after, violations_after = self.counted()
        grown = {port for port in after if after[port] > before[port]}
        if grown != droppers:
            raise Failed(f"the ports {grown} count packets that they have dropped, and not {droppers}")
        counted = violations_after - violations_before
        if (counted == 0) != (violations == 0):
            raise Failed(f"node 1 counts {counted} violations of its P_Key, of {violations}")
        text = words_of(self.fabric)
        for name, port in droppers:
            if not re.search(rf"switch {name}, port {port}\b.*P_Key", text):
                raise Failed(f"nothing of switch {name}, port {port} in `softib trace`:\n{harness.tail(text, 12)}")


def by_hand(report, user, program, smp):
    # The groups are not those of a subnet administrator, and have no tree.
    with harness.Fabric(nodes=2, user=user, in_tree=True, extra=("--sm", "direct")) as fabric:
        net = Subnet(fabric, program, smp)
        net.give_pkeys()
        with report.case("each pair of P_Keys, of the adapters alone"):
            net.check()
        for place, (route, name, port, _) in enumerate(net.ports()):
            for directions, what in (*DIRECTIONS, *BOTH[place:]):
                for pkeys, members in (((FULL,), "a full member"), ((LIMITED,), "a limited one")):
                    title = f"{name}, port {port}, enforces {what} as {members}"
                    if report.wanted(title):
                        with report.case(title):
                            net.enforce(route, name, port, directions, pkeys)
                            net.check()
            net.enforce(route, name, port, 0, ())
        with report.case("each pair again, when no switch enforces partitions any more"):
            net.check()


def by_opensm(report, user, program, smp):
    """OpenSM has the leaves guard the partitions of their nodes, and hears of what they drop."""
    with harness.Fabric(nodes=2, user=user, in_tree=True, extra=("--sm", "none")) as fabric, \
            report.case("a partition of OpenSM, and its traps"):
        text = ("Default=0x7fff,ipoib:ALL=full;\n" +
                "".join(f"Own{node}={node + 1:#x}:{NODE_GUID.format(node)}=full;\n" for node in range(2)))
        manager = Manager(fabric, 0, "-P", file_of(user, "partitions.conf", text))
        manager.wait_until_up()
        net = Subnet(fabric, program, smp)
        rows = messages(fabric, [program, "RC,UD", "1", "1"])
        if [(row[1:3], row[4]) for row in rows] != [(("8001", "8002"), "0")] * 2:
            raise Failed(f"these were sent: {rows}")
        *_, (_, name, last, lid) = net.ports()
        ports, violations = net.counted()
        if {port for port, count in ports.items() if count} != {(name, last)} or violations:
            raise Failed(f"counted at {ports}, and {violations} times at node 1; not at {name}, port {last}")
        manager.wait_for("num:259")
        if not re.search(rf"num:259.*\b{lid}\b", manager.read_log()):
            raise Failed(f"no trap 259 from LID {lid}:\n" + harness.tail("\n".join(
                line for line in manager.read_log().splitlines() if "num:" in line)))
        manager.end()


def main(report, user):
    harness.need_program("perfquery")
    folder = user.make_dir("softib-partitions-")
    folder.chmod(0o755)
    program = harness.build_program(folder, PROGRAMS / "subnet/partitions.c")
    smp = folder / "smp.py"
    shutil.copyfile(PROGRAMS / "umad/smp.py", smp)
    smp.chmod(0o755)
    by_hand(report, user, program, smp)
    by_opensm(report, user, program, smp)


if __name__ == "__main__":
    harness.main("partitions", main)
