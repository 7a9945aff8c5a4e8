# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""TCP over the ib0 of two nodes (`softib run --net`) beside a veth pair between two network namespaces, which are in a
user namespace of their own. Part of bench/run."""
import contextlib
import gzip
import json
import os
import pathlib
import re
import statistics

from measure import harness  # measure sets its path
from harness import Fabric, Failed, Program, Skipped, free_port, need_program, wait_until

SECONDS = 60
# mode: MTU of ib0 and of the veth pair; least throughput, most processor time per GB, most latency, against veth
MODES = {"connected": (65520, 0.45, 2.2, 3.5), "datagram": (2044, 0.4, 2.2, 3.5)}
MEASURED = ("MB/s", "CPU s/GB", "us")


class Veth:
    """Two namespaces and the pair between them. Side 0 serves."""

    name = "veth"

    def __init__(self, mtu):
        self.mtu, self.holders = mtu, []

    def __enter__(self):
        for name in ("unshare", "nsenter", "ip"):
            need_program(name)
        try:
            # As what it is outside: the pair needs no rights of the user that runs this.
            self.hold(["unshare", "--user", "--map-root-user", "--net"])
            self.hold([*self.inside(0), "unshare", "--net"])
            there = self.holders[1].pid
            self.require(0, ["ip", "link", "add", "veth0", "mtu", self.mtu, "type", "veth", "peer", "name", "veth0",
                             "mtu", self.mtu, "netns", there])
            for side in (0, 1):
                self.require(side, ["ip", "addr", "add", f"{self.address(side)}/24", "dev", "veth0"])
                for link in ("lo", "veth0"):
                    self.require(side, ["ip", "link", "set", link, "up"])
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for holder in self.holders:
            holder.kill()

    def hold(self, words):
        holder = Program([*words, "sh", "-c", "echo up; exec sleep infinity"])
        self.holders.append(holder)
        wait_until(lambda: "up\n" in holder.text() or not holder.running(), SECONDS, "a network namespace")
        if not holder.running():
            raise Skipped(f"no network namespaces here: {holder.text().strip()}")

    def inside(self, side):
        return ["nsenter", "-t", self.holders[side].pid, "--user", "--net", "--preserve-credentials"]

    def require(self, side, words):
        program = self.start(words, side)
        if program.wait(SECONDS) != 0:
            raise Failed(f"{program.describe()}: {program.text()}")

    def start(self, words, side):
        return Program([*self.inside(side), *words])

    @staticmethod
    def address(side):
        return f"192.0.2.{side + 1}"

    @staticmethod
    def drivers():
        return []


class Nodes:
    """Two nodes of a fabric whose networks are held."""

    name = "softib"

    def __init__(self, mode):
        self.network = (f"--net={mode}",)
        self.fabric = Fabric(nodes=2, name=f"bench-{mode}")
        self.addresses = []

    def __enter__(self):
        self.fabric.__enter__()
        try:
            for side in (0, 1):
                holder = self.start(["sh", "-c", "echo up; exec sleep infinity"], side)
                wait_until(lambda one=holder: "up\n" in one.text() or not one.running(), SECONDS, "a network of nodes")
                if not holder.running():
                    raise Skipped(f"no network of nodes here: {holder.text().strip()}")
            state = self.fabric.state()["nodes"]
            self.addresses = [next(one["ip"] for one in node["addresses"] if ":" not in one["ip"]) for node in state]
            self.fabric.end(self.start(["ping", "-c", 1, "-W", 20, self.address(0)], 1), SECONDS).require()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.fabric.__exit__(None, None, None)

    def start(self, words, side):
        return self.fabric.start(words, side, more=self.network)

    def address(self, side):
        return self.addresses[side]

    def drivers(self):
        shown = self.fabric.softib("ipoib", "show", "--json", "--fabric", self.fabric.name).require().text
        return [row["driver_pid"] for row in json.loads(shown)]


@contextlib.contextmanager
def serving(link, words, port):
    server = link.start(words, 0)
    try:
        probe = ["ss", "-Hltn", f"sport = :{port}"]

        def listens():
            look = link.start(probe, 0)
            look.wait(SECONDS)
            return f":{port} " in look.text() or not server.running()

        wait_until(listens, SECONDS, f"{server.describe()} to listen")
        if not server.running():
            raise Failed(f"{server.describe()}: {server.text()}")
        yield server
    finally:
        if server.running():
            server.kill()


def client(link, words):
    program = link.start(words, 1)
    if program.wait(SECONDS) != 0:
        raise Failed(f"{program.describe()}: {harness.tail(program.text())}")
    return program.text()


def soft_interrupts_are_apart():
    """Whether the time of soft interrupts is not in that of the process that they interrupt (as it is otherwise)."""
    for file, read in (("/proc/config.gz", gzip.open), (f"/boot/config-{os.uname().release}", open)):
        with contextlib.suppress(OSError):
            return b"CONFIG_IRQ_TIME_ACCOUNTING=y" in read(file, "rb").read()
    return False


def kernel_seconds():
    """Of the threads of soft interrupts; and of all soft interrupts, if those of a process are not in its own time."""
    names = {path: path.read_text() for path in pathlib.Path("/proc").glob("[0-9]*/comm") if path.exists()}
    seconds = sum(harness.cpu_seconds(path.parent.name) for path, name in names.items() if name.startswith("ksoftirqd/"))
    if soft_interrupts_are_apart():
        words = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()
        seconds += int(words[7]) / os.sysconf("SC_CLK_TCK")
    return seconds


def stream(link, seconds):
    """MB/s of iperf3, and the processor seconds of each GB: both iperf3, both drivers, the kernel in all of them."""
    port = free_port()
    with serving(link, ["iperf3", "-s", "-1", "-p", port], port) as server:
        drivers = link.drivers()

        def others():
            return sum(map(harness.cpu_seconds, drivers)) + kernel_seconds()

        before = others()
        result = json.loads(client(link, ["iperf3", "-J", "-t", seconds, "-c", link.address(0), "-p", port]))
        used = others() - before
        server.wait(SECONDS)
    if "error" in result:
        raise Failed(f"iperf3: {result['error']}")
    received, percent = result["end"]["sum_received"], result["end"]["cpu_utilization_percent"]
    used += (percent["host_total"] + percent["remote_total"]) / 100 * received["seconds"]
    return received["bytes"] / received["seconds"] / 1e6, used / (received["bytes"] / 1e9)


def latency(link):
    """us of a message of 64 bytes, one way, of a ping-pong."""
    port = free_port()
    with serving(link, ["qperf", "-lp", port], port):
        text = client(link, ["qperf", link.address(0), "-lp", port, "-t", 2, "-m", 64, "tcp_lat"])
    found = re.search(r"latency += +([\d.]+) (ns|us|ms)", text)
    if not found:
        raise Failed(f"qperf: {text}")
    return float(found[1]) * {"ns": 1e-3, "us": 1, "ms": 1e3}[found[2]]


def sample(link, seconds):
    return (*stream(link, seconds), latency(link))


def pairs(rounds, seconds=3):
    """By mode: (veth, softib) of each round, one after the other, who comes first in turn; each is a tuple of
    MEASURED."""
    for name in ("iperf3", "qperf", "ss", "ping"):
        need_program(name)
    taken = {}
    for mode, (mtu, *_) in MODES.items():
        taken[mode] = []
        with Veth(mtu) as veth, Nodes(mode) as nodes:
            for number in range(rounds):
                order = (veth, nodes) if number % 2 == 0 else (nodes, veth)
                one = {link.name: sample(link, seconds) for link in order}
                taken[mode].append((one["veth"], one["softib"]))
    return taken


def print_pairs(taken):
    print(f"\n{'TCP over ib0':30} {'veth':>12} {'softib':>12}")
    for mode, rounds in taken.items():
        for number, unit in enumerate(MEASURED):
            veth, softib = (statistics.median(one[side][number] for one in rounds) for side in (0, 1))
            print(f"{mode + ', ' + unit:30} {veth:12,.3f} {softib:12,.3f}")


def judge(taken):
    """(what, tops, bottoms, relation, target) of each ratio."""
    for mode, rounds in taken.items():
        mtu, *targets = MODES[mode]
        for number, (what, relation, target) in enumerate(zip(
                ("throughput", "processor time per GB", "latency of 64 B"), (">=", "<=", "<="), targets)):
            yield (f"ipoib {mode} / veth {mtu}: {what}", [softib[number] for _, softib in rounds],
                   [veth[number] for veth, _ in rounds], relation, target)
