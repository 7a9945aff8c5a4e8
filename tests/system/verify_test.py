#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Unmodified programs on a fabric with --verify: their results are the same, and the objects that they leave are
reported.

verify_test.py [--as root|nobody] [--only REGEX]
"""
import json
import re

import harness
from support.device_tree import require, softib, status

ALREADY_UP = 4
FOREVER = "200000000"  # iterations of a pingpong that is meant to be interrupted
MOST_TRIES = 200  # of a program in which every request fails in every way once


def no_findings(fabric):
    state = status(fabric)
    require(state["verify_findings"] == 0, softib(fabric, "trace").text)
    return state


def pingpong(fabric):
    before = sent(fabric)
    port = str(harness.free_port())
    words = ["ibv_rc_pingpong", "-p", port, "-n", FOREVER]
    server = fabric.start(words, 0)
    harness.wait_until(lambda: harness.is_listening(server.pid, int(port)), 20, "the server to listen")
    client = fabric.start([*words, harness.HOST], 1)
    harness.wait_until(lambda: sent(fabric) > before + 1000, 20, "the pingpong to run")
    return server, client


def sent(fabric):
    return status(fabric)["nodes"][1]["hcas"][0]["ports"][0]["counters"]["sent_messages"]


def programs(report, fabric):
    with report.case("programs run as ever"):
        require(no_findings(fabric)["verify"] == "on", "status does not tell")
        fabric.run(["ibv_devinfo", "-v"]).require(r"hca_id:\s+softib0", r"PORT_ACTIVE")
        for words in (["ibv_rc_pingpong"], ["ibv_rc_pingpong", "-e"], ["ibv_uc_pingpong"], ["ibv_ud_pingpong"],
                      ["ibv_srq_pingpong"]):
            for result in fabric.pair(words):
                result.require(r"iters in")
        no_findings(fabric)


def leftovers(report, fabric):
    with report.case("what a killed program leaves is told, with its holder and what uses it"):
        server, client = pingpong(fabric)
        pid = client.pid
        client.kill()
        pattern = (rf"verify: left: pid {pid} \(ibv_rc_pingpong\) on node1 ends and leaves HCA softib0 \(file \d+\) with "
                   r"queue pair \d+, completion queue \d+ \(used by 2 queue pairs\), memory region \d+, "
                   r"protection domain \d+ \(used by 1 memory region, 1 queue pair\)")
        harness.wait_until(lambda: re.search(pattern, softib(fabric, "trace", "-n", "4000").text), 20,
                           f"{pattern!r} in\n{softib(fabric, 'trace').text}")
        server.kill()
        no_findings(fabric)


def surprises(report, fabric):
    with report.case("HCAs that sleep and are pulled out under programs"):
        server, client = pingpong(fabric)
        softib(fabric, "power", "sleep")
        softib(fabric, "power", "resume")
        softib(fabric, "hca", "eject", "softib0", "--node", "1")
        softib(fabric, "hca", "add", "--node", "1")
        server.kill()
        client.kill()
        no_findings(fabric)


def faults(report, user):
    with report.case("faults: each request of a program fails in every way once, then it works; nothing is left"):
        with harness.Fabric(nodes=1, user=user, name="faults", extra=["--verify=faults"]) as fabric:
            failures = 0
            in_order = 0
            for _ in range(MOST_TRIES):
                result = fabric.run(["ibv_devinfo"])
                good = result.code == 0 and "PORT_ACTIVE" in result.text
                failures += not good
                in_order = in_order + 1 if good else 0
                if in_order == 10:
                    break
            require(in_order == 10 and failures > 5, f"{failures} failures, {in_order} in order at the end")
            log = (fabric.runtime / "faults.log").read_text()
            for what in ("Attach of pid", "QueryPort of pid", "Attach: a descriptor of device memory"):
                require(re.search(rf"verify: {what}.* is made to fail", log), f"no {what!r} in\n{log}")


def other_shape(report, user):
    with report.case("a fabric that is up without --verify is not used with it; run --verify starts one"):
        with harness.Fabric(nodes=1, user=user, name="plain") as fabric:
            plain = fabric.softib("run", "--fabric", "plain", "--verify", "--", "true")
            plain.require(r"was not started with --verify=on", code=ALREADY_UP)
            fabric.softib("run", "--fabric", "v", "--verify", "--linger", "60", "--", "ibv_devinfo").require(r"softib0")
            text = fabric.softib("status", "--json", "--fabric", "v").require().text
            require(json.loads(text)["verify"] == "on", text)
            fabric.softib("down", "--fabric", "v").require(r"is down")
            log = (fabric.runtime / "v.log").read_text()
            require("verify: findings: 0" in log, log)


def test(report, user):
    with harness.Fabric(nodes=2, user=user, extra=["--verify", "--verify-seed", "5"]) as fabric:
        for part in (programs, leftovers, surprises):
            part(report, fabric)
    faults(report, user)
    other_shape(report, user)


harness.main("verify", test)
