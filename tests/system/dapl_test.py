#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""uDAPL (libdapl2, dapl2-utils), unmodified, with the registry that `softib run` supplies.

dapl_test.py [--as root|nobody] [--only REGEX] [--link-layer ethernet]
"""
import contextlib
import os
import re
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
ATTEMPTS = 20
TELL_REFUSALS = {"DAPL_DBG_TYPE": "0x10001"}  # errors, warnings about connections
# Nobody listens yet: scm; DAT_CONNECTION_EVENT_NON_PEER_REJECTED of cma, and ucm's event for it.
TOO_EARLY = r"Connection refused|non-consumer REJ, reason=8|!conn established: 0x(4003|40003)\b"
REJECTED_BY_CMA = r"non-consumer REJ|!conn established: 0x4003"

TRANSACTION = ["-i", "100", "-t", "2", "-w", "2", "-V", "client", "SR", "256", "server", "RW", "4096", "server", "RR",
               "4096", "client", "SR", "4096", "server", "SR", "256"]
WRITTEN = r"Total RDMA Write *: +1\.6"
ENDLESS = ["-i", "100000000", "-t", "1", "-w", "1", "client", "SR", "4096", "server", "SR", "4096"]
BROKEN = r"Test Error: (Send|Recv)-reaping DTO problem, status = FAILURE"
PERFORMANCE = ["-i", "1024", "-p", "64", "-m", "p", "RW", "8192", "2"]
# Cases of each feature of dapltest -T F. Left out, for the reasons in docs/status.md: mem 2; queryinfo 5, 9, 13, 15.
FEATURES = {"hwconn": range(4), "endpoint": range(3), "pz": range(3), "mem": (0, 1, 3, 4),
            "queryinfo": (0, 1, 2, 3, 4, 6, 7, 8, 10, 11, 12, 14, 16, 17), "connmgt": range(2)}
LIMITS = ["-w", "8", "limit_ia", "limit_pz", "limit_evd", "limit_ep", "limit_lmr", "limit_rpost"]


def address_for(provider):
    """scm listens at the first address of the machine that is not on a loopback interface, if there is one."""
    if provider != PROVIDERS[1]:
        return ADDRESS
    listing = subprocess.run(["ip", "-4", "-o", "address", "show", "up"], capture_output=True, text=True, check=True)
    found = [line.split() for line in listing.stdout.splitlines()]
    return next((words[3].split("/")[0] for words in found if words[1] != "lo"), ADDRESS)


def start_server(fabric, provider):
    server = fabric.start(["stdbuf", "-oL", "-eL", "dapltest", "-T", "S", "-D", provider], 0)
    server.wait_for_text("Service Point Ready", SECONDS)
    return server


def dtest_once(fabric, words, provider):
    """Returns what both sides printed, or None if the client came too early."""
    server = fabric.start(words, 0)
    try:
        harness.wait_until(lambda: harness.is_listening(server.pid, DTEST_PORT) or not server.running(), SECONDS,
                           f"{server.describe()} to listen")
        client = fabric.run([*words, "-h", address_for(provider)], 1, SECONDS, env=TELL_REFUSALS)
        if client.code == 1 and re.search(TOO_EARLY, client.text):
            if re.search(REJECTED_BY_CMA, client.text):
                fabric.softib("trace", "--fabric", fabric.name).require("no listener for TCP port")
            return None
        return client.require().text, fabric.end(server, SECONDS).require().text
    finally:
        if server.running():
            server.kill()


def dtest(fabric, program, provider, options=()):
    """Both sides check what they receive and say so at their end. The programs' servers announce themselves to the
    client before they listen (send_server_params() comes before dat_psp_create()), so on a busy machine the client is
    refused, and scm's next attempt is in another version of its protocol. Such a run is repeated."""
    for _ in range(ATTEMPTS):
        texts = dtest_once(fabric, [program, "-P", provider, *options], provider)
        if texts:
            return texts
    raise Failed(f"the client of {program} came too early {ATTEMPTS} times")


def passes(fabric, program, provider, options=(), said="PASSED"):
    for text in dtest(fabric, program, provider, options):
        if said not in text or "FAILED" in text:
            raise Failed(f"no {said!r} in:\n{harness.tail(text)}")


@contextlib.contextmanager
def dapltest_server(fabric, provider):
    server = start_server(fabric, provider)
    try:
        yield server
        fabric.run(["dapltest", "-T", "Q", "-D", provider, "-s", address_for(provider)], 1, SECONDS).require()
        fabric.end(server, SECONDS).require()
    finally:
        if server.running():
            server.kill()


def client_words(provider, letter, options):
    return ["dapltest", "-T", letter, "-D", provider, "-s", address_for(provider), *options]


def suite(fabric, provider, letter, options, said):
    with dapltest_server(fabric, provider):
        fabric.run(client_words(provider, letter, options), 1, SECONDS).require(said, forbid=("rror", "fail"))


def limits(fabric, provider):
    text = fabric.run(["dapltest", "-T", "L", "-D", provider, *LIMITS], 1, SECONDS).require("Limitation Test").text
    if text.count("Limitation Test") != len(LIMITS) - 2:
        raise Failed(harness.tail(text))


def feature(fabric, provider, name):
    """One program without a peer; a case that fails may print PASS all the same."""
    cases = [f"case{number}" for number in FEATURES[name]]
    text = fabric.run(["dapltest", "-T", "F", "-D", provider, "-s", address_for(provider), "-f", name, *cases], 1,
                      SECONDS).require(forbid=("failed in file", "Result: (?!PASS)", "DAPL ERR")).text
    if text.count("Result: PASS") != len(cases):
        raise Failed(f"{len(cases)} cases were to pass:\n{harness.tail(text, 60)}")


@contextlib.contextmanager
def killed_in_the_middle(fabric, victim, provider, server):
    """Yields the client of a transaction that does not end by itself, when `victim` of the two is dead."""
    client = fabric.start(client_words(provider, "T", ENDLESS), 1)
    try:
        fabric.wait_for_packets(client, SECONDS)
        os.killpg((server if victim == "server" else client).pid, signal.SIGKILL)
        yield client
    finally:
        client.kill()


def server_dies(fabric, provider):
    server = start_server(fabric, provider)
    with killed_in_the_middle(fabric, "server", provider, server) as client:
        fabric.end(client, SECONDS).require(BROKEN, "Client Exiting")
    server.kill()


def client_dies(fabric, provider):
    """The server goes on with the next client."""
    with dapltest_server(fabric, provider) as server:
        with killed_in_the_middle(fabric, "client", provider, server):
            server.wait_for_text(BROKEN, SECONDS)
            server.wait_for_text("Transaction Test Finished for this client", SECONDS)
        fabric.run(client_words(provider, "T", TRANSACTION), 1, SECONDS).require(WRITTEN, forbid=("rror", "fail"))


def need_ports():
    """dtest and dapltest have fixed TCP ports."""
    for port in (DTEST_PORT, DAPLTEST_PORT):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError as error:
                raise Skipped(f"TCP port {port}, which these programs need, is taken") from error


def cases():
    for provider in PROVIDERS:
        yield f"dtest: {provider}", passes, ("dtest", provider, ["-B", "10"])
        yield f"dtestx, immediate data and atomics: {provider}", passes, ("dtestx", provider)
        yield f"dtestcm, 100 connections: {provider}", passes, ("dtestcm", provider, ["-c", "100"], "ALL 100 CONNECTED")
        yield f"dapltest, transactions: {provider}", suite, (provider, "T", TRANSACTION, WRITTEN)
        yield f"dapltest, performance: {provider}", suite, (provider, "P", PERFORMANCE, r"^raw: RW, 1024, 8192, 2, 64")
        yield f"dapltest, limits: {provider}", limits, (provider,)
        for name in FEATURES:
            yield f"dapltest, features, {name}: {provider}", feature, (provider, name)
        yield f"dapltest: kill -9 of the server in the middle: {provider}", server_dies, (provider,)
        yield f"dapltest: kill -9 of the client in the middle: {provider}", client_dies, (provider,)
    if not harness.ETHERNET:
        yield f"dtestx, immediate data and atomics: {UCM}", passes, ("dtestx", UCM)


def test(report, user):
    harness.need_program("dtest")
    need_ports()
    with harness.Fabric(nodes=2, user=user) as fabric:
        for name, body, words in cases():
            if report.wanted(name):
                with report.case(name):
                    body(fabric, *words)


if __name__ == "__main__":
    harness.main("dapl", test)
