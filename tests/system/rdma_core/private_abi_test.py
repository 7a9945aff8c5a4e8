#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The provider under stand-ins for the libibverbs of rdma-core 36 to 65 (stand_in/), each built here: it has a
plug-in of that private ABI, and gives it the operations and the functions of queue pairs in the places of that version.
A libibverbs of any other kind is refused in words.

private_abi_test.py [--as root|nobody] [--only REGEX]
"""
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness
from harness import Failed

SOURCES = pathlib.Path(__file__).resolve().parent / "stand_in"
# The private ABI, the release of rdma-core, the functions of struct ibv_qp_ex, the operations of the table.
Version = collections.namedtuple("Version", "abi release functions operations")
VERSIONS = [Version(34, 36, 20, 76), Version(34, 44, 21, 76), Version(34, 56, 22, 76), Version(57, 57, 22, 76),
            Version(59, 59, 22, 79), Version(59, 62, 22, 81), Version(64, 64, 22, 83), Version(65, 65, 22, 93)]
UNKNOWN = Version(66, 70, 22, 93)
# Of the 22; the last two came in 44 and 45.
FUNCTIONS = 22
ADDED = {"reg_mr_ex": 59, "query_port_speed": 62}  # that softib has, and since when the library


def build(folder, version, *flags):
    """A folder with a libibverbs.so.1."""
    place = folder / "-".join([*map(str, version), *(re.sub(r"\W", "", flag) for flag in flags)])
    if place.exists():
        return place
    place.mkdir()
    script = place / "library.map"
    script.write_text((SOURCES / "library.map.in").read_text().replace("@ABI@", str(version.abi)))
    file = place / f"libibverbs.so.1.99.{version.release}.0"
    done = subprocess.run(
        [harness.need_program("gcc"), "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-DABI={version.abi}",
         f"-DRELEASE={version.release}", f"-DQP_EX_FUNCTIONS={version.functions}", *flags,
         "-Wl,-soname,libibverbs.so.1", f"-Wl,--version-script={script}", "-o", file, SOURCES / "library.c"],
        capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise Failed(done.stderr)
    (place / "libibverbs.so.1").symlink_to(file.name)
    for path in (place, file):
        path.chmod(0o755)
    return place


def places(text, kind):
    return {name: int(place, 16) for name, place in re.findall(rf"^{kind} (\S+) ([0-9a-f]+)$", text, re.MULTILINE)}


def under(fabric, library, program, *words, code=0):
    return fabric.run([program, *words], env={"LD_LIBRARY_PATH": str(library)}).require(code=code).text


def check_tables(found):
    """The same function for the same name and place under every version: those of 44, which are tested by every other
    test here, and of those that came later, what one version has."""
    operations, functions = {}, {}
    for version, text in found.items():
        mine = places(text, "operation")
        late = [name for name, since in ADDED.items() if since > version.release and name in mine]
        missing = [name for name, since in ADDED.items() if since <= version.release and name not in mine]
        if late or missing:
            raise Failed(f"{version}: {late} too early, {missing} missing")
        for name, place in mine.items():
            if operations.setdefault(name, place) != place:
                raise Failed(f"{version}: {name} is another function than in other versions")
        wr = places(text, "function")
        if len(wr) != version.functions:
            raise Failed(f"{version}: {len(wr)} functions of queue pairs")
        for index, place in wr.items():
            if functions.setdefault(index, place) != place:
                raise Failed(f"{version}: function {index} is another than in other versions")
    # No two functions are one: neither table is shifted.
    for table, least in ((operations, 50), (functions, FUNCTIONS)):
        if len(set(table.values())) != len(table) or len(table) < least:
            raise Failed(f"{len(table)} entries, {len(set(table.values()))} different ones")
    return len(operations)


def unknown(report, fabric, folder, program, user):
    library = build(folder, UNKNOWN)
    words = r"rdma-core 70\.0 has private ABI 66; this softib knows 34 to 65"
    with report.case("a libibverbs of an unknown private ABI: the program says so at its end"):
        text = under(fabric, library, program, "idle")
        if not re.search(words + ", so this program has found no HCA", text):
            raise Failed(f"{text!r}")
    with report.case("softib doctor says it too"):
        environment = {**fabric.base_env, "LD_LIBRARY_PATH": str(library)}
        doctor = harness.Program([*user.prefix, user.bin / "softib", "doctor"], env=environment, cwd=fabric.runtime)
        harness.Result(doctor, doctor.wait(60), 0).require(r"FAIL +libibverbs +" + words, code=1)
    with report.case("programs with a libibverbs that softib knows say nothing"):
        text = under(fabric, build(folder, VERSIONS[-1]), program, "idle")
        if text:
            raise Failed(text)


def other(report, fabric, folder, program):
    """A known number with another layout."""
    with report.case("known private ABI, one operation less: refused in words"):
        text = under(fabric, build(folder, VERSIONS[1], '-DMISSING="query_qp"'), program, code=1)
        if not re.search(r"softib: rdma-core 44\.0 \(\S+\) has private ABI 34 but other operations", text):
            raise Failed(text)
    with report.case("known private ABI, queue pairs of an unknown layout: refused in words"):
        text = under(fabric, build(folder, Version(65, 65, 5, 93)), program, code=1)
        if not re.search(r"softib: rdma-core 65\.0 \(\S+\) has private ABI 65 but other queue pairs", text):
            raise Failed(text)


def test(report, user):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="softib-abi-"))
    os.chmod(folder, 0o755)
    try:
        program = harness.build_program(folder, SOURCES / "check.c", libraries=())
        found = {}
        with harness.Fabric(nodes=1, user=user) as fabric:
            for version in VERSIONS:
                name = f"private ABI {version.abi}, rdma-core {version.release}: {version.functions} functions"
                with report.case(name) as remarks:
                    text = under(fabric, build(folder, version), program)
                    if not re.search(rf"^table {version.operations}\nregistered 1$", text, re.MULTILINE):
                        raise Failed(text)
                    found[version] = text
                    remarks.append(f"{len(places(text, 'operation'))} operations of {version.operations}")
            with report.case("each operation and function is the same one under all of them") as remarks:
                remarks.append(f"{check_tables(found)} operations")
            unknown(report, fabric, folder, program, user)
            other(report, fabric, folder, program)
    finally:
        shutil.rmtree(folder)


harness.main("private ABIs of libibverbs", test)
