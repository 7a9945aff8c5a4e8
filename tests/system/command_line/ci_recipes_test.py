#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The recipes of docs/ci.md, each step run as its runner runs it: GitHub's as `bash -e`, with the conditions failure()
and always(); GitLab's script line by line, its after_script in any case. ./server, ./client, make and ctest are
programs of this test; in some runs one of them fails, and the job has to."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness
from harness import Failed, Skipped, free_port

DOCUMENT = harness.SOURCE / "docs/ci.md"
PORT = "7471"  # in the document
FOLDER = "/tmp/softib-ci"
# The project that is tested, as file and content: both sides of a pingpong, with an exit code of their own.
PROGRAMS = {
    "server": 'ibv_rc_pingpong -p {port} && exit "${{SERVER_ENDS:-0}}"',
    "client": 'ibv_rc_pingpong -p {port} "$1" && exit "${{CLIENT_ENDS:-0}}"',
    "make": "true",
    "ctest": 'softib status && exit "${{CTEST_ENDS:-0}}"',
}


def recipes():
    """The YAML blocks of the document."""
    try:
        import yaml  # pylint: disable=import-outside-toplevel
    except ImportError as absent:
        raise Skipped("python3-yaml is not installed (packages.txt)") from absent
    found = re.findall(r"```yaml\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    github, gitlab = map(yaml.safe_load, found)
    [job] = github["jobs"].values()
    [other] = gitlab.values()
    return job, other


class Runner:
    """One job, in a folder of its own, with the port and the runtime directory of this test for the document's."""

    def __init__(self, user, settings):
        self.user = user
        self.folder = user.make_dir("softib-ci-")
        self.runtime = self.folder / "runtime"
        self.port = free_port()
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("SOFTIB_")}
        self.env.update({name: self.own(value) for name, value in settings.items()}, HOME=str(self.folder),
                        PATH=f"{self.folder}:{user.bin}:{os.environ['PATH']}")
        for name, line in PROGRAMS.items():
            file = self.folder / name
            file.write_text(f"#!/bin/sh\n{line.format(port=self.port)}\n")
            file.chmod(0o755)
        self.text = ""

    def own(self, text):
        return text.replace(FOLDER, str(self.runtime)).replace(PORT, str(self.port))

    def step(self, script, options, more):
        """Returns its exit code."""
        words = [*self.user.prefix, "bash", *options, "-c", self.own(script)]
        done = subprocess.run([str(word) for word in words], env={**self.env, **more}, cwd=self.folder, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False)
        self.text += f"$ {script}\n{done.stdout}"
        return done.returncode

    def close(self):
        self.step("softib down --force", [], {})
        shutil.rmtree(self.folder, ignore_errors=True)


def run_github(runner, job, more):
    failed = False
    for step in job["steps"]:
        if "run" not in step:
            continue
        condition = step.get("if", "success()")
        if condition not in ("success()", "failure()", "always()"):
            raise Failed(f"this test does not know the condition {condition}")
        if condition == "always()" or (condition == "failure()") == failed:
            failed |= runner.step(step["run"], ["-e"], more) != 0
    return failed


def run_gitlab(runner, job, more):
    failed = any(runner.step(line, ["-e"], more) != 0 for line in job["script"])
    for line in job["after_script"]:
        if runner.step(line, [], more) != 0:
            raise Failed(f"after_script: {line} failed:\n{harness.tail(runner.text, 40)}")
    return failed


# recipe, what fails, which then has to be in the log of the job
CASES = [
    ("GitHub", {}, [r"usec/iter"]),
    ("GitHub", {"SERVER_ENDS": "3"}, [r"usec/iter", r"node0"]),
    ("GitHub", {"CLIENT_ENDS": "3"}, [r"usec/iter", r"node0"]),
    ("GitLab", {}, [r"softib0"]),
    ("GitLab", {"CTEST_ENDS": "3"}, [r"softib0"]),
]


def run_case(user, job, run, more, patterns):
    runner = Runner(user, {**job.get("env", {}), **job.get("variables", {})})
    try:
        if run(runner, job, more) != bool(more):
            raise Failed(f"the job {'passed' if more else 'failed'}:\n{harness.tail(runner.text, 60)}")
        for pattern in patterns:
            if not re.search(pattern, runner.text):
                raise Failed(f"no {pattern!r} in\n{harness.tail(runner.text, 60)}")
        if (runner.runtime / "default.sock").exists():
            raise Failed(f"the fabric is still up:\n{harness.tail(runner.text, 60)}")
    finally:
        runner.close()


def test(report, user):
    job, other = recipes()
    for recipe, more, patterns in CASES:
        name = f"{recipe}, {', '.join(more) or 'nothing'} fails"
        if report.wanted(name):
            with report.case(name):
                if recipe == "GitHub":
                    run_case(user, job, run_github, more, patterns)
                else:
                    run_case(user, other, run_gitlab, more, patterns)


if __name__ == "__main__":
    harness.main("ci recipes", test)
