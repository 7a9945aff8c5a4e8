#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""OpenSM over softib against OpenSM over ibsim, in turn, on the same topology."""
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
For each size, a fat tree of switches with 36 ports: the time of `softib up` and of `softib run true`, and of OpenSM
from its start to SUBNET UP, over softib and over ibsim (package ibsim-utils) in turn, with the processor time of both
sides and the SMPs that OpenSM sent, for each second of processor time. A ratio is taken in each round; its median is
shown. The target: no more than 1.

Examples:
  bench/subnet_manager.py                        648, 2,048 and 8,192 adapters, 3 rounds
  bench/subnet_manager.py --sizes 41000 --no-ibsim
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

    def __init__(self, folder, topology):
        self.env = dict(os.environ, SOFTIB_RUNTIME_DIR=str(folder / "run"))
        started = time.monotonic()
        self.softib("up", "--topology", topology, "--sm", "none")
        self.up = time.monotonic() - started
        self.pid = json.loads(self.softib("list", "--json"))["fabrics"][0]["pid"]

    def softib(self, *words):
        done = subprocess.run([str(harness.BIN / "softib"), *words], env=self.env, text=True, capture_output=True, check=False)
        if done.returncode:
            raise Failed(f"softib {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def run_true(self):
        started = time.monotonic()
        self.softib("run", "--", "true")
        return time.monotonic() - started

    def sent(self):
        """Packets that the port of OpenSM has sent."""
        return int(self.softib("run", "--", "sh", "-c",
                               "cat /sys/class/infiniband/*/ports/1/counters/port_xmit_packets").split()[0])


def over_softib(topology, network):
    """One sample; writes the same topology for ibsim."""
    with tempfile.TemporaryDirectory(prefix="softib-bench-") as name:
        folder = pathlib.Path(name)
        fabric = Softib(folder, topology)
        try:
            fabric.softib("topology", "--ibsim", str(network))
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


def over_ibsim(network):
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


def measure(size, rounds, with_ibsim):
    topology = f"fat-tree:hcas={size},ports=36"
    softib, ibsim = [], []
    with tempfile.TemporaryDirectory(prefix="softib-bench-") as name:
        network = pathlib.Path(name) / "network"
        for number in range(rounds):
            print(f"\r{size} adapters, round {number + 1} of {rounds}", end="", file=sys.stderr, flush=True)
            softib.append(over_softib(topology, network))
            if with_ibsim:
                ibsim.append(over_ibsim(network))
    print("\r" + " " * 40 + "\r", end="", file=sys.stderr)
    return softib, ibsim


def show(size, softib, ibsim):
    print(f"{size} adapters: up {middle(softib, 'up'):.2f} s, run {middle(softib, 'run'):.3f} s, "
          f"softibd {middle(softib, 'mib'):.0f} MiB")
    for name, samples in (("softib", softib), ("ibsim", ibsim)):
        if samples:
            print(f"  OpenSM over {name:6} {middle(samples, 'sweep'):7.2f} s to SUBNET UP; processor time: OpenSM "
                  f"{middle(samples, 'opensm_cpu'):.2f} s, {name} {middle(samples, 'simulator_cpu'):.2f} s")
    rate = statistics.median(one["smps"] / max(one["opensm_cpu"] + one["simulator_cpu"], 0.01) for one in softib)
    print(f"  {middle(softib, 'smps'):,.0f} SMPs, {rate:,.0f} for each second of processor time of both")
    if ibsim:
        ratios = sorted(a["sweep"] / b["sweep"] for a, b in zip(softib, ibsim))
        print(f"  ratio {statistics.median(ratios):.2f} ({ratios[0]:.2f} .. {ratios[-1]:.2f}), target <= 1")


def main():
    parser = argparse.ArgumentParser(description=HELP, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="648,2048,8192", help="numbers of adapters [%(default)s]")
    parser.add_argument("--rounds", type=int, default=3, help="[%(default)s]")
    parser.add_argument("--no-ibsim", action="store_true", help="softib alone")
    parser.add_argument("--json", metavar="FILE", help="all samples")
    options = parser.parse_args()
    results = {}
    for size in map(int, options.sizes.split(",")):
        softib, ibsim = measure(size, options.rounds, not options.no_ibsim)
        show(size, softib, ibsim)
        results[size] = {"softib": softib, "ibsim": ibsim}
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as problem:
        sys.exit(f"bench/subnet_manager.py: {problem}")
