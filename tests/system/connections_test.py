#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Connections in words: `softib connections`, and what `softib trace` and `softib explain` say about those that fail.

connections_test.py [--as root|nobody] [--only REGEX] [--link-layer ethernet]
"""
import contextlib
import json
import re
import signal

import harness
from harness import Failed

CONFIG = """[[node]]
name = "node0"
addresses = ["127.77.0.1"]
[[node]]
name = "node1"
addresses = ["127.77.0.2"]
"""
SERVER = "127.77.0.1"
SECONDS = 40
FOR_LONG = ["-C", "100000000"]


def said(fabric, *words, code=0):
    return fabric.softib(*words, "--fabric", fabric.name).require(code=code).text


def listed(fabric, *options, **wanted):
    """Rows of `softib connections --json` that have these values."""
    return [one for one in json.loads(said(fabric, "connections", "--json", *options))
            if all(one.get(key) == value for key, value in wanted.items())]


def wait_for(fabric, program, what, *options, **wanted):
    def rows():
        return listed(fabric, *options, pid=program.pid, **wanted)

    harness.wait_until(lambda: rows() or not program.running(), SECONDS, f"{program.describe()}: {what}")
    found = rows()
    if not found:
        raise Failed(f"{program.describe()} ended, or is never {what}:\n{harness.tail(program.text())}")
    return found[0]


def server(fabric, port, *words):
    one = fabric.start(["rping", "-s", "-a", SERVER, "-p", str(port), *words], 0)
    wait_for(fabric, one, "listening", state="listening")
    return one


def client(fabric, port, *words):
    return fabric.start(["rping", "-c", "-a", SERVER, "-p", str(port), *words], 1)


@contextlib.contextmanager
def ending(*programs):
    try:
        yield
    finally:
        for one in programs:
            one.kill()


@contextlib.contextmanager
def restored(fabric, *words):
    try:
        yield
    finally:
        said(fabric, *words)


def expect_line(fabric, pattern):
    lines = said(fabric, "trace").splitlines()
    if not any(re.search(pattern, line) for line in lines):
        raise Failed(f"no line of the trace matches {pattern}:\n" + "\n".join(lines[-10:]))


def expect(text, *patterns):
    for pattern in patterns:
        if not re.search(pattern, text):
            raise Failed(f"{pattern} is not in\n{text}")


def listing(fabric, report):
    with report.case("a connection has two ends"):
        passive = server(fabric, 7471)
        active = client(fabric, 7471, *FOR_LONG)
        with ending(active, passive):
            mine = wait_for(fabric, active, "established", state="established")
            other = wait_for(fabric, passive, "established", state="established")
            listener = wait_for(fabric, passive, "listening", state="listening")
            assert mine["local"] == other["peer"] and mine["peer"] == other["local"] == f"{SERVER}:7471"
            assert mine["qpn"] == other["peer_qpn"] and mine["peer_qpn"] == other["qpn"]
            assert mine["other_end"] == {"node": "node0", "program": "rping", "pid": passive.pid}
            assert other["other_end"] == {"node": "node1", "program": "rping", "pid": active.pid}
            assert mine["hca"] == other["hca"] == "softib0" and mine["port"] == 1
            assert mine["service_id"] == other["service_id"] == listener["service_id"]
            assert mine["age_ms"] >= 0 and mine["qp_type"] == "RC" and "waits_for" not in mine
            assert listener["backlog"] == 3 and listener["backlog_used"] == 0
            page = said(fabric, "connections")
            expect(page, rf"(?m)^listening +TCP +{SERVER}:7471 +\* +rping \(pid {passive.pid}\)$",
                   rf"(?m)^established +TCP +{SERVER}:7471 +{mine['local']} +rping \(pid {passive.pid}\)$",
                   rf"QP {mine['qpn']}; peer: rping \(pid {passive.pid}\) on node0, QP\s+{other['qpn']}")
            assert "established" not in said(fabric, "connections", "--listen")
            expect(said(fabric, "status"), r"connections: 1 listening, 2 established \(`softib connections`\)")
        harness.wait_until(lambda: not listed(fabric, "--all"), SECONDS, "the ids to go with their programs")
        expect(said(fabric, "connections"), "no listeners or connections on fabric")
    with report.case("a member of a multicast group"):
        member = fabric.start(["mckey", "-m", "239.1.2.3", "-b", SERVER], 0)
        with ending(member):
            row = wait_for(fabric, member, "a member", port_space="UDP")
            harness.wait_until(lambda: listed(fabric, pid=member.pid)[0].get("groups"), SECONDS, "its group")
            assert row["qp_type"] == "UD"
            expect(said(fabric, "connections"), r"member of\s+(ff12:|239\.)")
    with report.case("options are checked"):
        assert listed(fabric, "--listen") == []
        expect(said(fabric, "connections", "--listen", "--all", code=2), "exclude each other")


def stopped(fabric, report):
    with report.case("a server that does not take its requests"):
        passive = server(fabric, 7472)
        with ending(passive):
            passive.process.send_signal(signal.SIGSTOP)
            clients = [client(fabric, 7472, "-C", "1") for _ in range(3)]
            with ending(*clients):
                for one in clients:
                    row = wait_for(fabric, one, "waiting", state="REQ sent", cm_state="REQ sent, MRA received")
                    # The MRA answers the first copy of the REQ.
                    assert row["waits_for"] == "REQ (sent 2 times), the peer has it and needs longer", row
                    assert row["times_sent"] == 2 and row["retries_left"] > 0
                listener = listed(fabric, "--listen", pid=passive.pid)[0]
                assert listener["backlog_used"] == 3 and listener["events_waiting"] == 3, listener
                waiting = listed(fabric, pid=passive.pid, state="REQ received")
                assert len(waiting) == 3 and waiting[0]["waits_for"] == "its program to take the request", waiting
                expect(said(fabric, "connections"), "3 of 3 requests wait", "waits for its program to take the request")
                # The next one is refused, and the line names the reason instead of the program's will.
                refused = fabric.run(["rping", "-c", "-a", SERVER, "-p", "7472", "-C", "1"], 1)
                expect(refused.text, "RDMA_CM_EVENT_REJECTED, error 28")
                expect_line(fabric, rf"rping \(pid {passive.pid}\) on node0: the backlog of TCP port 7472 is full: 3 "
                                    r"requests wait until the program takes them; refused: 127.77.0.2:\d+ \(node1\)")
                passive.process.send_signal(signal.SIGCONT)
                # rping takes all requests and accepts one. It keeps the id of one only, so it may accept one and then
                # disconnect another, and wait without end.
                harness.wait_until(lambda: listed(fabric, state="established")
                                   or any(not one.running() for one in clients), SECONDS, "a request to be accepted")


def in_order(fabric, report):
    with report.case("programs that end as they should leave no line in the trace"):
        before = said(fabric, "trace")
        for words in (["rping", "-C", "3"], ["ucmatose", "-c", "5", "-C", "5"], ["udaddy", "-c", "3", "-C", "5"]):
            name, *options = words
            own, to = (["-s", "-a"], ["-c", "-a"]) if name == "rping" else (["-b"], ["-s"])
            passive = fabric.start([name, *own, SERVER, *options], 0)
            with ending(passive):
                wait_for(fabric, passive, "listening", state="listening")
                fabric.run([name, *to, SERVER, *options], 1, SECONDS)
                fabric.end(passive, SECONDS)
        after = said(fabric, "trace")
        if after != before:
            raise Failed(f"new lines:\n{after}\nbefore:\n{before}")


def ends_of_programs(fabric, report):
    with report.case("a server that is killed before it accepts has refused nothing"):
        passive = server(fabric, 7475)
        passive.process.send_signal(signal.SIGSTOP)
        active = client(fabric, 7475, "-C", "1")
        with ending(active, passive):
            wait_for(fabric, active, "waiting", state="REQ sent", cm_state="REQ sent, MRA received")
            passive.kill()
            expect(fabric.end(active, SECONDS).text, "RDMA_CM_EVENT_REJECTED, error 28")
        expect_line(fabric, rf"rping \(pid {active.pid}\) on node1: 127.77.0.1:7475 \(node0\) refuses the connection: rping "
                            rf"\(pid {passive.pid}\) ended, or closed its event channel, before the connection was "
                            r"established \(reason 28, consumer reject\)")
        told = [line for line in said(fabric, "trace").splitlines() if f"pid {active.pid}" in line]
        assert len(told) == 1, f"one event has several lines: {told}"


def failures(fabric, report):
    def run(words, node=1):
        return fabric.run(words, node).text

    with report.case("nobody listens"):
        passive = server(fabric, 7473)
        with ending(passive):
            expect(run(["rping", "-c", "-a", SERVER, "-p", "7999", "-C", "1"]), "RDMA_CM_EVENT_REJECTED, error 8")
            expect_line(fabric, r"no listener for TCP port 7999 on node0 \(127.77.0.1\), wanted by rping \(pid \d+\) at "
                                r"127.77.0.2:\d+ \(node1\); listening there: 7473 "
                                rf"\(rping, pid {passive.pid}\) at 127.77.0.1")
            expect(said(fabric, "explain"), "no listener for TCP port 7999")
            taken = run(["rping", "-s", "-a", SERVER, "-p", "7473"], 0)
            expect(taken, "rdma_bind_addr: Address already in use")
            expect_line(fabric, rf"TCP port 7473 belongs to rping \(pid {passive.pid}\) already, which listens on "
                                r"127.77.0.1:7473")
    with report.case("a service that nobody has, for datagrams"):
        expect(run(["udaddy", "-s", SERVER, "-c", "1"]), "RDMA_CM_EVENT_UNREACHABLE, error.* 1")
        expect_line(fabric, r"no listener for UDP port 7174 on node0 \(127.77.0.1\), wanted by udaddy \(pid \d+\)")
    with report.case("addresses that lead nowhere"):
        expect(run(["rping", "-c", "-a", "10.1.2.3", "-C", "1"]), "RDMA_CM_EVENT_ADDR_ERROR, error -101")
        expect_line(fabric, r"rping \(pid \d+\) on node1: cannot reach 10.1.2.3:7174: 10.1.2.3 belongs to no node of this "
                            r"fabric; nodes have 127.77.0.1 \(node0\), 127.77.0.2 \(node1\)$")
        expect(run(["rping", "-s", "-a", "127.77.0.2"], 0), "Cannot assign requested address")
        expect_line(fabric, r"rping \(pid \d+\) on node0: cannot bind: 127.77.0.2 is not an address of node0, which has "
                            r"127.77.0.1$")
    with report.case("a port that is down, an HCA that sleeps"):
        for before, after, words in (
                (["port", "down", "--node", "0"], ["port", "up", "--node", "0"], "is down"),
                (["power", "sleep", "--node", "0"], ["power", "resume", "--node", "0"], "sleeps")):
            with restored(fabric, *after):
                said(fabric, *before)
                expect(run(["rping", "-c", "-a", SERVER, "-C", "1"]), "RDMA_CM_EVENT_ADDR_ERROR, error -113")
                expect_line(fabric, r"rping \(pid \d+\) on node1: cannot reach 127.77.0.1:7174 \(node0\): port 1 of "
                                    rf"softib0 of node0 {words}$")
    with report.case("what programs print is explained"):
        expect(said(fabric, "explain", "RDMA_CM_EVENT_REJECTED,", "error", "8"), "invalid service ID", "to do:")
        expect(said(fabric, "explain", "-110"), "ETIMEDOUT")


def test(report, user):
    harness.need_program("rping")
    with harness.Fabric(nodes=2, user=user, config=CONFIG) as fabric:
        for part in (in_order, listing, stopped, ends_of_programs, failures):
            part(fabric, report)


if __name__ == "__main__":
    harness.main("connections", test)
