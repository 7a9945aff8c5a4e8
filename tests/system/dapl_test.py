#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""uDAPL (libdapl2, dapl2-utils), unmodified, with the registry that `softib run` supplies.

dapl_test.py [--as root|nobody] [--only REGEX] [--link-layer ethernet]
"""
import contextlib
import os
import signal
import socket
import subprocess

import harness
from harness import Failed, Skipped

# cma and scm. ucm names its peers by LID, which Ethernet ports do not have.
PROVIDERS = ("ofa-v2-ib0", "ofa-v2-softib0-1")
ADDRESS = "127.77.0.1"  # of node 0
UCM = "ofa-v2-softib0-1u"
DTEST_PORT = 15828  # of the connection by which dtest's programs find each other
DAPLTEST_PORT = 45278
SECONDS = 100

TRANSACTION = ["-i", "100", "-t", "2", "-w", "2", "-V", "client", "SR", "256", "server", "RW", "4096", "server", "RR",
               "4096", "client", "SR", "4096", "server", "SR", "256"]
PERFORMANCE = ["-i", "1024", "-p", "64", "-m", "p", "RW", "8192", "2"]
LIMITS = ["-w", "8", "limit_ia", "limit_pz", "limit_evd", "limit_ep", "limit_lmr", "limit_rpost"]


def address_for(provider):
    """scm listens at the first address of the machine that is not on a loopback interface, if there is one."""
    if provider != PROVIDERS[1]:
        return ADDRESS
    listing = subprocess.run(["ip", "-4", "-o", "address", "show", "up"], capture_output=True, text=True, check=True)
    found = [line.split() for line in listing.stdout.splitlines()]
    return next((words[3].split("/")[0] for words in found if words[1] != "lo"), ADDRESS)


def start(fabric, words, said):
    server = fabric.start(["stdbuf", "-oL", "-eL", *words], 0)
    server.wait_for_text(said, SECONDS)
    return server


def dtest(fabric, program, provider, options=()):
    """Both sides check what they receive and say so at their end."""
    words = [program, "-P", provider, *options]
    server = fabric.start(words, 0)
    harness.wait_until(lambda: harness.is_listening(server.pid, DTEST_PORT) or not server.running(), SECONDS,
                       f"{server.describe()} to listen")
    client = fabric.run([*words, "-h", address_for(provider)], 1, SECONDS).require()
    return client.text, fabric.end(server, SECONDS).require().text


def passes(fabric, program, provider, options=(), said="PASSED"):
    for text in dtest(fabric, program, provider, options):
        if said not in text or "FAILED" in text:
            raise Failed(f"no {said!r} in:\n{harness.tail(text)}")


@contextlib.contextmanager
def dapltest_server(fabric, provider):
    server = start(fabric, ["dapltest", "-T", "S", "-D", provider], "Service Point Ready")
    try:
        yield server
    except BaseException:
        server.kill()
        raise
    fabric.run(["dapltest", "-T", "Q", "-D", provider, "-s", address_for(provider)], 1, SECONDS).require()
    fabric.end(server, SECONDS).require()


def suites(fabric, report, provider):
    client = ["dapltest", "-T"]
    where = ["-D", provider, "-s", address_for(provider)]
    for title, suite, options, said in (("transactions", "T", TRANSACTION, r"Total RDMA Write *: +1\.6"),
                                        ("performance", "P", PERFORMANCE, r"^raw: RW, 1024, 8192, 2, 64")):
        with report.case(f"dapltest, {title}: {provider}"), dapltest_server(fabric, provider):
            fabric.run([*client, suite, *where, *options], 1, SECONDS).require(said, forbid=("rror", "fail"))
    with report.case(f"dapltest, limits: {provider}"):
        text = fabric.run([*client, "L", "-D", provider, *LIMITS], 1, SECONDS).require("Limitation Test").text
        if text.count("Limitation Test") != len(LIMITS) - 2:
            raise Failed(harness.tail(text))


def dies(fabric, report):
    for victim in ("server", "client"):
        with report.case(f"dapltest: kill -9 of the {victim} in the middle"):
            provider = PROVIDERS[0]
            server = start(fabric, ["dapltest", "-T", "S", "-D", provider], "Service Point Ready")
            client = fabric.start(["dapltest", "-T", "T", "-D", provider, "-s", address_for(provider), "-i", "100000000", "-t", "1", "-w",
                                   "1", "client", "SR", "4096", "server", "SR", "4096"], 1)
            fabric.wait_for_packets(client, SECONDS)
            dead, other = (server, client) if victim == "server" else (client, server)
            os.killpg(dead.pid, signal.SIGKILL)
            if victim == "server":
                if fabric.end(other, SECONDS).code is None:
                    raise Failed(f"{other.describe()} did not notice:\n{harness.tail(other.text())}")
            else:  # it goes on with the next client
                server.wait_for_text("Transaction Test Finished|rror|DISCONNECT|BROKEN", SECONDS)
                server.kill()
            dead.kill()


def need_ports():
    """dtest and dapltest have fixed TCP ports."""
    for port in (DTEST_PORT, DAPLTEST_PORT):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError as error:
                raise Skipped(f"TCP port {port}, which these programs need, is taken") from error


def test(report, user):
    harness.need_program("dtest")
    need_ports()
    with harness.Fabric(nodes=2, user=user) as fabric:
        for provider in PROVIDERS:
            with report.case(f"dtest: {provider}"):
                passes(fabric, "dtest", provider, ["-B", "10"])
            with report.case(f"dtestx, immediate data and atomics: {provider}"):
                passes(fabric, "dtestx", provider)
            with report.case(f"dtestcm, 100 connections: {provider}"):
                passes(fabric, "dtestcm", provider, ["-c", "100"], said="ALL 100 CONNECTED")
            suites(fabric, report, provider)
        if not harness.ETHERNET:
            with report.case(f"dtestx, immediate data and atomics: {UCM}"):
                passes(fabric, "dtestx", UCM)
        dies(fabric, report)


if __name__ == "__main__":
    harness.main("dapl", test)
