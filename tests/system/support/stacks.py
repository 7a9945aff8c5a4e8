# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Where a program that does not end is: its threads' stacks, by gdb."""
import os
import pathlib
import re
import shutil
import subprocess

SECONDS = 30
FRAMES = 12
INTERPRETERS = ("softib", "sh", "bash", "timeout")  # they wait for the program


def processes_of(group):
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue
        name, rest = re.fullmatch(r"\d+ \((.*)\) (.*)", text, re.DOTALL).groups()
        if int(rest.split()[2]) == group and name not in INTERPRETERS:
            yield int(stat.parent.name), name


def stack_of(pid):
    words = ["gdb", "-p", str(pid), "-batch", "-nx", "-iex", "set debuginfod enabled off", "-ex",
             f"thread apply all bt {FRAMES}"]
    try:
        text = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS,
                              errors="replace", check=False).stdout
    except subprocess.TimeoutExpired:
        return f"gdb did not end in {SECONDS} s\n"
    return "".join(line[:160] + "\n" for line in text.splitlines() if re.match(r"Thread|#\d", line))


def stacks(group):
    """Text for a report, of all processes of the group."""
    if os.getuid() != 0 or not shutil.which("gdb"):
        return ""
    return "".join(f"\n{name} (pid {pid}) was at:\n{stack_of(pid)}" for pid, name in processes_of(group))
