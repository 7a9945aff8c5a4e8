#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What OpenSM configures beyond routes: partitions, tables of service levels (torus-2QoS). And services over a subnet:
ibacm, which finds ways, and srp_daemon, which looks for storage.

subnet_services_test.py [--as root|nobody] [--only REGEX]
"""
import pathlib
import re
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import harness
from harness import Failed
from manager_test import wait_for_master
from subnet_test import SECONDS, Manager, check_managed, elements, end_ports, own, subnet

NODE_GUID = "0x02534600000{}0001"
LANES_OF_NODES, LANES_OF_SWITCHES = range(2), range(8)
ACM_PORT = 6125
ACM_NAMES = ("alpha", "beta")
# ibacm writes its port to /run, where ib_acme reads it, and srp_daemon has a file there that it locks.
OWN_RUN = own("/run")


def arbitration(lanes, weight):
    return ",".join(f"{lane}:{weight}" for lane in lanes)


QOS = [f"qos_{who}_vlarb_{which} {arbitration(lanes, weight)}" for who, lanes in
       (("ca", LANES_OF_NODES), ("swe", LANES_OF_SWITCHES)) for which, weight in (("high", 64), ("low", 4))]
PARTITIONS = f"""
Default=0x7fff,ipoib:ALL=limited,SELF=full,ALL_SWITCHES=full;
Storage=0x8001,ipoib:{NODE_GUID.format(0)}=full,{NODE_GUID.format(1)}=limited;
Quiet=0x0002,indx0:{NODE_GUID.format(2)}=full;
"""
PKEYS = {0: "0xffff 0x8001 0x0000", 1: "0x7fff 0x0001 0x0000", 2: "0x8002 0x7fff 0x0000", 3: "0x7fff 0x0000 0x0000"}


def file_of(user, name, text):
    file = user.make_dir("subnet-services-") / name
    file.write_text(text)
    file.chmod(0o644)
    return file


def table(text, title):
    """Of smpquery vlarb: lanes and weights of the table with that title."""
    found = re.search(rf"^# {title} .*\nVL    : \|(.*)\|\s*\nWEIGHT: \|(.*)\|", text, re.MULTILINE)
    if not found:
        raise Failed(f"no table {title!r} in\n{text}")
    return [(int(lane, 16), int(weight, 16)) for lane, weight in zip(*(row.split("|") for row in found.groups()))]


def levels(text, source, to):
    """Of smpquery sl2vl: the lanes of the service levels 0 to 15."""
    found = re.search(rf"^ports: in +{source}, out +{to}: \|(.*)\|\s*$", text, re.MULTILINE)
    if not found:
        raise Failed(f"no row for ports {source} and {to} in\n{text}")
    return [int(lane) for lane in found.group(1).split("|")]


def torus(report, user):
    with report.case("OpenSM brings up torus:3x3x3 by torus-2QoS"), \
            subnet(user, "torus:3x3x3,hosts=1", "--sm", "none") as fabric:
        guids = {element["description"]: element["guid"] for element in elements(fabric) if element["kind"] == "switch"}
        seed = "".join(f"{axis}p_link {guids['switch-0-0-0']} {guids[f'switch-{place}']}\n"
                       for axis, place in (("x", "1-0-0"), ("y", "0-1-0"), ("z", "0-0-1")))
        manager = Manager(fabric, 0, "-R", "torus-2QoS", "-Q", "--torus_config",
                          file_of(user, "torus.conf", "torus 3 3 3\n" + seed), more=QOS)
        manager.wait_until_up()
        if "Built 3 x 3 x 3 torus" not in manager.read_log():
            raise Failed(f"OpenSM found no torus:\n{harness.tail(manager.read_log())}")
        check_managed(fabric)
        arbitrations(fabric)
        service_levels(fabric)
        manager.end()


def arbitrations(fabric):
    def need(lanes, *place):
        text = fabric.run(["smpquery", "-D", "vlarb", *place]).require().text
        for title, weight in (("High priority", 64), ("Low priority", 4)):
            rows = [row for row in table(text, title) if row[1]]
            if rows != [(lane, weight) for lane in lanes]:
                raise Failed(f"{place}, {title}: {rows}")
    need(LANES_OF_NODES, "0")
    need(LANES_OF_SWITCHES, "0,1", 2)


def service_levels(fabric):
    """torus-2QoS: the top bit of a level chooses the lane at the end of a path, and on the way lanes 0 to 3 or 4 to 7;
    of these the dateline of the direction, which a path crosses or not."""
    text = fabric.run(["smpquery", "-D", "sl2vl", "0,1", 1]).require().text
    if levels(text, 2, 1) != [0] * 8 + [1] * 8:
        raise Failed(f"to the node: {text}")
    between = levels(fabric.run(["smpquery", "-D", "sl2vl", "0,1", 2]).require().text, 1, 2)
    if {lane // 4 for lane in between[:8]} != {0} or {lane // 4 for lane in between[8:]} != {1} or len(set(between)) < 4:
        raise Failed(f"between switches: {between}")
    here, last = (end_ports(fabric)[node]["lid"] for node in (0, -1))
    fabric.run(["saquery", "--src-to-dst", f"{here}:{last}"]).require("^\t\tsl.*0x[1-7]$")


def partitions(report, user):
    with report.case("OpenSM writes the P_Key tables of a partitions file"), subnet(user, "star:4", "--sm", "none") as fabric:
        manager = Manager(fabric, 0, "-P", file_of(user, "partitions.conf", PARTITIONS))
        manager.wait_until_up()
        for node, pkeys in PKEYS.items():
            fabric.run(["smpquery", "-D", "pkeys", "0"], node).require(f"^   0: {pkeys} ")
            first = fabric.run(["cat", "/sys/class/infiniband/softib0/ports/1/pkeys/0"], node).require().text.strip()
            if first != pkeys.split()[0]:
                raise Failed(f"node {node}: {first} in /sys")
        # The switch guards the partitions of its neighbours.
        for node, pkeys in PKEYS.items():
            fabric.run(["smpquery", "-D", "pkeys", "0,1", node + 1]).require(*pkeys.split()[:2])
        fabric.run(["smpquery", "-D", "portinfo", "0,1", 2]).require("^PartEnforceInb:.*1$", "^PartEnforceOutb:.*1$")
        fabric.run(["saquery", "-g"]).require("MGID.*ff12:401b:8001:", "MGID.*ff12:401b:ffff:")
    with report.case("limited members of a partition do not reach each other"), \
            subnet(user, "star:4", "--sm", "none") as fabric:
        Manager(fabric, 0, "-P", file_of(user, "partitions.conf", PARTITIONS)).wait_until_up()
        fabric.pair(["ibv_rc_pingpong", "-n", "50"], nodes=(0, 3))
        lids = [port["lid"] for port in end_ports(fabric)]
        fabric.run(["saquery", "--src-to-dst", f"{lids[0]}:{lids[3]}"]).require("pkey.*0x[7F]FFF")
        if "PathRecord" in fabric.run(["saquery", "--src-to-dst", f"{lids[1]}:{lids[3]}"]).text:
            raise Failed("there is a path between two limited members")


def acm(report, user):
    """A daemon at each of two nodes, with a name of its own in its file. The name of the other one is resolved by
    multicast, the way to it by the administrator: of softib, of OpenSM, which takes over, and of softib again. OpenSM
    is at the same port: when the LID of the administrator is another one, ibacm goes on asking the old one."""
    harness.need_program("ibacm")
    harness.need_tcp_port(ACM_PORT)
    with subnet(user, "star:4") as fabric:
        wait_for_master(fabric)
        services = [service(fabric, user, node, name) for node, name in enumerate(ACM_NAMES)]
        with report.case("ibacm and ib_acme by softib's administrator"):
            resolve(fabric)
        with report.case("ibacm and ib_acme by OpenSM, which has taken over"):
            manager = Manager(fabric)
            manager.wait_until_up()
            resolve(fabric)
        with report.case("ibacm and ib_acme by softib's administrator again"):
            manager.end()
            wait_for_master(fabric)
            resolve(fabric)
        for service_ in services:
            service_.kill()


def resolve(fabric):
    here, there = (end_ports(fabric)[node] for node in (0, 1))

    def ib_acme(*words):
        return fabric.run(["ib_acme", "-S", harness.HOST, *words], before=OWN_RUN)
    ib_acme("-e").require(ACM_NAMES[0])
    # Of a new administrator it joins its groups again, and resolves nothing before it is in them.
    harness.wait_until(lambda: ib_acme("-f", "l", "-s", here["lid"], "-d", there["lid"]).code == 0, SECONDS,
                       "ibacm to have joined its groups")
    for form, source, target in (("l", here["lid"], there["lid"]), ("n", *ACM_NAMES),
                                 ("g", "fe80::253:4600:0:1", "fe80::253:4600:1:1")):
        ib_acme("-f", form, "-s", source, "-d", target, "-v").require(f"^  dlid: {there['lid']}$", f"^  slid: {here['lid']}$",
                                                                      "^SA verification: success$")
    ib_acme("-P").require("^svc,Error Count", f"^{harness.HOST},0,")


def service(fabric, user, node, name):
    """Only the first one listens at the port of ib_acme."""
    folder = user.make_dir("ibacm-")
    fabric.run(["ib_acme", "-A", "-O", "-D", folder], node).require()
    options = (folder / "ibacm_opts.cfg").read_text()
    port = ACM_PORT if node == 0 else harness.free_port()
    for key, value in (("log_file", "stdout"), ("log_level", 1), ("lock_file", folder / "lock"), ("server_mode", "loop"),
                       ("server_port", port)):
        options = re.sub(rf"^{key} .*$", f"{key} {value}", options, flags=re.MULTILINE)
    (folder / "ibacm_opts.cfg").write_text(options)
    (folder / "ibacm_addr.cfg").write_text(f"{name} softib0 1 default\n")
    program = fabric.start(["ibacm", "-P", "-A", folder / "ibacm_addr.cfg", "-O", folder / "ibacm_opts.cfg"], node, before=OWN_RUN)
    harness.wait_until(lambda: harness.is_listening(program.pid, port) or not program.running(), 20, "ibacm to listen")
    return program


def storage(report, user):
    """There is none: an I/O unit has no controllers. The daemon goes on under each master."""
    harness.need_program("srp_daemon")
    rules = file_of(user, "srp_daemon.conf", "a\n")
    with subnet(user, "star:4") as fabric:
        wait_for_master(fabric)
        daemon = StorageDaemon(fabric, rules)
        with report.case("srp_daemon subscribes at softib's administrator"):
            daemon.wait_for_subscriptions()
            daemon.program.wait_for_text("performing a capability query", SECONDS)
        find_none(report, fabric, rules, "softib's administrator")
        manager = Manager(fabric, 1)
        manager.wait_until_up()
        with report.case("srp_daemon subscribes at OpenSM, which has taken over"):
            daemon.wait_for_subscriptions()
        find_none(report, fabric, rules, "OpenSM")
        # srp_daemon has one buffer for what it sends: a notice that it answers meanwhile makes of a subscription the
        # one before once more.
        manager.end("ERR 4307: Failed to UnSubscribe to non existing inform object")
        wait_for_master(fabric)
        with report.case("srp_daemon gets notices of softib's administrator again, and ends"):
            daemon.wait_for_subscriptions()
            for action in ("down", "up"):
                fabric.softib("port", action, "--node", 3, "--fabric", fabric.name).require()
            daemon.end()


class StorageDaemon:
    """srp_daemon on the first node. It may answer a notice of a new master just when it has destroyed the address
    handle for the old one, takes no notice that the send is refused, and waits for its completion until it has taken
    another's, whose thread then waits without end. softib's trace tells of the send; then another daemon goes on."""
    LOST = r"srp_daemon \(pid {}, .*ibv_post_send of SEND .* a datagram needs an address handle"

    def __init__(self, fabric, rules):
        self.fabric, self.rules = fabric, rules
        self.start()

    def start(self):
        self.subscribed = 0
        self.program = self.fabric.start(["stdbuf", "-oL", "srp_daemon", "-V", "-c", "-R", "10", "-i", "softib0", "-p", "1",
                                          "-f", self.rules], before=OWN_RUN)

    def is_lost(self):
        told = self.fabric.softib("trace", "--fabric", self.fabric.name).require().text
        return re.search(self.LOST.format(self.program.pid), told) is not None

    def wait_for_subscriptions(self):
        """At the master of now: once more than at the last call. To notices, which come to a queue pair with the key of
        queue pairs 1."""
        traps = {"64", "144"}  # a port comes, a port is another one

        def subscribed():
            if self.is_lost():
                self.program.kill()
                self.start()
            last = self.program.text().count("Registering to trap:144")
            said = self.fabric.run(["saquery", "-I"]).require().text
            if last > self.subscribed and set(re.findall(r"^\t\ttrap_num\.+(\d+)$", said, re.MULTILINE)) == traps:
                self.subscribed = last
                return not self.is_lost()
            return not self.program.running()
        harness.wait_until(subscribed, SECONDS, "srp_daemon to subscribe")

    def end(self):
        def ends():
            """Of a signal and a notice that come together it sees the one that came last."""
            self.program.process.send_signal(signal.SIGTERM)
            return not self.program.running()
        try:
            harness.wait_until(ends, SECONDS, "srp_daemon to end")
        except Failed as failure:
            raise Failed(f"{failure}; it said:\n{self.program.text()}") from failure
        result = self.fabric.end(self.program, 30)
        # The last signal may come when it has put its handler away.
        if result.code != -signal.SIGTERM or "Deregistering from trap" not in result.text:
            result.require()


def find_none(report, fabric, rules, title):
    for words in (["ibsrpdm"], ["ibsrpdm", "-c"], ["srp_daemon", "-o", "-a", "-c", "-f", rules]):
        with report.case(f"{' '.join(words[:4])} under {title}"):
            said = fabric.run(words).require().text
            if said.strip():
                raise Failed(f"it says\n{said}")


def test(report, user):
    harness.need_program("opensm")
    for part in (torus, partitions, acm, storage):
        if report.wanted(part.__name__):
            part(report, user)


if __name__ == "__main__":
    harness.main("subnet services", test)
