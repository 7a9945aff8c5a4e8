#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""32-bit programs, Debian's for i386 and some that are built here, with each other and with 64-bit ones in one fabric.
softib is installed with the libraries of both word sizes; `softib run` finds them.

programs32_test.py [--as root|nobody] [--only REGEX] [--every-pair]
"""
import errno
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness
import packages_test as packages
from harness import Failed, Skipped
from support import perftest

PACKAGES = "libibverbs1,libibverbs-dev,ibverbs-providers,ibverbs-utils,librdmacm1,librdmacm-dev,perftest,rdmacm-utils"
LIBRARIES = ("libsoftib_preload.so", "libsoftib_sockets.so", "libsoftib_streams.so", "libsoftib-rdmav34.so")
HOST_FOLDERS = (pathlib.Path("/lib32"), pathlib.Path("/usr/lib32"))  # of libc6-i386, whose loader runs the programs
PROGRAMS = harness.SOURCE / "tests/system/programs"
# The word sizes of the server and of the client.
PAIRS = ((32, 64), (64, 32), (32, 32))
PINGPONGS = ("ibv_rc_pingpong", "ibv_rc_pingpong -e", "ibv_rc_pingpong -N", "ibv_rc_pingpong -c -s 1048576 -n 50",
             "ibv_uc_pingpong", "ibv_ud_pingpong -s 1024", "ibv_srq_pingpong", "ibv_xsrq_pingpong")
# perftest measures the processor's clock for seconds, so each is run by one pair; with --every-pair by all.
PERFTEST = {"ib_send_lat -c RC": (32, 32), "ib_send_lat -c UC": (32, 64), "ib_send_lat -c UD": (64, 32),
            "ib_send_lat -c XRC": (32, 64), "ib_write_lat -c RC": (64, 32), "ib_read_lat -c RC": (32, 64),
            "ib_atomic_lat -c RC": (64, 32), "ib_send_bw -c RC": (32, 64)}
# Programs of other tests, which check operations, keys, events and refusals: the words of each run, and what it says.
RULES = r"^0 rules broken$"
CHECKS = {"every_wr": ([[]], RULES), "verbs_rules": ([[]], RULES), "events": ([["order", 300], ["overrun"], ["unread", 10000]], RULES), "two_queue_pairs": ([[], ["fork"]], "^good$"),
          "small_stacks": ([[4096, 16384]], "^good$"),
          "cancelled_calls": ([["pending"], ["random", 30], ["waiting"], ["exit", 20]], "^good$"),
          "strange_numbers": ([["probed", "close_range"], ["open", "closefrom"], ["cm", "loop"]], "^all right$")}
WIDE_TIMES = ("-D_TIME_BITS=64", "-D_FILE_OFFSET_BITS=64")
SWITCH = ("--sockets",)
SECONDS = 40


class World:
    """The files of 32-bit programs."""

    def __init__(self, folder):
        self.folder = folder
        self.prefix = folder / "prefix"
        self.root = None
        self.libraries = folder / "lib"
        self.env = {"LD_LIBRARY_PATH": str(self.libraries)}

    def install(self):
        if not packages.has_32_bit():
            raise Skipped(f"{harness.BUILD} has no 32-bit libraries: the compiler makes none (g++-multilib)")
        packages.require(["cmake", "--install", harness.BUILD, "--prefix", self.prefix])
        for name in LIBRARIES:
            if not (self.prefix / "lib/i386-linux-gnu/softib" / name).exists():
                raise Failed(f"{name} is not installed for 32-bit programs")

    def fetch(self):
        self.root = packages.bare_root(self.folder, packages.release_of("VERSION_CODENAME"),
                                       ["--architectures=i386", f"--include={PACKAGES}"], packages.own_mirror(), variant="extract")
        # All but what libc6-i386 has, which belongs together.
        self.libraries.mkdir()
        for place in ("lib/i386-linux-gnu", "usr/lib/i386-linux-gnu", "usr/lib/i386-linux-gnu/libibverbs"):
            for file in (self.root / place).glob("lib*.so*"):
                if not any((host / file.name).exists() for host in HOST_FOLDERS):
                    (self.libraries / file.name).symlink_to(file)

    def words(self, bits, command):
        """Of a program of the distribution."""
        program, *rest = command.split()
        path = self.root / "usr/bin" / program if bits == 32 else harness.need_program(program)
        return [str(path), *rest]

    def run_here(self):
        """Whether the kernel of this machine runs them."""
        try:
            subprocess.run(self.words(32, "ibv_devinfo -h"), env=self.env, capture_output=True, timeout=SECONDS, check=False)
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise
            return False
        return True

    def build(self, source, bits, *flags, libraries=("-libverbs",)):
        folder = self.folder / f"bin{bits}"
        folder.mkdir(exist_ok=True)
        more = ["-L", self.libraries, f"-Wl,-rpath-link,{self.libraries}"] if bits == 32 else []
        return harness.build_program(folder, source, *(["-m32"] if bits == 32 else []), *flags,
                                     libraries=[*map(str, more), *libraries])


def parts(report, world, fabric):
    with report.case("the libraries can be loaded into any program, of glibc 2.34 too"):
        for name in LIBRARIES:
            packages.require([sys.executable, harness.SOURCE / "scripts/check_shared_library.py",
                              world.prefix / "lib/i386-linux-gnu/softib" / name])
    with report.case("softib doctor names the libraries of both word sizes"):
        fabric.softib("doctor").require(rf"^ok +softib libraries +{world.prefix}/lib/x86_64-linux-gnu/softib$",
                                        rf"^ok +32-bit programs +{world.prefix}/lib/i386-linux-gnu/softib")


def devices(report, world, fabric):
    with report.case("ibv_devinfo"):
        fabric.run([*world.words(32, "ibv_devinfo"), "-v"], env=world.env).require(
            r"hca_id:\s+softib0", r"state:\s+PORT_ACTIVE", r"max_qp:\s+[1-9]", forbid=("Failed", "Warning"))


def pair(world, fabric, command, bits, **more):
    server, client = (world.words(size, command) for size in bits)
    return fabric.pair(server, client, env=world.env, **more)


def named(command, bits):
    return f"{command}: server of {bits[0]} bits, client of {bits[1]}"


def pingpongs(report, world, fabric):
    for command in PINGPONGS:
        for bits in PAIRS:
            if not report.wanted(named(command, bits)):
                continue
            with report.case(named(command, bits)):
                for side in pair(world, fabric, command, bits):
                    side.require(forbid=(r"(?i)\bfail", r"(?i)invalid"))


def measurements(report, world, fabric):
    """Those whose own protocol does not depend on the word size."""
    for command, its_pair in PERFTEST.items():
        for bits in PAIRS if "--every-pair" in sys.argv else (its_pair,):
            if not report.wanted(named(command, bits)):
                continue
            with report.case(named(command, bits)):
                _, _, rows = perftest.run(lambda bits=bits, command=command: pair(
                    world, fabric, f"{command} -F -d softib0 -n 200", bits))
                if not rows or not perftest.is_measured(rows[-1]):
                    raise Failed(f"no result: {rows}")


def connections(report, world, fabric):
    def start(words, state="listening"):
        server = fabric.start(words, 0, env=world.env)
        harness.wait_until(lambda: fabric.ids(state=state, pid=server.pid) or not server.running(), SECONDS,
                           f"{server.describe()} to listen")
        return server

    commands = (("rping", "rping -s -a {} -C 20 -V -S 4000", "rping -c -a {} -C 20 -V -S 4000"),
                ("ucmatose", "ucmatose -b {} -c 10 -C 20 -S 4000", "ucmatose -s {} -c 10 -C 20 -S 4000"),
                ("udaddy", "udaddy -b {} -c 4 -C 20", "udaddy -s {} -c 4 -C 20"),
                ("rdma_xserver", "rdma_xserver -c r", "rdma_xclient -s {} -c r"),
                ("riostream", "riostream -b {} -S 65536 -C 50 -T v", "riostream -s {} -S 65536 -C 50 -T v"))
    address = fabric.address(0)
    for name, *both in commands:
        for bits in PAIRS:
            if not report.wanted(named(name, bits)):
                continue
            with report.case(named(name, bits)):
                server, client = (world.words(size, words.format(address)) for size, words in zip(bits, both))
                server = start(server)
                result = fabric.run(client, 1, SECONDS, env=world.env)
                for side in (result, fabric.end(server, SECONDS)):
                    # rping 44 may end with 255 after its last ping (rdmacm_test.py has the reason).
                    code = 255 if name == "rping" and side.code == 255 else 0
                    side.require(code=code, forbid=(r"(?i)\bdata (corruption|verif.* fail)", r"(?i)mismatch"))


def check(report, world, fabric, name, runs, wanted):
    if not report.wanted(name):
        return
    with report.case(f"{name} as a 32-bit program"):
        program = world.build(PROGRAMS / f"{name}.c", 32, libraries=("-libverbs", "-lrdmacm"))
        for words in runs:
            fabric.run([program, *words], env=world.env).require(wanted)


def checks(report, world, fabric):
    for name, (runs, wanted) in CHECKS.items():
        check(report, world, fabric, name, runs, wanted)


def times(report, world, fabric):
    for flags in ((), WIDE_TIMES):
        name = f"files and their times as a 32-bit program sees them, a time_t of {len(flags) * 2 + 4} bytes"
        if not report.wanted(name):
            continue
        with report.case(name):
            program = world.build(pathlib.Path(__file__).resolve().with_name("wide_times.c"), 32, *flags, libraries=())
            fabric.run([program, fabric.runtime / f"file{len(flags)}"], env=world.env).require(
                RULES, rf"^time_t has {len(flags) * 2 + 4} bytes$")


def streams(report, world, fabric):
    """TCP over RDMA, by each way to wait and to move bytes."""
    source = PROGRAMS / "sockets/echo.c"
    kinds = {"64": (64, ()), "32": (32, ()), "32 (time_t of 64)": (32, WIDE_TIMES)}
    server_address, client_address = fabric.address(0), fabric.address(1)
    for server_kind, client_kind in (("32", "64"), ("64", "32"), ("32", "32"), ("32 (time_t of 64)", "64"),
                                     ("64", "32 (time_t of 64)")):
        name = f"a stream: the server's of {server_kind}, the client's of {client_kind} bits"
        if not report.wanted(name):
            continue
        with report.case(name):
            server, client = (world.build(source, bits, *flags, libraries=()) for bits, flags in
                              (kinds[server_kind], kinds[client_kind]))
            port = harness.free_port()
            server = fabric.start([server, port], 0, env=world.env, more=SWITCH)
            harness.wait_until(lambda: fabric.ids(pid=server.pid, state="listening") or not server.running(), SECONDS,
                               f"{server.describe()} to listen")
            # The client's address shows that it is no plain TCP.
            fabric.run([client, port, server_address, client_address], 1, SECONDS, env=world.env, more=SWITCH).require(
                "^all right")
            fabric.end(server, SECONDS).require("^all right")


def management(report, world, fabric):
    """umad: its rules, and messages of up to 1 MiB."""
    rules = PROGRAMS / "umad/umad_rules.c"
    if report.wanted("umad_rules"):
        with report.case("umad_rules as a 32-bit program: as a 64-bit one"):
            said = [fabric.run([world.build(rules, bits, libraries=("-lpthread",))]).require().text for bits in (32, 64)]
            if said[0] != said[1] or len(said[0].splitlines()) < 50:
                raise Failed(f"32 bits:\n{said[0]}\n64 bits:\n{said[1]}")
    lid = int(fabric.run(["cat", "/sys/class/infiniband/softib0/ports/1/lid"], 1).require().text, 16)
    for bits in PAIRS:
        name = named("umad_rmpp", bits)
        if not report.wanted(name):
            continue
        with report.case(name):
            server, client = (world.build(PROGRAMS / "umad/umad_rmpp.c", size, libraries=("-lpthread",)) for size in bits)
            server = fabric.start([server, "server"], 1)
            server.wait_for_text("^ready", SECONDS)
            fabric.run([client, "client", lid], 0, 2 * SECONDS).require("^good$")
            fabric.end(server, SECONDS).require("^good$")


def test(report, user):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="softib-32-"))
    folder.chmod(0o755)
    world = World(folder)
    harness.forget_xrc_domain()
    try:
        with report.case("an installation with the libraries of both word sizes"):
            world.install()
        with report.case("Debian's programs for i386"):
            world.fetch()
        if world.root is None:
            return
        user.bin = world.prefix / "bin"
        with harness.Fabric(nodes=2, user=user, config=harness.WITH_ADDRESSES) as fabric:
            parts(report, world, fabric)
            if not world.run_here():
                with report.case("programs of 32 bits"):
                    raise Skipped("this kernel runs no 32-bit programs (CONFIG_IA32_EMULATION)")
                return
            for part in (devices, pingpongs, measurements, connections, times, streams, checks, management):
                part(report, world, fabric)
        with harness.Fabric(nodes=1, ports=2, user=user) as fabric:
            check(report, world, fabric, "port_counters", [[]], RULES)
    finally:
        subprocess.run(["rm", "-rf", "--one-file-system", folder], check=False)


harness.main("32-bit programs", test)
