#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""softib in the surroundings of real programs: bare environments, other namespaces, redirected streams, dlopen,
shells, forks, process trees, several fabrics at once.

environment_test.py [--as root|nobody] [--only REGEX]
"""
import os
import pathlib
import re
import shlex
import subprocess

import harness
from harness import Failed, Skipped

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
PYTHON = "/usr/bin/python3"
SEEN = r"^\s+softib0\s+[0-9a-f]{16}$"
PASSED_ON = ("LD_PRELOAD", "RDMAV_DRIVERS", "SOFTIB_SOCKET", "SOFTIB_NODE")

# A program without libibverbs until it calls dlopen().
DLOPEN = r"""
import ctypes, os
lib = ctypes.CDLL("libibverbs.so.1", mode={mode})
count = ctypes.c_int()
lib.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
devices = lib.ibv_get_device_list(ctypes.byref(count))
lib.ibv_get_device_name.restype = ctypes.c_char_p
lib.ibv_open_device.restype = ctypes.c_void_p
names = [lib.ibv_get_device_name(ctypes.c_void_p(devices[i])).decode() for i in range(count.value)]
context = lib.ibv_open_device(ctypes.c_void_p(devices[names.index("softib0")]))
lib.ibv_alloc_pd.restype = ctypes.c_void_p
pd = lib.ibv_alloc_pd(ctypes.c_void_p(context))
print("opened", names, bool(context), bool(pd))
assert context and pd
assert lib.ibv_dealloc_pd(ctypes.c_void_p(pd)) == 0
assert lib.ibv_close_device(ctypes.c_void_p(context)) == 0
lib.ibv_free_device_list(devices)
print("closed")
"""

# The parent has the device open while the child execs a program, forks another, and opens it itself.
FORK = r"""
import os, subprocess, sys
import pyverbs.device as d
from pyverbs.pd import PD
from pyverbs.mr import MR
import pyverbs.enums as e
context = d.Context(name="softib0")
pd = PD(context)
mr = MR(pd, 1 << 20, e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE)
mr.write("before the fork", 15)
out = subprocess.run(["ibv_devices"], text=True, capture_output=True, check=True).stdout
assert "softib0" in out, out
pid = os.fork()
if pid == 0:
    mine = d.Context(name="softib0")
    own = PD(mine)
    mr2 = MR(own, 4096, e.IBV_ACCESS_LOCAL_WRITE)
    mr2.write("child", 5)
    assert mr2.read(5, 0) == b"child"
    own.close(); mine.close()
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
assert mr.read(15, 0) == b"before the fork", mr.read(15, 0)
mr2 = MR(pd, 4096, e.IBV_ACCESS_LOCAL_WRITE)
mr2.close(); mr.close(); pd.close(); context.close()
print("fork ok")
"""


def bare(program):
    """A shell command: the program with no variables but softib's."""
    return "exec env -i " + " ".join(f'{n}="${{{n}}}"' for n in PASSED_ON) + f" {program}"


def bare_environments(report, fabric):
    native = subprocess.run(["env", "-i", "/usr/bin/ibv_devices"], timeout=60, check=False, capture_output=True).returncode
    with report.case("env -i that keeps softib's variables"):
        fabric.run(["sh", "-c", bare("/usr/bin/ibv_devices")]).require(SEEN)
    with report.case("env -i that keeps them, two programs exchange data"):
        for side in fabric.pair(["sh", "-c", bare('/usr/bin/ibv_rc_pingpong "$@"'), "sh", "-n", "100"]):
            side.require(r"usec/iter")
    with report.case("env -i without them: what the machine itself has"):
        fabric.run(["env", "-i", "/usr/bin/ibv_devices"]).require(
            r"warning: the program will not see softib: `env -i` clears the environment", code=native, forbid=("softib0",))
    with report.case("a program that has changed its user is told why it finds no HCA"):
        if fabric.user.uid != 0:
            raise Skipped("only root can change the user")
        fabric.run(["setpriv", "--reuid=65534", "--clear-groups", "ibv_devices"]).require(
            r"softib: ibv_devices runs as a user whom this fabric does not serve", code=native, forbid=("softib0",))
    with report.case("`softib env` gives a shell the same"):
        line = f'eval "$({shlex.quote(str(fabric.user.bin / "softib"))} env --fabric {fabric.name})" && exec ibv_devices'
        program = harness.Program([*fabric.user.prefix, "sh", "-c", line], env=fabric.base_env, cwd=fabric.runtime)
        fabric.end(program, 30).require(SEEN)


def own_network(user):
    wrap = ["unshare", "-n"] if user.uid == 0 else ["unshare", "-r", "-n"]
    if subprocess.run([*user.prefix, *wrap, "true"], timeout=60, check=False, capture_output=True).returncode:
        raise Skipped(f"{' '.join(wrap)} is not permitted")
    return wrap


def namespaces(report, fabric):
    """The fabric's socket and shared memory are not part of the network: a program may have its own network
    namespace."""
    with report.case("a network namespace of its own"):
        fabric.run([*own_network(fabric.user), "ibv_devices"]).require(SEEN)
    with report.case("two programs in one network namespace exchange data"):
        wrap = own_network(fabric.user)
        harness.need_program("ip")
        inside = "ip link set lo up && exec " + two_sides("ibv_rc_pingpong -n 100 -p 18515")
        fabric.run([*wrap, "sh", "-c", inside]).require(r"usec/iter")
    with report.case("little room for data"):
        low = fabric.run(["sh", "-c", "ulimit -d 8192 && exec ibv_devinfo"], env={"SOFTIB_LOG": "1"})
        if low.code is None or low.code < 0 or not re.search(r"RLIMIT_DATA|out of memory|RLIMIT_NPROC", low.text):
            raise Failed(f"ibv_devinfo with 8 MiB of data ended with {low.code}:\n{harness.tail(low.text)}")
    with report.case("chdir, umask and few descriptors"):
        fabric.run(["sh", "-c", "cd / && umask 0777 && ulimit -n 64 && exec ibv_devices"]).require(SEEN)


def two_sides(command):
    """A shell command: server and client; the client is retried until the server listens."""
    body = (f"{command} & s=$!; tries=0; "
            f"until {command} 127.0.0.1 2>/dev/null; do tries=$((tries+1)); [ $tries -lt 2000 ] || exit 1; done; wait $s")
    return f"sh -c {shlex.quote(body)}"


def streams(report, fabric):
    with report.case("stdout and stderr into files, stdin /dev/null"):
        out = fabric.runtime / "out"
        fabric.run(["sh", "-c", f"ibv_devinfo -v >{out} 2>{out}.err </dev/null"]).require()
        text = out.read_text()
        if "softib0" not in text or (fabric.runtime / "out.err").read_text():
            raise Failed(f"stdout:\n{harness.tail(text)}\n    stderr:\n"
                         f"{harness.tail((fabric.runtime / 'out.err').read_text())}")
    with report.case("stdin, stdout and stderr closed"):
        done = fabric.runtime / "done"
        fabric.run(["sh", "-c", f"ibv_devinfo <&- >&- 2>&-; ibv_devices <&- >{done} 2>&-"]).require()
        if "softib0" not in done.read_text():
            raise Failed(f"ibv_devices wrote:\n{harness.tail(done.read_text())}")
    with report.case("stdin from a file, through a pipe"):
        source = fabric.runtime / "in"
        source.write_text("some lines\nof input\n")
        os.chown(source, fabric.user.uid, -1)
        line = f"cat <{source} | cat - | (ibv_devices && cat) | tee {fabric.runtime / 'copy'}"
        fabric.run(["sh", "-c", line]).require(SEEN, r"of input")
    with report.case("all streams /dev/null, the exit code comes through"):
        fabric.run(["sh", "-c", "ibv_devinfo >/dev/null 2>&1 </dev/null; exit 42"]).require(code=42)


def loading(report, fabric):
    for title, mode in (("RTLD_LOCAL", os.RTLD_NOW | os.RTLD_LOCAL), ("RTLD_GLOBAL", os.RTLD_LAZY | os.RTLD_GLOBAL)):
        with report.case(f"dlopen of libibverbs, {title}"):
            fabric.run([PYTHON, "-c", DLOPEN.replace("{mode}", str(mode))]).require(r"opened \[.*'softib0'.*True True",
                                                                                  "closed", forbid=("DEEPBIND",))
    with report.case("dlopen of libibverbs, RTLD_DEEPBIND: no devices, and why"):
        script = "import ctypes, os\nlib = ctypes.CDLL('libibverbs.so.1', mode=os.RTLD_LAZY | os.RTLD_DEEPBIND)\n" \
                 "count = ctypes.c_int()\nlib.ibv_get_device_list(ctypes.byref(count))\nprint('devices:', count.value)"
        fabric.run([PYTHON, "-c", script]).require(r"^devices: 0$", r"^softib: this program has loaded libibverbs with RTLD_DEEPBIND")
    with report.case("200 programs that end while threads of theirs load a library"):
        program = harness.build_program(fabric.runtime, PROGRAMS / "exit_while_loading.c", "-pthread")
        line = f"for i in $(seq 200); do timeout 10 {program} || exit 1; done"
        fabric.run(["sh", "-c", line], seconds=100).require(code=0)
    with report.case("beside another preloaded library"):
        other = next((str(p) for p in pathlib.Path("/usr/lib").glob("*-linux-gnu/libSegFault.so")), None) or next(
            (str(p) for p in pathlib.Path("/lib").glob("*-linux-gnu/libm.so.6")), None)
        if other is None:
            raise Skipped("no other library to preload was found")
        fabric.run(["ibv_devices"], env={"LD_PRELOAD": other}).require(SEEN)


def processes(report, fabric):
    with report.case("inside sh -c, inside sh -c"):
        fabric.run(["sh", "-c", "sh -c 'ibv_devices; true' && true"]).require(SEEN)
    with report.case("fork and exec while the device is open"):
        fabric.run([PYTHON, "-c", FORK]).require("fork ok")
    with report.case("a tree of processes joined by pipes"):
        line = ("(ibv_devices | cat; ibv_devinfo | grep state) | tee /dev/null | sort | "
                "(read first; echo \"$first\"; cat; ibv_devices) | cat -")
        fabric.run(["bash", "-o", "pipefail", "-c", line]).require(SEEN, "PORT_ACTIVE")
    with report.case("forty processes at once"):
        line = "for i in $(seq 40); do ibv_devinfo >/dev/null & p=\"$p $!\"; done; for i in $p; do wait $i || exit 1; done"
        fabric.run(["bash", "-c", line], seconds=90).require()
    with report.case("softib run inside softib run, on another node"):
        line = f"ibv_devinfo | grep node_guid; {shlex.quote(str(fabric.user.bin / 'softib'))} run --node 1 -- ibv_devinfo"
        result = fabric.run(["sh", "-c", line]).require("softib0")
        guids = [words.split()[-1] for words in result.text.splitlines() if "node_guid" in words]
        if len(guids) != 2 or guids[0] == guids[1]:
            raise Failed(f"the node GUIDs should be two different ones: {guids}")
    with report.case("nothing is left when they have ended"):
        harness.wait_until(lambda: not fabric.state()["clients"], 20, "softib status to show no client")


def two_fabrics(report, user):
    with report.case("two fabrics side by side do not see each other"):
        with harness.Fabric(nodes=1, user=user, name="left") as left, harness.Fabric(nodes=1, user=user, name="right",
                                                                                    hcas=2) as right:
            left.run(["ibv_devices"]).require(SEEN, forbid=("softib1",))
            right.run(["ibv_devices"]).require(SEEN, r"softib1")
            for side in (*left.pair(["ibv_rc_pingpong", "-n", "100"], nodes=(0, 0)),
                         *right.pair(["ibv_rc_pingpong", "-n", "100", "-d", "softib1"], nodes=(0, 0))):
                side.require("usec/iter")
            left.softib("down", "--fabric", "left").require()
            right.run(["ibv_devices"]).require(SEEN, r"softib1")


def strange_numbers(report, fabric):
    """Programs that close descriptors of ours, and have files of their own at those numbers."""
    program = harness.build_program(fabric.runtime, PROGRAMS / "strange_numbers.c", libraries=("-libverbs", "-lrdmacm"))
    for what in ("probed", "open", "cm"):
        for how in ("loop", "closefrom", "close_range", "syscalls"):
            with report.case(f"all descriptors closed: {what}, {how}"):
                result = fabric.run([program, what, how], 0, 60).require("^all right$")
                failures = [line for line in result.text.splitlines() if ": " in line and not line.endswith(": ok")]
                # Without libc the connections are lost, which a device that is open then cannot do without.
                if failures and not (how == "syscalls" and what != "probed"):
                    raise Failed("\n".join(failures))


def test(report, user):
    with harness.Fabric(nodes=2, user=user) as fabric:
        bare_environments(report, fabric)
        namespaces(report, fabric)
        streams(report, fabric)
        loading(report, fabric)
        processes(report, fabric)
        strange_numbers(report, fabric)
    two_fabrics(report, user)


harness.main("environments", test)
