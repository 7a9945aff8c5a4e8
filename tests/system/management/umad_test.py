#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""/dev/infiniband/umadN and issmN: their rules (tests/system/programs/umad/umad_rules.c, with umad_rules.txt), long
messages by RMPP, programs and devices that come and go, OpenSM and the diagnostics of the distribution.

umad_test.py [--as root|nobody] [--link-layer ethernet] [--only REGEX]
SOFTIB_SEED=n repeats the programs that come and go; SOFTIB_CLIENTS=n has more of them.
"""
import difflib
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness
from harness import Failed

PROGRAMS = pathlib.Path(__file__).resolve().parents[1] / "programs/umad"
SECONDS = 200
CABLE = '[[link]]\nports = ["node0/softib0/1", "node1/softib0/1"]\n'
# Lines that are others where there are no SMPs, and no subnet administrator.
OF_SUBNETS = ("softibd's", "that of a program", "and does not", "a method that it does not take", "NodeInfo", "method 81, ",
              "a route", "class 0x81 by")


def expected_rules():
    lines = (PROGRAMS / "umad_rules.txt").read_text().splitlines()
    if not harness.ETHERNET:
        return lines
    lines = [line for line in lines if not line.startswith(OF_SUBNETS)]
    return [line.replace("queue pair 0, class 4: -22", "queue pair 0, class 4: -93") for line in lines]


def rules(fabric, program):
    done = fabric.run([program], 0, SECONDS).require()
    if difference := list(difflib.unified_diff(expected_rules(), done.text.splitlines(), "ib_umad", "softib", n=0,
                                               lineterm="")):
        raise Failed("not as Linux's ib_umad:\n" + "\n".join(difference))


def lid(fabric, node):
    return int(fabric.run(["cat", "/sys/class/infiniband/softib0/ports/1/lid"], node).require().text, 16)


def rmpp(report, fabric, program):
    there = lid(fabric, 1)
    with report.case("RMPP, sizes from 0 to 1 MiB, both ways"):
        server = fabric.start([program, "server"], 1)
        server.wait_for_text("^ready", 20)
        fabric.run([program, "client", there], 0, SECONDS).require("^good$")
        fabric.end(server, 20).require("^good$")
    with report.case("RMPP to a program that does not read"):
        server = fabric.start([program, "silent"], 1)
        server.wait_for_text("^ready", 20)
        fabric.run([program, "alone", there], 0, SECONDS).require("^its time is up$")
        server.kill()
    with report.case("RMPP that the other end aborts"):
        server = fabric.start([program, "aborts"], 1)
        server.wait_for_text("^ready", 20)
        fabric.run([program, "alone", there], 0, SECONDS).require("^nothing came back$")
        server.kill()
    with report.case("RMPP to nobody"):
        fabric.run([program, "alone", there], 0, SECONDS).require("^its time is up$")


def storm(report, fabric, program):
    seed = harness.seed()
    clients = int(os.environ.get("SOFTIB_CLIENTS", "1000"))
    with report.case(f"{clients} programs that come and go, SOFTIB_SEED={seed}") as remarks:
        before = fabric.state()
        descriptors = len(os.listdir(f"/proc/{before['pid']}/fd"))
        done = fabric.run([program, clients, seed, lid(fabric, 1)], 0, SECONDS).require(r"^\d+ clients, \d+ killed$")
        remarks.append(done.text.strip())

        def what_is_left():
            now = fabric.state()
            left = {"objects": now["objects"]} if now["objects"] != before["objects"] else {}
            if now["umad"]["files"] or now["umad"]["under_way"]:
                left["umad"] = now["umad"]
            if len(now["clients"]) != len(before["clients"]):
                left["clients"] = now["clients"]
            if len(os.listdir(f"/proc/{before['pid']}/fd")) > descriptors:
                left["descriptors"] = True
            if int(fabric.run(["cat", "/sys/class/infiniband/softib0/ports/1/cap_mask"]).text, 16) & 2:
                left["IsSM"] = True
            return left
        try:
            harness.wait_until(lambda: not what_is_left(), 60, "what the programs had to be gone")
        except Failed:
            raise Failed(f"softibd has more than before: {what_is_left()}") from None


def come_and_go(report, user):
    with report.case("devices of HCAs that come and go"), harness.Fabric(nodes=1, hcas=2, ports=2, user=user) as fabric:
        def devices():
            listed = fabric.run(["ls", "/dev/infiniband", "/sys/class/infiniband_mad"]).require().text
            return sorted(set(re.findall(r"(?:umad|issm)\d+", listed)))
        names = [f"{kind}{number}" for kind in ("issm", "umad") for number in range(4)]
        if devices() != names:
            raise Failed(f"{devices()}, not {names}")
        reader = fabric.start(["python3", "-c", "import os; fd = os.open('/dev/infiniband/umad3', os.O_RDWR); "
                               "print('open', flush=True); os.read(fd, 320)"])
        reader.wait_for_text("^open", 20)
        fabric.softib("hca", "remove", "softib1", "--fabric", fabric.name).require()
        fabric.end(reader, 20).require("Input/output error", code=1)
        if devices() != [name for name in names if name[-1] in "01"]:
            raise Failed(f"{devices()} without softib1")
        fabric.softib("hca", "add", "softib1", "--fabric", fabric.name).require()
        if devices() != names:
            raise Failed(f"{devices()} with softib1 again, not {names}")
        fabric.run(["cat", "/sys/class/infiniband_mad/umad3/ibdev", "/sys/class/infiniband_mad/umad3/port"]).require(
            "^softib1\n2$")


def subnet_tools(report, fabric):
    here, there = lid(fabric, 0), lid(fabric, 1)
    with report.case("OpenSM"):
        log = fabric.runtime / "opensm.log"
        done = fabric.run(["opensm", "-o", "-f", log], env={"OSM_TMP_DIR": fabric.runtime, "OSM_CACHE_DIR": fabric.runtime})
        done.require("Entering MASTER state")
        text = log.read_text(errors="replace")
        if "SUBNET UP" not in text or " ERR " in text:
            raise Failed(f"OpenSM's log:\n{harness.tail(text)}")
    for words, *patterns in (
            ["smpquery nodeinfo -D 0", "NodeType:.*Channel Adapter", "^NumPorts:.*1"],
            [f"smpquery nodeinfo {there}", f"^# Node info: Lid {there}$"],
            [f"smpquery nodedesc {there}", "node1 softib0"],
            [f"smpquery portinfo {there} 1", f"^Lid:.*{there}$", "LinkState:.*Active"],
            [f"smpquery pkeys {there}", "0xffff"],
            [f"smpquery guidinfo {there}", "0253460000010001"],
            [f"ibaddr {there}", f"LID start 0x{there:x} end 0x{there:x}"],
            ["ibaddr", f"LID start 0x{here:x}"],
            ["ibnetdiscover", "node0 softib0", "node1 softib0"],
            [f"ibtracert {here} {there}", f"To ca .* lid {there}-{there}"]):
        with report.case(words):
            fabric.run(words.split()).require(*patterns)


def tools(report, fabric):
    there = lid(fabric, 1)
    with report.case("ibstat, ibstatus"):
        fabric.run(["ibstat"]).require("CA 'softib0'", "State: Active", "Base lid: 1")
        fabric.run(["ibstatus"]).require("Infiniband device 'softib0' port 1 status:", "4: ACTIVE")
    for words, *patterns in (
            ["saquery", "^NodeRecord dump:", "node1 softib0"],
            ["saquery -c", "Class version.*2"],
            [f"saquery --src-to-dst 1:{there}", f"dlid.*{there}"],
            ["saquery -g", "MGID.*ff12:401b:ffff::ffff:ffff"]):
        with report.case(words):
            fabric.run(words.split()).require(*patterns)
    for server, client, pattern in (
            ("ibping -S", f"ibping -c 5 {there}", "5 packets transmitted, 5 received, 0% packet loss"),
            ("ibsysstat -S", f"ibsysstat {there}", "sysstat ping succeeded"),
            ("ibsysstat -S", f"ibsysstat {there} cpu", "^cpu 0: model")):
        with report.case(client):
            answering = fabric.start(server.split(), 1)
            try:
                harness.wait_until(lambda: [one for one in fabric.state()["umad"]["files"] if one["node"] == "node1"], 20,
                                   f"{server} to have its agent")
                harness.wait_until(lambda: fabric.run([*client.split(), "-t", "100"][:]).code == 0, 20, client)
                fabric.run(client.split(), 0).require(pattern)
            finally:
                answering.kill()


def test(report, user):
    folder = user.make_dir("softib-umad-")
    folder.chmod(0o755)
    programs = {name: harness.build_program(folder, PROGRAMS / f"umad_{name}.c", libraries=("-lpthread",))
                for name in ("rules", "rmpp", "storm")}
    # Without a subnet manager of softib's at the port that programs open.
    cable = {} if harness.ETHERNET else {"config": CABLE, "extra": ("--sm", "direct")}
    with harness.Fabric(nodes=2, user=user, **cable) as fabric:
        with report.case("rules of ib_umad"):
            rules(fabric, programs["rules"])
        if not harness.ETHERNET:
            rmpp(report, fabric, programs["rmpp"])
            storm(report, fabric, programs["storm"])
            harness.need_program("saquery")
            tools(report, fabric)
            subnet_tools(report, fabric)
    come_and_go(report, user)


harness.main("umad", test)
