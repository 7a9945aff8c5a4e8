#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The command `softib` against the real softibd: the uses of users and their mistakes.

Environment: SOFTIB_BIN (bin/ of a build), SOFTIB_LIB (its lib/). Every test has a runtime directory of its own. Exit
code 77 if the programs are not built.
"""
import concurrent.futures
import contextlib
import ctypes
import errno
import fcntl
import json
import os
import pathlib
import pty
import re
import resource
import select
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

BIN = pathlib.Path(os.environ.get("SOFTIB_BIN", "build/dev/bin")).resolve()
LIB = pathlib.Path(os.environ.get("SOFTIB_LIB", BIN.parent / "lib")).resolve()
LIBRARIES = ("libsoftib_preload.so", *(f"libsoftib-rdmav{abi}.so" for abi in (34, 57, 59, 64, 65)))
NOBODY = 65534
TIMEOUT = 60

OK, FAILED, USAGE, NOT_FOUND, ALREADY_UP, NOT_UP, PERMISSION, DAEMON, RESOURCES, INSTALLATION, BUSY = range(11)
COMMANDS = ("run", "up", "down", "status", "connections", "resources", "list", "wait", "trace", "explain", "port", "devices",
            "ls", "hca", "partition", "power", "driver", "env", "doctor", "version", "topology", "path", "counters", "cable", "switch",
            "ipoib", "sm")
ACTIONS = {"port": ("up", "down"), "cable": ("add", "remove", "down", "up", "show", "errors"),
           "switch": ("add", "remove", "down", "up"), "hca": ("add", "remove", "eject"), "partition": ("add", "remove"),
           "ipoib": ("show", "attach", "detach"),
           "power": ("sleep", "hibernate", "resume", "shutdown"), "driver": ("list", "load", "unload"),
           "sm": ("status", "sweep", "priority")}


def processes_of(directory):
    """Pids of the softibd processes that serve this runtime directory."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        serves = any(w.endswith(b"softibd") for w in words[:2])
        if serves and str(directory).encode() in words and state != "Z":
            found.append(int(entry.name))
    return found


def free_port():
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


def eventually(condition, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        # tidy: allow(sleep) time itself is what is tested, or a poll with a deadline
        time.sleep(0.02)
    return True


def line_of(process):
    """The first line of its output. A process without output is killed; otherwise the end of its block would wait for
    it."""
    ready, _, _ = select.select([process.stdout], [], [], TIMEOUT / 2)
    if not ready:
        process.kill()
        raise AssertionError(f"{process.args} has printed nothing in {TIMEOUT // 2} s")
    return process.stdout.readline()


class CliTest(unittest.TestCase):
    def setUp(self):
        # Short, since the path of a socket is limited; readable, so that other users reach our own checks.
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="softib-cli-", dir="/tmp"))
        self.base.chmod(0o755)
        self.dir = self.base / "run"
        self.dirs = [self.dir]

    def tearDown(self):
        for directory in self.dirs:
            for pid in processes_of(directory):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.base, ignore_errors=True)

    def env(self, **changes):
        env = {k: v for k, v in os.environ.items() if not k.startswith("SOFTIB_")}
        env["SOFTIB_RUNTIME_DIR"] = str(self.dir)
        env.update({k: v for k, v in changes.items() if v is not None})
        return {k: v for k, v in env.items() if changes.get(k, "") is not None}

    def softib(self, *words, bin_dir=BIN, env=None, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        if "input" in options:
            del options["stdin"]
        return subprocess.run([str(bin_dir / "softib"), *map(str, words)], capture_output=True, text=True,
                              timeout=TIMEOUT, env=self.env() if env is None else env, **options)

    def check(self, result, code, *texts):
        said = result.stdout + result.stderr
        self.assertEqual(result.returncode, code, said)
        for text in texts:
            self.assertIn(text, said)
        return result

    def assert_no_daemon(self):
        self.assertTrue(eventually(lambda: not processes_of(self.dir)), "a softibd is left")

    def assert_empty(self):
        """Nothing is left in the runtime directory except perhaps a log."""
        left = sorted(p.name for p in self.dir.iterdir()) if self.dir.exists() else []
        self.assertEqual([name for name in left if not name.endswith(".log")], [])

    def prefix(self, libraries=LIBRARIES, daemon=True):
        """A copy of the installation, readable for everybody, without the parts that the caller names."""
        prefix = pathlib.Path(tempfile.mkdtemp(dir=self.base))
        prefix.chmod(0o755)
        (prefix / "bin").mkdir()
        (prefix / "lib").mkdir()
        for program in ("softib", "softibd") if daemon else ("softib",):
            shutil.copy(BIN / program, prefix / "bin" / program)
        for library in libraries:
            shutil.copy(LIB / library, prefix / "lib" / library, follow_symlinks=False)
        return prefix


class Run(CliTest):
    def test_exit_status_is_that_of_the_program(self):
        for code in (0, 1, 42, 255):
            self.check(self.softib("run", "--", "sh", "-c", f"exit {code}"), code)

    def test_death_by_signal_is_that_of_the_program(self):
        self.check(self.softib("run", "--", "sh", "-c", "kill -KILL $$"), -signal.SIGKILL)

    def test_the_program_is_our_process(self):
        result = self.check(self.softib("run", "--", "sh", "-c", "echo $$; exec sleep 0"), 0)
        with subprocess.Popen([BIN / "softib", "run", "--", "sh", "-c", "echo $$; exec sleep 30"],
                              stdout=subprocess.PIPE, env=self.env(), text=True) as process:
            self.assertEqual(int(line_of(process)), process.pid)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(TIMEOUT), -signal.SIGTERM)
        self.assertTrue(result.stdout.strip().isdigit())

    def test_the_program_has_no_strange_child(self):
        code = "import os\ntry: os.wait()\nexcept ChildProcessError: print('none')"
        self.check(self.softib("run", "--", "/usr/bin/python3", "-c", code), 0, "none")

    def test_standard_streams_are_those_of_the_program(self):
        result = self.check(self.softib("run", "--", "cat", input="hello\n"), 0)
        self.assertEqual((result.stdout, result.stderr), ("hello\n", ""))
        # All three closed, which also makes the first descriptors of the daemon 0 to 2.
        closed = subprocess.run(["sh", "-c", f"exec {BIN}/softib run -- sh -c 'exit 7' <&- >&- 2>&-"],
                                env=self.env(SOFTIB_FABRIC="closed"), timeout=TIMEOUT)
        self.assertEqual(closed.returncode, 7)

    def test_the_daemon_does_not_hold_our_pipe(self):
        start = time.monotonic()  # capture_output waits for the end of the pipe, not of the process
        self.check(self.softib("run", "--linger", "40", "--", "true"), 0)
        self.assertLess(time.monotonic() - start, 20)
        self.assertEqual(len(processes_of(self.dir)), 1)

    def test_options_of_the_program_are_its_own(self):
        for separator in ([], ["--"]):
            result = self.check(self.softib("run", *separator, "printf", "%s|", "--help", "-v", "--", "x"), 0)
            self.assertEqual(result.stdout, "--help|-v|--|x|")

    def test_threads_of_ucx_do_not_spin_unless_the_user_wants_them_to(self):
        show = ["run", "--", "sh", "-c", "echo mutex=$UCX_USE_MT_MUTEX"]
        self.check(self.softib(*show), OK, "mutex=y\n")
        self.check(self.softib(*show, env=self.env(UCX_USE_MT_MUTEX="n")), OK, "mutex=n\n")
        self.check(self.softib("env"), OK, "export UCX_USE_MT_MUTEX='y'\n")

    def test_works_with_an_empty_environment(self):
        result = self.check(self.softib("run", "--", "env", env={"SOFTIB_RUNTIME_DIR": str(self.dir)}), 0)
        variables = dict(line.split("=", 1) for line in result.stdout.splitlines())
        self.assertEqual(variables["SOFTIB_SOCKET"], f"{self.dir}/default.sock")
        self.assertEqual(variables["SOFTIB_NODE"], "node0")
        self.assertTrue(variables["LD_PRELOAD"].endswith("/libsoftib_preload.so"))
        self.assertTrue(variables["RDMAV_DRIVERS"].endswith("/libsoftib"))
        self.assertNotIn("HOME", variables)

    def test_what_the_user_preloads_stays(self):
        result = self.softib("run", "--", "sh", "-c", "echo $LD_PRELOAD; echo $RDMAV_DRIVERS",
                             env=self.env(LD_PRELOAD="libm.so.6", RDMAV_DRIVERS="rxe"))
        first, second = self.check(result, 0).stdout.split()
        self.assertTrue(first.endswith("/libsoftib_preload.so:libm.so.6"), first)
        self.assertTrue(second.endswith("/libsoftib:rxe"), second)

    def test_a_run_inside_a_run(self):
        result = self.softib("run", "--", BIN / "softib", "run", "--", "sh", "-c", "echo $LD_PRELOAD")
        self.assertEqual(self.check(result, 0).stdout.count("libsoftib_preload"), 1)
        self.assertEqual(len(processes_of(self.dir)), 1)

    def test_node_by_number_and_name(self):
        for wanted, node in (("1", "bob"), ("bob", "bob"), ("0", "alice")):
            result = self.softib("run", "--nodes", "alice,bob", "--node", wanted, "--", "sh", "-c",
                                 "echo $SOFTIB_NODE")
            self.assertEqual(self.check(result, 0).stdout.strip(), node)

    def test_memory_path(self):
        result = self.softib("run", "--path", "bounce", "--", "sh", "-c", "echo $SOFTIB_MEMORY_PATH")
        self.assertEqual(self.check(result, 0).stdout.strip(), "bounce")
        self.check(self.softib("run", "--path", "magic", "--", "true"), USAGE, "--path")

    def test_ten_at_once_make_one_daemon(self):
        with concurrent.futures.ThreadPoolExecutor(10) as pool:
            runs = [pool.submit(self.softib, "run", "--", "true") for _ in range(10)]
            for run in runs:
                self.check(run.result(), 0)
        self.assertEqual(len(processes_of(self.dir)), 1)
        self.assertEqual((self.dir / "default.log").read_text().count(" is up: "), 1)

    def test_the_fabric_lives_as_long_as_the_program_and_a_little_longer(self):
        with subprocess.Popen([BIN / "softib", "run", "--linger", "1", "--", "sleep", "6"],
                              env=self.env()) as process:
            self.assertTrue(eventually(lambda: processes_of(self.dir)))
            # tidy: allow(sleep) time itself is what is tested, or a poll with a deadline
            time.sleep(3)
            self.assertEqual(len(processes_of(self.dir)), 1, "it went although the program still runs")
            self.assertEqual(process.wait(TIMEOUT), 0)
        # softibd gives the first client 10 s to attach, and `sleep` never did.
        self.assertTrue(eventually(lambda: not processes_of(self.dir), 20), "it stays for ever")
        self.assert_empty()

    def test_sees_a_device(self):
        if shutil.which("ibv_devices") is None:
            self.skipTest("ibv_devices (package ibverbs-utils) is not installed")
        self.check(self.softib("run", "--", "ibv_devices"), 0, "softib0")
        two = self.softib("run", "--fabric", "two", "--hcas", "2", "--", "ibv_devices")
        self.check(two, 0, "softib0", "softib1")


class BadInput(CliTest):
    def test_command_line(self):
        self.check(self.softib("bogus"), USAGE, "bogus")
        self.check(self.softib("run"), USAGE, "softib run -- CMD")
        self.check(self.softib("run", "--bogus", "--", "true"), USAGE, "--bogus")
        self.check(self.softib("up", "--nodes", "0"), USAGE, "1 to 32768")
        self.check(self.softib("up", "--nodes", "a,a"), USAGE, "twice")
        self.check(self.softib("up", "--hcas", "99"), USAGE, "--hcas")
        self.check(self.softib("up", "--fabric", "../x"), USAGE, "bad fabric name")
        self.assert_no_daemon()

    def test_values_are_checked_before_anything_starts(self):
        sizes = [["up", "--max-memory", size] for size in ("-5", "0", "", "1", "1X", "999999T", "1.5G")]
        numbers = [["up", "--hcas", "-1"], ["up", "--ports", "3"], ["up", "--link-layer", "token"], ["up", "--verify-seed", "-1"], ["up", "--nodes", ""],
                   ["up", "--nodes", "-1"], ["run", "--linger", "-1", "--", "true"], ["trace", "-n", "-3"],
                   ["trace", "-n", "x"], ["port", "up", "--port", "0"], ["partition", "add", "0"],
                   ["partition", "add", "0x8000"], ["partition", "add", "7ffffff"], ["up", "--fabric", ""]]
        for words in sizes + numbers:
            with self.subTest(words=words):
                result = self.check(self.softib(*words), USAGE)
                self.assertEqual(result.stdout, "")
                self.assertTrue(result.stderr.startswith("softib: "), result.stderr)
        for words in sizes:
            self.check(self.softib(*words), USAGE, "say 512M or 4G")
        self.assert_no_daemon()
        self.assertFalse(self.dir.exists(), "something was started")
        self.check(self.softib("up", "--max-memory", "64M"), OK)

    def test_errors_of_the_configuration_have_a_place(self):
        config = self.base / "fabric.toml"
        for text, said in (("ipoib = true\n  driver = 'x'\n", ":2:3: top level: \"driver\" is not known"),
                           ("ipoib = 1\n", ":1:9: top level: \"ipoib\" must be true or false"),
                           ("[[partition]]\npkey = 70000\nname = 'i1'\n",
                            ":2:8: [[partition]]: \"pkey\" must be a number"),
                           ("[[partition]]\npkey = 0x8001\nname = 'i1'\nnode = 'x'\n",
                            ":1:1: [[partition]] i1: the fabric"),
                           ("[[link]]\nports = ['node0/softib0/1', 'node0/softib0/1']\n",
                            ":1:1: [[link]]: both ends are node0/softib0/1"),
                           ("drivers = 'nowhere'\n", "nowhere: No such file"),
                           ("ipoib = \n", ":1:")):
            config.write_text(text)
            self.check(self.softib("up", "--config", config), USAGE, str(config) if said[0] == ":" else "", said)
        # Which addresses there are depends on the link layer.
        config.write_text("[[node]]\nname = 'node0'\naddresses = ['127.78.0.2']\n")
        self.check(self.softib("up", "--nodes", 2, "--ports", 2, "--link-layer", "ethernet", "--config", config), USAGE,
                   f"{config}:1:1: [[node]]: one of the addresses of node0 is there twice")
        config.unlink()
        self.check(self.softib("up", "--config", config), USAGE, "cannot be read")
        os.mkfifo(config)
        self.check(self.softib("up", "--config", config), USAGE, "is no regular file")
        self.assert_no_daemon()

    def test_a_malformed_driver_manifest_is_told(self):
        (self.base / "store").mkdir()
        (self.base / "store/broken.json").write_text("{")
        config = self.base / "fabric.toml"
        config.write_text("drivers = 'store'\n")
        result = self.check(self.softib("up", "--config", config), OK, "is up")
        self.assertIn(f"softib: warning: driver manifest {self.base}/store/broken.json: it is no JSON object",
                      result.stderr)

    def test_what_was_probably_meant(self):
        for words, meant in ((["stauts"], "did you mean `softib status`?"), (["port", "dwon"], "`softib port down`"),
                             (["status", "--jsno"], "did you mean --json?"), (["hca", "ejcet"], "`softib hca eject`"),
                             (["up", "--node", "2"], "did you mean --nodes?"),
                             (["run", "--nodez", "2", "--", "true"], "did you mean --nodes?")):
            result = self.check(self.softib(*words), USAGE, meant)
            self.assertTrue(result.stderr.startswith("softib: "), result.stderr)
        self.check(self.softib("port"), USAGE, "say down or up")

    def test_program_not_found_or_not_executable(self):
        self.check(self.softib("run", "--", "no-such-program"), 127, "not found")
        self.check(self.softib("run", "--", "/no/such/program"), 127, "not found")
        script = self.base / "script"
        script.write_text("#!/no/such/interpreter\n")
        self.check(self.softib("run", "--", script), 126, "Permission denied")
        self.check(self.softib("run", "--", "/tmp"), 126, "directory")
        self.assertFalse(self.dir.exists(), "a fabric was started for nothing")
        script.chmod(0o755)
        self.check(self.softib("run", "--", script), 127, "interpreter")

    def test_unknown_node(self):
        self.check(self.softib("run", "--node", "1", "--", "true"), NOT_FOUND, 'no node "1"', "node0")
        self.assert_no_daemon()
        self.assert_empty()
        self.check(self.softib("up", "--nodes", "alice,bob"), OK)
        self.check(self.softib("run", "--node", "carol", "--", "true"), NOT_FOUND, "alice, bob")
        self.check(self.softib("port", "down", "--node", "carol"), NOT_FOUND, "alice, bob")
        self.check(self.softib("port", "down", "--ca", "mlx5_0"), NOT_FOUND, "mlx5_0")

    def test_already_up(self):
        self.check(self.softib("up"), OK, "is up")
        pid = processes_of(self.dir)[0]
        self.check(self.softib("up"), OK, "is up already: 1 node, 1 HCA", f"pid {pid}")
        self.check(self.softib("up", "--nodes", "1", "--hcas", "1"), OK, "is up already")
        self.check(self.softib("up", "--hcas", "2"), ALREADY_UP, "another shape", "1 HCA(s) per node, not 2")
        self.check(self.softib("up", "--max-memory", "64M"), ALREADY_UP, "no --max-memory")
        config = self.base / "fabric.toml"
        config.write_text("ipoib = true\n")
        self.check(self.softib("up", "--config", config), ALREADY_UP, "without a configuration file")
        self.check(self.softib("run", "--nodes", "2", "--", "true"), ALREADY_UP, "another shape", "1 node")
        self.assertEqual(processes_of(self.dir), [pid])

    def test_up_with_the_configuration_and_memory_that_it_has(self):
        config = self.base / "fabric.toml"
        config.write_text("ipoib = true\n")
        self.check(self.softib("up", "--config", config, "--max-memory", "64M"), OK)
        self.check(self.softib("up", "--config", config, "--max-memory", "64M"), OK, "is up already")
        self.check(self.softib("up", "--max-memory", "65M"), ALREADY_UP, "--max-memory 67108864")
        config.write_text("ipoib = false\n")
        self.check(self.softib("up", "--config", config), ALREADY_UP, "was another file")

    def test_up_keeps_what_run_started(self):
        self.check(self.softib("run", "--linger", "5", "--", "true"), OK)
        self.check(self.softib("up"), OK, "now stays")
        # tidy: allow(sleep) time itself is what is tested, or a poll with a deadline
        time.sleep(6.5)
        self.assertEqual(len(processes_of(self.dir)), 1)

    def test_unused_fabric_makes_room(self):
        """A softibd that lingers after `softib run` with another shape is replaced; one in use is not."""
        self.check(self.softib("run", "--linger", "600", "--", "true"), OK)
        first = processes_of(self.dir)[0]
        self.check(self.softib("run", "--linger", "600", "--nodes", "2", "--node", "1", "--", "true"), OK)
        second = processes_of(self.dir)[0]
        self.assertNotEqual(first, second)
        self.check(self.softib("run", "--nodes", "3", "--node", "3", "--", "true"), NOT_FOUND, 'no node "3"')
        self.assertEqual(processes_of(self.dir), [second])
        with subprocess.Popen([str(BIN / "softib"), "run", "--", "cat"], env=self.env(), stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as user:
            user.stdin.write(b"here\n")
            user.stdin.flush()
            self.assertEqual(line_of(user), b"here\n")
            self.check(self.softib("up", "--nodes", "3"), ALREADY_UP, "it has 2 node(s), not 3")
            self.check(self.softib("run", "--nodes", "3", "--", "true"), ALREADY_UP, "another shape")
            self.assertEqual(processes_of(self.dir), [second])
            user.stdin.close()
            self.assertEqual(user.wait(20), 0)
        up = self.softib("up", "--nodes", "3")
        self.check(up, OK, "is up: 3 nodes")
        self.assertEqual(len(processes_of(self.dir)), 1)
        self.check(self.softib("up", "--nodes", "2"), ALREADY_UP, "it has 3 node(s), not 2")

    def test_not_up(self):
        for words in (["status"], ["connections"], ["trace"], ["port", "down"], ["env"], ["explain"]):
            self.check(self.softib(*words), NOT_UP, "not up", "softib up")
        self.check(self.softib("down"), OK, "not up")
        self.check(self.softib("list"), OK, "no fabric is up")
        self.assertFalse(self.dir.exists(), "looking must not make the directory")

    def test_runtime_directory_of_another_user(self):
        if os.geteuid() != 0:
            self.skipTest("only root can become another user")
        prefix = self.prefix()
        self.dir.mkdir(mode=0o755)
        command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
                   prefix / "bin/softib", "run", "--", "true"]
        result = subprocess.run(command, env=self.env(), capture_output=True, text=True, timeout=TIMEOUT)
        self.check(result, PERMISSION, "belongs to uid 0", "SOFTIB_RUNTIME_DIR")
        missing = self.env(SOFTIB_RUNTIME_DIR=str(self.dir / "below"))
        result = subprocess.run(command, env=missing, capture_output=True, text=True, timeout=TIMEOUT)
        self.check(result, PERMISSION, "Permission denied")
        self.assertEqual(list(self.dir.iterdir()), [])

    def test_as_another_user(self):
        if os.geteuid() != 0:
            self.skipTest("only root can become another user")
        prefix = self.prefix()
        theirs = self.base / "theirs"
        theirs.mkdir(mode=0o700)
        os.chown(theirs, NOBODY, NOBODY)
        self.dirs.append(theirs)
        result = subprocess.run(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
                                 prefix / "bin/softib", "run", "--", "id", "-u"],
                                env=self.env(SOFTIB_RUNTIME_DIR=str(theirs)), capture_output=True,
                                text=True, timeout=TIMEOUT)
        self.assertEqual(self.check(result, OK).stdout.strip(), str(NOBODY))

    def test_runtime_directory_is_unfit(self):
        (self.base / "real").mkdir(mode=0o700)
        self.dir.symlink_to(self.base / "real")
        for words in (["run", "--", "true"], ["up"], ["status"], ["down"]):
            self.check(self.softib(*words), PERMISSION, "symbolic link")
        slash = self.env(SOFTIB_RUNTIME_DIR=f"{self.dir}/")
        self.check(self.softib("up", env=slash), PERMISSION, "symbolic link")
        self.dir.unlink()
        self.dir.write_text("")
        self.check(self.softib("up"), PERMISSION, "not a directory")
        self.dir.unlink()
        self.dir.mkdir()
        self.dir.chmod(0o777)
        self.check(self.softib("up"), PERMISSION, "0777")
        self.check(self.softib("up", env=self.env(SOFTIB_RUNTIME_DIR="/tmp/" + "x" * 100)), PERMISSION,
                   "characters")
        os.rmdir("/tmp/" + "x" * 100)

    def test_stale_socket(self):
        self.check(self.softib("up"), OK)
        os.kill(processes_of(self.dir)[0], signal.SIGKILL)
        self.assert_no_daemon()
        self.assertTrue((self.dir / "default.sock").exists())
        self.check(self.softib("status"), NOT_UP, "not up")
        self.check(self.softib("list"), OK, "dead")
        self.check(self.softib("run", "--", "true"), OK)
        os.kill(processes_of(self.dir)[0], signal.SIGKILL)
        self.assert_no_daemon()
        self.check(self.softib("down"), OK, "removed")
        self.assert_empty()

    def test_missing_parts(self):
        for missing in LIBRARIES:
            prefix = self.prefix(libraries=[lib for lib in LIBRARIES if lib != missing])
            self.check(self.softib("run", "--", "true", bin_dir=prefix / "bin"), INSTALLATION, missing)
        prefix = self.prefix(libraries=[])
        self.check(self.softib("run", "--", "true", bin_dir=prefix / "bin"), INSTALLATION, "cannot find")
        self.check(self.softib("doctor", bin_dir=prefix / "bin"), FAILED, "cannot run here")
        prefix = self.prefix(daemon=False)
        self.check(self.softib("up", bin_dir=prefix / "bin"), INSTALLATION, "softibd")
        self.assert_no_daemon()

    def test_daemon_that_fails_or_dies_at_start(self):
        prefix = self.prefix(daemon=False)
        daemon = prefix / "bin/softibd"
        daemon.write_text("#!/bin/sh\necho the sky is falling >&2\nexit 3\n")
        daemon.chmod(0o755)
        self.check(self.softib("up", bin_dir=prefix / "bin"), DAEMON, "the sky is falling", "exit code 3")
        daemon.write_text("#!/bin/sh\nkill -SEGV $$\n")
        self.check(self.softib("up", bin_dir=prefix / "bin"), DAEMON, "signal 11")
        daemon.write_text("\x7fELF this is no program")
        self.check(self.softib("up", bin_dir=prefix / "bin"), DAEMON, "exec")
        self.assert_empty()

    def test_daemon_that_is_killed(self):
        self.check(self.softib("up"), OK)
        pid = processes_of(self.dir)[0]
        os.kill(pid, signal.SIGSTOP)
        down = self.softib("down", "--force")
        self.check(down, OK, "is down")
        self.assert_no_daemon()
        self.assert_empty()

    def limited(self, which, value, *words):
        return self.softib(*words, preexec_fn=lambda: resource.setrlimit(which, (value, value)))

    def test_resource_limits(self):
        space = self.limited(resource.RLIMIT_AS, 1 << 30, "run", "--", "true")
        self.check(space, RESOURCES, "RLIMIT_AS is 1024 MiB", "ulimit -v")
        self.check(self.limited(resource.RLIMIT_AS, 1 << 30, "up"), RESOURCES, "RLIMIT_AS")
        self.check(self.limited(resource.RLIMIT_FSIZE, 1 << 20, "up"), RESOURCES, "RLIMIT_FSIZE")
        files = self.limited(resource.RLIMIT_NOFILE, 8, "up")
        self.check(files, RESOURCES)
        self.assertTrue("RLIMIT_NOFILE" in files.stderr or "open files" in files.stderr, files.stderr)
        self.assert_no_daemon()
        self.assert_empty()
        self.check(self.limited(resource.RLIMIT_AS, 1 << 30, "doctor"), FAILED, "FAIL  address space")


class Fabrics(CliTest):
    def test_two_side_by_side(self):
        self.check(self.softib("up", "--fabric", "one", "--nodes", "2"), OK, "2 nodes")
        self.check(self.softib("up", "--fabric", "two", "--hcas", "2", "--ports", "2"), OK, "2 HCAs")
        self.assertEqual(len(processes_of(self.dir)), 2)
        listed = self.check(self.softib("list"), OK, "one", "two").stdout
        self.assertEqual(listed.count(" up "), 2, listed)
        self.check(self.softib("run", "--fabric", "one", "--node", "1", "--", "true"), OK)
        self.check(self.softib("run", "--fabric", "two", "--node", "1", "--", "true"), NOT_FOUND)
        self.check(self.softib("down", "--fabric", "one"), OK, '"one" is down')
        self.check(self.softib("status", "--fabric", "one"), NOT_UP)
        self.check(self.softib("status", env=self.env(SOFTIB_FABRIC="two")), OK, "softib1", "port 2")
        self.check(self.softib("down", "--all"), OK, '"two" is down')
        self.assert_no_daemon()
        self.assert_empty()

    def test_ports_are_of_the_link_layer_asked_for(self):
        def layers():
            status = json.loads(self.check(self.softib("status", "--json"), OK).stdout)
            return [(port["link_layer"], port["lid"] != 0) for node in status["nodes"]
                    for hca in node["hcas"] for port in hca["ports"]]
        self.check(self.softib("up", "--link-layer", "Ethernet"), USAGE, "--link-layer", "infiniband", "ethernet")
        self.assert_no_daemon()
        self.check(self.softib("up", "--link-layer", "ethernet", "--ports", "2"), OK)
        self.assertEqual(layers(), [("ethernet", False)] * 2)
        self.check(self.softib("run", "--link-layer", "ethernet", "--", "true"), OK)
        self.check(self.softib("run", "--link-layer", "infiniband", "--", "true"), ALREADY_UP, "another shape",
                   "its link layer is ethernet, not infiniband")
        self.check(self.softib("down"), OK)
        self.check(self.softib("up"), OK)
        self.assertEqual(layers(), [("infiniband", True)])
        self.check(self.softib("run", "--link-layer", "ethernet", "--", "true"), ALREADY_UP,
                   "its link layer is infiniband, not ethernet")

    def test_status_has_the_addresses_of_nodes(self):
        self.check(self.softib("up", "--nodes", "2"), OK)
        nodes = json.loads(self.check(self.softib("status", "--json"), OK).stdout)["nodes"]
        ips = [address["ip"] for node in nodes for address in node["addresses"]]
        self.assertEqual(len(set(ips)), 2, ips)
        for ip in ips:
            self.assertRegex(ip, r"^127\.[1-9]\d*\.\d+\.\d+$")
        self.assertEqual({address["interface"] for node in nodes for address in node["addresses"]}, {"lo"})

    def test_down_leaves_nothing(self):
        self.check(self.softib("up"), OK)
        self.assertEqual(stat.S_IMODE(self.dir.stat().st_mode), 0o700)
        self.assertEqual(stat.S_IMODE((self.dir / "default.sock").stat().st_mode), 0o600)
        self.check(self.softib("down"), OK, "is down")
        self.assertEqual(processes_of(self.dir), [], "down must wait for the end")
        self.assert_empty()
        self.check(self.softib("down"), OK, "not up")

    def test_the_runtime_directory_may_be_relative(self):
        env = self.env(SOFTIB_RUNTIME_DIR="run")
        result = self.softib("run", "--", "sh", "-c", "cd /; echo $SOFTIB_SOCKET", env=env, cwd=self.base)
        self.assertEqual(self.check(result, OK).stdout.strip(), f"{self.dir}/default.sock")

    def test_status(self):
        self.check(self.softib("up", "--nodes", "alice,bob"), OK)
        self.check(self.softib("status"), OK, "node alice", "node bob", "softib0", "LID")
        state = json.loads(self.check(self.softib("status", "--json"), OK).stdout)
        self.assertEqual([node["name"] for node in state["nodes"]], ["alice", "bob"])
        self.assertEqual(state["pid"], processes_of(self.dir)[0])
        guids = {hca["node_guid"] for node in state["nodes"] for hca in node["hcas"]}
        self.assertEqual(len(guids), 2)

    def test_status_shows_programs_and_what_is_left_of_them(self):
        if shutil.which("ibv_rc_pingpong") is None:
            self.skipTest("ibv_rc_pingpong (package ibverbs-utils) is not installed")
        def state():
            return json.loads(self.check(self.softib("status", "--json"), OK).stdout)
        self.check(self.softib("up"), OK)
        with subprocess.Popen([BIN / "softib", "run", "--", "ibv_rc_pingpong", "-p", str(free_port())], env=self.env(),
                              stdout=subprocess.DEVNULL) as process:
            self.assertTrue(eventually(lambda: state()["objects"]["qp"] == 1), state())
            (client,) = state()["clients"]
            self.assertEqual((client["pid"], client["program"]), (process.pid, "ibv_rc_pingpong"))
            self.check(self.softib("status"), OK, "ibv_rc_pingpong", "1 qp", f"{process.pid}")
            process.kill()
        self.assertTrue(eventually(lambda: not state()["clients"]), state())
        self.assertEqual(set(state()["objects"].values()), {0})

    def test_port_down_and_up(self):
        self.check(self.softib("up", "--nodes", "2"), OK)
        self.check(self.softib("port", "down", "--node", "1"), OK, "is down")
        self.check(self.softib("status"), OK, " down ", " active ")
        self.check(self.softib("trace"), OK, "port 1")
        self.check(self.softib("explain"), OK, "port 1")
        self.check(self.softib("port", "up", "--node", "node1"), OK, "is up")
        self.assertNotIn(" down ", self.softib("status").stdout)
        last = self.check(self.softib("trace", "-n", "1"), OK).stdout
        self.assertEqual(last.count("\n"), 1)
        self.assertRegex(last, r"^\d\d:\d\d:\d\d\.\d{3}  port 1 of softib0 of node1 \(LID \d+\) is up\n$")

    def test_trace_has_steps_only_when_asked(self):
        self.check(self.softib("up"), OK)
        for words in (["power", "sleep"], ["power", "resume"], ["hca", "eject", "softib0"], ["hca", "add"]):
            self.check(self.softib(*words), OK)
        for _ in range(3):
            self.check(self.softib("port", "up", "--port", "9"), NOT_FOUND)
        self.assertNotIn("pnp:", self.softib("trace").stdout)
        self.assertNotIn("sleeps", self.softib("trace").stdout)
        self.check(self.softib("trace", "--all"), OK, "pnp:", "HCA softib0 of node0 sleeps")
        said = self.check(self.softib("trace", "--json", "--all"), OK).stdout
        lines = [json.loads(line) for line in said.splitlines()]
        self.assertEqual([line["number"] for line in lines], list(range(1, len(lines) + 1)))
        self.assertEqual({line["kind"] for line in lines}, {"device", "refused", "change"})
        for line in lines:
            self.assertRegex(line["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d{4}$")

    def test_trace_follow(self):
        self.check(self.softib("up"), OK)
        with subprocess.Popen([BIN / "softib", "trace", "--follow"], env=self.env(), text=True,
                              stdout=subprocess.PIPE) as process:
            self.check(self.softib("port", "down"), OK)
            self.assertIn("port 1", line_of(process))
            self.check(self.softib("down"), OK)
            self.assertEqual(process.wait(TIMEOUT), OK, "ends in order with the fabric")

    def test_who_watches_ends_with_the_fabric(self):
        """In order: exit code 0. After softibd was killed: another exit code."""
        for words in (["trace", "--follow"], ["status", "--watch"], ["connections", "--watch"]):
            for in_order in (True, False):
                with self.subTest(words=words, in_order=in_order):
                    self.check(self.softib("up"), OK)
                    self.check(self.softib("port", "down"), OK)
                    with subprocess.Popen([BIN / "softib", *words], env=self.env(), text=True, stderr=subprocess.PIPE,
                                          stdout=subprocess.PIPE) as process:
                        self.assertTrue(line_of(process))
                        if in_order:
                            self.check(self.softib("down"), OK, "is down")
                        else:
                            os.kill(processes_of(self.dir)[0], signal.SIGKILL)
                        _, errors = process.communicate(timeout=TIMEOUT)
                        self.assertEqual(process.returncode, OK if in_order else DAEMON, errors)
                        self.assertEqual(errors == "", in_order, errors)

    def test_down_spares_a_fabric_that_is_in_use(self):
        program_name = "sleep"
        self.check(self.softib("up"), OK)
        with subprocess.Popen([BIN / "softib", "run", "--", "sleep", "60"], env=self.env()) as program:
            self.assertTrue(eventually(lambda: pathlib.Path(f"/proc/{program.pid}/comm").read_text() == "sleep\n"))
            for words in (["down"], ["down", "--all"]):
                self.check(self.softib(*words), BUSY, f"in use by {program_name} (pid {program.pid})", "--force")
            self.assertEqual(len(processes_of(self.dir)), 1)
            program.kill()
        self.check(self.softib("down"), OK, "is down")
        self.check(self.softib("up"), OK)
        with subprocess.Popen([BIN / "softib", "run", "--", "sleep", "60"], env=self.env()) as program:
            self.assertTrue(eventually(lambda: pathlib.Path(f"/proc/{program.pid}/comm").read_text() == "sleep\n"))
            self.check(self.softib("down", "--force"), OK, "is down")
            program.kill()
        self.assert_no_daemon()
        self.assert_empty()

    def test_hcas_come_and_go_by_name(self):
        self.check(self.softib("up"), OK)
        refused = self.check(self.softib("hca", "add", "softib0"), FAILED, "cannot plug in softib0", "already")
        self.assertEqual(refused.stdout, "")
        self.assertEqual(self.check(self.softib("hca", "add"), OK).stdout, "softib1 on node0 is plugged in\n")
        self.assertEqual(self.check(self.softib("hca", "eject", "softib0"), OK).stdout,
                         "softib0 on node0 is pulled out\n")
        self.assertEqual(self.check(self.softib("hca", "add"), OK).stdout, "softib0 on node0 is plugged in\n")

    def test_an_output_that_cannot_be_written_is_an_error(self):
        self.check(self.softib("up"), OK)
        self.check(self.softib("port", "down"), OK)
        for words in (["trace"], ["status"], ["--help"], ["--version"], ["list"]):
            with open("/dev/full", "w") as full:
                result = subprocess.run([BIN / "softib", *words], env=self.env(), stdout=full, stderr=subprocess.PIPE,
                                        text=True, timeout=TIMEOUT)
            self.assertEqual(result.returncode, FAILED, words)
            self.assertIn("No space left on device", result.stderr)

    def test_the_fabric_may_stand_before_the_command(self):
        self.check(self.softib("--fabric", "lab", "up"), OK, 'fabric "lab"')
        self.check(self.softib("-f", "lab", "run", "--", "sh", "-c", "echo in $SOFTIB_FABRIC"), OK, "in lab")
        self.check(self.softib("--fabric=lab", "port", "down"), OK)
        self.check(self.softib("-f", "lab", "trace"), OK, "port 1")
        self.check(self.softib("status"), NOT_UP)
        self.check(self.softib("-f", "lab", "list"), USAGE, "softib list has no option --fabric")
        self.check(self.softib("--fabric"), USAGE, "--fabric")
        self.check(self.softib("-f", "lab", "down"), OK)

    def test_one_event_has_one_time(self):
        self.check(self.softib("up"), OK)
        self.check(self.softib("port", "down"), OK)
        times = {self.check(self.softib("trace"), OK).stdout[:11] for _ in range(5)}
        self.assertEqual(len(times), 1, times)

    def test_env(self):
        self.check(self.softib("up", "--nodes", "2"), OK)
        lines = self.check(self.softib("env", "--node", "1"), OK).stdout
        result = subprocess.run(["sh", "-c", lines + "\necho $SOFTIB_NODE $SOFTIB_SOCKET"], text=True,
                                capture_output=True, env={"PATH": "/usr/bin:/bin"}, timeout=TIMEOUT)
        self.assertEqual(result.stdout.split(), ["node1", f"{self.dir}/default.sock"])


ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


class Terminal(CliTest):
    """Colour on a terminal that has it, and lines of 80 columns."""

    def on_terminal(self, *words, columns=80, **changes):
        """The exit code and the text of `softib` on a terminal of 80 columns."""
        ours, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        env = self.env(**{"TERM": "xterm", "NO_COLOR": None, **changes})
        process = subprocess.Popen([str(BIN / "softib"), *map(str, words)], stdin=its, stdout=its, stderr=its, env=env,
                                   start_new_session=True)
        os.close(its)
        text = b""
        with contextlib.suppress(OSError):  # EIO: the other end is closed
            while chunk := os.read(ours, 65536):
                text += chunk
        os.close(ours)
        return process.wait(TIMEOUT), text.decode().replace("\r\n", "\n")

    def test_there_is_colour_on_terminals_only_and_not_where_it_is_not_wanted(self):
        self.check(self.softib("up"), OK)
        code, text = self.on_terminal("status")
        self.assertEqual(code, OK, text)
        self.assertIn("\x1b[1mnode node0\x1b[0m", text)
        self.assertIn("\x1b[32mactive \x1b[0m", text)
        self.softib("port", "down")
        self.assertIn("\x1b[31mdown   \x1b[0m", self.on_terminal("status")[1])
        self.assertNotIn("\x1b", self.softib("status").stdout)
        self.assertIn("\x1b[1m", self.softib("status", "--color=always").stdout)
        for changes in ({"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": None}):
            self.assertNotIn("\x1b", self.on_terminal("status", **changes)[1], changes)
        self.assertNotIn("\x1b", self.on_terminal("--color", "never", "status")[1])
        self.assertIn("\x1b[1m", self.on_terminal("status", "--color=always", NO_COLOR="1")[1])
        json.loads(self.softib("status", "--json", "--color=always").stdout)
        self.check(self.softib("down"), OK)

    def test_the_fabric_outlives_the_terminal_that_brought_it_up(self):
        child, descriptor = pty.fork()
        if not child:
            script = f"'{BIN}/softib' up && echo made && exec sleep 600"
            os.execve("/bin/sh", ["sh", "-c", script], self.env())
        terminal = os.fdopen(descriptor, "r+b", buffering=0)
        self.addCleanup(terminal.close)  # ends the child, if it is there still
        text = b""
        with contextlib.suppress(OSError):  # EIO: the child has ended
            while b"made" not in text:
                text += terminal.read(65536)
        self.assertIn(b"made", text)
        session = os.getsid(child)
        [daemon] = processes_of(self.dir)
        self.assertNotEqual(os.getpgid(daemon), os.getpgid(child))
        self.assertEqual(os.getsid(daemon), session)  # the scheduling group of its programs
        terminal.write(b"\x03")  # Ctrl-C
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), -signal.SIGINT)
        terminal.close()  # SIGHUP to those who did not choose otherwise
        self.check(self.softib("status"), OK, "node node0")
        self.check(self.softib("down"), OK)

    def test_errors_are_red_and_a_wrong_colour_is_one(self):
        code, text = self.on_terminal("status")
        self.assertEqual(code, NOT_UP)
        self.assertIn("\x1b[31msoftib:\x1b[0m fabric", text)
        self.check(self.softib("status", "--color=mauve"), USAGE, "--color must be auto, always or never, not \"mauve\"")
        self.check(self.softib("run", "--", "echo", "--color=mauve"), OK, "--color=mauve")

    def test_tables_fit_into_80_columns(self):
        nodes = "a-node-with-a-name-of-31-signs,another-node-with-a-long-name"
        self.check(self.softib("up", "--nodes", nodes, "--hcas", "2", "--ports", "2"), OK)
        user = subprocess.Popen([str(BIN / "softib"), "run", "--node", "0", "--", "cat"], stdin=subprocess.PIPE,
                                env=self.env())
        self.addCleanup(user.wait, TIMEOUT)
        self.addCleanup(user.stdin.close)
        for words in (["status"], ["devices"], ["devices", "--ids"], ["driver", "list"], ["list"], ["ls"], ["explain"],
                      ["connections"], ["explain", "12"], ["explain", "event", "7"], ["--help"], ["devices", "--help"]):
            code, text = self.on_terminal(*words)
            self.assertEqual(code, OK, text)
            for line in ESCAPES.sub("", text).splitlines():
                self.assertLessEqual(len(line), 80, f"{words}: {line!r}")

    def test_a_narrow_terminal_has_narrow_pages(self):
        if shutil.which("rping") is None:
            self.skipTest("rping (package rdmacm-utils) is not installed")
        self.check(self.softib("up"), OK)
        self.check(self.softib("port", "down"), OK)
        self.check(self.softib("hca", "remove", "softib9"), NOT_FOUND)
        port = free_port()
        with subprocess.Popen([BIN / "softib", "run", "--", "rping", "-s", "-p", str(port)], env=self.env()) as server:
            self.check(self.softib("wait", "--listen", port), OK)
            for words in (["connections"], ["trace"], ["resources", "--all"]):
                code, text = self.on_terminal(*words, columns=40)
                self.assertEqual(code, OK, text)
                self.assertTrue(text.strip())
                for line in ESCAPES.sub("", text).splitlines():
                    self.assertLessEqual(len(line), 40, f"{words}: {line!r}")
            self.assertIn(f":{port}", self.on_terminal("connections", columns=40)[1])
            server.kill()

    def test_doctor_wraps_what_it_says_on_a_terminal_only(self):
        text = ESCAPES.sub("", self.on_terminal("doctor")[1])
        for line in text.splitlines():
            words = len(line[38:].split() if line[:5].strip() else line.split())
            self.assertTrue(len(line) <= 80 or words == 1, line)
        self.assertIn("socket switch", text)
        self.assertRegex(self.softib("doctor").stdout, r"socket switch .{60,}")

    def test_a_page_that_is_watched_fits_the_screen(self):
        self.check(self.softib("up", "--nodes", "16"), OK)
        ours, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 80, 0, 0))
        with subprocess.Popen([BIN / "softib", "status", "-w"], stdin=its, stdout=its, stderr=its, env=self.env(),
                              start_new_session=True) as process:
            os.close(its)
            text = b""
            while b"more lines" not in text:
                text += os.read(ours, 65536)
            process.kill()
        os.close(ours)
        self.assertLess(text.count(b"\n"), 10, text)
        self.assertRegex(text, rb"\n\.\.\. \d+ more lines")

    def test_softibd_says_who_complains(self):
        for words in (["--nodes", "x"], ["--bogus"], ["--fabric", "../x"]):
            said = subprocess.run([str(BIN / "softibd"), *words], capture_output=True, text=True, timeout=TIMEOUT,
                                  env=self.env(), stdin=subprocess.DEVNULL)
            self.assertEqual(said.returncode, USAGE, said)
            self.assertTrue(said.stderr.startswith("softibd: "), said)
            self.assertEqual(said.stderr.count("\n"), 1, said)


class Words(CliTest):
    def test_explain(self):
        self.check(self.softib("explain", "12"), OK, "IBV_WC_RETRY_EXC_ERR", "to do:")
        self.check(self.softib("explain", "IBV_WC_REM_ACCESS_ERR"), OK, "rkey")
        self.check(self.softib("explain", "vendor_err", "14"), OK, "NoReceive")
        self.check(self.softib("explain", "--all"), OK, "IBV_WC_GENERAL_ERR", "QkeyMismatch", "RDMA_CM_EVENT_REJECTED",
                   "consumer reject", "ETIMEDOUT", "ERR_NO_RECORDS")
        self.check(self.softib("explain", "RDMA_CM_EVENT_REJECTED,", "error", "8"), OK, "invalid service ID")
        self.check(self.softib("explain", "-110"), OK, "ETIMEDOUT")
        self.check(self.softib("explain", "reason", "28"), OK, "consumer reject")
        self.check(self.softib("explain", "8"), OK, "LocAccessErr", "`reason 8`")
        self.check(self.softib("explain", "nonsense"), NOT_FOUND, "nonsense")
        self.check(self.softib("explain", " Failed status 12: wr_id 0 syndrom 0x10"), OK, "IBV_WC_RETRY_EXC_ERR", "cause 16")

    def test_explain_takes_every_text_that_libibverbs_prints(self):
        verbs = ctypes.CDLL("libibverbs.so.1")
        for call, count, title in (("ibv_wc_status_str", 24, "completion status"),
                                   ("ibv_event_type_str", 20, "asynchronous event")):
            text_of = getattr(verbs, call)
            text_of.restype = ctypes.c_char_p
            for number in range(count):
                text = text_of(number).decode()
                self.check(self.softib("explain", text), OK, f"{title} {number}:")
        for number in (errno.ENOMEM, errno.EINVAL, errno.ENODEV, errno.EBUSY, errno.ETIMEDOUT, errno.ECONNREFUSED):
            self.check(self.softib("explain", os.strerror(number)), OK, errno.errorcode[number])

    def test_help_is_everywhere(self):
        top = self.check(self.softib("--help"), OK, "Exit codes").stdout
        self.assertEqual(self.softib("help").stdout, top)
        self.assertEqual(self.softib().stdout, top)
        pages = [top]
        for command in COMMANDS:
            self.assertIn(f"  {command} ", top)
            self.assertIn(f"Usage: softib {command}", self.softib(command, "--help").stdout)
            for words in ([command], *([command, action] for action in ACTIONS.get(command, ()))):
                page = self.check(self.softib(*words, "--help"), OK)
                self.assertEqual(page.stderr, "")
                if words[1:]:
                    self.assertIn(f"\n  softib {command} {words[1]}", page.stdout, "an example of its own")
                self.assertEqual(self.softib("help", *words).stdout, page.stdout)
                pages.append(page.stdout)
        listed = re.findall(r"^  ([a-z]+) ", top.split("Subcommands:")[1].split("\n\n")[0], re.MULTILINE)
        self.assertEqual(sorted(listed), sorted([*COMMANDS, "help"]), "a command without a test")
        long = [line for page in pages for line in page.splitlines() if len(line) > 80]
        self.assertEqual(long, [])

    def test_man_pages_and_completion_are_what_the_help_says(self):
        script = pathlib.Path(__file__).resolve().parents[3] / "scripts/cli_pages.py"
        result = subprocess.run([sys.executable, script, BIN, "--check"], capture_output=True, text=True,
                                timeout=TIMEOUT)
        self.check(result, OK)

    def test_version(self):
        for words in (["version"], ["--version"], ["-V"]):
            result = self.check(self.softib(*words), OK)
            self.assertRegex(result.stdout, r"^softib \d+\.\d+\.\d+\ncontrol interface \d+\nprograms  /")
            self.assertEqual(result.stderr, "")

    def test_doctor(self):
        result = self.check(self.softib("doctor", "--json"), OK)
        report = json.loads(result.stdout)
        self.assertTrue(report["can_run"])
        for check in report["checks"]:
            if check["level"] != "ok":
                self.assertTrue(check["cost"] and check["fix"], check)
        self.check(self.softib("doctor"), OK, "softib can run here", "userfaultfd", "process_vm_readv", "membarrier",
                   "distribution", "kernel                          Linux", "private ABI", "32-bit programs",
                   "settings that softib run supplies:\n", "UCX_USE_MT_MUTEX=y\n")
        self.check(self.softib("doctor", env=self.env(UCX_USE_MT_MUTEX="n")), OK,
                   "not supplied, since you have set: n\n")
        shown = {row["variable"]: row["value"] for row in report["settings"] if row["supplied"]}
        self.assertEqual(shown["UCX_USE_MT_MUTEX"], "y")
        self.assertFalse(self.dir.exists(), "doctor leaves nothing behind")

    def test_doctor_takes_the_limit_of_file_sizes_for_what_it_is(self):
        limit = ["prlimit", "--fsize=1024", str(BIN / "softib"), "doctor"]
        result = subprocess.run(limit, capture_output=True, text=True, timeout=TIMEOUT, env=self.env())
        self.check(result, FAILED, "the limit of file sizes (RLIMIT_FSIZE)", "ulimit -f unlimited")
        self.assertNotIn("more memory", result.stdout)


def skip_unless_built():
    needed = [BIN / "softib", BIN / "softibd", *(LIB / name for name in LIBRARIES)]
    absent = [str(path) for path in needed if not path.exists()]
    if absent:
        print("skipped: not built:", ", ".join(absent))
        sys.exit(77)


if __name__ == "__main__":
    skip_unless_built()
    unittest.main(verbosity=2)
