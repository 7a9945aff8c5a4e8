# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Nodes with an ib0 (`softib run --net`), in the mode that the words of the test name: --mode datagram, connected."""
import json
import sys

import harness
from harness import Failed, Skipped

MODE = "connected" if "connected" in sys.argv[1:] else "datagram"
MTUS = {"datagram": 2044, "connected": 65520}
MTU = MTUS[MODE]
ENV = {}  # of all programs
SECONDS = 60
NET = (f"--net={MODE}",)


class Nodes:
    """A fabric whose nodes each have a program that holds their network."""

    def __init__(self, fabric):
        self.fabric = fabric
        self.holders = []

    def hold(self, *nodes):
        """Skips where this machine has no networks of nodes."""
        for node in nodes:
            holder = self.start(["sh", "-c", "echo up; exec sleep 600"], node)
            self.holders.append(holder)
            try:
                holder.wait_for_text("up", SECONDS)
            except Failed as failure:
                if "no network" in str(failure) or "not permitted" in str(failure):
                    raise Skipped(f"no network of nodes here: {failure}") from failure
                raise
        return self

    def start(self, words, node, env=None, more=NET, **settings):
        return self.fabric.start(words, node, env={**ENV, **(env or {})}, more=more, **settings)

    def run(self, words, node, seconds=SECONDS, **settings):
        return self.fabric.end(self.start(words, node, **settings), seconds)

    def output(self, words, node):
        return self.run(words, node).require().text

    def ipv4(self, node, interface="ib0"):
        shown = json.loads(self.output(["ip", "-j", "addr", "show", interface], node))
        return next(one["local"] for one in shown[0]["addr_info"] if one["family"] == "inet")

    def addresses(self, node):
        """Those of ib0, as `ip` shows them."""
        return json.loads(self.output(["ip", "-j", "addr", "show", "ib0"], node))[0]["addr_info"]

    def link_local(self, node):
        return next(one["local"] for one in self.addresses(node) if one["scope"] == "link")

    def link(self, node):
        return json.loads(self.output(["ip", "-j", "link", "show", "ib0"], node))[0]

    def report(self):
        return json.loads(self.fabric.softib("ipoib", "show", "--json", "--fabric", self.fabric.name).require().text)

    def interface(self, node):
        """The driver's report of ib0."""
        driver = next(one["driver"] for one in self.report() if one["node"] == f"node{node}")
        return next(one for one in driver["interfaces"] if one["name"] == "ib0")

    def ping(self, node, address, *options, count=3):
        return self.run(["ping", "-c", count, "-W", 5, "-i", 0.2, *options, address], node)

    def serve(self, words, node, port, **settings):
        """A server that listens at a TCP port."""
        server = self.start(words, node, **settings)
        harness.wait_until(lambda: f":{port} " in self.run(["ss", "-Hltn"], node).text or not server.running(), SECONDS,
                           f"{server.describe()} to listen; it says:\n{harness.tail(server.text())}")
        if not server.running():
            raise Failed(f"{server.describe()} ended:\n{harness.tail(server.text())}")
        return server
