#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""libfabric's verbs provider, unmodified: fi_info, fi_pingpong over each kind of endpoint, with its check of the data.

libfabric_test.py [--as root|nobody] [--only REGEX] [--link-layer ethernet]
"""
import os
import signal

import harness
from harness import Failed

ENDPOINTS = (("msg", "verbs"), ("rdm", "verbs;ofi_rxm"), ("rdm", "verbs;ofi_rxd"), ("dgram", "verbs"))
ADDRESS = "127.77.0.1"
SECONDS = 60


def start(fabric, endpoint, options):
    """A server that waits for its client, and the client's words."""
    kind, provider = endpoint
    port = harness.free_port()
    words = ["fi_pingpong", "-p", provider, "-e", kind, *options]
    server = fabric.start([*words, "-B", port], 0)
    harness.wait_until(lambda: harness.is_listening(server.pid, port) or not server.running(), SECONDS,
                       f"{server.describe()} to listen")
    return server, [*words, "-P", port, ADDRESS]


def sizes(text):
    """The sizes that a table of fi_pingpong has, with the number of messages."""
    rows = [line.split() for line in text.splitlines()]
    return [row[0] for row in rows if len(row) == 8 and row[1] == row[2].lstrip("=")]


def test(report, user):
    harness.need_program("fi_pingpong")
    with harness.Fabric(nodes=2, user=user) as fabric:
        with report.case("fi_info lists each kind of endpoint, at the address of the node"):
            text = fabric.run(["fi_info", "-p", "verbs", "-v"], 1, SECONDS).require().text
            for wanted in ("FI_EP_MSG", "FI_EP_RDM", "FI_EP_DGRAM", "verbs;ofi_rxm", "verbs;ofi_rxd",
                           "src_addr: fi_sockaddr_in://127.77.0.2:0", "name: softib0"):
                if wanted not in text:
                    raise Failed(f"no {wanted!r} in:\n{harness.tail(text)}")
        for endpoint in ENDPOINTS:
            with report.case(f"fi_pingpong {endpoint[0]}, {endpoint[1]}: all sizes, checked") as remarks:
                server, words = start(fabric, endpoint, ["-c", "-S", "all", "-I", "5"])
                client = fabric.run(words, 1, SECONDS).require()
                both = client.text, fabric.end(server, SECONDS).require().text
                least = 20 if endpoint[0] == "dgram" else 35
                if not least <= len(sizes(both[0])) == len(sizes(both[1])):
                    raise Failed(f"sizes: {sizes(both[0])}, {sizes(both[1])}:\n{harness.tail(both[0])}")
                remarks.append(f"{len(sizes(both[0]))} sizes to {sizes(both[0])[-1]}")
        for victim in ("server", "client"):
            with report.case(f"fi_pingpong msg: kill -9 of the {victim} in the middle"):
                server, words = start(fabric, ENDPOINTS[0], ["-I", "100000000", "-S", "65536"])
                client = fabric.start(words, 1)
                fabric.wait_for_packets(client, SECONDS)
                dead, other = (server, client) if victim == "server" else (client, server)
                os.killpg(dead.pid, signal.SIGKILL)
                if fabric.end(other, SECONDS).code in (0, None):
                    raise Failed(f"{other.describe()} did not notice:\n{harness.tail(other.text())}")
                dead.kill()


if __name__ == "__main__":
    harness.main("libfabric", test)
