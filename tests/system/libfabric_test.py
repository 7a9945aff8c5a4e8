#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""libfabric's verbs provider, unmodified: fi_info, fi_pingpong over each kind of endpoint, with its check of the data;
and a program of ours (programs/fabric_check.c) that checks what else an endpoint does: tags, RMA, buffers of many.

libfabric_test.py [--as root|nobody] [--only REGEX] [--link-layer ethernet]
"""
import os
import pathlib
import signal

import harness
from harness import Failed

ENDPOINTS = (("msg", "verbs"), ("rdm", "verbs;ofi_rxm"), ("rdm", "verbs;ofi_rxd"), ("dgram", "verbs"))
ADDRESS = harness.ADDRESSES[0]
SECONDS = 60
PATIENCE = 10
TRIES = 4
LONG_SECONDS = 300  # rxd acknowledges its datagrams itself, which needs both sides at once
PEER_IS_GONE = 3
# The lines of fabric_check about an endpoint of each type.
MESSAGES = (r"^messages: 192, to 4194304 bytes$", r"^injected: [1-9]\d*, with data$", r"^reads and writes: 576$")
TRANSFERS = {"msg": MESSAGES,
             "rdm": (*MESSAGES, "^tagged: 160$", r"^messages to buffers of many: 200, \d+ buffers used$"),
             "dgram": ("^messages: 102, to 4096 bytes$", MESSAGES[1])}


def start(fabric, endpoint, options):
    """A server that waits for its client, and the client's words."""
    kind, provider = endpoint
    port = harness.free_port()
    words = ["stdbuf", "-oL", "fi_pingpong", "-p", provider, "-e", kind, *options]
    server = fabric.start([*words, "-B", port], 0)
    harness.wait_until(lambda: harness.is_listening(server.pid, port) or not server.running(), SECONDS,
                       f"{server.describe()} to listen")
    return server, [*words, "-P", port, ADDRESS]


def sizes(text):
    """The sizes that a table of fi_pingpong has, with the number of messages."""
    rows = [line.split() for line in text.splitlines()]
    return [row[0] for row in rows if len(row) == 8 and row[1] == row[2].lstrip("=")]


# libfabric 1.17 spins without end when it closes a connection of rxm that has some segments of a message, but not all:
# it takes them off another list than the one that it empties.
WITHOUT_SEGMENTS = {"FI_OFI_RXM_SAR_LIMIT": "0"}


class Checks:
    """fabric_check, of a server and a client."""

    def __init__(self, fabric, folder):
        source = pathlib.Path(__file__).resolve().parent / "programs/fabric_check.c"
        self.fabric, self.program = fabric, harness.build_program(folder, source, libraries=("-lfabric",))

    def start(self, endpoint, options=(), env=None):
        kind, provider = endpoint
        port = harness.free_port()
        both = [provider, kind, ADDRESS, port, *options]
        server = self.fabric.start([self.program, "server", *both], 0, env=env)
        harness.wait_until(lambda: harness.is_listening(server.pid, port) or not server.running(), SECONDS,
                           f"{server.describe()} to listen; it says:\n{harness.tail(server.text())}")
        return server, self.fabric.start([self.program, "client", *both], 1, env=env)

    def transfers(self, endpoint):
        """All that the endpoint offers, which the two sides must agree about."""
        server, client = self.start(endpoint)
        texts = [self.fabric.end(one, LONG_SECONDS).require(*TRANSFERS[endpoint[0]]).text for one in (client, server)]
        return "; ".join(texts[0].splitlines())

    def dies(self, endpoint, victim):
        """The survivor is told by its connection, or by what it sends to the dead: never does it wait without end."""
        server, client = self.start(endpoint, ["endless"], WITHOUT_SEGMENTS)
        self.fabric.wait_for_packets(client, SECONDS)
        dead, other = (server, client) if victim == "server" else (client, server)
        os.killpg(dead.pid, signal.SIGKILL)
        end = self.fabric.end(other, SECONDS).require("the peer is gone", code=PEER_IS_GONE)
        dead.kill()
        return end.text.strip().splitlines()[-1].split("gone: ")[-1]


def lists_endpoints(fabric):
    text = fabric.run(["fi_info", "-p", "verbs", "-v"], 1, SECONDS).require().text
    for wanted in ("FI_EP_MSG", "FI_EP_RDM", "FI_EP_DGRAM", "verbs;ofi_rxm", "verbs;ofi_rxd",
                   "src_addr: fi_sockaddr_in://127.77.0.2:0", "name: softib0"):
        if wanted not in text:
            raise Failed(f"no {wanted!r} in:\n{harness.tail(text)}")


# rxm of libfabric 1.17 looks at the events of its connections between two looks at its completions. If it is not
# scheduled in between, it closes a connection that its peer has ended and loses the messages of which it has not taken
# the completions: a queue pair that is destroyed takes them along, as on adapters. fi_pingpong then waits for the last
# message of its peer without end.
LOSES_THE_LAST = "verbs;ofi_rxm"
LAST_SIZE = "6m"


def waits_for_lost_message(program):
    """Whether a fi_pingpong that has done all sizes does not end."""
    harness.wait_until(lambda: not program.running() or LAST_SIZE in sizes(program.text()), SECONDS,
                       f"{program.describe()} to do all sizes")
    try:
        harness.wait_until(lambda: not program.running(), PATIENCE, "it to end")
    except Failed:
        return True
    return False


def ping_pong(fabric, endpoint):
    for _ in range(TRIES):
        server, words = start(fabric, endpoint, ["-c", "-S", "all", "-I", "5"])
        sides = fabric.start(words, 1), server
        waiting = [side for side in sides if endpoint[1] == LOSES_THE_LAST and waits_for_lost_message(side)]
        if not waiting:
            break
        if len(waiting) == len(sides):
            raise Failed(f"both sides have done all sizes, and neither ends:\n{harness.tail(server.text())}")
        for side in sides:  # the one that waits is killed, the other has ended with its work done
            if side in waiting:
                side.kill()
            else:
                fabric.end(side, SECONDS).require()
    else:
        raise Failed(f"{waiting[0].describe()} waits for its peer's last message, the {TRIES}th time in a row")
    both = [fabric.end(side, SECONDS).require().text for side in sides]
    least = 20 if endpoint[0] == "dgram" else 35
    if not least <= len(sizes(both[0])) == len(sizes(both[1])):
        raise Failed(f"sizes: {sizes(both[0])}, {sizes(both[1])}:\n{harness.tail(both[0])}")
    return f"{len(sizes(both[0]))} sizes to {sizes(both[0])[-1]}"


def ping_pong_dies(fabric, victim):
    server, words = start(fabric, ENDPOINTS[0], ["-I", "100000000", "-S", "65536"])
    client = fabric.start(words, 1)
    fabric.wait_for_packets(client, SECONDS)
    dead, other = (server, client) if victim == "server" else (client, server)
    os.killpg(dead.pid, signal.SIGKILL)
    if fabric.end(other, SECONDS).code in (0, None):
        raise Failed(f"{other.describe()} did not notice:\n{harness.tail(other.text())}")
    dead.kill()


def cases(fabric, checks):
    yield "fi_info lists each kind of endpoint, at the address of the node", lists_endpoints, (fabric,)
    for endpoint in ENDPOINTS:
        yield f"fi_pingpong {endpoint[0]}, {endpoint[1]}: all sizes, checked", ping_pong, (fabric, endpoint)
    for victim in ("server", "client"):
        yield f"fi_pingpong msg: kill -9 of the {victim} in the middle", ping_pong_dies, (fabric, victim)
    for endpoint in ENDPOINTS:
        name = f"fabric_check {endpoint[0]}, {endpoint[1]}"
        yield f"{name}: every byte of each kind of transfer", checks.transfers, (endpoint,)
        for victim in ("server", "client"):
            yield f"{name}: kill -9 of the {victim}", checks.dies, (endpoint, victim)


def test(report, user):
    harness.need_program("fi_pingpong")
    report.may_take_some(2)
    folder = user.make_dir("softib-fabric-")
    folder.chmod(0o755)
    with harness.Fabric(nodes=2, user=user, config=harness.WITH_ADDRESSES) as fabric:
        for name, body, words in cases(fabric, Checks(fabric, folder)):
            if report.wanted(name):
                with report.case(name) as remarks:
                    remarks.append(body(*words) or "")


if __name__ == "__main__":
    harness.main("libfabric", test)
