# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The control path: the time of creating and destroying for a program and for a kernel client, the memory of an object,
and 10,000 opens. Part of bench/run."""
import json
import subprocess

import measure

KINDS = {"pd": "protection domain", "mr": "memory region", "cq": "completion queue", "qp": "RC queue pair"}

# name: (unit, title) of the results of one call of bench_control_path
PROGRAM = {"socket_us": ("us", "a socket: to another process and back"),
           "query_us": ("us", "ibv_query_port")}
for _kind, _what in KINDS.items():
    PROGRAM[f"{_kind}_us"] = ("us", f"{_what}: create and destroy")
    PROGRAM[f"{_kind}_p99_us"] = ("us", f"{_what}: 99th percentile")
    PROGRAM[f"{_kind}_per_s"] = ("per_s", f"{_what}: how many")

# The same from inside softibd, by direct calls (drivers_bench): its benchmark
KERNEL = {"kernel_pd_per_s": "pd", "kernel_mr_per_s": "mr", "kernel_cq_per_s": "cq/16", "kernel_qp_per_s": "qp"}

# A MAD to the own port, sent at dispatch level, and the same through a worker thread: its benchmark
MADS = {"local_mad_us": ("a MAD to the own port", "local_mad/real_time"),
        "local_mad_by_worker_us": ("the same through a worker thread", "local_mad_by_worker/real_time")}

RATIOS = [("ibv_query_port / socket there and back", "query_us", "socket_us", "<=", 1.5)] + [
    (f"kernel client, {KINDS[bench.split('/')[0]]}s per second", name, None, ">=", 100000)
    for name, bench in KERNEL.items()] + [
    ("a MAD to the own port / through a worker", "local_mad_us", "local_mad_by_worker_us", "<=", 0.05)]


class Figures:
    """One call of each program samples all of its figures; they are cached until each has been taken."""

    def __init__(self, fabric):
        self.fabric, self.program, self.kernel = fabric, {}, {}

    def sample_program(self, name):
        if name not in self.program:
            run = self.fabric.run([measure.own_program("bench_control_path")], seconds=60).require()
            self.program = json.loads(run.text.strip().splitlines()[-1])
        return self.program.pop(name)

    def sample_kernel(self, name):
        if name not in self.kernel:
            self.kernel = kernel_figures()
        return self.kernel.pop(name)

    def all(self):
        """name, unit, title, how to sample."""
        for name, (unit, title) in PROGRAM.items():
            yield name, unit, f"control {title}", lambda n=name: self.sample_program(n)
        for name, bench in KERNEL.items():
            what = KINDS[bench.split("/")[0]]
            yield name, "per_s", f"kernel  {what}: how many", lambda n=name: self.sample_kernel(n)
        for name, (title, _) in MADS.items():
            yield name, "us", f"kernel  {title}", lambda n=name: self.sample_kernel(n)


def kernel_figures():
    ns = {row["name"]: row["real_time"] for row in measure.micro_benchmark("drivers_bench", 0.05)}
    return {**{name: 1e9 / ns[bench] for name, bench in KERNEL.items()},
            **{name: ns[bench] / 1000 for name, (_, bench) in MADS.items()}}


def memory(fabric):
    """Memory of softibd, in bytes: `private`, its heap; `shared`, pages of device memory that exist (tables, and rings
    that were written to); `rings`, the part of it that is allocated for rings and for memory of programs."""
    status = json.loads(fabric.softib("status", "--json", "--fabric", fabric.name).require().text)
    return {**measure.memory((), status["pid"]), "rings": status["memory"]["used"]}


def stops(fabric, words, phases):
    """Runs a program that stops after each phase; its lines, with softibd's memory at that moment."""
    program = fabric.start(words, stdin=subprocess.PIPE)
    lines = {}
    try:
        for name in phases:
            lines[name] = {**measure.phase(program, name, 300), **memory(fabric)}
            measure.go_on(program)
        fabric.end(program, 60).require()
    finally:
        if program.running():
            program.kill()
    return lines


def difference(lines, before, after, count):
    """Bytes of each of `count` things made between two phases."""
    return {name: (lines[after][name] - lines[before][name]) / count for name in ("shared", "rings", "private")}


def object_cost(fabric, count):
    """kind -> us to create and to destroy, and bytes, of each of `count`. Needs an unused fabric, since memory that was
    freed before would be used again."""
    phases = ("none", *KINDS, "gone")
    lines = stops(fabric, [measure.own_program("bench_many_objects"), count], phases)
    return {kind: {"create_us": lines[kind]["create_us"], "destroy_us": lines["gone"][kind],
                   **difference(lines, before, kind, count)} for before, kind in zip(phases, KINDS)}


OPEN_PHASES = ("none", "attached", "opened", "closed", "sequence", "clients")


def many_opens(fabric, opens, processes):
    """Many opens at the same time; then again and again by one process; then by processes that come and go. Also needs
    an unused fabric."""
    def run(number):
        return stops(fabric, [measure.own_program("bench_many_opens"), "--opens", number, "--processes", processes],
                     OPEN_PHASES)

    lines = run(opens)
    fewer = max(opens // 5, 2 * processes)
    settled = run(fewer)["clients"]  # the slots of processes that rest before they are used again are there now
    again = run(fewer)["clients"]
    return {"opens": opens, "processes": processes, "together": lines["opened"], "sequence": lines["sequence"],
            "clients_per_s": lines["clients"]["per_s"],
            "of_client": difference(lines, "none", "attached", processes),
            "of_open": difference(lines, "attached", "opened", opens - processes),
            "bytes": {name: lines[name]["private"] + lines[name]["shared"] for name in OPEN_PHASES},
            "bytes_settled": settled["private"] + settled["shared"],
            "bytes_again": again["private"] + again["shared"]}


def print_objects(cost, count):
    print(f"\n{count:,} of each kind alive: us to create and to destroy one, bytes of pages\n"
          f"  of device memory, of rings (pages when they are used), of softibd's heap")
    for kind, row in cost.items():
        print(f"  {KINDS[kind]:34} {row['create_us']:8.1f} {row['destroy_us']:8.1f} "
              f"{row['shared']:10,.0f} {row['rings']:10,.0f} {row['private']:10,.0f}")


def print_opens(opens):
    print(f"\n{opens['opens']:,} opens of an HCA")
    for what, row in (("by one process, one after the other", opens["sequence"]),
                      (f"by {opens['processes']} processes, all alive at the end", opens["together"])):
        print(f"  {what:46} {row['open_us']:10,.0f} us each, 99th percentile {row['open_p99_us']:,.0f}; "
              f"{row['per_s']:,.0f}/s")
    print(f"  {'each by a process of its own, 8 at a time':46} {opens['clients_per_s']:,.0f}/s")
    for what, row in (("of each process", opens["of_client"]), ("of each further open", opens["of_open"])):
        print(f"  bytes {what:40} {row['shared']:10,.0f} pages of device memory, {row['private']:,.0f} heap of softibd")
    mib = {name: value / 2**20 for name, value in opens["bytes"].items()}
    print(f"  MiB of softibd: {mib['none']:.1f} before, {mib['opened']:.1f} with all alive, {mib['closed']:.1f} when they have "
          f"ended,\n    {mib['clients']:.1f} after all, {opens['bytes_settled'] / 2**20:.1f} and "
          f"{opens['bytes_again'] / 2**20:.1f} after two more rounds")


def judge(opens):
    """Rows for bench/run: what, value, relation, target."""
    yield "softibd's memory after another round of opens", opens["bytes_again"] / opens["bytes_settled"], "<=", 1.02
