#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Programs under the tools that look into programs: sanitizers of gcc and clang, valgrind, gdb, strace. The program
is two_queue_pairs.c, built here for each tool; it checks every byte that it moves. Also: a forked child that uses
inherited objects, many opens of a device, little address space.
"""
import resource

import harness
from harness import Skipped

PROGRAM = harness.SOURCE / "tests/system/programs/two_queue_pairs.c"
GOOD = r"^good$"


def run_pair(fabric, program, before=()):
    server = fabric.start([*before, program, "server"], node=0)
    port = harness.wait_until(lambda: next((line.split()[1] for line in server.text().splitlines()
                                            if line.startswith("port ")), None) or (not server.running() and "0"),
                              60, "the server to say its port")
    client = fabric.run([*before, program, "client", port], node=1, seconds=120)
    fabric.end(server, 120).require(GOOD)
    client.require(GOOD)


def sanitizers(report, fabric):
    for compiler in ("gcc", "clang"):
        for kind in ("address", "thread", "undefined"):
            with report.case(f"{compiler} -fsanitize={kind}"):
                program = harness.build_program(fabric.runtime, PROGRAM, f"-fsanitize={kind}", compiler=compiler)
                forbid = ("ERROR: ", "WARNING: ThreadSanitizer", "runtime error")
                fabric.run([program], seconds=120).require(GOOD, forbid=forbid)
                run_pair(fabric, program)


def observers(report, fabric):
    program = harness.build_program(fabric.runtime, PROGRAM)
    with report.case("valgrind memcheck, with its leak scan"):
        harness.need_program("valgrind")
        words = ["valgrind", "--leak-check=full", "--error-exitcode=9", program]
        fabric.run(words, seconds=180).require(GOOD, r"ERROR SUMMARY: 0 errors", forbid=(r"SIGBUS",))
    forgetful = PROGRAM.with_name("forgetful.c")
    with report.case("valgrind memcheck, of a program that forgets"):
        harness.need_program("valgrind")
        words = ["valgrind", "--leak-check=full", "--error-exitcode=9", harness.build_program(fabric.runtime, forgetful)]
        fabric.run(words, seconds=180).require(
            GOOD, r": forget_memory ", r": forget_pd ", r": forget_cq ", r"ERROR SUMMARY: 3 errors", code=9)
    with report.case("LeakSanitizer, of a program that forgets"):
        program_of_leaks = harness.build_program(fabric.runtime, forgetful, "-fsanitize=address")
        # It follows frame pointers, which Debian's libibverbs does not have.
        fabric.run([program_of_leaks], seconds=120).require(GOOD, r" in forget_memory ", r" in ibv_alloc_pd ", code=1)
    with report.case("gdb, with a breakpoint"):
        harness.need_program("gdb")
        words = ["gdb", "-q", "-batch", "-ex", "set breakpoint pending on", "-ex", "break two_queue_pairs.c:check", "-ex", "run", "-ex",
                 "bt 1", "-ex", "delete", "-ex", "continue", program]
        fabric.run(words, seconds=120).require(GOOD, r"Breakpoint 1, check", r"exited normally")
    with report.case("strace -f"):
        harness.need_program("strace")
        fabric.run(["strace", "-f", "-o", fabric.runtime / "strace.log", program], seconds=120).require(GOOD)
    with report.case("the pair of processes, plain"):
        run_pair(fabric, program)


def processes(report, fabric):
    program = harness.build_program(fabric.runtime, PROGRAM)
    with report.case("a forked child gets errors for what it inherited, and may make its own"):
        fabric.run([program, "fork"]).require(GOOD)
    with report.case("a device opened 1,000 times"):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard != resource.RLIM_INFINITY and hard < 4096:
            raise Skipped(f"at most {hard} descriptors are allowed here, 4096 are needed")
        fabric.run(["prlimit", "--nofile=4096", program, "opens", "1000"], seconds=120).require(GOOD)
    with report.case("with 4 GiB of address space"):
        line = f"ulimit -v {4 << 20}; exec {program}"
        fabric.run(["sh", "-c", line]).require(GOOD)
    with report.case("as many queue pairs as ibv_query_device promises"):
        filler = harness.build_program(fabric.runtime, PROGRAM.with_name("most_objects.c"))
        fabric.run([filler, "srq", "qp", "channel", "context"], seconds=240).require(
            r"^wrong: 0$", r"^channel: Too many open files$", r"^context: Too many open files$", r"^srq: (\d+) of \1, one more: Cannot allocate memory$", r"^qp: (\d+) of \1, one more: Cannot allocate memory$")
    with report.case("as few file descriptors as there can be"):
        few = harness.build_program(fabric.runtime, PROGRAM.with_name("few_descriptors.c"))
        fabric.run([few], seconds=60).require(r"^wrong: 0$")
    with report.case("an event for a peer, without a file descriptor left"):
        sender = harness.build_program(fabric.runtime, PROGRAM.with_name("full_sender.c"))
        fabric.run([sender], seconds=60).require(r"^all right$")
    with report.case("a fabric of its own with 4 GiB of address space") as remarks:
        softib, name = fabric.user.bin / "softib", "narrow"
        line = f"ulimit -v {4 << 20}; exec {softib} run --fabric {name} -- {program}"
        words = harness.Program([*fabric.user.prefix, "sh", "-c", line], env=fabric.base_env, cwd=fabric.runtime)
        harness.Result(words, words.wait(60), 60).require(GOOD)
        remarks.append(next((w for w in fabric.softib("status", "--fabric", name).text.splitlines()
                             if w.startswith("device memory")), "gone already"))


def test(report, user):
    with harness.Fabric(nodes=2, user=user) as fabric:
        sanitizers(report, fabric)
        observers(report, fabric)
        processes(report, fabric)


harness.main("tools", test)
