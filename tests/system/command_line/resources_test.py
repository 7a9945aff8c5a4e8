#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""`softib resources`: what it shows of programs that work, and the hint for each mistake after which a program waits
without an end (waiting.c makes them). `softib wait`: who listens, and why nobody does."""
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness
from harness import Failed, build_program, free_port, wait_until

WAITING = {
    "never-armed": r"CQ \d+ has 2 completions to poll and was never armed, .* ibv_req_notify_cq before ibv_get_cq_event",
    "not-armed-again": r"CQ \d+ has 2 completions to poll and is not armed, .* ibv_req_notify_cq after each event",
    "only-solicited": r"CQ \d+ has 2 completions to poll, none of them solicited, .* IBV_SEND_SOLICITED",
    "event-not-read": r"channel \d+ has 1 event that the program has not read: ibv_get_cq_event",
    "not-signaled": r"QP 0x\w+ has carried out 2 requests, .* none was signaled; set IBV_SEND_SIGNALED",
    "not-acknowledged": r"waits until 1 event is acknowledged: call ibv_ack_cq_events",
}


def resources(fabric, *words):
    return json.loads(fabric.softib("resources", "--json", *words, "--fabric", fabric.name).require().text)


def mistakes(report, user, fabric):
    program = build_program(user.make_dir("softib-waiting-"), harness.SOURCE / "tests/system/programs/waiting.c")
    program.parent.chmod(0o755)
    for name, pattern in WAITING.items():
        if not report.wanted(name):
            continue
        with report.case(name):
            running = fabric.start([program, name])
            running.wait_for_text("ready", 30)
            # The destroying call waits a moment after the line.
            hints = wait_until(lambda pid=running.pid: [h for one in resources(fabric, str(pid)) for h in one["hints"]], 10,
                               "a hint")
            if len(hints) != 1 or not re.search(pattern, hints[0]):
                raise Failed(f"not one hint like {pattern!r}: {hints}")
            page = fabric.softib("resources", program.name, "--fabric", fabric.name).require(r"^  hint:").text
            if any(len(line) > 80 for line in page.splitlines()):
                raise Failed(f"longer than 80 columns:\n{page}")
            running.kill()
            wait_until(lambda: not resources(fabric), 10, "softibd to clean up after it")


def a_pair(report, fabric):
    """Both ends of a connection, in both programs' lists."""
    with report.case("both ends of a pair"):
        port = free_port()
        server = fabric.start(["ib_send_lat", "-D", "60", "-p", port], 0)
        fabric.softib("wait", "--listen", port, "--node", 0, "--fabric", fabric.name).require()
        fabric.start(["ib_send_lat", "-D", "60", "-p", port, harness.HOST], 1)

        def connected():
            ends = [(one["node"], qp) for one in resources(fabric, "ib_send_lat") for qp in one["qp"]]
            return ends if len(ends) == 2 and all(qp["state"] == "RTS" and "peer" in qp for _, qp in ends) else None
        (first, one), (second, other) = wait_until(connected, 30, "two queue pairs in RTS")
        if (one["peer_qpn"], other["peer_qpn"]) != (other["qpn"], one["qpn"]) or one["peer"]["node"] != second:
            raise Failed(f"they are no pair: {first} {one}, {second} {other}")
        [mine] = resources(fabric, "--node", "0")
        if mine["pid"] != server.pid or not mine["mr"] or not mine["cq"]:
            raise Failed(f"not the server alone, with its regions and queues: {mine}")
        fabric.softib("resources", "--fabric", fabric.name).require("ib_send_lat .* on node0", "RC RTS", r"  MR +key 0x")
        fabric.softib("resources", "nobody", "--fabric", fabric.name).require('no "nobody" has an HCA')


def listeners(report, fabric):
    wait = ["wait", "--fabric", fabric.name]
    listen = ("import signal, socket, sys; s = socket.create_server(('', int(sys.argv[1]))); "
              "print('ready', flush=True); signal.pause()")
    with report.case("wait for TCP"):
        port = free_port()
        waiter = harness.Program([*fabric.user.prefix, fabric.user.bin / "softib", *wait, "-v", "-l", port],
                                 env=fabric.base_env)
        server = fabric.start(["python3", "-c", listen, port], 1)
        fabric.end(waiter, 30).require(rf"python3 \(pid {server.pid}\) listens on port {port} of node1 \(TCP\)")
        fabric.softib(*wait, "-l", port, "-n", "node1").require(r"^\Z")
        fabric.softib(*wait, "-l", port, "-n", 0, "-t", 0).require(
            rf"nobody listens on port {port} of node 0", rf"python3 \(pid {server.pid}\) listens on it, but on node1", code=1)
        fabric.softib(*wait, "-l", free_port(), "-t", 0).require(rf"listen on {port} on node1 \(python3\)", code=1)
        fabric.softib(*wait, "-l", port, "-n", 9, "-t", 0).require('no node "9"', code=3)
        fabric.softib("wait", "--fabric", "other", "-l", port, "-t", 0).require("did not come up", code=5)
        with harness.Fabric(nodes=1, user=fabric.user, name="other") as other:
            other.softib("wait", "--fabric", "other", "-l", port, "-t", 0).require(
                rf'python3 \(pid {server.pid}\) listens on it, but on fabric "{fabric.name}"', code=1)
    with report.case("wait for librdmacm"):
        port = free_port()
        server = fabric.start(["rping", "-s", "-p", port], 1)
        fabric.softib(*wait, "-v", "-l", port, "-n", 1).require(rf"rping \(pid {server.pid}\) .* \(librdmacm\)")
    for option, how in (("--sockets", "TCP, streams"), ("--sockets=rsockets", "librdmacm")):
        with report.case(f"wait for a server under {option}"):
            port = free_port()
            server = fabric.start(["python3", "-m", "http.server", port], 1, more=[option])
            fabric.softib(*wait, "-v", "-l", port).require(rf"python3 \(pid {server.pid}\) .* \({how}\)")
            result = fabric.softib(*wait, "-l", port, "-n", 0, "-t", 0).require("listens on it, but on node1", code=1)
            if result.text.count(f"pid {server.pid}") != 1:
                raise Failed(f"the server is not told once:\n{result.text}")
    with report.case("a program outside"):
        port = free_port()
        with subprocess.Popen([*fabric.user.prefix, "/usr/bin/python3", "-c", listen, str(port)], stdout=subprocess.PIPE) as outside:
            outside.stdout.readline()
            fabric.softib(*wait, "-l", port, "-t", 0).require(
                rf"python3 \(pid {outside.pid}\) listens on it, but does not run under `softib run`", code=1)
            outside.kill()


def test(report, user):
    with harness.Fabric(nodes=2, user=user) as fabric:
        mistakes(report, user, fabric)
        listeners(report, fabric)
        a_pair(report, fabric)


harness.main("resources", test)
