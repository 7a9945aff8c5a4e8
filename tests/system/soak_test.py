#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A soak: programs that register memory, exchange and check bytes, do direct I/O, fork and allocate, at random, while
others are killed, stopped and continued, in this pid namespace or their own, in a user namespace, plain or built with
AddressSanitizer.

soak_test.py [--seconds N] [--seed N]      60 seconds, a random seed (printed; the same seed draws the same schedule)

Undisturbed programs must succeed. Killed programs must leave nothing behind: softibd has no process, no object and no
mapping of theirs at the end.
"""
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import harness
from harness import Failed

HERE = pathlib.Path(__file__).resolve().parent
MOST_AT_ONCE = 4
JOBS = {  # weight, program, arguments
    "direct I/O": (3, "memory_io", ["direct", "150"]),
    "io_uring": (3, "memory_io", ["uring", "150"]),
    "io_uring, registered buffers": (3, "memory_io", ["uring-fixed", "150"]),
    "buffered I/O": (2, "memory_io", ["buffered", "150"]),
    "remapped memory": (3, "memory_io", ["remap", "200"]),
    "many regions": (1, "memory_io", ["regions", "500"]),
    "games, forks among them": (2, "memory_games", []),
    "allocator": (2, "allocator_check", ["60"]),
}
WRAPS = {  # weight, words between `softib run --` and the program
    "": (6, []),
    "own pid namespace": (1, ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]),
    "own user namespace": (1, ["unshare", "--user", "--map-root-user"]),
}


def option(name, default):
    return int(sys.argv[sys.argv.index(name) + 1]) if name in sys.argv else default


def compile_programs(folder):
    compiler = harness.need_program("gcc")
    built = {}
    for name in ("memory_io", "memory_games", "allocator_check"):
        for kind, flags in (("plain", ["-O2"]), ("asan", ["-O1", "-g", "-fsanitize=address"])):
            target = folder / f"{name}-{kind}"
            words = [compiler, *flags, "-w", "-o", target, HERE / f"programs/{name}.c", "-libverbs", "-luring", "-lpthread"]
            done = subprocess.run([str(w) for w in words], timeout=60, text=True, capture_output=True, check=False)
            if done.returncode == 0:
                built[name, kind] = target
            elif kind == "plain":
                raise Failed(f"{name}.c:\n{done.stderr}")
    return built


def draw(rng, table):
    names = list(table)
    return rng.choices(names, [table[n][0] for n in names])[0]


def works(words):
    return subprocess.run([*words, "true"], timeout=60, capture_output=True, check=False).returncode == 0


class Soak:
    def __init__(self, fabric, built, seed):
        self.fabric, self.built, self.rng = fabric, built, random.Random(seed)
        self.wraps = {n: w for n, w in WRAPS.items() if not w[1] or works([*fabric.user.prefix, *w[1]])}
        self.running = []  # [program, title, disturbance]
        self.counts = {"started": 0, "succeeded": 0, "killed": 0, "stopped": 0}

    def start(self):
        job, wrap = draw(self.rng, JOBS), draw(self.rng, self.wraps)
        _, name, arguments = JOBS[job]
        kind = "asan" if self.rng.random() < 0.15 and (name, "asan") in self.built and not wrap else "plain"
        if name == "memory_io":
            arguments = [*arguments, str(self.rng.randrange(1 << 30))]
        words = [*self.wraps[wrap][1], self.built[name, kind], *arguments]
        env = {"ASAN_OPTIONS": "detect_leaks=0"} if kind == "asan" else None
        program = self.fabric.start(words, node=self.rng.randrange(2), env=env)
        title = ", ".join(filter(None, [job, wrap, "asan" if kind == "asan" else ""]))
        self.running.append([program, title, ""])
        self.counts["started"] += 1

    def disturb(self):
        entry = self.rng.choice(self.running)
        pids = self.group(entry[0].pid)
        if not pids or entry[2]:
            return
        if self.rng.random() < 0.5:
            entry[2] = "killed"
            self.signal(self.rng.choice(pids), signal.SIGKILL)
        else:
            entry[2] = "stopped"
            victim = self.rng.choice(pids)
            self.signal(victim, signal.SIGSTOP)
            entry.append((victim, time.monotonic() + self.rng.uniform(0.05, 1.5)))
        self.counts[entry[2]] += 1

    @staticmethod
    def group(leader):
        """The processes of the program's process group."""
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = path.read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[2]) == leader and fields[0] not in "ZX":
                found.append(int(path.parent.name))
        return found

    @staticmethod
    def signal(pid, number):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass

    def look(self):
        for entry in list(self.running):
            program, title, disturbance = entry[:3]
            if len(entry) > 3 and (time.monotonic() > entry[3][1] or not program.running()):
                self.signal(entry[3][0], signal.SIGCONT)
                del entry[3]
            if program.running():
                if time.monotonic() - program.started > 90:
                    program.kill()
                    raise Failed(f"{title}{' (' + disturbance + ')' if disturbance else ''} did not end in 90 s; it said:\n"
                                 f"{harness.tail(program.text())}")
                continue
            self.running.remove(entry)
            code, text = program.process.returncode, program.text()
            if code not in (0, 77) and disturbance != "killed":
                raise Failed(f"{title}{' (' + disturbance + ')' if disturbance else ''} ended with {code}:\n"
                             f"{harness.tail(text)}")
            if " wrong in" in text and ", 0 wrong in the program, 0 at the peer" not in text:
                raise Failed(f"{title} {disturbance}:\n{harness.tail(text)}")
            self.counts["succeeded"] += code == 0

    def run(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            while len(self.running) < MOST_AT_ONCE:
                self.start()
            if self.rng.random() < 0.1:
                self.disturb()
            self.look()
            time.sleep(0.02)  # tidy: allow(sleep) the pace of the soak
        harness.wait_until(lambda: self.look() or not self.running, 120, "the last programs to end")


def nothing_left(fabric):
    try:
        harness.wait_until(lambda: not fabric.state()["clients"], 20, "softibd to have no client left")
    except Failed:
        raise Failed(f"softibd has clients left: {json.dumps(fabric.state()['clients'])[:2000]}") from None


def test(report, user):
    seed = option("--seed", random.SystemRandom().randrange(1 << 30))
    seconds = option("--seconds", 60)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="softib-soak-"))
    os.chmod(folder, 0o755)
    try:
        built = compile_programs(folder)
        with harness.Fabric(nodes=2, user=user) as fabric:
            with report.case(f"{seconds} s, --seed {seed}") as remarks:
                soak = Soak(fabric, built, seed)
                soak.run(seconds)
                nothing_left(fabric)
                remarks.append(", ".join(f"{n} {what}" for what, n in soak.counts.items()))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


harness.main("soak", test)
