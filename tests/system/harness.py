# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What the system tests and the benchmark share: a fabric of one's own, programs on its nodes, and a report.

    report = Report("perftest")
    with Fabric(nodes=2) as fabric:
        with report.case("ib_write_lat"):
            server, client = fabric.pair(["ib_write_lat"], port_option="-p")
    sys.exit(report.finish())

With --link-layer ethernet among the arguments of a test its fabrics have Ethernet (RoCE v2) ports; with --tree each
node of them is at another leaf of a fat tree (support/tree.py).

Environment: SOFTIB_BIN and SOFTIB_LIB, as ctest gives them; otherwise build/release of this source tree.
"""
import atexit
import contextlib
import hashlib
import json
import os
import pathlib
import random
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import weakref

from support.stacks import stacks
from support.tree import tree

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SOFTIB_BUILD", SOURCE / "build/release"))
BIN = pathlib.Path(os.environ.get("SOFTIB_BIN", BUILD / "bin"))
LIB = pathlib.Path(os.environ.get("SOFTIB_LIB", BUILD / "lib"))
HOST = "127.0.0.1"
CLOCK_UNKNOWN = re.compile(r"^Correlation coefficient r\^2: \S+ < 0\.9\n\s*Can't produce a report$", re.MULTILINE)
REFUSED = re.compile(r"RDMA_CM_EVENT_(REJECTED; error: 8|UNREACHABLE; error: 1)\b")  # connected; datagrams
PERFTEST_TRIES = 5
NOBODY = 65534
SKIPPED = 77
ETHERNET = "ethernet" in sys.argv[1:] and sys.argv[sys.argv.index("ethernet") - 1] == "--link-layer"
TREE = "--tree" in sys.argv[1:]
SOME = bool(os.environ.get("SOFTIB_SOME"))  # a part of the cases or rounds is enough where there are very many


signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # a test that ctest terminates ends its fabric


class Failed(Exception):
    """The case failed; the text has what was expected and what was seen."""


class Skipped(Exception):
    """The case cannot run here; the text names the missing facility."""


def wait_until(condition, seconds, what):
    """Returns the first true value of condition(). Looks less often the longer it waits, since a look may be a
    program of its own."""
    started = time.monotonic()
    deadline = started + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Failed(f"waited {seconds} s for {what}")
        pause = min(max(0.01, 0.1 * (time.monotonic() - started)), 0.1)
        time.sleep(pause)  # tidy: allow(sleep) the pause between two looks at the condition


def seed():
    """SOFTIB_SEED, or any."""
    return int(os.environ.get("SOFTIB_SEED", random.SystemRandom().randrange(1 << 30)))


def was_refused(code, text):
    """Whether a client of perftest with -R, which ended with `code`, was faster than its server. Both meet by
    librdmacm, part, and meet again at the same port, for which the client does not wait until the server listens
    again; a client that is refused crashes while it cleans up."""
    return code == -signal.SIGSEGV and REFUSED.search(text) is not None


def need_program(name):
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if path is None:
        raise Skipped(f"{name} is not installed (packages.txt)")
    return path


def build_program(folder, source, *flags, compiler="gcc", libraries=("-libverbs",)):
    """The program of a C file, in `folder`, for everybody to run."""
    need_program(compiler)
    file = folder / "_".join([compiler, *(flag.strip("-").replace("=", "_") for flag in flags), source.stem])
    done = subprocess.run([compiler, "-g", "-O1", "-Wall", "-Wextra", "-Werror", *flags, str(source), "-o", str(file),
                           *libraries], capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        if flags and "cannot find" in done.stderr:
            raise Skipped(f"{compiler} has no runtime for {' '.join(flags)}")
        raise Failed(f"{compiler} {' '.join(flags)}:\n{done.stderr}")
    file.chmod(0o755)
    return file


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def free_port():
    """A TCP port that nobody listens at: not of those that the kernel gives to connections of other tests meanwhile."""
    first = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("", random.SystemRandom().randrange(10_000, max(first, 20_000))))
            return probe.getsockname()[1]


def is_listening(pid, port):
    """Returns whether a process in the network namespace of process `pid` listens on `port`."""
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/net/{table}", encoding="ascii") as lines:
            next(lines)
            for line in lines:
                words = line.split()
                if words[3] != "0A":
                    break  # those that listen come first; of the others there may be thousands
                if int(words[1].rsplit(":", 1)[1], 16) == port:
                    return True
    return False


def has_udp_port(pid, port):
    """Returns whether a socket in the network namespace of process `pid` has that UDP port."""
    lines = pathlib.Path(f"/proc/{pid}/net/udp").read_text(encoding="ascii").splitlines()[1:]
    return any(int(line.split()[1].rsplit(":", 1)[1], 16) == port for line in lines)


def need_tcp_port(port):
    """Of programs that have a fixed one."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise Skipped(f"TCP port {port}, which these programs need, is taken") from error


class User:
    """The user of a program. Another user gets a copy of the built files if it cannot read the build tree."""

    def __init__(self, uid=None):
        self.uid = os.getuid() if uid is None else uid
        self.prefix = []
        self.bin, self.lib = BIN, LIB
        self.copies = None
        for name in ("softib", "softibd"):
            if not os.access(BIN / name, os.X_OK):
                raise Skipped(f"{BIN / name} is not there; build it first (scripts/build)")
        if self.uid == os.getuid():
            return
        if os.getuid() != 0:
            raise Skipped(f"only root can run programs as uid {self.uid}")
        need_program("setpriv")
        self.prefix = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
        if not self.can_read(BIN / "softib") or not self.can_read(LIB / "libsoftib_preload.so"):
            self.copy_installation()

    @property
    def name(self):
        return "root" if self.uid == 0 else f"uid {self.uid}"

    def can_read(self, path):
        return subprocess.run([*self.prefix, "test", "-r", str(path)], timeout=60, check=False).returncode == 0

    def copy_installation(self):
        self.copies = tempfile.mkdtemp(prefix="softib-copy-")
        os.chmod(self.copies, 0o755)
        for folder, names in (("bin", BIN.glob("softib*")), ("lib", LIB.glob("*.so*"))):
            target = pathlib.Path(self.copies) / folder
            target.mkdir()
            for name in names:
                shutil.copy2(name, target, follow_symlinks=False)
                if not name.is_symlink():
                    os.chmod(target / name.name, 0o755)
        self.bin = pathlib.Path(self.copies) / "bin"
        self.lib = pathlib.Path(self.copies) / "lib"
        if not self.can_read(self.bin / "softib"):
            raise Skipped(f"uid {self.uid} can read neither {BIN} nor {self.bin}")

    def make_dir(self, prefix):
        """Returns a new folder of this user that is removed when the test ends."""
        path = tempfile.mkdtemp(prefix=prefix)
        atexit.register(shutil.rmtree, path, ignore_errors=True)
        os.chown(path, self.uid, -1)
        return pathlib.Path(path)

    def close(self):
        if self.copies:
            shutil.rmtree(self.copies, ignore_errors=True)


class Program:
    """A running program. stdout and stderr go to one file; it is killed by its own pid and group only. As a job of a
    shell it is in the caller's session: sessions are scheduling groups."""

    everyone = weakref.WeakSet()

    def __init__(self, words, env=None, cwd=None, stdin=subprocess.DEVNULL):
        self.words = [str(w) for w in words]
        self.output = tempfile.TemporaryFile(prefix="softib-out-")
        self.process = subprocess.Popen(self.words, stdin=stdin, stdout=self.output, cwd=cwd,
                                        stderr=subprocess.STDOUT, env=env, process_group=0)
        self.pid = self.process.pid
        self.started = time.monotonic()
        Program.everyone.add(self)

    def text(self):
        position = 0
        chunks = []
        while chunk := os.pread(self.output.fileno(), 1 << 20, position):
            chunks.append(chunk)
            position += len(chunk)
        return b"".join(chunks).decode(errors="replace")

    def running(self):
        return self.process.poll() is None

    def wait(self, seconds):
        """Returns the exit code, or None if the program had to be killed."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.pwrite(self.output.fileno(), stacks(self.pid).encode(), os.fstat(self.output.fileno()).st_size)
            self.kill()
            return None

    def kill(self):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait(60)

    def gives_way(self, nice=19):
        """From here on it gets the processor time that others leave over: it spins until a timeout, as perftest does
        after its peer has died."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.setpriority(os.PRIO_PGRP, self.pid, nice)

    def wait_for_text(self, pattern, seconds):
        found = wait_until(lambda: re.search(pattern, self.text()) or not self.running(), seconds,
                           f"{pattern!r} in the output of {self.describe()}; it says:\n{self.text()}")
        if found is True:
            found = re.search(pattern, self.text())
        if not found:
            raise Failed(f"{self.describe()} ended with {self.process.returncode} and never said {pattern!r}:\n"
                         f"{self.text()}")
        return found

    def describe(self):
        words = self.words
        if "--" in words:
            words = words[words.index("--") + 1:]
        return shlex.join(words)


class Result:
    def __init__(self, program, code, seconds):
        self.words, self.code, self.text, self.seconds = program.words, code, program.text(), seconds
        self.name = program.describe()

    def has_no_clock(self):
        """Whether it is a program of perftest that has run, and has no figures: other programs ran while it measured
        how fast the processor's clock goes."""
        return self.code == 1 and CLOCK_UNKNOWN.search(self.text) is not None

    def was_refused(self):
        return was_refused(self.code, self.text)

    def require(self, *patterns, code=0, forbid=()):
        if self.code is None:
            raise Failed(f"{self.name}: did not end in {self.seconds:.0f} s, killed; it said:\n"
                         f"{tail(self.text, 80)}")
        if self.code != code:
            what = f"was killed by signal {-self.code}" if self.code < 0 else f"ended with {self.code}"
            raise Failed(f"{self.name}: {what}, expected {code}; it said:\n{tail(self.text)}")
        for pattern in patterns:
            if not re.search(pattern, self.text, re.MULTILINE):
                raise Failed(f"{self.name}: no {pattern!r} in its output:\n{tail(self.text)}")
        for pattern in forbid:
            match = re.search(pattern, self.text, re.MULTILINE)
            if match:
                raise Failed(f"{self.name}: says {match.group(0)!r}:\n{tail(self.text)}")
        return self


def others_that_failed(since, why):
    """The words of programs that were started since then and ended with an error, but for those that `why` is about:
    where a server has given up, a test looks at its client first."""
    programs = [one for one in Program.everyone if one.started >= since and one.describe() not in why]
    return "".join(f"\n    {one.describe()}: ended with {one.process.returncode}; it said:\n{tail(one.text())}"
                   for one in sorted(programs, key=lambda one: one.started)
                   if not one.running() and one.process.returncode not in (0, -signal.SIGKILL))


def forget_xrc_domain():
    """Programs create the file of an XRC domain at a fixed place in /tmp. The file of another user cannot be opened
    (fs.protected_regular)."""
    for name in ("xrc_domain", "xrc_domain_client", "xrc_domain_server"):
        with contextlib.suppress(OSError):
            os.unlink(f"/tmp/{name}")


def cpu_seconds(pid):
    """That the process has used, all its threads together."""
    words = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def tail(text, lines=25):
    kept = text.rstrip().splitlines()[-lines:]
    return "\n".join("      | " + line for line in kept) or "      | (nothing)"


# A configuration for tests that write addresses down; without it they are others in each fabric (docs/cli.md).
ADDRESSES = ("127.77.0.1", "127.77.0.2")
WITH_ADDRESSES = "".join(f'[[node]]\nname = "node{node}"\naddresses = ["{address}"]\n'
                         for node, address in enumerate(ADDRESSES))
MISSED_SOON = "packet_life_time = 12\n"  # librdmacm's connections miss a dead peer after 0.27 s instead of 4.3
MISSED_LATE = "packet_life_time = 20\n"  # after 69 s, which no test waits


class Fabric:
    """A fabric of its own: runtime directory, softibd, name. Everything that runs in it ends with the block."""

    def __init__(self, nodes=2, user=None, name="t", hcas=None, ports=None, path=None, extra=(), config="",
                 link_layer="ethernet" if ETHERNET else None, in_tree=TREE, up_seconds=30):
        self.extra = extra  # further options of `softib up`
        self.up_seconds = up_seconds  # that it may take
        self.config = config  # the text of the configuration file
        self.link_layer = link_layer
        self.in_tree = in_tree and nodes is not None
        self.nodes, self.name, self.hcas, self.ports, self.path = nodes, name, hcas, ports, path
        self.user = user or User()
        self.programs = []
        self.runtime = None

    def __enter__(self):
        self.runtime = self.user.make_dir("softib-test-")
        self.base_env = {k: v for k, v in os.environ.items()
                         if not k.startswith("SOFTIB_") and k not in ("LD_PRELOAD", "RDMAV_DRIVERS")}
        self.base_env["SOFTIB_RUNTIME_DIR"] = str(self.runtime)
        self.base_env["HOME"] = str(self.runtime)
        words = ["up", "--fabric", self.name, *self.shape(), *self.extra]
        if self.config:
            words += ["--config", self.write_file("fabric.toml", self.config)]
        try:
            self.softib(*words, seconds=self.up_seconds).require()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def shape(self):
        if self.in_tree:
            return ["--topology", self.write_file("tree.toml", tree(self.nodes, self.hcas or 1, self.ports or 1))]
        numbers = (("--nodes", self.nodes), ("--hcas", self.hcas), ("--ports", self.ports),
                   ("--link-layer", self.link_layer))
        return [str(word) for option, number in numbers if number for word in (option, number)]

    def write_file(self, name, text):
        file = self.runtime / name
        file.write_text(text)
        file.chmod(0o644)
        return file

    def __exit__(self, kind, error, trace):
        for program in self.programs:
            if program.running():
                program.kill()
        try:
            log = self.runtime / f"{self.name}.log"
            if kind is not None and log.exists():
                print(f"    softibd's log ends with:\n{tail(log.read_text(errors='replace'))}")
            if (self.runtime / f"{self.name}.sock").exists():
                down = self.softib("down", "--force", "--fabric", self.name)
                if kind is None:
                    down.require()
        finally:
            shutil.rmtree(self.runtime, ignore_errors=True)

    def softib(self, *words, seconds=30):
        """softib's own commands."""
        program = Program([*self.user.prefix, self.user.bin / "softib", *words], env=self.base_env,
                          cwd=self.runtime)
        code = program.wait(seconds)
        return Result(program, code, time.monotonic() - program.started)

    def command(self, words, node=0, before=(), after=(), path=None, more=()):
        path = path or self.path
        options = [*more, *(["--path", path] if path else [])]
        return [*before, *self.user.prefix, self.user.bin / "softib", "run", "--fabric", self.name, "--node", node,
                *options, "--", *after, *words]

    def start(self, words, node=0, env=None, before=(), after=(), path=None, stdin=subprocess.DEVNULL,
              more=()):
        """before: wraps `softib run` (taskset ...); more: options of it; after: stands between it and the program."""
        program = Program(self.command(words, node, before, after, path, more), env={**self.base_env, **(env or {})},
                          cwd=self.runtime, stdin=stdin)
        self.programs.append(program)
        return program

    def run(self, words, node=0, seconds=60, **settings):
        program = self.start(words, node, **settings)
        return self.end(program, seconds)

    def end(self, program, seconds):
        code = program.wait(seconds)
        return Result(program, code, time.monotonic() - program.started)

    def wait_for_packets(self, program, seconds, least=100):
        """Until the first adapter of node 0 has received that many packets more, by traffic of the program."""
        def received():
            return int(self.run(["cat", "/sys/class/infiniband/softib0/ports/1/counters/port_rcv_packets"], 0).text)
        before = received()
        wait_until(lambda: received() >= before + least or not program.running(), seconds,
                   f"messages of {program.describe()}; it says:\n{tail(program.text())}")
        if not program.running():
            raise Failed(f"{program.describe()} ended before its time:\n{tail(program.text())}")

    def state(self):
        """All that `softib status` tells."""
        return json.loads(self.softib("status", "--json", "--fabric", self.name).require().text)

    def address(self, node):
        """The first address of a node, by its number."""
        return self.state()["nodes"][node]["addresses"][0]["ip"]

    def ids(self, **wanted):
        """The ids of librdmacm that have these values."""
        return [one for one in self.state()["rdma_cm"] if all(one[key] == value for key, value in wanted.items())]

    def sent_messages(self):
        """By all ports together, MADs among them."""
        ports = [port for node in self.state()["nodes"] for hca in node["hcas"] for port in hca["ports"]]
        return sum(port["counters"]["sent_messages"] for port in ports)

    def listens_by_cm(self, pid, port):
        """Returns whether a process listens on `port` by librdmacm."""
        return any(one["local"].endswith(f":{port}") for one in self.ids(pid=pid, state="listening"))

    def pair(self, *words, **settings):
        """pair_once(), again if the machine was too busy for perftest: has_no_clock(), was_refused()."""
        for _ in range(PERFTEST_TRIES):
            results = self.pair_once(*words, **settings)
            if not any(result.has_no_clock() or result.was_refused() for result in results):
                break
        return results

    def pair_once(self, words, client_words=None, *, port_option="-p", nodes=(0, 1), seconds=60, befores=((), ()),
                  server_ends=True, env=None, path=None, port=None, host=HOST, listens=is_listening, more=((), ())):
        """Runs a server and its client, which gets the address as its last word. Returns both results. listens: whether
        a process listens on a port, unless it does so by TCP. more: options of `softib run`, for each."""
        port = port or free_port()
        client_words = client_words or words
        server = self.start([*words, port_option, port], nodes[0], env=env, before=befores[0], path=path, more=more[0])
        try:
            wait_until(lambda: listens(server.pid, port) or not server.running(), seconds,
                       f"{server.describe()} to listen; it says:\n{tail(server.text())}")
            if not server.running():
                raise Failed(f"{server.describe()}: the server ended with {server.process.returncode} before a "
                             f"client came; it said:\n{tail(server.text())}")
            client = self.start([*client_words, port_option, port, host], nodes[1], env=env, before=befores[1],
                                path=path, more=more[1])
            client_result = self.end(client, seconds)
            if client_result.code is None:
                server_text = server.text()
                server.kill()
                raise Failed(f"{client_result.name}: did not end in {seconds} s, killed; it said:\n"
                             f"{tail(client_result.text, 80)}\n    the server said:\n{tail(server_text)}")
            if client_result.was_refused():
                self.softib("trace", "--fabric", self.name).require(
                    rf"no listener for (TCP|UDP) port {port} on node{nodes[0]}")
            if not server_ends or client_result.was_refused():
                server.kill()
            return self.end(server, 20), client_result
        finally:
            if server.running():
                server.kill()


class Report:
    """Counts and prints the cases as they end, and has the exit code of the test."""

    def __init__(self, title, argv=None):
        argv = sys.argv[1:] if argv is None else argv
        self.title = title
        self.only = re.compile(argv[argv.index("--only") + 1]) if "--only" in argv else None
        self.rows = []
        self.facility = None
        self.every, self.left = 1, 0
        print(f"{title}: softib of {BIN}", flush=True)

    def may_take_some(self, every):
        """Of many independent cases SOFTIB_SOME wants one of `every`, other ones in each run."""
        if SOME:
            self.every, self.left = every, random.SystemRandom().randrange(every)
            print(f"  SOFTIB_SOME is set: one case of {every}", flush=True)

    @contextlib.contextmanager
    def case(self, name):
        """The body is the case: Failed fails it, Skipped skips it. Yields a list for remarks."""
        started = time.monotonic()
        remarks = []
        status, why = "ok", ""
        try:
            yield remarks
        except Skipped as skip:
            status, why = "skipped", str(skip)
        except Failed as failure:
            status, why = "FAILED", str(failure)
            why += others_that_failed(started, why)
        seconds = time.monotonic() - started
        self.rows.append((name, status, seconds, why))
        text = "; ".join(str(r) for r in remarks)
        print(f"  {status:8} {name:58} {seconds:6.1f} s  {why if status == 'skipped' else text}", flush=True)
        if status == "FAILED":
            print(f"    {why}", flush=True)

    def wanted(self, name):
        if self.only is not None and not self.only.search(name):
            return False
        self.left = (self.left or self.every) - 1
        return self.left == 0

    def skip_all(self, reason):
        self.facility = reason

    def finish(self):
        count = {status: sum(row[1] == status for row in self.rows) for status in ("ok", "FAILED", "skipped")}
        print(f"{self.title}: {count['ok']} ok, {count['FAILED']} failed, {count['skipped']} skipped")
        for name, status, _, why in self.rows:
            if status == "FAILED":
                print(f"  FAILED  {name}: {why.splitlines()[0] if why else ''}")
        if self.facility:
            print(f"skipped: {self.facility}")
            return SKIPPED
        if count["FAILED"]:
            return 1
        if not count["ok"]:
            reasons = {why for _, status, _, why in self.rows if status == "skipped"}
            print("skipped: " + ("; ".join(sorted(reasons)) or "no case was selected"))
            return SKIPPED
        return 0


def users(argv=None):
    """--as root|nobody from the command line: the users to run as, each closed by the caller."""
    argv = sys.argv[1:] if argv is None else argv
    if "--as" in argv:
        who = argv[argv.index("--as") + 1]
        return [User(NOBODY if who == "nobody" else None)]
    everybody = [User()]
    if os.getuid() == 0:
        everybody.append(User(NOBODY))
    return everybody


def main(title, test):
    """Runs test(report, user) for each user; exits with the code of the report."""
    report = Report(title)
    try:
        everybody = users()
    except Skipped as skip:
        print(f"skipped: {skip}")
        sys.exit(SKIPPED)
    for user in everybody:
        try:
            print(f"as {user.name}:", flush=True)
            test(report, user)
        except Skipped as skip:
            report.rows.append((f"as {user.name}", "skipped", 0, str(skip)))
            print(f"  skipped: {skip}")
        except Failed as failure:
            report.rows.append((f"as {user.name}", "FAILED", 0, str(failure)))
            print(f"  FAILED: {failure}")
        finally:
            user.close()
    sys.exit(report.finish())
