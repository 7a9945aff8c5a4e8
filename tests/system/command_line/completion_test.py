#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Completion of `softib` in bash, fish and zsh, as their users get it.

Environment: as of cli_test.py. A shell that is not installed is skipped.
"""
import fcntl
import os
import pathlib
import pty
import re
import select
import shutil
import struct
import subprocess
import termios
import unittest

from cli_test import BIN, COMMANDS, OK, TIMEOUT, CliTest, skip_unless_built


class Completion(CliTest):
    def complete(self, *words):
        """Returns bash's completions of the last word."""
        script = pathlib.Path(__file__).resolve().parents[3] / "completions/softib.bash"
        code = (f'source {script}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _softib; '
                'printf "%s\\n" "${COMPREPLY[@]}"')
        env = self.env(PATH=f"{self.base}/bin:{BIN}:{os.environ['PATH']}")
        result = subprocess.run(["bash", "-c", code, "bash", "softib", *words], capture_output=True, text=True, env=env,
                                timeout=TIMEOUT)
        return self.check(result, OK).stdout.split()

    def test_bash_completes(self):
        self.assertEqual(self.complete("stat"), ["status"])
        self.assertEqual(self.complete("port", "")[:2], ["down", "up"])
        self.assertEqual(self.complete("port", "up", "--p"), ["--port"])
        self.assertEqual(self.complete("run", "--path", "b"), ["bounce"])
        self.assertIn("IBV_WC_RETRY_EXC_ERR", self.complete("explain", "IBV_WC_RETRY"))
        self.assertNotIn("-", self.complete("explain", ""))
        self.check(self.softib("up", "--fabric", "lab"), OK)
        self.assertEqual(self.complete("status", "--fabric", ""), ["lab"])
        self.assertEqual(self.complete("status", "--fabric", "=", ""), ["lab"])
        self.assertEqual(self.complete("--fabric", "lab", "stat"), ["status"])
        # -l has a value in one command and is a flag in another.
        self.assertEqual(self.complete("connections", "-l", "--js"), ["--json"])
        self.assertEqual(self.complete("trace", "-l", "--js"), [])
        self.assertEqual(self.complete("run", "--node", "1", "--ling"), ["--linger"])
        self.program()
        self.assertEqual(self.complete("run", "--node", "1", "--", "softib-test-p"), ["softib-test-program"])
        self.assertEqual(self.complete("run", "--node", "1", "softib-test-p"), ["softib-test-program"])

    def program(self):
        """One whose name completes, in the PATH of the shells here."""
        path = self.base / "bin"
        path.mkdir(exist_ok=True)
        (path / "softib-test-program").write_text("#!/bin/sh\n")
        (path / "softib-test-program").chmod(0o755)

    def shell_env(self):
        return self.env(PATH=f"{self.base}/bin:{BIN}:{os.environ['PATH']}", HOME=str(self.base), TERM="xterm")

    def test_fish_completes_each_word_once(self):
        if shutil.which("fish") is None:
            self.skipTest("fish is not installed (packages.txt)")
        self.program()
        script = pathlib.Path(__file__).resolve().parents[3] / "completions/softib.fish"

        def complete(line):
            said = subprocess.run(["fish", "--no-config", "-c", f"source {script}; complete -C '{line}'"], text=True,
                                  capture_output=True, env=self.shell_env(), timeout=TIMEOUT)
            return [row.split("\t")[0] for row in self.check(said, OK).stdout.splitlines()]
        for line in ("softib ", "softib port up -", "softib driver list -", "softib hca ", "softib run -", "softib -"):
            words = complete(line)
            self.assertEqual(sorted(words), sorted(set(words)), line)
            self.assertTrue(words, line)
        self.assertEqual(sorted(complete("softib ")), sorted([*COMMANDS, "help"]))
        self.assertEqual(sorted(complete("softib hca ")), ["add", "eject", "remove"])
        self.assertEqual(complete("softib hca add "), [])
        self.assertEqual(complete("softib -f lab stat"), ["status"])
        self.assertEqual(complete("softib port up --po"), ["--port"])
        self.assertEqual(complete("softib run --path b"), ["bounce"])
        for options in ("", "--node 1 ", "--node 1 -- "):
            self.assertEqual(complete(f"softib run {options}softib-test-p"), ["softib-test-program"], options)

    def test_zsh_completes(self):
        if shutil.which("zsh") is None:
            self.skipTest("zsh is not installed (packages.txt)")
        self.program()
        functions = self.base / "zsh"
        functions.mkdir()
        shutil.copy(pathlib.Path(__file__).resolve().parents[3] / "completions/softib.zsh", functions / "_softib")
        ours, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
        shell = subprocess.Popen(["zsh", "-f", "-i"], stdin=its, stdout=its, stderr=its, env=self.shell_env(),
                                 cwd=functions, start_new_session=True)
        os.close(its)
        self.addCleanup(os.close, ours)
        self.addCleanup(shell.wait, TIMEOUT)
        self.addCleanup(shell.kill)

        def read_until(wanted):
            text = b""
            while not (found := re.search(wanted, text)):
                ready, _, _ = select.select([ours], [], [], TIMEOUT / 2)
                if not ready:
                    raise AssertionError(f"no {wanted!r} in {text!r}")
                text += os.read(ours, 65536)
            return found

        os.write(ours, f"fpath=({functions} $fpath); autoload -U compinit; compinit -u -D; unsetopt zle_bracketed_paste; "
                       f"print re''ady\n".encode())
        read_until(rb"\nready")

        def complete(line):
            """The line after a tab: it becomes the argument of a command that prints it."""
            os.write(ours, line.encode() + b"\t\x01print -r -- '<\x05>'\n")
            return read_until(rb"\n<(.*?) ?>")[1].decode()
        self.assertEqual(complete("softib stat"), "softib status")
        self.assertEqual(complete("softib hca ej"), "softib hca eject")
        self.assertEqual(complete("softib port up --ca"), "softib port up --ca")
        self.assertEqual(complete("softib run --ling"), "softib run --linger")
        for options in ("", "--node 1 ", "--node 1 -- "):
            self.assertEqual(complete(f"softib run {options}softib-test-p"), f"softib run {options}softib-test-program")


if __name__ == "__main__":
    skip_unless_built()
    unittest.main(verbosity=2)
