#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Live migration of QEMU over rdma, between two nodes, of a guest that checks its own memory (guest.S):
precopy, precopy with rdma-pin-all, postcopy.

QEMU 7.2 has two faults of its own with postcopy, which qemu_faults.c works around and describes.

qemu_test.py [--as root|nobody] [--link-layer ethernet] [--only REGEX]
"""
import hashlib
import json
import os
import pathlib
import socket
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness
from harness import Failed, Skipped

HERE = pathlib.Path(__file__).resolve().parent
QEMU = "qemu-system-x86_64"
MIB = 1 << 20
MEMORY = 64 * MIB
GUEST = (16 * MIB, 48 * MIB)  # that it writes
SECONDS = 60
PASSES = 2
TRIES = 5  # to be in time
SOON = 8 * MIB  # of the guest's memory, which postcopy may find sent already
BANDWIDTH = 16 * MIB  # a second
NOTHING_LEFT = "nothing was left for postcopy"
WITHOUT_LIMIT = 1 << 40
DONE = ("completed", "failed")


def build_guest(folder):
    for program in ("as", "ld"):
        harness.need_program(program)
    words = [f"{name}={value}" for name, value in zip(("FIRST", "LAST"), GUEST)]
    symbols = [part for word in words for part in ("--defsym", word)]
    for command in (["as", "--32", *symbols, HERE / "guest.S", "-o", folder / "guest.o"],
                    ["ld", "-m", "elf_i386", "-Ttext", "0x100000", folder / "guest.o", "-o", folder / "guest"]):
        subprocess.run(command, check=True)
    (folder / "guest").chmod(0o755)
    return folder / "guest"


class Machine:
    """A virtual machine, and its control connection (QMP)."""

    def __init__(self, fabric, name, node, guest, env, words=()):
        self.fabric = fabric
        self.console, self.image = fabric.runtime / f"{name}.console", fabric.runtime / f"{name}.memory"
        control = fabric.runtime / f"{name}.qmp"
        for file in (control, self.console):  # of the case before
            file.unlink(missing_ok=True)
        self.program = fabric.start(
            [QEMU, "-accel", "tcg", "-m", f"{MEMORY}B", "-nodefaults", "-no-user-config", "-display", "none",
             "-kernel", guest, "-debugcon", f"file:{self.console}", "-qmp", f"unix:{control},server=on,wait=off", *words],
            node, env=env)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(SECONDS)
        harness.wait_until(lambda: not self.program.running() or self.socket.connect_ex(str(control)) == 0, SECONDS,
                           "QEMU to listen")
        self.file = self.socket.makefile("rw")
        self.file.readline()
        self.tell("qmp_capabilities")

    def tell(self, command, **arguments):
        try:
            self.file.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
            self.file.flush()
            for line in self.file:
                answer = json.loads(line)
                if "error" in answer:
                    raise Failed(f"{command}: {answer['error']}")
                if "return" in answer:
                    return answer["return"]
        except OSError:
            pass
        self.program.wait(SECONDS)
        raise Failed(f"{command}: QEMU has ended; it said:\n{self.program.text()}")

    def passes(self):
        text = self.console.read_text() if self.console.exists() else ""
        if "X" in text:
            raise Failed(f"the guest has found a wrong word after {len(text) - 1} passes")
        return len(text)

    def goes_on(self):
        target = self.passes() + PASSES
        harness.wait_until(lambda: self.passes() >= target or not self.program.running(), SECONDS, "the guest to go on")
        if not self.program.running():
            raise Failed(f"QEMU has ended; it said:\n{self.program.text()}")

    def memory(self):
        self.tell("pmemsave", val=0, size=MEMORY, filename=str(self.image))
        digest = hashlib.sha256(self.image.read_bytes()).hexdigest()
        self.image.unlink()
        return digest

    def migration(self):
        return self.tell("query-migrate")

    def wait_for_migration(self):
        harness.wait_until(lambda: self.migration().get("status") in DONE, SECONDS, "the end of the migration")
        if self.migration()["status"] == "failed":
            raise Failed(f"the migration has failed; QEMU said:\n{self.program.text()}")

    def quit(self):
        self.tell("quit")
        self.fabric.end(self.program, SECONDS).require()


class Migration:
    """From node 0 to node 1."""

    def __init__(self, fabric, guest, *capabilities, env=None):
        port = harness.free_port()
        self.source = Machine(fabric, "source", 0, guest, env)
        self.target = Machine(fabric, "target", 1, guest, env, ["-incoming", "defer"])
        self.source.goes_on()
        states = [{"capability": name, "state": True} for name in capabilities]
        for machine in (self.source, self.target):
            machine.tell("migrate-set-capabilities", capabilities=states)
        self.place = f"rdma:node1:{port}"
        self.target.tell("migrate-incoming", uri=self.place)

    def start(self, milliseconds, bandwidth):
        """The source stops the guest when what remains takes no longer than so many milliseconds."""
        self.source.tell("migrate-set-parameters", **{"downtime-limit": milliseconds, "max-bandwidth": bandwidth})
        self.source.tell("migrate", uri=self.place)

    def end(self):
        for machine in (self.source, self.target):
            machine.wait_for_migration()

    def quit(self):
        for machine in (self.source, self.target):
            machine.quit()


def precopy(migration):
    migration.start(2000, WITHOUT_LIMIT)
    migration.end()
    migration.target.goes_on()
    migration.quit()


def pinned(migration):
    migration.source.tell("stop")
    before = migration.source.memory()
    migration.start(2000, WITHOUT_LIMIT)
    migration.end()
    if migration.target.memory() != before:
        raise Failed("the memory of a stopped guest has changed on its way")
    migration.target.tell("cont")
    migration.target.goes_on()
    migration.quit()


def postcopy(migration):
    migration.start(1, BANDWIDTH)
    harness.wait_until(lambda: migration.source.migration().get("ram", {}).get("transferred", 0) >= SOON, SECONDS,
                       "the first bytes")
    migration.source.tell("migrate-start-postcopy")
    migration.end()
    ram = migration.source.migration()["ram"]
    migration.target.goes_on()
    migration.quit()
    if not ram["postcopy-bytes"]:
        raise Failed(f"{NOTHING_LEFT}: {ram}")
    return f"{ram['postcopy-bytes'] // MIB} MiB after the switch, {ram['postcopy-requests']} pages asked for"


def postcopy_at_last(fabric, guest, library):
    for attempt in range(1, TRIES + 1):
        try:
            return postcopy(Migration(fabric, guest, "postcopy-ram", env={"LD_PRELOAD": str(library)}))
        except Failed as failure:
            if attempt == TRIES or NOTHING_LEFT not in str(failure):
                raise
            for program in fabric.programs:
                if program.running():
                    program.kill()


def leaves_no_complaint(fabric):
    lines = fabric.softib("trace", "--fabric", fabric.name).require().text
    if "failed" in lines or "refused" in lines:
        raise Failed(f"the trace has\n{lines}")


def need_faults_for_users():
    """Postcopy handles page faults of the guest (userfaultfd), as root or where users may."""
    allowed = pathlib.Path("/proc/sys/vm/unprivileged_userfaultfd")
    if allowed.read_text().strip() == "0":
        raise Skipped("vm.unprivileged_userfaultfd is 0")


def test(report, user):
    harness.need_program(QEMU)
    if os.uname().machine != "x86_64":
        raise Skipped("the guest is a program of x86, which needs that machine's as and ld")
    with harness.Fabric(nodes=2, user=user) as fabric:
        guest = build_guest(fabric.runtime)
        for title, case, capabilities in (("precopy of a guest that runs", precopy, ()),
                                          ("precopy, rdma-pin-all, every byte", pinned, ["rdma-pin-all"])):
            if report.wanted(title):
                with report.case(title):
                    case(Migration(fabric, guest, *capabilities))
                    leaves_no_complaint(fabric)
        title = "postcopy"
        if report.wanted(title):
            with report.case(title) as remarks:
                if user.uid != 0:
                    need_faults_for_users()
                library = harness.build_program(fabric.runtime, HERE / "qemu_faults.c", "-shared", "-fPIC")
                remarks.append(postcopy_at_last(fabric, guest, library))


harness.main("QEMU", test)
