#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Subnets that are damaged on purpose, one kind after the other, by SMPs of tests/system/programs/umad/smp.py:
ibdiagnet and ibdmchk of ibutils complain of what is wrong, and of nothing else. Two ports with one GUID are not among
them: no topology can have that.

damage_test.py [--as root|nobody] [--only REGEX]
"""
import contextlib
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import harness
from harness import Failed
from subnet_test import OPENSM, SECONDS, all_active, elements, end_ports, own, subnet

PROGRAM = pathlib.Path(__file__).resolve().parents[1] / "programs/umad/smp.py"
# In fat-tree:levels=2,ports=4 two nodes are at the first ports of each leaf; the routes are those of node 0.
TOPOLOGY = "fat-tree:levels=2,ports=4"
LEAF, NODE_1, SPINE, SPINE_PORT = "0,1", "0,1,2", "0,1,4", 4
PORT_INFO, PKEYS, LINEAR, MULTICAST = 0x15, 0x16, 0x19, 0x1b
DOWN, INIT, ARMED, ACTIVE = range(1, 5)
LID, WIDTHS, SPEEDS, EXTENDED_SPEEDS = 16, 29, 35, 63  # bytes of a PortInfo
NO_EXTENDED_SPEED, NO_PORT = "1e", "ff"
NO_MASTER = "-E- Missing master SM"
# OpenSM has configured the subnet and gone; a group of partition members has the rate that IPoIB begins with.
ALWAYS = (NO_MASTER, "-W- Suboptimal rate for group", "-W- Topology file is not specified")
FOLLOWS = "-E- (Fail to find a path|Found \\d+ missing paths|Total |Some Point to Point)"


class Patient:
    """A subnet, with node 0 as the place where all programs run."""

    def __init__(self, fabric):
        self.fabric = fabric
        self.folder = fabric.user.make_dir("damage-")
        self.program = self.folder / "smp.py"
        shutil.copyfile(PROGRAM, self.program)
        self.program.chmod(0o755)
        self.results = self.folder / "results"

    def configure(self):
        paths = [f"OSM_TMP_DIR={self.folder}", f"OSM_CACHE_DIR={self.folder}"]
        self.fabric.run(["env", *paths, OPENSM, "-o", "-f", self.folder / "opensm.log"]).require()
        harness.wait_until(lambda: all_active(self.fabric), SECONDS, "all ports to be active")

    def smp(self, *words):
        return self.fabric.run(["python3", self.program, *words]).require().text.strip()

    def set(self, route, attribute, modifier, *edits):
        self.smp("set", route, attribute, modifier, *edits)

    def train(self, up=True):
        """The link of node 1, with what is enabled now."""
        self.states((DOWN,), (LEAF, 2))
        if up:
            self.activate()

    def activate(self):
        self.states((ARMED, ACTIVE), (LEAF, 2), (NODE_1, 1))

    def states(self, states, *ports):
        """One after the other, at each of the ports."""
        steps = [["then", route, PORT_INFO, port, f"32={state:02x}/0f"] for state in states for route, port in ports]
        self.smp("set", *sum(steps, [])[1:])

    @contextlib.contextmanager
    def table(self, route, attribute, modifier, place, value):
        """Other bytes in a table, until the end of the block."""
        before = self.smp("get", route, attribute, modifier)
        self.set(route, attribute, modifier, f"{place}={value}")
        yield
        self.set(route, attribute, modifier, f"0={before}")

    def lid(self, node):
        return end_ports(self.fabric)[node]["lid"]

    def ibdiagnet(self, *options):
        """Without counters, unless there are options: those of ports that no packet by LID reaches take their time."""
        if not options:
            options = ("-skip", "pm")
        text = self.fabric.run(["ibdiagnet", "-c", 1, "-o", self.results, *options], 0, SECONDS).require("Done. Run time").text
        return [line.rpartition("\r")[2] for line in text.splitlines()]

    def ibdmchk(self):
        """The routes that ibdiagnet has read. Its code is that of a subnet with errors, or not."""
        files = (("-s", "lst"), ("-f", "fdbs"), ("-m", "mcfdbs"))
        program = self.fabric.run(["ibdmchk", *(word for option, end in files for word in
                                                (option, self.results / f"ibdiagnet.{end}"))], 0, SECONDS,
                                  before=own("/var/cache"))
        return program.text.splitlines()


def complains(lines, pattern, *others):
    """Of this, perhaps of the others, and of nothing else."""
    complaints = [line for line in lines if line.startswith(("-E-", "-W-")) and not line.startswith(ALWAYS)]
    if not any(re.search(pattern, line) for line in lines):
        raise Failed(f"no {pattern!r} in:\n" + harness.tail("\n".join(lines), 60))
    if strange := [line for line in complaints if not re.search("|".join((pattern, *others)), line)]:
        raise Failed(f"it complains of something else:\n{harness.tail(chr(10).join(strange))}")


def is_healthy(patient, *options):
    complains(patient.ibdiagnet(*options), "No bad Links")
    complains(patient.ibdmchk(), "no credit loops found")


def no_manager(report, user):
    with subnet(user, TOPOLOGY, "--sm", "none") as fabric:
        patient = Patient(fabric)
        with report.case("LIDs that are 0, and links in state Init"):
            lines = patient.ibdiagnet()
            complains(lines, "-E- Found 14 Devices with LID=0x0000", "-W- link with LOG=INI", "-W- The local link is in INIT")
            complains(lines, "-W- link with LOG=INI found", "-E- Found 14 Devices with LID=0x0000", "-W- The local link is in INIT")
        patient.configure()
        with report.case("no master"):
            if not any(line.startswith(NO_MASTER) for line in patient.ibdiagnet()):
                raise Failed("it does not miss the master")
            is_healthy(patient)
        for damage in (links, two_masters, lids, counters, partitions, routes, groups):
            damage(report, patient)
        with report.case("all that was damaged is as before"):
            is_healthy(patient, "-lw", "4x", "-ls", "10")


def links(report, patient):
    with report.case("a link in state Init"):
        patient.train(up=False)
        complains(patient.ibdiagnet(), '-W- link with LOG=INI found at direct path "1,2"')
        patient.activate()
    with report.case("a wrong width"):
        patient.set(LEAF, PORT_INFO, 2, f"{WIDTHS}=01")
        patient.train()
        complains(patient.ibdiagnet("-lw", "4x"), '-W- link with PHY=1x found at direct path "1,2"')
        patient.set(LEAF, PORT_INFO, 2, f"{WIDTHS}=ff")
    with report.case("a wrong speed"):
        patient.set(LEAF, PORT_INFO, 2, f"{SPEEDS}=01/0f", f"{EXTENDED_SPEEDS}={NO_EXTENDED_SPEED}")
        patient.train()
        complains(patient.ibdiagnet("-ls", "10"), '-W- link with SPD=2.5 found at direct path "1,2"')
        patient.set(LEAF, PORT_INFO, 2, f"{SPEEDS}=0f/0f", f"{EXTENDED_SPEEDS}=1f")
        patient.train()


def two_masters(report, patient):
    with report.case("two masters"):
        masters = [patient.fabric.start(["python3", patient.program, "master", f"0x253460000{node:02x}0001", 5], node)
                   for node in (3, 4)]
        for master in masters:
            master.wait_for_text("^master", 20)
        lines = patient.ibdiagnet()
        complains(lines, "-E- Found more then one master SM")
        for line in ("    node3/P1  priority:5", "    node4/P1  priority:5"):
            if line not in lines:
                raise Failed(f"no {line!r}")
        for master in masters:
            master.kill()


def lids(report, patient):
    with report.case("two ports with one LID"):
        own, other = (f"{patient.lid(node):04x}" for node in (1, 2))
        patient.set(NODE_1, PORT_INFO, 1, f"{LID}={other}")
        complains(patient.ibdiagnet(), f"-E- Found 2 Devices with identical LID=0x{other}")
        patient.set(NODE_1, PORT_INFO, 1, f"{LID}={own}")


def counters(report, patient):
    with report.case("a counter that is too high"):
        patient.fabric.run(["ibqueryerrors", "-k"])
        for action in ("down", "up"):
            patient.fabric.softib("port", action, "--node", 1, "--fabric", patient.fabric.name).require()
        patient.activate()
        lines = patient.ibdiagnet("-P", "link_down_counter=1")
        complains(lines, "-W- lid=.* node1/P1", "-W- lid=.* Port=2")
        if "      link_down_counter               : 0x1" not in lines:
            raise Failed("no value of the counter")


def partitions(report, patient):
    with report.case("a partition that the switch does not know"), patient.table(NODE_1, PKEYS, 0, 2, "8123"):
        complains(patient.ibdiagnet(), "-W- Missing PKey:0x8123 on remote switch of node:node1/P1")
    with report.case("a switch that keeps a partition out"), patient.table(LEAF, PKEYS, 2 << 16, 0, "8123"):
        complains(patient.ibdiagnet(), "-W- Missing PKey:0xffff on remote switch of node:node1/P1")


def routes(report, patient):
    last = patient.lid(-1)
    with report.case("a hole in a forwarding table"), patient.table(LEAF, LINEAR, 0, last, NO_PORT):
        patient.ibdiagnet()
        complains(patient.ibdmchk(), f"-E- Unassigned LFT for lid:{last} Dead end at:S0253468000000000", FOLLOWS)
    with report.case("a loop of forwarding tables"):
        spine = f"{LEAF},{int(patient.smp('get', LEAF, LINEAR, 0)[2 * last:2 * last + 2], 16)}"
        with patient.table(spine, LINEAR, 0, last, "01"):
            patient.ibdiagnet()
            complains(patient.ibdmchk(), "-E- Aborting after 256 hops - loop in LFT", FOLLOWS)
    with report.case("a cable that is gone"):
        spine = next(element for element in elements(patient.fabric) if element["description"] == "switch-2-1")
        place = ("--switch", spine["guid"], "--port", SPINE_PORT, "--fabric", patient.fabric.name)
        patient.fabric.softib("port", "down", *place).require()
        patient.ibdiagnet()
        complains(patient.ibdmchk(), "-E- Dead end at:S0253468000050000", "-E- Dead end", FOLLOWS)
        patient.fabric.softib("port", "up", *place).require()
        patient.states((ARMED, ACTIVE), (SPINE, SPINE_PORT), (f"{SPINE},{SPINE_PORT}", 4))


def groups(report, patient):
    """The leaf sends to node 1; the spine to the leaf, which does not send to the spine."""
    with report.case("a multicast route that ends"), patient.table(LEAF, MULTICAST, 0, 0, "0006"), \
            patient.table(SPINE, MULTICAST, 0, 0, "0002"):
        patient.ibdiagnet()
        complains(patient.ibdmchk(), r"-W- Switch:S0253468000050000/U1 has MFT entry of group:0xC000 but is disconn")


def credits(report, user):
    with report.case("a loop of credits"), subnet(user, "torus:5x1,hosts=1", "--sm", "none") as fabric:
        patient = Patient(fabric)
        patient.configure()
        complains(patient.ibdiagnet(), "No bad Links")
        complains(patient.ibdmchk(), "-E- credit loops in routing")


def test(report, user):
    for program in (OPENSM, "ibdiagnet", "ibdmchk"):
        harness.need_program(program)
    no_manager(report, user)
    credits(report, user)


harness.main("damage", test)
