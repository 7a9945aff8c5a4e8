#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""qperf, unmodified: every RC, UC and UD test, polling and with events, RC also connected by librdmacm, and its checks
of atomics.

qperf_test.py [--as root|nobody] [--only REGEX] [--link-layer ethernet]
"""
import os
import re

import harness
from harness import Failed
from support import perftest

CORES = sorted(os.sched_getaffinity(0))
TESTS = {
    "rc_bi_bw": "bw", "rc_bw": "bw", "rc_lat": "latency", "uc_bi_bw": "bw", "uc_bw": "bw", "uc_lat": "latency",
    "ud_bi_bw": "bw", "ud_bw": "bw", "ud_lat": "latency", "rc_rdma_read_bw": "bw", "rc_rdma_read_lat": "latency",
    "rc_rdma_write_bw": "bw", "rc_rdma_write_lat": "latency", "rc_rdma_write_poll_lat": "latency",
    "uc_rdma_write_bw": "bw", "uc_rdma_write_lat": "latency", "uc_rdma_write_poll_lat": "latency",
    "rc_compare_swap_mr": "msg_rate", "rc_fetch_add_mr": "msg_rate",
    "ver_rc_compare_swap": "msg_rate", "ver_rc_fetch_add": "msg_rate",
}
# In tests where messages may be lost (UC, UD), qperf prints "bw" as send_bw and recv_bw.
VALUE = r"^\s+(?P<name>\w*{kind}\w*)\s+=\s+(?P<number>[\d.,]+) (?P<unit>\S+)"
COMPLAINTS = (r"(?i)fail", r"(?i)mismatch", r"(?i)timed out", r"(?i)not supported", r"(?i)not responding", r"(?i)error",
              r"(?i)incorrect", r"(?i)out of sequence")


def wanted_variants(test):
    yield "", []
    if "poll" not in test:
        yield "polling", ["-cp1"]  # without it qperf sleeps on completion events
    if test in ("rc_bw", "rc_rdma_write_bw", "rc_rdma_read_bw", "uc_bw"):
        yield "1 MiB messages", ["-m", "1M"]
    if test.startswith("rc_"):
        yield "by librdmacm", ["-cm1"]  # for which qperf takes RC only
        if test in ("rc_bw", "rc_lat", "rc_rdma_write_bw"):
            yield "by librdmacm, polling", ["-cm1", "-cp1"]
    if test in ("rc_lat", "uc_lat", "ud_lat") and len(CORES) > 1:
        yield "polling, pinned", ["-cp1", "-lca", str(CORES[0]), "-rca", str(CORES[1])]


def was_refused(fabric, result):
    """With -cm1 the server tells its client the port of librdmacm before it listens there."""
    return "Event rejected" in result.text and "no listener for TCP port" in fabric.softib(
        "trace", "--fabric", fabric.name).text


def run_one(fabric, port, test, options, remarks):
    host = "node0" if "-cm1" in options else harness.HOST
    words = ["qperf", host, "-lp", port, "-i", "softib0:1", "-t", "1", *options, test]
    for _ in range(perftest.TRIES):
        result = fabric.run(words, 1, 30)
        if not was_refused(fabric, result):
            break
    result.require(rf"^{test}:$", forbid=COMPLAINTS)
    values = list(re.finditer(VALUE.format(kind=TESTS[test]), result.text, re.MULTILINE))
    if not values:
        raise Failed(f"qperf {test}: no {TESTS[test]}:\n{harness.tail(result.text)}")
    for value in values:
        if float(value["number"].replace(",", "")) <= 0:
            raise Failed(f"qperf {test}: {value[0].strip()}")
    remarks.append(", ".join(" ".join(v[0].split()) for v in values))


def test(report, user):
    harness.need_program("qperf")
    with harness.Fabric(nodes=2, user=user) as fabric:
        port = harness.free_port()
        server = fabric.start(["qperf", "-lp", port], 0)
        harness.wait_until(lambda: harness.is_listening(server.pid, port) or not server.running(), 20,
                           "qperf to listen")
        for name in TESTS:
            for title, options in wanted_variants(name):
                what = f"{name} {title}".strip()
                if report.wanted(what):
                    with report.case(what) as remarks:
                        run_one(fabric, port, name, options, remarks)
        with report.case("the server ends when told to"):
            fabric.run(["qperf", harness.HOST, "-lp", port, "quit"], 1, 30).require()
            fabric.end(server, 20).require(forbid=COMPLAINTS)


harness.main("qperf", test)
