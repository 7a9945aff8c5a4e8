#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Hostile use of the device file of librdmacm over the real socket: any command, all ids that there are, events that
are never read, ends in the middle. Another process is served meanwhile; afterwards softibd is as before.

SOFTIB_SEED=n repeats the random choices of a run.
"""
import contextlib
import multiprocessing
import resource
import socket
import struct
import sys

from hostile_client_test import SEED, TIME_LIMIT, Arena, finish  # and the path to the harness
from control_socket import ALLOC_PD, CREATE_CQ, CREATE_QP, OK, Client, Softibd, completion_queue, queue_pair, request
from harness import BIN, Report, wait_until

OPEN_RDMA_CM, RDMA_CM = 29, 30
CREATE_ID, DESTROY_ID, BIND_IP, RESOLVE_IP, RESOLVE_ROUTE, CONNECT, LISTEN, ACCEPT = 0, 1, 2, 3, 4, 6, 7, 8
GET_EVENT, MIGRATE_ID, QUERY = 12, 18, 19
CONNECT_REQUEST, REJECTED = 4, 8
COMMANDS = 26  # and some that do not exist
BYTES = 512
TCP, UDP = 0x106, 0x111
MOST_IDS = 65536  # IdTable::kMaxIdsOfFile
NO_ENTRY, AGAIN, NO_MEMORY, ACCESS, INVALID = -2, -11, -12, -13, -22
ANSWER = struct.Struct("<iIQIIQII")
SOME_ADDRESS = 0x10000  # in this process, where nothing is


class Device:
    """An open /dev/infiniband/rdma_cm, and the connection for its commands."""

    def __init__(self, path, node=b""):
        self.device, self.commands = Client(path, TIME_LIMIT), Client(path, TIME_LIMIT)
        reply = self.device.call(OPEN_RDMA_CM, struct.pack("<64s64s", node, b"hostile"), file=0)
        assert reply.status == OK
        self.file = reply.information

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.device.socket.close()
        self.commands.socket.close()

    def message(self, written, file=None, size=None, option=b"", from_file=0):
        head = struct.pack("<IIQII", self.file if file is None else file, from_file,
                           len(written) if size is None else size, len(option), 0)
        return request(RDMA_CM, head + written[:BYTES].ljust(BYTES, b"\0") + option[:BYTES].ljust(BYTES, b"\0"))

    def write(self, written, **more):
        """Returns the result and the data of a command."""
        assert self.commands.send(self.message(written, **more))
        reply = self.commands.receive()
        assert reply is not None and reply.status == OK, "a command was not answered"
        return ANSWER.unpack_from(reply.output)[0], reply.output[ANSWER.size:]

    def command(self, code, body, **more):
        return self.write(struct.pack("<IHH", code, len(body), 400) + body, **more)

    def create(self, space=TCP):
        result, data = self.command(CREATE_ID, struct.pack("<QQHB5x", 1, SOME_ADDRESS, space, 2 if space == TCP else 4))
        return result, struct.unpack_from("<I", data)[0] if result == 0 else 0

    def resolve(self, number):
        """To a multicast address, which is resolved on each node: ADDR_RESOLVED waits then."""
        group = struct.pack("<H", 2) + b"\x1d\x2f" + bytes([239, 77, 0, 1]) + bytes(20)
        return self.command(RESOLVE_IP, bytes(28) + group + struct.pack("<II", number, 1000))[0]

    def destroy(self, number, **more):
        return self.command(DESTROY_ID, struct.pack("<QII", SOME_ADDRESS, number, 0), **more)[0]

    def migrate(self, number, from_file, **more):
        return self.command(MIGRATE_ID, struct.pack("<QII", SOME_ADDRESS, number, 0), from_file=from_file, **more)[0]

    def event(self):
        """Returns the kind and the id of the next event, or None."""
        result, data = self.command(GET_EVENT, struct.pack("<Q", SOME_ADDRESS))
        return (struct.unpack_from("<QII", data)[2], struct.unpack_from("<QI", data)[1]) if result == 0 else None

    def await_event(self):
        found = []
        wait_until(lambda: found.append(self.event()) or found[-1], TIME_LIMIT, "an event")
        return found[-1]

    def listen(self, address, port):
        number = self.create()[1]
        where = struct.pack("<H", socket.AF_INET) + struct.pack(">H", port) + socket.inet_aton(address) + bytes(20)
        assert self.command(BIND_IP, struct.pack("<Q", 0) + where + struct.pack("<I", number))[0] == 0
        assert self.command(LISTEN, struct.pack("<II", number, 64))[0] == 0
        return number

    def route(self, address, port):
        """Returns an id that may connect to the address."""
        number = self.create()[1]
        where = struct.pack("<H", socket.AF_INET) + struct.pack(">H", port) + socket.inet_aton(address) + bytes(20)
        assert self.command(RESOLVE_IP, bytes(28) + where + struct.pack("<II", number, 1000))[0] == 0
        self.await_event()
        assert self.command(RESOLVE_ROUTE, struct.pack("<II", number, 1000))[0] == 0
        self.await_event()
        return number

    def connect(self, number, qpn):
        return self.command(CONNECT, parameters(qpn) + struct.pack("<IIII", number, 0, 0, 0))[0]

    def accept(self, number, qpn):
        return self.command(ACCEPT, struct.pack("<Q", 1) + parameters(qpn) + struct.pack("<IIII", number, 0, 0, 0))[0]


def parameters(qpn):
    """struct rdma_ucm_conn_param"""
    return struct.pack("<II256s8B", qpn, 0, b"", 0, 0, 1, 1, 1, 7, 7, 1)


def address_of(arena, node):
    return arena.daemon.status()["nodes"][node]["addresses"][0]["ip"]


def ids(arena):
    return [(one["state"], one["local"]) for one in arena.daemon.status()["rdma_cm"]]


@contextlib.contextmanager
def another_process(body, *arguments):
    """Runs `body` in a child, with a pipe to it; yields this end of the pipe."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    child = context.Process(target=body, args=(there, *arguments), daemon=True)
    child.start()
    there.close()
    try:
        yield here
        here.send("the end")
        child.join(TIME_LIMIT)
        assert child.exitcode == 0, f"the other process ended with {child.exitcode}"
    finally:
        child.kill()
        child.join()


def any_command(arena):
    """Every command with random bytes, of any length, on files of its own and of others"""
    random = arena.random
    with Device(arena.path) as one, Device(arena.path) as other:
        ids = [device.create(random.choice((TCP, UDP)))[1] for device in (one, other) for _ in range(10)]
        for _ in range(5000):
            device = random.choice((one, other))
            body = bytearray(random.randbytes(random.choice((0, 4, 8, 16, 24, 32, 64, 150, 288, 296, 328))))
            if random.random() < 0.7:  # small numbers, and ids that exist
                body = bytearray(b & 7 if i % 4 == 0 else 0 for i, b in enumerate(body))
                for _ in range(2):
                    if len(body) >= 4:
                        struct.pack_into("<I", body, 4 * random.randrange(len(body) // 4), random.choice(ids))
            length = len(body) if random.random() < 0.9 else random.randrange(1 << 16)
            header = struct.pack("<IHH", random.randrange(COMMANDS), length, random.randrange(1024))
            device.write(header + bytes(body), size=random.choice((None, None, 0, 7, 1 << 40)),
                         file=random.choice((None, None, None, 0, 12345, other.file)),
                         option=random.randbytes(random.choice((0, 1, 4, 72, 512))),
                         from_file=random.choice((0, 0, one.file, other.file, 99)))


def all_ids(arena):
    """All ids that a file may have; another file still gets some"""
    with Device(arena.path) as hog, Device(arena.path) as other:
        count = 0
        while (result := hog.create()[0]) == 0:
            count += 1
            assert count <= MOST_IDS, "more ids than the limit"
        assert result == NO_MEMORY and count == MOST_IDS
        assert other.create()[0] == 0
        arena.look()
        arena.good.check()


def unread_events(arena):
    """20,000 events that nobody reads, of as many ids"""
    with Device(arena.path) as device:
        for _ in range(20000):
            result, number = device.create()
            assert result == 0 and device.resolve(number) == 0
        arena.look()
        arena.good.check()
        # They are all there still, in their order.
        for _ in range(100):
            assert device.command(GET_EVENT, struct.pack("<Q", SOME_ADDRESS))[0] == 0


def requests_not_read(arena):
    """Requests that are not read have no id yet, for no command, from no file; the reader gets each of them"""
    address = address_of(arena, 0)
    with Device(arena.path, b"node0") as server, Device(arena.path, b"node0") as other, \
            Device(arena.path, b"node1") as client:
        listener = server.listen(address, 20001)
        for turn in range(40):
            active = client.route(address, 20001)
            assert client.connect(active, 0) == 0
            wait_until(lambda: any(state == "REQ received" for state, _ in ids(arena)), TIME_LIMIT, "the request")
            unread = active + 1
            assert server.destroy(unread) == other.destroy(unread) == server.accept(unread, 0) == NO_ENTRY
            assert other.migrate(unread, server.file) == server.migrate(unread, server.file) == NO_ENTRY
            if turn % 4 == 3:  # it moves with its listener
                assert other.migrate(listener, server.file) == 0
                server, other = other, server
            if turn % 5 == 4:  # ... and ends with it
                assert server.destroy(listener) == 0
                listener = server.listen(address, 20001)
                assert client.await_event()[0] == REJECTED
            else:
                assert server.await_event() == (CONNECT_REQUEST, unread)
                assert server.destroy(unread) == 0
            assert client.destroy(active) == 0


def name_files(pipe, path, files):
    """All that another process can say about files that it has not opened."""
    with Device(path) as own:
        mine = own.create()[1]
        results = set()
        for file in files:
            for code in range(COMMANDS):
                results.add(own.command(code, bytes(300), file=file)[0])
            for number in range(1, mine + 20):
                results.add(own.destroy(number, file=file))
            results.add(own.migrate(mine, own.file, file=file))
        taken = {own.migrate(number, file) for file in files for number in range(1, mine + 20)}
        pipe.send((results, taken))
        pipe.recv()


def files_of_others(arena):
    """Another process names files by their numbers: EACCES, and nothing of theirs has changed"""
    with Device(arena.path) as device:
        listener = device.listen(address_of(arena, 0), 20002)
        before = ids(arena)
        with another_process(name_files, arena.path, [device.file]) as other:
            results, taken = other.recv()
        assert results == {ACCESS}, results
        assert taken == {INVALID}, taken
        wait_until(lambda: ids(arena) == before, TIME_LIMIT, f"nothing but {before} to be there")
        assert device.destroy(listener) == 0


def hold_queue_pair(pipe, path):
    with Client(path) as client:
        assert client.attach(b"node1").status == OK and client.open().status == OK
        pd, cq = client.made(ALLOC_PD), client.made(CREATE_CQ, completion_queue())
        pipe.send(struct.unpack_from("<I", client.call(CREATE_QP, queue_pair(pd, cq)).output)[0])
        pipe.recv()


def queue_pairs_of_others(arena):
    """A connection of another process's queue pair: EINVAL; one's own, and a number of nobody's, may connect"""
    address = address_of(arena, 0)
    with another_process(hold_queue_pair, arena.path) as other, Device(arena.path, b"node0") as server, \
            Device(arena.path, b"node1") as client, arena.client(attached=False) as process:
        foreign = other.recv()
        assert process.attach(b"node1").status == OK and process.open().status == OK
        pd, cq = process.made(ALLOC_PD), process.made(CREATE_CQ, completion_queue())
        own = struct.unpack_from("<I", process.call(CREATE_QP, queue_pair(pd, cq)).output)[0]
        server.listen(address, 20003)
        active = client.route(address, 20003)
        assert client.connect(active, foreign) == INVALID
        assert client.connect(active, own) == 0
        request = server.await_event()
        assert request[0] == CONNECT_REQUEST and server.accept(request[1], 0xfff001) == 0
        for _ in range(2):  # it holds nothing
            assert client.connect(client.route(address, 20003), 0xfff000) == 0
            assert server.await_event()[0] == CONNECT_REQUEST


def answers_never_read(arena):
    """Commands by the thousand, without reading an answer"""
    with Device(arena.path) as device:
        device.commands.socket.setblocking(False)
        message = device.message(struct.pack("<IHH", CREATE_ID, 24, 4) + struct.pack("<QQHB5x", 1, 8, TCP, 2))
        try:
            for _ in range(100000):
                device.commands.socket.send(message)
        except BlockingIOError:
            pass  # softibd reads no more before its answers are read
        arena.good.check()
        arena.look()


def ends_in_the_middle(arena):
    """500 files that end with listeners, memberships and resolutions under way"""
    random = arena.random
    for _ in range(500):
        with Device(arena.path) as device:
            for _ in range(random.randrange(1, 6)):
                number = device.create(random.choice((TCP, UDP)))[1]
                if random.random() < 0.5:
                    device.command(BIND_IP, struct.pack("<Q", 0) + struct.pack("<H", 2) + bytes(26) + struct.pack("<I", number))
                    device.command(LISTEN, struct.pack("<II", number, random.randrange(1 << 31)))
                else:
                    device.resolve(number)
            if random.random() < 0.5:  # the last command has no reader
                device.commands.send(device.message(struct.pack("<IHH", DESTROY_ID, 16, 4) +
                                                    struct.pack("<QII", SOME_ADDRESS, number, 0)))


def main():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    report = Report("hostile_rdma_cm")
    print(f"  seed {SEED}")
    with Softibd(BIN / "softibd", "--nodes", "2") as daemon:
        # softibd's own queue pairs come with the first use.
        with Device(daemon.socket, b"node0"), Device(daemon.socket, b"node1"):
            wait_until(lambda: len(daemon.status()["clients"]) == 2, TIME_LIMIT, "softibd's own clients")
        arena = Arena(daemon, report)

        def no_id_is_left(attack):
            with report.case(f"no id is left after {attack.__name__}"):
                wait_until(lambda: not daemon.status()["rdma_cm"], TIME_LIMIT, "the ids to be gone")

        arena.attack_all((any_command, all_ids, unread_events, requests_not_read, files_of_others, queue_pairs_of_others,
                          answers_never_read, ends_in_the_middle), no_id_is_left)
    return finish(report, daemon)


if __name__ == "__main__":
    sys.exit(main())
