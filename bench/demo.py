#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Shows softib at work: unmodified perftest programs beside the limits of this machine. scripts/demo builds and
runs it.   demo.py [--cores A,B]"""
import json
import pathlib
import re
import shutil
import statistics
import sys
import time

sys.dont_write_bytecode = True
import measure
from harness import BIN, Failed, Fabric, Skipped, tail, wait_until

SAMPLES = 3
NET = ("--net",)

# (perftest's words, column, unit, what it does, limit's name, what the limit is)
PROGRAMS = [
    ("ib_write_lat -s 8 -n 10000", "typical", "us", "RDMA write, 8 B, one way", "cache_line_us", "a cache line to the other core"),
    ("ib_send_lat -s 8 -n 10000", "typical", "us", "send, 8 B, one way", "cache_line_us", "a cache line to the other core"),
    ("ib_read_lat -s 8 -n 10000", "typical", "us", "RDMA read, 8 B", "cache_line_us", "a cache line to the other core"),
    ("ib_atomic_lat -n 10000", "typical", "us", "fetch and add", "cache_line_us", "a cache line to the other core"),
    ("ib_send_lat -c UD -s 8 -n 10000", "typical", "us", "datagram, 8 B, one way", "cache_line_us", "a cache line to the other core"),
    ("ib_send_lat -e -s 8 -n 1000", "typical", "us", "send, 8 B, asleep until it comes", "eventfd_us", "eventfd: sleep and be woken"),
    ("ib_write_bw -s 65536 -n 5000", "average", "GB/s", "RDMA write, 64 KiB", "memcpy_hot_65536_mb_s", "memcpy of 64 KiB"),
    ("ib_write_bw -s 1048576 -n 500", "average", "GB/s", "RDMA write, 1 MiB", "memcpy_hot_1048576_mb_s", "memcpy of 1 MiB"),
]

NEXT = """
Try next ({softib} is in {bin}):
  softib run -- ibv_devinfo -v            what any program now sees
  softib run -- sh -c 'ib_send_bw & softib wait --listen 18515; ib_send_bw localhost'  any RDMA program, as it is
  softib up; softib status; softib down   a fabric that stays: its hosts, HCAs and programs
"""

INTRO = """\
softib: InfiniBand in user space. No adapter, no kernel module, no root.

A fabric of two virtual hosts, node0 and node1, with an HCA each. On each runs a perftest program exactly as
Debian ships it, as if the other were on another machine.
"""


def scaled(value, unit):
    return value / 1000 if unit == "GB/s" else value


def devices(fabric):
    result = fabric.run(["ibv_devices"]).require("softib0")
    print("\n".join("    " + line.rstrip() for line in result.text.splitlines() if line.strip()) + "\n")


def row(words, what, value, unit, limit, limit_what):
    digits = 1 if unit == "GB/s" else 2
    return f"  {words:33} {what:33} {value:7.{digits}f} {unit:5}  {limit:7.{digits}f} {unit:5} {limit_what}"


def table(fabric, cores):
    """How many programs failed."""
    limits = {name: statistics.median(values) for name, values in measure.limits(cores, SAMPLES).items()}
    print(f"  {'program':33} {'':33} {'softib':>7} {'':5}  {'limit':>7} of this machine")
    failed = 0
    for command, column, unit, what, limit, limit_what in PROGRAMS:
        words = command.split()
        shown = command.split(" -n ")[0]
        try:
            values = [measure.perftest(fabric, cores, words, column) for _ in range(SAMPLES)]
        except (Failed, Skipped) as problem:
            failed += 1
            print(f"  {shown:33} {what:33} FAILED\n{tail(str(problem))}", flush=True)
            continue
        print(row(shown, what, scaled(statistics.median(values), unit), unit, scaled(limits[limit], unit), limit_what),
              flush=True)
    return failed


def connection(fabric):
    """rping of node1 with that of node0, by librdmacm, as `softib connections` lists it."""
    def listed(state):
        text = fabric.softib("connections", "--json", "--fabric", fabric.name).require().text
        return [one for one in json.loads(text) if one["state"] == state]

    if shutil.which("rping") is None:
        return
    state = json.loads(fabric.softib("status", "--json", "--fabric", fabric.name).require().text)
    address = state["nodes"][0]["addresses"][0]["ip"]
    server = fabric.start(["rping", "-s", "-a", address], 0)
    try:
        wait_until(lambda: listed("listening"), 60, "rping to listen")
        client = fabric.start(["rping", "-c", "-a", address, "-C", "100000000"], 1)
        try:
            wait_until(lambda: len(listed("established")) == 2, 60, "rping to connect")
            print(f"\nrping -s on node0, rping -c -a {address} on node1; softib connections:\n")
            print(fabric.softib("connections", "--fabric", fabric.name).require().text, end="")
        finally:
            client.kill()
    finally:
        server.kill()


def network(fabric):
    """ping and iperf3 of node1 with node0 over ib0, or the reason why there is none."""
    if not all(shutil.which(program) for program in ("ping", "iperf3")):
        return
    server = fabric.start(["iperf3", "-s", "-1", "--forceflush"], 0, more=NET)
    try:
        wait_until(lambda: "listening" in server.text() or not server.running(), 60, "iperf3 to listen")
        if not server.running():
            print(f"\nNo TCP/IP over ib0 here: {server.text().strip()}")
            return
        print("\nTCP/IP over InfiniBand, in a network of its own for each node (softib run --net):\n")
        for command, pattern in (("ping -c 3 -i 0.2 node0", r"^rtt .*"), ("iperf3 -c node0 -t 1", r"^.*/sec.* receiver")):
            text = fabric.run(command.split(), 1, more=NET).require(pattern).text
            print(f"  {command:24} {re.search(pattern, text, re.MULTILINE)[0].strip()}")
    finally:
        server.kill()


def main():
    started = time.monotonic()
    cores = measure.two_cores()
    if "--cores" in sys.argv:
        cores = tuple(map(int, sys.argv[sys.argv.index("--cores") + 1].split(",")))
    print(INTRO)
    with Fabric(nodes=2, name="demo") as fabric:
        devices(fabric)
        failed = table(fabric, cores)
        connection(fabric)
        network(fabric)
    print(f"\nMedians of {SAMPLES} runs, each side pinned to a core; {time.monotonic() - started:.0f} s in all. "
          "`bench/run` measures thoroughly.\n"
          "perftest writes one buffer again and again, which stays in the cache, and so does the memcpy.")
    if failed:
        print(f"{failed} of {len(PROGRAMS)} programs failed: see above, and `softib doctor`.")
        return 1
    print(NEXT.format(softib="softib", bin=pathlib.Path(BIN)))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failed, Skipped) as problem:
        sys.exit(f"demo: {problem}\n  `{BIN}/softib doctor` checks this machine.")
    except KeyboardInterrupt:
        sys.exit(130)
