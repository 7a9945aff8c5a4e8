#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The example programs of libibverbs (Debian's ibverbs-utils), unmodified.

verbs_tools_test.py [--as root|nobody] [--only REGEX]
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
RESULT = r"iters in [\d.]+ seconds = [\d.]+ usec/iter"
COMPLAINTS = (r"(?i)\bfail", r"(?i)invalid", r"(?i)couldn't", r"(?i)can't", r"(?i)not supported")


def devices(report, fabric):
    with report.case("ibv_devices"):
        fabric.run(["ibv_devices"]).require(r"^\s+softib0\s+[0-9a-f]{16}$")
    with report.case("ibv_devinfo"):
        fabric.run(["ibv_devinfo"]).require(r"hca_id:\s+softib0", r"state:\s+PORT_ACTIVE", r"link_layer:\s+InfiniBand",
                                            r"port_lid:\s+[1-9]", forbid=COMPLAINTS)
    with report.case("ibv_devinfo -v"):
        text = fabric.run(["ibv_devinfo", "-v"]).require(
            r"max_qp:\s+[1-9]", r"max_mr_size:\s+0x", r"atomic_cap:\s+ATOMIC_", r"GID\[\s*0\]:", r"max_srq:\s+[1-9]",
            r"max_pkeys:\s+[1-9]", r"ODP_SUPPORT_IMPLICIT", r"rc_odp_caps", r"completion timestamp_mask:\s+0x",
            r"device_cap_flags_ex:", forbid=(r"(?i)unknown (error|state)", "Failed")).text
        if text.count("hca_id:") != 1:
            raise Failed(f"one HCA expected:\n{text}")
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


def pingpongs(report, fabric):
    for program, variants in PINGPONG.items():
        for variant in variants:
            for nodes in ((0, 1), (0, 0)) if variant in ("", "-e") else ((0, 1),):
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
        server = fabric.start(["ibv_xsrq_pingpong", "-c", 3, "-p", port], 0)
        harness.wait_until(lambda: harness.is_listening(server.pid, port) or not server.running(), 30,
                           f"the server to listen; it says:\n{server.text()}")
        clients = [fabric.start(["ibv_xsrq_pingpong", "-p", port, harness.HOST], 1) for _ in range(3)]
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
        pingpongs(report, fabric)
        if report.wanted("ibv_xsrq_pingpong, three clients"):
            xsrq_with_clients(report, fabric)
        if report.wanted("ibv_asyncwatch"):
            asyncwatch(report, fabric)


harness.main("verbs tools", test)
