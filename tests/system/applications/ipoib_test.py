#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""TCP/IP programs, unmodified, over the ib0 of each node (`softib run --net`).

ipoib_test.py [--as root|nobody] [--only REGEX] [--mode datagram|connected] [--tree]
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

SYSTEM = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(SYSTEM), str(SYSTEM / "management")]
import harness
from harness import Failed
from manager_test import wait_for_master
from subnet_test import Manager, subnet
from support.ip_changes import SteadyPings, administrator_load, change_partition, child_has_carrier, partition_goes_and_comes
from support.ipoib import ENV, MODE, MTU, MTUS, SECONDS, Nodes

GROUP = "239.7.7.7"

MULTICAST_READER = """
import socket, struct, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("", 7777))
s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP,
             struct.pack("4s4s", socket.inet_aton(sys.argv[1]), socket.inet_aton(sys.argv[2])))
print("member", flush=True)
s.settimeout(30)
seen = set()
while len(seen) < int(sys.argv[3]):
    seen.add(s.recvfrom(100)[0])
print("all", sorted(seen), flush=True)
"""
MULTICAST_WRITER = """
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(sys.argv[2]))
s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 4)
for n in range(100):
    s.sendto(sys.argv[3].encode(), (sys.argv[1], 7777))
    time.sleep(0.02)  # tidy: allow(sleep) the pause between two packets
"""
BUSY = 10


def test_interface(report, nodes):
    name = "ib0 has the addresses of its node, its MTU, carrier"
    if not report.wanted(name):
        return
    with report.case(f"{name} ({MODE})"):
        link = nodes.link(0)
        if link["mtu"] != MTU or "LOWER_UP" not in link["flags"]:
            raise Failed(f"ib0: {link}")


def test_mode(report, nodes):
    if report.wanted("another mode is refused"):
        with report.case(f"another mode is refused while the network is there ({MODE})"):
            other = next(mode for mode in MTUS if mode != MODE)
            refused = nodes.fabric.run(["true"], 0, more=[f"--net={other}"])
            refused.require(f"node0 is there already, in {MODE} mode", f"before --net={other}", code=BUSY)
            nodes.fabric.run(["true"], 0, more=["--net"]).require()


def test_configured_modes(report, user):
    name = "modes of the configuration file"
    if not report.wanted(name):
        return
    with report.case(name), harness.Fabric(user=user, config="""
ipoib_mode = "connected"
[[node]]
name = "node1"
ipoib_mode = "datagram"
""") as fabric:
        nodes = Nodes(fabric)
        holders = [nodes.start(["sh", "-c", "echo up; exec sleep 600"], node, more=["--net"]) for node in (0, 1)]
        for node, mode in enumerate(("connected", "datagram")):
            holders[node].wait_for_text("up", SECONDS)
            shown = json.loads(fabric.run(["ip", "-j", "link", "show", "ib0"], node, more=["--net"]).require().text)[0]
            if shown["mtu"] != MTUS[mode]:
                raise Failed(f"node {node}: {shown}")
        # Longer than the MTU of one of them: packets that may be cut are cut for it.
        address = next(one["local"] for one in json.loads(fabric.run(
            ["ip", "-j", "-4", "addr", "show", "ib0"], 1, more=["--net"]).require().text)[0]["addr_info"])
        fabric.run(["ping", "-M", "dont", "-c", 3, "-W", 5, "-s", 20000, address], 0, more=["--net"]).require(" 0% packet loss")


def test_ping(report, nodes):
    if report.wanted("ping"):
        with report.case(f"ping ({MODE})"):
            harness.need_program("ping")
            nodes.ping(0, nodes.ipv4(1)).require(" 0% packet loss")
            nodes.ping(1, nodes.ipv4(0)).require(" 0% packet loss")
    if report.wanted("ping -6"):
        with report.case(f"ping -6 ({MODE})"):
            harness.need_program("ping")
            nodes.ping(0, f"{nodes.link_local(1)}%ib0", "-6").require(" 0% packet loss")
    if report.wanted("ping with fragments"):
        with report.case(f"ping with fragments ({MODE})"):
            harness.need_program("ping")
            nodes.ping(0, nodes.ipv4(1), "-s", 20000).require(" 0% packet loss")
    if report.wanted("arping"):
        with report.case(f"arping ({MODE})"):
            harness.need_program("arping")
            nodes.run(["arping", "-c", 2, "-I", "ib0", nodes.ipv4(1)], 0).require(r"Received [12] response")
    if report.wanted("ip neigh"):
        with report.case(f"ip neigh and softib ipoib have the neighbour ({MODE})"):
            nodes.ping(0, nodes.ipv4(1)).require()
            text = nodes.output(["ip", "neigh"], 0)
            if not re.search(rf"{nodes.ipv4(1)} dev ib0 lladdr (\w\w:){{5}}\w\w ", text):
                raise Failed(f"ip neigh: {text}")


def test_iperf(report, nodes):
    for name, options in (("tcp", ()), ("tcp 8 streams", ("-P", 8)), ("tcp reverse", ("-R",)),
                          ("udp", ("-u", "-b", "200M"))):
        if not report.wanted(f"iperf3 {name}"):
            continue
        with report.case(f"iperf3 {name} ({MODE})") as remarks:
            harness.need_program("iperf3")
            port = harness.free_port()
            server = nodes.serve(["iperf3", "-s", "-1", "-p", port], 0, port)
            client = nodes.run(["iperf3", "-J", "-t", 2, "-c", nodes.ipv4(0), "-p", port, *options], 1)
            result = json.loads(client.require().text)
            nodes.fabric.end(server, SECONDS).require()
            if "error" in result:
                raise Failed(f"iperf3: {result['error']}")
            total = result["end"].get("sum_received") or result["end"]["sum"]
            remarks.append(f"{total['bits_per_second'] / 1e9:.2f} Gb/s")
            if total["bits_per_second"] < 50e6:
                raise Failed(f"only {total['bits_per_second'] / 1e6:.1f} Mb/s")
            if "udp" in name:
                remarks.append(f"{total['lost_percent']:.2f} % lost")


def test_transfers(report, nodes, user):
    folder = user.make_dir("softib-ipoib-")
    source = folder / "source"
    source.mkdir()
    for number in range(40):
        (source / f"file{number}").write_bytes(os.urandom(1 + number * 33331))
    for path in [source, *source.iterdir()]:
        path.chmod(0o755)
    sums = {path.name: harness.digest(path) for path in source.iterdir()}
    if report.wanted("curl"):
        with report.case(f"curl ({MODE})"):
            harness.need_program("curl")
            port = harness.free_port()
            server = nodes.serve(["python3", "-m", "http.server", port, "-d", source], 0, port)
            for name, wanted in sums.items():
                done = nodes.run(["curl", "-sS", "-o", folder / "got", f"http://{nodes.ipv4(0)}:{port}/{name}"], 1)
                done.require()
                if harness.digest(folder / "got") != wanted:
                    raise Failed(f"{name} differs")
            server.kill()
    if report.wanted("rsync"):
        with report.case(f"rsync of a tree ({MODE})"):
            harness.need_program("rsync")
            port = harness.free_port()
            config = folder / "rsyncd.conf"
            config.write_text(f"use chroot = no\n[tree]\npath = {source}\n")
            config.chmod(0o644)
            server = nodes.serve(["rsync", "--daemon", "--no-detach", f"--port={port}", f"--config={config}"], 0, port)
            target = folder / "target"
            nodes.run(["rsync", "-a", f"rsync://{nodes.ipv4(0)}:{port}/tree/", target], 1).require()
            if {path.name: harness.digest(path) for path in target.iterdir()} != sums:
                raise Failed("the copy differs")
            server.kill()


def test_multicast(report, nodes):
    for writer, reader in ((0, 1), (1, 0)):
        if not report.wanted(f"multicast {writer} to {reader}"):
            continue
        with report.case(f"multicast {writer} to {reader} ({MODE})"):
            listener = nodes.start(["python3", "-c", MULTICAST_READER, GROUP, nodes.ipv4(reader), "1"], reader)
            listener.wait_for_text("member", SECONDS)
            nodes.run(["python3", "-c", MULTICAST_WRITER, GROUP, nodes.ipv4(writer), "hello"], writer).require()
            nodes.fabric.end(listener, SECONDS).require("all .*hello")


def test_tcpdump(report, nodes):
    if not report.wanted("tcpdump"):
        return
    with report.case(f"tcpdump -i ib0 ({MODE})"):
        harness.need_program("tcpdump")
        dump = nodes.start(["tcpdump", "-n", "-l", "-c", "2", "-i", "ib0", "icmp"], 1)
        dump.wait_for_text("listening on ib0", SECONDS)
        nodes.ping(0, nodes.ipv4(1)).require()
        nodes.fabric.end(dump, SECONDS).require("ICMP echo request", "ICMP echo reply")


def test_port_goes(report, nodes):
    if not report.wanted("port down and up"):
        return
    with report.case(f"port down and up ({MODE})"):
        name = nodes.fabric.name
        nodes.fabric.softib("port", "down", "--node", "node1", "--fabric", name).require()
        harness.wait_until(lambda: "LOWER_UP" not in nodes.link(1)["flags"], SECONDS, "the carrier to go")
        if nodes.ping(0, nodes.ipv4(1), count=1).code == 0:
            raise Failed("a ping came through a port that is down")
        nodes.fabric.softib("port", "up", "--node", "node1", "--fabric", name).require()
        harness.wait_until(lambda: "LOWER_UP" in nodes.link(1)["flags"], SECONDS, "the carrier to come")
        harness.wait_until(lambda: nodes.ping(0, nodes.ipv4(1), count=1).code == 0, SECONDS, "a ping to come through")


def reaches_again(nodes, node=0, other=1):
    address = nodes.ipv4(other)
    harness.wait_until(lambda: nodes.ping(node, address, count=1).code == 0, SECONDS, f"a ping to {address}")


def test_hca_returns(report, nodes):
    if not report.wanted("an HCA is pulled out and comes back"):
        return
    with report.case(f"an HCA is pulled out and comes back ({MODE})"):
        name = nodes.fabric.name
        nodes.fabric.softib("hca", "eject", "softib0", "--node", "1", "--fabric", name).require()
        harness.wait_until(lambda: "ib0" not in nodes.output(["ip", "-br", "link"], 1), SECONDS, "ib0 to go")
        nodes.fabric.softib("hca", "add", "softib0", "--node", "1", "--fabric", name).require()
        harness.wait_until(lambda: "ib0" in nodes.output(["ip", "-br", "link"], 1), SECONDS, "ib0 to come back")
        reaches_again(nodes)


def test_sleep(report, nodes):
    if not report.wanted("a node sleeps"):
        return
    with report.case(f"a node sleeps ({MODE})"):
        name = nodes.fabric.name
        nodes.fabric.softib("power", "sleep", "--node", "1", "--fabric", name).require()
        if nodes.ping(0, nodes.ipv4(1), count=1).code == 0:
            raise Failed("a node that sleeps has answered")
        nodes.fabric.softib("power", "resume", "--node", "1", "--fabric", name).require()
        reaches_again(nodes)


def test_partition(report, nodes):
    wanted = report.wanted("a P_Key has an interface"), report.wanted("a P_Key goes and comes back")
    if not any(wanted):
        return
    for node in (0, 1):
        change_partition(nodes, "add", "0x8001", node)
    for node in (0, 1):
        harness.wait_until(lambda: child_has_carrier(nodes, node), SECONDS, "ib0.8001")
    peer = f"{nodes.link_local(1)}%ib0.8001"
    if wanted[0]:
        with report.case(f"a P_Key has an interface of its own ({MODE})"):
            nodes.ping(0, peer, "-6").require(" 0% packet loss")
    if wanted[1]:
        with report.case(f"a P_Key goes and comes back, its interface loses the carrier and gets it ({MODE})"):
            partition_goes_and_comes(nodes, peer)


def test_manager_changes(report, user):
    name = "the subnet manager gives way to OpenSM and comes back"
    if not report.wanted(name):
        return
    with report.case(f"{name}: packets go on, requests stay few ({MODE})") as remarks, subnet(user, "star:4") as fabric:
        harness.need_program("opensm")
        wait_for_master(fabric)
        nodes = Nodes(fabric).hold(0, 1)
        reaches_again(nodes)
        pings = SteadyPings(nodes, 0, nodes.ipv4(1))
        pings.go_on(100)
        before, _ = administrator_load(nodes)
        manager = Manager(fabric, 2)
        manager.wait_until_up()
        pings.go_on(500)  # longer than the members take to join again
        # A send-only join of a group without a member, to which the kernel sends, is an error for it.
        manager.end("ERR 1B10")
        wait_for_master(fabric)
        pings.go_on(500)
        reaches_again(nodes)
        after, things = administrator_load(nodes)
        pings.program.kill()
        # Two changes of the manager; each is two events at most, a changed manager and one that wants all to register.
        # An event makes one request for each thing, and one more if another was under way.
        most = things * 2 * 2 * 2
        remarks.append(f"{after - before} requests, {most} at most, for {pings.answers()} answers")
        if after - before > most:
            raise Failed(f"{after - before} requests for {things} paths and memberships; at most {most}")
        if pings.answers() < 2 * most:
            raise Failed(f"{pings.answers()} answers do not tell a request for each packet from {most}")


def test_tcp_waits(report, nodes):
    name = "a TCP connection goes on after port down and sleep"
    if not report.wanted(name):
        return
    with report.case(f"{name} ({MODE})"):
        harness.need_program("iperf3")
        port, fabric = harness.free_port(), nodes.fabric.name
        server = nodes.serve(["iperf3", "-s", "-1", "-p", port], 0, port)
        client = nodes.start(["iperf3", "-J", "-b", "20M", "-n", "30M", "-c", nodes.ipv4(0), "-p", port], 1)

        def received():
            shown = json.loads(nodes.output(["ip", "-j", "-s", "link", "show", "ib0"], 0))[0]
            return shown["stats64"]["rx"]["bytes"]
        def wait_for_bytes():
            least = received() + 500_000
            harness.wait_until(lambda: received() > least, SECONDS, "bytes of the connection")
        for stop, start in ((("port", "down"), ("port", "up")), (("power", "sleep"), ("power", "resume"))):
            wait_for_bytes()
            nodes.fabric.softib(*stop, "--node", "1", "--fabric", fabric).require()
            harness.wait_until(lambda: "LOWER_UP" not in nodes.link(1)["flags"], SECONDS, f"no carrier after {stop}")
            nodes.fabric.softib(*start, "--node", "1", "--fabric", fabric).require()
        wait_for_bytes()
        nodes.fabric.end(client, SECONDS).require()


def test_other_lids(report, nodes):
    name = "another subnet manager, other LIDs"
    if not harness.TREE or not report.wanted(name):
        return
    with report.case(f"{name} ({MODE})") as remarks:
        harness.need_program("/usr/sbin/opensm")

        def lids():
            return [node["hcas"][0]["ports"][0]["lid"] for node in nodes.fabric.state()["nodes"]]
        reaches_again(nodes)
        before = lids()
        manager = Manager(nodes.fabric, 0, "-r")
        manager.wait_until_up()
        reaches_again(nodes)
        reaches_again(nodes, 1, 0)
        if lids() == before:
            raise Failed(f"the LIDs are still {before}")
        remarks.append(f"LIDs {before}, {lids()}")
        os.kill(manager.program.pid, signal.SIGKILL)
        nodes.fabric.end(manager.program, SECONDS)
        nodes.fabric.softib("sm", "sweep", "--full", "--fabric", nodes.fabric.name).require()
        nodes.ping(1, nodes.ipv4(0)).require(" 0% packet loss")


def test_softibd_dies(report, nodes):
    name = "softibd is killed: the interface stays, without carrier"
    if not report.wanted(name):
        return
    with report.case(f"{name} ({MODE})"):
        watcher = nodes.start(["sh", "-c", "echo up; until ip -o link show ib0 | grep NO-CARRIER; do sleep 0.1; done; "
                               "ip -o addr show ib0"], 0)
        watcher.wait_for_text("up\n", SECONDS)
        address = nodes.ipv4(0)
        os.kill(nodes.fabric.state()["pid"], signal.SIGKILL)
        nodes.fabric.end(watcher, SECONDS).require("NO-CARRIER", re.escape(address))


def test_trace(report, nodes):
    if not report.wanted("softib trace names the neighbour"):
        return
    with report.case(f"softib trace names the neighbour that cannot be reached ({MODE})"):
        name = nodes.fabric.name
        reaches_again(nodes)
        address = nodes.ipv4(1)
        nodes.fabric.softib("port", "down", "--node", "1", "--fabric", name).require()

        def is_named():
            nodes.ping(0, address, count=1)
            return re.search(r"IP over InfiniBand cannot reach fe80:\S+ \(node1, softib0, port 1\): ",
                             nodes.fabric.softib("trace", "--fabric", name).text)

        harness.wait_until(is_named, SECONDS, "the line of the trace")
        nodes.fabric.softib("port", "up", "--node", "1", "--fabric", name).require()
        reaches_again(nodes)


def test_capture(report, nodes, capture):
    if not report.wanted("a capture is read by tshark"):
        return
    with report.case(f"a capture is read by tshark ({MODE})"):
        tshark = harness.need_program("tshark")
        nodes.ping(0, nodes.ipv4(1)).require()
        fields = ("infiniband.bth.opcode", "arp.hw.type", "arp.hw.size", "icmp.type", "_ws.malformed")
        rows = subprocess.run([tshark, "-r", f"{capture}.node0.ib0.pcap", "--disable-protocol", "rpcordma", "-T", "fields",
                               *(word for field in fields for word in ("-e", field))],
                              capture_output=True, text=True, timeout=120, check=True).stdout.splitlines()
        cells = [row.split("\t") for row in rows]
        if any(row[-1] for row in cells):
            raise Failed(f"malformed: {[row for row in cells if row[-1]][:5]}")
        if not any(row[1:3] == ["32", "20"] for row in cells):
            raise Failed("no ARP with 20-byte addresses")
        opcodes = {row[0] for row in cells if row[3] in ("0", "8")}
        if ("100" if MODE == "datagram" else "4") not in opcodes:
            raise Failed(f"pings have the opcodes {opcodes}")


def test_driver_dies(report, nodes):
    name = "the driver of a node is killed"
    if not report.wanted(name):
        return
    with report.case(f"{name} ({MODE})"):
        [driver] = [one["driver_pid"] for one in nodes.report() if one["node"] == "node1"]
        os.kill(driver, signal.SIGKILL)
        # The next program of the node gets a new driver in the same network.
        harness.wait_until(lambda: nodes.ping(1, nodes.ipv4(0), count=1).code == 0, SECONDS, "a ping to come through")
        harness.wait_until(lambda: nodes.ping(0, nodes.ipv4(1), count=1).code == 0, SECONDS, "a ping to come back")


def test_report(report, nodes):
    if not report.wanted("softib ipoib"):
        return
    with report.case(f"softib ipoib --json ({MODE})"):
        nodes.ping(0, nodes.ipv4(1)).require()
        text = json.dumps(nodes.report())
        for wanted in ('"name": "ib0"', f'"mode": "{MODE}"', '"neighbours"', '"groups"', '"paths"'):
            if wanted not in text:
                raise Failed(f"no {wanted} in {text}")
    with report.case(f"softib ipoib show ({MODE})"):
        fabric = nodes.fabric
        address = re.escape(nodes.ipv4(1))
        nodes.ping(0, nodes.ipv4(1)).require()
        shown = fabric.softib("ipoib", "show", "0", "--fabric", fabric.name).require(
            rf"^node0: own network, {MODE}, \d+ programs?, driver pid", rf"^  ib0 .*, {MODE}, MTU {MTU}, carrier$",
            rf"^    {address} +0x[0-9a-f]+ +\d+ +{MODE} .* resolved +(arp|nd|packet)$", r"^    PATH TO ",
            r"^    GROUP .*\n(.*\n)*.* joined +0$",
            *([rf"^    {address} .* sends +established +{MTU}"] if MODE == "connected" else []))
        if "node1" in shown.text:
            raise Failed(f"another node, too:\n{shown.text}")
        fabric.softib("ipoib", "show", "7", "--fabric", fabric.name).require(code=3)


def test(report, user):
    with harness.Fabric(user=user) as fabric:
        nodes = Nodes(fabric)
        nodes.hold(0, 1)
        test_interface(report, nodes)
        test_mode(report, nodes)
        test_ping(report, nodes)
        test_iperf(report, nodes)
        test_transfers(report, nodes, user)
        test_multicast(report, nodes)
        test_tcpdump(report, nodes)
        test_report(report, nodes)
        test_port_goes(report, nodes)
        test_driver_dies(report, nodes)
        test_trace(report, nodes)
        test_sleep(report, nodes)
        test_hca_returns(report, nodes)
        test_partition(report, nodes)
        test_tcp_waits(report, nodes)
        test_other_lids(report, nodes)
        test_softibd_dies(report, nodes)
    test_configured_modes(report, user)
    test_manager_changes(report, user)
    folder = user.make_dir("softib-ipoib-")
    ENV["SOFTIB_IPOIB_CAPTURE"] = str(folder / "capture")
    with harness.Fabric(user=user) as fabric:
        test_capture(report, Nodes(fabric).hold(0, 1), folder / "capture")
    del ENV["SOFTIB_IPOIB_CAPTURE"]


if __name__ == "__main__":
    harness.main("IP over InfiniBand", test)
