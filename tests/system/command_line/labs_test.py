#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The labs of docs/labs.md: each lab's commands, in one shell, have the output that the document shows.

labs_test.py [--as root|nobody] [--only REGEX] [--show] [--keep FOLDER]
    --show: what each command has said; --keep: the pictures that the labs draw, for docs/pictures
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness
from harness import Failed, free_port

DOCUMENT = harness.SOURCE / "docs/labs.md"
SMP = harness.SOURCE / "tests/system/programs/umad/smp.py"
PROGRAMS = ("opensm", "ibroute", "ib_write_bw", "mckey", "jq", "dot")
PORTS = ("7471", "7472")  # in the document
SECONDS = 150
MARK = "\x01"


class Step:
    def __init__(self, command):
        self.command, self.shown = command, []


def labs():
    """Title and steps of each."""
    for part in re.split(r"^## ", DOCUMENT.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        steps = []
        for block in re.findall(r"^```console\n(.*?)^```", part, re.DOTALL | re.MULTILINE):
            for line in block.splitlines():
                if line.startswith("$ "):
                    steps.append(Step(line[2:]))
                elif line.startswith("> "):
                    steps[-1].command += "\n" + line[2:]
                else:
                    steps[-1].shown.append(line)
        yield part.split("\n", 1)[0], steps


def pattern_of(lines):
    """A line of three dots is any lines; three dots in a line are any text."""
    text = ""
    for line in lines:
        if line == "...":
            text += r"(?:.*\n)*?"
        else:
            text += ".*".join(re.escape(part) for part in line.rstrip().split("...")) + r" *\n"
    return text


def end_programs_of(folder):
    """OpenSM goes on in the background when its fabric is down."""
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if f"HOME={folder}".encode() in (process / "environ").read_bytes().split(b"\0"):
                os.kill(int(process.name), signal.SIGKILL)
        except OSError:
            continue  # it has ended, or is another user's


def run(user, steps):
    """Returns what each step has said."""
    folder = user.make_dir("softib-labs-")
    smp = folder / "smp.py"
    shutil.copyfile(SMP, smp)
    smp.chmod(0o644)
    script = "".join(f"{step.command}\nprintf '{MARK}\\n'\n" for step in steps)
    for port in PORTS:
        script = script.replace(port, str(free_port()))
    env = {name: value for name, value in os.environ.items() if not name.startswith("SOFTIB_")}
    env |= {"SOFTIB_RUNTIME_DIR": str(folder / "runtime"), "HOME": str(folder), "OSM_TMP_DIR": str(folder),
            "OSM_CACHE_DIR": str(folder), "PATH": f"{user.bin}:{env['PATH']}:/usr/sbin", "LC_ALL": "C"}
    words = [str(word) for word in [*user.prefix, "bash", "-c", script]]
    shell = subprocess.Popen(words, env=env, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             stdin=subprocess.DEVNULL, process_group=0)
    try:
        text, _ = shell.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(shell.pid, signal.SIGKILL)
        text, _ = shell.communicate()
    finally:
        if "--keep" in sys.argv:
            for picture in folder.glob("*.svg"):
                shutil.copyfile(picture, pathlib.Path(sys.argv[sys.argv.index("--keep") + 1]) / picture.name)
        subprocess.run([str(word) for word in [*user.prefix, user.bin / "softib", "down", "--force"]], env=env, cwd=folder,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=30, check=False)
        end_programs_of(folder)
        shutil.rmtree(folder, ignore_errors=True)
    return text.split(MARK + "\n")


def check(steps, said, show):
    for number, step in enumerate(steps):
        text = said[number] if number < len(said) else ""
        if show:
            print(f"$ {step.command}\n{text}", end="")
        if number + 1 >= len(said):
            raise Failed(f"`{step.command}` did not end in time; it said:\n{harness.tail(text)}")
        if not re.fullmatch(pattern_of(step.shown), text):
            raise Failed(f"`{step.command}` says:\n{harness.tail(text, 40)}\n    the document:\n"
                         f"{harness.tail(chr(10).join(step.shown), 40)}")


def test(report, user):
    for name in PROGRAMS:
        harness.need_program(name)
    for title, steps in labs():
        if report.wanted(title):
            with report.case(title):
                check(steps, run(user, steps), "--show" in sys.argv)


if __name__ == "__main__":
    harness.main("labs", test)
