#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The socket switch: unmodified TCP programs over RDMA.

sockets_test.py [--as root|nobody] [--only REGEX] [--link-layer ethernet]

A connection over RDMA has the address of the client's node as its source; one over TCP would have 127.0.0.1.
"""
import asyncio
import errno
import hashlib
import json
import os
import random
import select
import socket
import sys

import harness
from harness import Failed

SECONDS = 40
SERVER, CLIENT = "127.77.0.1", "127.77.0.2"
MEBIBYTES = 24
SWITCH = ("--sockets",)
SCRIPT = {}  # a copy of this file that the user may read


def ids(fabric, **wanted):
    """The ids of the fabric that have these values."""
    state = json.loads(fabric.softib("status", "--json", "--fabric", fabric.name).require().text)
    return [one for one in state["rdma_cm"] if all(one[key] == value for key, value in wanted.items())]


def serve(fabric, words, port, switched=True):
    """Starts a server on node 0; a first client would decide whether it listens over RDMA."""
    server = fabric.start(words, 0, more=SWITCH if switched else ())
    listens = (lambda: any(one["local"].endswith(f":{port}") for one in ids(fabric, state="listening"))) if switched \
        else (lambda: harness.is_listening(server.pid, port))
    harness.wait_until(lambda: listens() or not server.running(), SECONDS, f"{server.describe()} to listen")
    if not server.running():
        raise Failed(f"{server.describe()} ended:\n{harness.tail(server.text())}")
    return server


def run(fabric, words, seconds=SECONDS):
    return fabric.run(words, 1, seconds, more=SWITCH)


def own(mode, *words):
    return ["/usr/bin/python3", SCRIPT["path"], "--program", mode, *map(str, words)]


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def random_file(folder, name="data"):
    path = folder / name
    path.write_bytes(random.Random(20261125).randbytes(MEBIBYTES << 20))
    path.chmod(0o644)
    return path


def same(path, wanted):
    if digest(path) != digest(wanted):
        raise Failed(f"{path.name} has other bytes ({path.stat().st_size}) than {wanted.name}")


def http(fabric, report, folder):
    harness.need_program("curl")
    data = random_file(folder)
    with report.case("curl from python's http.server"):
        port = harness.free_port()
        server = serve(fabric, own("http", folder, port), port)
        for number in range(2):
            run(fabric, ["curl", "-sS", "-o", folder / f"got{number}", f"http://{SERVER}:{port}/data"]).require()
            same(folder / f"got{number}", data)
        run(fabric, ["curl", "-sS", "-T", data, f"http://{SERVER}:{port}/put"]).require(f"^{digest(data)}$")
        server.kill()
        if server.text().count(CLIENT) < 3 or "127.0.0.1" in server.text():
            raise Failed(f"not over RDMA:\n{harness.tail(server.text())}")


NGINX = """{user}
daemon {daemon}; master_process {master}; worker_processes 2; pid {folder}/nginx.pid; error_log stderr info;
events {{ worker_connections 64; }}
http {{
  access_log {folder}/access.log;
  client_max_body_size 0; sendfile {sendfile};
  client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
  uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
  server {{ listen {port}; root {folder}; dav_methods PUT; }}
}}
"""


def user_is_root(folder):
    return folder.stat().st_uid == 0


def nginx(fabric, report, folder):
    program = harness.need_program("nginx")
    harness.need_program("curl")
    data = random_file(folder)
    for title, values in (("one process", {"master": "off", "sendfile": "off"}),
                          ("one process, sendfile", {"master": "off", "sendfile": "on"})):
        with report.case(f"curl from and to nginx, {title}"):
            port = harness.free_port()
            (folder / "access.log").unlink(missing_ok=True)
            config = folder / "nginx.conf"
            config.write_text(NGINX.format(folder=folder, port=port, daemon="off",
                                           # Workers of another user have no access to softibd.
                                           user="user root;" if user_is_root(folder) else "", **values))
            config.chmod(0o644)
            server = serve(fabric, [program, "-c", config, "-p", folder, "-e", "stderr"], port)
            run(fabric, ["curl", "-sS", "-o", folder / "down", f"http://{SERVER}:{port}/data"]).require()
            same(folder / "down", data)
            run(fabric, ["curl", "-sS", "-f", "-T", data, f"http://{SERVER}:{port}/up"]).require()
            same(folder / "up", data)
            log = folder / "access.log"
            harness.wait_until(lambda: log.read_text().count("\n") == 2, SECONDS, "two lines of nginx's log")
            if log.read_text().count(CLIENT) != 2:
                raise Failed(f"not over RDMA:\n{log.read_text()}")
            (folder / "up").unlink()
            os.kill(server.pid, 15)
            fabric.end(server, SECONDS).require()


def redis(fabric, report, folder):
    program = harness.need_program("redis-server")
    harness.need_program("redis-benchmark")
    with report.case("redis-server, redis-cli, redis-benchmark"):
        port = harness.free_port()
        server = serve(fabric, [program, "--port", port, "--bind", "0.0.0.0", "--protected-mode", "no", "--save", "",
                                "--appendonly", "no", "--dir", folder], port)
        cli = ["redis-cli", "-h", SERVER, "-p", port]
        run(fabric, [*cli, "set", "key", "value"]).require("^OK$")
        run(fabric, [*cli, "client", "list"]).require(rf"addr={CLIENT}:")
        large = "0123456789abcdef" * 6000
        run(fabric, [*cli, "set", "large", large]).require("^OK$")
        run(fabric, [*cli, "get", "large"]).require(f"^{large}$")
        bench = ["redis-benchmark", "-h", SERVER, "-p", port, "-q"]
        run(fabric, [*bench, "-t", "set,get,lrange_100", "-n", 2000, "-c", 20]).require("SET: ", "GET: ", forbid=("rror",))
        run(fabric, [*bench, "-t", "set,get", "-n", 4000, "-c", 4, "-P", 16, "-d", 4000]).require("GET: ",
                                                                                                 forbid=("rror",))
        run(fabric, [*cli, "get", "key"]).require("^value$")
        os.kill(server.pid, 15)
        fabric.end(server, SECONDS).require()


def iperf(fabric, report, _):
    harness.need_program("iperf3")
    for title, more in (("", ()), (", reverse", ("-R",))):
        with report.case(f"iperf3{title}"):
            port = harness.free_port()
            server = serve(fabric, ["iperf3", "-s", "-1", "-p", port, "--forceflush"], port)
            run(fabric, ["iperf3", "-c", SERVER, "-p", port, "-n", "64M", *more]).require("iperf Done")
            fabric.end(server, SECONDS).require(rf"Accepted connection from {CLIENT}")


def own_programs(fabric, report, _):
    for mode in ("rules", "fork"):
        with report.case(f"calls on sockets: {mode}"):
            run(fabric, own(mode)).require("^all right$")
    with report.case("asyncio, 40 connections at once"):
        port = harness.free_port()
        server = serve(fabric, own("echo-server", port), port)
        run(fabric, own("echo-client", SERVER, port, 40)).require("^all right: 40$")
        server.kill()
        if f"'{CLIENT}'" not in server.text():
            raise Failed(f"not over RDMA:\n{harness.tail(server.text())}")


def fallback(fabric, report, _):
    with report.case("TCP to a server that is not under the switch"):
        port = harness.free_port()
        server = serve(fabric, own("echo-server", port), port, switched=False)
        run(fabric, own("echo-client", "127.0.0.1", port, 5)).require("^all right: 5$")
        run(fabric, own("echo-client", SERVER, port, 5)).require("^all right: 5$")
        server.kill()
    with report.case("TCP from a client that is not under the switch"):
        port = harness.free_port()
        server = serve(fabric, own("echo-server", port), port)
        fabric.run(own("echo-client", SERVER, port, 5), 1, SECONDS).require("^all right: 5$")
        server.kill()
    with report.case("addresses out of the range use TCP"):
        port = harness.free_port()
        server = serve(fabric, own("echo-server", port), port)
        fabric.run(own("echo-client", SERVER, port, 3), 1, SECONDS, more=("--sockets=10.0.0.0/8",)) \
            .require("^all right: 3$")
        server.kill()
        if f"'{CLIENT}'" in server.text():
            raise Failed(f"over RDMA:\n{harness.tail(server.text())}")
    with report.case("nobody listens"):
        run(fabric, own("refused", SERVER, harness.free_port())).require("^all right$")


def killed(fabric, report, _):
    for victim in ("client", "server"):
        for role in ("reads", "writes"):
            with report.case(f"kill -9 of the {victim} while the other {role}"):
                port = harness.free_port()
                modes = ("hold", role) if victim == "client" else (role, "hold")
                server = serve(fabric, own("peer-server", modes[1], port), port)
                client = fabric.start(own("peer-client", modes[0], SERVER, port), 1, more=SWITCH)
                for one in (server, client):
                    one.wait_for_text("connected", SECONDS)
                dies, stays = (client, server) if victim == "client" else (server, client)
                os.kill(dies.pid, 9)
                # A reader may get the end of the stream: the kernel ends TCP connections of a process so, too.
                fabric.end(stays, SECONDS).require("^error (ECONNRESET|EPIPE)$" if role == "writes" else "^(no )?error")


def without(fabric, report, folder):
    with report.case("a static program gets a warning"):
        source = folder / "static.c"
        source.write_text("int main(void) { return 0; }\n")
        program = harness.build_program(folder, source, "-static")
        run(fabric, [program]).require("--sockets has no effect .* plain TCP: it is statically linked")
    with report.case("ranges that are none"):
        fabric.run(["true"], 1, SECONDS, more=("--sockets=node1",)).require('"node1" is not an address', code=2)


# The programs, under the switch.

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


def fork():
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
    # A child with the connection of its parent: an error, and the parent goes on.
    server, client, accepted = pair()
    child = os.fork()
    if child == 0:
        code = error_of(client.send, b"x")
        client.close()
        os._exit(0 if code == errno.ECONNRESET else 1)
    assert os.waitpid(child, 0)[1] == 0
    client.send(b"parent")
    assert accepted.recv(10) == b"parent"
    os.system("true")
    client.send(b"again")
    assert accepted.recv(10) == b"again"
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


def program(mode, *words):
    words = [int(word) if word.isdigit() else word for word in words]
    if mode.startswith("echo"):
        asyncio.run({"echo-server": echo_server, "echo-client": echo_client}[mode](*words))
        return
    {"rules": rules, "fork": fork, "refused": refused, "http": serve_files, "peer-server": peer_server,
     "peer-client": lambda role, host, port: peer(socket.create_connection((host, port)), role)}[mode](*words)


def test(report, user):
    folder = user.make_dir("softib-sockets-")
    for path in (os.path.abspath(__file__), harness.__file__):
        (folder / os.path.basename(path)).write_bytes(open(path, "rb").read())
    SCRIPT["path"] = folder / os.path.basename(__file__)
    if not os.path.exists("/usr/lib/x86_64-linux-gnu/librdmacm.so.1") and not os.path.exists("/usr/lib/librdmacm.so.1"):
        harness.need_program("rping")
    with harness.Fabric(nodes=2, user=user) as fabric:
        for part in (own_programs, http, nginx, redis, iperf, fallback, killed, without):
            part(fabric, report, folder)


if __name__ == "__main__":
    if "--program" in sys.argv:
        program(*sys.argv[sys.argv.index("--program") + 1:])
    else:
        harness.main("sockets", test)
