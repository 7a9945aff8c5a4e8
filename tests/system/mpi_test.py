#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""OpenMPI 4.1 over btl openib and over pml ucx, and MPICH 4.0 over UCX, unmodified: ring.c, alltoall.c and
collectives.c check every byte.

mpi_test.py [--as root|nobody] [--only REGEX]
"""
import os
import pathlib
import shutil
import subprocess
import tempfile

import harness
from harness import Failed

HERE = pathlib.Path(__file__).resolve().parent
COMMON = ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "--mca", "btl_base_warn_component_unused", "0"]
OPENIB = ["--mca", "pml", "ob1", "--mca", "btl", "openib,self", "--mca", "btl_openib_allow_ib", "1",
          "--mca", "btl_openib_warn_no_device_params_found", "0"]


# Each rank of UCX and its second thread wait for each other by spinning and sched_yield(). With more threads than
# cores Linux 6.18 then sometimes runs no other thread for half a minute ("workqueue lockup" in dmesg), after which
# UCX treats its peer as dead.
MUTEXES = ["-x", "UCX_USE_MT_MUTEX=y"]


def over_ucx(tls):
    return ["--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any", "--mca", "btl",
            "^openib,vader", "-x", f"UCX_TLS={tls},self", "-x", "UCX_NET_DEVICES=softib0:1", *MUTEXES]


TRANSPORTS = {"btl openib": OPENIB, "pml ucx, rc_v": over_ucx("rc_v"), "pml ucx, ud_v": over_ucx("ud_v")}
COMPLAINTS = (r"\bERROR\b", r"(?i)fatal", r"(?i)warning", r"(?i)failed", r"(?i)abort", r"(?i)not able to")


def compile_programs():
    harness.need_program("mpirun.openmpi")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="softib-mpi-"))
    os.chmod(folder, 0o755)
    for name, compiler, target in (("ring", "mpicc.openmpi", "ring"), ("alltoall", "mpicc.openmpi", "alltoall"),
                                   ("collectives", "mpicc.openmpi", "collectives"),
                                   ("collectives", "mpicc.mpich", "collectives.mpich")):
        harness.need_program(compiler)
        done = subprocess.run([compiler, "-O2", "-Wall", "-o", folder / target, HERE / f"programs/{name}.c"], timeout=60, text=True,
                              capture_output=True, check=False)
        if done.returncode:
            raise Failed(f"{compiler} {name}.c:\n{done.stderr}")
    return folder


def as_root(user):
    return ["--allow-run-as-root"] if user.uid == 0 else []


def one_node(fabric, transport, program, ranks, remarks):
    words = [*COMMON, *as_root(fabric.user), "-np", ranks, *transport, program]
    result = fabric.run(words, seconds=120)
    result.require(rf"{program.name} ok: {ranks} ranks", forbid=COMPLAINTS)
    remarks.append(f"{ranks} ranks on one node")


def two_nodes(fabric, transport, program, remarks):
    """Each rank starts on a virtual host of its own, as mpirun would start them on two machines."""
    on = [[str(w) for w in fabric.command([program], node)] for node in (0, 1)]
    on = [words[words.index(str(fabric.user.bin / "softib")):] for words in on]
    words = [*fabric.user.prefix, *COMMON, *as_root(fabric.user), *transport, "-np", 1, *on[0], ":", "-np", 1, *on[1]]
    started = harness.Program(words, env=fabric.base_env, cwd=fabric.runtime)
    fabric.programs.append(started)
    fabric.end(started, 120).require(rf"{program.name} ok: 2 ranks", forbid=COMPLAINTS)
    remarks.append("2 ranks on two nodes")


def over_mpich(fabric, folder, remarks):
    env = {"UCX_TLS": "rc_v,self", "UCX_NET_DEVICES": "softib0:1", "UCX_USE_MT_MUTEX": "y"}
    words = ["mpiexec.mpich", "-n", 2, folder / "collectives.mpich"]
    fabric.run(words, env=env, seconds=120).require(r"collectives ok: 2 ranks", forbid=COMPLAINTS)
    remarks.append("2 ranks on one node")


def test(report, user):
    folder = compile_programs()
    try:
        with harness.Fabric(nodes=2, user=user) as fabric:
            for title, transport in TRANSPORTS.items():
                for name in ("ring", "alltoall"):
                    for where, body in (("one node", lambda *a: one_node(*a[:3], 2, a[3])), ("two nodes", two_nodes)):
                        what = f"{name} over {title}, {where}"
                        if report.wanted(what):
                            with report.case(what) as remarks:
                                body(fabric, transport, folder / name, remarks)
            for title in ("btl openib", "pml ucx, rc_v"):
                if report.wanted(f"collectives over {title}"):
                    with report.case(f"collectives over {title}") as remarks:
                        one_node(fabric, TRANSPORTS[title], folder / "collectives", 2, remarks)
            if report.wanted("collectives over MPICH"):
                with report.case("collectives over MPICH") as remarks:
                    over_mpich(fabric, folder, remarks)
            if report.wanted("ring of 4 over pml ucx"):
                with report.case("ring of 4 over pml ucx") as remarks:
                    one_node(fabric, TRANSPORTS["pml ucx, rc_v"], folder / "ring", 4, remarks)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


harness.main("MPI", test)
