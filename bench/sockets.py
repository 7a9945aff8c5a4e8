# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""TCP programs under the socket switch beside the kernel's TCP over loopback. Part of bench/run."""
import contextlib
import csv
import json
import tempfile

import connections
import measure
from harness import HOST, Failed, Program, free_port, is_listening, need_program, wait_until

SWITCH = ("--sockets",)
SECONDS = 120
# name of the size: bytes of a write, bytes of all
STREAMS = {"1": (1, 300_000), "16k": (16384, 512 << 20), "64k": (65536, 1 << 30), "1m": (1 << 20, 1 << 30)}
# name of the kind: clients, bytes of a value, requests
REDIS = {"1_3": (1, 3, 20_000), "1_16k": (1, 16384, 20_000), "50_3": (50, 3, 100_000), "50_16k": (50, 16384, 50_000)}
KINDS = {"tcp": "TCP", "switch": "switch"}

RATIOS = [(f"redis {test.upper()} {size}, {clients} over the switch / TCP", f"redis_{test}_{key}_switch_us",
           f"redis_{test}_{key}_tcp_us", "<=", target)
          for key, clients, size, target in (
              ("1_3", "1 client", "3 B", 0.5), ("1_16k", "1 client", "16 KiB", 0.5),
              ("50_3", "50 clients", "3 B", 1.0), ("50_16k", "50 clients", "16 KiB", 1.0))
          for test in ("set", "get")]
RATIOS += [(f"stream, writes of {size}, over the switch / TCP", f"stream_{key}_switch_mb", f"stream_{key}_tcp_mb", ">=",
            target)
           for key, size, target in (("1", "1 B", 1.0), ("16k", "16 KiB", 1.5), ("64k", "64 KiB", 1.5),
                                     ("1m", "1 MiB", 1.5))]


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

    def run_redis(self, kind, clients, size, requests):
        """{test: us of a request}"""
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
        for key, (clients, size, _) in REDIS.items():
            for kind, name in KINDS.items():
                for test in ("set", "get"):
                    yield (f"redis_{test}_{key}_{kind}_us", "us",
                           f"redis {test.upper()} {size} B, {clients} clients, {name}",
                           lambda k=kind, v=key, t=test: self.redis(k, v, t))
        for key, (size, count) in STREAMS.items():
            for kind, name in KINDS.items():
                yield (f"stream_{key}_{kind}_mb", "mb", f"stream, writes of {size} B, {name}",
                       lambda k=kind, s=size, c=count: self.stream(k, s, c))
