#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Programs that change memory after they have registered it, and the results: memory_games.c over each memory path
against the rules below, memory_io.c (I/O in flight), allocator_check.c under malloc, jemalloc and tcmalloc,
come_and_go.c (what is left of peers that have ended), many_mappings.c (how many mappings regions take and leave).

memory_test.py [--as root|nobody] [--only REGEX] [--write-docs]
--write-docs: rewrites the table of docs/memory.md from the rules. SOFTIB_ROUNDS: rounds of memory_io (4000).
"""
import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import harness
from harness import Failed, Skipped

HERE = pathlib.Path(__file__).resolve().parent
DOCUMENT = harness.SOURCE / "docs/memory.md"
OLD, NEW, ZEROS, PEERS = "the old bytes", "the new bytes", "zeros", "what the peer wrote"
WRITTEN = f"success, the program sees {PEERS}"
GONE, REFUSED, FINE = "error 11", "error 4", "success"
FAULT = "Segmentation fault"
PATHS = ("adopted", "process_vm", "bounce")

# game: the result of an adapter (it pins the pages that are there at registration), of adopted pages, and of the
# other paths (they use the pages that are mapped at that address when a message comes, as on-demand paging does).
RULES = {
    "munmap, mmap at the same address, register again; READ by the new key": (NEW, NEW, NEW),
    "munmap, mmap at the same address, register again; WRITE by the new key": (WRITTEN, WRITTEN, WRITTEN),
    "munmap of half, mmap there, register again; READ by the new key": (NEW, NEW, NEW),
    "munmap of half, mmap there, register again; WRITE by the new key": (WRITTEN, WRITTEN, WRITTEN),
    "munmap, mmap at the same address; READ by the old key": (OLD, OLD, NEW),
    "munmap, mmap at the same address; the program's new memory": (NEW, NEW, NEW),
    "munmap; READ": (OLD, OLD, GONE),
    "munmap; WRITE": ("success", "success", GONE),
    "mprotect(PROT_READ); READ": (OLD, OLD, OLD),
    "mprotect(PROT_READ); WRITE": ("success", "success", GONE),
    "mprotect(PROT_NONE); READ": (OLD, OLD, GONE),
    "mprotect(PROT_NONE); WRITE": ("success", "success", GONE),
    "munmap; the program's own WRITE from it": (FINE, REFUSED, REFUSED),
    "munmap; the program's own READ into it": (FINE, REFUSED, REFUSED),
    "munmap, mmap at the same address; the program's own WRITE from it": (FINE, FINE, FINE),
    "munmap, mmap at the same address; the program's own READ into it": (FINE, FINE, FINE),
    "mprotect(PROT_READ); the program's own WRITE from it": (FINE, FINE, FINE),
    "mprotect(PROT_READ); the program's own READ into it": (FINE, REFUSED, REFUSED),
    "mprotect(PROT_NONE); the program's own WRITE from it": (FINE, REFUSED, REFUSED),
    "mprotect(PROT_NONE); the program's own READ into it": (FINE, REFUSED, REFUSED),
    "mremap() grows it; the program uses the new part": (NEW, NEW, NEW),
    "mremap() grows it; READ": (OLD, OLD, OLD),
    "mremap() moves it; READ by the old address": (NEW, NEW, GONE),
    "mremap() moves it, fork(), the child writes; the parent": (NEW, NEW, NEW),
    "madvise(MADV_DONTNEED) while registered; the program": (ZEROS, ZEROS, ZEROS),
    "madvise(MADV_DONTNEED) while registered; READ": (OLD, ZEROS, ZEROS),
    "madvise(MADV_DONTNEED) after deregistration; the program": (ZEROS, ZEROS, ZEROS),
    "madvise(MADV_FREE) while registered; the program": (OLD, ZEROS, OLD),
    "madvise(MADV_FREE) while registered; READ": (OLD, ZEROS, OLD),
    "madvise(MADV_FREE) after deregistration; the program": (NEW, NEW, NEW),
    "madvise(MADV_WIPEONFORK) while registered; the program": (OLD, "Invalid argument", OLD),
    "madvise(MADV_WIPEONFORK) while registered; READ": (OLD, OLD, OLD),
    "madvise(MADV_WIPEONFORK) after deregistration; the program": (NEW, NEW, NEW),
    "fork(), the parent writes; the child": (OLD, OLD, OLD),
    "fork(), the child writes; the parent": (NEW, NEW, NEW),
    "fork(); READ": (NEW, NEW, NEW),
    "_Fork(), the parent writes; the child": (OLD, FAULT, OLD),
    "_Fork(), the child writes; the parent": (NEW, NEW, NEW),
    "_Fork(); READ": (NEW, NEW, NEW),
    "clone by number, the parent writes; the child": (OLD, FAULT, OLD),
    "clone by number, the child writes; the parent": (NEW, NEW, NEW),
    "clone by number; READ": (NEW, NEW, NEW),
    "io_uring buffers, then registered; READ before": (OLD, OLD, OLD),
    "io_uring buffers, then registered, a read into them; the program": (NEW, NEW, NEW),
    "io_uring buffers, then registered, a read into them; READ": (NEW, NEW, NEW),
    "registered, then io_uring buffers, a read into them; READ": (NEW, NEW, NEW),
    "io_uring buffers, deregistered, a read into them; the program": (NEW, NEW, NEW),
    "registered, vmsplice, deregistered, the program writes; the pipe's reader": (NEW, NEW, NEW),
    "vmsplice, registered, the program writes; the pipe's reader": (NEW, NEW, NEW),
}
ALLOCATORS = {"malloc": "", "jemalloc": "libjemalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4"}


def compile_programs():
    compiler = harness.need_program("gcc")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="softib-memory-"))
    os.chmod(folder, 0o755)
    for name in ("memory_games", "memory_io", "allocator_check", "come_and_go", "many_mappings"):
        words = [compiler, "-O2", "-Wall", "-o", folder / name, HERE / f"programs/{name}.c", "-libverbs", "-luring", "-lpthread"]
        done = subprocess.run(words, timeout=60, text=True, capture_output=True, check=False)
        if done.returncode:
            raise Failed(f"{name}.c:\n{done.stderr}")
    return folder


def play(fabric, folder, path, remarks):
    result = fabric.run([folder / "memory_games"], path=path, seconds=120).require(r"^done$")
    seen = dict(line.split(": ", 1) for line in result.text.splitlines() if ": " in line and not line.startswith("skipped"))
    may_lack = "io_uring" if "skipped: io_uring" in result.text else None
    wrong = []
    for game, (_, adopted, other) in RULES.items():
        allowed = {"adopted": {adopted}, "auto": {adopted, other}}.get(path, {other})
        if game not in seen and may_lack and may_lack in game:
            continue
        if "MADV_FREE" in game:
            allowed = allowed | {ZEROS}  # the kernel may take the pages at any time
        got = seen.pop(game, "no outcome")
        if got not in allowed:
            wrong.append(f"{game}: {got}, expected {' or '.join(sorted(allowed))}")
    wrong += [f"{game}: there is no rule for it" for game in seen]
    if wrong:
        raise Failed("\n    ".join(wrong))
    remarks.append(f"{len(RULES)} games" + (", io_uring is not permitted" if may_lack else ""))


def read_in_flight(fabric, folder, mode, remarks):
    rounds = os.environ.get("SOFTIB_ROUNDS", "1000" if harness.SOME else "4000")
    result = fabric.run([folder / "memory_io", mode, rounds, 1], seconds=240)
    if result.code == 77:
        raise Skipped(result.text.strip())
    result.require(rf"^{mode}: {rounds} rounds, 0 wrong in the program, 0 at the peer$")
    remarks.append(f"{rounds} rounds")


def register_many(fabric, folder, remarks):
    result = fabric.run([folder / "memory_io", "regions", 20000, 1], seconds=120).require(r"^regions: 20000, .* 0 wrong$")
    left = int(re.search(r"(\d+) mappings left", result.text).group(1))
    if left > MOST_LEFT:
        raise Failed(f"20,000 regions leave {left} mappings behind (vm.max_map_count is 65530 by default)")
    remarks.append(f"20,000 regions leave {left} mappings, {result.seconds:.1f} s")


# Mode, COUNT, the memory path, how many mappings more the program may have meanwhile, whether it has a second thread. A
# region that is adopted takes three: its own, what it splits, the one that is kept for the return.
MAPPINGS = (
    ("random", 2000, "adopted", 3 * 64, False),
    ("random", 2000, "adopted", 3 * 64, True),
    ("random", 4000, "auto", 3 * 64, False),
    ("second", 1200, "adopted", 3 * 1024, True),
    ("arena", 1200, "adopted", 3 * 1024, False),
    ("crowded", 400, "adopted", 0, True),
    ("same", 20000, "auto", 3, True),
)
# softib's own memory and the program's allocator map a few, and the buffers are mapped still.
MOST_LEFT = 24


def count_mappings(fabric, folder, mode, count, path, most, threads, remarks):
    words = [folder / "many_mappings", mode, count, *(["thread"] if threads else [])]
    result = fabric.run(words, path=path, seconds=240).require(rf"^{mode}: most .*, 0 wrong pages$")
    seen, left = map(int, re.search(r"most (-?\d+) mappings more, (-?\d+) left", result.text).groups())
    if seen > most + MOST_LEFT or left > MOST_LEFT:
        raise Failed(f"{count} regions take {seen} mappings and leave {left}; allowed: {most + MOST_LEFT} and {MOST_LEFT}")
    remarks.append(f"{count} regions take {seen} mappings and leave {left}")


def come_and_go(fabric, folder, path, remarks):
    result = fabric.run([folder / "come_and_go", 40], path=path, seconds=120).require(r"^40 came: ")
    remarks.append(result.text.strip().splitlines()[-1])


def use_allocator(fabric, folder, library, remarks):
    env = {}
    if library:
        found = glob.glob(f"/usr/lib/*/{library}")
        if not found:
            raise Skipped(f"{library} is not installed (packages.txt)")
        env["LD_PRELOAD"] = found[0]
    result = fabric.run([folder / "allocator_check", 300], env=env, seconds=120).require(r"300 rounds, 0 dirty, 0 changed")
    remarks.append(result.text.strip().splitlines()[-1])


def write_docs():
    rows = ["| what happens | adapter | adopted pages | process_vm, bounce |", "|---|---|---|---|"]
    names = {GONE: "error 11 (IBV_WC_REM_OP_ERR)", REFUSED: "error 4 (IBV_WC_LOC_PROT_ERR)"}
    for game, outcomes in RULES.items():
        rows.append("| " + " | ".join([game, *(names.get(o, o) for o in outcomes)]) + " |")
    text = DOCUMENT.read_text()
    begin, end = "<!-- table: memory_test.py --write-docs -->\n", "<!-- end of table -->\n"
    if begin not in text or end not in text:
        raise Failed(f"{DOCUMENT} has no place for the table")
    new = text[:text.index(begin) + len(begin)] + "\n".join(rows) + "\n" + text[text.index(end):]
    if "--write-docs" in sys.argv:
        DOCUMENT.write_text(new)
    elif new != text:
        raise Failed(f"the table of {DOCUMENT} is not that of the rules: run memory_test.py --write-docs")


def test(report, user):
    folder = compile_programs()
    try:
        if report.wanted("table"):
            with report.case("table of docs/memory.md"):
                write_docs()
        with harness.Fabric(nodes=1, user=user) as fabric:
            for path in ("auto", *PATHS):
                if report.wanted(f"games, {path}"):
                    with report.case(f"games, {path}") as remarks:
                        play(fabric, folder, path, remarks)
            for mode in ("direct", "uring", "uring-fixed", "buffered", "remap"):
                if report.wanted(f"reads in flight, {mode}"):
                    with report.case(f"reads in flight, {mode}") as remarks:
                        read_in_flight(fabric, folder, mode, remarks)
            if report.wanted("many regions"):
                with report.case("many regions") as remarks:
                    register_many(fabric, folder, remarks)
            for mode, count, path, most, threads in MAPPINGS:
                name = f"mappings, {mode}, {path}" + (", threads" if threads else "")
                if report.wanted(name):
                    with report.case(name) as remarks:
                        count_mappings(fabric, folder, mode, count, path, most, threads, remarks)
            for path in ("auto", "process_vm"):
                if report.wanted(f"peers that have ended, {path}"):
                    with report.case(f"peers that have ended, {path}") as remarks:
                        come_and_go(fabric, folder, path, remarks)
            for name, library in ALLOCATORS.items():
                if report.wanted(f"allocator, {name}"):
                    with report.case(f"allocator, {name}") as remarks:
                        use_allocator(fabric, folder, library, remarks)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


harness.main("registered memory", test)
