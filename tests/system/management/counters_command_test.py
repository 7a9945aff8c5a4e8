#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""`softib counters` against the counters that infiniband-diags reads, and what it says of names that are not there.

counters_command_test.py [--as root|nobody] [--only REGEX]
"""
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness
from forwarding_test import path, softib
from harness import Failed
from subnet_test import SECONDS, subnet

TREE = "fat-tree:levels=2,ports=4"  # 8 adapters at 4 leaves, 2 spines
LAST = 7
MESSAGES, SIZE = 3000, 4096
OTHER = 256 * 1024  # bytes; acknowledgements and the queries of a test are less
TRAFFIC = {"PortXmitData": ("sent", "bytes", 4), "PortXmitPkts": ("sent", "packets", 1),
           "PortUnicastXmitPkts": ("sent", "unicast", 1), "PortMulticastXmitPkts": ("sent", "multicast", 1),
           "PortRcvData": ("received", "bytes", 4), "PortRcvPkts": ("received", "packets", 1),
           "PortUnicastRcvPkts": ("received", "unicast", 1), "PortMulticastRcvPkts": ("received", "multicast", 1)}
ERRORS = {"SymbolErrorCounter": "symbol_errors", "PortRcvErrors": "receive_errors",
          "PortXmitDiscards": "transmit_discards", "LinkErrorRecoveryCounter": "link_error_recovery",
          "LinkDownedCounter": "link_downed", "PortRcvRemotePhysicalErrors": "remote_physical_errors",
          "PortRcvSwitchRelayErrors": "switch_relay_errors", "PortXmitConstraintErrors": "transmit_constraint_errors",
          "PortRcvConstraintErrors": "receive_constraint_errors",
          "LocalLinkIntegrityErrors": "local_link_integrity_errors",
          "ExcessiveBufferOverrunErrors": "buffer_overrun_errors", "VL15Dropped": "vl15_dropped"}


def counters(fabric, *names):
    """By name of the element and number of the port."""
    ports = json.loads(softib(fabric, "counters", "--json", *names).text)["ports"]
    return {(port["element"], port["port"]): port for port in ports}


def perfquery(fabric, port):
    text = fabric.run(["perfquery", "-x", str(port["lid"]), str(port["port"])], 0).require().text
    return {name: int(value) for name, value in re.findall(r"^(Port\w+):\.*(\d+)$", text, re.MULTILINE)}


def of_way(hops):
    """Sending and receiving ends, as names and ports."""
    name = {hop[f"{end}_guid"]: hop[end].removesuffix(" softib0") for hop in hops for end in ("from", "to")}
    return ([(name[hop["from_guid"]], hop["out"]) for hop in hops], [(name[hop["to_guid"]], hop["in"]) for hop in hops])


def against_perfquery(report, fabric):
    with report.case("every port on the way of fixed bytes has them, and no other"):
        before = counters(fabric)
        for result in fabric.pair(["ib_write_bw", "-n", str(MESSAGES), "-s", str(SIZE)], nodes=(0, LAST)):
            result.require()
        after = counters(fabric)
        sending, receiving = of_way(path(fabric, LAST, 0)["hops"])
        if len(sending) != 4:
            raise Failed(f"the way has the hops {sending}")
        for (name, port), now in after.items():
            for direction, ends in (("sent", sending), ("received", receiving)):
                more = now[direction]["bytes"] - before[(name, port)][direction]["bytes"]
                least = MESSAGES * SIZE if (name, port) in ends else 0
                if not least <= more <= least * 1.2 + OTHER:
                    raise Failed(f"{name} port {port} {direction} {more} bytes of {MESSAGES} writes of {SIZE}")
    with report.case("each port agrees with perfquery") as remarks:
        for key, before in counters(fabric).items():
            if "peer" not in before:
                continue
            asked = perfquery(fabric, before)
            now = counters(fabric)[key]
            for name, (direction, what, unit) in TRAFFIC.items():
                least, most = before[direction][what], now[direction][what]
                if not least <= asked[name] * unit <= most or most - least > OTHER:
                    raise Failed(f"{name} of {key}: perfquery says {asked[name]}, softib {least} and then {most}")
            remarks[:] = [f"{len(asked)} counters of {len(after)} ports"]


def ibqueryerrors(fabric):
    """By name of the element and number of the port."""
    text = fabric.run(["ibqueryerrors", "--threshold-file", "/dev/null"], 0).text
    found = {}
    for name, part in re.findall(r'^Errors for (?:0x\w+ )?"(.*?)(?: softib0)?"\n((?:   .*\n)*)', text, re.MULTILINE):
        for port, words in re.findall(r"^   GUID \S+ port (\d+): (.*)$", part, re.MULTILINE):
            found[(name, int(port))] = {ERRORS[counter]: int(value) for counter, value in
                                        re.findall(r"\[(\w+) == (\d+)", words)}
    return found, text


def against_ibqueryerrors(report, fabric):
    with report.case("errors agree with ibqueryerrors"):
        softib(fabric, "cable", "errors", "node2:1", "--symbol", "100", "--physical", "7")
        softib(fabric, "cable", "errors", "switch-1-3:3", "--recover", "5", "--discards", "9")
        listed, text = ibqueryerrors(fabric)
        own = {key: port["errors"] for key, port in counters(fabric).items() if port["errors"]}
        if listed != own or len(own) < 3:
            raise Failed(f"softib counts {own}, ibqueryerrors {listed}:\n{harness.tail(text)}")
        softib(fabric, "counters").require(r"^node2:1 +switch-1-1:1 ", r"^    errors: symbol errors 100, receive errors 7")
    with report.case("what perfquery clears begins at 0"):
        lid = counters(fabric, "node2")[("node2", 1)]["lid"]
        fabric.run(["perfquery", "-x", "-R", str(lid), "1", "0xffff"], 0)
        fabric.run(["perfquery", "-R", str(lid), "1", "0xffff"], 0).require()
        if errors := counters(fabric, "node2")[("node2", 1)]["errors"]:
            raise Failed(f"it still counts {errors}")


def watched(report, fabric):
    with report.case("the busiest ports come first, in bytes a second"):
        port = harness.free_port()
        server = fabric.start(["ib_write_bw", "-D", "20", "-p", str(port)], 1)
        harness.wait_until(lambda: harness.is_listening(server.pid, port), SECONDS, "the server")
        client = fabric.start(["ib_write_bw", "-D", "20", "-p", str(port), harness.HOST], 6)
        words = [*fabric.user.prefix, fabric.user.bin / "softib", "counters", "--fabric", fabric.name, "--watch"]
        page = harness.Program(words, env=fabric.base_env, cwd=fabric.runtime)
        fabric.programs.append(page)
        ends = [f"{name}:{number}" for side in of_way(path(fabric, 6, 1)["hops"]) for name, number in side]
        row = r"(?:.*\n)*PORT +LEADS TO +SENT/S.*\n(?:(?:" + "|".join(ends) + r") .* [GM]iB .*\n(?:    .*\n)*){%d}" % len(ends)
        page.wait_for_text(row, SECONDS)
        page.wait_for_text(r"other ports have carried nothing in \d+\.\d s", SECONDS)
        lines = [*fabric.user.prefix, fabric.user.bin / "softib", "counters", "--fabric", fabric.name, "--watch=1", "--json",
                 "node6"]
        json_page = harness.Program(lines, env=fabric.base_env, cwd=fabric.runtime)
        fabric.programs.append(json_page)
        json_page.wait_for_text(r"\n", SECONDS)
        [one] = json.loads(json_page.text().splitlines()[0])["ports"]
        if one["sent_per_second"]["bytes"] < 1 << 20:
            raise Failed(f"node6 sends {one['sent_per_second']}")
        for program in (client, server):
            program.kill()
    with report.case("it ends with the fabric"):
        softib(fabric, "down", "--force")
        for program in (page, json_page):
            if (code := program.wait(SECONDS)) != 0:
                raise Failed(f"{program.describe()} ended with {code}:\n{harness.tail(program.text())}")


def names(report, fabric):
    def says(words, pattern, code):
        result = fabric.softib("counters", "--fabric", fabric.name, *words)
        result.require(pattern, code=code)

    with report.case("names that are not there are told with those that are"):
        says(["nodee3"], r'no node or switch "nodee3"; did you mean "node3"\?\n.*node0, node1.* and \d+ others', 3)
        says(["switch-1-0:9"], r"switch-1-0 has no port 9; it has 1 to 4", 3)
        says(["99"], r'no node "99"; it has 8', 3)
        says(["--watch=x"], r"--watch=x: say whole seconds", 2)
    with report.case("a node by number, a switch by GUID, one port"):
        guid = counters(fabric, "switch-2-0")[("switch-2-0", 1)]["guid"]
        found = set(counters(fabric, "3", f"{guid}:2", "switch-1-0:1", "3:1"))
        if found != {("node3", 1), ("switch-2-0", 2), ("switch-1-0", 1)}:
            raise Failed(f"the ports are {found}")


def ethernet(report, user):
    with report.case("Ethernet ports have no such counters"):
        with harness.Fabric(nodes=1, user=user, link_layer="ethernet") as fabric:
            softib(fabric, "counters").require("no InfiniBand ports; `softib status`")
            softib(fabric, "counters", "node0", code=3).require("node0 has no InfiniBand port", code=3)


def main(report, user):
    for name in ("perfquery", "ibqueryerrors", "ib_write_bw"):
        harness.need_program(name)
    with subnet(user, TREE) as fabric:
        against_perfquery(report, fabric)
        against_ibqueryerrors(report, fabric)
        names(report, fabric)
        watched(report, fabric)
    ethernet(report, user)


if __name__ == "__main__":
    harness.main("counters", main)
