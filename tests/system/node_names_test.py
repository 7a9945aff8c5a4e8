#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Names of nodes are names of hosts for programs under `softib run`.

node_names_test.py [--as root|nobody] [--only REGEX]
"""
import contextlib
import json
import subprocess

import harness
from harness import Failed, Skipped

PROGRAM = harness.SOURCE / "tests/system/programs/node_names.c"


def addresses(fabric):
    text = fabric.softib("status", "--json", "--fabric", fabric.name).require().text
    return {node["name"]: node["addresses"][0]["ip"] for node in json.loads(text)["nodes"]}


def names(report, fabric):
    with report.case("every call of libc, four threads"):
        program = harness.build_program(fabric.runtime, PROGRAM)
        for node in range(2):
            fabric.run([program, "node1", addresses(fabric)["node1"]], node=node).require(r"^wrong: 0$")
    with report.case("Python"):
        script = "import socket; print(socket.gethostbyname('node0'), socket.getaddrinfo('node1', 1)[0][4][0])"
        known = addresses(fabric)
        fabric.run(["python3", "-c", script]).require(rf"^{known['node0']} {known['node1']}$")
    with report.case("a server's name serves its clients"):
        harness.need_program("ib_write_bw")
        server, client = fabric.pair(["ib_write_bw", "-d", "softib0", "-n", 100, "-s", 4096], nodes=(1, 0), host="node1")
        server.require(r"4096 +100")
        client.require(r"4096 +100")


@contextlib.contextmanager
def two_networks():
    """Two network namespaces that a cable joins, as those of two containers; yields a process in each."""
    holders = []
    try:
        for _ in range(2):
            holders.append(subprocess.Popen(["unshare", "-n", "sh", "-c", "echo; exec cat"], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE))
            holders[-1].stdout.readline()  # it is there
        names = f"sib{holders[0].pid}a", f"sib{holders[0].pid}b"
        lines = [f"ip link add {names[0]} type veth peer name {names[1]} netns {holders[1].pid}"]
        inside = [["nsenter", "-t", str(holder.pid), "-n"] for holder in holders]
        for number, name in enumerate(names):
            for line in (*lines, f"ip addr add 10.231.0.{number + 1}/24 dev {name}", f"ip link set {name} up",
                         "ip link set lo up"):
                done = subprocess.run([*inside[number], *line.split()], timeout=60, check=False, capture_output=True,
                                      text=True)
                if done.returncode != 0:
                    raise Failed(f"{line}: {done.stderr.strip()}")
            lines = []
        yield inside
    finally:
        for holder in holders:
            holder.kill()
            holder.communicate(timeout=60)


def networks(report, fabric):
    """Programs in network namespaces of their own have the addresses of their interfaces: out-of-band TCP and RDMA use
    the same."""
    def connect(words, inside, host):
        for side in fabric.pair(words, befores=inside, host=host):
            side.require(r"65536 +100", forbid=("warning",))

    bandwidth = ["ib_write_bw", "-d", "softib0", "-n", 100]
    with report.case("two network namespaces, by name and by address"):
        harness.need_program("ip")
        harness.need_program("ib_write_bw")
        if fabric.user.uid != 0:
            raise Skipped("only root can join two network namespaces")
        before = addresses(fabric)
        with two_networks() as inside:
            # The server's node has no such address before its first program runs.
            connect(bandwidth, inside, "10.231.0.1")
            connect(bandwidth, inside, "node0")
            found = addresses(fabric)
            if found != {"node0": "10.231.0.1", "node1": "10.231.0.2"}:
                raise Failed(f"the nodes have the addresses {found}")
            held = fabric.start(["ibv_asyncwatch"], before=inside[0])
            held.wait_for_text("async", 20)
            fabric.run(["true"]).require("warning: .* node0 keeps the address 10.231.0.1, which pid")
            fabric.run(["true"], before=inside[0]).require(forbid=("warning",))
            held.kill()
        for node in range(2):
            fabric.run(["true"], node=node).require(forbid=("warning",))
        if addresses(fabric) != before:
            raise Failed(f"back in softibd's namespace the nodes have {addresses(fabric)}, before {before}")


def test(report, user):
    for layer in ("infiniband", "ethernet"):
        with harness.Fabric(user=user, link_layer=layer) as fabric:
            names(report, fabric)
            networks(report, fabric)


if __name__ == "__main__":
    harness.main("node_names", test)
