#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""ibv_reg_mr and ibv_rereg_mr of memory that is not mapped: the errno of the kernel's pinning, at once.

registration_test.py [--as root|nobody] [--only REGEX]
"""
import harness

PYTHON = "/usr/bin/python3"

# Prints a line for each attempt: its name and 0 or the errno.
ATTEMPTS = r"""
import ctypes, mmap, os, sys
import pyverbs.device as d
from pyverbs.pd import PD
from pyverbs.mr import MR
from pyverbs.pyverbs_error import PyverbsRDMAError
import pyverbs.enums as e

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
PAGE = 4096
READ, WRITE = 1, 2
LOCAL, RW, RR, BIND = (e.IBV_ACCESS_LOCAL_WRITE, e.IBV_ACCESS_REMOTE_WRITE, e.IBV_ACCESS_REMOTE_READ,
                       e.IBV_ACCESS_MW_BIND)
pd = PD(d.Context(name="softib0"))

def pages(n, protection=READ | WRITE):
    return libc.mmap(None, n * PAGE, protection, 0x22, -1, 0)

def pages_apart(n):
    # In the middle of free address space: other mappings begin at its ends, not in a hole of these pages.
    around = 1 << 28
    space = libc.mmap(None, n * PAGE + 2 * around, 0, 0x4022, -1, 0)
    start = space + around
    libc.mprotect(start, n * PAGE, READ | WRITE)
    libc.munmap(space, around)
    libc.munmap(start + n * PAGE, around)
    return start

def attempt(name, address, length, access):
    try:
        MR(pd, length, access, address=address).close()
        print(name, 0)
    except PyverbsRDMAError as error:
        print(name, error.error_code)

whole = pages(8)
attempt("whole", whole, 8 * PAGE, LOCAL | RW)
attempt("none", pages(1, 0), PAGE, 0)
read_only = pages(2, READ)
for name, access in (("0", 0), ("remote_read", RR), ("local", LOCAL), ("remote", LOCAL | RW), ("bind", BIND)):
    attempt("read_only_" + name, read_only, PAGE, access)
hole = pages_apart(3)
libc.munmap(hole + PAGE, PAGE)
attempt("hole", hole, 3 * PAGE, LOCAL)
attempt("before_hole", hole, PAGE, LOCAL)
attempt("unmapped", hole + PAGE, 100, 0)
attempt("kernel", 0xffff888000000000, PAGE, LOCAL)
attempt("vvar", next(int(line.split("-")[0], 16) for line in open("/proc/self/maps") if line.endswith("[vvar]\n")),
        PAGE, 0)
attempt("empty", whole, 0, LOCAL)
attempt("huge", whole, 1 << 45, LOCAL)

def rereg(name, address, access):
    mr = MR(pd, 8 * PAGE, LOCAL | RW, address=whole)
    try:
        mr.rereg(e.IBV_REREG_MR_CHANGE_TRANSLATION | e.IBV_REREG_MR_CHANGE_ACCESS, pd, address, PAGE, access)
        print(name, 0)
    except PyverbsRDMAError as error:
        print(name, error.error_code)
    mr.close()

rereg("rereg_good", hole, LOCAL)
rereg("rereg_read_only", read_only, LOCAL)
rereg("rereg_unmapped", hole + PAGE, LOCAL)
"""

EFAULT = 14
EINVAL = 22
EXPECTED = {
    "whole": 0, "none": EFAULT, "read_only_0": 0, "read_only_remote_read": 0, "read_only_local": EFAULT,
    "read_only_remote": EFAULT, "read_only_bind": EFAULT, "hole": EFAULT, "before_hole": 0, "unmapped": EFAULT,
    "kernel": EFAULT, "vvar": EFAULT, "empty": EINVAL, "huge": EFAULT, "rereg_good": 0, "rereg_read_only": EFAULT,
    "rereg_unmapped": EFAULT}


def test(report, user):
    with harness.Fabric(nodes=1, user=user, name="registration") as fabric:
        with report.case("memory that is not there is EFAULT"):
            result = fabric.run([PYTHON, "-c", ATTEMPTS])
            result.require()
            found = dict(line.split() for line in result.text.splitlines() if len(line.split()) == 2)
            wrong = [f"{name}: {found.get(name)}, not {error}" for name, error in EXPECTED.items()
                     if found.get(name) != str(error)]
            if wrong:
                raise harness.Failed("; ".join(wrong))
        with report.case("the reason names the address and the mapping"):
            result = fabric.run(["env", "SOFTIB_LOG=1", PYTHON, "-c", ATTEMPTS])
            result.require(r"ibv_reg_mr: nothing is mapped at 0x[0-9a-f]+", r"the mapping 0x[0-9a-f]+-0x[0-9a-f]+ .*"
                           r"is not writable", r"is not readable")


if __name__ == "__main__":
    harness.main("registration", test)
