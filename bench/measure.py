# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""One sample of everything that bench/run and bench/demo.py show. Each function runs programs to their end and
returns numbers: latencies in us, one way; rates in MB/s (10^6 bytes) or messages per second."""
import contextlib
import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/system"))
import harness  # noqa: E402
from harness import Failed, Skipped  # noqa: E402
from support import perftest as perftest_output  # noqa: E402
from support import ucx as ucx_output  # noqa: E402

BENCH_BIN = harness.BUILD / "bench-bin"
TEST_BIN = harness.BUILD / "test-bin"
MIB = 1048576 / 1e6  # perftest's and UCX's MB is 2^20 bytes


def two_cores():
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise Skipped("two cores are needed, each side polls on its own")
    return cores[0], cores[1]


def pinned(cores):
    return tuple(["taskset", "-c", str(core)] for core in cores)


def own_program(name):
    path = BENCH_BIN / name
    if not os.access(path, os.X_OK):
        raise Skipped(f"{path} is not built (scripts/build)")
    return str(path)


def limits(cores, samples=1, figure=None):
    """{name: [values]} in us and MB/s; figure: only this one. Copies are made where perftest's client makes them."""
    words = [own_program("bench_limits"), "--cores", f"{cores[1]},{cores[0]}", "--samples", str(samples)]
    if figure:
        words += ["--figure", figure.replace("_us", "_ns")]
    done = subprocess.run(words, text=True, capture_output=True, timeout=120, check=False)
    if done.returncode:
        raise Failed(f"bench_limits: {done.stderr.strip() or done.returncode}")
    raw = json.loads(done.stdout)
    return {name.replace("_ns", "_us"): [v / 1000 if name.endswith("_ns") else v for v in values]
            for name, values in raw.items()}


@functools.cache
def cycles_per_us():
    return limits(two_cores(), figure="tsc_mhz")["tsc_mhz"][0]


def ucx(cores, test, size, iterations, what):
    """UCX over its own shared memory, no softib. what: a column of ucx.COLUMNS."""
    harness.need_program("ucx_perftest")
    env = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "RDMAV_DRIVERS")}
    env["UCX_TLS"] = "posix,self"
    port = harness.free_port()
    before = pinned(cores)
    server = harness.Program([*before[0], "ucx_perftest", "-p", port], env=env)
    try:
        harness.wait_until(lambda: harness.is_listening(server.pid, port), 20, "ucx_perftest to listen")
        client = harness.Program([*before[1], "ucx_perftest", harness.HOST, "-p", port, "-f", "-t", test, "-s", size,
                                  "-n", iterations, "-w", min(1000, iterations)], env=env)
        code = client.wait(60)
        row = ucx_output.result(client.text())
        if code != 0 or row is None:
            raise Failed(f"ucx_perftest {test}: exit code {code}:\n{harness.tail(client.text())}")
        server.wait(20)
        return row[what] * (MIB if what.endswith("_mb") else 1)
    finally:
        if server.running():
            server.kill()


def perftest(fabric, cores, words, column, path=None):
    """One run of a perftest program over softib. column: one of perftest.COLUMNS of the last row."""
    program = words[0]
    harness.need_program(program)
    # In us the table has two decimals only, a tenth of what is measured here.
    clock = cycles_per_us() if program.endswith("_lat") else 0
    cycles = ["-C"] if clock else []
    _, client, rows = perftest_output.run(
        lambda: fabric.pair([program, "-F", *words[1:], *cycles], befores=pinned(cores), path=path, seconds=60))
    if not rows or column not in rows[-1] or not perftest_output.is_measured(rows[-1]):
        raise Failed(f"{program}: no result:\n{harness.tail(client.text)}")
    value = rows[-1][column]
    if column == "mega_messages":
        return value * 1e6
    if clock:
        return value / clock
    return value * MIB if program.endswith("_bw") else value


def daemon_pid(fabric):
    return json.loads(fabric.softib("status", "--json", "--fabric", fabric.name).require().text)["pid"]


def busy_percent(pids, seconds=2.0):
    """CPU use of each process over that time, in % of a core; the clock has 100 ticks a second."""
    before = [harness.cpu_seconds(pid) for pid in pids]
    time.sleep(seconds)
    return [100 * (harness.cpu_seconds(pid) - old) / seconds for pid, old in zip(pids, before)]


def memory(pids, daemon):
    """Bytes of private memory of the processes, and of the files in memory that the daemon made."""
    private = 0
    for pid in (*pids, daemon):
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        private += int(re.search(r"RssAnon:\s+(\d+) kB", status)[1]) * 1024
    files = {}
    folder = pathlib.Path(f"/proc/{daemon}/fd")
    for fd in folder.iterdir():
        try:
            if os.readlink(fd).startswith(("/memfd:", "/dev/shm")):
                status = os.stat(fd)
                files[status.st_ino] = status.st_blocks * 512
        except OSError:
            continue
    return {"private": private, "shared": sum(files.values())}


def phase(program, name, seconds=120):
    """The line of JSON of a program that stops after each phase."""
    program.wait_for_text(rf'"phase": "{name}".*\n', seconds)
    return next(json.loads(line) for line in program.text().splitlines() if f'"phase": "{name}"' in line)


def go_on(program):
    program.process.stdin.write(b"\n")
    program.process.stdin.flush()


def answer(program, seconds=60):
    """Lets a program go on that measures for each line on its stdin; the line of JSON that it prints."""
    before = program.text().count("\n")
    go_on(program)
    harness.wait_until(lambda: program.text().count("\n") > before or not program.running(), seconds,
                       f"{program.describe()} to measure")
    if program.text().count("\n") == before:
        raise Failed(f"{program.describe()} ended:\n{harness.tail(program.text())}")
    return json.loads(program.text().splitlines()[-1])


@contextlib.contextmanager
def two_sides(fabric, cores, pairs, rounds=20000):
    """The server and the client of bench_many_qps, when they have one pair of queue pairs."""
    before, port = pinned(cores), harness.free_port()
    words = [own_program("bench_many_qps"), "--pairs", pairs, "--rounds", rounds, "-p", port]
    server = fabric.start(words, 0, before=before[0])
    client = None
    try:
        harness.wait_until(lambda: harness.is_listening(server.pid, port) or not server.running(), 20,
                           "bench_many_qps to listen")
        client = fabric.start([*words, harness.HOST], 1, before=before[1], stdin=subprocess.PIPE)
        phase(client, "one")
        yield server, client
        client.process.stdin.close()
        fabric.end(client, 60).require()
        fabric.end(server, 60).require()
    finally:
        for each in (server, client):
            if each is not None and each.running():
                each.kill()


def many_qps(fabric, other, cores, pairs, samples):
    """Memory and time of `pairs` connected pairs of queue pairs between two processes, idle CPU with them, and samples
    of the latency, in turn with those of two processes that have one pair, on another fabric: a host that moves the
    cores changes latencies by a factor of three, and to make 10,000 pairs takes longer than it lets them be."""
    daemon = daemon_pid(fabric)
    with two_sides(other, cores, 1) as (_, lone), two_sides(fabric, cores, pairs) as (server, client):
        go_on(lone)
        phase(lone, "many")
        pids = (server.pid, client.pid)
        small = memory(pids, daemon)
        go_on(client)
        many = phase(client, "many")
        large = memory(pids, daemon)
        idle = busy_percent((*pids, daemon))
        latencies = [(answer(lone), answer(client)) for _ in range(samples)]
        client.process.stdin.close()
        closed = phase(client, "closed")
    queue_pairs = 2 * (pairs - 1)
    return {
        "pairs": pairs,
        "create_us_per_qp": 1e6 * many["create_s"] / queue_pairs,
        "connect_us_per_qp": 1e6 * many["connect_s"] / queue_pairs,
        "destroy_us_per_qp": 1e6 * closed["destroy_s"] / queue_pairs,
        "private_bytes_per_qp": (large["private"] - small["private"]) / queue_pairs,
        "shared_bytes_per_qp": (large["shared"] - small["shared"]) / queue_pairs,
        "latency_us_with_one": [one["same_ns"] / 1000 for one, _ in latencies],
        "latency_us_with_all": [all_of_them["same_ns"] / 1000 for _, all_of_them in latencies],
        "latency_us_over_all": [all_of_them["spread_ns"] / 1000 for _, all_of_them in latencies],
        "idle_percent": dict(zip(("server", "client", "softibd"), idle)),
    }


@contextlib.contextmanager
def churn(fabric, processes):
    """Processes that connect queue pairs and disconnect them, on `fabric`."""
    program = fabric.start([own_program("bench_neighbours"), "churn", "--processes", processes],
                           stdin=subprocess.PIPE)
    try:
        phase(program, "started")
        yield
        go_on(program)
        phase(program, "stopped")
        fabric.end(program, 60).require()
    finally:
        if program.running():
            program.kill()


def neighbours(fabric, other, rounds, processes=64):
    """CPU time of a pair's 8-byte message, in ns: [(beside processes that connect and disconnect on another fabric,
    beside those on the same one)]. Both share the cores and the caches with the pair; one shares the HCA too."""
    pair = fabric.start([own_program("bench_neighbours"), "pair"], stdin=subprocess.PIPE)
    try:
        phase(pair, "connected")

        def beside(where):
            with churn(where, processes):
                return answer(pair)["message_ns"]

        samples = [(beside(other), beside(fabric)) for _ in range(rounds)]
        pair.process.stdin.close()
        fabric.end(pair, 60).require()
        return samples
    finally:
        if pair.running():
            pair.kill()


def idle_cpu(fabric):
    """% of a core that softibd and a program that only has the device open use when nothing happens."""
    watch = fabric.start(["ibv_asyncwatch"])
    try:
        watch.wait_for_text(r"async event FD", 20)
        client, daemon = busy_percent((watch.pid, daemon_pid(fabric)))
    finally:
        watch.kill()
    return {"softibd": daemon, "client": client}


def micro_benchmark(name, seconds, only="."):
    """The rows of a program of Google Benchmark whose names match, each measured for so long at least."""
    program = TEST_BIN / name
    if not os.access(program, os.X_OK):
        raise Skipped(f"{program} is not built")
    done = subprocess.run([str(program), "--benchmark_format=json", f"--benchmark_min_time={seconds}",
                           f"--benchmark_filter={only}"], text=True, capture_output=True, timeout=300, check=False)
    if done.returncode:
        raise Failed(f"{name}: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout)["benchmarks"]


def adoption():
    """{benchmark: us per MiB} of the micro-benchmark of src/linux."""
    return {row["name"].removeprefix("run/"): row["us_per_MiB"] for row in micro_benchmark("linux_bench", 0.1)
            if "us_per_MiB" in row}
