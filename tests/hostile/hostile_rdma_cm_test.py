#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Hostile use of the device file of librdmacm over the real socket: any command, all ids that there are, events that
are never read, ends in the middle. Another process is served meanwhile; afterwards softibd is as before.

SOFTIB_SEED=n repeats the random choices of a run.
"""
import resource
import struct
import sys

from hostile_client_test import SEED, TIME_LIMIT, Arena  # and the path to the harness
from control_socket import OK, Client, Softibd, request
from harness import BIN, Report, wait_until

OPEN_RDMA_CM, RDMA_CM = 29, 30
CREATE_ID, DESTROY_ID, BIND_IP, RESOLVE_IP, LISTEN, GET_EVENT, JOIN_IP = 0, 1, 2, 3, 7, 12, 16
COMMANDS = 26  # and some that do not exist
BYTES = 512
TCP, UDP = 0x106, 0x111
MOST_IDS = 65536  # IdTable::kMaxIdsOfFile
NO_MEMORY, AGAIN = -12, -11
ANSWER = struct.Struct("<iIQIIQII")
SOME_ADDRESS = 0x10000  # in this process, where nothing is


class Device:
    """An open /dev/infiniband/rdma_cm, and the connection for its commands."""

    def __init__(self, path):
        self.device, self.commands = Client(path, TIME_LIMIT), Client(path, TIME_LIMIT)
        reply = self.device.call(OPEN_RDMA_CM, struct.pack("<64s64s", b"", b"hostile"), file=0)
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
        with Device(daemon.socket):  # softibd's own queue pairs come with the first use
            wait_until(lambda: daemon.status()["clients"], TIME_LIMIT, "softibd's own client")
        arena = Arena(daemon, report)
        for attack in (any_command, all_ids, unread_events, answers_never_read, ends_in_the_middle):
            arena.attack(attack)
            with report.case(f"no id is left after {attack.__name__}"):
                wait_until(lambda: not daemon.status()["rdma_cm"], TIME_LIMIT, "the ids to be gone")
        with report.case("the good client and softibd end in order"):
            arena.good.stop()
    if daemon.exit_code != 0:
        print(f"softibd ended with {daemon.exit_code}")
        return 1
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
