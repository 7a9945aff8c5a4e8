#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Programs of rdmacm-utils, unmodified: connections by the distribution's librdmacm.

rdmacm_test.py [--as root|nobody] [--only REGEX] [--link-layer ethernet]
"""
import contextlib
import errno
import fcntl
import os
import select
import signal
import struct
import sys

import harness
from harness import Failed

# Addresses of the configuration: IPv6 ones no interface of the machine needs to have.
CONFIG = """[[node]]
name = "node0"
addresses = ["127.77.0.1", "fd00:77::1"]
[[node]]
name = "node1"
addresses = ["127.77.0.2", "fd00:77::2"]
"""
SERVER = {4: "127.77.0.1", 6: "fd00:77::1"}
SECONDS = 40


def start_server(fabric, words, node=0, state="listening", port=None):
    server = fabric.start(words, node)

    def is_there():
        found = fabric.ids(state=state, pid=server.pid)
        return [one for one in found if port is None or one["local"].endswith(f":{port}")]

    harness.wait_until(lambda: is_there() or not server.running(), SECONDS, f"{server.describe()} to listen")
    if not server.running():
        raise Failed(f"{server.describe()} ended before a client came:\n{harness.tail(server.text())}")
    return server


def ends_well(result, code=0):
    """Of rping, which may end with 255 after it has done all: its main thread closes the event channel while the other
    one may be about to take the next event, and then ends the program (rdma-core 44; later ones let that thread end
    first)."""
    if "rping" in result.words and result.code == 255 and code == 0:
        return result.require("rdma_get_cm_event: Bad file descriptor", code=255, forbid=(r"(?i)error", "failed"))
    return result.require(code=code)


def connect(fabric, server_words, client_words, nodes=(0, 1), server_code=0, client_code=0, seconds=SECONDS):
    server = start_server(fabric, server_words, nodes[0])
    client = ends_well(fabric.run(client_words, nodes[1], seconds), client_code)
    if server_code is None:  # it waits for the next client
        server.kill()
        return client.text, server.text()
    return client.text, ends_well(fabric.end(server, seconds), server_code).text


def leaves_nothing(fabric):
    harness.wait_until(lambda: not fabric.ids(), SECONDS, "all ids to be gone")


def rping(fabric, report):
    for title, nodes in (("between nodes", (0, 1)), ("within a node", (0, 0))):
        for family, address in SERVER.items():
            with report.case(f"rping, IPv{family}, {title}"):
                client, server = connect(fabric, ["rping", "-s", "-a", address, "-C", "20", "-v", "-V"],
                                         ["rping", "-c", "-a", address, "-C", "20", "-v", "-V"], nodes)
                for text in (client, server):
                    if text.count("rdma-ping-") != 20:
                        raise Failed(f"20 pings were expected:\n{harness.tail(text)}")
    with report.case("rping by the name of the node"):
        connect(fabric, ["rping", "-s", "-C", "5"], ["rping", "-c", "-a", "node0", "-C", "5"])
    with report.case("rping to the loopback address"):
        connect(fabric, ["rping", "-s", "-a", "127.0.0.1", "-C", "5"], ["rping", "-c", "-a", "127.0.0.1", "-C", "5"],
                (1, 1))
    with report.case("rping -P serves several clients, one after the other and together"):
        server = start_server(fabric, ["rping", "-s", "-P", "-a", SERVER[4]])
        words = ["rping", "-c", "-a", SERVER[4], "-C", "10"]
        ends_well(fabric.run(words, 1, SECONDS))
        # One after the other: rping has room for one request that it has not accepted, and loses an earlier one.
        clients = []
        for _ in range(3):
            client = fabric.start([*words[:-1], "1000"], 1)
            harness.wait_until(lambda now=client: not now.running() or
                               fabric.ids(pid=now.pid, state="established"), SECONDS, f"{client.describe()} to be connected")
            clients.append(client)
        for client in clients:
            ends_well(fabric.end(client, SECONDS))
        server.kill()
    leaves_nothing(fabric)


def tools(fabric, report):
    for name, options in (("ucmatose", ["-c", "10", "-C", "20"]), ("udaddy", ["-c", "4", "-C", "20"])):
        with report.case(name):
            connect(fabric, [name, "-b", SERVER[4], *options], [name, "-s", SERVER[4], *options])
    with report.case("rdma_server and rdma_client"):
        client, server = connect(fabric, ["rdma_server"], ["rdma_client", "-s", SERVER[4]])
        if "end 0" not in client or "end 0" not in server:
            raise Failed(f"{client}{server}")
    with report.case("cmtime, 200 connections"):
        connect(fabric, ["cmtime", "-c", "200"], ["cmtime", "-s", SERVER[4], "-c", "200"], server_code=None)
    with report.case("rcopy of 32 MiB"):
        source, target = fabric.runtime / "source", fabric.runtime / "target"
        source.write_bytes(os.urandom(1 << 20) * 32)
        source.chmod(0o644)
        connect(fabric, ["rcopy"], ["rcopy", source, f"{SERVER[4]}:{target}"], server_code=None)
        if harness.digest(source) != harness.digest(target):
            raise Failed("the copy differs")
        target.unlink()
    with report.case("mckey: a message for each member of a group"):
        group = ["mckey", "-m", "239.77.1.1", "-c", "1", "-C", "5"]
        receivers = [fabric.start(["stdbuf", "-oL", *group, "-b", address], node)
                     for node, address in enumerate(("127.77.0.1", "127.77.0.2"))]
        for receiver in receivers:
            receiver.wait_for_text("joined dgid", SECONDS)
        fabric.run([*group, "-s", "-b", "127.77.0.2"], 1, SECONDS).require()
        for receiver in receivers:
            fabric.end(receiver, SECONDS).require()
    leaves_nothing(fabric)


def ends(fabric, report):
    with report.case("nobody listens: the client is told, and the trace says who does"):
        server = start_server(fabric, ["rping", "-s", "-a", SERVER[4], "-p", "7500"])
        client = fabric.run(["rping", "-c", "-a", SERVER[4], "-p", "7501", "-C", "1"], 1, SECONDS)
        if client.code in (0, None):
            raise Failed(f"rping ended with {client.code}")
        trace = fabric.softib("trace", "--fabric", fabric.name).require().text
        wanted = f"no listener for TCP port 7501 on node0 ({SERVER[4]})"
        if wanted not in trace or f"7500 (rping, pid {server.pid})" not in trace:
            raise Failed(f"no {wanted!r} in the trace:\n{harness.tail(trace)}")
        server.kill()
    for victim in ("server", "client"):
        with report.case(f"kill -9 of the {victim} in the middle"):
            words = ["-a", SERVER[4], "-C", "100000000"]
            server = start_server(fabric, ["rping", "-s", *words])
            client = fabric.start(["rping", "-c", *words], 1)
            harness.wait_until(lambda c=client: fabric.ids(state="established", pid=c.pid) or not c.running(), SECONDS,
                               "the connection")
            dead, other = (server, client) if victim == "server" else (client, server)
            os.killpg(dead.pid, signal.SIGKILL)
            if fabric.end(other, SECONDS).code is None:
                raise Failed(f"{other.describe()} did not notice")
            dead.kill()
    with report.case("an HCA that is pulled out: the ids on it are told"):
        words = ["-a", SERVER[4], "-C", "100000000"]
        server = start_server(fabric, ["rping", "-s", *words])
        client = fabric.start(["rping", "-c", *words], 1)
        harness.wait_until(lambda: fabric.ids(state="established", pid=client.pid) or not client.running(), SECONDS,
                           "the connection")
        fabric.softib("hca", "eject", "softib0", "--node", "node0", "--fabric", fabric.name).require()
        if "device removal" not in fabric.end(server, SECONDS).text:
            raise Failed(f"no DEVICE_REMOVAL:\n{harness.tail(server.text())}")
        client.kill()  # it waits for a message: nothing on a link tells it that the other adapter is gone
    leaves_nothing(fabric)


def device(fabric, report):
    with report.case("the device file: kinds, errors and polling of descriptors"):
        fabric.run(["python3", __file__, "--program"], 0, SECONDS).require("^all right$")
    with report.case("calls of librdmacm that come too often, too late or in vain"):
        source = harness.SOURCE / "tests/system/programs/cm_manners.c"
        program = harness.build_program(fabric.runtime, source, libraries=("-lrdmacm", "-libverbs"))
        fabric.run([program, SERVER[4], "7490"], 0, SECONDS).require("^all right$")
    leaves_nothing(fabric)


def command(code, body, out=0):
    return struct.pack("=IHH", code, len(body), out) + body


def error_of(function, *arguments):
    try:
        function(*arguments)
    except OSError as error:
        return error.errno
    return 0


def is_readable(fd, seconds=0):
    return bool(select.select([fd], [], [], seconds)[0])


def program():
    """Runs on a node: /dev/infiniband/rdma_cm without librdmacm."""
    import ctypes  # noqa: PLC0415
    path = "/dev/infiniband/rdma_cm"
    number = os.stat(path).st_rdev
    with open("/sys/class/misc/rdma_cm/dev", encoding="ascii") as file:
        assert file.read() == f"{os.major(number)}:{os.minor(number)}\n"
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    assert os.fstat(fd).st_rdev == number and os.fstat(fd).st_mode & 0o170000 == 0o020000
    answer = ctypes.create_string_buffer(512)
    where = ctypes.addressof(answer)

    def create(on):
        os.write(on, command(0, struct.pack("=QQHB5x", 1, where, 0x106, 2), 4))
        return struct.unpack_from("=I", answer)[0]

    def resolve(on, number, last):
        # A multicast destination is resolved on any node.
        target = struct.pack("=H", 2) + b"\x1d\x2f" + bytes([127, 77, 0, last]) + bytes(20)
        os.write(on, command(3, bytes(28) + target + struct.pack("=II", number, 1000)))

    get_event = command(12, struct.pack("=Q", where), 336)
    assert error_of(os.write, fd, b"short") == errno.EINVAL
    assert error_of(os.write, fd, command(99, b"")) == errno.EINVAL
    assert error_of(os.write, fd, command(13, b"")) == errno.ENOSYS
    assert error_of(os.write, fd, command(10, struct.pack("=I", 12345678))) == errno.ENOENT
    assert error_of(os.write, fd, command(0, struct.pack("=QQHB5x", 1, 8, 0x106, 2), 4)) == errno.EFAULT
    assert error_of(os.read, fd, 10) == errno.EINVAL
    assert error_of(os.lseek, fd, 0, os.SEEK_SET) == errno.ESPIPE
    one = create(fd)
    assert not is_readable(fd)
    os.set_blocking(fd, False)
    assert error_of(os.write, fd, get_event) == errno.EAGAIN
    resolve(fd, one, 1)
    assert is_readable(fd, 20)
    copy = os.dup(fd)
    assert is_readable(copy) and os.write(copy, get_event) == len(get_event)
    assert struct.unpack_from("=QII", answer)[2] == 0, "ADDR_RESOLVED"
    assert not is_readable(fd)
    # Events that end with their id leave nothing to read.
    two = create(fd)
    resolve(fd, two, 1)
    assert is_readable(fd, 20)
    os.write(fd, command(1, struct.pack("=QII", where, two, 0), 4))
    assert not is_readable(fd)
    # An id moves with its events.
    three = create(fd)
    resolve(fd, three, 1)
    other = os.open(path, os.O_RDWR)
    os.write(other, command(18, struct.pack("=QII", where, three, fd), 4))
    assert is_readable(other, 20) and not is_readable(fd)
    assert error_of(os.write, fd, command(1, struct.pack("=QII", where, three, 0), 4)) == errno.EINVAL
    assert error_of(os.write, other, command(18, struct.pack("=QII", where, one, 1), 4)) == errno.EINVAL
    assert error_of(os.write, other, command(18, struct.pack("=QII", where, one, 999), 4)) == errno.ENOENT
    # A child may poll it, but as on Linux it may not write to it; a signal interrupts a wait.
    child = os.fork()
    if child == 0:
        os._exit(0 if is_readable(other) and error_of(os.write, other, get_event) == errno.EACCES else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert os.write(other, get_event) == len(get_event) and not is_readable(other)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.siginterrupt(signal.SIGALRM, 1)
    handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda _: None)
    libc.signal(signal.SIGALRM, handler)
    libc.siginterrupt(signal.SIGALRM, 1)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    assert libc.write(other, get_event, len(get_event)) == -1 and ctypes.get_errno() == errno.EINTR
    # Without descriptors there is no device.
    spare = []
    with contextlib.suppress(OSError):
        while True:
            spare.append(fcntl.fcntl(0, fcntl.F_DUPFD, 0))
    assert error_of(os.open, path, os.O_RDWR) == errno.EMFILE
    for number in spare:
        os.close(number)
    print("all right")


def test(report, user):
    harness.need_program("rping")
    with harness.Fabric(nodes=2, user=user, config=CONFIG) as fabric:
        for part in (device, rping, tools, ends):
            part(fabric, report)


if __name__ == "__main__":
    if "--program" in sys.argv:
        program()
    else:
        harness.main("rdmacm", test)
