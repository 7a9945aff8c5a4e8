#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The example programs of libibverbs (Debian's ibverbs-utils), unmodified.

verbs_tools_test.py [--as root|nobody] [--link-layer ethernet] [--only REGEX]
"""
import os
import re

import harness
from harness import Failed

# Not -t with -e: ibv_rc_pingpong reports an error for an event whose completion it has polled, with every HCA.
# -o, -O and -P are on-demand paging, -t timestamps of extended CQs, -j device memory, -N the ibv_wr_* calls.
PINGPONG = {
    "ibv_rc_pingpong": ["", "-e", "-o", "-O", "-o -P", "-t", "-j", "-N", "-N -e", "-c", "-c -e", "-s 1",
                        "-s 1048576 -n 50", "-m 4096", "-g 0"],
    "ibv_uc_pingpong": ["", "-e", "-c", "-s 1048576 -n 50"],
    "ibv_ud_pingpong": ["", "-e", "-c", "-s 1024", "-g 0"],
    "ibv_srq_pingpong": ["", "-e", "-o", "-c", "-q 1", "-q 32"],
    "ibv_xsrq_pingpong": ["", "-e", "-o", "-n 50", "-s 65536"],
}
# An Ethernet port is reached by GIDs alone: 0 is its link-local address, 1 the IPv4 address of its node.
ETHERNET_PINGPONG = {
    "ibv_rc_pingpong": ["-g 1", "-g 1 -e", "-g 0", "-g 1 -t", "-g 1 -N -e", "-g 1 -c -s 1048576 -n 50"],
    "ibv_uc_pingpong": ["-g 1", "-g 0 -e"],
    "ibv_ud_pingpong": ["-g 1", "-g 0 -e", "-g 1 -c -s 1024"],
    "ibv_srq_pingpong": ["-g 1", "-g 1 -e -q 32", "-g 0"],
    "ibv_xsrq_pingpong": ["-g 1", "-g 1 -e", "-g 0 -n 50 -s 65536"],
}
RESULT = r"iters in [\d.]+ seconds = [\d.]+ usec/iter"
COMPLAINTS = (r"(?i)\bfail", r"(?i)invalid", r"(?i)couldn't", r"(?i)can't", r"(?i)not supported")


def devices(report, fabric):
    with report.case("ibv_devices"):
        fabric.run(["ibv_devices"]).require(r"^\s+softib0\s+[0-9a-f]{16}$")
    with report.case("ibv_devinfo"):
        link_layer = (r"link_layer:\s+Ethernet", r"port_lid:\s+0$") if harness.ETHERNET else (
            r"link_layer:\s+InfiniBand", r"port_lid:\s+[1-9]")
        fabric.run(["ibv_devinfo"]).require(r"hca_id:\s+softib0", r"state:\s+PORT_ACTIVE", *link_layer,
                                            forbid=COMPLAINTS)
    with report.case("ibv_devinfo -v"):
        text = fabric.run(["ibv_devinfo", "-v"]).require(
            r"max_qp:\s+[1-9]", r"max_mr_size:\s+0x", r"atomic_cap:\s+ATOMIC_", r"GID\[\s*0\]:", r"max_srq:\s+[1-9]",
            r"max_pkeys:\s+[1-9]", r"ODP_SUPPORT_IMPLICIT", r"rc_odp_caps", r"completion timestamp_mask:\s+0x",
            r"device_cap_flags_ex:", forbid=(r"(?i)unknown (error|state)", "Failed")).text
        if text.count("hca_id:") != 1:
            raise Failed(f"one HCA expected:\n{text}")
        gids = re.findall(r"GID\[\s*(\d+)\]:\s+(.*)", text)
        expected = [("0", "fe80::53:46ff:fe00:1, RoCE v2"), ("1", f"::ffff:{fabric.address(0)}, RoCE v2")]
        if harness.ETHERNET and gids != expected:
            raise Failed(f"GIDs {gids}, expected {expected}")
    with report.case("ibv_devinfo -l"):
        fabric.run(["ibv_devinfo", "-l"]).require(r"1 HCA found", r"^\s*softib0$")
    with report.case("ibv_devinfo -d nothing: says that there is none"):
        fabric.run(["ibv_devinfo", "-d", "nothing0"]).require("wasn.t found", code=255)


def place(report, fabric):
    with report.case("local_cpus, by which programs place their threads: every processor"):
        path = "/sys/class/infiniband/softib0/device"
        last = os.cpu_count() - 1
        fabric.run(["cat", f"{path}/local_cpulist"]).require(rf"^{f'0-{last}' if last else '0'}$")
        mask = fabric.run(["cat", f"{path}/local_cpus"]).require(r"^[0-9a-f,]+$").text
        if int(mask.replace(",", ""), 16) != (1 << last + 1) - 1:
            raise Failed(f"local_cpus is {mask!r} with {last + 1} processors")


# As show_gids and ibdev2netdev do.
SHOW_GIDS = r'''
for device in /sys/class/infiniband/*; do
  for port in $device/ports/*; do
    for gid in $port/gids/*; do
      index=${gid##*/}
      grep -q ^0000:0000:0000:0000:0000:0000:0000:0000 $gid && continue
      type=$(cat $port/gid_attrs/types/$index 2>/dev/null) || type=none
      ndev=$(cat $port/gid_attrs/ndevs/$index 2>/dev/null) || ndev=none
      echo "${device##*/} ${port##*/} $index $(cat $gid) $type $ndev"
    done
  done
  for ndev in $device/device/net/*; do
    echo "${device##*/} port $(($(cat $ndev/dev_port) + 1)) ==> ${ndev##*/}"
  done
done
cat /sys/class/infiniband/softib0/ports/1/gid_attrs/types/9
'''


def gids_in_sysfs(report, fabric):
    with report.case("scripts find GIDs, their types and network interfaces in /sys"):
        fabric.run(["sh", "-c", SHOW_GIDS], 1).require(
            r"^softib0 1 0 fe80:0000:0000:0000:0053:46ff:fe00:0101 RoCE v2 lo$",
            r"^softib0 1 1 0000:0000:0000:0000:0000:ffff:7f\w\w:\w\w02 RoCE v2 lo$", r"^softib0 port 1 ==> lo$",
            "types/9: Invalid argument", code=1)


def pingpongs(report, fabric):
    for program, variants in (ETHERNET_PINGPONG if harness.ETHERNET else PINGPONG).items():
        for variant in variants:
            for nodes in ((0, 1), (0, 0)) if variant in ("", "-e", "-g 1") else ((0, 1),):
                name = f"{program} {variant}".strip() + ("  (both on one node)" if nodes == (0, 0) else "")
                if not report.wanted(name):
                    continue
                with report.case(name) as remarks:
                    harness.need_program(program)
                    words = [program, *variant.split()]
                    for side in fabric.pair(words, nodes=nodes):
                        side.require(forbid=COMPLAINTS)
                        if program != "ibv_xsrq_pingpong":  # which prints nothing
                            side.require(RESULT)
                            remarks[:] = [re.search(r"[\d.]+ usec/iter", side.text)[0]]


def xsrq_with_clients(report, fabric):
    with report.case("ibv_xsrq_pingpong, three clients"):
        port = harness.free_port()
        words = ["ibv_xsrq_pingpong", "-p", port, *(["-g", 1] if harness.ETHERNET else [])]
        server = fabric.start([*words, "-c", 3], 0)
        harness.wait_until(lambda: harness.is_listening(server.pid, port) or not server.running(), 30,
                           f"the server to listen; it says:\n{server.text()}")
        clients = [fabric.start([*words, harness.HOST], 1) for _ in range(3)]
        for program in (*clients, server):
            fabric.end(program, 60).require(forbid=COMPLAINTS)


def asyncwatch(report, fabric):
    with report.case("ibv_asyncwatch sees the port go down and up") as remarks:
        watch = fabric.start(["ibv_asyncwatch"], 0)
        watch.wait_for_text(r"softib0: async event FD \d+", 20)
        fabric.softib("port", "down", "--fabric", fabric.name, "--node", "0").require()
        watch.wait_for_text(r"event_type IBV_EVENT_PORT_ERR", 20)
        state = fabric.run(["ibv_devinfo"]).require(r"state:\s+PORT_DOWN")
        remarks.append(re.search(r"PORT_\w+", state.text)[0])
        fabric.softib("port", "up", "--fabric", fabric.name, "--node", "0").require()
        watch.wait_for_text(r"event_type IBV_EVENT_PORT_ACTIVE", 20)
        fabric.run(["ibv_devinfo"]).require(r"state:\s+PORT_ACTIVE")
        if not watch.running():
            raise Failed(f"it ended by itself with {watch.process.returncode}:\n{watch.text()}")
        watch.kill()


def test(report, user):
    harness.forget_xrc_domain()
    with harness.Fabric(nodes=2, user=user) as fabric:
        if report.wanted("ibv_devices ibv_devinfo"):
            devices(report, fabric)
        if report.wanted("local_cpus"):
            place(report, fabric)
        if harness.ETHERNET and report.wanted("scripts find GIDs"):
            gids_in_sysfs(report, fabric)
        pingpongs(report, fabric)
        if report.wanted("ibv_xsrq_pingpong, three clients"):
            xsrq_with_clients(report, fabric)
        if report.wanted("ibv_asyncwatch"):
            asyncwatch(report, fabric)


harness.main("verbs tools", test)
