#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The programs of a fabric, as softib status, list and down see them: with and without an HCA, and those that have
ended.

in_use_test.py [--as root|nobody] [--only REGEX]      of the functions below
"""
import json
import os
import signal

import harness
from support.device_tree import BUSY, require, softib

ROUNDS = 15
SECONDS = 20


def programs(fabric):
    return {one["pid"]: one for one in fabric.state()["programs"]}


def listed(fabric):
    return json.loads(fabric.softib("list", "--json").require().text)["fabrics"][0]["clients"]


def names(report, user):
    with report.case("programs with and without an HCA are named, softibd's own services are not"), \
            harness.Fabric(nodes=2, user=user) as fabric:
        fabric.softib("status", "--fabric", fabric.name).require("^no programs$")
        require((programs(fabric), listed(fabric)) == ({}, 0), f"{programs(fabric)}, {listed(fabric)}")
        idle = fabric.start(["sleep", "1000"], 1)
        harness.wait_until(lambda: idle.pid in programs(fabric), SECONDS, "sleep to be a program of the fabric")
        harness.need_program("ucmatose")
        listener = fabric.start(["ucmatose"], 0)
        harness.wait_until(lambda: fabric.ids(state="listening"), SECONDS, "ucmatose to listen")
        found = programs(fabric)
        require(found[idle.pid] == {"pid": idle.pid, "program": "sleep", "node": "node1", "has_hca": False}, f"{found}")
        require((found[listener.pid]["program"], found[listener.pid]["node"]) == ("ucmatose", "node0"), f"{found}")
        require(len(found) == 2 == listed(fabric), f"{found}, {listed(fabric)} in the list")
        own = [client for client in fabric.state()["clients"] if client.get("is_driver")]
        require(own and all(client["pid"] == fabric.state()["pid"] for client in own), f"softibd's own: {own}")
        page = fabric.softib("status", "--fabric", fabric.name).require(
            rf"^ *{idle.pid} +node1 +sleep", rf"^ *{listener.pid} +node0 +ucmatose", forbid=("no programs",))
        require(page.text.count("ucmatose") <= 2, page.text)
        softib(fabric, "down", code=BUSY)
        result = softib(fabric, "down", code=BUSY)
        for program in (idle, listener):
            require(f"(pid {program.pid})" in result.text, result.text)
        for program in (idle, listener):
            program.kill()
        softib(fabric, "down")


def ends(report, user):
    """A program that is being watched has a device open, which softibd closes in its own time."""
    harness.need_program("ibv_asyncwatch")
    for title, wait in (("waited for", True), ("killed, and not waited for", False)):
        with report.case(f"softib down right after its programs have been {title}, {ROUNDS} times"):
            for _ in range(ROUNDS):
                with harness.Fabric(nodes=1, user=user) as fabric:
                    watching = [fabric.start(["ibv_asyncwatch"]) for _ in range(2)]
                    for program in watching:
                        program.wait_for_text(r"softib0: async event FD \d+", SECONDS)
                    for program in watching:
                        os.killpg(program.pid, signal.SIGKILL)
                    if wait:
                        for program in watching:
                            program.wait(SECONDS)
                    softib(fabric, "down")


def test(report, user):
    for part in (names, ends):
        if report.wanted(part.__name__):
            part(report, user)


harness.main("in use", test)
