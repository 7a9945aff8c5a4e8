#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Unmodified programs that connect, and jobs of MPI, interrupted in the middle: a port that is down for a while, an HCA
that sleeps for a while, a softibd that is killed, one of both sides that is killed. docs/lifecycle.md has the outcomes,
support/interrupted_programs.py the programs.

interrupted_test.py [--as root|nobody] [--only REGEX] [--link-layer ethernet] [--tree]
SOFTIB_SEED=n repeats the moments

Each case waits for progress (messages, ids), up to an amount that the seed draws, and then interrupts. After a port or
an HCA the program goes on or succeeds; after softibd both sides end by themselves, after one side the other one. No
process is left, dumps core or hangs, and the fabric has no ids and no objects left. In a tree
also the cables between the leaf of one side and the spines are pulled for a while.
"""
import contextlib
import os
import pathlib
import random
import re
import signal

import harness
from harness import Failed, Skipped
from node_names_test import two_networks
from support import mpi, perftest
from support.interrupted_programs import CASES, CLIENT, DTEST_PORT, ETHERNET_CASES, NGINX, SERVER, Job
from support.tree import SPINES

CONFIG = f"""[[node]]
name = "node0"
addresses = ["{SERVER}"]
[[node]]
name = "node1"
addresses = ["{CLIENT}"]
"""
MPI_PROGRAM = pathlib.Path(__file__).resolve().parent / "programs/mpi_rounds.c"
RANKS = 4
UDPONG_PORT = 7174
SECONDS = 40
TRIES = perftest.TRIES
SOURCE_MIB = 256
PEER_KILLED = ("server killed", "client killed")
IDLE_STREAMS = {"qp": 1, "cq": 1, "pd": 1}  # beside memory that is kept for the next ones
FOR_A_WHILE = ("port down", "asleep", *(("cables pulled",) if harness.TREE else ()))
INTERRUPTIONS = (*FOR_A_WHILE, "softibd killed", *PEER_KILLED)
REQUESTED = ("REQ sent", "connecting", "established")  # "connecting": for datagrams
NO_LISTENER = r"no listener for TCP port \d+ on node0"


def without_idle_streams(state):
    """The number of clients, and their objects. softibd's own client for streams remains at a node after the first one;
    it counts unless it has the ends of streams still."""
    rest = [one for one in state["clients"]
            if one["program"] != "softib streams" or any(one["objects"][kind] > most for kind, most in IDLE_STREAMS.items())]
    return len(rest), {kind: sum(one["objects"][kind] for one in rest) for kind in state["objects"]}


class Interrupted:
    """Programs of both nodes: the part that a pair of them and a job have in common."""

    def __init__(self, fabric, draw):
        self.fabric, self.draw = fabric, draw

    def softib(self, *words):
        return self.fabric.softib(*words, "--fabric", self.fabric.name).require()

    def wait_for_messages(self, more, what):
        target = self.fabric.sent_messages() + more
        self.wait_until(lambda: self.fabric.sent_messages() >= target, what)

    def wait_until(self, condition, what):
        """Until the condition is met; all programs must be running until then."""
        programs = self.programs()
        harness.wait_until(lambda: condition() or any(not p.running() for p in programs), SECONDS, what)
        for program in programs:
            if not program.running() and not condition():
                raise Failed(f"{program.describe()} ended with {program.process.returncode} before {what}:\n"
                             f"{harness.tail(program.text())}")

    def end(self):
        for program in self.programs():
            if program.running():
                program.kill()

    @contextlib.contextmanager
    def away_for_a_while(self, kind):
        node = self.draw.choice((0, 1))
        if kind == "cables pulled":
            away, back = ([("cable", state, f"leaf{node}:{spine + 1}") for spine in range(SPINES)]
                          for state in ("down", "up"))
        else:
            words = (("power", "sleep"), ("power", "resume")) if kind == "asleep" else (("port", "down"), ("port", "up"))
            away, back = ([(*one, "--node", f"node{node}")] for one in words)
        for one in away:
            self.softib(*one)
        try:
            yield
        finally:
            for one in back:
                self.softib(*one)

    def wait_for_quiet(self):
        before = self.fabric.sent_messages()
        harness.wait_until(self.is_quiet, SECONDS, "the traffic to stop")
        if self.fabric.sent_messages() < before:
            raise Failed("the counters have gone back")

    def is_quiet(self):
        before = self.fabric.sent_messages()
        self.softib("status")  # takes a while
        return self.fabric.sent_messages() == before

    def is_told_once(self, dead):
        """The end of a process, to the one other that had to do with it."""
        lines = re.findall(rf".*pid {dead}, has ended.*", self.softib("trace").text)
        if len(lines) > 1:
            raise Failed("one death has several lines:\n" + "\n".join(lines))

    def leaves_nothing(self, before):
        def is_clean():
            state = self.fabric.state()
            return without_idle_streams(state) == without_idle_streams(before) and not state["rdma_cm"]
        try:
            harness.wait_until(is_clean, SECONDS, "all ids, clients and objects to be gone")
        except Failed as failure:
            left = {key: self.fabric.state()[key] for key in ("rdma_cm", "clients", "objects")}
            raise Failed(f"{failure}: {left}; before: {before['objects']}") from None


class Scenario(Interrupted):
    """A server and a client."""

    def __init__(self, fabric, case, draw, networks, files):
        super().__init__(fabric, draw)
        self.case, self.networks, self.files = case, networks, files
        self.port = None
        self.source, self.target = fabric.runtime / "source", fabric.runtime / "target"
        self.server = self.client = None

    def programs(self):
        return [program for program in (self.client, self.server) if program is not None]

    def start(self, words, node):
        names = {"PORT": self.port, "SOURCE": str(self.source), "TARGET": str(self.target),
                 "RUNTIME": str(self.fabric.runtime)}
        words = [re.sub("|".join(names), lambda found: names[found[0]], word) for word in words]
        return self.fabric.start(words, node, more=self.case.more, before=self.networks[node] if self.networks else ())

    def start_server(self):
        self.port = str(harness.free_port())
        if self.case.copies:
            self.source.hardlink_to(self.files.source())
            config = self.fabric.runtime / "nginx.conf"
            config.write_text(NGINX.format(folder=self.fabric.runtime, port=self.port,
                                           user="user root;" if self.fabric.user.uid == 0 else ""))
            config.chmod(0o644)
        self.server = self.start(self.case.server, 0)
        if self.case.ready:
            self.server.wait_for_text(self.case.ready, SECONDS)
        else:
            self.wait_until(self.server_listens, "the server to listen")

    def server_listens(self):
        if self.networks:
            return harness.has_udp_port(self.networks[0][2], UDPONG_PORT)
        if self.case.tcp_port:
            return harness.is_listening(self.server.pid, int(self.port if self.case.tcp_port == "PORT" else self.case.tcp_port))
        return self.fabric.ids(pid=self.server.pid, state="listening")

    def reach_the_middle(self, interruption):
        for attempt in range(1, TRIES + 1):
            try:
                return self.reach_it_once(interruption)
            except Failed:
                if attempt == TRIES or not (self.was_too_fast() or self.client_was_refused()):
                    raise
                self.end()

    def was_too_fast(self):
        """All connections were made before the test had seen as many as it wanted, as on a busy machine."""
        return self.case.kind == "connecting" and any(program.process.poll() == 0 for program in self.programs())

    def client_was_refused(self):
        """The client was faster than its server, which has it come before it listens."""
        if self.client is None or self.client.running():
            return False
        if harness.was_refused(self.client.process.returncode, self.client.text()):
            self.softib("trace").require(f"no listener for TCP port {self.port} on node0")
            return True
        return self.case.announces_early and re.search(NO_LISTENER, self.softib("trace").text) is not None

    def reach_it_once(self, interruption):
        case = self.case
        self.client = None
        self.start_server()
        if case.kind == "waiting" and interruption not in PEER_KILLED:
            return
        if case.kind == "held" and not case.hold:
            os.killpg(self.server.pid, signal.SIGSTOP)
        self.client = self.start(case.client, 1)
        if case.kind in ("traffic", "copy"):
            if not case.connectionless:
                self.wait_until(self.is_connected, "the connection")
            self.wait_for_messages(self.draw.randrange(1, case.most), "traffic")
        elif case.kind == "connecting":
            # The client has an id for each connection from the beginning, and the server one when its request comes.
            wanted = self.draw.randrange(1, case.count // 4)
            self.wait_until(lambda: len(self.fabric.ids(pid=self.server.pid)) > wanted, f"{wanted} connections")
        elif case.kind == "held":
            if case.hold:
                self.server.wait_for_text(case.hold, SECONDS)
                os.killpg(self.server.pid, signal.SIGSTOP)
            self.wait_until(self.has_requested, f"{case.count} requests")
        elif case.kind == "brief":
            self.wait_until(lambda: self.fabric.ids(state="established"), "the connection")
        else:
            harness.wait_until(self.server_may_know_client, SECONDS, "the client")

    def is_connected(self):
        return len(self.fabric.ids(state="established")) >= 2 * self.case.connections

    def server_may_know_client(self):
        """A server goes on waiting for a client that ended before it made a request."""
        if not self.client.running():
            return True
        return self.fabric.ids(pid=self.client.pid) if "server" in self.case.deaf else self.requests() > 0

    def has_requested(self):
        return self.requests() == self.case.count

    def requests(self):
        return sum(one["state"] in REQUESTED for one in self.fabric.ids(pid=self.client.pid))

    def release(self):
        if self.case.kind == "held" and self.server.running():
            os.killpg(self.server.pid, signal.SIGCONT)

    def interrupt_for_a_while(self, kind):
        with self.away_for_a_while(kind):
            if self.case.kind == "traffic" and not self.case.repeats:
                self.wait_for_quiet()

    def goes_on(self):
        case = self.case
        self.release()
        if case.kind == "traffic":
            if case.loses:  # two others, then
                self.end()
                self.reach_the_middle("")
            self.wait_for_messages(min(200, case.most), "traffic afterwards")
            return
        if case.kind == "waiting":
            self.client = self.start(case.client, 1)
        self.succeeds(self.client)
        if case.copies and not (self.target.exists() and harness.digest(self.source) == harness.digest(self.target)):
            raise Failed("the copy differs")
        if case.server_ends:
            self.succeeds(self.server)

    def succeeds(self, program):
        self.fabric.end(program, SECONDS).require(self.case.says, forbid=("FAILED",))

    def interrupt_and_go_on(self, kind):
        self.reach_the_middle(kind)
        self.interrupt_for_a_while(kind)
        self.goes_on()

    def ends_by_itself(self, program, gone):
        program.gives_way()
        result = self.fabric.end(program, SECONDS)
        if result.code is None:
            raise Failed(f"{result.name} did not notice that {gone} is gone; it said:\n{harness.tail(result.text, 150)}")
        if result.code < 0 and -result.code not in self.case.dies_by:
            raise Failed(f"{result.name} died by signal {-result.code}; it said:\n{harness.tail(result.text)}")
        return result

    def ends_without_softibd(self):
        self.release()
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
        dead.kill()  # unless it has just ended
        self.release()
        if name not in self.case.deaf:
            self.ends_by_itself(other, "its peer")
            self.is_told_once(dead.pid)


class MpiJob(Interrupted):
    """Ranks of MPI on both nodes."""

    def __init__(self, fabric, job, draw, program):
        super().__init__(fabric, draw)
        self.job, self.program = job, program
        self.launcher, self.ranks = None, []

    def programs(self):
        return [] if self.launcher is None else [self.launcher]

    def reach_the_middle(self, _):
        job = self.job
        self.launcher = mpi.start_on_nodes(self.fabric, job.launcher, job.words, RANKS, self.program, job.env)
        self.ranks = [int(self.launcher.wait_for_text(rf"rank {rank} is process (\d+)", SECONDS)[1])
                      for rank in range(RANKS)]
        self.wait_for_messages(self.draw.randrange(1, 2000), "traffic")

    def interrupt_and_go_on(self, kind):
        self.reach_the_middle(kind)
        with self.away_for_a_while(kind):
            self.wait_for_quiet()
        self.wait_for_messages(2000, "traffic afterwards")
        self.has_right_bytes()

    def has_right_bytes(self):
        if "wrong byte" in self.launcher.text():
            raise Failed(harness.tail(self.launcher.text()))

    def ends_with_error(self, gone):
        self.launcher.gives_way()
        result = self.fabric.end(self.launcher, SECONDS)
        if not result.code:
            raise Failed(f"ended with {result.code} without {gone}:\n{harness.tail(result.text)}")
        if not self.job.goes_on_wrong:
            self.has_right_bytes()
        harness.wait_until(lambda: not any(pathlib.Path(f"/proc/{pid}").exists() for pid in self.ranks), SECONDS,
                           "the ranks to end")

    def ends_without_softibd(self):
        self.ends_with_error("softibd")

    def kill_one(self, victim):
        os.kill(self.ranks[0 if victim == "server" else -1], signal.SIGKILL)
        self.ends_with_error("a rank")


class Files:
    """Files that several cases need, each made at its first use."""

    def __init__(self, folder):
        self.folder = folder

    def mpi_program(self, kind):
        program = self.folder / kind
        if not program.exists():
            mpi.build_program(kind, MPI_PROGRAM, program)
        return program

    def source(self):
        """Of copies, large enough to be interrupted."""
        path = self.folder / "source"
        if not path.exists():
            block = random.Random(1).randbytes(1 << 20)
            with open(path, "wb") as file:
                for _ in range(SOURCE_MIB):
                    file.write(block)
            path.chmod(0o644)
        return path


def config_of(case, interruption):
    """On a busy machine a port may be away for longer than connections wait otherwise."""
    nodes = "" if case.networks else CONFIG  # in networks, the nodes have the addresses of their interfaces
    if interruption in FOR_A_WHILE:
        return harness.MISSED_LATE + nodes
    return harness.MISSED_SOON + nodes if interruption in PEER_KILLED else nodes


@contextlib.contextmanager
def networks_of(case):
    if not case.networks:
        yield None
        return
    harness.need_program("ip")
    if os.getuid() != 0:
        raise Skipped("only root can join two network namespaces")
    with two_networks() as inside:
        yield inside


def run(user, case, interruption, seed, files):
    draw = random.Random(f"{seed} {case.name} {interruption}")
    with harness.Fabric(nodes=2, user=user, config=config_of(case, interruption)) as fabric, networks_of(case) as networks:
        if isinstance(case, Job):
            scenario = MpiJob(fabric, case, draw, files.mpi_program(case.kind))
        else:
            scenario = Scenario(fabric, case, draw, networks, files)
        for node in range(2):  # softibd's own queue pairs come with the first use of a node
            fabric.run(["cat", "/dev/infiniband/rdma_cm"], node, before=networks[node] if networks else ())
        before = fabric.state()
        try:
            if interruption in FOR_A_WHILE:
                scenario.interrupt_and_go_on(interruption)
            else:
                scenario.reach_the_middle(interruption)
                if interruption == "softibd killed":
                    os.kill(before["pid"], signal.SIGKILL)
                    scenario.ends_without_softibd()
                    return
                scenario.kill_one(interruption.split()[0])
        finally:
            scenario.end()
        scenario.leaves_nothing(before)
        if fabric.state()["pid"] != before["pid"]:
            raise Failed("it is another softibd")


def test(report, user):
    harness.need_program("rping")
    seed = harness.seed()
    print(f"  SOFTIB_SEED={seed}")
    report.may_take_some(5 if harness.TREE else 3)  # no divisor of the number of interruptions: each comes
    files = Files(user.make_dir("softib-files-"))
    for case in CASES:
        if harness.ETHERNET and case.name not in ETHERNET_CASES:
            continue
        for interruption in INTERRUPTIONS:
            title = f"{case.name}, {interruption}"
            if not report.wanted(title):
                continue
            with report.case(title):
                for word in case.needs:
                    harness.need_program(word)
                if case.tcp_port == DTEST_PORT:
                    harness.need_tcp_port(int(DTEST_PORT))
                run(user, case, interruption, seed, files)


if __name__ == "__main__":
    harness.main("interrupted", test)
