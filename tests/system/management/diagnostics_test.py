#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Every program of infiniband-diags with its options, in a subnet with switches, beside those that subnet_test.py and
umad_test.py run. The master is OpenSM, or softib's own manager.

diagnostics_test.py [--as root|nobody] [--sm opensm|softib] [--only REGEX]
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
from manager_test import wait_for_master
from subnet_test import SECONDS, Manager, all_active, elements, end_ports, own, subnet

PROGRAMS = pathlib.Path(__file__).resolve().parents[1] / "programs/umad"
TOPOLOGY = "fat-tree:levels=2,ports=4"
SWITCHES, NODES = 6, 8
REFUSED, SA_REFUSED = 255, 5
GUID_OF_NODE = "0x02534600000{}0001"
GROUP = "224.1.1.1"
# A group of partition members has the rate that IPoIB begins with.
ALWAYS = ("-W- Suboptimal rate for group", "-W- Topology file is not specified")
BY_SOFTIB = "softib" in sys.argv[1:] and sys.argv[sys.argv.index("softib") - 1] == "--sm"
# OpenSM sets widths and speeds to all that a port has, unless it is told to leave them alone.
LEAVE_LINKS = ("force_link_speed 0", "force_link_speed_ext 0", "force_link_width 0")


class Subnet:
    """The fabric, with LIDs of what the commands are about."""

    def __init__(self, fabric):
        self.fabric = fabric
        self.last = end_ports(fabric)[NODES - 1]["lid"]
        self.here = end_ports(fabric)[0]["lid"]
        self.switch = self.leaf_of_node(0)
        self.lid = next(port["lid"] for port in self.switch["ports"] if port["port"] == 0)
        self.guid = self.switch["guid"]

    def leaf_of_node(self, node):
        name = f"node{node} softib0"
        return next(element for element in elements(self.fabric) if element["kind"] == "switch"
                    for port in element["ports"] if port.get("peer", {}).get("description") == name)

    def check(self, report, commands, where=""):
        """Of each: the words, a code if it is not 0, patterns."""
        for words, *patterns in commands:
            code = patterns.pop(0) if patterns and isinstance(patterns[0], int) else 0
            with report.case(words + where):
                self.fabric.run(words.split()).require(*patterns, code=code)


def subnet_management(report, net):
    lid, last = net.lid, net.last
    net.check(report, (
        ["ibaddr -g", "GID fe80::253:4600:0:1"], [f"ibaddr -l {last}", f"LID start {last:#x} end {last:#x}"],
        [f"ibaddr -L {last}", f"LID start {last} end {last}"],
        [f"ibaddr -G {GUID_OF_NODE.format(7)}", f"GID fe80::253:4600:7:1 LID start {last:#x}"],
        ["ibaddr -D 0,1", f"LID start {lid:#x}"],
        [f"ibroute -n {lid}", rf"^0x{last:04x} \d+ $"], [f"ibroute -a {lid}", r"^0x0000 255 : \(path #0 - illegal port\)"],
        ["ibroute -D 0,1", rf"^0x{net.here:04x} 001 : \(Channel Adapter portguid 0x0253460000000001: 'node0 softib0'\)"],
        [f"ibroute {lid} {net.here} {net.here + 2}", "^3 valid lids dumped"],
        ["dump_lfts", rf"^0x{last:04x} "], ["dump_mfts", "^Multicast mlids"], ["dump_fts -M", "^Multicast mlids"],
        [f"ibtracert -n {net.here} {last}", r"^\[\d\] -> \{0x02534680"],
        [f"ibtracert -G {GUID_OF_NODE.format(0)} {GUID_OF_NODE.format(7)}", "To ca .*node7 softib0"],
        ["sminfo -D 0", "SMINFO_MASTER"], [f"sminfo {last}", REFUSED, "failed: query"],
        [f"smpdump {last} 0x15 1", "^0000 0000 0000 0000 fe80 0000 0000 0000$", f"^{last:04x} {net.here:04x} "],
        ["smpdump -D 0,1 0x11", "^0101 0204 0253 4680"], [f"smpdump -s {last} 0x10 0", "^node7 softib0"],
        ["smpquery -D nodedesc 0,1", "switch-1-0"], ["smpquery -G nodeinfo " + GUID_OF_NODE.format(7), "Channel Adapter"],
        [f"smpquery guidinfo {lid}", net.guid], [f"smpquery pkeys {lid} 1", "0xffff", "pkeys capacity for this port"],
        [f"smpquery sl2vl {lid} 1", "ports: in  4, out  1:"], [f"smpquery vlarb {lid} 1", "LowCap 8 HighCap 8"],
        [f"smpquery -x portinfo {lid} 1", "LinkSpeedExtSupported:.*14.0625 Gbps or 25.78125 Gbps"],
        [f"smpquery pie {lid} 1", REFUSED, "port info extended not supported"],
        [f"smpquery mepi {lid} 1", REFUSED, "Mellanox ext port info query failed"],
        ["ibnodes", "^Ca.*node7 softib0", "^Switch.*switch-1-0"],
        ["iblinkinfo -l", "4X      25.78125 Gbps Active/  LinkUp"], [f"iblinkinfo -S {net.guid}", f"Switch: {net.guid}"],
        ["iblinkinfo --switches-only -p", "HOQ:0" if BY_SOFTIB else "HOQ:16"], ["iblinkinfo -D 0,1", "switch-1-0"],
        ["ibstat -p", "0x0253460000000001"], ["ibstat softib0 1", "Rate: 100"], ["ibstat -l", "^softib0$"]))
    with report.case("ibrouters, iblinkinfo -d: there are none"):
        for words in (["ibrouters"], ["iblinkinfo", "-d"]):
            if text := net.fabric.run(words).require().text:
                raise Failed(f"{words}: {text}")


def administration(report, net):
    lid, last = net.lid, net.last
    net.check(report, (
        ["saquery CPI", "Class version.*2"], [f"saquery NR {last}", "node7 softib0"],
        [f"saquery PIR {last}/1", "EndPortLid.*" + str(last)], [f"saquery SL2VL {last}", "SL2VLTableRecord dump"],
        [f"saquery --smkey 1 PKTR {last}", "PKeyTableRecord dump"], [f"saquery VLAR {last}", "VLArbTableRecord dump"],
        ["saquery IIR"], [f"saquery LR {net.here}", f"ToLID.*{lid}"], ["saquery SR"],
        [f"saquery PR --slid {net.here} --dlid {last}", f"dlid.*{last}"],
        ["saquery --sgid-to-dgid fe80::253:4600:0:1-fe80::253:4600:7:1", f"dlid.*{last}"],
        ["saquery MCMR", "MGID.*ff12:401b:ffff::ffff:ffff"], [f"saquery LFTR {lid}/0", f"{last}\t"], ["saquery MFTR"],
        [f"saquery GIR {last}", "GUID 0.*0x0253460000070001"], [f"saquery SWIR {lid}", "LinearFDBCap.*0xC000"],
        ["saquery SMIR", "SMState.*3"], ["saquery -s", f"EndPortLid.*{net.here}"], ["saquery -D", 'node7 softib0"'],
        [f"saquery -O {last}", "^node7 softib0$"], [f"saquery -U {GUID_OF_NODE.format(7)}", "node7 softib0"],
        ["saquery -x", "LinkRecord dump"], ["saquery -I"]))
    with report.case("saquery -L, by name"):
        net.fabric.run(["saquery", "-L", "node7 softib0"]).require(f"^{last}$")


def own_administration(report, user):
    """The same by softib's own administrator, whose records administration_test.py compares with OpenSM's."""
    with subnet(user, TOPOLOGY) as fabric:
        net = Subnet(fabric)
        net.check(report, (
            ["sminfo", "priority 0 state 3 SMINFO_MASTER"],
            ["saquery CPI", "Class version.*2"], [f"saquery NR {net.last}", "node7 softib0"],
            [f"saquery PIR {net.last}/1", f"EndPortLid.*{net.last}"], ["saquery IIR"], ["saquery SR"], ["saquery -I"],
            [f"saquery PR --slid {net.here} --dlid {net.last}", f"dlid.*{net.last}"],
            ["saquery --sgid-to-dgid fe80::253:4600:0:1-fe80::253:4600:7:1", f"dlid.*{net.last}"],
            ["saquery MCMR", "MGID.*ff12:401b:ffff::ffff:ffff"], ["saquery -D", 'node7 softib0"'],
            [f"saquery LR {net.here}", f"ToLID.*{net.lid}"], ["saquery SMIR", "SMState.*3"],
            [f"saquery PKTR {net.last}", SA_REFUSED, "SA_ERR_REQ_INVALID"]),
            " by softib's administrator")


def what_softib_does_not_have(report, net):
    net.check(report, (
        [f"vendstat -N {net.lid}", REFUSED, "classportinfo query"],
        [f"ibccquery CongestionInfo {net.last}", REFUSED, "congestion info query failed"],
        [f"ibccquery SwitchCongestionSetting {net.lid}", REFUSED, "query failed"],
        [f"ibccconfig SwitchPortCongestionSetting {net.lid} 1 0 1 1 1 1", REFUSED, "failed"],
        *([f"perfquery {option} {net.last} 1", REFUSED, "cannot query Port|cannot query SwPort"] for option in (
            "-X", "-S", "-T", "--oprcvcounters", "--flowctlcounters", "--vloppackets", "--vlopdata",
            "--vlxmitflowctlerrors", "--vlxmitcounters", "--swportvlcong", "--rcvcc", "--slrcvfecn", "--slrcvbecn",
            "--xmitcc", "--vlxmittimecc"))))


def ibutils(report, net):
    """In a subnet without damage; damage_test.py has the others."""
    folder = net.fabric.user.make_dir("ibutils-")
    with report.case("ibdiagnet finds nothing wrong, and the master"):
        text = net.fabric.run(["ibdiagnet", "-c", 1, "-lw", "4x", "-ls", "10", "-o", folder], 0, SECONDS).require(
            "Done. Run time was").text
        if complaints := [line for line in re.split("[\r\n]+", text)
                          if line.startswith(("-E-", "-W-")) and not line.startswith(ALWAYS)]:
            raise Failed("\n".join(complaints))
    with report.case("ibdmchk finds all ways, and no loop of credits"):
        # Of ibutils 1.5.7, it ends with a segmentation fault when it has said all.
        files = (("-s", "lst"), ("-f", "fdbs"), ("-m", "mcfdbs"))
        words = [word for option, end in files for word in (option, folder / f"ibdiagnet.{end}")]
        text = net.fabric.run(["ibdmchk", *words], 0, SECONDS, before=own("/var/cache")).text
        ways = NODES * (NODES - 1)
        if f"Scanned:{ways} CA to CA paths" not in text or "no credit loops found" not in text or "-E-" in text:
            raise Failed(harness.tail(text, 60))


def counter(text, name):
    found = re.search(rf"^{name}:\.*(\d+)$", text, re.MULTILINE)
    if not found:
        raise Failed(f"no {name} in\n{text}")
    return int(found.group(1))


def counters(report, net):
    def packets(options=()):
        text = net.fabric.run(["perfquery", *options, net.last, 1]).require().text
        return counter(text, "PortXmitPkts")
    many = 1000

    def traffic():
        net.fabric.pair(["ibv_rc_pingpong", "-n", many], nodes=(0, NODES - 1))
    net.check(report, (
        ["perfquery", f"^# Port counters: Lid {net.here} port 1", "^PortXmitWait"],
        [f"perfquery -G {GUID_OF_NODE.format(7)} 1", f"^# Port counters: Lid {net.last} port 1"],
        [f"perfquery -x {net.last} 1", "^# Port extended counters", "^PortUnicastXmitPkts:.*[1-9]"],
        [f"perfquery -a {net.lid}", f"^# Port counters: Lid {net.lid} port 255"],
        [f"perfquery -x -a {net.lid}", f"^# Port extended counters: Lid {net.lid} port 255"],
        [f"perfquery -l {net.lid} 1-2", f"Lid {net.lid} port 1 ", f"Lid {net.lid} port 2 "],
        [f"perfquery -x -l -a {net.lid}", f"Lid {net.lid} port 1 ", f"Lid {net.lid} port 4 "]))
    with report.case("perfquery -r and -R"):
        traffic()
        if packets() < many:
            raise Failed(f"{packets()} packets after {many} messages")
        packets(["-r"])
        if packets() >= many:
            raise Failed(f"-r leaves {packets()} packets")
        traffic()
        net.fabric.run(["perfquery", "-x", "-R", net.last, 1]).require()
        if packets(["-x"]) >= many:
            raise Failed(f"-x -R leaves {packets(['-x'])} packets")
        traffic()
        net.fabric.run(["perfquery", "-R", net.last, 1, "0x0fff"]).require()
        if packets() < many:
            raise Failed(f"-R for errors leaves {packets()} packets")
        net.fabric.run(["perfquery", "-R", net.last, 1, "0xf000"]).require()
        if packets() >= many:
            raise Failed(f"-R for data leaves {packets()} packets")
    with report.case("perfquery -R -a, of all ports of a switch"):
        before = counter(net.fabric.run(["perfquery", "-a", net.lid]).require().text, "PortXmitPkts")
        net.fabric.run(["perfquery", "-R", "-a", net.lid]).require()
        after = counter(net.fabric.run(["perfquery", "-a", net.lid]).require().text, "PortXmitPkts")
        if after >= before:
            raise Failed(f"{before} packets before, {after} after")


def samples(report, net):
    """PortSamplesControl and PortSamplesResult. perfquery reads the first one only; samples.py sets it."""
    folder = net.fabric.user.make_dir("samples-")
    for name in ("samples.py", "smp.py"):
        shutil.copyfile(PROGRAMS / name, folder / name)
        (folder / name).chmod(0o755)

    def sample(*words):
        return net.fabric.run(["python3", folder / "samples.py", *words]).require().text
    seven_minutes, refused = 0xffffffff, "status 0x1c"
    net.check(report, (
        [f"perfquery -c {net.last} 1", f"^# PortSamplesControl: Lid {net.last} port 1", "^OpCode:\\.*0x00", "^PortSelect:\\.*1$",
         "^Tick:\\.*0xff", "^CounterWidth:\\.*4$", "^CounterMask0:\\.*0x0*3$", "^CounterMasks1to9:\\.*0x0*36db6db$",
         "^CounterMasks10to14:\\.*0x0*36db$", "^SampleStatus:\\.*0$", "^OptionMask:\\.*0x0*ffc0$",
         "^SamplesOnlyOptionMask:\\.*0x0*$"],
        [f"perfquery -c {net.lid} 3", "^PortSelect:\\.*3$"], [f"perfquery -c {net.last} 2", REFUSED, "failed: sampctlquery"]))
    with report.case("a sample of PortXmitPkts beside PortCounters"):
        port = harness.free_port()
        traffic = ["ibv_rc_pingpong", "-n", 1 << 30, "-p", port]
        with contextlib.ExitStack() as stack:
            server = net.fabric.start(traffic, 0)
            stack.callback(server.kill)
            harness.wait_until(lambda: harness.is_listening(server.pid, port), SECONDS, "the server to listen")
            client = net.fabric.start([*traffic, harness.HOST], NODES - 1)
            stack.callback(client.kill)
            net.fabric.wait_for_packets(client, SECONDS)

            def count_a_sample():
                before = counter(net.fabric.run(["perfquery", "-x", net.last, 1]).require().text, "PortXmitPkts")
                sample("set", net.last, 1, 1_000_000, 2_000_000, 77, 3, 4)  # 0.1 s later, for 0.2 s
                done = r"^tag 77, status 0, 32 bits: (\d+) (\d+) 0 .*\ntag 77, status 0, 64 bits: \1 \2 0"
                found = harness.wait_until(lambda: re.search(done, sample("result", net.last)), SECONDS, "the result")
                after = counter(net.fabric.run(["perfquery", "-x", net.last, 1]).require().text, "PortXmitPkts")
                for packets in map(int, found.groups()):
                    if packets > after - before:
                        raise Failed(f"{packets} within the sample, {after - before} from before it until after it")
                return min(map(int, found.groups())) > 1000
            harness.wait_until(count_a_sample, SECONDS, "a sample to see the traffic")
    with report.case("a sample that is under way is not disturbed"):
        first, second = net.last - 1, net.last
        if "status 2" not in sample("set", first, 1, 0, seven_minutes, 7, 1):
            raise Failed("it does not run")
        text = sample("set", first, 1, 0, 1, 8, 1)
        if "tag 7, status 2" not in text:
            raise Failed(f"another one gets {text}")
        net.fabric.run(["perfquery", "-c", first, 1]).require("^SampleStatus:\\.*2$", "^Tag:\\.*0x0007$",
                                                              f"^SampleInterval:\\.*{seven_minutes}$")
        if "tag 9, status 1" not in sample("set", second, 1, seven_minutes, 1, 9, 1):
            raise Failed("another port does not wait for its start")
    with report.case("what cannot be sampled is refused"):
        for words in (("set", net.lid, 9, 0, 1, 7, 1), ("set", net.lid, 1, 0, 1, 7, 6)):
            if refused not in sample(*words):
                raise Failed(f"{words}: {sample(*words)}")


def errors(report, net):
    none = "^## Summary: 14 nodes checked, 0 bad nodes found"
    net.check(report, [["ibqueryerrors", none]])
    with report.case("ibqueryerrors finds a link that was down, and forgets it"):
        net.fabric.softib("port", "down", "--node", 5, "--fabric", net.fabric.name).require()
        net.fabric.softib("port", "up", "--node", 5, "--fabric", net.fabric.name).require()
        harness.wait_until(lambda: all_active(net.fabric), SECONDS, "all ports to be active again")
        net.fabric.run(["ibqueryerrors", "--data", "-r"]).require("LinkDownedCounter == 1", "PortXmitData == ",
                                                                  "Link info:.*node5 softib0", "2 bad nodes found", code=1)
        net.fabric.run(["ibqueryerrors", "--switch"]).require("1 bad nodes found", code=1)
        net.fabric.run(["ibqueryerrors", "-s", "LinkDownedCounter"]).require(none)
        net.fabric.run(["ibqueryerrors", "--counters"]).require("PortXmitPkts == ")
        net.fabric.run(["ibqueryerrors", "-k", "-K"]).require("LinkDownedCounter == 1", code=1)
        net.fabric.run(["ibqueryerrors"]).require(none)
    net.check(report, (
        [f"ibqueryerrors -G {net.guid} --details", "^## Summary: 1 nodes checked"],
        ["ibqueryerrors -D 0,1", "^## Summary: 1 nodes checked"], ["ibqueryerrors --ca -c", "^## Summary: .* 0 bad"]))


def port_states(report, net):
    """Of the port of the switch that leads to node 1."""
    port = next(port["port"] for port in net.switch["ports"]
                if port.get("peer", {}).get("description") == "node1 softib0")

    def ibportstate(*words):
        return net.fabric.run(["ibportstate", net.lid, port, *words]).require().text

    def again():
        """After a reset, when OpenSM has brought the link up."""
        ibportstate("reset")
        harness.wait_until(lambda: all_active(net.fabric), SECONDS, "the link to be active again")
        return ibportstate("query")

    def need(text, *patterns):
        for pattern in patterns:
            if not re.search(pattern, text, re.MULTILINE):
                raise Failed(f"no {pattern!r} in\n{text}")
    with report.case("ibportstate query, of both ends"):
        need(ibportstate(), "^Switch PortInfo:", "^Peer PortInfo:", "^PhysLinkState:.*LinkUp", "^LinkWidthActive:.*4X")
    with report.case("ibportstate width"):
        need(ibportstate("width", 1), "^LinkWidthEnabled:.*1X$", "^LinkWidthActive:.*4X$")
        need(again(), "^LinkWidthActive:.*1X$", "^LinkWidthSupported:.*1X or 4X")
        net.fabric.run(["iblinkinfo", "-l"]).require("1X      25.78125 Gbps Active/  LinkUp.*node1 softib0")
        net.fabric.run(["ibv_devinfo", "-v"], 1).require("active_width:.*1X")
        net.fabric.run(["ibstat"], 1).require("Rate: 25$")
        net.fabric.pair(["ibv_rc_pingpong", "-n", 50])
        ibportstate("width", 255)
        need(again(), "^LinkWidthActive:.*4X$")
    with report.case("ibportstate speed and espeed"):
        ibportstate("espeed", 1)
        need(again(), "^LinkSpeedExtActive:.*14.0625 Gbps$")
        ibportstate("espeed", 30)
        need(again(), "^LinkSpeedExtActive:.*No Extended Speed", "^LinkSpeedActive:.*10.0 Gbps$")
        ibportstate("speed", 2)
        need(again(), "^LinkSpeedActive:.*5.0 Gbps$")
        net.fabric.run(["ibstat"], 1).require("Rate: 20$")
        ibportstate("speed", 15)
        ibportstate("espeed", 31)
        need(again(), "^LinkSpeedExtActive:.*25.78125 Gbps$")
    with report.case("ibportstate disable, enable"):
        need(ibportstate("disable"), "^LinkState:.*Down$", "^PhysLinkState:.*Disabled$")
        if all_active(net.fabric):
            raise Failed("the port is active")
        ibportstate("enable")
        harness.wait_until(lambda: all_active(net.fabric), SECONDS, "the port to be active again")
    with report.case("ibportstate vls, mtu, arm, down"):
        ibportstate("vls", 2)
        need(net.fabric.run(["smpquery", "portinfo", net.lid, port]).require().text, "^OperVLs:.*VL0-1$")
        ibportstate("vls", 4)
        ibportstate("mtu", 4)
        need(net.fabric.run(["smpquery", "portinfo", net.lid, port]).require().text, "^NeighborMTU:.*2048$")
        net.fabric.run(["ibportstate", net.lid, port, "arm"]).require("smp set portinfo failed", code=REFUSED)
        net.fabric.run(["ibportstate", net.lid, port, "fdr10", 1]).require("failed", code=REFUSED)
        ibportstate("down")
        harness.wait_until(lambda: all_active(net.fabric), SECONDS, "the port to be active again")


def caches(report, net):
    folder = net.fabric.user.make_dir("diagnostics-")
    new = "0x00000000deadbeef"
    with report.case("ibcacheedit, and caches of ibnetdiscover"):
        net.fabric.run(["ibnetdiscover", "--cache", folder / "cache"]).require()
        net.fabric.run(["ibcacheedit", "--switchguid", f"{net.guid}:{new}", folder / "cache", folder / "new"]).require()
        net.fabric.run(["ibnetdiscover", "--load-cache", folder / "new"]).require("deadbeef")
        same = net.fabric.run(["ibnetdiscover", "--diff", folder / "cache"]).require().text
        if any(line[:1] in "<>" for line in same.splitlines()):
            raise Failed(same)
        net.fabric.run(["ibnetdiscover", "--diff", folder / "new"]).require("^< .*deadbeef")
        net.fabric.run(["iblinkinfo", "--load-cache", folder / "cache"]).require("switch-1-0")
        net.fabric.run(["ibqueryerrors", "--load-cache", folder / "cache"]).require("14 nodes checked")
    with report.case("check_lft_balance"):
        (folder / "lfts").write_text(net.fabric.run(["dump_lfts"]).require().text)
        net.fabric.run(["check_lft_balance", "-v", "-l", folder / "lfts", "-i", folder / "cache"]).require("switch-1-0")


def programs(report, net):
    cache = {"before": own("/var/cache")}  # where they keep what ibnetdiscover finds
    with report.case("ibidsverify, ibfindnodesusing"):
        if text := net.fabric.run(["ibidsverify", "-R"], **cache).require().text:
            raise Failed(f"ibidsverify says\n{text}")
        net.fabric.run(["ibfindnodesusing", "-R", net.guid, 3], **cache).require(r'"switch-1-0" base\)  ==>>', "node2 softib0")
    with report.case("ibping by GUID"):
        server = net.fabric.start(["ibping", "-S"], NODES - 1)
        client = ["ibping", "-c", "2", "-G", GUID_OF_NODE.format(7)]
        harness.wait_until(lambda: net.fabric.run([*client, "-t", "100"]).code == 0, 20, "ibping")
        net.fabric.run([*client, "-f"]).require("2 packets transmitted, 2 received, 0% packet loss")
        server.kill()
    with report.case("a multicast group: ibroute -M, ibtracert -m, saquery -m"), contextlib.ExitStack() as stack:
        for node in (0, NODES - 1):
            member = net.fabric.start(["mckey", "-m", GROUP], node)
            stack.callback(member.kill)
        leaf = next(port["lid"] for port in net.leaf_of_node(NODES - 1)["ports"] if port["port"] == 0)
        harness.wait_until(lambda: re.search(r"^0xc\d{3}\s+(x\s+){2}", net.fabric.run(["ibroute", "-M", leaf]).text,
                                             re.MULTILINE), SECONDS, "the switch to have the group")
        mlid = re.search("^(0xc...)", net.fabric.run(["ibroute", "-M", leaf]).text, re.MULTILINE).group(1)
        net.fabric.run(["saquery", "--smkey", 1, "-m", mlid]).require("node0 softib0", "node7 softib0")
        net.fabric.run(["ibtracert", "-m", mlid, net.here, net.last]).require("To ca .*node7 softib0")


@contextlib.contextmanager
def managed(user):
    """A fabric, of which the master is softib or OpenSM."""
    with subnet(user, TOPOLOGY, *(() if BY_SOFTIB else ("--sm", "none"))) as fabric:
        if BY_SOFTIB:
            wait_for_master(fabric)
            yield fabric
            wait_for_master(fabric)
            return
        manager = Manager(fabric, more=LEAVE_LINKS)
        manager.wait_until_up()
        yield fabric
        manager.end()


def test(report, user):
    harness.need_program("ibportstate")
    with managed(user) as fabric:
        net = Subnet(fabric)
        for part in (subnet_management, administration, ibutils, what_softib_does_not_have, counters, samples, errors,
                     caches, programs, port_states):
            if report.wanted(part.__name__):
                part(report, net)
    if report.wanted(own_administration.__name__):
        own_administration(report, user)


harness.main("diagnostics", test)
