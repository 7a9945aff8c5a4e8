#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A subnet with switches under the distribution's OpenSM and infiniband-diags: brought up from nothing by each routing
engine that fits, seen as it is, and followed as cables go and come, as managers come, go and die.

subnet_test.py [--as root|nobody] [--only REGEX]
"""
import json
import os
import pathlib
import re
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness
from harness import Failed

SECONDS = 120
OPENSM = "/usr/sbin/opensm"
OSMTEST = "/usr/sbin/osmtest"
ENGINES = {
    "minhop": "fat-tree:levels=2,ports=8", "updn": "fat-tree:levels=2,ports=8", "dnup": "fat-tree:levels=2,ports=8",
    "ftree": "fat-tree:levels=3,ports=4", "sssp": "fat-tree:levels=2,ports=8", "dfsssp": "torus:3x3,hosts=1",
    "lash": "torus:3x3,hosts=1", "dor": "torus:4x4,hosts=1", "nue": "torus:3x3,hosts=1"}


class Manager:
    """OpenSM at a node. more: lines of its settings."""

    def __init__(self, fabric, node=0, *options, more=()):
        self.fabric = fabric
        self.folder = fabric.user.make_dir("opensm-")
        self.log = self.folder / "opensm.log"
        paths = [f"OSM_TMP_DIR={self.folder}", f"OSM_CACHE_DIR={self.folder}"]
        settings = self.folder / "opensm.conf"
        settings.write_text("force_log_flush TRUE\nsweep_interval 2\nsminfo_polling_timeout 500\n"
                            "polling_retry_number 2\n" + "".join(f"{line}\n" for line in more))
        settings.chmod(0o644)
        self.program = fabric.start(["env", *paths, OPENSM, "-F", settings, "-f", self.log, *options], node)

    def wait_for(self, text):
        """In its log: to its output it writes its states only."""
        harness.wait_until(lambda: not self.program.running() or text in self.read_log(), SECONDS,
                           f"{text!r} in the log of OpenSM")
        if text not in self.read_log():
            raise Failed(f"OpenSM ended:\n{self.program.text()}\n{harness.tail(self.read_log())}")

    def wait_until_up(self):
        self.wait_for("SUBNET UP")

    def read_log(self):
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def errors(self):
        return [line for line in self.read_log().splitlines() if " ERR " in line]

    def end(self, *but):
        """Its log has to be free of errors, but for those of others, which have one of these texts."""
        os.kill(self.program.pid, signal.SIGTERM)
        self.fabric.end(self.program, 30)
        if errors := [line for line in self.errors() if not any(text in line for text in but)]:
            raise Failed("the log of OpenSM:\n" + "\n".join(errors[:8]))


def own(folder):
    """Words before a program that has this folder of the machine for itself; only root can give it one."""
    if os.getuid():
        return ()
    return ("unshare", "-m", "sh", "-c", f'mount -t tmpfs -o mode=1777 tmpfs {folder} && exec "$@"', "sh")


def subnet(user, topology, *options, config=""):
    return harness.Fabric(nodes=None, user=user, extra=["--topology", topology, *options], config=config)


def elements(fabric):
    return json.loads(fabric.softib("topology", "--json", "--fabric", fabric.name).require().text)["elements"]


def end_ports(fabric):
    """Of adapters."""
    return [port for element in elements(fabric) if element["kind"] == "adapter" for port in element["ports"]]


def check_managed(fabric):
    ports = end_ports(fabric)
    if not all(port["state"] == "active" for port in ports):
        raise Failed(f"not all ports are active: {[port['state'] for port in ports]}")
    lids = [port["lid"] for element in elements(fabric) for port in element["ports"] if "lid" in port]
    if len(set(lids)) != len(lids):
        raise Failed(f"a LID is there twice: {sorted(lids)}")
    count = len(ports)
    for other in (1, count // 2, count - 1):
        path = json.loads(fabric.softib("path", "0", other, "--json", "--fabric", fabric.name).require().text)
        if not path["arrives"]:
            raise Failed(f"from node 0 to node {other}: {path}")


def engine(report, user, name, topology):
    with report.case(f"OpenSM brings up {topology} by {name}"), subnet(user, topology, "--sm", "none") as fabric:
        if {port["state"] for port in end_ports(fabric)} != {"init"}:
            raise Failed("ports wait for a subnet manager in state Init")
        manager = Manager(fabric, 0, "-R", name)
        manager.wait_until_up()
        check_managed(fabric)
        fabric.pair(["ibv_rc_pingpong", "-n", "200"])
        manager.end()


def diagnostics(report, user):
    with subnet(user, "fat-tree:levels=2,ports=8", "--sm", "none") as fabric:
        manager = Manager(fabric)
        manager.wait_until_up()
        with report.case("ibnetdiscover sees what softib writes"):
            seen = fabric.runtime / "seen.topo"
            text = fabric.run(["ibnetdiscover"]).require().text
            seen.write_text(text)
            for word, count in (("^Switch\t", 12), ("^Ca\t", 32)):
                if len(re.findall(word, text, re.MULTILINE)) != count:
                    raise Failed(f"{word!r} is not there {count} times:\n{text}")
            written = fabric.softib("topology", "--ibnetdiscover", "-", "--fabric", fabric.name).require().text

            def cables(of):
                return sorted(line.strip() for line in of.splitlines() if line.startswith("["))
            if cables(text) != cables(written):
                raise Failed("cables differ:\n" + harness.tail(text, 12) + "\n" + harness.tail(written, 12))
        last = len(end_ports(fabric)) - 1
        there = fabric.run(["cat", "/sys/class/infiniband/softib0/ports/1/lid"], last).require().text
        lid = int(there, 16)
        for words, *patterns in (
                ["iblinkinfo", r"4X\s+25.78125 Gbps Active/\s+LinkUp"],
                ["ibhosts", f"node{last} softib0"], ["ibswitches", "Switch\t: 0x"],
                ["sminfo", "priority 0 state 3 SMINFO_MASTER"],
                [f"ibtracert 1 {lid}", "From ", "To "], [f"ibroute {switch_lid(fabric)}", "Unicast lids"],
                [f"smpquery switchinfo {switch_lid(fabric)}", "LinearFdbTop"],
                [f"smpquery portinfo {lid} 1", "LinkState:.*Active", f"^Lid:.*{lid}$"],
                [f"smpquery -c nodeinfo {switch_lid(fabric)} 0,1", "NodeType"],
                [f"smpquery sl2vl {lid}", "SL2VL"], [f"smpquery vlarb {lid}", "VLArbitration"],
                [f"smpquery pkeys {lid}", "0xffff|0x7fff"],
                ["saquery -N", f"node{last} softib0"], ["saquery -S", "SwitchInfoRecord|ServiceRecord|^$"],
                [f"saquery -p --src-to-dst 1:{lid}", "PathRecord"], ["dump_fts", "Unicast lids"]):
            with report.case(words):
                fabric.run(words.split()).require(*patterns)
        with report.case("ibdiagnet finds nothing wrong"):
            harness.need_program("ibdiagnet")
            text = fabric.run(["ibdiagnet", "-o", fabric.user.make_dir("ibdiagnet-")], 0, SECONDS).require(
                "Done. Run time was").text
            stages = re.findall(r"^    (\S.*?) {2,}(\d+) +\d+ *$", text, re.MULTILINE)
            if len(stages) < 6 or any(errors != "0" for _, errors in stages):
                raise Failed(f"{stages}:\n{harness.tail(text, 40)}")
        manager.end()


def administration(report, user):
    """osmtest at another node than the administrator's. Its mistakes are errors in the log of OpenSM."""
    with subnet(user, "star:4", "--sm", "none") as fabric:
        Manager(fabric).wait_until_up()
        folder = user.make_dir("osmtest-")
        for flow, name in (("c", "Create Inventory"), ("v", "Validate Inventory"), ("s", "Services Registration"),
                           ("e", "Event Forwarding"), ("m", "Multicast"), ("q", "QoS: VLArb and SLtoVL")):
            with report.case(f"osmtest: {name}"):
                fabric.run([OSMTEST, "-f", flow, "-i", folder / "inventory", "-l", folder / "log"], 1, SECONDS).require(
                    f'TEST "{re.escape(name)}" PASS')


def switch_lid(fabric):
    return next(port["lid"] for element in elements(fabric) if element["kind"] == "switch"
                for port in element["ports"] if port["port"] == 0)


def changes(report, user):
    with subnet(user, "fat-tree:levels=2,ports=8", "--sm", "none") as fabric:
        manager = Manager(fabric)
        manager.wait_until_up()
        switch = next(element for element in elements(fabric) if element["kind"] == "switch")
        cable = next(port for port in switch["ports"] if "switch" in port.get("peer", {}).get("description", ""))
        with report.case("OpenSM goes round a cable that is pulled, and takes it back"):
            fabric.softib("port", "down", "--switch", switch["guid"], "--port", cable["port"], "--fabric",
                          fabric.name).require()
            harness.wait_until(lambda: paths_arrive(fabric), SECONDS, "all paths to arrive without the cable")
            fabric.softib("port", "up", "--switch", switch["guid"], "--port", cable["port"], "--fabric",
                          fabric.name).require()
            harness.wait_until(lambda: all_active(fabric), SECONDS, "all ports to be active again")
        with report.case("OpenSM gives a node that comes its LID"):
            fabric.softib("port", "down", "--node", "5", "--fabric", fabric.name).require()
            fabric.softib("port", "up", "--node", "5", "--fabric", fabric.name).require()
            harness.wait_until(lambda: all_active(fabric), SECONDS, "node 5 to be active again")
        manager.end()


def paths_arrive(fabric):
    for other in range(1, len(end_ports(fabric))):
        path = json.loads(fabric.softib("path", "0", other, "--json", "--fabric", fabric.name).require().text)
        if not path["arrives"]:
            return False
    return True


def all_active(fabric):
    return all(port["state"] == "active" for element in elements(fabric) for port in element["ports"]
               if "peer" in port)


def managers(report, user):
    with report.case("a second OpenSM waits, and is master when the first has died"), \
            subnet(user, "star:4", "--sm", "none") as fabric:
        first = Manager(fabric, 0, "-p", "5")
        first.wait_until_up()
        second = Manager(fabric, 1, "-p", "1")
        second.wait_for("Entering STANDBY")
        first.program.kill()
        second.wait_for("Entering MASTER")
        lid = end_ports(fabric)[1]["lid"]
        harness.wait_until(lambda: {port["sm_lid"] for port in end_ports(fabric)} == {lid}, SECONDS,
                           "all ports to have the second manager")
    with report.case("softib manages the subnet again when OpenSM has gone"), subnet(user, "star:4") as fabric:
        before = [port["sm_lid"] for port in end_ports(fabric)]
        manager = Manager(fabric, 2)
        manager.wait_until_up()
        lid = end_ports(fabric)[2]["lid"]
        if {port["sm_lid"] for port in end_ports(fabric)} != {lid}:
            raise Failed("OpenSM is not the manager of all ports")
        fabric.run(["saquery", "-N"], 3).require("node3 softib0")
        manager.end()
        harness.wait_until(lambda: [port["sm_lid"] for port in end_ports(fabric)] == before, 30,
                           "softib to be the manager")
        fabric.run(["saquery", "-N"], 3).require("node3 softib0")


def test(report, user):
    harness.need_program(OPENSM)
    harness.need_program("ibnetdiscover")
    for name, topology in ENGINES.items():
        engine(report, user, name, topology)
    diagnostics(report, user)
    administration(report, user)
    changes(report, user)
    managers(report, user)


if __name__ == "__main__":
    harness.main("subnet", test)
