#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Cables and switches that come and go while a subnet is in use: OpenSM hears of them by traps and takes them in,
softib does so itself where no OpenSM runs, and programs get the events of their ports.

plugging_test.py [--as root|nobody] [--only REGEX]
"""
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness
from harness import Failed
from subnet_test import OPENSM, SECONDS, Manager, all_active, check_managed, elements, end_ports, paths_arrive, subnet


def softib(fabric, *words, code=0):
    return fabric.softib(*words, "--fabric", fabric.name).require(code=code)


def switches(fabric):
    return [element for element in elements(fabric) if element["kind"] == "switch"]


def between_switches(fabric):
    """A cable: the GUIDs of two switches with their ports."""
    for element in switches(fabric):
        for port in element["ports"]:
            peer = port.get("peer")
            if peer and any(other["guid"] == peer["guid"] for other in switches(fabric)):
                return f"{element['guid']}:{port['port']}", f"{peer['guid']}:{peer['port']}"
    raise Failed("no cable joins two switches")


def counts(fabric):
    """Of switches and adapters that ibnetdiscover finds."""
    text = fabric.run(["ibnetdiscover"], 0).require().text
    return tuple(len(re.findall(f"^{word}\t", text, re.MULTILINE)) for word in ("Switch", "Ca"))


def wait_until_routed(fabric, what):
    harness.wait_until(lambda: all_active(fabric) and paths_arrive(fabric), SECONDS, what)


def joins(fabric, one, other):
    """Whether ibnetdiscover's library finds a cable between the switches of two ports."""
    guids = [end.split(":")[0] for end in (one, other)]
    lines = fabric.run(["iblinkinfo", "-l"], 0).require().text.splitlines()
    return any(all(guid in line for guid in guids) for line in lines)


def cables(report, fabric):
    one, other = between_switches(fabric)
    with report.case("a cable that is pulled out is gone for ibnetdiscover, and routes go round it"):
        before = joins(fabric, one, other)
        softib(fabric, "cable", "remove", one)
        wait_until_routed(fabric, "routes without the cable")
        if not before or joins(fabric, one, other):
            raise Failed("iblinkinfo shows the cable after it was pulled out" if before else "and not before")
    with report.case("a cable that is plugged in has its width and speed"):
        softib(fabric, "cable", "add", one, other, "--width", "1x", "--speed", "SDR")
        wait_until_routed(fabric, "routes with the cable")
        fabric.run(["iblinkinfo", "-l"], 0).require(r"1X\s+2.5 Gbps")
        found = json.loads(softib(fabric, "cable", "show", one, "--json").text)
        if (found["width"], found["speed"], found["is_up"]) != ("1x", "SDR", True):
            raise Failed(f"softib cable show: {found}")
    with report.case("programs get the events of their port"):
        last = len(end_ports(fabric)) - 1
        watcher = fabric.start(["ibv_asyncwatch", "-d", "softib0"], last)
        watcher.wait_for_text("async", 20)
        end = f"node{last}:1"
        peer = json.loads(softib(fabric, "cable", "show", end, "--json").text)["ends"]
        far = next(f"{at['guid']}:{at['port']}" for at in peer if "softib0" not in at["text"])
        softib(fabric, "cable", "remove", end)
        watcher.wait_for_text("IBV_EVENT_PORT_ERR", 20)
        fabric.run(["ibv_devinfo"], last).require(r"state:\s+PORT_DOWN")
        softib(fabric, "cable", "add", end, far)
        watcher.wait_for_text("IBV_EVENT_PORT_ACTIVE", 20)
        watcher.kill()
        wait_until_routed(fabric, "a way to the node again")
        fabric.pair(["ibv_rc_pingpong", "-n", "200"], nodes=(0, last))
    with report.case("a cable that is down comes up again"):
        softib(fabric, "cable", "down", one).require("is down: .* was taken down")
        harness.wait_until(lambda: paths_arrive(fabric), SECONDS, "routes without the cable")
        softib(fabric, "cable", "up", other)
        wait_until_routed(fabric, "routes with the cable")


def switches_come_and_go(report, fabric):
    before = counts(fabric)
    leaf = next(f"{element['guid']}:{port['port']}" for element in switches(fabric) for port in element["ports"]
                if "softib0" in port.get("peer", {}).get("description", ""))
    with report.case("a switch that comes, between a node and its switch"):
        ends = json.loads(softib(fabric, "cable", "show", leaf, "--json").text)["ends"]
        node = next(f"{end['guid']}:{end['port']}" for end in ends if "softib0" in end["text"])
        softib(fabric, "switch", "add", "late", "--ports", "4").require("is there, with 4 ports")
        softib(fabric, "cable", "remove", leaf)
        softib(fabric, "cable", "add", leaf, "late:1")
        softib(fabric, "cable", "add", "late:2", node)
        wait_until_routed(fabric, "routes through the switch")
        harness.wait_until(lambda: counts(fabric) == (before[0] + 1, before[1]), SECONDS, "one switch more")
        check_managed(fabric)
    with report.case("a switch without power takes its links down, and comes back"):
        softib(fabric, "switch", "down", "late").require("no power")
        harness.wait_until(lambda: counts(fabric) != (before[0] + 1, before[1]), SECONDS, "the switch to be away")
        softib(fabric, "switch", "up", "late")
        wait_until_routed(fabric, "routes through the switch again")
        check_managed(fabric)
    with report.case("a switch that is removed"):
        softib(fabric, "switch", "remove", "late")
        softib(fabric, "cable", "add", leaf, node)
        wait_until_routed(fabric, "routes without the switch")
        harness.wait_until(lambda: counts(fabric) == before, SECONDS, "the switch to be gone")


def errors(report, fabric):
    lid = end_ports(fabric)[1]["lid"]
    with report.case("perfquery shows the errors of a link"):
        softib(fabric, "cable", "errors", "node1:1", "--symbol", "70000", "--recover", "3", "--physical", "20")
        fabric.run(["perfquery", str(lid), "1"], 0).require(
            r"SymbolErrorCounter:\.*65535\n", r"LinkErrorRecoveryCounter:\.*3\n", r"PortRcvErrors:\.*20\n",
            r"LocalLinkIntegrityErrors:\.*[1-9]")
        fabric.run(["perfquery", "--rcverr", str(lid), "1"], 0).require(r"PortLocalPhysicalErrors:\.*20\n")
        fabric.run(["perfquery", "--xmtdisc", str(lid), "1"], 0).require(r"PortInactiveDiscards:\.*\d+\n")
        fabric.run(["perfquery", "-R", str(lid), "1"], 0).require()
        fabric.run(["perfquery", str(lid), "1"], 0).require(r"SymbolErrorCounter:\.*0\n")
    with report.case("a link that goes down often"):
        softib(fabric, "cable", "errors", "node1:1", "--downed", "4")
        harness.wait_until(lambda: all_active(fabric), SECONDS, "the link to be active again")
        fabric.run(["perfquery", str(end_ports(fabric)[1]["lid"]), "1"], 0).require(r"LinkDownedCounter:\.*4\n")


def mistakes(report, user):
    with report.case("mistakes are refused in words"), subnet(user, "star:3") as fabric:
        for words, code, text in (
                (["add", "switch-0:1", "node1:1"], 1, "port 1 of .* has a cable already"),
                (["add", "node0", "node1:1"], 2, '"node0" is no port: SWITCH:PORT'),
                (["remove", "node0:2"], 3, "has port 1 only, not 2"),
                (["remove", "elsewhere:2"], 3, 'no switch, node or HCA "elsewhere"'),
                (["add", "node0:1", "node0:1"], 1, "both ends are"),
                (["errors", "node0:1"], 2, "say which and how many"),
                (["add", "node0:1", "node1:1", "--width", "5x"], 2, "5x")):
            fabric.softib("cable", *words, "--fabric", fabric.name).require(text, code=code)


def tables(text):
    """Of TOML, in an order of their own, and so the ends of each cable."""
    blocks = text.strip().split("\n\n")
    ends = r'ends = \[("[^"]*"), ("[^"]*")\]'
    return sorted(re.sub(ends, lambda match: f"ends = {sorted(match.groups())}", block) for block in blocks)


def files(report, user):
    folder = user.make_dir("toml-")
    first, second = folder / "first.toml", folder / "second.toml"
    with report.case("a subnet is written in TOML, and is the same when it is read"):
        with subnet(user, "fat-tree:levels=2,ports=4") as fabric:
            softib(fabric, "cable", "down", between_switches(fabric)[0])
            softib(fabric, "switch", "add", "late", "--ports", "4")
            softib(fabric, "topology", "--toml", first)
        with subnet(user, str(first)) as fabric:
            softib(fabric, "topology", "--toml", second)
            fabric.pair(["ibv_rc_pingpong", "-n", "200"], nodes=(0, 7))
        texts = [tables(file.read_text()) for file in (first, second)]
        if texts[0] != texts[1] or len(texts[0]) != 1 + 8 + 7 + 16:
            raise Failed(f"the files differ:\n{first.read_text()}\n{second.read_text()}")
    with report.case("a mistake in TOML is told with its place"), subnet(user, "star:2") as fabric:
        text = first.read_text().replace("ports = 4", "ports = 4000000", 1)
        wrong = folder / "wrong.toml"
        wrong.write_text(text)
        wrong.chmod(0o644)
        line = text[:text.index("4000000")].count("\n") + 1
        fabric.softib("up", "--topology", wrong, "--fabric", "wrong").require(
            f"wrong.toml:{line}:9: .*\"ports\" is 4000000; a switch has 1 to 254", code=2)


def test(report, user):
    harness.need_program(OPENSM)
    harness.need_program("ibnetdiscover")
    with subnet(user, "fat-tree:levels=2,ports=4", "--sm", "none") as fabric:
        manager = Manager(fabric)
        manager.wait_until_up()
        cables(report, fabric)
        switches_come_and_go(report, fabric)
        errors(report, fabric)
        with report.case("OpenSM has heard of all that by traps, and has swept"):
            if "num:128" not in manager.read_log():
                raise Failed(f"no trap 128 in the log of OpenSM:\n{harness.tail(manager.read_log(), 40)}")
            manager.program.kill()  # links that go during a sweep are errors in its log
    with subnet(user, "fat-tree:levels=2,ports=4") as fabric:
        cables(report, fabric)
        switches_come_and_go(report, fabric)
        errors(report, fabric)
    mistakes(report, user)
    files(report, user)


harness.main("plugging", test)
