# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Changes of the subnet under IP over InfiniBand: P_Keys that go, packets meanwhile, load of the subnet administrator.
`nodes` is that of ipoib.py."""
import harness
from harness import Failed

SECONDS = 60


def change_partition(nodes, what, pkey, node):
    nodes.fabric.softib("partition", what, pkey, "--node", node, "--fabric", nodes.fabric.name).require()


def child_has_carrier(nodes, node):
    return "LOWER_UP" in nodes.run(["ip", "-br", "link", "show", "ib0.8001"], node).text


def partition_goes_and_comes(nodes, peer):
    """peer: the address of node 1 over ib0.8001 of node 0."""
    nodes.ping(0, peer, "-6").require(" 0% packet loss")
    change_partition(nodes, "remove", "0x8001", 1)
    harness.wait_until(lambda: not child_has_carrier(nodes, 1), SECONDS, "the carrier to go")
    if nodes.ping(0, peer, "-6", count=1).code == 0:
        raise Failed("a ping came through without the P_Key")
    nodes.ping(0, nodes.ipv4(1)).require(" 0% packet loss")
    nodes.fabric.softib("trace", "--fabric", nodes.fabric.name).require(
        r"node1, softib0.*IP over InfiniBand has no carrier: its port does not have P_Key 0x8001 any more")
    # Another one has its index when it comes back.
    change_partition(nodes, "add", "0x8002", 1)
    change_partition(nodes, "add", "0x8001", 1)
    harness.wait_until(lambda: child_has_carrier(nodes, 1), SECONDS, "the carrier to come")
    harness.wait_until(lambda: nodes.ping(0, peer, "-6", count=1).code == 0, SECONDS, "a ping to come through")
    harness.wait_until(lambda: nodes.ping(1, f"{nodes.link_local(0)}%ib0.8001", "-6", count=1).code == 0, SECONDS,
                       "a ping back")


class SteadyPings:
    """A hundred a second, each with its answer in the output."""

    def __init__(self, nodes, node, address):
        self.program = nodes.start(["ping", "-n", "-i", "0.01", address], node)

    def answers(self):
        return self.program.text().count(" bytes from ")

    def go_on(self, count):
        least = self.answers() + count
        harness.wait_until(lambda: self.answers() >= least, SECONDS, f"{count} more answers to pings")


def administrator_load(nodes):
    """Requests to the subnet administrator so far, and for how many things: paths and memberships."""
    interfaces = [interface for one in nodes.report() for interface in one["driver"]["interfaces"]]
    requests = sum(one["counters"]["path_queries"] + one["counters"]["join_requests"] for one in interfaces)
    return requests, sum(len(one["paths"]) + len(one["groups"]) for one in interfaces)
