#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""softib's own subnet manager, OpenSM over softib, and OpenSM over ibsim, in turn, on the same topology."""
import argparse
import contextlib
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/system"))
import harness  # noqa: E402
from harness import Failed, wait_until  # noqa: E402

HELP = """\
For each size, a fat tree of switches with 36 ports, with 64 from 11,664 adapters on. Three ways in turn:
  own     softib's subnet manager: from the start of `softib up` until all is set up. softibd's start, the fabric and
          the manager are in it.
  softib  OpenSM over softib: from its start to SUBNET UP; beside it `softib up` without a manager, and `softib run`.
  ibsim   OpenSM over ibsim (package ibsim-utils): the same. The start of ibsim is not in it.
With the processor time of both sides and the SMPs that OpenSM sent, for each second of processor time. A ratio is
taken in each round; its median is shown.

Examples:
  bench/subnet_manager.py                        648, 2,048 and 8,192 adapters, 3 rounds
  bench/subnet_manager.py --ways own,ibsim       without OpenSM over softib
  bench/subnet_manager.py --ways own --sizes 36,324,648,2048,8192,20000,41000 --json own.json
  bench/curves.py own.json -o own.svg            draws that
"""
SECONDS = 300
TICKS = os.sysconf("SC_CLK_TCK")


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_mib(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1)) / 1024


@contextlib.contextmanager
def opensm(folder, words, env):
    """Yields the seconds to SUBNET UP, and the process, which is OpenSM."""
    (folder / "conf").write_text("force_log_flush TRUE\nsweep_interval 0\n")
    log = folder / "opensm.log"
    started = time.monotonic()
    with open(folder / "output", "w") as output:
        process = subprocess.Popen([*map(str, words), "opensm", "-F", str(folder / "conf"), "-f", str(log)],
                                   env={**env, "OSM_TMP_DIR": str(folder), "OSM_CACHE_DIR": str(folder)},
                                   stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
    try:
        wait_until(lambda: log.exists() and "SUBNET UP" in log.read_text(errors="replace") or process.poll() is not None,
                   SECONDS, "SUBNET UP")
        if process.poll() is not None:
            raise Failed(f"OpenSM ended with {process.returncode}:\n{harness.tail((folder / 'output').read_text())}")
        seconds = time.monotonic() - started
        errors = [line for line in log.read_text(errors="replace").splitlines() if " ERR " in line]
        if errors:
            raise Failed(f"OpenSM: {errors[0]}")
        yield seconds, process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


class Softib:
    """A fabric of softib with that topology."""

    def __init__(self, folder, topology, manager):
        self.env = dict(os.environ, SOFTIB_RUNTIME_DIR=str(folder / "run"))
        started = time.monotonic()
        self.softib("up", "--topology", topology, "--sm", manager)
        if manager == "softib":
            wait_until(self.is_set_up, SECONDS, "the subnet manager")
        self.up = time.monotonic() - started
        self.pid = json.loads(self.softib("list", "--json"))["fabrics"][0]["pid"]

    def softib(self, *words):
        done = subprocess.run([str(harness.BIN / "softib"), *words], env=self.env, text=True, capture_output=True, check=False)
        if done.returncode:
            raise Failed(f"softib {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def is_set_up(self):
        managers = json.loads(self.softib("sm", "status", "--json"))["managers"]
        if any(one["problems"] for one in managers):
            raise Failed(f"softib's subnet manager: {managers[0]['problems'][0]}")
        return bool(managers) and all(one["settled"] and one["state"] == "master" for one in managers)

    def run_true(self):
        started = time.monotonic()
        self.softib("run", "--", "true")
        return time.monotonic() - started

    def sent(self):
        """Packets that the port of OpenSM has sent."""
        return int(self.softib("run", "--", "sh", "-c",
                               "cat /sys/class/infiniband/*/ports/1/counters/port_xmit_packets").split()[0])


def own(topology, network):
    """One sample; writes the same topology for ibsim."""
    with tempfile.TemporaryDirectory(prefix="softib-bench-") as name:
        fabric = Softib(pathlib.Path(name), topology, "softib")
        try:
            sample = {"sweep": fabric.up, "cpu": processor_seconds(fabric.pid), "mib": resident_mib(fabric.pid)}
            fabric.softib("topology", "--ibsim", str(network))
            return sample
        finally:
            fabric.softib("down", "--force")


def over_softib(topology, _network):
    with tempfile.TemporaryDirectory(prefix="softib-bench-") as name:
        folder = pathlib.Path(name)
        fabric = Softib(folder, topology, "none")
        try:
            sample = {"up": fabric.up, "run": fabric.run_true()}
            before, sent = processor_seconds(fabric.pid), fabric.sent()
            with opensm(folder, [harness.BIN / "softib", "run", "--"], fabric.env) as (seconds, pid):
                sample["sweep"] = seconds
                sample["opensm_cpu"] = processor_seconds(pid)
                sample["simulator_cpu"] = processor_seconds(fabric.pid) - before
            sample["smps"] = fabric.sent() - sent
            sample["mib"] = resident_mib(fabric.pid)
            return sample
        finally:
            fabric.softib("down", "--force")


def over_ibsim(_topology, network):
    with tempfile.TemporaryDirectory(prefix="softib-bench-") as name:
        folder = pathlib.Path(name)
        library = next(pathlib.Path("/usr/lib").rglob("libumad2sim.so*"))
        adapters = [line for line in network.read_text().splitlines() if line.startswith("Ca")]
        count = len(adapters) + 2000
        node = re.search(r'"([^"]+)"', adapters[0]).group(1)
        with open(folder / "ibsim", "w") as output:
            simulator = subprocess.Popen(["ibsim", "-s", "-N", str(count), "-S", str(count), "-P", str(40 * count),
                                          str(network)], stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT)
        try:
            wait_until(lambda: "sim>" in (folder / "ibsim").read_text(errors="replace") or simulator.poll() is not None,
                       SECONDS, "ibsim")
            if simulator.poll() is not None:
                raise Failed(f"ibsim ended:\n{harness.tail((folder / 'ibsim').read_text(errors='replace'))}")
            env = dict(os.environ, LD_PRELOAD=str(library), SIM_HOST=node)
            before = processor_seconds(simulator.pid)
            with opensm(folder, [], env) as (seconds, pid):
                return {"sweep": seconds, "opensm_cpu": processor_seconds(pid),
                        "simulator_cpu": processor_seconds(simulator.pid) - before}
        finally:
            simulator.kill()
            simulator.wait()


def middle(samples, key):
    return statistics.median(one[key] for one in samples)


WAYS = {"own": own, "softib": over_softib, "ibsim": over_ibsim}


def measure(size, rounds, ways):
    topology = f"fat-tree:hcas={size},ports={36 if size <= 11_664 else 64}"
    samples = {way: [] for way in ways}
    with tempfile.TemporaryDirectory(prefix="softib-bench-") as name:
        network = pathlib.Path(name) / "network"
        for number in range(rounds):
            for way in ways:
                print(f"\r{size} adapters, round {number + 1} of {rounds}: {way:6}", end="", file=sys.stderr, flush=True)
                samples[way].append(WAYS[way](topology, network))
    print("\r" + " " * 60 + "\r", end="", file=sys.stderr)
    return samples


def show_ratio(words, above, below, target):
    ratios = sorted(a["sweep"] / b["sweep"] for a, b in zip(above, below))
    print(f"  {words}: {statistics.median(ratios):.3f} ({ratios[0]:.3f} .. {ratios[-1]:.3f}), target <= {target}")


def show(size, samples):
    print(f"{size} adapters")
    if "own" in samples:
        rows = samples["own"]
        print(f"  softib's own       {middle(rows, 'sweep'):8.2f} s from `softib up` until all is set up; processor time "
              f"{middle(rows, 'cpu'):.2f} s, {middle(rows, 'mib'):.0f} MiB")
    for name in ("softib", "ibsim"):
        if name in samples:
            rows = samples[name]
            print(f"  OpenSM over {name:6} {middle(rows, 'sweep'):8.2f} s to SUBNET UP; processor time: OpenSM "
                  f"{middle(rows, 'opensm_cpu'):.2f} s, {name} {middle(rows, 'simulator_cpu'):.2f} s")
    if "softib" in samples:
        rows = samples["softib"]
        rate = statistics.median(one["smps"] / max(one["opensm_cpu"] + one["simulator_cpu"], 0.01) for one in rows)
        print(f"  {middle(rows, 'smps'):,.0f} SMPs, {rate:,.0f} for each second of processor time of both; without a manager "
              f"up in {middle(rows, 'up'):.2f} s, run {middle(rows, 'run'):.3f} s, softibd {middle(rows, 'mib'):.0f} MiB")
    if "ibsim" in samples:
        if "own" in samples:
            show_ratio("own / OpenSM over ibsim", samples["own"], samples["ibsim"], 0.2)
        if "softib" in samples:
            show_ratio("OpenSM over softib / over ibsim", samples["softib"], samples["ibsim"], 1)


def main():
    parser = argparse.ArgumentParser(description=HELP, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="648,2048,8192", help="numbers of adapters [%(default)s]")
    parser.add_argument("--rounds", type=int, default=3, help="[%(default)s]")
    parser.add_argument("--ways", default="own,softib,ibsim", help="[%(default)s]")
    parser.add_argument("--json", metavar="FILE", help="all samples")
    options = parser.parse_args()
    ways = options.ways.split(",")
    if not set(ways) <= set(WAYS) or ("ibsim" in ways and "own" not in ways):
        parser.error("--ways: some of own, softib and ibsim; ibsim gets its topology from own")
    results = {}
    for size in map(int, options.sizes.split(",")):
        results[size] = measure(size, options.rounds, ways)
        show(size, results[size])
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as problem:
        sys.exit(f"bench/subnet_manager.py: {problem}")
