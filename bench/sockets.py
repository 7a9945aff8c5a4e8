# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""TCP programs under the socket switch beside the kernel's TCP over loopback. Part of bench/run."""
import contextlib
import csv
import json
import subprocess
import tempfile

import connections
import measure
from harness import HOST, Failed, Program, free_port, is_listening, need_program, wait_until

SWITCH = ("--sockets",)
SECONDS = 120
# name of the size: bytes of a write, bytes of all
STREAMS = {"1": (1, 300_000), "16k": (16384, 512 << 20), "64k": (65536, 1 << 30), "1m": (1 << 20, 1 << 30)}
# name of the kind: clients, bytes of a value, requests, busy loops beside it
REDIS = {"1_3": (1, 3, 20_000, 0), "1_3_busy2": (1, 3, 5_000, 2), "1_16k": (1, 16384, 20_000, 0),
         "50_3": (50, 3, 100_000, 0), "50_16k": (50, 16384, 50_000, 0)}
KINDS = {"tcp": "TCP", "switch": "switch"}

RATIOS = [(f"redis {test.upper()} {size}, {clients} over the switch / TCP", f"redis_{test}_{key}_switch_us",
           f"redis_{test}_{key}_tcp_us", "<=", target)
          for key, clients, size, target in (
              ("1_3", "1 client", "3 B", 0.3), ("1_16k", "1 client", "16 KiB", 0.5),
              ("1_3_busy2", "1 client beside 2 busy loops", "3 B", 1.0),
              ("50_3", "50 clients", "3 B", 0.6), ("50_16k", "50 clients", "16 KiB", 0.6))
          for test in ("set", "get")]
RATIOS += [(f"stream, writes of {size}, over the switch / TCP", f"stream_{key}_switch_mb", f"stream_{key}_tcp_mb", ">=",
            target)
           for key, size, target in (("1", "1 B", 1.0), ("16k", "16 KiB", 2.0), ("64k", "64 KiB", 2.0),
                                     ("1m", "1 MiB", 2.0))]


class Figures:
    """A run of redis-benchmark samples two figures; they are cached until each has been taken."""

    def __init__(self, fabric):
        self.fabric, self.cached = fabric, {}

    @contextlib.contextmanager
    def server(self, kind, words, port):
        """Runs with the block, which gets the address."""
        program = self.fabric.start(words, 0, more=SWITCH) if kind == "switch" else Program(words)
        try:
            wait_until(lambda: self.listens(kind, program, port) or not program.running(), SECONDS,
                       "the server to listen")
            if not program.running():
                raise Failed(f"{program.describe()}: {program.text()}")
            yield connections.address_of(self.fabric, 0) if kind == "switch" else HOST
        finally:
            program.kill()

    def listens(self, kind, program, port):
        if kind == "tcp":
            return is_listening(program.pid, port)
        state = json.loads(self.fabric.softib("status", "--json", "--fabric", self.fabric.name).require().text)
        return any(one["state"] == "listening" and one["local"].endswith(f":{port}") for one in state["rdma_cm"])

    def client(self, kind, words):
        if kind == "switch":
            return self.fabric.run(words, 1, SECONDS, more=SWITCH).require().text
        program = Program(words)
        if program.wait(SECONDS) != 0:
            raise Failed(f"{program.describe()}: {program.text()}")
        return program.text()

    def stream(self, kind, size, count):
        binary, port = measure.own_program("bench_socket_stream"), free_port()
        with self.server(kind, [binary, "server", "0.0.0.0", port], port) as address:
            return json.loads(self.client(kind, [binary, "client", address, port, size, count]))["mb"]

    def run_redis(self, kind, clients, size, requests, loops):
        """{test: us of a request}"""
        with connections.busy_loops(loops):
            return self.run_redis_here(kind, clients, size, requests)

    def run_redis_here(self, kind, clients, size, requests):
        port = free_port()
        with tempfile.TemporaryDirectory(prefix="softib-redis-") as folder:
            words = [need_program("redis-server"), "--port", port, "--bind", "0.0.0.0", "--protected-mode", "no",
                     "--save", "", "--appendonly", "no", "--dir", folder]
            with self.server(kind, words, port) as address:
                text = self.client(kind, [need_program("redis-benchmark"), "-h", address, "-p", port, "--csv", "-t",
                                          "set,get", "-c", clients, "-d", size, "-n", requests])
        rates = {row[0]: row[1] for row in csv.reader(text.splitlines()) if len(row) > 1}
        return {test: 1e6 / float(rates[test.upper()]) for test in ("set", "get")}

    def redis(self, kind, key, test):
        if test not in self.cached.get((kind, key), {}):
            self.cached[kind, key] = self.run_redis(kind, *REDIS[key])
        return self.cached[kind, key].pop(test)

    def all(self):
        """name, unit, title, how to sample."""
        for key, (clients, size, _, loops) in REDIS.items():
            for kind, name in KINDS.items():
                for test in ("set", "get"):
                    beside = f" beside {loops} busy loops" if loops else ""
                    yield (f"redis_{test}_{key}_{kind}_us", "us",
                           f"redis {test.upper()} {size} B, {clients} clients, {name}{beside}",
                           lambda k=kind, v=key, t=test: self.redis(k, v, t))
        for key, (size, count) in STREAMS.items():
            for kind, name in KINDS.items():
                yield (f"stream_{key}_{kind}_mb", "mb", f"stream, writes of {size} B, {name}",
                       lambda k=kind, s=size, c=count: self.stream(k, s, c))


def many_sockets(fabric, count, rounds):
    """us to make and to close one of `count`, and the bytes of each with both ends; then `rounds` are made and closed,
    and nothing may be left of them. Both programs have 100 descriptors more than connections."""
    binary, port, address = measure.own_program("bench_many_sockets"), free_port(), connections.address_of(fabric, 0)
    daemon = measure.daemon_pid(fabric)
    limit = ["prlimit", f"--nofile={count + 100}:{count + 100}"]
    with connections.server(fabric.start([*limit, binary, "server", address, port], 0, more=SWITCH)) as other:
        client = fabric.start([*limit, binary, "client", address, port, count, rounds], 1, more=SWITCH,
                              stdin=subprocess.PIPE)
        lines = {}
        for name in ("none", "connected", "gone", "churned"):
            lines[name] = measure.phase(client, name, 900)
            if name in ("gone", "churned"):
                wait_until(lambda: not streams_of(fabric), 60, "the streams to be gone")
            lines[name].update(softibd=measure.memory((), daemon),
                               programs=[connections.rss(p.pid) for p in (client, other)])
            measure.go_on(client)
        fabric.end(client, 60).require()
    none, all_of_them, gone, churned = (lines[name] for name in ("none", "connected", "gone", "churned"))

    def each(before, after, by):
        return {"softibd_bytes": (after["softibd"]["private"] - before["softibd"]["private"]) / by,
                "device_bytes": (after["softibd"]["shared"] - before["softibd"]["shared"]) / by,
                "client_bytes": (after["programs"][0] - before["programs"][0]) / by,
                "server_bytes": (after["programs"][1] - before["programs"][1]) / by}

    return {"count": count, "rounds": rounds, "connect_us": all_of_them["us"], "close_us": gone["us"],
            "round_us": churned["us"], "of_each": each(none, all_of_them, count),
            "left_by_each": each(gone, churned, rounds)}


def streams_of(fabric):
    state = json.loads(fabric.softib("status", "--json", "--fabric", fabric.name).require().text)
    return [one for one in state["rdma_cm"] if one.get("stream")]


def print_many(many):
    print(f"\n{many['count']:,} TCP connections with the switch between two processes at the same time")
    print(f"  us to make / to close each: {many['connect_us']:,.0f} / {many['close_us']:,.0f}")
    for what, words in (("of_each", "of each"),
                        ("left_by_each", f"left by each of {many['rounds']:,} that came after them")):
        one = many[what]
        print(f"  bytes {words}: {one['softibd_bytes']:,.0f} heap of softibd, {one['device_bytes']:,.0f} pages of device "
              f"memory, {one['client_bytes']:,.0f} in the client, {one['server_bytes']:,.0f} in the server")
