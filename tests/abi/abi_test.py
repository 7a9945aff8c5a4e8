#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""abi_test.py CLIENT: runs control_client, built for 32 or 64 bit, against a softibd of its own and compares its
output with transcript.txt, which is the same for both. `--write` rewrites the transcript.
"""
import difflib
import errno
import os
import pathlib
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent / "hostile"))
from control_socket import Softibd

TRANSCRIPT = FOLDER / "transcript.txt"
SKIPPED = 77


def main():
    client = pathlib.Path(sys.argv[1])
    if not client.exists():
        print(f"skipped: {client.name} was not built, the compiler makes no 32-bit programs (package g++-multilib)")
        return SKIPPED
    with Softibd(pathlib.Path(os.environ["SOFTIB_BIN"], "softibd")) as daemon:
        try:
            run = subprocess.run([client, daemon.socket], stdout=subprocess.PIPE, text=True, timeout=60, check=False)
        except OSError as error:
            if error.errno != errno.ENOEXEC or not client.name.endswith("_32"):
                raise
            print("skipped: this kernel runs no 32-bit programs (CONFIG_IA32_EMULATION)")
            return SKIPPED
    if "--write" in sys.argv:
        TRANSCRIPT.write_text(run.stdout)
    difference = list(difflib.unified_diff(TRANSCRIPT.read_text().splitlines(), run.stdout.splitlines(),
                                           "transcript.txt", client.name, lineterm=""))
    print(*difference, sep="\n")
    print(f"{client.name}: exit code {run.returncode}, {len(run.stdout.splitlines())} lines, "
          f"{'as they should be' if not difference else 'DIFFERENT'}; softibd ended with {daemon.exit_code}")
    return 0 if run.returncode == 0 and not difference and daemon.exit_code == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
