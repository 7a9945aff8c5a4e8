#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""OpenMPI 4.1 over btl openib, pml ucx and mtl ofi, and MPICH 4.0 over UCX, unmodified: ring.c, alltoall.c,
one_sided.c and collectives.c check every byte, with 4 ranks on 2 nodes; with the settings of `softib run`
alone; with a rank that is killed. Ranks that end in order leave no line in the trace.

osc ucx of OpenMPI 4.1 gets and puts the same bytes in MPI_Get_accumulate with MPI_REPLACE, without a flush between,
and so returns the new bytes where UCX gets by messages: ud_v, and UCX's own shared memory without softib. Over ud_v
flush_before_put.c adds the flush; every byte must then be right.

mpi_test.py [--as root|nobody] [--link-layer ethernet] [--only REGEX]
"""
import os
import pathlib
import re
import shutil
import signal
import tempfile

import harness
from harness import Failed
from support import mpi
from support.mpi import MPICH, OPENIB, OPENIB_ENV, OPENMPI

HERE = pathlib.Path(__file__).resolve().parent
# (title, launcher, its words, environment, words for one_sided, whether flush_before_put is loaded into that).
# Everything else comes from `softib run`.
TRANSPORTS = [
    ("OpenMPI, btl openib, osc rdma", OPENMPI, [*OPENIB, "--mca", "osc", "rdma"], OPENIB_ENV, ["--no-swap"],
     False),
    ("OpenMPI, pml ucx, rc_v", OPENMPI, ["-x", "UCX_TLS=rc_v,self"], {}, [], False),
    ("OpenMPI, pml ucx, ud_v", OPENMPI, ["-x", "UCX_TLS=ud_v,self"], {}, [], True),
    ("MPICH, rc_v", MPICH, [], {"UCX_TLS": "rc_v,self"}, [], False),
    ("MPICH, ud_v", MPICH, [], {"UCX_TLS": "ud_v,self"}, [], False),
]
if harness.ETHERNET:  # Debian's openib has no connection manager for Ethernet ports (udcm only)
    TRANSPORTS = TRANSPORTS[1:]
OFI = [*mpi.OFI, "--mca", "osc", "pt2pt"]
COMPLAINTS = (r"\bERROR\b", r"(?i)fatal", r"(?i)warning", r"(?i)failed", r"(?i)abort", r"(?i)not able to", r"(?i)No OpenFabrics")
PROGRAMS = ("ring", "alltoall", "one_sided", "collectives", "endless", "fresh_buffers")
FLUSH = "flush_before_put.so"


def compile_programs():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="softib-mpi-"))
    os.chmod(folder, 0o755)
    for kind in ("openmpi", "mpich"):
        (folder / kind).mkdir(mode=0o755)
        for name in PROGRAMS:
            mpi.build_program(kind, HERE / f"programs/{name}.c", folder / kind / name)
    mpi.build([harness.need_program("gcc"), "-O2", "-Wall", "-shared", "-fPIC", "-o", folder / FLUSH,
               HERE / "programs/flush_before_put.c", "-lucp"])
    return folder


class Job:
    """The words that start MPI programs on a fabric."""

    def __init__(self, fabric, folder):
        self.fabric, self.folder = fabric, folder

    def program(self, launcher, name):
        return self.folder / ("mpich" if launcher == MPICH else "openmpi") / name

    def on_nodes(self, launcher, words, ranks, name, env=None, options=()):
        started = mpi.start_on_nodes(self.fabric, launcher, words, ranks, self.program(launcher, name), env, options)
        return self.fabric.end(started, 240).require(rf"^{name} ok: {ranks} ranks", forbid=COMPLAINTS)

    def on_one_node(self, launcher, words, ranks, name, env=None, options=()):
        result = self.fabric.run([*launcher, *words, "-n", ranks, self.program(launcher, name), *options],
                                 env={**mpi.SETTINGS, **(env or {})}, seconds=240)
        return result.require(rf"^{name} ok: {ranks} ranks", forbid=COMPLAINTS)


def each_transport(report, job):
    for title, launcher, words, env, one_sided, flushes in TRANSPORTS:
        for name in ("ring", "alltoall", "one_sided"):
            what = f"{name}, {title}, 4 ranks on 2 nodes"
            if report.wanted(what):
                with report.case(what):
                    library = {"LD_PRELOAD": str(job.folder / FLUSH)} if flushes and name == "one_sided" else {}
                    job.on_nodes(launcher, words, 4, name, {**env, **library}, one_sided if name == "one_sided" else ())
        if "ud_v" not in title:
            what = f"collectives, {title}"
            if report.wanted(what):
                with report.case(what):
                    job.on_one_node(launcher, words, 2, "collectives", env)


def freed_buffers(report, job):
    """Registration caches see what free() gives back. UCX patches libc over OpenMPI's patch: openib runs beside it."""
    cases = {title: (launcher, words, env) for title, launcher, words, env, _, _ in TRANSPORTS}
    if not harness.ETHERNET:
        cases["OpenMPI, btl openib, osc ucx"] = (OPENMPI, OPENIB, OPENIB_ENV)
    cases["OpenMPI, mtl ofi over verbs;ofi_rxm"] = (OPENMPI, OFI, {})
    for title, (launcher, words, env) in cases.items():
        what = f"freed buffers, {title}"
        if report.wanted(what):
            with report.case(what):
                job.on_nodes(launcher, words, 4, "fresh_buffers", env)


def over_libfabric(report, job):
    for name in ("ring", "alltoall", "one_sided"):
        what = f"{name}, OpenMPI, mtl ofi over verbs;ofi_rxm, 4 ranks"
        if report.wanted(what):
            with report.case(what):
                job.on_nodes(OPENMPI, OFI, 4, name)


def as_supplied(report, job):
    """`softib run` and nothing else: the ranks use the HCA, not the shared memory of the machine."""
    for title, launcher in (("OpenMPI", ["mpirun.openmpi"]), ("MPICH", ["mpiexec.mpich"])):
        what = f"{title} as `softib run` sets it up"
        if report.wanted(what):
            with report.case(what) as remarks:
                text = ""
                for name in ("ring", "one_sided"):
                    result = job.on_one_node(MPICH if title == "MPICH" else launcher, [], 4, name, {"UCX_LOG_LEVEL": "info"})
                    text += result.text
                found = set(re.findall(r"(\w+)/softib0:1", text))
                others = set(re.findall(r"\b(posix|sysv|cma|tcp)/", text))
                if not found or others:
                    raise Failed(f"it uses {sorted(found | others)}:\n{harness.tail(text)}")
                remarks.append(", ".join(sorted(found)))


def ends_in_order(report, user, folder):
    what = "ranks that end in order leave no line in the trace"
    if not report.wanted(what):
        return
    with report.case(what), harness.Fabric(nodes=2, user=user) as fabric:
        job = Job(fabric, folder)
        for _, launcher, words, env, _, _ in TRANSPORTS:
            job.on_nodes(launcher, words, 2, "ring", env)
            lines = fabric.softib("trace", "--all", "--fabric", fabric.name).require().text
            if lines:
                raise Failed(f"{' '.join(launcher)} has left\n{lines}")


def user_settings_win(report, job):
    what = "a setting of ~/.openmpi/mca-params.conf wins over that of `softib run`"
    if not report.wanted(what):
        return
    with report.case(what):
        home = job.fabric.user.make_dir("softib-home-")
        settings = home / ".openmpi"
        settings.mkdir(mode=0o755)
        os.chmod(settings, 0o755)
        (settings / "mca-params.conf").write_text("pml = ob1\nbtl = tcp,self\n")
        job.on_one_node(OPENMPI, [], 2, "ring", {"HOME": str(home), "OMPI_MCA_pml_base_verbose": "10"}).require(
            r"selected ob1", forbid=(r"selected ucx",))


def a_rank_dies(report, job):
    """Killed in the middle of its transfers: the launcher ends the others, and nothing of them is left."""
    cases = {"OpenMPI, pml ucx": (OPENMPI, [], {}), "MPICH": (MPICH, [], {})}
    if not harness.ETHERNET:
        cases["OpenMPI, btl openib"] = (OPENMPI, OPENIB, OPENIB_ENV)
    for title, (launcher, words, env) in cases.items():
        what = f"kill -9 of a rank, {title}"
        if not report.wanted(what):
            continue
        with report.case(what):
            started = mpi.start_on_nodes(job.fabric, launcher, words, 4, job.program(launcher, "endless"), env)
            ranks = [int(started.wait_for_text(rf"rank {rank} is process (\d+)", 120)[1]) for rank in range(4)]
            os.kill(ranks[2], signal.SIGKILL)
            result = job.fabric.end(started, 60)
            if not result.code:
                raise Failed(f"{title}: ended with {result.code}:\n{harness.tail(result.text)}")
            if "wrong byte" in result.text:
                raise Failed(harness.tail(result.text))
            harness.wait_until(lambda: not any(pathlib.Path(f"/proc/{pid}").exists() for pid in ranks), 60,
                               "the other ranks to end")
            harness.wait_until(lambda: "endless" not in job.fabric.softib("status", "--fabric", job.fabric.name).text, 60,
                               "softibd to forget the ranks")


def test(report, user):
    for program in (OPENMPI[0], MPICH[0]):
        harness.need_program(program)
    report.may_take_some(2)
    folder = compile_programs()
    try:
        with harness.Fabric(nodes=2, user=user) as fabric:
            job = Job(fabric, folder)
            for part in (each_transport, freed_buffers, over_libfabric, as_supplied, user_settings_win, a_rank_dies):
                part(report, job)
        ends_in_order(report, user, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


harness.main("MPI", test)
