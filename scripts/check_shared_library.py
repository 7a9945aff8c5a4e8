#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""check_shared_library.py <file>   Checks that the library can be loaded into a foreign program.
check_shared_library.py --programs <file> ...   checks only that they run on the oldest distributions.

It must bring its own C++ runtime and export no C++ symbol; otherwise it and the program would share a runtime with
which one of them was not built.
"""
import re
import subprocess
import sys


# Of RHEL 9 (glibc 2.34, gcc 11), the oldest that has all that softib needs. Ubuntu 22.04 is a little newer.
OLDEST = {"GLIBC": (2, 34), "GLIBCXX": (3, 4, 29), "CXXABI": (1, 3, 13)}


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def too_new(path):
    """Symbols of a libc or libstdc++ that the oldest distributions do not have."""
    for line in output("objdump", "-T", path).splitlines():
        match = re.search(r"\*UND\*.*\((GLIBC|GLIBCXX|CXXABI)_([0-9.]+)\)\s+(\S+)$", line)
        if match and tuple(map(int, match.group(2).split("."))) > OLDEST[match.group(1)]:
            yield f"{path}: wants {match.group(3)} of {match.group(1)}_{match.group(2)}: see cmake/static_runtime.cpp"


def unused_first_version(path):
    """References without a version, of programs under sanitizers, find hidden symbols of the first version only."""
    first = re.search(r"Flags: (\S+)\s+Index: 2 .*Name: (\S+)", output("readelf", "-VW", path))
    if first and first.group(1) == "WEAK":
        yield f"no symbol has its first version, {first.group(2)}: take it out of the version script"


def complaints(path):
    yield from too_new(path)
    yield from unused_first_version(path)
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-dW", path))
    for name in needed:
        if name.startswith(("libstdc++", "libgcc_s", "libfmt", "libspdlog")):
            yield f"needs {name}: link no shared C++ library (fmt::fmt-header-only instead of fmt::fmt)"
    exported = [line.split()[-1] for line in output("nm", "-D", "--defined-only", path).splitlines()]
    for name in exported:
        if name.startswith("_Z"):
            yield f"exports {name}: end the version script with `local: *`, or compile with -fvisibility=hidden"
    if not exported:
        yield "exports nothing: define what it exports in its own SOURCES, not in a layer"
    print(f"{path}: exports {len(exported)} symbols, needs {', '.join(needed)}")


if sys.argv[1] == "--programs":
    found = [text for path in sys.argv[2:] for text in too_new(path)]
else:
    found = list(complaints(sys.argv[1]))
print("\n".join(found) or f"{sys.argv[-1]}: ok")
sys.exit(bool(found))
