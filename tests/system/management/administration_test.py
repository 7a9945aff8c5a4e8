#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""softib's subnet administrator and OpenSM's tell the same of the same subnet: each record that saquery shows, as many,
and with the same fields but for those that a manager sets as it likes.

administration_test.py [--as root|nobody] [--only REGEX]
"""
import collections
import contextlib
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import harness
from harness import Failed
from subnet_test import OSMTEST, SECONDS, Manager, elements, end_ports, subnet

PROGRAMS = pathlib.Path(__file__).resolve().parents[1] / "programs/umad"
SA = PROGRAMS / "sa.py"
TOPOLOGY = "fat-tree:levels=2,ports=4"
NODES = 8
LID_FIELDS = ("EndPortLid", "Lid", "SMLid", "LID", "lid", "FromLID", "ToLID", "slid", "dlid")
MEMBERS = (2, 5)
GROUP = "239.78.1.1"
DIFFERENCES = 3  # that a failure names

# Fields that OpenSM sets otherwise than softib, which manages with as little as a subnet needs; and those about the
# manager itself. OpenSM's LocalPort is the port of a switch by which its SMP came. Of lanes OpenSM without QoS has read
# nothing and tells zeros: softib tells what is in the ports. The scope of a group that was created without one is that
# of its GID for softib, and 0 for OpenSM.
SET_BY_MANAGERS = {
    "PIR": ("CapMask", "IsSM", "SMLid", "LocalPort", "VLStallCount", "HoqLife", "PartEnforceInb", "PartEnforceOutb",
            "LocalPhysErr", "OverrunErr"),
    "SWIR": ("LinearFDBTop", "LifeTimeValue/PortStateChange/OpSL2VL"), "PR": ("pkt_life",), "SMIR": ("ActCount",),
    "SL2VL": ("VL",), "VLAR": ("VL", "Weight"), "IIR": ("SubscriberEnum",), "MCMR": ("pkt_life", "Scope")}
# Words after `saquery`; {0} and {7}: LIDs of nodes, {leaf} of the switch of node 0, {spine} of the next one.
QUERIES = (
    "NR", "NR {7}", "PIR", "PIR {leaf}", "PIR {leaf}/2", "PIR {7}/1", "PIR {7}/2", "SWIR", "SWIR {leaf}", "SWIR {7}",
    "LR", "LR {0}", "LR {leaf}/3", "LR {leaf} {spine}", "LR {0} {7}", "GIR", "GIR {7}/0", "GIR {7}/9", "GIR {leaf}",
    "--smkey 1 PKTR", "--smkey 1 PKTR {7}", "--smkey 1 PKTR {leaf}/2/0", "SL2VL", "SL2VL {7}", "SL2VL {leaf}/1/2",
    "SL2VL {leaf}/1", "VLAR", "VLAR {leaf}/1", "VLAR {leaf}/1/3", "SMIR", "SMIR {0}", "PR", "PR --slid {0}",
    "PR --slid {0} --dlid {7}", "PR --dlid {leaf}", "--src-to-dst {0}:{7}", "-x", "SR", "IIR", "MCMR", "-g",
    "MCMR --mlid 0xc001", "--smkey 1 -m 0xc001", "-m 0xc001")
# Method, attribute, components, and the status of either; None: OpenSM does not answer. It has alias GUIDs, and says of
# Get(MultiPathRecord) that it is not a transfer by RMPP.
STATUSES = (
    (0x01, 0x11, 0, "0x400", "0x400"), (0x12, 0x33, 0, "0x200", "0x200"), (0x14, 0x35, 0, "0xc", "0xc"),
    (0x02, 0x11, 0, "0xc", None), (0x15, 0x20, 0, "0xc", None), (0x01, 0x20, 1, "0x300", "0x300"),
    (0x02, 0x30, 0, "0xc", "0x600"), (0x01, 0x3a, 0, "0xc", "0x200"), (0x13, 0x39, 0, "0x8", None))
GID_OF_NODE_0 = "fe80000000000000" + "0253460000000001"
SERVICE = "0000000000000077" + GID_OF_NODE_0 + "ffff0000" + "ffffffff" + "00" * 16 + b"a service".hex()
SERVICE_COMPONENTS = 0x57  # id, GID, P_Key, lease, name
SUBSCRIPTION = "00" * 16 + "ffff0000" + "0000" + "0101" + "ffff" + "0040" + "00000112" + "00ffffff"
SET, SERVICE_RECORD, INFORM_INFO = 0x02, 0x31, 0x03
SL_TO_VL, ARBITRATION, LINEAR, MULTICAST = 0x17, 0x18, 0x19, 0x1b  # of SMPs


def gid(node):
    return f"fe80::253:4600:{node}:1"


class Answers:
    """Of one administrator: records as saquery shows them, with names in place of LIDs, which each manager gives as it
    likes."""

    def __init__(self, fabric):
        self.fabric = fabric
        names, lids = {}, {}
        for element in elements(fabric):
            for port in element["ports"]:
                if port.get("lid"):
                    names[port["lid"]] = element["description"]
                    lids[element["description"]] = port["lid"]
        self.names = names
        leaf, spine = self.switches()
        self.places = {"leaf": lids[leaf], "spine": lids[spine]}
        self.nodes = [lids[f"node{node} softib0"] for node in range(NODES)]
        self.manager = self.nodes[0]

    def switches(self):
        """The switch of node 0, and one behind it."""
        leaf = next(port["peer"]["description"] for element in elements(self.fabric) for port in element["ports"]
                    if element["description"] == "node0 softib0")
        spine = next(port["peer"]["description"] for element in elements(self.fabric) for port in element["ports"]
                     if element["description"] == leaf and "switch" in port.get("peer", {}).get("description", ""))
        return leaf, spine

    def records(self, words):
        text = self.fabric.run(["saquery", *words.format(*self.nodes, **self.places).split()]).require().text
        kind = next((word for word in words.split() if word.isupper()), "PR" if "--src-to-dst" in words else "")
        records, record = collections.Counter(), []
        for line in text.splitlines():
            if re.search(r"^\w.* dump:$", line):
                records[tuple(record)] += 1
                record = []
            record += self.translated(line.strip(), SET_BY_MANAGERS.get(kind, ()))
        records[tuple(record)] += 1
        return records

    def translated(self, line, ignored):
        name, value = (re.split(r"[:.]{2,}|\s*: ?", line, maxsplit=1) + [""])[:2]
        if name in ignored:
            return []
        if name in LID_FIELDS and value.isdigit():
            return [f"{name}: {self.names.get(int(value), value)}"]
        return [line]

    def tables(self):
        """Of each switch, the destinations that it has ways to."""
        text = self.fabric.run(["saquery", "LFTR"]).require().text
        found = {}
        for record in text.split("LFT Record dump:")[1:]:
            switch = self.names[int(re.search(r"LID\.+(\d+)", record).group(1))]
            ways = {int(lid): int(port) for lid, port in re.findall(r"^\t\t(\d+)\t(\d+)$", record, re.MULTILINE)}
            found.setdefault(switch, {}).update({self.names.get(lid): port for lid, port in ways.items() if port != 255})
        return found

    def sa(self, *words):
        return self.fabric.run([sys.executable, SA, *words])

    def paths(self, sources, destinations, *most):
        text = self.sa("multi", self.manager, ",".join(map(gid, sources)), ",".join(map(gid, destinations)),
                       *most).require().text
        return sorted(tuple(self.names[int(lid)] for lid in line.split()) for line in text.splitlines())

    def smp(self, attribute, modifier):
        """A block of a table of the switch of node 0, as its agent has it."""
        words = [sys.executable, PROGRAMS / "smp.py", "get", "0,1", str(attribute), str(modifier)]
        return bytes.fromhex(self.fabric.run(words).require().text.strip())

    def rows(self, words, pattern):
        """Numbers in the lines of the records about the switch of node 0."""
        text = self.fabric.run(["saquery", *words.format(*self.nodes, **self.places).split()]).require().text
        return [[int(number, 0) for number in re.findall(r"0x[0-9a-f]+|\d+", line)]
                for line in re.findall(pattern, text, re.MULTILINE)]

    def check_tables(self):
        """Records of a switch say the same as its agent. OpenSM shows what it has written itself."""
        expected = [[lid, port] for lid, port in enumerate(self.smp(LINEAR, 0))]
        if (seen := self.rows("LFTR {leaf}/0", r"^\t\t(\d+\t\d+)$")) != expected:
            raise Failed(f"LFTR: {seen}, the switch has {expected}")
        masks = self.smp(MULTICAST, 0)
        expected = [int.from_bytes(masks[at:at + 2], "big") for at in range(0, 64, 2)]
        seen = [mask for _, mask in self.rows("MFTR {leaf}/0/0", r"^\t\t(0x\w+\t0x\w+)$")]
        if seen != expected and (seen or any(expected)):
            raise Failed(f"MFTR: {seen}, the switch has {expected}")

    def check_lanes(self):
        lanes = self.smp(SL_TO_VL, 2 << 8 | 1)[:8].hex()
        if self.rows("SL2VL {leaf}/2/1", r"^\t\tVL:(.*)$") != [[int(lane, 16) for lane in lanes]]:
            raise Failed(f"SL2VL of ports 2 and 1, and the switch has {lanes}")
        pairs = self.smp(ARBITRATION, 1 << 16 | 2)
        rows = self.rows("VLAR {leaf}/2/1", r"^\t\t(?:VL    |Weight):(.*)$")
        if rows != [list(pairs[at + odd:at + 32:2]) for at in (0, 32) for odd in (0, 1)]:
            raise Failed(f"VLAR of port 2: {rows}, and the switch has {pairs.hex()}")

    def register(self):
        """A service and a subscription of node 0."""
        for words in ((SERVICE_RECORD, SERVICE_COMPONENTS, SERVICE), (INFORM_INFO, 0, SUBSCRIPTION)):
            if (status := self.sa("status", self.manager, SET, *words).require().text.strip()) != "0x0":
                raise Failed(f"Set of attribute {words[0]:#x}: {status}")

    def collect(self, report, who):
        self.register()
        groups = [self.fabric.start(["stdbuf", "-oL", "mckey", "-m", GROUP, "-C", "5", "-b", self.fabric.address(node)],
                                    node) for node in MEMBERS]
        for program in groups:
            program.wait_for_text("joined dgid", SECONDS)
        self.answers = {words: self.records(words) for words in QUERIES}
        self.ways = self.tables()
        self.multi = [self.paths((0, 1), (6, 7)), self.paths((0,), (0, 3)), self.paths((0, 1), (6, 7), 1)]
        with report.case(f"LFTR and MFTR of {who} are the tables of the switch"):
            self.check_tables()
        for program in groups:
            program.kill()
        return self


def difference(words, own, other):
    lines = []
    for who, more in (("softib", own - other), ("OpenSM", other - own)):
        for record in list(more)[:DIFFERENCES]:
            lines.append(f"only {who}'s: " + "; ".join(record))
    raise Failed(f"saquery {words}: {sum(own.values()) - 1} records, OpenSM has {sum(other.values()) - 1}\n"
                 + "\n".join(lines))


def compare(report, own, other):
    for words in QUERIES:
        with report.case(f"saquery {words}"):
            if own.answers[words] != other.answers[words]:
                difference(words, own.answers[words], other.answers[words])
    with report.case("saquery LFTR: ways to the same destinations"):
        for switch, ways in own.ways.items():
            # Ways of the same length are chosen by each manager as it likes; to its own nodes a leaf has one.
            if ways.keys() != other.ways[switch].keys():
                raise Failed(f"{switch}: {sorted(ways)}, OpenSM has {sorted(other.ways[switch])}")
        if len(own.ways) != 6 or len(own.ways["switch-1-0"]) != 14:
            raise Failed(f"not all switches or ways: {own.ways}")
    with report.case("MultiPathRecord"):
        if own.multi[:2] != other.multi[:2] or [len(paths) for paths in own.multi] != [4, 2, 1]:
            raise Failed(f"{own.multi}, OpenSM has {other.multi}")


def refusals(report, answers, own):
    for method, attribute, components, *expected in STATUSES:
        status = expected[0 if own else 1]
        if status is None:
            continue
        with report.case(f"method {method:#x} of {attribute:#x} by {'softib' if own else 'OpenSM'}: {status}"):
            answers.sa("status", answers.manager, method, attribute, components).require(f"^{status}$")


def abilities(report, fabric):
    with report.case("ClassPortInfo tells what is there"):
        fabric.run(["saquery", "CPI"]).require("^\t\tCapability mask.*0x2600$", "^\t\tCapability mask 2.*0x000014C8$")


def flow_of_osmtest(folder, flow):
    return [OSMTEST, "-f", flow, "-i", folder / "inventory", "-l", folder / f"log-{flow}"]


@contextlib.contextmanager
def services_of_osmtest(report, user):
    """Its flow of services, which waits for ten seconds, beside what the block does. osmtest_faults.c orders the bytes
    of a GID."""
    folder = user.make_dir("osmtest-")
    folder.chmod(0o755)
    library = harness.build_program(folder, PROGRAMS / "osmtest_faults.c", "-shared", "-fPIC", libraries=())
    with subnet(user, "star:4") as fabric:
        services = fabric.start(flow_of_osmtest(folder, "s"), 2, env={"LD_PRELOAD": str(library)})
        yield fabric
        with report.case("osmtest: Services Registration"):
            fabric.end(services, SECONDS).require('TEST "Services Registration" PASS')
            fabric.run(["saquery", "SR"]).require(forbid=["ServiceRecord dump"])


def osmtest(report, fabric, user):
    """OpenSM's own test of an administrator."""
    folder = user.make_dir("osmtest-")
    for flow, name in (("c", "Create Inventory"), ("v", "Validate Inventory"), ("e", "Event Forwarding"),
                       ("m", "Multicast"), ("q", "QoS: VLArb and SLtoVL")):
        with report.case(f"osmtest: {name}"):
            fabric.run(flow_of_osmtest(folder, flow), 1, SECONDS).require(f'TEST "{re.escape(name)}" PASS')


def large(report, user):
    """8,192 adapters and 1,248 switches of 36 ports: an answer of thousands of packets."""
    with subnet(user, "fat-tree:hcas=8192,ports=36") as fabric:
        ports = sum(len(element["ports"]) for element in elements(fabric))
        for kind, count in (("NR", 8192 + 1248), ("PIR", ports)):
            with report.case(f"saquery {kind} of a large subnet: {count} records"):
                text = fabric.run(["saquery", "-t", "60000", kind]).require().text
                if (seen := len(re.findall(r"Record dump:$", text, re.MULTILINE))) != count:
                    raise Failed(f"{seen} records")


def many_clients(report, fabric, user):
    with report.case("1,000 clients at once: no request is lost"):
        folder = user.make_dir("queries-")
        folder.chmod(0o755)
        program = harness.build_program(folder, PROGRAMS / "umad_queries.c", libraries=())
        lids = [port["lid"] for port in end_ports(fabric)]
        fabric.run([program, "1000", "20", *lids], 1, SECONDS).require("^20000 answers of 20000,")


def main(report, user):
    for name in ("saquery", "mckey"):
        harness.need_program(name)
    with subnet(user, TOPOLOGY) as fabric:
        own = Answers(fabric).collect(report, "softib")
        with report.case("SL2VL and VLAR of softib are the tables of the switch"):
            own.check_lanes()
        refusals(report, own, True)
        abilities(report, fabric)
        many_clients(report, fabric, user)
    with services_of_osmtest(report, user) as fabric:
        osmtest(report, fabric, user)
        large(report, user)
        with subnet(user, TOPOLOGY, "--sm", "none") as fabric:
            manager = Manager(fabric)
            manager.wait_until_up()
            other = Answers(fabric).collect(report, "OpenSM")
            refusals(report, other, False)
    compare(report, own, other)


if __name__ == "__main__":
    harness.main("administration", main)
