#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The life of adapters under running programs and drivers, as described in docs/lifecycle.md: while perftest, a
user-mode client (examples/user_ping) and drivers (examples/driver_ping) run on two nodes, adapters are removed on
request, pulled out, lose their cables and sleep, and drivers are unloaded.

lifecycle_test.py [--as root|nobody]       the test
lifecycle_test.py --tell                   the same, as a tour: prints each command and its effects (scripts/tour)
"""
import os
import re
import shutil
import sys
import time

import examples
import harness
from support.device_tree import (BUSY, PING_CONFIG, daemon_pid, hca_of, objects, ping_notes, pings_go_on, require,
                                 store_folder, write_store)

TELL = "--tell" in sys.argv
USER_PING_DEVICE_GONE, USER_PING_PEER_GONE = 3, 4
RETRY = r"Failed status 12"  # perftest: IBV_WC_RETRY_EXC_ERR
RETRY_SECONDS = 0.5  # of all three: timeout 14, 7 retries
FLUSHED = r"Failed status 5"  # IBV_WC_WR_FLUSH_ERR


def tell(text=""):
    if TELL:
        print(text, flush=True)


class Watched:
    """A program whose new output is examined step by step."""

    def __init__(self, name, program):
        self.name, self.program, self.seen = name, program, 0

    def says(self, pattern, seconds=20):
        """Waits for a line that matches, after the lines that were examined before."""
        def found():
            return re.compile(rf"^.*(?:{pattern}).*$", re.MULTILINE).search(self.program.text(), self.seen)

        match = harness.wait_until(lambda: found() or not self.program.running(), seconds,
                                   f"{self.name} to say {pattern!r}; it says:\n{harness.tail(self.program.text())}")
        match = found() if match is True else match
        require(match, f"{self.name} ended and never said {pattern!r}:\n{harness.tail(self.program.text())}")
        self.seen = match.end()
        return match[0].strip()

    def shows(self, pattern):
        tell(f"    {self.name:22} {self.says(pattern)}")

    def skip(self):
        """Skips the output from before this step."""
        self.seen = len(self.program.text())

    def goes_on(self, what):
        """Waits for two lines: the first may be from before the step."""
        self.skip()
        for _ in range(2):
            self.says(self.alive)
        tell(f"    {self.name:22} {what}")

    def ends(self, code, what):
        ended = self.program.wait(20)
        require(ended == code, f"{self.name} ended with {ended}, not {code}:\n{harness.tail(self.program.text())}")
        tell(f"    {self.name:22} {what} (exit code {code})")


class Perftest(Watched):
    alive = r"^ 4096 +[1-9]\d*"  # a row each second


class UserPing(Watched):
    alive = r"^[1-9]\d* pings answered"  # likewise

    def answered(self):
        return int(re.findall(r"(\d+) pings answered", self.program.text())[-1])

    def goes_on(self, what):
        before = self.answered()
        harness.wait_until(lambda: self.answered() > before, 20, f"more than {before} pings of {self.name}")
        tell(f"    {self.name:22} {what}")


class Tour:
    def __init__(self, fabric, user_ping):
        self.fabric, self.user_ping = fabric, user_ping
        self.daemon = daemon_pid(fabric)

    def does(self, *words, code=0):
        """Runs a command of softib's."""
        tell(f"\n$ softib {' '.join(words)}")
        result = self.fabric.softib(*words, "--fabric", self.fabric.name).require(code=code)
        for line in result.text.strip().splitlines():
            tell(f"  {line}")
        if code:
            tell(f"  (exit code {code})")
        return result

    def starts_pair(self, kind, name, words, client_words):
        port = harness.free_port()
        server = self.fabric.start([*words, "-p", port], 0)
        harness.wait_until(lambda: harness.is_listening(server.pid, port) or not server.running(), 20,
                           f"{name} to listen; it says:\n{server.text()}")
        client = self.fabric.start([*words, "-p", port, *client_words], 1)
        return kind(f"{name} on node0", server), kind(f"{name} on node1", client)

    def starts_perftest(self):
        self.write_server, self.write = self.starts_pair(
            Perftest, "ib_write_bw", ["ib_write_bw", "--run_infinitely", "-D", "1", "-F", "-s", "4096"], [harness.HOST])
        self.write.says(Perftest.alive)

    def starts_programs(self):
        self.user0, self.user1 = self.starts_pair(UserPing, "user_ping", [self.user_ping], [harness.HOST])
        self.users = (self.user0, self.user1)
        self.starts_perftest()
        for each in self.users:
            each.says(UserPing.alive)

    def all_go_on(self):
        self.write.goes_on("goes on")
        for each in self.users:
            each.goes_on("goes on")
        self.drivers_go_on()

    def drivers_go_on(self, instances=2, what="go on, over UD and RC"):
        pings_go_on(self.fabric, instances, instances - 1)
        tell(f"    {'driver_ping':22} {what}")

    def broken(self):
        return [note[5] for note in ping_notes(self.fabric)]


def begin(tour):
    tell("\nA fabric of two nodes, whose configuration gives each port a child for examples/driver_ping. On the nodes\n"
         "run ib_write_bw, as Debian ships it, and examples/user_ping; node1's HCA is what we play with.")
    tour.drivers_go_on(what="two instances, connected, pinging each other")
    tour.starts_programs()
    for each in (tour.write, *tour.users):
        tell(f"    {each.name:22} {each.says(each.alive)}")


def removal_is_refused(tour):
    result = tour.does("hca", "remove", "softib0", "--node", "1", code=BUSY)
    for name in ("ib_write_bw", "user_ping"):
        require(name in result.text, f"{name} is not named: {result.text}")
    tour.does("driver", "unload", "soft_hca", code=BUSY)
    tour.does("driver", "unload", "ib_bus", code=BUSY)
    tour.all_go_on()


def short_pull(tour):
    tell("\n# A cable is pulled for a moment: requests wait, RC's retries outlast it.")
    before = tour.broken()
    for each in tour.users:
        each.skip()
    started = time.monotonic()
    tour.does("port", "down", "--node", "1")
    tour.does("port", "up", "--node", "1")
    moment = time.monotonic() - started
    tour.user1.shows("event: port error")
    tour.user1.shows("event: port active")
    if moment > RETRY_SECONDS - 0.1:
        tell(f"    (that took {moment:.1f} s on this busy machine: connections may have broken)")
        for each in (tour.write, tour.write_server):
            each.program.kill()
        return tour.starts_perftest()
    tour.all_go_on()
    require(tour.broken() == before, "connections of drivers broke")


def shows_either(users, pattern):
    """Only on a side with a request under way does the connection break: the pinging one if the cable went before its
    ping had arrived, the answering side if it went before the pong had."""
    def who():
        return [each for each in users if re.search(pattern, each.program.text()[each.seen:])]

    try:
        harness.wait_until(who, 20, f"one of them to say {pattern!r}")
    except harness.Failed as problem:
        texts = "\n".join(f"{each.name}:\n{harness.tail(each.program.text())}" for each in users)
        raise harness.Failed(f"{problem}; they say\n{texts}") from problem
    for each in who():
        each.shows(pattern)


def long_pull(tour):
    tell("\n# For longer than RC retries (0.5 s): connections break. perftest gives up, the others connect again.")
    before = tour.broken()
    for each in (tour.write, *tour.users):
        each.skip()
    tour.does("port", "down", "--node", "1")
    tour.user1.shows("event: port error")
    tour.write.shows(RETRY)
    tour.write.ends(1, "gives up")
    shows_either(tour.users, "the connection broke: transport retry counter exceeded")
    # The driver that notices the broken connection first reports it to the other.
    harness.wait_until(lambda: sum(tour.broken()) > sum(before), 20, "the drivers' connection to break")
    tour.does("port", "up", "--node", "1")
    tour.user1.shows("event: port active")
    for each in tour.users:
        each.shows("connected to queue pair")
        each.goes_on("goes on")
    tour.drivers_go_on(what="connected again, go on")
    tour.write_server.ends(1, "gives up")


def nothing_moves(users):
    """Checks for more than a second that no client gets an answer; the first line of each may be from before."""
    for each in users:
        each.skip()
        each.says(UserPing.alive)
    before = [each.answered() for each in users]
    for each in users:
        each.says(UserPing.alive)
        each.says(UserPing.alive)
    require([each.answered() for each in users] == before, "pings of programs were answered")
    tell("    user_ping, driver_ping  wait")


def power_sleep(tour):
    tell("\n# Everything sleeps for longer than that: requests wait, no retry runs out.")
    tour.starts_perftest()
    before = tour.broken()
    for each in tour.users:
        each.skip()
    tour.does("power", "sleep")
    for each in tour.users:
        each.shows("event: port error")
    asleep = ping_notes(tour.fabric)
    nothing_moves(tour.users)
    require(ping_notes(tour.fabric) == asleep, "pings of drivers passed sleeping HCAs")
    tour.does("power", "resume")
    for each in tour.users:
        each.shows("event: port active")
    tour.all_go_on()
    require(tour.broken() == before, "sleep broke connections of drivers")


def driver_goes(tour):
    tell("\n# A driver is unloaded under its devices, and comes back.")
    with_driver = objects(tour.fabric)["qp"]
    tour.does("driver", "unload", "ping")
    harness.wait_until(lambda: objects(tour.fabric)["qp"] == with_driver - 4, 20, "the drivers' queue pairs to go")
    tell(f"    {'driver_ping':22} gone, with its 4 queue pairs")
    for each in tour.users:
        each.goes_on("goes on")
    tour.does("driver", "load", "ping")
    tour.drivers_go_on()


def eject(tour):
    tell("\n# The HCA is pulled out under everybody.")
    for each in (tour.write, *tour.users):
        each.skip()
    tour.does("hca", "eject", "softib0", "--node", "1")
    tour.user1.shows("event: local catastrophic error")
    tour.user1.ends(USER_PING_DEVICE_GONE, "closes everything and ends")
    tour.user0.ends(USER_PING_PEER_GONE, "ends, as the other side is gone")
    tour.write.shows(FLUSHED)
    tour.write.ends(1, "gives up")
    tour.write_server.ends(1, "gives up")
    tour.drivers_go_on(1, "that of node1 is gone, that of node0 has let go of it")
    harness.wait_until(lambda: sum(objects(tour.fabric).values()) == 5, 20, "what belonged to node1 to go")
    tour.does("hca", "add", "--node", "1")
    tour.drivers_go_on(what="there are two again, connected")
    tour.starts_programs()
    tell(f"    {'new programs':22} run")


def end(tour):
    tell("\n# Programs are told to end, then the HCA goes as asked: the driver lets go of it.")
    for each in tour.users:
        each.program.process.terminate()
    require({each.program.wait(20) for each in tour.users} <= {0, USER_PING_PEER_GONE}, "user_ping did not end in order")
    for each in (tour.write, tour.write_server):
        each.program.kill()
    harness.wait_until(lambda: len(hca_of(tour.fabric, 1)["open_files"]) == 1, 20, "the programs' files to be closed")
    tour.does("hca", "remove", "softib0", "--node", "1")
    tour.does("hca", "add", "softib0", "--node", "1")
    tour.drivers_go_on()
    tour.does("driver", "unload", "ping")
    harness.wait_until(lambda: not any(objects(tour.fabric).values()), 20, "all objects to go")
    require(daemon_pid(tour.fabric) == tour.daemon, "softibd is another one")
    tell(f"\nThere is no object left in softibd, which is still the process {tour.daemon}.")


STEPS = (begin, removal_is_refused, short_pull, long_pull, power_sleep, driver_goes, eject, end)


def test(report, user):
    harness.need_program("ib_write_bw")
    built = examples.ready()
    with store_folder(user) as folder:
        config = write_store(folder, user, PING_CONFIG, {"ping": (built.driver_ping, "IBA\\Ping")})
        user_ping = folder / "user_ping"  # where `user` can read it
        shutil.copy(built.user_ping, user_ping)
        os.chmod(user_ping, 0o755)
        with harness.Fabric(nodes=2, user=user, name="tour", extra=["--config", str(config)]) as fabric:
            tour = Tour(fabric, user_ping)
            for step in STEPS:
                with report.case(step.__name__.replace("_", " ")):
                    step(tour)
                if report.rows[-1][1] != "ok":
                    break  # the next one would begin somewhere else


if TELL:
    sys.argv += ["--as", "root"]  # whichever user runs the tour
harness.main("lifecycle", test)
