#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""uDAPL (libdapl2, dapl2-utils), unmodified, with the registry that `softib run` supplies.

dapl_test.py [--as root|nobody] [--only REGEX] [--link-layer ethernet]
"""
import contextlib
import ipaddress
import os
import pathlib
import re
import signal
import subprocess

import harness
from harness import Failed

CMA, SCM, UCM = "ofa-v2-ib0", "ofa-v2-softib0-1", "ofa-v2-softib0-1u"
# ucm names its peers by LID, which Ethernet ports do not have.
PROVIDERS = (CMA, SCM) if harness.ETHERNET else (CMA, SCM, UCM)
ADDRESS = harness.ADDRESSES[0]  # of node 0
DTEST_PORT = 15828  # of the connection by which dtest's programs find each other
DAPLTEST_PORT = 45278
SECONDS = 100
ATTEMPTS = 20
LID_OF_HOSTS = pathlib.Path(__file__).resolve().parent / "programs/lid_of_hosts.c"
TELL_UTILITY = {"DAPL_DBG_TYPE": "0x21"}  # ucm: "UCM open", with its queue pair
TELL_REFUSALS = {"DAPL_DBG_TYPE": "0x10001"}  # errors, warnings about connections
# Nobody listens yet: scm; DAT_CONNECTION_EVENT_NON_PEER_REJECTED of cma, and ucm's event for it.
TOO_EARLY = r"Connection refused|non-consumer REJ, reason=8|!conn established: 0x(4003|40003)\b"
REJECTED_BY_CMA = r"non-consumer REJ|!conn established: 0x4003"

OPERATIONS = ["client", "SR", "256", "server", "RW", "4096", "server", "RR", "4096", "client", "SR", "4096", "server",
              "SR", "256"]
TRANSACTION = ["-i", "100", "-t", "2", "-w", "2", "-V", *OPERATIONS]
# Polling, reserved service points, sends that are reaped with a receive, messages of segments.
TRANSACTIONS = (TRANSACTION, ["-P", *TRANSACTION], ["-r", *TRANSACTION],
                [*TRANSACTION, "client", "SR", "1024", "3", "-f", "server", "SR", "2048", "2", "-f"])
WRITTEN = r"Total RDMA Write *: +1\.6"
ENDLESS = ["-i", "100000000", "-t", "1", "-w", "1", "client", "SR", "4096", "server", "SR", "4096"]
BROKEN = r"Test Error: (Send|Recv)-reaping DTO problem, status = FAILURE"
# dapltest -T P has RDMA only; of reads it has no more at a time than the HCA's 16.
PERFORMANCE = [(operation, mode, depth) for operation in ("RW", "RR") for mode in ("blocking", "polling")
               for depth in (1, 8, 64)]
READS = 16
# Cases of each feature of dapltest -T F. Left out, for the reasons in docs/status.md: mem 2; queryinfo 5, 9, 13, 15.
FEATURES = {"hwconn": range(4), "endpoint": range(3), "pz": range(3), "mem": (0, 1, 3, 4),
            "queryinfo": (0, 1, 2, 3, 4, 6, 7, 8, 10, 11, 12, 14, 16, 17), "connmgt": range(2)}
# Each ends at dapltest's own maximum of 1000, rpost at the receives of an endpoint, size_lmr at the largest size of its
# arithmetic.
LIMITS = {"limit_ia": "IAs opened: 1000$", "limit_pz": "PZs created: 1000$", "limit_cno": "CNOs created: 1000$",
          "limit_evd": "EVDs created: 1000$", "limit_ep": "EPs created: 1000$", "limit_rsp": "RSPs created: 1000$",
          "limit_psp": "PSPs created: 1000$", "limit_lmr": "LMRs created: 1000$",
          "limit_rpost": "recv buffers posted per EP: [1-9]", "limit_size_lmr": "LMR of 0x40000000 bytes OK"}
# Over cma each endpoint has a random TCP port of the range that dapltest's service points are in; over scm these are
# TCP ports of the machine, of which other programs have some.
TAKEN = r"dat_{}_create #\d+ fails: DAT_CONN_QUAL_IN_USE"
BY_TCP_PORTS = {f"limit_{kind}": f"{LIMITS[f'limit_{kind}']}|{TAKEN.format(kind)}" for kind in ("rsp", "psp")}
NOT_FREED = (r"dat_\w+_(free|close|reset|disconnect)\b.* (fails|error)", "error occurs", "bogus", "No memory|no memory")


def address_for(provider):
    """scm listens at the first address of the machine that is not on a loopback interface, if there is one."""
    if provider != SCM:
        return ADDRESS
    listing = subprocess.run(["ip", "-4", "-o", "address", "show", "up"], capture_output=True, text=True, check=True)
    found = [line.split() for line in listing.stdout.splitlines()]
    return next((words[3].split("/")[0] for words in found if words[1] != "lo"), ADDRESS)


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


class Server:
    """dapltest's on node 0, and how its clients on node 1 find it."""

    def __init__(self, fabric, provider):
        self.fabric, self.provider = fabric, provider
        self.program = fabric.start(["stdbuf", "-oL", "-eL", "dapltest", "-T", "S", "-D", provider], 0,
                                    env=TELL_UTILITY if provider == UCM else None)
        self.program.wait_for_text("Service Point Ready", SECONDS)
        self.host, self.env = (address_for(provider), None) if provider != UCM else self.host_for_ucm()

    def host_for_ucm(self):
        number = int(re.search(r"UCM open: .* qpn ([0-9a-f]+)", self.program.text())[1], 16)
        library = harness.build_program(self.fabric.runtime, LID_OF_HOSTS, "-shared", "-fPIC", libraries=())
        state = self.fabric.state()
        lid = state["nodes"][0]["hcas"][0]["ports"][0]["lid"]
        return ipaddress.IPv4Address(number), {"LD_PRELOAD": str(library), "LID_OF_HOSTS": str(lid)}

    def client_words(self, letter, options=()):
        return ["dapltest", "-T", letter, "-D", self.provider, "-s", self.host, *options]

    def start(self, letter, options):
        return self.fabric.start(self.client_words(letter, options), 1, env=self.env)

    def run(self, letter, options, *said):
        """The client ends with 0 in any case."""
        done = self.fabric.run(self.client_words(letter, options), 1, SECONDS, env=self.env)
        return done.require(*said, "Client Exiting", forbid=("rror", "fail", "Cannot", "Warning"))

    def quit(self):
        self.run("Q", ())
        self.fabric.end(self.program, SECONDS).require("Exiting")


@contextlib.contextmanager
def dapltest_server(fabric, provider):
    server = Server(fabric, provider)
    try:
        yield server
        server.quit()
    finally:
        if server.program.running():
            server.program.kill()


def transactions(fabric, provider):
    with dapltest_server(fabric, provider) as server:
        for options in TRANSACTIONS:
            server.run("T", options, WRITTEN)


def performance(fabric, provider):
    with dapltest_server(fabric, provider) as server:
        for operation, mode, depth in PERFORMANCE:
            used = min(depth, READS) if operation == "RR" else depth
            server.run("P", ["-i", "1024", "-p", depth, "-m", mode[0], operation, "8192", "2"],
                       rf"^ *Mode +: {mode}$", rf"^raw: {operation}, 1024, 8192, 2, {used},", "^ *1024 posts without")


def limits(fabric, provider):
    expected = LIMITS if provider == UCM else {**LIMITS, **BY_TCP_PORTS}
    done = fabric.run(["dapltest", "-T", "L", "-D", provider, "-w", "8", *LIMITS], 1, SECONDS)
    done.require(*[rf"^Limitation Test +{name}$" for name in expected], *expected.values(), forbid=NOT_FREED)
    if provider == CMA and re.search(TAKEN.format("[rp]sp"), done.text):
        fabric.softib("trace", "--fabric", fabric.name).require(r"TCP port \d+ belongs to dapltest")


def feature(fabric, provider, name):
    """One program without a peer; a case that fails may print PASS all the same."""
    cases = [f"case{number}" for number in FEATURES[name]]
    text = fabric.run(["dapltest", "-T", "F", "-D", provider, "-s", address_for(provider), "-f", name, *cases], 1,
                      SECONDS).require(forbid=("failed in file", "Result: (?!PASS)", "DAPL ERR")).text
    if text.count("Result: PASS") != len(cases):
        raise Failed(f"{len(cases)} cases were to pass:\n{harness.tail(text, 60)}")


@contextlib.contextmanager
def killed_in_the_middle(victim, server):
    """Yields the client of a transaction that does not end by itself, when `victim` of the two is dead."""
    client = server.start("T", ENDLESS)
    try:
        server.fabric.wait_for_packets(client, SECONDS)
        os.killpg((server.program if victim == "server" else client).pid, signal.SIGKILL)
        yield client
    finally:
        client.kill()


def server_dies(fabric, provider):
    server = Server(fabric, provider)
    with killed_in_the_middle("server", server) as client:
        fabric.end(client, SECONDS).require(BROKEN, "Client Exiting")
    server.program.kill()


def client_dies(fabric, provider):
    """The server goes on with the next client."""
    with dapltest_server(fabric, provider) as server:
        with killed_in_the_middle("client", server):
            server.program.wait_for_text(BROKEN, SECONDS)
            server.program.wait_for_text("Transaction Test Finished for this client", SECONDS)
        server.run("T", TRANSACTION, WRITTEN)


def cases():
    for provider in PROVIDERS:
        yield f"dtest: {provider}", passes, ("dtest", provider, ["-B", "10"])
        yield f"dtestx, immediate data and atomics: {provider}", passes, ("dtestx", provider)
        yield f"dtestcm, 100 connections: {provider}", passes, ("dtestcm", provider, ["-c", "100"], "ALL 100 CONNECTED")
        yield f"dapltest, transactions: {provider}", transactions, (provider,)
        yield f"dapltest, performance: {provider}", performance, (provider,)
        yield f"dapltest, limits: {provider}", limits, (provider,)
        for name in FEATURES:
            yield f"dapltest, features, {name}: {provider}", feature, (provider, name)
        if provider == UCM:  # nobody tells of a death: a side that waits for a message then waits without end
            continue
        yield f"dapltest: kill -9 of the server in the middle: {provider}", server_dies, (provider,)
        yield f"dapltest: kill -9 of the client in the middle: {provider}", client_dies, (provider,)


def test(report, user):
    harness.need_program("dtest")
    report.may_take_some(2)
    for port in (DTEST_PORT, DAPLTEST_PORT):
        harness.need_tcp_port(port)
    with harness.Fabric(nodes=2, user=user, config=harness.WITH_ADDRESSES) as fabric:
        for name, body, words in cases():
            if report.wanted(name):
                with report.case(name):
                    body(fabric, *words)


if __name__ == "__main__":
    harness.main("dapl", test)
