#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Hostile user mode over the real socket: whatever one process does to softibd, another is still served, and after
the end of the hostile process softibd has the objects, descriptors and memory that it had before.

SOFTIB_SEED=n repeats the random choices of a run.
"""
import contextlib
import multiprocessing
import os
import pathlib
import random
import resource
import socket
import struct
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
from control_socket import *  # noqa: F403: the vocabulary of the protocol
from control_socket import Client, Code, Softibd
from harness import BIN, Failed, Report, wait_until

SEED = int(os.environ.get("SOFTIB_SEED", "1"))
CONNECTIONS = 1000
SLOTS = 4096  # hca::kMaxSlots
TIME_LIMIT = 20  # seconds in which softibd must answer the good client, also on a busy machine
# ThreadSanitizer keeps its records of memory that was freed.
SANITIZER = os.environ.get("SOFTIB_SANITIZER")
MEMORY_COUNTS = SANITIZER != "thread"
MORE_MEMORY = 48 << 20  # softibd may keep this much of its own memory after an attack
MUCH_MEMORY = 400 << 20  # and use this much during one
# Every process of this uid may send Shutdown and Keep, and they would end the test.
CODES = [c for c in range(0, 112) if c not in (Code.shutdown, Code.keep)]


class Good:
    """A client with ordinary requests, repeated, in a process of its own."""

    def __init__(self, path):
        self.rounds = multiprocessing.Value("Q", 0)
        self.longest = multiprocessing.Value("d", 0)
        self.pause, self.resting, self.end = (multiprocessing.Event() for _ in range(3))
        self.process = multiprocessing.Process(target=self.run, args=(path,), daemon=True)
        self.process.start()

    def run(self, path):
        with Client(path, TIME_LIMIT) as client:
            assert client.attach().status == OK and client.open().status == OK
            while not self.end.is_set():
                started = time.monotonic()
                self.round(client)
                self.longest.value = max(self.longest.value, time.monotonic() - started)
                self.rounds.value += 1
                while self.pause.is_set() and not self.end.is_set():
                    self.resting.set()
                    self.end.wait(0.005)
                self.resting.clear()

    @staticmethod
    def round(client):
        pd = client.made(ALLOC_PD)
        cq = client.made(CREATE_CQ, completion_queue())
        mr = client.made(REG_MR, register(pd))
        qp = client.made(CREATE_QP, queue_pair(pd, cq))
        assert client.call(QUERY_QP, u32(qp, 0)).status == OK
        assert client.call(DEALLOC_PD, u32(pd, 0)).status == BUSY
        for code, handle in ((DESTROY_QP, qp), (DEREG_MR, mr), (DESTROY_CQ, cq), (DEALLOC_PD, pd)):
            assert client.call(code, u32(handle, 0)).status == OK

    def check(self, at_least=1):
        """Checks that its rounds have gone on: it is alive and gets answers."""
        before = self.rounds.value
        wait_until(lambda: self.rounds.value >= before + at_least or not self.process.is_alive(), TIME_LIMIT + 5,
                   "the good client to be served")
        if not self.process.is_alive():
            raise Failed("the good client got a wrong answer, or none")

    @contextlib.contextmanager
    def at_rest(self):
        """Pauses with no objects except its file."""
        self.resting.clear()
        self.pause.set()
        try:
            if not self.resting.wait(TIME_LIMIT + 5):
                raise Failed("the good client does not get to the end of its round")
            yield
        finally:
            self.pause.clear()

    def stop(self):
        self.end.set()
        self.process.join(TIME_LIMIT)
        if self.process.exitcode != 0:
            raise Failed("the good client did not end in order")


class Arena:
    """softibd, the good client, and the attacks with what is checked after each of them."""

    def __init__(self, daemon, report):
        self.daemon, self.report, self.random = daemon, report, random.Random(SEED)
        self.path = daemon.socket
        self.good = Good(self.path)
        self.good.check(20)  # after this, everything that is allocated once exists
        self.before = self.holdings()
        self.memory = daemon.own_memory()
        self.peak = 0

    def holdings(self):
        with self.good.at_rest():
            status = self.daemon.status()
            return {"objects": status["objects"], "clients": len(status["clients"]),
                    "memory": status["memory"]["used"], "waiting": status["waiting_for_posters"],
                    "descriptors": self.daemon.open_descriptors()}

    def client(self, attached=True):
        client = Client(self.path)
        if attached:
            assert client.attach().status == OK and client.open().status == OK
        return client

    def look(self):
        self.peak = max(self.peak, self.daemon.own_memory())

    def attack(self, body):
        if not self.report.wanted(body.__name__):
            return
        with self.report.case(body.__doc__.splitlines()[0].rstrip(".")) as remarks:
            self.peak, self.good.longest.value = 0, 0
            started = self.good.rounds.value
            try:
                body(self)
            except (AssertionError, OSError) as error:
                raise Failed(f"{type(error).__name__}: {error}") from error
            if not self.daemon.is_alive():
                raise Failed(f"softibd died, exit code {self.daemon.process.returncode}")
            self.good.check()
            rounds = self.good.rounds.value - started
            self.look()
            remarks.append(f"{rounds} rounds of the good client, longest {self.good.longest.value * 1000:.0f} ms, "
                           f"{self.peak >> 20} MiB")
            self.expect_as_before()

    def attack_all(self, attacks, then=lambda attack: None):
        """Each of them, with what is to be so after it; then the end of the good client."""
        for attack in attacks:
            self.attack(attack)
            then(attack)
        with self.report.case("the good client and softibd end in order"):
            self.good.stop()

    def expect_as_before(self):
        now = {}

        def is_as_before():
            now.update(self.holdings())
            return now == self.before

        try:
            wait_until(is_as_before, 30, "softibd to let go")
        except Failed:
            raise Failed(f"softibd holds {now}, before it was {self.before}") from None
        if self.peak > MUCH_MEMORY:
            raise Failed(f"softibd took {self.peak >> 20} MiB")
        if MEMORY_COUNTS:
            self.expect_memory_back()

    def expect_memory_back(self):
        # An allocator gives memory back in steps, as it is used; the good client uses it all the time.
        try:
            wait_until(lambda: self.daemon.own_memory() <= self.memory + MORE_MEMORY, 30, "softibd to give memory back")
        except Failed:
            raise Failed(f"softibd keeps {self.daemon.own_memory() >> 20} MiB, it had {self.memory >> 20} MiB") from None


def answers(client, count):
    """Reads this many answers, or fewer if softibd closes the connection."""
    got = 0
    while got < count:
        try:
            reply = client.receive()
        except BlockingIOError:
            reply = None  # no answer yet, and the caller does not wait
        if reply is None:
            break
        for fd in reply.fds:
            os.close(fd)
        got += 1
    return got


def random_bytes(arena):
    """Random bytes instead of requests."""
    for _ in range(300):
        with arena.client(attached=False) as client:
            for _ in range(arena.random.randrange(1, 10)):
                message = arena.random.randbytes(arena.random.randrange(1, 300))
                if not client.send(message):
                    break


def broken_frames(arena):
    """Headers cut short, lengths that lie, messages that are too long."""
    ping = request(Code.ping)
    for size in range(1, 24):
        with arena.client(attached=False) as client:
            client.send(ping[:size])
            assert client.receive() is None, "a message without a header was answered"
    with arena.client(attached=False) as client:
        for length in (0, 23, 25, 4096, 0xffffffff):
            client.send(struct.pack("<I", length) + ping[4:])
            assert client.receive().status != OK
        for size in (MAX_MESSAGE - 24 + 1, 100_000, 150_000):
            client.send(request(Code.ping, bytes(size)))
            assert client.receive().status != OK
        assert client.call(Code.ping, bytes(MAX_MESSAGE - 24)).status == OK
    with arena.client(attached=False) as client:
        client.socket.send(b"")  # softibd reads it as the end of the connection
        assert client.receive() is None


def every_code(arena):
    """Every code with random buffers, on file 0, an open file and files that are not open."""
    for _ in range(6):
        with arena.client() as client:
            for code in CODES:
                sent = 0
                for file in (0, client.file, 77):
                    body = arena.random.randbytes(arena.random.choice((0, 4, 8, 16, 24, 32, 40, 48, 64, 128, 136, 400)))
                    if arena.random.random() < 0.5:  # small numbers are often valid handles
                        body = bytes(b & 7 if i % 4 == 0 else 0 for i, b in enumerate(body))
                    if code != WAIT_EVENT:
                        sent += client.send(request(code, body, file))
                assert answers(client, sent) == sent, f"a request {code} was not answered"


def forged_handles(arena):
    """The handles, files and process slots of another client."""
    with arena.client() as victim, arena.client() as thief:
        pd, cq = victim.made(ALLOC_PD), victim.made(CREATE_CQ, completion_queue())
        srq = victim.made(CREATE_SRQ, shared_queue(pd))
        read_end, write_end = os.pipe()
        channel = victim.made(CREATE_CHANNEL, file=0, fds=(read_end, write_end))
        os.close(read_end), os.close(write_end)
        things = {
            DESTROY_QP: victim.made(CREATE_QP, queue_pair(pd, cq)), DESTROY_SRQ: srq, DESTROY_CQ: cq,
            DEREG_MR: victim.made(REG_MR, register(pd)), DEALLOC_MW: victim.made(ALLOC_MW, u32(pd, 2)),
            FREE_DM: victim.made(ALLOC_DM, struct.pack("<QII", 4096, 0, 0)),
            DESTROY_AH: victim.made(CREATE_AH, address_handle(pd)),
            CLOSE_XRCD: victim.made(OPEN_XRCD, struct.pack("<QQII", 0, 0, 1, 0)), DEALLOC_PD: pd}
        own_pd, own_cq = thief.made(ALLOC_PD), thief.made(CREATE_CQ, completion_queue())
        for code, handle in things.items():
            assert thief.call(code, u32(handle, 0)).status != OK, f"request {code} on a stranger's object"
            assert thief.call(code, u32(handle, 0), file=victim.file + 1).status != OK
        for code, body in ((REG_MR, register(pd)), (CREATE_QP, queue_pair(pd, own_cq)),
                           (CREATE_QP, queue_pair(own_pd, cq)), (CREATE_QP, queue_pair(own_pd, own_cq, srq=srq)),
                           (CREATE_SRQ, shared_queue(pd)), (CREATE_AH, address_handle(pd)), (ALLOC_MW, u32(pd, 1)),
                           (CREATE_CQ, completion_queue(channel=channel)), (RESIZE_CQ, u32(cq, 100)),
                           (QUERY_QP, u32(things[DESTROY_QP], 0)), (QUERY_SRQ, u32(srq, 0)),
                           (QUERY_MR, u32(things[DEREG_MR], 0)), (MODIFY_QP, u32(things[DESTROY_QP], 1) + bytes(120)),
                           (OPEN_QP, struct.pack("<IIQ", things[CLOSE_XRCD], things[DESTROY_QP], 0))):
            assert thief.call(code, body).status != OK, f"request {code} with a stranger's object"
        assert thief.call(DESTROY_CHANNEL, u32(channel, 0), file=0).status != OK
        for generation in (0, 0x7fffffff):  # of no channel: no event for the victim
            thief.call(RAISE_EVENT, u32(3, things[DESTROY_QP], generation, 4), file=0)
            assert thief.call(GET_CHANNEL, u32(channel, generation), file=0).status != OK
            assert thief.call(WAIT_EVENT, u32(victim.slot[0], generation), file=0).status != OK
            assert thief.call(WAIT_EVENT, u32(1000 + generation, victim.slot[1]), file=0).status != OK
        for code, handle in things.items():
            assert victim.call(code, u32(handle, 0)).status == OK, f"the victim's object of request {code} was touched"
        assert victim.call(DESTROY_CHANNEL, u32(channel, 0), file=0).status == OK


def descriptors_nobody_asked_for(arena):
    """Descriptors of all kinds with all requests, kept and closed."""
    read_end, write_end = os.pipe()
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    memfd = os.memfd_create("hostile")
    null, folder = os.open("/dev/null", os.O_RDWR), os.open("/", os.O_RDONLY)
    kinds = (read_end, write_end, one.fileno(), memfd, null, folder)
    with arena.client() as client:
        for code in CODES:
            for count in (1, 2, 3, 40, 250):
                fds = [arena.random.choice((*kinds, client.socket.fileno())) for _ in range(count)]
                body = arena.random.choice((b"", bytes(8), struct.pack("<Q", 4096)))
                if code != WAIT_EVENT:
                    client.send(request(code, body, arena.random.choice((0, client.file))), fds)
                    assert answers(client, 1) == 1
    with arena.client() as client:
        held = arena.daemon.open_descriptors()
        for _ in range(40):  # they stay pending; their descriptors must not be kept as long
            client.send(request(WAIT_EVENT), (null, folder))
        assert client.call(Code.ping, file=0).status == OK
        now = arena.daemon.open_descriptors()
        assert now <= held, f"softibd keeps {now - held} descriptors that no request asked for"
        os.ftruncate(memfd, 8192)
        for size in (0, 1, 4095, 12288, 1 << 62):
            assert client.call(CREATE_BACKING, struct.pack("<Q", size), file=0, fds=(memfd,)).status != OK
        for pair in ((write_end, read_end), (read_end, read_end), (null, null), (one.fileno(), other.fileno())):
            assert client.call(CREATE_CHANNEL, file=0, fds=pair).status != OK
    # A channel whose reader has gone, with a completion queue on it.
    with arena.client() as client:
        channel = client.made(CREATE_CHANNEL, file=0, fds=(read_end, write_end))
        client.made(CREATE_CQ, completion_queue(channel=channel))
    for fd in (read_end, write_end, memfd, null, folder):
        os.close(fd)
    one.close(), other.close()


def half_closed(arena):
    """Sockets closed on one side."""
    for how in (socket.SHUT_WR, socket.SHUT_RD, socket.SHUT_RDWR):
        for _ in range(50):
            with arena.client() as client:
                client.made(ALLOC_PD)
                client.send(request(WAIT_EVENT))
                client.socket.shutdown(how)
                client.send(request(ALLOC_PD, file=client.file))


def a_thousand_connections(arena):
    """A thousand connections at a time, half of them processes."""
    clients = []
    try:
        for number in range(CONNECTIONS):
            client = Client(arena.path)
            clients.append(client)
            assert client.call(Code.ping).status == OK
            if number % 2 == 0:
                assert client.attach().status == OK and client.open().status == OK
                client.made(ALLOC_PD)
                client.made(CREATE_CQ, completion_queue())
        arena.look()
        arena.good.check()
    finally:
        for client in clients:
            client.socket.close()


def slow_readers(arena):
    """Clients that send and send and never read an answer."""
    clients = [arena.client() for _ in range(60)]
    try:
        for number, client in enumerate(clients):
            client.socket.setblocking(False)
            big = request(Code.ping, bytes(20_000))
            message = (request(Code.status), request(QUERY_CA, file=client.file), big)[number % 3]
            with contextlib.suppress(BlockingIOError):
                for _ in range(20_000):
                    client.socket.send(message)
        arena.look()
        arena.good.check(5)
        held = arena.daemon.open_descriptors() - arena.before["descriptors"]
        assert held < 6 * len(clients), f"softibd holds {held} descriptors for clients that do not read"
        # The kernel counts descriptors in transit in sockets per user and refuses more to every process of the user.
        waiting = answers(clients[0], 1000)
        assert waiting < 10, f"{waiting} answers with descriptors wait in the socket of a client that does not read"
    finally:
        for client in clients:
            client.socket.close()


def closed_in_the_middle(arena):
    """Connections that end while their requests are under way."""
    for number in range(400):
        with arena.client() as client:
            pd, cq = client.made(ALLOC_PD), client.made(CREATE_CQ, completion_queue())
            for _ in range(arena.random.randrange(1, 30)):
                client.send(request(CREATE_QP, queue_pair(pd, cq), client.file))
            client.send(request(WAIT_EVENT))
            client.send(request(RESIZE_CQ, u32(cq, 1000), client.file))
            if number % 2:
                client.send(request(CLOSE, u32(client.file, 0)))
                client.send(request(ALLOC_PD, b"", client.file))


def everything_there_is(arena):
    """All that softibd gives to one process: process slots, channels, files, memory."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Under ThreadSanitizer the end of all processes at once takes longer than TIME_LIMIT; AddressSanitizer's allocator
    # keeps 90 MiB of pages, in pieces, once 4,096 processes were there.
    most = min(1000 if SANITIZER else SLOTS + 1, descriptors - 100)
    crowd = []
    try:
        while len(crowd) < most:
            client = Client(arena.path)
            crowd.append(client)
            if client.attach().status != OK:
                break
            assert len(crowd) < SLOTS, "more processes than slots"
        assert client.call(Code.ping).status == OK
        arena.good.check()
    finally:
        for client in crowd:
            client.socket.close()
    wait_until(lambda: len(arena.daemon.status()["clients"]) == arena.before["clients"], TIME_LIMIT, "free slots")
    with arena.client() as hog, arena.client() as other:
        with arena.good.at_rest():  # memory is first come, first served up to --max-memory
            queues = []
            while (reply := hog.call(CREATE_CQ, completion_queue(4_194_303))).status == OK:
                queues.append(reply.information)
            assert reply.status == INSUFFICIENT and queues
            for queue in queues:
                assert hog.call(DESTROY_CQ, u32(queue, 0)).status == OK
        while hog.call(OPEN, b"\\Device\\ibal".ljust(128, b"\0"), file=0).status == OK:
            pass
        read_end, write_end = os.pipe()
        while hog.call(CREATE_CHANNEL, file=0, fds=(read_end, write_end)).status == OK:
            pass
        arena.look()
        # Other clients still get the objects that one client has used up for itself.
        other.made(CREATE_CHANNEL, file=0, fds=(read_end, write_end))
        assert other.open().status == OK
        os.close(read_end), os.close(write_end)


def finish(report, daemon):
    """Returns the exit code of the test; softibd has ended."""
    if daemon.exit_code != 0:
        print(f"softibd ended with {daemon.exit_code}")
        return 1
    return report.finish()


def main():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    report = Report("hostile_client")
    if hard < 2 * CONNECTIONS:
        report.skip_all(f"only {hard} descriptors are allowed (ulimit -Hn), {2 * CONNECTIONS} are needed")
        return report.finish()
    print(f"  seed {SEED}")
    with Softibd(BIN / "softibd", "--nodes", "2", "--max-memory", "1G") as daemon:
        arena = Arena(daemon, report)
        arena.attack_all((random_bytes, broken_frames, every_code, forged_handles, descriptors_nobody_asked_for,
                          half_closed, a_thousand_connections, slow_readers, closed_in_the_middle, everything_there_is))
    return finish(report, daemon)


if __name__ == "__main__":
    sys.exit(main())
