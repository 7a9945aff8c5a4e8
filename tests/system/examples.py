#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Builds examples/ as a user outside of the tree would: softib is installed into a temporary prefix, and a copy of
the examples, far from src/, is configured and built with that prefix alone. The result, for other tests and for
scripts/tour, is in <build>/examples.

examples.py      builds (ctest examples)
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from typing import NamedTuple

import harness
from harness import Failed, Skipped


class Built(NamedTuple):
    driver_ping: pathlib.Path
    driver_echo: pathlib.Path
    user_ping: pathlib.Path


RESULT = harness.BUILD / "examples"
BUILT = Built(RESULT / "libdriver_ping.so", RESULT / "libdriver_echo.so", RESULT / "user_ping")


def run(*words):
    done = subprocess.run([str(word) for word in words], timeout=300, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)
    if done.returncode:
        raise Failed(f"{' '.join(map(str, words))} ended with {done.returncode}:\n{harness.tail(done.stdout, 60)}")
    return done.stdout


def build():
    """Builds the examples. Returns the output of the compilers."""
    if not (harness.BUILD / "cmake_install.cmake").exists():
        raise Skipped(f"{harness.BUILD} is no build folder")
    with tempfile.TemporaryDirectory(prefix="softib-examples-") as folder:
        top = pathlib.Path(folder)
        run("cmake", "--install", harness.BUILD, "--prefix", top / "prefix")
        shutil.copytree(harness.SOURCE / "examples", top / "source")
        run("cmake", "-G", "Ninja", "-S", top / "source", "-B", top / "build", f"-DCMAKE_PREFIX_PATH={top / 'prefix'}",
            *(["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []))
        # The headers are in another folder each time.
        text = run("env", f"CCACHE_BASEDIR={top}", "CCACHE_NOHASHDIR=1", "cmake", "--build", top / "build")
        RESULT.mkdir(exist_ok=True)
        for file in BUILT:
            shutil.copy2(top / "build" / file.name, file)
        installed = harness.Program([top / "prefix/bin/softib", "run", "--fabric", "examples", "--", "ibv_devices"],
                                    env={**os.environ, "SOFTIB_RUNTIME_DIR": str(top / "runtime")})
        harness.Result(installed, installed.wait(30), 30).require("softib0")
    return text


def newest(folder, pattern):
    return max(path.stat().st_mtime for path in folder.rglob(pattern) if path.is_file())


def ready():
    """The built examples; builds them if a header or an example is newer."""
    sources = max(newest(harness.SOURCE / "examples", "*"), newest(harness.SOURCE / "src", "*.h"))
    if not all(file.exists() and file.stat().st_mtime > sources for file in BUILT):
        build()
    return BUILT


def main():
    report = harness.Report("examples")
    with report.case("examples/ builds against an installed softib, outside of the tree") as remarks:
        text = build()
        if "warning:" in text:
            raise Failed(f"the compilers warn:\n{harness.tail(text, 60)}")
        remarks.append(", ".join(file.name for file in BUILT))
    sys.exit(report.finish())


if __name__ == "__main__":
    main()
