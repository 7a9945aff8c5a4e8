# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The control socket (src/verbs/control.h) from Python, with a softibd of its own."""
import collections
import contextlib
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile

MAX_MESSAGE = 64 * 1024
NO_INDEX = 0xffffffff
HEADER = struct.Struct("<IIQII")
REPLY = struct.Struct("<IIQQ")

OK, INSUFFICIENT, BUSY = 0, 4, 9

Code = collections.namedtuple("Code", "ping status shutdown keep")(1, 2, 4, 9)
ATTACH, OPEN, CLOSE, WAIT_EVENT, RAISE_EVENT = 16, 17, 18, 19, 20
CREATE_CHANNEL, DESTROY_CHANNEL, GET_CHANNEL, CREATE_BACKING, DESTROY_BACKING, GET_BACKING = range(22, 28)
QUERY_CA = 32
ALLOC_PD, DEALLOC_PD, REG_MR, REREG_MR, DEREG_MR, ALLOC_MW, DEALLOC_MW, ALLOC_DM, FREE_DM, QUERY_MR = range(48, 58)
(CREATE_AH, DESTROY_AH, CREATE_CQ, RESIZE_CQ, DESTROY_CQ, OPEN_XRCD, CLOSE_XRCD, CREATE_SRQ, MODIFY_SRQ, QUERY_SRQ,
 DESTROY_SRQ, CREATE_QP, OPEN_QP, MODIFY_QP, QUERY_QP, DESTROY_QP, ATTACH_MCAST, DETACH_MCAST) = range(64, 82)

Reply = collections.namedtuple("Reply", "status information output fds tag")


def u32(*values):
    return struct.pack(f"<{len(values)}I", *values)


def request(code, body=b"", file=0, tag=1):
    return HEADER.pack(HEADER.size + len(body), code, tag, file, 0) + body


def register(pd, access=1, address=0x10000, length=4096):
    return struct.pack("<IIQQQII", pd, access, address, length, address, NO_INDEX, 0)


def completion_queue(cqe=10, channel=NO_INDEX):
    return struct.pack("<IIIIQ", cqe, channel, 0, 0, 0)


def queue_pair(pd, cq, kind=2, srq=NO_INDEX):
    return struct.pack("<6I6IIIQ", kind, pd, cq, cq, srq, NO_INDEX, 16, 16, 2, 2, 64, 0, 0, 0, 0)


def shared_queue(pd):
    return struct.pack("<8IQ", 0, pd, NO_INDEX, NO_INDEX, 16, 2, 0, 0, 0)


def address_handle(pd):
    return u32(pd, 0) + struct.pack("<16sIHBBBBBBBB2x", bytes(16), 0, 1, 0, 0, 0, 0, 0, 0, 0, 1)


ABI_VERSION = 2  # control::kAbiVersion


class Client:
    """One connection. Closing it has the effect of the end of a process."""

    def __init__(self, path, time_limit=20):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(time_limit)
        self.socket.connect(path)
        self.file = 0
        self.slot = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, message, fds=()):
        """Returns False if softibd has closed the connection."""
        try:
            if fds:
                socket.send_fds(self.socket, [message], list(fds))
            else:
                self.socket.send(message)
            return True
        except (BrokenPipeError, ConnectionResetError):
            return False

    def receive(self):
        """Returns None if softibd has closed the connection."""
        try:
            message, fds, _, _ = socket.recv_fds(self.socket, MAX_MESSAGE, 8)
        except ConnectionResetError:
            return None
        if not message:
            return None
        length, status, tag, information = REPLY.unpack_from(message)
        assert length == len(message), "softibd's own framing is wrong"
        return Reply(status, information, message[REPLY.size:], fds, tag)

    def call(self, code, body=b"", file=None, fds=()):
        if not self.send(request(code, body, self.file if file is None else file), fds):
            return None
        reply = self.receive()
        if reply:
            for fd in reply.fds:
                os.close(fd)
        return reply

    def attach(self, node=b""):
        reply = self.call(ATTACH, struct.pack("<II64s64s", ABI_VERSION, 0, node, b"hostile_client_test"), file=0)
        if reply and reply.status == OK:
            self.slot = struct.unpack_from("<II", reply.output)
        return reply

    def open(self):
        reply = self.call(OPEN, b"\\Device\\ibal".ljust(128, b"\0"), file=0)
        if reply and reply.status == OK:
            self.file = reply.information
        return reply

    def made(self, code, body=b"", file=None, fds=()):
        """Creates an object, which must succeed, and returns its handle."""
        reply = self.call(code, body, file, fds)
        assert reply and reply.status == OK, f"request {code}: {reply and reply.output.decode(errors='replace')}"
        return reply.information


class Softibd:
    """A softibd in a runtime directory of its own, ended by its process id."""

    def __init__(self, program, *options):
        self.directory = tempfile.mkdtemp(prefix="softib-hostile-")
        read_end, write_end = os.pipe()
        # Freed memory is reused, or given back, at once, so that a leak differs from a sanitizer's quarantine and from
        # the pages that its allocator keeps.
        environment = dict(os.environ, ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") +
                           ":quarantine_size_mb=4:allocator_release_to_os_interval_ms=0")
        self.process = subprocess.Popen(
            [program, "--foreground", "--keep", "--fabric", "hostile", "--runtime-dir", self.directory,
             "--ready-fd", str(write_end), *options],
            pass_fds=[write_end], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=environment)
        os.close(write_end)
        with os.fdopen(read_end) as ready:
            if not select.select([ready], [], [], 30)[0]:
                self.process.kill()
                self.process.wait(60)
                raise AssertionError("softibd has not said in 30 s that it is ready; it was killed")
            words = ready.readline().split(maxsplit=1)
        assert words and words[0] == "ok", f"softibd does not start: {words}"
        self.socket = words[1].strip()
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        try:
            self.exit_code = self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(60)
            self.exit_code = None
        if kind is not None:
            log = pathlib.Path(self.directory, "hostile.log")
            lines = log.read_text(errors="replace").splitlines() if log.exists() else []
            print("softibd's log ends with:", *lines[-15:], sep="\n  ")
        shutil.rmtree(self.directory, ignore_errors=True)

    def is_alive(self):
        return self.process.poll() is None

    def open_descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def own_memory(self):
        """Bytes that belong to softibd alone; device memory is shared and counted by status()."""
        for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("no RssAnon")

    def status(self):
        with Client(self.socket) as client:
            client.send(request(Code.status))
            reply = client.receive()
            with os.fdopen(reply.fds[0]) as text:
                return json.load(text)
