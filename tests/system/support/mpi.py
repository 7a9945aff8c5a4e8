# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""OpenMPI and MPICH: their launchers, the settings of transports that `softib run` does not choose, their programs.

btl openib of OpenMPI 4.1 may crash at its beginning and at its end, with any HCA: it counts the users of a device in a
byte that it never sets, and frees the module of udcm while the event of a late message is queued. docs/status.md. So
here malloc gives zeros (MALLOC_PERTURB_=255), and all ranks connect at the beginning.
"""
import subprocess

import harness
from harness import Failed

OPENMPI = ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none"]
MPICH = ["mpiexec.mpich"]
OPENIB = ["--mca", "pml", "ob1", "--mca", "btl", "openib,self", "--mca", "btl_openib_cpc_include", "udcm",
          "--mca", "mpi_preconnect_mpi", "1"]
OPENIB_ENV = {"MALLOC_PERTURB_": "255"}
OFI = ["--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include", "verbs;ofi_rxm"]
# mpirun hands the environment on to its ranks. After one was killed it ends the others, which poll, at once.
SETTINGS = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_odls_base_sigkill_timeout": "0"}


def build(words):
    done = subprocess.run(words, timeout=120, text=True, capture_output=True, check=False)
    if done.returncode or done.stderr:
        raise Failed(f"{' '.join(map(str, words))}:\n{done.stderr}")


def build_program(kind, source, target):
    """kind: openmpi, mpich."""
    # The header of MPICH declares the ignored statuses in a way that gcc 12 complains about.
    build([harness.need_program(f"mpicc.{kind}"), "-O2", "-Wall", "-Wno-stringop-overflow", "-o", target, source])


def start_on_nodes(fabric, launcher, words, ranks, program, env=None, options=()):
    """Each rank starts on its virtual host, as mpirun would start it on a machine."""
    user = fabric.user
    place = [user.bin / "softib", "run", "--fabric", fabric.name, "--node", "auto", "--"]
    started = harness.Program([*user.prefix, *launcher, *words, "-n", ranks, *place, program, *options],
                              env={**fabric.base_env, **SETTINGS, **(env or {})}, cwd=fabric.runtime)
    fabric.programs.append(started)
    return started
