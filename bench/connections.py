# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Connections by librdmacm and of kernel clients beside TCP's on loopback: the time of one, how many a second; and
20,000 at a time. Part of bench/run."""
import contextlib
import dataclasses
import json
import subprocess

import measure
from harness import HOST, Failed, Program, free_port, wait_until

COUNT = 1000
# Each run is of new processes, whose time depends on the cores that the scheduler gives them; a sample is the median.
RUNS = 5
# Beside busy loops, which double and treble the time of TCP's.
BUSY_COUNT = 200


@dataclasses.dataclass(frozen=True)
class Way:
    outstanding: int
    words: str
    loops: int = 0  # programs that compute all the time
    kinds: tuple = ("tcp", "switch", "rdma", "kernel")


# name of the kind: how they are made
WAYS = {"": Way(1, "one at a time"), "_many": Way(50, "50 at a time"),
        "_busy2": Way(1, "beside 2 busy loops", 2, ("tcp", "switch", "rdma")),
        "_busy4": Way(1, "beside 4 busy loops", 4, ("tcp", "switch", "rdma"))}
COLUMNS = {"us": "time of each", "p50_us": "median until it is established", "p99_us": "99th percentile"}
# kind: (prefix of its figures, what connects)
KINDS = {"tcp": ("tcp_connection", "TCP"), "switch": ("switch_connection", "TCP with the switch"), "rdma": ("connection", "librdmacm"),
         "kernel": ("kernel_connection", "kernel clients")}

RATIOS = [
    ("connection with the switch / of TCP", "switch_connection_us", "tcp_connection_us", "<=", 4.0),
    ("beside 2 busy loops, with the switch / of TCP", "switch_connection_busy2_us", "tcp_connection_busy2_us", "<=", 2.0),
    ("beside 4 busy loops, with the switch / of TCP", "switch_connection_busy4_us", "tcp_connection_busy4_us", "<=", 2.0),
    ("connection by librdmacm / by TCP", "connection_us", "tcp_connection_us", "<=", 2.0),
    ("the same, 50 at a time", "connection_many_us", "tcp_connection_many_us", "<=", 2.0),
    ("beside 2 busy loops, by librdmacm / by TCP", "connection_busy2_us", "tcp_connection_busy2_us", "<=", 10.0),
    ("beside 4 busy loops, by librdmacm / by TCP", "connection_busy4_us", "tcp_connection_busy4_us", "<=", 10.0),
    ("connection of kernel clients / by TCP", "kernel_connection_us", "tcp_connection_us", "<=", 2.0),
    ("the same of kernel clients, 50 at a time", "kernel_connection_many_us", "tcp_connection_many_us", "<=", 2.0),
]


def address_of(fabric, node):
    state = json.loads(fabric.softib("status", "--json", "--fabric", fabric.name).require().text)
    return state["nodes"][node]["addresses"][0]["ip"]


@contextlib.contextmanager
def server(program):
    """Ends with the block."""
    try:
        program.wait_for_text("listening", 60)
        yield program
    finally:
        program.kill()


@contextlib.contextmanager
def busy_loops(count):
    """End with the block."""
    loops = [Program(["sh", "-c", "while :; do :; done"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()


def kernel_run(outstanding):
    """The figures of the benchmark of services_bench: two kernel clients and softibd's part on one thread, with a
    virtual clock for timers. An iteration is of `outstanding` connections."""
    [row] = measure.micro_benchmark("services_bench", 0.2, f"^connections/outstanding:{outstanding}$")
    us = row["real_time"] / 1000 / outstanding
    return {"us": us, "per_s": 1e6 / us, "p50_us": row["p50_us"], "p99_us": row["p99_us"]}


class Figures:
    """A run samples several figures; they are cached until each has been taken."""

    def __init__(self, fabric):
        self.fabric, self.cached = fabric, {}

    def run(self, kind, way):
        binary, port = measure.own_program("bench_connections"), free_port()
        count = BUSY_COUNT if way.loops else COUNT
        with busy_loops(way.loops):
            return self.run_programs(kind, binary, port, (count, way.outstanding))

    def run_programs(self, kind, binary, port, numbers):
        if kind == "tcp":
            with server(Program([binary, "server", "tcp", HOST, port])):
                client = Program([binary, "client", "tcp", HOST, port, *numbers])
                if client.wait(120) != 0:
                    raise Failed(f"{client.describe()}: {client.text()}")
                text = client.text()
        else:
            protocol, more = ("tcp", ("--sockets",)) if kind == "switch" else ("rdma", ())
            address = address_of(self.fabric, 0)
            with server(self.fabric.start([binary, "server", protocol, address, port], 0, more=more)):
                words = [binary, "client", protocol, address, port, *numbers]
                text = self.fabric.run(words, 1, 120, more=more).require().text
        return json.loads(text.strip().splitlines()[-1])

    def median_run(self, kind, way):
        if kind == "kernel":
            return kernel_run(way.outstanding)  # one thread: the placement has no effect
        runs = sorted((self.run(kind, way) for _ in range(RUNS)), key=lambda run: run["us"])
        return runs[RUNS // 2]

    def sample(self, kind, way, column):
        key = (kind, way)
        if column not in self.cached.get(key, {}):
            self.cached[key] = self.median_run(kind, WAYS[way])
        return self.cached[key].pop(column)

    def all(self):
        """name, unit, title, how to sample."""
        for name, way in WAYS.items():
            for kind in way.kinds:
                prefix, what = KINDS[kind]
                for column, title in COLUMNS.items():
                    yield (f"{prefix}{name}_{column}", "us", f"connect {what}, {way.words}: {title}",
                           lambda k=kind, w=name, c=column: self.sample(k, w, c))
        yield ("kernel_connections_per_s", "per_s", "connect kernel clients, one at a time: how many",
               lambda: self.sample("kernel", "", "per_s"))


def many_connections(fabric, count, outstanding=64):
    """us to make and to end one of `count`, and the bytes of each with both ends. Needs an unused fabric."""
    binary, port, address = measure.own_program("bench_many_connections"), free_port(), address_of(fabric, 0)
    daemon = measure.daemon_pid(fabric)
    with server(fabric.start([binary, "server", address, port], 0)) as other:
        client = fabric.start([binary, "client", address, port, count, outstanding], 1, stdin=subprocess.PIPE)
        lines = {}
        for name in ("none", "connected", "gone"):
            lines[name] = measure.phase(client, name, 600)
            lines[name].update(softibd=measure.memory((), daemon), programs=[rss(p.pid) for p in (client, other)])
            measure.go_on(client)
        fabric.end(client, 60).require()
    none, all_of_them = lines["none"], lines["connected"]
    wait_until(lambda: not json.loads(fabric.softib("status", "--json", "--fabric", fabric.name).text)["rdma_cm"], 60,
               "the ids to be gone")
    return {"count": count, "connect_us": all_of_them["us"], "end_us": lines["gone"]["us"],
            "softibd_bytes": (all_of_them["softibd"]["private"] - none["softibd"]["private"]) / count,
            "device_bytes": (all_of_them["softibd"]["shared"] - none["softibd"]["shared"]) / count,
            "client_bytes": (all_of_them["programs"][0] - none["programs"][0]) / count,
            "server_bytes": (all_of_them["programs"][1] - none["programs"][1]) / count}


def rss(pid):
    """Bytes of private memory."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("RssAnon"))


def print_many(many):
    print(f"\n{many['count']:,} connections by librdmacm between two processes at the same time")
    print(f"  us to make / to end each: {many['connect_us']:,.0f} / {many['end_us']:,.0f}")
    print(f"  bytes of each: {many['softibd_bytes']:,.0f} heap of softibd, {many['device_bytes']:,.0f} pages of device "
          f"memory, {many['client_bytes']:,.0f} in the client, {many['server_bytes']:,.0f} in the server")
