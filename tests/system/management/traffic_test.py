#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Unmodified programs between the leaves of a fat tree that softib's own manager manages: they go on when their ways
lose a switch, stop when the only cable is pulled and go on when it is back, and lose nothing while OpenSM takes the
subnet over and hands it back. RC and XRC, UC, UD, connections of librdmacm, multicast, and MPI over all nodes, at the
same time.

traffic_test.py [--as root|nobody] [--mpi openmpi|mpich]
"""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import harness
from harness import Failed
from manager_test import TREE, end_of_standby, opensm_takes_over, softib, softib_takes_over, wait_for_master
from subnet_test import SECONDS, all_active, check_managed, subnet
from support import mpi
from support.perftest import Endless

MPI_PROGRAM = pathlib.Path(__file__).resolve().parents[1] / "programs/mpi_rounds.c"
NODES = 8
SPINES = ("switch-2-0", "switch-2-1")
# Words of both sides, the node of the server, that of the client at another leaf. Servers lose their only cable for a
# while, with which a port leaves its groups: those have other nodes.
PAIRS = {"RC": (["ib_send_bw", "-c", "RC"], 6, 0), "UC": (["ib_send_bw", "-c", "UC"], 4, 1),
         "UD": (["ib_send_bw", "-c", "UD"], 5, 2), "XRC": (["ib_send_bw", "-c", "XRC"], 6, 3),
         "librdmacm": (["ib_send_bw", "-R"], 4, 0)}
# Those wait for each answer: without end, if a message is lost.
PING_PONG = {"UC, each answered": (["ib_send_lat", "-c", "UC"], 1, 6),
             "UD, each answered": (["ib_send_lat", "-c", "UD"], 2, 5)}
GROUP = ["stdbuf", "-oL", "mckey", "-m", "239.78.1.1"]
RECEIVERS, SENDER, DATAGRAMS, BURSTS = (7, 3), 0, 5, 3
RPING = (5, 2)
PATIENT = {"UCX_UD_VERBS_TIMEOUT": "5m"}  # instead of 30 s, on a machine that has more to do
ROUND_TRIPS = 500


class Job:
    """MPI, a rank at each node."""

    def __init__(self, fabric, user, kind):
        folder = user.make_dir("traffic-")
        folder.chmod(0o755)
        mpi.build_program(kind, MPI_PROGRAM, folder / "mpi_rounds")
        self.fabric, self.over = fabric, folder / "over"
        launcher = mpi.MPICH if kind == "mpich" else mpi.OPENMPI
        self.program = mpi.start_on_nodes(fabric, launcher, [], NODES, folder / "mpi_rounds", PATIENT, [self.over])
        for rank in range(NODES):
            self.program.wait_for_text(rf"rank {rank} is process", SECONDS)

    def rounds(self):
        if not self.program.running():
            raise Failed(f"MPI ended with {self.program.process.returncode}:\n{harness.tail(self.program.text())}")
        return self.program.text().count("round ")

    def end(self):
        self.over.write_text("")
        self.fabric.end(self.program, SECONDS).require(rf"^mpi_rounds ok: {NODES} ranks", forbid=(r"(?i)error", r"(?i)warn"))


class Group:
    """Receivers of a multicast group, which end when they have all of the datagrams that senders bring."""

    def __init__(self, fabric):
        self.fabric, self.bursts = fabric, 0
        self.receivers = [fabric.start([*GROUP, "-C", DATAGRAMS * BURSTS, "-b", fabric.address(node)], node)
                          for node in RECEIVERS]
        for receiver in self.receivers:
            receiver.wait_for_text("joined dgid", SECONDS)

    def start_sender(self):
        """It joins, and sends after three seconds."""
        self.bursts += 1
        return self.fabric.start([*GROUP, "-C", DATAGRAMS, "-s", "-b", self.fabric.address(SENDER)], SENDER)

    def end(self):
        if self.bursts != BURSTS:
            raise Failed(f"{self.bursts} senders of {BURSTS}")
        for receiver in self.receivers:
            self.fabric.end(receiver, SECONDS).require()


class Traffic:
    def __init__(self, fabric, user, kind_of_mpi):
        self.fabric = fabric
        self.job = Job(fabric, user, kind_of_mpi)
        self.group = Group(fabric)
        self.pairs = {}
        self.start(PAIRS)
        port = harness.free_port()
        self.rping = ["rping", "-V", "-a", fabric.address(RPING[0]), "-p", port]
        server = fabric.start([*self.rping, "-s", "-P"], RPING[0])
        harness.wait_until(lambda: fabric.listens_by_cm(server.pid, port), SECONDS, "rping to listen")
        self.goes_on()

    def start(self, kinds):
        for kind, rest in kinds.items():
            self.pairs[kind] = Endless(self.fabric, *rest)
            for program in self.pairs[kind].programs:
                program.gives_way(10)

    def arrived(self):
        """Messages of each pair: its server polls their completions."""
        found = {program["pid"]: sum(cq["completions"] for cq in program["cq"])
                 for program in json.loads(softib(self.fabric, "resources", "--json").text)}
        return {kind: found.get(pair.server.pid, 0) for kind, pair in self.pairs.items()}

    def goes_on(self, least=20):
        before, rounds = self.arrived(), self.job.rounds()

        def missing():
            for pair in self.pairs.values():
                pair.check_running()
            now = self.arrived()
            return [kind for kind in now if now[kind] < before[kind] + least] + ["MPI"] * (self.job.rounds() < rounds + 1)
        try:
            harness.wait_until(lambda: not missing(), SECONDS, "traffic")
        except Failed:
            raise Failed(f"no messages any more: {', '.join(missing())}") from None

    def reaches_all(self):
        """It goes on, datagrams come to the group, connections are made."""
        sender = self.group.start_sender()
        client = self.fabric.start([*self.rping, "-c", "-C", ROUND_TRIPS], RPING[1])
        self.goes_on()
        for program in (client, sender):
            self.fabric.end(program, SECONDS).require()

    def end(self):
        self.job.end()
        harness.wait_until(lambda: all([pair.hurry() for pair in self.pairs.values()]), SECONDS, "the end of perftest")
        for part in (*self.pairs.values(), self.group):
            part.end()


def without_a_switch(fabric, traffic):
    """Ways of both spines are in use."""
    for spine in SPINES:
        softib(fabric, "switch", "down", spine)
        if spine == SPINES[0]:
            traffic.reaches_all()
        else:
            traffic.goes_on()
        softib(fabric, "switch", "up", spine)
        softib(fabric, "sm", "sweep")
        harness.wait_until(lambda: all_active(fabric), SECONDS, "all ports to be active")
        traffic.goes_on()


def without_the_only_cable(fabric, traffic):
    cables = [f"node{place}:1" for place in {pair.place for pair in traffic.pairs.values()}]
    for cable in cables:
        softib(fabric, "cable", "down", cable)
    # Messages on their way are counted a moment later.
    harness.wait_until(lambda: traffic.arrived() == traffic.arrived(), SECONDS, "traffic to stand still")
    before = traffic.arrived()
    softib(fabric, "sm", "sweep")
    now = traffic.arrived()
    for cable in cables:
        softib(fabric, "cable", "up", cable)
    if now != before:
        raise Failed(f"{before} messages have come, and without cables {now}")
    traffic.goes_on()


def test(report, user):
    for name in ("ib_write_bw", "mckey", "rping", "opensm"):
        harness.need_program(name)
    kind = sys.argv[sys.argv.index("--mpi") + 1] if "--mpi" in sys.argv else "openmpi"
    # While cables are pulled, connections of librdmacm, whose limit perftest does not set, have to wait.
    with subnet(user, TREE, "--sm-priority", "5", config=harness.MISSED_LATE) as fabric:
        wait_for_master(fabric)
        traffic = Traffic(fabric, user, kind)
        with report.case("ways that lose a switch move"):
            without_a_switch(fabric, traffic)
        with report.case("without the only cable all stands still, and goes on when it is back"):
            without_the_only_cable(fabric, traffic)
        with report.case("OpenSM takes over, and nothing is lost"):
            traffic.start(PING_PONG)
            traffic.goes_on()
            manager = opensm_takes_over(fabric)
            traffic.reaches_all()
        with report.case("softib takes over, and nothing is lost"):
            softib_takes_over(fabric)
            traffic.reaches_all()
            end_of_standby(manager)
        with report.case("every program ends well"):
            traffic.end()
        check_managed(fabric)


if __name__ == "__main__":
    harness.main("traffic", test)
