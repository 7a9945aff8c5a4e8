#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The socket switch: unmodified TCP programs over RDMA.

sockets_test.py [--as root|nobody] [--only REGEX] [--link-layer ethernet] [--protocol sdp|rsockets]

--only: the parts of those names (closing, http, ...). --protocol: what the switch uses; `sdp` if not given.

A connection over RDMA has the address of the client's node as its source; one over TCP would have 127.0.0.1.
"""
import glob
import os
import pathlib
import random
import re
import signal
import sys
import time

import harness
from harness import Failed

SECONDS = 40
SERVER, CLIENT = harness.ADDRESSES
MEBIBYTES = 24
KILLS = 8
STORMS = 8
INTERRUPTED_STORMS = 3
RSOCKETS = "rsockets" in sys.argv[1:] and sys.argv[sys.argv.index("rsockets") - 1] == "--protocol"
SWITCH = ("--sockets=rsockets",) if RSOCKETS else ("--sockets",)
PROTOCOL = "rsockets" if RSOCKETS else "sdp"
# The result of a read from a process that was killed. The kernel ends TCP connections in order, and so does softib
# its streams; rsockets do not.
GONE = "^error ECONNRESET$" if RSOCKETS else "^(no error|end of the stream|error ECONNRESET)$"
PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs/sockets/tcp_programs.py"
SCRIPT = {}  # a copy of it that the user may read


def serve(fabric, words, port, switched=True, before=()):
    """Starts a server on node 0. Over rsockets a first client would decide whether it listens over RDMA."""
    server = fabric.start(words, 0, more=SWITCH if switched else (), before=before)
    listens = (lambda: any(one["local"].endswith(f":{port}") for one in fabric.ids(state="listening"))) if switched and RSOCKETS \
        else (lambda: harness.is_listening(server.pid, port))
    harness.wait_until(lambda: listens() or not server.running(), SECONDS, f"{server.describe()} to listen")
    if not server.running():
        raise Failed(f"{server.describe()} ended:\n{harness.tail(server.text())}")
    return server


def run(fabric, words, seconds=SECONDS):
    return fabric.run(words, 1, seconds, more=SWITCH)


def own(mode, *words):
    return ["/usr/bin/python3", SCRIPT["path"], mode, *map(str, words)]


def random_file(folder, name="data"):
    path = folder / name
    path.write_bytes(random.Random(20261125).randbytes(MEBIBYTES << 20))
    path.chmod(0o644)
    return path


def same(path, wanted):
    if harness.digest(path) != harness.digest(wanted):
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
        run(fabric, ["curl", "-sS", "-T", data, f"http://{SERVER}:{port}/put"]).require(f"^{harness.digest(data)}$")
        server.kill()
        if server.text().count(CLIENT) < 3 or "127.0.0.1" in server.text():
            raise Failed(f"not over RDMA:\n{harness.tail(server.text())}")


def readable(folder, name):
    """A copy of a script, which the user may read."""
    path = folder / name
    path.write_bytes((PROGRAMS.parent / name).read_bytes())
    path.chmod(0o644)
    return path


def node(fabric, report, folder):
    program = harness.need_program("node")
    harness.need_program("curl")
    with report.case("node.js: HTTP server and client"):
        port = harness.free_port()
        server = serve(fabric, [program, readable(folder, "http_server.js"), port], port)
        run(fabric, [program, readable(folder, "http_client.js"), SERVER, port, CLIENT, 20]).require("^all right$")
        for _ in range(2):
            run(fabric, ["curl", "-sS", f"http://{SERVER}:{port}/"]).require(rf"^GET [0-9a-f]+ {CLIENT}$")
            run(fabric, ["curl", "-sS", "-o", folder / "large", f"http://{SERVER}:{port}/large"]).require()
        if (folder / "large").stat().st_size != 3_000_000:
            raise Failed("not all of the large answer")
        server.kill()


def grpc(fabric, report, folder):
    with report.case("gRPC: server and client"):
        script = readable(folder, "grpc_programs.py")
        port = harness.free_port()
        words = ["/usr/bin/python3", script, port]
        if harness.subprocess.run([words[0], "-c", "import grpc"], capture_output=True, check=False).returncode != 0:
            raise harness.Skipped("python3-grpcio is not installed (packages.txt)")
        server = serve(fabric, words, port)
        run(fabric, [*words, SERVER]).require("^all right$", *[f"^ipv4:{CLIENT}:"] * 4)
        server.kill()


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
                          ("one process, sendfile", {"master": "off", "sendfile": "on"}),
                          ("two workers", {"master": "on", "sendfile": "on"})):
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
    for title, more in (("", ()), (", reverse", ("-R",)), (", 4 streams", ("-P", 4)),
                        (", 4 streams, reverse", ("-P", 4, "-R")), (", both directions", ("--bidir", "-P", 2))):
        with report.case(f"iperf3{title}"):
            port = harness.free_port()
            server = serve(fabric, ["iperf3", "-s", "-1", "-p", port, "--forceflush"], port)
            run(fabric, ["iperf3", "-c", SERVER, "-p", port, "-n", "64M", *more]).require("iperf Done")
            fabric.end(server, SECONDS).require(rf"Accepted connection from {CLIENT}")


def own_programs(fabric, report, _):
    for mode in ("rules", "fork"):
        with report.case(f"calls on sockets: {mode}"):
            run(fabric, own(mode, *([] if mode == "rules" else [PROTOCOL]))).require("^all right$")
    for mode, what in (() if RSOCKETS else (("passed", "processes that get them"), ("details", "rare calls"))):
        with report.case(f"calls on sockets: {what}"):
            run(fabric, own(mode)).require("^all right$")
    with report.case("asyncio, 40 connections at once"):
        port = harness.free_port()
        server = serve(fabric, own("echo-server", port), port)
        run(fabric, own("echo-client", SERVER, port, 40)).require("^all right: 40$")
        server.kill()
        if f"'{CLIENT}'" not in server.text():
            raise Failed(f"not over RDMA:\n{harness.tail(server.text())}")


def beside_ibacm(fabric, report, _):
    with report.case("a host with ibacm, to which librdmacm connects itself"):
        harness.need_program("unshare")
        if os.getuid() != 0:
            raise harness.Skipped("only root can have a /run of its own")
        own_run = ["unshare", "--mount", "sh", "-c",
                   'mount -t tmpfs none /run && echo 1 >/run/ibacm.port && exec "$@"', "sh"]
        port = harness.free_port()
        server = serve(fabric, own("echo-server", port), port, before=own_run)
        fabric.run(own("echo-client", SERVER, port, 5), 1, SECONDS, before=own_run, more=SWITCH) \
            .require("^all right: 5$")
        server.kill()
        if f"'{CLIENT}'" not in server.text():
            raise Failed(f"not over RDMA:\n{harness.tail(server.text())}")


def prompt(fabric, report, _):
    for wait in ("accept", "poll", "epoll"):
        with report.case(f"a server that sleeps wakes when somebody connects, {wait}"):
            port = harness.free_port()
            server = serve(fabric, own("greeter", wait, port), port)
            run(fabric, own("greeted", SERVER, port)).require("^all right$")
            server.kill()


def streams(fabric, report, _):
    for mode in ("threads", "epoll"):
        with report.case(f"24 connections at once between two processes, {mode}"):
            port = harness.free_port()
            server = serve(fabric, own("streams-server", mode, port), port)
            run(fabric, own("streams-client", mode, SERVER, port, 24)).require("^all right: 24$")
            server.kill()
            if server.text().count(f"'{CLIENT}'") != 24:
                raise Failed(f"not over RDMA:\n{harness.tail(server.text())}")


def own_c_program(folder, name, *libraries):
    return harness.build_program(folder, PROGRAMS.parent / f"{name}.c", "-pthread",
                                 libraries=libraries)


def closing(fabric, report, folder):
    for way in ("close", "number", "range", "ring"):
        with report.case(f"a server closes its descriptors, way: {way}"):
            program = own_c_program(folder, "closing", "-luring")
            port = harness.free_port()
            server = serve(fabric, [program, port, way, folder / f"log_{way}"], port)
            if "no io_uring" in server.text():
                raise harness.Skipped("io_uring is not allowed here")
            run(fabric, [program, port, way, SERVER]).require("^all right$")
            server.wait_for_text("served", SECONDS)
            os.kill(server.pid, 15)
            fabric.end(server, SECONDS).require("^all right$")


def ending_listeners(fabric, report, folder):
    with report.case("a listener ends while three clients connect"):
        program = own_c_program(folder, "ending_listeners")
        port = harness.free_port()
        server = serve(fabric, [program, port], port)
        clients = [fabric.start([program, port, SERVER], 1, more=SWITCH) for _ in range(3)]
        for client in clients:
            fabric.end(client, SECONDS).require("^all right$")
        server.kill()


def edges(fabric, report, folder):
    for mode in ("greet", "greet-out", "echo"):
        with report.case(f"a server with edge-triggered events, {mode}"):
            program = own_c_program(folder, "edges")
            port = harness.free_port()
            server = serve(fabric, [program, port, mode], port)
            run(fabric, [program, port, mode, SERVER]).require("^all right$")
            fabric.end(server, SECONDS).require("^all right$")


def cancelled(fabric, report, folder):
    with report.case("threads that are cancelled in calls that wait"):
        program = own_c_program(folder, "cancelled")
        port = harness.free_port()
        server = serve(fabric, [program, port], port)
        client = fabric.start([program, port, SERVER], 1, more=SWITCH)
        fabric.end(server, SECONDS).require("^all right$")
        fabric.end(client, SECONDS).require("^all right$")


def like_tcp(fabric, report, folder):
    for mode, what in (("both", "both sides write much before they read"), ("shut", "shutdown(SHUT_RD) ends waits"),
                       ("stdio", "streams of stdio")):
        with report.case(f"as over TCP: {what}"):
            program = own_c_program(folder, "like_tcp")
            port = harness.free_port()
            server = serve(fabric, [program, mode, port], port)
            run(fabric, [program, mode, port, SERVER]).require("^all right$")
            fabric.end(server, SECONDS).require("^all right$")


def small_stacks(fabric, report, folder):
    with report.case("threads with the smallest stacks"):
        run(fabric, [own_c_program(folder, "small_stack")]).require("^all right$")


def signals(fabric, report, folder):
    if RSOCKETS:
        return
    with report.case("signals, time limits, handlers that write, cancelled threads"):
        run(fabric, [own_c_program(folder, "signals"), CLIENT]).require("^all right$")


def left_rung(fabric, report, folder):
    if RSOCKETS:
        return
    with report.case("a link that stays readable to the kernel is seen by nobody"):
        run(fabric, [own_c_program(folder, "left_rung"), CLIENT]).require("^all right$")


def late_control(fabric, report, folder):
    if RSOCKETS:
        return
    with report.case("an epoll set that is changed all the time is what was changed last"):
        run(fabric, [own_c_program(folder, "late_control"), CLIENT]).require("^all right$")
    first = harness.seed()
    with report.case("random changes of an epoll set, and a model of it"):
        print(f"  SOFTIB_SEED={first}")
        program = own_c_program(folder, "random_sets")
        for seed in range(first, first + 3):
            run(fabric, [program, CLIENT, seed, 100000, "full"]).require("^all right$")


def duplex(fabric, report, folder):
    with report.case("a thread that writes and one that reads at each side, connection after connection"):
        program = harness.build_program(folder, PROGRAMS.parent / "duplex.c", "-pthread")
        port = harness.free_port()
        server = serve(fabric, [program, port], port)
        run(fabric, [program, port, SERVER]).require("^all right$")
        fabric.end(server, SECONDS).require("^all right$")


def interrupt(fabric, client, seed):
    """A port goes down and comes up again, after some messages."""
    draw = random.Random(seed)
    target = fabric.sent_messages() + draw.randrange(1, 3000)
    harness.wait_until(lambda: fabric.sent_messages() >= target or not client.running(), SECONDS, "traffic")
    node = draw.choice(("node0", "node1"))
    for word in ("down", "up"):
        fabric.softib("port", word, "--node", node, "--fabric", fabric.name).require()


def storms(fabric, report, folder):
    first = harness.seed()
    for title, count, interrupted in (("", STORMS, False), (", while a port goes down", INTERRUPTED_STORMS, True)):
        with report.case(f"threads that read, write and watch in every way{title}"):
            print(f"  SOFTIB_SEED={first}")
            program = harness.build_program(folder, PROGRAMS.parent / "socket_storm.c", "-pthread",
                                            *(["-DERRNO_CHANGES"] if RSOCKETS else []))
            for seed in range(first, first + count):
                port = harness.free_port()
                server = serve(fabric, [program, seed, port], port)
                client = fabric.start([program, seed, port, SERVER], 1, more=SWITCH)
                if interrupted:
                    interrupt(fabric, client, seed)
                for one in (client, server):
                    fabric.end(one, SECONDS).require("^all right$")


def ports(fabric, report, _):
    with report.case("a port goes down and up again, on a node with two: the connection stays"):
        port = harness.free_port()
        server = serve(fabric, own("patient-server", port), port)
        client = fabric.start(own("upper-client", SERVER, port), 1, more=SWITCH)
        server.wait_for_text("connected", SECONDS)
        for _ in range(3):
            for word in ("down", "up"):  # softibd says to the client's id that its address is at another port
                fabric.softib("port", word, "--node", "node1", "--fabric", fabric.name).require()
        os.kill(server.pid, signal.SIGUSR1)
        fabric.end(client, SECONDS).require("^got b'HELLO.n'$")
        fabric.end(server, SECONDS).require()


def forking(fabric, report, _):
    if not RSOCKETS:
        with report.case("a server that forks for each connection"):
            port = harness.free_port()
            server = serve(fabric, own("forking-server", port), port)
            for _ in range(5):
                run(fabric, own("upper-client", SERVER, port)).require("^got b'HELLO.n'$")
            server.kill()
        return
    with report.case("a server that forks for each connection: a clear word, no hang"):
        port = harness.free_port()
        server = serve(fabric, own("forking-server", port), port)
        # The parent closes its part in order: what has come is complete, and empty.
        run(fabric, own("upper-client", SERVER, port)).require("^(error (ECONNRESET|EPIPE)|got b'')$")
        server.wait_for_text("A server that forks for each connection needs plain TCP", SECONDS)
        server.kill()
    with report.case("the same without the switch, its client with it"):
        port = harness.free_port()
        server = serve(fabric, own("forking-server", port), port, switched=False)
        run(fabric, own("upper-client", SERVER, port)).require("^got b'HELLO.n'$")
        server.kill()


def foreign(fabric, report, _):
    if RSOCKETS:
        return
    with report.case("a server that accepts past the switch resets its client"):
        port = harness.free_port()
        server = serve(fabric, own("foreign-server", port), port)
        run(fabric, own("upper-client", SERVER, port), seconds=10).require("^error ECONNRESET$")
        server.wait_for_text("accepted True", SECONDS)
        fabric.softib("trace", "--fabric", fabric.name).require(f"on port {port} does not use the socket switch")
        fabric.softib("explain", "--fabric", fabric.name).require("accepted without the socket switch")
        server.kill()


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
                fabric.end(stays, SECONDS).require("^error (ECONNRESET|EPIPE)$" if role == "writes" else GONE)
    # A part of the data may not look complete.
    with report.case(f"kill -9 of a client that sends, {KILLS} times"):
        port = harness.free_port()
        server = serve(fabric, own("read-server", port, KILLS), port)
        for number in range(KILLS):
            client = fabric.start(own("send-client", SERVER, port), 1, more=SWITCH)
            client.wait_for_text(f"sent {1 + number}", SECONDS)
            os.kill(client.pid, 9)
        text = fabric.end(server, SECONDS).require().text
        ends = text.splitlines()
        if len(ends) != KILLS or not all(re.fullmatch(GONE, end) for end in ends):
            raise Failed(text)
    for number in range(KILLS // 2):
        with report.case(f"kill -9 of a server that sends, after {1 + number} MiB"):
            port = harness.free_port()
            server = serve(fabric, own("send-server", port), port)
            client = fabric.start(own("read-client", SERVER, port), 1, more=SWITCH)
            server.wait_for_text(f"sent {1 + number}", SECONDS)
            os.kill(server.pid, 9)
            fabric.end(client, SECONDS).require(GONE)


def without_softibd(fabric, report, _):
    with report.case("softibd is killed: a server goes on over TCP, and rests") as remarks:
        port = harness.free_port()
        server = serve(fabric, own("echo-server", port), port)
        run(fabric, own("echo-client", SERVER, port, 5)).require("^all right: 5$")
        os.kill(fabric.state()["pid"], 9)
        begin, before = time.monotonic(), harness.cpu_seconds(server.pid)
        for _ in range(8):
            client = harness.Program(own("echo-client", SERVER, port, 5))
            if client.wait(SECONDS) != 0 or "all right: 5" not in client.text():
                raise Failed(f"{client.describe()}: {client.text()}")
        used, passed = harness.cpu_seconds(server.pid) - before, time.monotonic() - begin
        remarks.append(f"{used:.2f} s of a core in {passed:.2f} s")
        if used > passed / 2:
            raise Failed(f"{remarks[-1]}: a thread of it spins")
        server.kill()


def without(fabric, report, folder):
    with report.case("a static program gets a warning"):
        source = folder / "static.c"
        source.write_text("int main(void) { return 0; }\n")
        program = harness.build_program(folder, source, "-static")
        run(fabric, [program]).require("--sockets has no effect .* plain TCP: it is statically linked")
    with report.case("ranges that are none"):
        fabric.run(["true"], 1, SECONDS, more=("--sockets=node1",)).require('"node1" is not an address', code=2)


def test(report, user):
    folder = user.make_dir("softib-sockets-")
    SCRIPT["path"] = folder / PROGRAMS.name
    SCRIPT["path"].write_bytes(PROGRAMS.read_bytes())
    if not glob.glob("/usr/lib/*/librdmacm.so.1") and not os.path.exists("/usr/lib/librdmacm.so.1"):
        harness.need_program("rping")
    if RSOCKETS:
        report.may_take_some(2)
    for settings, config, parts in PARTS:
        wanted = [part for part in parts if report.wanted(part.__name__)]
        if not wanted:
            continue
        with harness.Fabric(nodes=2, user=user, config=config + harness.WITH_ADDRESSES, **settings) as fabric:
            for part in wanted:
                part(fabric, report, folder)


PARTS = (({}, "", (own_programs, beside_ibacm, prompt, ending_listeners, edges, cancelled, like_tcp, signals, left_rung, late_control, small_stacks, http, node, grpc, nginx, redis, iperf, streams, duplex, storms, forking, foreign, fallback, without)),
         ({}, harness.MISSED_LATE, (closing,)),
         ({"ports": 2}, "", (ports,)),
         ({}, harness.MISSED_SOON, (killed,)),
         ({}, "", (without_softibd,)))


if __name__ == "__main__":
    harness.main("sockets", test)
