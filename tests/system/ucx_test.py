#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""UCX 1.13, unmodified, over rc_verbs and ud_verbs: the devices that it finds, ucx_perftest at both of its levels, and
connections by address (ucp_sockaddr.c).

ucx_test.py [--as root|nobody] [--link-layer ethernet] [--only REGEX]
"""
import os
import pathlib
import re
import shutil
import tempfile

import harness
from harness import Failed
from support import ucx

HERE = pathlib.Path(__file__).resolve().parent
DEVICE = "softib0:1"
UCP = {  # test: sizes
    "tag_lat": (8, 4096, 1 << 20), "tag_bw": (8, 65536, 1 << 20), "tag_sync_lat": (8,), "tag_sync_bw": (4096,),
    "ucp_put_lat": (8, 65536), "ucp_put_bw": (8, 1 << 20), "ucp_get": (8, 1 << 20), "ucp_add": (8,), "ucp_fadd": (8,),
    "ucp_swap": (8,), "ucp_cswap": (8,), "stream_lat": (8, 4096), "stream_bw": (65536,), "ucp_am_lat": (8, 4096),
    "ucp_am_bw": (8, 65536),
}
UCT = {  # transport: (test, layout, size)
    "rc_verbs": (("am_lat", "short", 8), ("am_lat", "bcopy", 1024), ("am_lat", "zcopy", 4096), ("am_bw", "short", 8),
                 ("am_bw", "zcopy", 8192), ("put_lat", "short", 8), ("put_lat", "bcopy", 1024), ("put_lat", "zcopy", 65536),
                 ("put_bw", "short", 8), ("put_bw", "zcopy", 65536), ("get", "bcopy", 1024), ("get", "zcopy", 65536),
                 ("fadd", "short", 8), ("cswap", "short", 8)),
    "ud_verbs": (("am_lat", "short", 8), ("am_lat", "bcopy", 1024), ("am_lat", "zcopy", 2048), ("am_bw", "short", 8),
                 ("am_bw", "bcopy", 1024)),
}
if harness.ETHERNET:  # what differs there is how the two sides find each other
    UCP = {"tag_lat": (8, 1 << 20), "tag_bw": (65536,), "ucp_put_bw": (8,), "ucp_get": (65536,), "ucp_fadd": (8,),
           "ucp_am_lat": (8,)}
    UCT = {transport: cases[:3] for transport, cases in UCT.items()}
EXTRAS = (  # more ways through UCP, over each transport
    ("tag_lat, sleeping on events", ["-t", "tag_lat", "-E", "sleep"]),
    ("tag_lat, with error handling", ["-t", "tag_lat", "-e"]),
    ("tag_lat, unexpected messages", ["-t", "tag_lat", "-U"]),
    ("tag_bw of scattered data", ["-t", "tag_bw", "-D", "iov,contig", "-s", "1024,64,4096"]),
)


def count(size):
    return 200 if size < 65536 else 50


def info(report, fabric):
    with report.case("ucx_info -d lists softib0:1 with rc_verbs and ud_verbs") as remarks:
        result = fabric.run(["ucx_info", "-d"]).require(forbid=(r"\bERROR\b",))
        found = set(re.findall(r"Transport: (\S+)\n#\s+Device: softib0:1\n", result.text))
        if not {"rc_verbs", "ud_verbs"} <= found:
            raise Failed(f"found {sorted(found)}:\n{harness.tail(result.text, 60)}")
        remarks.append(" ".join(sorted(found)))
    with report.case("ucx_info -e: an endpoint between the nodes would use it"):
        env = {"UCX_TLS": "rc_v,self", "UCX_NET_DEVICES": DEVICE}
        fabric.run(["ucx_info", "-e", "-u", "rta", "-P", "inter"], env=env).require(
            r"rc_verbs/softib0:1", forbid=(r"\bERROR\b",))


def by_address(report, fabric, folder):
    """Connections that UCX itself makes by rdmacm, with every byte checked."""
    cases = [(tls, "rdmacm", rf"{wanted}/{DEVICE}") for tls, wanted in (("rc_v", "rc_verbs"), ("ud_v", "ud_verbs"))]
    cases.append((None, None, rf"rc_verbs/{DEVICE}"))  # as `softib run` sets it up
    for tls, priority, lane in cases:
        name = f"by address, {tls or 'with the settings of softib run'}"
        if not report.wanted(name):
            continue
        with report.case(name) as remarks:
            program = harness.build_program(folder, HERE / "programs/ucp_sockaddr.c", libraries=("-lucp", "-lucs"))
            env = {"UCX_TLS": tls, "UCX_SOCKADDR_TLS_PRIORITY": priority} if tls else {}
            port = harness.free_port()
            server = fabric.start([program, port], 0, env=env)
            server.wait_for_text("listening", 60)
            client = fabric.run([program, port, "node0"], 1, 120, env=env)
            client.require("^ok$", lane, r"lane\[\d\]: +cm rdmacm", forbid=ucx.COMPLAINTS)
            fabric.end(server, 60).require("^ok$", forbid=ucx.COMPLAINTS)
            remarks.append(", ".join(sorted(set(re.findall(r"lane\[\d\]: +(?:\d:)?(cm rdmacm|\w+/softib0:1)", client.text)))))


def perftest(report, fabric, name, words, env=None):
    if not report.wanted(name):
        return
    with report.case(name) as remarks:
        server, client = fabric.pair(["ucx_perftest"], ["ucx_perftest", "-f", *words], env=env, seconds=60)
        for side in (client, server):
            side.require(forbid=ucx.COMPLAINTS)
        row = ucx.result(client.text)
        if not row or row["overall_us"] <= 0:
            raise Failed(f"no result line:\n{harness.tail(client.text)}")
        remarks.append(f"{row['average_us']:9.2f} us {row['average_mb']:9.1f} MB/s {row['average_rate']:10.0f}/s")


def test(report, user):
    harness.need_program("ucx_perftest")
    with harness.Fabric(nodes=2, user=user) as fabric:
        if report.wanted("ucx_info"):
            info(report, fabric)
        folder = pathlib.Path(tempfile.mkdtemp(prefix="softib-ucx-"))
        try:
            os.chmod(folder, 0o755)
            by_address(report, fabric, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        for tls in ("rc_v", "ud_v"):
            env = {"UCX_TLS": f"{tls},self", "UCX_NET_DEVICES": DEVICE}
            for name, sizes in UCP.items():
                for size in sizes:
                    words = ["-t", name, "-s", size, "-n", count(size), "-w", 20]
                    perftest(report, fabric, f"{tls} {name} {size} B", words, env)
            for index in (0, 1) if harness.ETHERNET else ():
                perftest(report, fabric, f"{tls} tag_lat from GID {index}", ["-t", "tag_lat", "-n", 200, "-w", 20],
                         {**env, "UCX_IB_GID_INDEX": str(index)})
            for name, words in EXTRAS:
                perftest(report, fabric, f"{tls} {name}", [*words, "-n", 200, "-w", 20], env)
        for transport, cases in UCT.items():
            for name, layout, size in cases:
                words = ["-d", DEVICE, "-x", transport, "-t", name, "-D", layout, "-s", size, "-n", count(size), "-w", 20]
                perftest(report, fabric, f"{transport} (uct) {name} {layout} {size} B", words)


harness.main("UCX", test)
