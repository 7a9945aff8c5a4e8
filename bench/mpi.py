# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""MPI over softib beside the shared memory of the same MPI: mpi_pingpong.c, two ranks, each pinned to a core."""
import atexit
import functools
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import harness
from harness import Failed

SOURCE = pathlib.Path(__file__).resolve().parent / "mpi_pingpong.c"
SIZES = {8: "8 B", 4096: "4 KiB", 65536: "64 KiB", 1048576: "1 MiB", 4194304: "4 MiB"}
# name: (title, compiler, launcher). Over softib everything else comes from `softib run`; without it each MPI takes the
# shared memory of the machine: OpenMPI vader, MPICH that of UCX.
KINDS = {
    "openmpi": ("OpenMPI", "mpicc.openmpi", ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none"]),
    "mpich": ("MPICH", "mpicc.mpich", ["mpiexec.mpich"]),
}
TARGETS = {8: 2.0, 65536: 1.0, 1048576: 1.0, 4194304: 1.0}
RATIOS = [(f"{title} {SIZES[size]} / its shared memory", f"{name}_{size}", f"{name}_sm_{size}", "<=", target)
          for name, (title, _, _) in KINDS.items() for size, target in TARGETS.items()]


@functools.cache
def program(compiler):
    harness.need_program(compiler)
    folder = tempfile.mkdtemp(prefix="softib-bench-mpi-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = pathlib.Path(folder) / "mpi_pingpong"
    done = subprocess.run([compiler, "-O2", "-o", path, SOURCE], text=True, capture_output=True, timeout=120, check=False)
    if done.returncode:
        raise Failed(f"{compiler} mpi_pingpong.c:\n{done.stderr}")
    return path


def pingpong(kind, fabric, cores, size):
    """One sample in us, one way. fabric None: without softib."""
    title, compiler, launcher = KINDS[kind]
    harness.need_program(launcher[0])
    words = [*launcher, "-n", 2, program(compiler), *cores, size]
    settings = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    if fabric is not None:
        text = fabric.run(words, env=settings, seconds=120).require().text
    else:
        ours = ("SOFTIB_", "UCX_", "OMPI_MCA_", "LD_PRELOAD", "RDMAV_DRIVERS")
        env = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
        started = harness.Program(words, env={**env, **settings})
        code = started.wait(120)
        text = started.text()
        if code != 0:
            raise Failed(f"{title} over shared memory: exit code {code}:\n{harness.tail(text)}")
    lines = [line for line in text.splitlines() if line.startswith("{")]
    if len(lines) != 1:
        raise Failed(f"{title}: no result:\n{harness.tail(text)}")
    return json.loads(lines[0])[str(size)]


def figures(fabric, cores):
    """(name, unit, title, sample) of each figure."""
    for kind, (title, _, _) in KINDS.items():
        for size, text in SIZES.items():
            for where, over in (("its shared memory", None), ("softib", fabric)):
                name = f"{kind}_{size}" if over else f"{kind}_sm_{size}"
                yield name, "us", f"MPI     {title} ping-pong {text}, {where}", functools.partial(pingpong, kind, over, cores, size)
