#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""librdmacm over the addresses of ib0 inside `softib run --net`, by unmodified programs, and the files of ib0 in /sys.

ipoib_rdmacm_test.py [--as root|nobody] [--only REGEX]
"""
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness
from harness import Failed, need_program, wait_until
from support.ipoib import SECONDS, Nodes

CHILD = "ib0.8001"
CHILD_ADDRESSES = ("10.80.1.1", "10.80.1.2")
ADDED = "10.90.0.1"


class ConnectingNodes(Nodes):
    """Both nodes of a fabric, and programs that connect by librdmacm."""

    def address(self, node, family="inet", scope="global"):
        return next(one["local"] for one in self.addresses(node) if one["family"] == family and one["scope"] == scope)

    def read(self, node, path):
        return self.output(["cat", path], node)

    def connect(self, server_words, client_words, port, server_code=0):
        """A server on node 0, which listens at a port of librdmacm, and its client on node 1."""
        server = self.start(server_words, 0)
        wait_until(lambda: self.fabric.listens_by_cm(server.pid, port) or not server.running(), SECONDS,
                   f"{server.describe()} to listen; it says:\n{harness.tail(server.text())}")
        client = ends_well(self.run(client_words, 1))
        if server_code is None:  # it waits for the next client
            server.kill()
            return client
        ends_well(self.fabric.end(server, SECONDS))
        return client


def ends_well(result):
    """rping 44 may end with 255 after its last ping (rdmacm_test.py has the reason)."""
    return result.require(code=255 if "rping" in result.words and result.code == 255 else 0, forbid=(r"(?i)failed",))


def rping(nodes, address, source=None):
    port = harness.free_port()
    words = ["rping", "-V", "-C", 20, "-S", 4000, "-p", port]
    bound = ["-I", source] if source else []
    nodes.connect([*words, "-s", "-a", address], [*words, "-c", "-a", address, *bound], port)


def test_programs(report, nodes):
    address = nodes.address(0)
    for family, scope in (("inet", "global"), ("inet6", "global")):
        name = f"rping over {family} of ib0"
        if report.wanted(name):
            with report.case(name):
                need_program("rping")
                rping(nodes, nodes.address(0, family, scope))
    for name, options, port in (("ucmatose", ["-c", "10", "-C", "20"], 7471), ("udaddy", ["-c", "4", "-C", "20"], 7174)):
        if report.wanted(name):
            with report.case(name):
                need_program(name)
                nodes.connect([name, "-b", address, *options], [name, "-s", address, *options], port)
    if report.wanted("ib_write_bw -R"):
        with report.case("ib_write_bw -R"):
            need_program("ib_write_bw")
            port = harness.free_port()
            words = ["ib_write_bw", "-R", "-n", 1000, "-s", 65536, "-p", port]
            nodes.connect(words, [*words, address], port).require(r"65536 +1000")
    if report.wanted("mckey"):
        with report.case("mckey over ib0"):
            need_program("mckey")
            group = ["mckey", "-m", "239.77.1.1", "-c", "1", "-C", "5"]
            receiver = nodes.start(["stdbuf", "-oL", *group, "-b", address], 0)
            receiver.wait_for_text("joined dgid", SECONDS)
            nodes.run([*group, "-s", "-b", nodes.address(1)], 1).require()
            nodes.fabric.end(receiver, SECONDS).require()


def make_child(nodes):
    for node, address in enumerate(CHILD_ADDRESSES):
        nodes.fabric.softib("partition", "add", "0x8001", "--node", node, "--fabric", nodes.fabric.name).require()
        wait_until(lambda: "LOWER_UP" in nodes.run(["ip", "-br", "link", "show", CHILD], node).text, SECONDS, CHILD)
        nodes.run(["ip", "addr", "add", f"{address}/24", "dev", CHILD], node).require()


def is_known(nodes, address, node):
    """softibd hears of an address from the driver of the node, a moment after `ip addr`."""
    server = nodes.start(["rping", "-s", "-a", address, "-p", harness.free_port()], node)
    wait_until(lambda: not server.running() or nodes.fabric.ids(pid=server.pid, state="listening"), SECONDS, "rping")
    known = server.running()
    if known:
        server.kill()
    return known


def test_child(report, nodes):
    name = "a child interface: connections are in its partition"
    if not report.wanted(name):
        return
    with report.case(name):
        need_program("rping")
        make_child(nodes)
        for node, address in enumerate(CHILD_ADDRESSES):
            wait_until(lambda: is_known(nodes, address, node), SECONDS, f"{address} to be known")
        rping(nodes, CHILD_ADDRESSES[0])
        # The port of node 1 leaves the partition: what its child had is out of reach, ib0 is not.
        nodes.fabric.softib("partition", "remove", "0x8001", "--node", "1", "--fabric", nodes.fabric.name).require()
        port = harness.free_port()
        server = nodes.start(["rping", "-s", "-a", CHILD_ADDRESSES[0], "-p", port], 0)
        wait_until(lambda: nodes.fabric.listens_by_cm(server.pid, port), SECONDS, "rping to listen")
        nodes.run(["rping", "-c", "-a", CHILD_ADDRESSES[0], "-C", 1, "-p", port], 1).require(
            r"RDMA_CM_EVENT_ROUTE_ERROR|RDMA_CM_EVENT_ADDR_ERROR|RDMA_CM_EVENT_REJECTED", code=255)
        server.kill()
        rping(nodes, nodes.address(0))


def test_changes(report, nodes):
    name = "addresses that a user adds and deletes"
    if not report.wanted(name):
        return
    with report.case(name):
        need_program("rping")
        nodes.run(["ip", "addr", "add", f"{ADDED}/24", "dev", "ib0"], 0).require()
        nodes.run(["ip", "addr", "add", "10.90.0.2/24", "dev", "ib0"], 1).require()
        wait_until(lambda: is_known(nodes, ADDED, 0), SECONDS, f"{ADDED} to be known")
        wait_until(lambda: is_known(nodes, "10.90.0.2", 1), SECONDS, "10.90.0.2 to be known")
        rping(nodes, ADDED)
        nodes.run(["ip", "addr", "del", f"{ADDED}/24", "dev", "ib0"], 0).require()
        wait_until(lambda: not is_known(nodes, ADDED, 0), SECONDS, f"{ADDED} to be gone")
        nodes.run(["rping", "-s", "-a", ADDED], 0).require(r"rdma_bind_addr: Cannot assign requested address", code=255)
        nodes.run(["rping", "-c", "-a", ADDED, "-C", 1], 1).require(r"RDMA_CM_EVENT_ADDR_ERROR", code=255)


def test_files(report, nodes):
    name = "the files of ib0 in /sys"
    if not report.wanted(name):
        return
    with report.case(name):
        base = "/sys/class/net/ib0/"
        for file, wanted in (("mode", "datagram"), ("pkey", "0xffff"), ("umcast", "0"), ("type", "32"),
                             ("addr_len", "20"), ("dev_id", "0x0"), ("dev_port", "0"), ("mtu", "2044"),
                             ("carrier", "1")):
            text = nodes.read(0, base + file)
            if text != wanted + "\n":
                raise Failed(f"{file}: {text!r}, not {wanted!r}")
        gid = nodes.read(0, "/sys/class/infiniband/softib0/ports/1/gids/0").strip()
        address = nodes.read(0, base + "address").strip()
        if not re.fullmatch(r"([0-9a-f]{2}:){19}[0-9a-f]{2}", address):
            raise Failed(f"address: {address}")
        if "".join(address.split(":")[4:]) != gid.replace(":", ""):
            raise Failed(f"{address} does not end with the GID {gid}")
        nodes.run(["ls", base + "device/infiniband"], 0).require(r"^softib0$")
        nodes.run(["ls", "/sys/class/net"], 0).require(r"^ib0$", r"^lo$", forbid=(r"^eth",))
        nodes.run(["ls", base + "statistics"], 0).require(r"rx_packets")
        nodes.run(["sh", "-c", f"echo connected > {base}mode; true"], 0).require(r"Permission denied")
        if nodes.read(0, base + "mode") != "datagram\n":
            raise Failed("the mode has changed")
    name = "another TAP of the node has the kernel's files"
    if not report.wanted(name):
        return
    with report.case(name):
        nodes.run(["ip", "tuntap", "add", "dev", "tap7", "mode", "tap"], 0).require()
        mac = json.loads(nodes.run(["ip", "-j", "link", "show", "tap7"], 0).require().text)[0]["address"]
        if nodes.read(0, "/sys/class/net/tap7/address").strip() != mac:
            raise Failed(f"not {mac}")
        nodes.run(["cat", "/sys/class/net/tap7/pkey"], 0).require(r"No such file", code=1)


def test(report, user):
    with harness.Fabric(user=user) as fabric:
        nodes = ConnectingNodes(fabric).hold(0, 1)
        need_program("ip")
        test_programs(report, nodes)
        test_changes(report, nodes)
        test_files(report, nodes)
        test_child(report, nodes)


if __name__ == "__main__":
    harness.main("IP over InfiniBand and librdmacm", test)
