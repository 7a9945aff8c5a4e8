#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The programs of sockets_test.py, which run under the socket switch: tcp_programs.py MODE [ARGUMENT...]"""
import asyncio
import ctypes
import errno
import fcntl
import hashlib
import os
import random
import select
import signal
import socket
import socketserver
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

SERVER, CLIENT = "127.77.0.1", "127.77.0.2"


def listener(backlog=8):
    server = socket.socket()
    server.bind(("0.0.0.0", 0))
    server.listen(backlog)
    return server


def is_ready(one, what=select.POLLIN, milliseconds=0):
    poll = select.poll()
    poll.register(one, what)
    return poll.poll(milliseconds)


def pair():
    server = listener()
    is_ready(server)  # listens over RDMA from now on
    client = socket.create_connection((SERVER, server.getsockname()[1]))
    accepted, address = server.accept()
    # Both ends are on node 1: RDMA leads to its own address, 127.0.0.1 would too.
    assert address == client.getsockname() and accepted.getsockname() == client.getpeername()
    return server, client, accepted


def error_of(call, *words):
    try:
        call(*words)
    except OSError as error:
        return error.errno
    return 0


def rules():
    global SERVER  # pylint: disable=global-statement
    SERVER = CLIENT  # the node of this process
    server, client, accepted = pair()
    if not os.environ.get("SOFTIB_SOCKETS") or os.path.basename(os.readlink(f"/proc/self/fd/{client.fileno()}"))[:6] != "socket":
        raise SystemExit("not under the switch")
    # Options, names.
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10)
    assert client.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
    assert client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
    # Peeks, time limits, parts, duplicates.
    client.sendmsg([b"one ", b"two ", b"x" * 20000])
    assert accepted.recv(4, socket.MSG_PEEK) == b"one " and accepted.recv(8, socket.MSG_WAITALL) == b"one two "
    assert accepted.recv(20000, socket.MSG_WAITALL) == b"x" * 20000
    assert error_of(accepted.recv, 1, socket.MSG_DONTWAIT) == errno.EAGAIN
    accepted.settimeout(0.05)
    try:
        accepted.recv(1)
        raise SystemExit("bytes out of nowhere")
    except TimeoutError:
        pass
    accepted.settimeout(None)
    other = socket.socket(fileno=os.dup(client.fileno()))
    client.close()
    other.send(b"still there")
    assert accepted.recv(100) == b"still there"
    # Waiting for both kinds of descriptors.
    reader, writer = os.pipe()
    assert select.select([accepted, reader], [accepted], [], 0) == ([], [accepted], [])
    os.write(writer, b"x")
    assert select.select([accepted, reader], [], [], 5)[0] == [reader]
    epoll = select.epoll()
    epoll.register(accepted, select.EPOLLIN | select.EPOLLET | select.EPOLLRDHUP)
    epoll.register(reader, select.EPOLLIN)
    assert epoll.poll(5) == [(reader, select.EPOLLIN)]
    os.read(reader, 1)
    assert epoll.poll(0.05) == []
    other.send(b"edge")
    assert epoll.poll(5) == [(accepted.fileno(), select.EPOLLIN)] and epoll.poll(0.05) == []
    assert accepted.recv(100) == b"edge"
    other.send(b"edge")
    assert epoll.poll(5) == [(accepted.fileno(), select.EPOLLIN)] and accepted.recv(100) == b"edge"
    epoll.modify(accepted, select.EPOLLIN | select.EPOLLONESHOT)
    other.send(b"shot")
    assert epoll.poll(5) == [(accepted.fileno(), select.EPOLLIN)] and epoll.poll(0.05) == []
    epoll.modify(accepted, select.EPOLLIN)
    assert epoll.poll(5) == epoll.poll(5) == [(accepted.fileno(), select.EPOLLIN)]
    assert accepted.recv(100) == b"shot"
    # A buffer that is full: the rest comes when there is room.
    other.setblocking(False)
    sent = 0
    try:
        while True:
            sent += other.send(b"y" * 65536)
    except BlockingIOError:
        pass
    assert sent > 0 and not is_ready(other, select.POLLOUT)
    left = sent
    while left > 0:
        data = accepted.recv(1 << 20)
        assert data and not data.strip(b"y")
        left -= len(data)
    assert left == 0 and not is_ready(accepted) and is_ready(other, select.POLLOUT, 5000)
    other.setblocking(True)
    # Half of it ends, then all.
    other.shutdown(socket.SHUT_WR)
    assert accepted.recv(1) == b"" and error_of(other.send, b"x") == errno.EPIPE
    accepted.send(b"the other half")
    assert other.recv(100) == b"the other half"
    accepted.close()
    assert other.recv(1) == b"" and epoll.poll(0.05) == []
    # Not blocking, to a listener of the same thread.
    client = socket.socket()
    client.setblocking(False)
    epoll.register(client, select.EPOLLOUT)  # before it connects, as some libraries do
    epoll.poll(0)
    assert client.connect_ex((SERVER, server.getsockname()[1])) == errno.EINPROGRESS
    assert (client.fileno(), select.EPOLLOUT) in epoll.poll(20) and client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
    server.setblocking(True)
    accepted, _ = server.accept()
    client.send(b"hello")
    assert accepted.recv(10) == b"hello"
    print("all right")


def fork(protocol):
    global SERVER  # pylint: disable=global-statement
    SERVER = CLIENT
    # A child that only serves what it accepts itself.
    server = listener()
    child = os.fork()
    if child == 0:
        accepted, _ = server.accept()
        accepted.sendall(accepted.recv(10))
        os._exit(0)
    with socket.create_connection((SERVER, server.getsockname()[1])) as client:
        client.send(b"to a child")
        assert client.recv(10) == b"to a child"
    assert os.waitpid(child, 0)[1] == 0
    # A child with the connection of its parent, which goes on. Over rsockets the child gets an error.
    server, client, accepted = pair()
    child = os.fork()
    if child == 0:
        code = error_of(client.send, b"x")
        client.close()
        os._exit(0 if code == (errno.ECONNRESET if protocol == "rsockets" else 0) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert protocol == "rsockets" or accepted.recv(10) == b"x"
    client.send(b"parent")
    assert accepted.recv(10) == b"parent"
    os.system("true")
    client.send(b"again")
    assert accepted.recv(10) == b"again"
    print("all right")


def child_with(words, connection):
    """Runs a program that has the connection as its standard input and output."""
    return subprocess.run(words, stdin=connection, stdout=connection, timeout=20, check=True)


def passed():
    """Other processes use a connection: after an exec, and when it was sent to them."""
    global SERVER  # pylint: disable=global-statement
    SERVER = CLIENT
    for words, answer in ((["sh", "-c", "read -r line; echo got $line"], b"got a line\n"),
                          (["head", "-n", "1"], b"a line\n"),
                          (["/usr/bin/python3", "-c", "print(input().upper())"], b"A LINE\n")):
        _, client, accepted = pair()
        client.sendall(b"a line\n")
        child_with(words, accepted)
        assert client.recv(100) == answer, words
        accepted.sendall(b"from the parent")
        assert client.recv(100) == b"from the parent"
        accepted.close()
        assert client.recv(100) == b""
    _, client, accepted = pair()
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        accepted.close()
        client.close()
        _, descriptors, _, _ = socket.recv_fds(theirs, 10, 1)
        with socket.socket(fileno=descriptors[0]) as received:
            received.sendall(received.recv(100).upper())
        os._exit(0)
    theirs.close()
    socket.send_fds(ours, [b"x"], [accepted.fileno()])
    accepted.close()
    client.sendall(b"to whoever has it")
    assert client.recv(100) == b"TO WHOEVER HAS IT"
    assert os.waitpid(child, 0)[1] == 0
    assert client.recv(1) == b""
    print("all right")


def details():
    """Calls that few programs make."""
    global SERVER  # pylint: disable=global-statement
    SERVER = CLIENT
    server, client, accepted = pair()
    assert client.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE) == socket.SOCK_STREAM
    assert client.getsockopt(socket.SOL_SOCKET, socket.SO_DOMAIN) == socket.AF_INET
    assert client.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL) == socket.IPPROTO_TCP
    assert server.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1
    assert client.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 0
    assert client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1) == b"\x01"
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 10000)
    assert client.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == 20000
    linger = struct.pack("ii", 1, 7)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    assert client.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8) == linger
    zero_copy = error_of(client.setsockopt, socket.SOL_SOCKET, 60, 1)
    assert zero_copy == errno.EOPNOTSUPP or not os.environ.get("SOFTIB_SOCKETS")
    assert error_of(client.connect, client.getpeername()) == errno.EISCONN
    # Bytes that go nowhere, and counts.
    client.sendall(b"0123456789")
    assert is_ready(accepted, select.POLLIN, 5000)
    assert accepted.recv(4, socket.MSG_PEEK) == b"0123"
    assert len(accepted.recv(4, socket.MSG_TRUNC)) == 4
    waiting = bytearray(4)
    fcntl.ioctl(accepted, termios.FIONREAD, waiting)
    assert struct.unpack("i", waiting) == (6,)
    assert accepted.recv(100) == b"456789"
    # An urgent byte.
    client.send(b"ab!", socket.MSG_OOB)
    client.send(b"cd")
    assert is_ready(accepted, select.POLLIN, 5000)
    assert accepted.recv(100) == b"ab" and accepted.recv(1, socket.MSG_OOB) == b"!"
    assert accepted.recv(100) == b"cd" and error_of(accepted.recv, 1, socket.MSG_OOB) == errno.EINVAL
    # Files and pipes.
    with tempfile.TemporaryFile() as file:
        file.write(b"f" * 100_000)
        file.flush()
        assert os.sendfile(client.fileno(), file.fileno(), 10, 50_000) == 50_000
    assert accepted.recv(50_000, socket.MSG_WAITALL) == b"f" * 50_000
    reader, writer = os.pipe()
    os.write(writer, b"through a pipe")
    assert os.splice(reader, client.fileno(), 100) == 14
    assert os.splice(accepted.fileno(), writer, 7) == 7
    assert os.read(reader, 100) == b"through" and accepted.recv(100) == b" a pipe"
    # An end without a goodbye.
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    assert is_ready(accepted, select.POLLIN, 5000)
    assert error_of(accepted.recv, 1) == errno.ECONNRESET and accepted.recv(1) == b""
    print("all right")


async def echo_client(host, port, count):
    async def one(number):
        reader, writer = await asyncio.open_connection(host, port)
        data = random.Random(number).randbytes(100_000 + 997 * number)
        writer.write(data)
        writer.write_eof()
        got = await reader.read()
        writer.close()
        return got == data
    results = await asyncio.gather(*(one(number) for number in range(count)))
    print(f"all right: {sum(results)}")


async def echo_server(port):
    async def answer(reader, writer):
        print(writer.get_extra_info("peername"), flush=True)
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()
    async with await asyncio.start_server(answer, "0.0.0.0", port, backlog=64) as server:
        await server.serve_forever()


def greeter(wait, port):
    server = socket.create_server(("0.0.0.0", port))
    epoll = select.epoll()
    epoll.register(server, select.EPOLLIN)
    while True:
        if wait == "poll":
            is_ready(server, milliseconds=None)
        if wait == "epoll":
            epoll.poll()
        with server.accept()[0] as accepted:
            accepted.sendall(b"!")


def greeted(host, port):
    """A server that sleeps until somebody connects wakes then, not at the end of a sleep of the switch, which takes
    0.25 s. Others may keep it from its core for as long, but not each time."""
    for _ in range(20):
        times = []
        for _ in range(9):
            time.sleep(0.02)  # tidy: allow(sleep) the server has to sleep too
            start = time.monotonic()
            with socket.create_connection((host, port)) as client:
                assert client.recv(1) == b"!"
            times.append(time.monotonic() - start)
        if statistics.median(times) < 0.15:
            print("all right")
            return
    raise AssertionError(times)


def refused(host, port):
    client = socket.socket()
    assert error_of(client.connect, (host, port)) == errno.ECONNREFUSED
    client = socket.socket()
    client.setblocking(False)
    assert client.connect_ex((host, port)) == errno.EINPROGRESS
    assert is_ready(client, select.POLLOUT, 20000)
    assert client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNREFUSED
    print("all right")


def peer(connection, role):
    connection.sendall(b"there")
    assert connection.recv(5, socket.MSG_WAITALL) == b"there"
    print("connected", flush=True)
    try:
        while role == "writes":
            connection.sendall(b"x" * 1000)
        while connection.recv(1 << 20) or role == "hold":
            pass
        print("no error")
    except OSError as error:
        print("error", errno.errorcode[error.errno])


def peer_server(role, port):
    server = socket.create_server(("0.0.0.0", port))
    peer(server.accept()[0], role)


def serve_files(folder, port):
    import http.server  # pylint: disable=import-outside-toplevel

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_PUT(self):
            hashed = hashlib.sha256()
            left = int(self.headers["Content-Length"])
            while left > 0:
                data = self.rfile.read(min(left, 1 << 16))
                hashed.update(data)
                left -= len(data)
            self.send_response(201)
            self.end_headers()
            self.wfile.write(hashed.hexdigest().encode() + b"\n")
    os.chdir(folder)
    http.server.ThreadingHTTPServer(("0.0.0.0", port), Handler).serve_forever()


def stream(number):
    return random.Random(number).randbytes((1 << 20) + 997 * number)


def echo_in_thread(connection):
    def run():
        while data := connection.recv(1 << 16):
            connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
    threading.Thread(target=run, daemon=True).start()


def echo_by_epoll(server, epoll):
    """One thread for all: what is read waits until it can be written."""
    server.setblocking(False)
    epoll.register(server, select.EPOLLIN)
    connections, waiting = {}, {}
    while True:
        for fd, _ in epoll.poll():
            if fd == server.fileno():
                connection, address = server.accept()
                print(address, flush=True)
                connection.setblocking(False)
                connections[connection.fileno()], waiting[connection.fileno()] = connection, b""
                epoll.register(connection, select.EPOLLIN)
                continue
            connection = connections[fd]
            ended = False
            if not waiting[fd]:
                waiting[fd] = connection.recv(1 << 16)
                ended = not waiting[fd]
            try:
                while waiting[fd]:
                    waiting[fd] = waiting[fd][connection.send(waiting[fd]):]
            except BlockingIOError:
                pass
            if ended:
                epoll.unregister(connection)
                connections.pop(fd).close()
            else:
                epoll.modify(connection, select.EPOLLOUT if waiting[fd] else select.EPOLLIN)


def streams_server(mode, port):
    server = socket.create_server(("0.0.0.0", port), backlog=64)
    if mode == "epoll":
        echo_by_epoll(server, select.epoll())
    while True:
        connection, address = server.accept()
        print(address, flush=True)
        echo_in_thread(connection)


def read_all(connection):
    parts = []
    while data := connection.recv(1 << 16):
        parts.append(data)
    return b"".join(parts)


def streams_by_epoll(connections):
    epoll = select.epoll()
    got, left, number_of = {}, {}, {}
    for number, connection in connections.items():
        connection.setblocking(False)
        number_of[connection.fileno()], left[number], got[number] = number, memoryview(stream(number)), []
        epoll.register(connection, select.EPOLLIN | select.EPOLLOUT)
    while number_of:
        for fd, events in epoll.poll():
            number = number_of[fd]
            connection = connections[number]
            try:
                if events & select.EPOLLOUT and left[number]:
                    left[number] = left[number][connection.send(left[number]):]
                    if not left[number]:
                        connection.shutdown(socket.SHUT_WR)
                        epoll.modify(connection, select.EPOLLIN)
                if events & select.EPOLLIN:
                    got[number].append(connection.recv(1 << 16))
                    if not got[number][-1]:
                        epoll.unregister(connection)
                        del number_of[fd]
            except BlockingIOError:
                pass
    return {number: b"".join(parts) for number, parts in got.items()}


def streams_by_threads(connections):
    got = {}

    def write(number):
        connections[number].sendall(stream(number))
        connections[number].shutdown(socket.SHUT_WR)

    def read(number):
        got[number] = read_all(connections[number])
    threads = [threading.Thread(target=what, args=(number,)) for number in connections for what in (write, read)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return got


def streams_client(mode, host, port, count):
    connections = {number: socket.create_connection((host, port)) for number in range(count)}
    got = (streams_by_epoll if mode == "epoll" else streams_by_threads)(connections)
    print(f"all right: {sum(got[number] == stream(number) for number in connections)}")


PATTERN = bytes(range(256)) * 256


def send_forever(connection):
    """Prints how many MiB it has sent."""
    sent = 0
    while True:
        connection.sendall(PATTERN)
        sent += len(PATTERN)
        if sent % (1 << 20) == 0:
            print("sent", sent >> 20, flush=True)


def read_to_the_end(connection):
    """Checks the bytes; prints how they end."""
    got = 0
    try:
        while data := connection.recv(50_000):
            assert PATTERN[got % 256:got % 256 + len(data)] == data
            got += len(data)
        print("end of the stream", flush=True)
    except OSError as error:
        print("error", errno.errorcode[error.errno], flush=True)


def read_server(port, count):
    server = socket.create_server(("0.0.0.0", port))
    for _ in range(count):
        read_to_the_end(server.accept()[0])


def send_server(port):
    send_forever(socket.create_server(("0.0.0.0", port)).accept()[0])


class ForkingServer(socketserver.ForkingMixIn, socketserver.TCPServer):
    allow_reuse_address = True


class Upper(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(self.rfile.readline().upper())


def forking_server(port):
    with ForkingServer(("0.0.0.0", port), Upper) as server:
        server.serve_forever()


def foreign_server(port):
    """Accepts by a system call that the switch does not see."""
    with socket.create_server(("0.0.0.0", port)) as server:
        number = {"x86_64": 288, "aarch64": 242}[os.uname().machine]  # SYS_accept4
        accepted = ctypes.CDLL(None).syscall(number, server.fileno(), None, None, 0)
        print("accepted", accepted >= 0, flush=True)
        signal.pause()


def patient_server(port):
    """Answers when it gets SIGUSR1."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    with socket.create_server(("0.0.0.0", port)) as server:
        with server.accept()[0] as connection:
            print("connected", flush=True)
            signal.sigwait({signal.SIGUSR1})
            connection.sendall(connection.recv(100).upper())


def upper_client(host, port):
    try:
        with socket.create_connection((host, port)) as client:
            client.sendall(b"hello\n")
            print("got", client.recv(100))
    except OSError as error:
        print("error", errno.errorcode[error.errno])


def program(mode, *words):
    words = [int(word) if word.isdigit() else word for word in words]
    if mode.startswith("echo"):
        asyncio.run({"echo-server": echo_server, "echo-client": echo_client}[mode](*words))
        return
    {"rules": rules, "fork": fork, "passed": passed, "details": details, "greeter": greeter, "greeted": greeted, "refused": refused, "http": serve_files, "peer-server": peer_server,
     "streams-server": streams_server, "streams-client": streams_client,
     "forking-server": forking_server, "patient-server": patient_server, "foreign-server": foreign_server, "upper-client": upper_client,
     "read-server": read_server, "send-server": send_server,
     "read-client": lambda *address: read_to_the_end(socket.create_connection(address)),
     "send-client": lambda *address: send_forever(socket.create_connection(address)),
     "peer-client": lambda role, host, port: peer(socket.create_connection((host, port)), role)}[mode](*words)


if __name__ == "__main__":
    program(sys.argv[1], *sys.argv[2:])
