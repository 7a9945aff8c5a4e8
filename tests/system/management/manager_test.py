#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""softib's own subnet manager: it brings subnets up, is seen by the tools, follows cables, writes partitions and
multicast trees, and agrees with OpenSM who is the master, in both directions while data goes on.

manager_test.py [--as root|nobody] [--only REGEX]
"""
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness
from harness import Failed
from subnet_test import SECONDS, Manager, all_active, check_managed, elements, end_ports, subnet
from support.perftest import Endless

PATH_BITS = pathlib.Path(__file__).resolve().parents[1] / "programs/umad/path_bits.py"
TREE = "fat-tree:levels=2,ports=4"  # 8 adapters at 4 leaves, 2 spines


def softib(fabric, *words, code=0):
    return fabric.softib(*words, "--fabric", fabric.name).require(code=code)


def status(fabric):
    return json.loads(softib(fabric, "sm", "status", "--json").text)


def is_master(fabric):
    managers = status(fabric)["managers"]
    return len(managers) == 1 and managers[0]["state"] == "master" and managers[0]["settled"]


def wait_for_master(fabric):
    harness.wait_until(lambda: is_master(fabric), SECONDS, f"softib as the master: {status(fabric)}")


def master_in_sminfo(fabric, node):
    """GUID of the master, as it answers itself."""
    text = fabric.run(["sminfo"], node).require("SMINFO_MASTER").text
    return int(re.search(r"sm guid (0x[0-9a-f]+)", text)[1], 16)


def guid_of(fabric, node):
    """Of port 1 of its adapter."""
    return [int(element["guid"], 16) + 1 for element in elements(fabric) if element["kind"] == "adapter"][node]


def beside_data(fabric, what):
    """While messages go from leaf to leaf: none of them fails."""
    pair = Endless(fabric, ["ib_send_bw"], len(end_ports(fabric)) - 1, 0)
    fabric.wait_for_packets(pair.client, SECONDS)
    what()
    fabric.wait_for_packets(pair.client, SECONDS)
    pair.end()


def opensm_takes_over(fabric, node=2):
    """From softib with a lower priority. Returns it."""
    manager = Manager(fabric, node, "-p", "10")
    manager.wait_until_up()
    harness.wait_until(lambda: status(fabric)["managers"][0]["state"] == "standby", SECONDS,
                       f"softib as a standby: {status(fabric)}")
    if master_in_sminfo(fabric, 3) != guid_of(fabric, node):
        raise Failed("OpenSM is not the master")
    return manager


def softib_takes_over(fabric):
    softib(fabric, "sm", "priority", "12")
    wait_for_master(fabric)
    if master_in_sminfo(fabric, 3) != guid_of(fabric, 0):
        raise Failed("softib is not the master")


def end_of_standby(manager):
    # It hands over without waiting for the acknowledgement of IBA 14.4.1, and refuses it. A manager that is only
    # becoming the master does not repress its traps.
    manager.end("AttributeModifier:0x2000000", "(IB_TIMEOUT)")


def by_itself(report, user):
    with subnet(user, TREE) as fabric:
        with report.case("it is the master of a new fabric, and the tools see it"):
            wait_for_master(fabric)
            if master_in_sminfo(fabric, 3) != guid_of(fabric, 0):
                raise Failed("sminfo names another one")
            text = softib(fabric, "sm", "status").text
            for pattern in (r"gives way to those of programs", r"master at \S+/softib0 port 1",
                            r"6 switches and 8 HCAs, routed by fat-tree"):
                if not re.search(pattern, text):
                    raise Failed(f"no {pattern!r} in:\n{text}")
            check_managed(fabric)
        with report.case("a sweep by hand is over when the command is"):
            before = status(fabric)["managers"][0]["sweeps"]
            softib(fabric, "sm", "sweep")
            softib(fabric, "sm", "sweep", "--full")
            if status(fabric)["managers"][0]["sweeps"] < before + 2 or not is_master(fabric):
                raise Failed(f"before: {before} sweeps; now {status(fabric)}")
        with report.case("a cable between switches goes and comes, and ways move"):
            hop = json.loads(softib(fabric, "path", 0, 7, "--json").text)["hops"][1]
            end = f"{hop['from_guid']}:{hop['out']}"
            softib(fabric, "cable", "down", end)
            softib(fabric, "sm", "sweep")
            other = json.loads(softib(fabric, "path", 0, 7, "--json").text)
            if not other["arrives"] or other["hops"][1]["out"] == hop["out"]:
                raise Failed(f"the way is {other}")
            softib(fabric, "cable", "up", end)
            softib(fabric, "sm", "sweep")
            if not all_active(fabric):
                raise Failed("a port is not active")
        with report.case("its own port goes down: it goes on at another one"):
            softib(fabric, "cable", "down", "node0:1")
            wait_for_master(fabric)
            if master_in_sminfo(fabric, 3) != guid_of(fabric, 1):
                raise Failed(f"the master is {status(fabric)}")
            softib(fabric, "cable", "up", "node0:1")
            harness.wait_until(lambda: all_active(fabric), SECONDS, "node 0 active again")
        with report.case("its commands refuse what cannot be"):
            softib(fabric, "sm", "priority", "16", code=2).require("0 to 15, or none", code=2)


def give_way(report, user):
    with report.case("it gives way to OpenSM, and comes back, while data goes on"), subnet(user, TREE) as fabric:
        wait_for_master(fabric)
        watcher = fabric.start(["stdbuf", "-oL", "ibv_asyncwatch", "-d", "softib0"], 3)
        watcher.wait_for_text("async", SECONDS)

        def come_and_go():
            for node in (2, 0):  # 0: the port that softib's manager is at
                manager = Manager(fabric, node)
                manager.wait_until_up()
                # Clients have to tell a new administrator what they want.
                watcher.wait_for_text("SM_CHANGE.*\n(.*\n)*.*CLIENT_REREGISTER", SECONDS)
                if (found := status(fabric))["managers"] or len(found["programs"]) != 1:
                    raise Failed(f"two managers: {found}")
                if master_in_sminfo(fabric, 5) != guid_of(fabric, node):
                    raise Failed("OpenSM is not the master")
                manager.end()
                wait_for_master(fabric)
        beside_data(fabric, come_and_go)
        check_managed(fabric)


def handover(report, user):
    with report.case("with a priority it hands over to a higher one and takes over from a lower one, beside data"), \
            subnet(user, TREE, "--sm-priority", "5") as fabric:
        wait_for_master(fabric)

        def both_ways():
            manager = opensm_takes_over(fabric)
            softib_takes_over(fabric)
            softib(fabric, "sm", "priority", "5")
            harness.wait_until(lambda: status(fabric)["managers"][0]["state"] == "standby", SECONDS,
                               f"softib as a standby again: {status(fabric)}")
            end_of_standby(manager)
        beside_data(fabric, both_ways)
        wait_for_master(fabric)  # it has missed its master
        check_managed(fabric)


def path_bits(report, fabric, here, there):
    with report.case("MADs leave from the LID of their path bits, and answers come back there"):
        server = fabric.start([sys.executable, PATH_BITS, "serve"], 7)
        server.wait_for_text("^ready", SECONDS)
        for own, of_server in ((2, 3), (0, 1), (3, 0), (7, 0)):
            kept = own if own < 4 else 0  # bits beyond the LMC do not count
            fabric.run([sys.executable, PATH_BITS, "send", there + of_server, own], 0).require(
                f"^from {there + of_server} to path bits {kept}$")
            server.wait_for_text(f"from {here + kept} to path bits {of_server}\n", SECONDS)


def settings(report, user):
    with report.case("LMC and a routing engine"), \
            subnet(user, TREE, "--lmc", "2", "--routing", "up/down") as fabric:
        wait_for_master(fabric)
        ports = end_ports(fabric)
        if any(port["lid"] % 4 for port in ports):
            raise Failed(f"LIDs: {[port['lid'] for port in ports]}")
        for lid in (ports[0]["lid"], ports[7]["lid"] + 3):
            fabric.run(["smpquery", "portinfo", lid, "1"], 0).require(r"(?i)^lmc:\.*2$")
        if status(fabric)["managers"][0]["routing"] != "up/down":
            raise Failed(f"{status(fabric)}")
        check_managed(fabric)
        path_bits(report, fabric, *(ports[node]["lid"] for node in (0, 7)))
    folder = user.make_dir("partitions-")
    file = folder / "partitions.conf"
    with report.case("partitions of a file, at ports and at switches"):
        file.write_text("Default=0x7fff : ALL=full;\n")
        file.chmod(0o644)
        with subnet(user, TREE) as fabric:
            guids = [f"{guid_of(fabric, node):#018x}" for node in range(8)]
        file.write_text("Default=0x7fff : ALL=limited, SELF=full;\n"
                        f"storage=0x8002 : {guids[1]}=full, {guids[7]}=full, {guids[2]}=limited;\n")
        with subnet(user, TREE, "--partitions", file) as fabric:
            wait_for_master(fabric)
            for result in fabric.pair(["ib_write_bw", "-n", "100", "--pkey_index", "1"], nodes=(1, 7)):
                result.require()
            # Both have the default partition as limited members only.
            server, client = fabric.pair(["ib_write_bw", "-n", "100", "-u", "8"], nodes=(3, 4), server_ends=False)
            if client.code == 0:
                raise Failed(f"limited members reach each other:\n{client.text}")
            enforced = fabric.run(["smpquery", "-G", "portinfo", guids[1]], 0).require()
            if "PartEnforceInb" not in enforced.text:
                raise Failed(enforced.text)
    with report.case("a mistake in the file of partitions, with its place"):
        file.write_text("storage=0x8002 : nonsense=full;\n")
        done = harness.Fabric(nodes=None, user=user, extra=["--topology", TREE, "--partitions", str(file)])
        try:
            with done:
                raise Failed("the fabric is up")
        except Failed as failure:
            if f"{file}:1:" not in str(failure):
                raise


def with_opensm(report, user):
    with report.case("--sm opensm: it is up when the command is over, and ends with the fabric"):
        with subnet(user, TREE, "--sm", "opensm") as fabric:
            check_managed(fabric)
            state = json.loads(softib(fabric, "status", "--json").text)
            pid = state["opensm"]["pid"]
            if master_in_sminfo(fabric, 5) != guid_of(fabric, 0):
                raise Failed("OpenSM is not the master")
            softib(fabric, "sm", "status", code=1).require("has no subnet manager", code=1)
        harness.wait_until(lambda: not pathlib.Path(f"/proc/{pid}").exists(), SECONDS, "the end of OpenSM")


def without_fabric(report, user):
    with report.case("OpenSM whose fabric has gone does not fill the disk with its log"):
        with subnet(user, TREE) as fabric:
            manager = Manager(fabric, 2)
            manager.wait_until_up()
            softib(fabric, "down", "--force")

            def times():
                """Of its errors, in seconds of the day."""
                found = re.findall(r"(\d\d):(\d\d):(\d\d) (\d+) .*recv error", manager.read_log())
                return [int(h) * 3600 + int(m) * 60 + int(s) + int(us) / 1e6 for h, m, s, us in found]
            harness.wait_until(lambda: len(times()) >= 20, SECONDS, "20 errors in the log of OpenSM")
            if (first := times()[:20])[-1] - first[0] < 1:
                raise Failed(f"20 errors in {first[-1] - first[0]:.3f} s")


def test(report, user):
    by_itself(report, user)
    give_way(report, user)
    handover(report, user)
    settings(report, user)
    with_opensm(report, user)
    without_fabric(report, user)


if __name__ == "__main__":
    harness.main("manager", test)
