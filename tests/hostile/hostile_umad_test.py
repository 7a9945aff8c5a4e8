#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Hostile use of /dev/infiniband/umadN and issmN over the real socket, in a subnet with switches: requests of any form,
MADs of every class, to every kind of port, files that end in the middle. Another process is served meanwhile;
afterwards softibd is as before.

SOFTIB_SEED=n repeats the random choices of a run.
"""
import contextlib
import os
import resource
import socket
import struct
import sys

from hostile_client_test import SEED, TIME_LIMIT, Arena, finish  # and the path to the harness
from control_socket import BUSY, OK, Client, Softibd, request
from harness import BIN, Report, wait_until

OPEN, ENABLE_PKEY, REGISTER, REGISTER2, UNREGISTER, SEND, PUT_BACK = range(96, 103)
UMAD, ISSM = 0, 1
DO_NOT_WAIT = 1
NODES = 4
FILES = 1000
LIDS = NODES + 2  # some that are nobody's
DONE = struct.Struct("<6I")
SMP_LID, SMP_DIRECTED, SA, PERFORMANCE, DEVICE, CM = 0x01, 0x81, 0x03, 0x04, 0x06, 0x07
KNOWN = [SMP_LID, SMP_DIRECTED, SA, PERFORMANCE, 0x05, DEVICE, CM, 0x08, 0x09, 0x10, 0x21, 0x32, 0x4f]
WITH_RMPP = [SA, *range(0x30, 0x50)]
METHODS = [*range(1, 8), 0x12, 0x14, 0x15, 0x81, 0x86, 0x92]
ATTRIBUTES = [*range(0x40), 0xff10, 0xff11, 0xff12]


class File:
    """An open umadN or issmN, and the socket for the answers to its requests."""

    def __init__(self, path, node=b"node0", unit=0, kind=UMAD, flags=0):
        self.device = Client(path, TIME_LIMIT)
        self.answers, self.there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.answers.settimeout(TIME_LIMIT)
        self.opened = self.device.call(OPEN, struct.pack("<64s64sIIII", node, b"hostile", unit, kind, flags, 0), file=0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for one in (self.device.socket, self.answers, self.there):
            one.close()

    def request(self, code, body=b"", more_fds=()):
        return self.device.send(request(code, body), (self.there.fileno(), *more_fds))

    def ask(self, code, body=b"", more_fds=()):
        """Returns the status of a request, and the number that came with it."""
        assert self.request(code, body, more_fds), "the device has ended"
        answer = self.answers.recv(4096)
        if struct.unpack_from("<I", answer, 4)[0] != OK:
            return struct.unpack_from("<I", answer, 4)[0], 0
        return DONE.unpack_from(answer, 24)[:2]

    def register(self, management_class, methods=0, rmpp=0, version=1, queue_pair=None):
        queue_pair = (0 if management_class in (SMP_LID, SMP_DIRECTED) else 1) if queue_pair is None else queue_pair
        low, high = methods & ((1 << 64) - 1), methods >> 64
        vendor = 0x1405 if 0x30 <= management_class <= 0x4f else 0  # these have an OUI
        return self.ask(REGISTER2, struct.pack("<IIBBHIQQIB3x", 0, queue_pair, management_class, version, 0, 0, low, high,
                                               vendor, rmpp))

    def write(self, agent, lid, mad, timeout=0, retries=0, queue_pair=1, **more):
        """Returns the status of the request."""
        return self.ask(SEND, umad_header(agent, lid, timeout, retries, queue_pair, **more) + mad)[0]


def umad_header(agent, lid, timeout=0, retries=0, queue_pair=1, qkey=0x80010000, grh=0):
    return struct.pack("<IIIII", agent, 0, timeout, retries, 0) + struct.pack(
        ">IIHBBBBBB16sI", queue_pair, qkey, lid, 0, 0, grh, 0, 64, 0, bytes(16), 0) + bytes(8)


def some_mad(random, management_class, size=256):
    """Whole enough to be read, and random for the rest."""
    method, attribute = random.choice(METHODS), random.choice(ATTRIBUTES)
    if random.random() < 0.1:
        method, attribute = random.randrange(256), random.randrange(1 << 16)
    mad = bytearray(struct.pack(">BBBBHHQHHI", 1, management_class, random.choice((1, 1, 1, 2)), method, 0, 0,
                                random.getrandbits(64), attribute, 0, random.choice((0, 1, 2, random.getrandbits(32)))))
    mad += random.randbytes(232) if random.random() < 0.5 else bytes(232)
    if management_class == SMP_DIRECTED:
        mad[4:8] = struct.pack(">HBB", random.choice((0, 0x8000)), random.randrange(70), random.randrange(4))
        struct.pack_into(">HH", mad, 32, random.choice((0, 0xffff)), random.choice((0, 0xffff)))
        mad[128:256] = bytes(random.choice((0, 1, 2, 255)) for _ in range(128))
    if random.random() < 0.3:  # RMPP
        mad[24:36] = struct.pack(">BBBBII", random.choice((0, 1, 1, 2)), random.randrange(6), random.randrange(256),
                                 random.choice((0, 0, 1, 2, 118)), random.getrandbits(4), random.getrandbits(9))
    return bytes(mad[:size]).ljust(size, b"\0")


def any_request(arena):
    """Every request with random bytes, of any length, on files that are open and that are not"""
    random = arena.random
    for _ in range(80):
        node = random.choice((b"node0", b"node1"))
        with File(arena.path) as one, File(arena.path, kind=ISSM) as manager, \
                File(arena.path, node, random.randrange(3), random.randrange(4), DO_NOT_WAIT) as other:
            for _ in range(50):  # of which no answer and no MAD is read
                file = random.choice((one, manager, other))
                body = random.randbytes(random.choice((0, 4, 16, 28, 36, 40, 56, 64, 100, 144, 200, 320, 600, 5000)))
                if random.random() < 0.5:
                    body = bytes(b & 7 if i % 4 == 0 else 0 for i, b in enumerate(body))
                fds = [os.memfd_create("hostile") for _ in range(random.choice((0, 0, 0, 1, 2)))]
                for fd in fds:
                    os.write(fd, random.randbytes(random.randrange(3000)))
                send = file.request if random.random() < 0.5 and len(fds) < 2 else \
                    lambda code, body, fds: file.device.send(request(code, body), fds)
                send(random.randrange(OPEN, PUT_BACK + 1), body, fds)
                for fd in fds:
                    os.close(fd)


def any_mad(arena):
    """MADs of every class, method and attribute to HCAs, switches and nobody, by LID and by directed route"""
    random = arena.random
    accepted = 0
    for management_class in range(256):
        with File(arena.path, random.choice((b"node0", b"node3"))) as file:
            status, agent = file.register(management_class, rmpp=management_class in WITH_RMPP and random.choice((0, 1)))
            assert management_class not in KNOWN or status == OK, f"no agent of class {management_class:#x}"
            for _ in range(300 if management_class in KNOWN else 10):
                used = agent if status == OK and random.random() < 0.95 else random.randrange(40)
                sent_class = management_class if random.random() < 0.9 else random.choice(KNOWN)
                size = 256 if random.random() < 0.9 else random.choice((0, 24, 36, 255, 257, 600, 3000))
                queue_pair = random.choice((0, 0, 1, 1, 1, 2, 0xffffff))
                accepted += OK == file.write(
                    used, random.choice((0, 0xffff, 0xc000, random.randrange(LIDS))), some_mad(random, sent_class, size),
                    timeout=random.choice((0, 1, 20)), retries=random.choice((0, 2)), queue_pair=queue_pair,
                    grh=random.choice((0, 0, 0, 1)))
                drain(file.device.socket)
    assert accepted > 2000, f"only {accepted} MADs were sent"


def drain(connection):
    """Reads the MADs that are there."""
    connection.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while connection.recv(65536):
            pass
    connection.settimeout(TIME_LIMIT)


def files_that_end(arena):
    """1,000 files, many at once, that end with agents, MADs that wait for answers, and unread MADs"""
    random = arena.random
    held = []
    for _ in range(FILES):
        file = File(arena.path, random.choice((b"node0", b"node1", b"node2")))
        assert file.opened.status == OK
        for management_class in random.sample(KNOWN, 3):
            status, agent = file.register(management_class)
            if status == OK:
                for _ in range(3):  # nobody's LID: the answer is the end of its time, which nobody sees
                    file.write(agent, random.choice((NODES + 1, 1)), some_mad(random, management_class), timeout=100000,
                               queue_pair=0 if management_class in (SMP_LID, SMP_DIRECTED) else 1)
        held.append(file)
        if len(held) > random.randrange(1, 60):
            held.pop(random.randrange(len(held))).close()
    arena.look()
    for file in held:
        file.close()


def mads_never_read(arena):
    """MADs by the thousand to a file that reads nothing"""
    with File(arena.path) as reader, File(arena.path, b"node1") as writer:
        assert reader.register(0x32, methods=(1 << 1) | (1 << 2))[0] == OK
        status, agent = writer.register(0x32)
        assert status == OK
        mad = struct.pack(">BBBBHHQHHI", 1, 0x32, 1, 1, 0, 0, 1, 1, 0, 0).ljust(37, b"\0") + b"\0\x14\x05" + bytes(216)
        lid = arena.daemon.status()["nodes"][0]["hcas"][0]["ports"][0]["lid"]
        for _ in range(20000):
            assert writer.write(agent, lid, mad) == OK
        files = {one["node"]: one for one in arena.daemon.status()["umad"]["files"]}
        assert files["node0"]["unread"] + files["node0"]["lost"] > 10000, files
        arena.look()
        arena.good.check()


def managers_that_wait(arena):
    """300 programs wait for one issm: each gets it once, or has gone"""
    random = arena.random
    with File(arena.path, kind=ISSM) as first:
        assert first.opened.status == OK
        with File(arena.path, kind=ISSM, flags=DO_NOT_WAIT) as second:
            assert second.opened.status == BUSY
        waiting = []
        for _ in range(300):
            one = Client(arena.path, TIME_LIMIT)
            one.send(request(OPEN, struct.pack("<64s64sIIII", b"node0", b"hostile", 0, ISSM, 0, 0)))
            waiting.append(one)
        for one in random.sample(waiting, 150):
            one.socket.close()
            waiting.remove(one)
    for one in waiting:
        assert one.receive().status == OK
        one.socket.close()


def main():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    report = Report("hostile_umad")
    print(f"  seed {SEED}")
    with Softibd(BIN / "softibd", "--topology", f"star:{NODES}") as daemon:
        # softibd's own queue pairs come with the first use.
        for node in range(NODES):
            with File(daemon.socket, f"node{node}".encode()) as file:
                assert file.opened.status == OK, file.opened
        arena = Arena(daemon, report)

        def no_file_is_left(attack):
            with report.case(f"no file is left after {attack.__name__}"):
                wait_until(lambda: not daemon.status()["umad"]["files"] and not daemon.status()["umad"]["under_way"],
                           TIME_LIMIT, "the files to be gone")

        arena.attack_all((any_request, mads_never_read, files_that_end, managers_that_wait, any_mad), no_file_is_left)
    return finish(report, daemon)


if __name__ == "__main__":
    sys.exit(main())
