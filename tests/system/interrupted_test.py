#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Unmodified programs that connect, interrupted in the middle: a port that is down for a while, an HCA that sleeps for
a while, a softibd that is killed, one of both sides that is killed. docs/lifecycle.md has the outcomes.

interrupted_test.py [--as root|nobody] [--only REGEX] [--link-layer ethernet]      SOFTIB_SEED=n repeats the moments

Each case waits for progress (messages, ids), up to an amount that the seed draws, and then interrupts. After a port or
an HCA the program goes on or succeeds; after softibd both sides end by themselves, after one side the other one. No
process is left, dumps core or hangs, and the fabric has no ids and no objects left.
"""
import dataclasses
import hashlib
import json
import os
import random
import signal

import harness
from harness import Failed
from support import perftest

CONFIG = """[[node]]
name = "node0"
addresses = ["127.79.0.1"]
[[node]]
name = "node1"
addresses = ["127.79.0.2"]
"""
SERVER, CLIENT = "127.79.0.1", "127.79.0.2"
SECONDS = 40
FOREVER = "100000000"
PEER_KILLED = ("server killed", "client killed")
INTERRUPTIONS = ("port down", "asleep", "softibd killed", *PEER_KILLED)


@dataclasses.dataclass(frozen=True)
class Case:
    """A server and a client, and what shows that they are in the middle."""
    name: str
    server: tuple
    client: tuple
    # "traffic": they exchange messages until they are killed; "connecting": the client makes `count` connections and
    # succeeds; "copy": it sends a file; "waiting": the server waits, and serves a client that comes afterwards.
    kind: str
    count: int = 0
    server_ends: bool = True  # with its client
    outlives: tuple = ()  # "server", "client": goes on without softibd, for a reason of its own
    dies_by: tuple = ()  # signals with which both sides may end then, for a reason of their own
    quiet: tuple = ()  # "server", "client": ends with 0 all the same, for a reason of its own
    deaf: tuple = ()  # "server", "client": does not end when the other one is killed, for a reason of its own
    more: tuple = ()  # options of `softib run`
    finds_by_tcp: bool = False  # a program that listens at a TCP port beside softib first


def by_perftest(name, *options):
    words = (name, "-R", "-F", "-p", "PORT", *options)
    return words, (*words, SERVER)


def by_fi_pingpong(kind):
    words = ("fi_pingpong", "-p", "verbs", "-e", kind, "-S", "4096", "-I", "100000000")
    return (*words, "-B", "PORT"), (*words, "-P", "PORT", SERVER)


def by_fio(verb):
    words = ("fio", "--thread", "--name=job", "--ioengine=rdma", "--port=PORT", "--bs=65536", "--size=4m", "--time_based",
             "--runtime=1000")
    return (*words, "--rw=read", "--iodepth=16"), (*words, f"--hostname={SERVER}", f"--verb={verb}", "--rw=write",
                                                   "--iodepth=1", "--iodepth_batch_complete=1")


def by_dapltest(provider):
    endless = ("-i", FOREVER, "-t", "1", "-w", "1", "client", "SR", "4096", "server", "SR", "4096")
    return ("stdbuf", "-oL", "-eL", "dapltest", "-T", "S", "-D", provider), ("dapltest", "-T", "T", "-D", provider, "-s", SERVER, *endless)


def both(name, *options):
    return (name, "-s", "-a", SERVER, *options), (name, "-c", "-a", SERVER, *options)


CASES = [
    Case("rping", *both("rping", "-C", FOREVER), "traffic"),
    Case("rping -V", *both("rping", "-C", FOREVER, "-V", "-S", "4000"), "traffic"),
    # Its server serves further clients.
    Case("rping -P", ("rping", "-s", "-P", "-a", SERVER), ("rping", "-c", "-a", SERVER, "-C", FOREVER), "traffic",
         deaf=("server",)),
    # After the end of the stream (0) it looks at errno, which has the EAGAIN of an earlier call, and calls again.
    Case("rstream", ("rstream", "-S", "65536", "-I", FOREVER), ("rstream", "-s", SERVER, "-S", "65536", "-I", FOREVER),
         "traffic", deaf=("server", "client")),
    # It looks at nothing but the memory that its peer writes: it does not end when its peer is killed, either.
    Case("riostream", ("riostream", "-S", "4096", "-I", FOREVER), ("riostream", "-s", SERVER, "-S", "4096", "-I", FOREVER),
         "traffic", outlives=("server", "client")),
    Case("ib_send_bw -R", *by_perftest("ib_send_bw", "-D", "1000"), "traffic"),
    Case("ib_read_lat -R", *by_perftest("ib_read_lat", "-n", FOREVER), "traffic"),
    # Its server waits for the next client, by TCP.
    Case("qperf -cm1 rc_bw", ("qperf", "-lp", "PORT"), ("qperf", "-lp", "PORT", SERVER, "-cm1", "-t", "1000", "rc_bw"),
         "traffic", server_ends=False, outlives=("server",), finds_by_tcp=True),
    # Once a call has failed, its server writes to times that only a client has (SIGSEGV), and its client waits for a
    # count of events.
    Case("cmtime", ("cmtime", "-c", "1500"), ("cmtime", "-s", SERVER, "-c", "1500"), "connecting", 1500,
         server_ends=False, outlives=("server", "client")),
    # If ibv_reg_mr fails it deregisters the region that it has not got: ibv_dereg_mr(NULL).
    Case("ucmatose", ("ucmatose", "-b", SERVER, "-c", "500", "-C", "5"), ("ucmatose", "-s", SERVER, "-c", "500", "-C", "5"),
         "connecting", 500, dies_by=(signal.SIGSEGV,)),
    # Its server waits for the next client. Its client, if it waits for room at a peer that is gone, looks at neither
    # the event of that nor the receives that come back: it waits for completions of sends.
    Case("rcopy", ("rcopy",), ("rcopy", "SOURCE", f"{SERVER}:TARGET"), "copy", server_ends=False, outlives=("server",),
         deaf=("client",)),
    Case("rdma_server", ("rdma_server",), ("rdma_client", "-s", SERVER), "waiting"),
    Case("udaddy", ("udaddy", "-b", SERVER, "-c", "2", "-C", "5"), ("udaddy", "-s", SERVER, "-c", "2", "-C", "5"),
         "waiting"),
    Case("mckey", ("stdbuf", "-oL", "mckey", "-m", "239.79.1.1", "-c", "1", "-C", "5", "-b", SERVER),
         ("mckey", "-m", "239.79.1.1", "-c", "1", "-C", "5", "-s", "-b", CLIENT), "waiting"),
    Case("ib_write_bw -R", *by_perftest("ib_write_bw", "-D", "1000"), "traffic"),
    Case("ib_atomic_lat -R", *by_perftest("ib_atomic_lat", "-n", FOREVER), "traffic"),
    Case("fi_pingpong msg", *by_fi_pingpong("msg"), "traffic", finds_by_tcp=True),
    # Its receiver takes the end of its sender for that of the job; its sender polls without end.
    Case("fio write", *by_fio("write"), "traffic", quiet=("server",), deaf=("client",)),
    # Its server waits for the next client, by events that only a connection brings; its client says that it failed.
    Case("dapltest", *by_dapltest("ofa-v2-ib0"), "traffic", server_ends=False, outlives=("server",), quiet=("client",)),
    Case("iperf3 --sockets", ("iperf3", "-s", "-1", "-p", "PORT"), ("iperf3", "-c", SERVER, "-p", "PORT", "-t", "1000"),
         "traffic", quiet=("server",), more=("--sockets",)),
    # Its server waits for the next client, as it would after its network has gone. Its client takes each failure to
    # write for EAGAIN, and writes again without end.
    Case("redis --sockets", ("redis-server", "--port", "PORT", "--bind", SERVER, "--save", "", "--protected-mode", "no"),
         ("redis-benchmark", "-h", SERVER, "-p", "PORT", "-l", "-t", "set", "-q"), "traffic", server_ends=False,
         outlives=("server", "client"), more=("--sockets",)),
]
ETHERNET_CASES = ("rping", "rstream", "cmtime", "rcopy", "mckey", "fi_pingpong msg", "fio write", "dapltest", "iperf3 --sockets")


class Scenario:
    def __init__(self, fabric, case, draw):
        self.fabric, self.case, self.draw = fabric, case, draw
        self.port = None
        self.source, self.target = fabric.runtime / "source", fabric.runtime / "target"
        self.server = self.client = None

    def state(self):
        return json.loads(self.softib("status", "--json").text)

    def softib(self, *words):
        return self.fabric.softib(*words, "--fabric", self.fabric.name).require()

    def start(self, words, node):
        names = {"PORT": self.port, "SOURCE": self.source, f"{SERVER}:TARGET": f"{SERVER}:{self.target}"}
        words = [str(names.get(word, word)).replace("=PORT", f"={self.port}") for word in words]
        return self.fabric.start(words, node, more=self.case.more)

    def start_server(self):
        self.port = str(harness.free_port())
        self.server = self.start(self.case.server, 0)
        if self.case.name == "mckey":
            self.server.wait_for_text("joined dgid", SECONDS)
        elif self.case.finds_by_tcp:
            self.wait_until(lambda: harness.is_listening(self.server.pid, int(self.port)), "the server to listen")
        else:
            self.wait_until(lambda: self.ids(pid=self.server.pid, state="listening"), "the server to listen")

    def wait_until(self, condition, what):
        programs = [p for p in (self.server, self.client) if p is not None]

        def met_or_over():
            return condition() or any(not p.running() for p in programs)
        harness.wait_until(met_or_over, SECONDS, what)
        for program in programs:
            if not program.running() and not condition():
                raise Failed(f"{program.describe()} ended with {program.process.returncode} before {what}:\n"
                             f"{harness.tail(program.text())}")

    def ids(self, **wanted):
        return [one for one in self.state()["rdma_cm"] if all(one[key] == value for key, value in wanted.items())]

    def messages(self):
        counters = [port["counters"] for node in self.state()["nodes"] for hca in node["hcas"] for port in hca["ports"]]
        return sum(c["sent_messages"] for c in counters)

    def wait_for_messages(self, more, what):
        target = self.messages() + more
        self.wait_until(lambda: self.messages() >= target, what)

    def reach_the_middle(self):
        for attempt in range(1, perftest.TRIES + 1):
            try:
                return self.reach_it_once()
            except Failed:
                if attempt == perftest.TRIES or not (self.was_too_fast() or self.client_was_refused()):
                    raise
                self.end()

    def was_too_fast(self):
        """All connections were made before the test had seen as many as it wanted, as on a busy machine."""
        return self.case.kind == "connecting" and self.client is not None and self.client.process.returncode == 0

    def client_was_refused(self):
        if self.client is None or not perftest.was_refused(self.client.process.returncode, self.client.text()):
            return False
        self.softib("trace").require(f"no listener for TCP port {self.port} on node0")
        return True

    def reach_it_once(self):
        case = self.case
        self.start_server()
        if case.kind == "copy":
            self.source.write_bytes(random.Random(1).randbytes(1 << 20) * 256)
            self.source.chmod(0o644)
        if case.kind != "waiting":
            self.client = self.start(case.client, 1)
        if case.kind in ("traffic", "copy"):
            self.wait_until(lambda: self.ids(state="established"), "the connection")
            self.wait_for_messages(self.draw.randrange(1, 2000 if case.kind == "traffic" else 20), "traffic")
        elif case.kind == "connecting":
            # The client has an id for each connection from the beginning, and the server one when its request comes.
            wanted = self.draw.randrange(1, case.count // 4)
            self.wait_until(lambda: len(self.ids(pid=self.server.pid)) > wanted, f"{wanted} connections")

    def interrupt_for_a_while(self, kind):
        node = self.draw.choice(("node0", "node1"))
        words = ("port", "down"), ("port", "up")
        if kind == "asleep":
            words = ("power", "sleep"), ("power", "resume")
        self.softib(*words[0], "--node", node)
        try:
            if self.case.kind == "traffic":  # none gets through
                before = self.messages()
                harness.wait_until(lambda: self.is_quiet(), SECONDS, "the traffic to stop")
                if self.messages() < before:
                    raise Failed("the counters have gone back")
        finally:
            self.softib(*words[1], "--node", node)

    def is_quiet(self):
        before = self.messages()
        self.softib("status")  # takes a while
        return self.messages() == before

    def goes_on(self):
        case = self.case
        if case.kind == "traffic":
            self.wait_for_messages(200, "traffic afterwards")
            return
        if case.kind == "waiting":
            self.client = self.start(case.client, 1)
        self.succeeds(self.client)
        if case.kind == "copy" and digest(self.source) != digest(self.target):
            raise Failed("the copy differs")
        if case.server_ends:
            self.succeeds(self.server)

    def succeeds(self, program):
        self.fabric.end(program, SECONDS).require()

    def ends_by_itself(self, program, gone):
        result = self.fabric.end(program, SECONDS)
        if result.code is None:
            raise Failed(f"{result.name} did not notice that {gone} is gone; it said:\n{harness.tail(result.text)}")
        if result.code < 0 and -result.code not in self.case.dies_by:
            raise Failed(f"{result.name} died by signal {-result.code}; it said:\n{harness.tail(result.text)}")
        return result

    def ends_without_softibd(self):
        for name, program in (("server", self.server), ("client", self.client)):
            if program is None or name in self.case.outlives:
                continue
            result = self.ends_by_itself(program, "softibd")
            if result.code == 0 and self.case.kind == "traffic" and name not in self.case.quiet:
                raise Failed(f"{result.name} ended with 0; it said:\n{harness.tail(result.text)}")

    def kill_one(self, victim):
        dead, name, other = self.server, "client", self.client
        if victim == "client":
            dead, name, other = self.client, "server", self.server
        os.killpg(dead.pid, signal.SIGKILL)
        if name not in (*self.case.deaf, *self.case.outlives):
            self.ends_by_itself(other, "its peer")

    def end(self):
        for program in (self.client, self.server):
            if program is not None and program.running():
                program.kill()
        self.client = self.server = None

    def leaves_nothing(self, before):
        def is_clean():
            state = self.state()
            same = len(state["clients"]) == len(before["clients"]) and state["objects"] == before["objects"]
            return same and not state["rdma_cm"]
        try:
            harness.wait_until(is_clean, SECONDS, "all ids, clients and objects to be gone")
        except Failed as failure:
            left = {key: self.state()[key] for key in ("rdma_cm", "clients", "objects")}
            raise Failed(f"{failure}: {left}; before: {before['objects']}") from None


def digest(path):
    return hashlib.sha256(path.read_bytes()).digest() if path.exists() else None


def run(user, case, interruption, seed):
    config = user.make_dir("softib-interrupted-") / "nodes.toml"
    config.write_text(CONFIG)
    config.chmod(0o644)
    with harness.Fabric(nodes=2, user=user, extra=("--config", config)) as fabric:
        scenario = Scenario(fabric, case, random.Random(f"{seed} {case.name} {interruption}"))
        for node in range(2):  # softibd's own queue pairs come with the first use of a node
            fabric.run(["cat", "/dev/infiniband/rdma_cm"], node)
        before = scenario.state()
        try:
            scenario.reach_the_middle()
            if interruption == "softibd killed":
                os.kill(before["pid"], signal.SIGKILL)
                scenario.ends_without_softibd()
                return
            if interruption in PEER_KILLED:
                scenario.kill_one(interruption.split()[0])
            else:
                scenario.interrupt_for_a_while(interruption)
                scenario.goes_on()
        finally:
            scenario.end()
        scenario.leaves_nothing(before)
        if scenario.state()["pid"] != before["pid"]:
            raise Failed("it is another softibd")


def test(report, user):
    harness.need_program("rping")
    seed = int(os.environ.get("SOFTIB_SEED", random.SystemRandom().randrange(1 << 30)))
    print(f"  SOFTIB_SEED={seed}")
    for case in CASES:
        if harness.ETHERNET and case.name not in ETHERNET_CASES:
            continue
        for interruption in INTERRUPTIONS:
            title = f"{case.name}, {interruption}"
            if not report.wanted(title) or (interruption in PEER_KILLED and case.kind == "waiting"):
                continue
            with report.case(title):
                harness.need_program(case.client[0])
                run(user, case, interruption, seed)


harness.main("interrupted", test)
