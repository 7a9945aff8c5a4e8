#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""check_shared_library.py <file>   Checks that the library can be loaded into a foreign program.

It must bring its own C++ runtime and export no C++ symbol; otherwise it and the program would share a runtime with
which one of them was not built.
"""
import re
import subprocess
import sys


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def complaints(path):
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


found = list(complaints(sys.argv[1]))
print("\n".join(found) or "shared library: ok")
sys.exit(bool(found))
