#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Fabrics of 1,000 and of 32,768 virtual hosts, and a subnet of 41,000. Of the smallest one: all of them up, with a
process each that has its device open, a ring of connections through 64 of them; the output of `softib` for it.

many_hosts_test.py [--as root|nobody] [--only REGEX]
"""
import json
import pathlib
import resource
import subprocess

import harness
from harness import Failed, Skipped

HOSTS = 1000
MEMBERS = 64
MOST = 32768
PROGRAM = pathlib.Path(__file__).with_name("programs") / "many_hosts.c"
# As many adapters as the unicast LIDs allow beside the switches that join them.
SUBNET = 41000
TOPOLOGY = f"fat-tree:hcas={SUBNET},ports=64"
MOST_SUBNET_KIB = 3 << 19  # 1.5 GiB of softibd
KIB_EACH = 8 << 10  # the memory of a process with libibverbs and of its share of softibd, with room to spare


def need_room():
    """Skips where the limits of this machine are too low for a thousand processes at once."""
    for kind, name, wanted in ((resource.RLIMIT_NPROC, "processes (ulimit -u)", 4 * HOSTS),
                               (resource.RLIMIT_NOFILE, "descriptors (ulimit -Hn)", 4 * HOSTS)):
        hard = resource.getrlimit(kind)[1]
        if hard not in (resource.RLIM_INFINITY, -1) and hard < wanted:
            raise Skipped(f"only {hard} {name} are allowed, {wanted} are needed")
    facts = dict(line.split(":") for line in pathlib.Path("/proc/meminfo").read_text(encoding="ascii").splitlines())
    free = int(facts["MemAvailable"].split()[0])
    if free < HOSTS * KIB_EACH:
        raise Skipped(f"{free >> 10} MiB of memory are free, {HOSTS * KIB_EACH >> 10} MiB are needed")


def resident_kib(pid):
    """Pages of a process, those of device memory too."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS:")).split()[1])


def brief(fabric):
    """A line of `softib list`: the number of nodes, the pid of softibd."""
    fabrics = json.loads(fabric.softib("list", "--json").require().text)["fabrics"]
    return next(one for one in fabrics if one["fabric"] == fabric.name)


def test_subnet(report, user):
    with report.case(f"a subnet of {SUBNET} hosts comes up, two far ones exchange messages") as remarks:
        need_room()
        with harness.Fabric(nodes=None, user=user, link_layer=None, extra=["--topology", TOPOLOGY],
                            up_seconds=120) as fabric:
            facts = brief(fabric)
            if facts["nodes"] != SUBNET:
                raise Failed(f"{facts['nodes']} nodes are up, not {SUBNET}")
            for one in fabric.pair(["ibv_rc_pingpong", "-n", "100"], nodes=(0, SUBNET - 1)):
                one.require(r"100 iters in")
            for one in fabric.pair(["ibv_rc_pingpong", "-n", "100"], nodes=(SUBNET // 2, SUBNET - 1)):
                one.require(r"100 iters in")
            fabric.run(["true"], node=SUBNET).require(rf'has no node "{SUBNET}"; it has {SUBNET}: ', code=3)
            fabric.softib("up", "--fabric", "larger", "--topology", f"fat-tree:hcas={SUBNET + 5000},ports=64").require(
                rf"it has {SUBNET + 5000} HCAs and \d+ switches .* a subnet has LIDs for 49151 of both", code=2)
            used = resident_kib(facts["pid"])
            if used > MOST_SUBNET_KIB:
                raise Failed(f"softibd has {used >> 10} MiB in memory, more than {MOST_SUBNET_KIB >> 10} MiB")
            remarks.append(f"softibd has {used >> 10} MiB in memory")


def test(report, user):
    if not harness.ETHERNET:
        test_subnet(report, user)
    with report.case(f"{HOSTS} hosts come up") as remarks:
        need_room()
        with harness.Fabric(nodes=HOSTS, user=user) as fabric:
            page = fabric.softib("status", "--fabric", fabric.name).require(rf"{HOSTS} nodes, unused").text
            if len(page.splitlines()) > 20:
                raise Failed(f"the status page of an unused fabric has {len(page.splitlines())} lines")
            devices = fabric.run(["ibv_devinfo"], node=HOSTS - 1).require(r"port_lid:\s+1000$")
            remarks.append(f"{fabric.state()['memory']['resident'] >> 10} KiB resident, "
                           f"ibv_devinfo {devices.seconds:.2f} s")
    with report.case(f"{MOST} hosts come up") as remarks:
        need_room()
        with harness.Fabric(nodes=MOST, user=user) as fabric:
            fabric.softib("status", "--fabric", fabric.name).require(rf"{MOST} nodes, unused")
            fabric.run(["ibv_devinfo"], node=MOST - 1).require(rf"port_lid:\s+{MOST}$")
            remarks.append(f"{fabric.state()['memory']['resident'] >> 20} MiB resident")
    with report.case(f"{HOSTS} processes, {MEMBERS} in a ring") as remarks:
        need_room()
        with harness.Fabric(nodes=HOSTS, user=user) as fabric:
            built = harness.build_program(fabric.runtime, PROGRAM)
            program = fabric.start([built, HOSTS, MEMBERS], stdin=subprocess.PIPE)
            harness.wait_until(lambda: "hosts open" in program.text() or not program.running(), 60,
                               f"{HOSTS} processes; they say:\n{harness.tail(program.text())}")
            if program.running():
                now = fabric.state()
                nodes = {client["node"] for client in now["clients"] if client["program"] == built.name}
                if len(nodes) != HOSTS:
                    raise Failed(f"processes of {len(nodes)} nodes are attached, not of {HOSTS}")
                remarks.append(f"{now['memory']['resident'] >> 20} MiB resident")
                program.process.stdin.close()
            fabric.end(program, 60).require(rf"^{HOSTS} hosts open, {MEMBERS} around the ring$", r"^all ended$")
            harness.wait_until(lambda: not fabric.state()["clients"], 20, "softibd to forget them")


harness.main("many_hosts", test)
