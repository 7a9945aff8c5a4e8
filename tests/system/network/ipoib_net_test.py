#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Networks of nodes (`softib run --net`, `softib ipoib`): their interfaces, who shares them, when they end, what they
leave. softib-net has the driver of tests/net, which joins the interfaces of all nodes of a fabric to one Ethernet.

ipoib_net_test.py [--as root|nobody] [--only REGEX]
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness
from harness import Failed, Skipped, need_program, wait_until

NET = ["--net"]
# Closes all descriptors and leaves its parent, as daemons do; then waits until it is killed.
DAEMON = """
import os, signal, sys
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
with open(sys.argv[1] + ".new", "w") as file: file.write(str(os.getpid()))
os.rename(sys.argv[1] + ".new", sys.argv[1])
os.closerange(0, 4096)
signal.pause()
"""


def use_bridge():
    """The installation of this test: softib-net has another driver."""
    bridge = harness.BUILD / "test-bin" / "softib-net-bridge"
    if not bridge.exists():
        raise Skipped(f"{bridge} is not there; build it first (scripts/build)")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="softib-bridge-"))
    folder.chmod(0o755)
    (folder / "bin").mkdir()
    for name in ("softib", "softibd"):
        shutil.copy2(harness.BIN / name, folder / "bin" / name)
    shutil.copy2(bridge, folder / "bin" / "softib-net")
    (folder / "lib").symlink_to(harness.LIB)
    harness.BIN, harness.LIB = folder / "bin", folder / "lib"
    return folder


def need_networks(fabric):
    """Skips where this machine has none, with the reason that `softib doctor` gives."""
    rows = json.loads(fabric.softib("doctor", "--json").text)["checks"]
    row = next(row for row in rows if row["check"] == "network of nodes")
    if row["level"] != "ok":
        raise Skipped(f"no networks of nodes: {row['value']}")


def namespace_of(pid):
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/{pid}/ns/net")
    return None


def processes_in(namespace):
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and namespace_of(name) == namespace]


def net_processes(fabric):
    """softib-net of the fabric and the processes of its nodes."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            words = pathlib.Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
            if words[0].endswith(b"/softib-net") and str(fabric.runtime).encode() in words:
                found.append(int(name))
    return sorted(found)


def networks(fabric):
    return {row["node"]: row for row in json.loads(
        fabric.softib("ipoib", "show", "--json", "--fabric", fabric.name).require().text)}


def case(report, fabric, name):
    """A case whose programs end with it, also if it fails."""
    @contextlib.contextmanager
    def cleaned():
        with report.case(name) as remarks:
            try:
                yield remarks
            finally:
                for program in fabric.programs:
                    if program.running():
                        program.kill()
    return cleaned()


def hold(fabric, node=0):
    """A program that has the network of a node until its input ends."""
    program = fabric.start(["sh", "-c", "readlink /proc/self/ns/net; read line"], node, more=NET,
                           stdin=subprocess.PIPE)
    program.namespace = program.wait_for_text(r"net:\[\d+\]", 30).group(0)
    return program


def let_go(program):
    program.process.stdin.close()
    if program.wait(20) is None:
        raise Failed(f"{program.describe()} did not end")


def expect_nothing_left(fabric, *namespaces):
    wait_until(lambda: not net_processes(fabric), 20, f"softib-net to end; {net_processes(fabric)} are there")
    for namespace in namespaces:
        left = processes_in(namespace)
        if left:
            raise Failed(f"processes {left} are still in {namespace}")


def address_of(fabric, node):
    return fabric.state()["nodes"][node]["addresses"][0]["ip"]


def test_interfaces(report, fabric):
    with case(report, fabric, "ib0: addresses, MTU, routes, those that `softib status` shows"):
        need_program("ip")
        show = fabric.run(["ip", "-o", "addr"], more=NET).require(
            r"lo +inet 127.0.0.1/8", r"ib0 +inet 10\.\d+\.\d+\.1/24", r"ib0 +inet6 fd69:62\S+::1/64",
            r"ib0 +inet6 fe80::\S+/64", forbid=[r"eth0", r"ib0\.8001 +inet 10"])
        fabric.run(["ip", "-o", "link", "show", "ib0"], more=NET).require(r"[<,]UP,LOWER_UP", r"mtu 65520")
        fabric.run(["ip", "-o", "link", "show", "ib0.8001"], more=NET).require(r"NO-CARRIER")
        fabric.run(["ip", "route"], more=NET).require(r"^10\.\d+\.\d+\.0/24 dev ib0")
        address = re.search(r"ib0 +inet (10\S+)/24", show.text).group(1)
        shown = fabric.run([*status_words(fabric)], more=NET).require().text
        if address not in shown:
            raise Failed(f"`softib status` does not show {address}:\n{harness.tail(shown)}")
    with case(report, fabric, "a program may change its interface; its rights are those over its network"):
        fabric.run(["ip", "link", "set", "ib0", "mtu", "4000"], more=NET).require()
        fabric.run(["sh", "-c", "ip addr add 192.0.2.1/24 dev ib0 && ip -o addr show ib0"], more=NET).require(r"192\.0\.2\.1/24")
        if fabric.user.uid != 0:
            fabric.run(["cat", "/etc/shadow"], more=NET).require(code=1)
    with case(report, fabric, "without --net a program is where it was"):
        fabric.run(["readlink", "/proc/self/ns/net"]).require(re.escape(os.readlink("/proc/self/ns/net")))


def status_words(fabric):
    return [fabric.user.bin / "softib", "status", "--fabric", fabric.name]


def test_ping(report, fabric):
    with case(report, fabric, "ping: oneself, another node by name, IPv6, a node without a network") as remarks:
        need_program("ping")
        other = hold(fabric, 1)
        fabric.run(["ping", "-c", "1", "-W", "5", "node0"], more=NET).require(r"from 10\.\S+\.1")
        fabric.run(["ping", "-c", "1", "-W", "5", address_of(fabric, 1)], more=NET).require(r"from 10\.\S+\.2")
        several = fabric.run(["ping", "-c", "5", "-i", "0.2", "-W", "5", "-s", "60000", "node1"], more=NET)
        several.require(r"5 received")
        remarks.append(re.search(r"rtt.*", several.text).group(0))
        six = next(one["ip"] for one in fabric.state()["nodes"][1]["addresses"] if ":" in one["ip"])
        fabric.run(["ping", "-6", "-c", "1", "-W", "5", six], more=NET).require(r"1 received")
        let_go(other)
        # A node without a network has its address of 127.0.0.0/8, which must not lead to the pinging node itself.
        fabric.run(["ping", "-c", "1", "-W", "5", fabric.state()["nodes"][2]["addresses"][0]["ip"]], more=NET).require(code=2)
        expect_nothing_left(fabric, other.namespace)


def test_life(report, fabric):
    with case(report, fabric, "two programs of a node share its network; it ends with the second"):
        one, two, three = hold(fabric), hold(fabric), hold(fabric, 1)
        if one.namespace != two.namespace or one.namespace == three.namespace:
            raise Failed(f"namespaces {one.namespace}, {two.namespace}; of the other node {three.namespace}")
        if len(net_processes(fabric)) != 3:
            raise Failed(f"{net_processes(fabric)} are not one process and one for each node")
        let_go(one)
        if networks(fabric)["node0"]["programs"] != 1:
            raise Failed("the network does not count its programs")
        let_go(three)
        let_go(two)
        expect_nothing_left(fabric, one.namespace, three.namespace)
    with case(report, fabric, "a program that is killed leaves nothing"):
        program = hold(fabric)
        program.kill()
        expect_nothing_left(fabric, program.namespace)
    with case(report, fabric, "children of a program have the network when it has ended"):
        file = fabric.runtime / "child"
        fabric.run(["sh", "-c", f"sh -c 'echo $$ > {file}.new; mv {file}.new {file}; exec sleep 1000' > /dev/null 2>&1 &"],
                   more=NET).require()
        expect_stays_until_killed(fabric, file)
    with case(report, fabric, "so has a daemon that has closed all its descriptors"):
        file = fabric.runtime / "daemon"
        fabric.run(["python3", "-c", DAEMON, file], more=NET).require()
        expect_stays_until_killed(fabric, file)


def expect_stays_until_killed(fabric, file):
    wait_until(file.exists, 20, f"{file}")
    pid = int(file.read_text())
    namespace = namespace_of(pid)
    try:
        fabric.run(["readlink", "/proc/self/ns/net"], more=NET).require(re.escape(namespace))
        if not net_processes(fabric):
            raise Failed("softib-net has ended before the last program")
    finally:
        os.kill(pid, signal.SIGKILL)
    expect_nothing_left(fabric, namespace)


def test_deaths(report, fabric):
    with case(report, fabric, "kill -9 of a driver: no carrier, the next program has another driver"):
        program = hold(fabric)
        driver = networks(fabric)["node0"]["driver_pid"]
        os.kill(driver, signal.SIGKILL)
        wait_until(lambda: networks(fabric)["node0"]["driver_pid"] == 0, 20, "softib-net to miss its driver")
        if os.getuid() == 0:
            # The flags of an interface follow its carrier within a second.
            wait_until(lambda: "NO-CARRIER" in subprocess.run(
                ["nsenter", "-t", str(program.pid), "-n", "ip", "-o", "link", "show", "ib0"], capture_output=True,
                text=True, timeout=20, check=True).stdout, 20, "ib0 without carrier")
        fabric.softib("ipoib", "show", "--fabric", fabric.name).require(r"node0: .* no driver\n +trouble: .*killed by signal 9")
        fabric.run(["ip", "-o", "link", "show", "ib0"], more=NET).require(r"LOWER_UP")
        log = (fabric.runtime / "net" / f"{fabric.name}.log").read_text()
        if "node0: the network has lost its driver: its driver was killed by signal 9" not in log:
            raise Failed(f"the log says:\n{harness.tail(log)}")
        let_go(program)
        expect_nothing_left(fabric, program.namespace)
    with case(report, fabric, "kill -9 of softib-net: its drivers end, the next program has a new network"):
        program = hold(fabric)
        parent = net_processes(fabric)[0]
        os.kill(parent, signal.SIGKILL)
        wait_until(lambda: not net_processes(fabric), 20, "the drivers to end")
        other = hold(fabric)
        if other.namespace == program.namespace:
            raise Failed("the new network is the old one")
        let_go(program)
        let_go(other)
        expect_nothing_left(fabric, program.namespace, other.namespace)
    with case(report, fabric, "kill -9 of `softib run` in the middle") as remarks:
        for _ in range(10):
            program = fabric.start(["true"], more=NET)
            wait_until(lambda: net_processes(fabric) or not program.running(), 20, "softib-net")
            program.kill()
        expect_nothing_left(fabric)
        remarks.append("10 times")


def test_fabrics(report, user):
    with report.case("two fabrics side by side"):
        with harness.Fabric(nodes=2, user=user, name="a") as one, harness.Fabric(nodes=2, user=user, name="b") as two:
            programs = [hold(one), hold(two)]
            for fabric in (one, two):
                fabric.run(["ping", "-c", "1", "-W", "5", "node0"], node=1, more=NET).require(r"1 received")
            for program in programs:
                let_go(program)
            expect_nothing_left(one)
            expect_nothing_left(two)


def test_verbs(report, fabric):
    with case(report, fabric, "verbs between two nodes with networks"):
        need_program("ib_write_bw")
        for path in ("auto", "process_vm"):
            verbs_pair(fabric, ["ib_write_bw", "-n", "1000", "-s", "65536"], (NET, NET), path=path)
    with case(report, fabric, "verbs between a node with a network and one without"):
        for more in ((NET, []), ([], NET)):
            for path in ("auto", "process_vm"):
                verbs_pair(fabric, ["ib_write_bw", "-R", "-n", "1000", "-s", "65536"], more, path=path,
                           listens=fabric.listens_by_cm)


def verbs_pair(fabric, words, more, path, listens=harness.is_listening):
    server, client = fabric.pair(words, host="node0", more=more, path=path, listens=listens)
    client.require(r"65536 +1000")
    server.require()


def test_missing(report, fabric):
    with case(report, fabric, "no user namespaces: the error says so, with the remedy"):
        need_program("unshare")
        lacking = ["unshare", "-Ur", "sh", "-c", "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv "
                   "--bounding-set=-all --inh-caps=-all \"$@\"", "sh"]
        said = run_inside(fabric, lacking, "run", *NET, "--", "true")
        said.require(r"user namespaces are off \(user.max_user_namespaces is 0\)", r"Remedy: sysctl user.max_user_names",
                     code=8)
        run_inside(fabric, lacking, "doctor").require(r"warn +network of nodes +user namespaces are off", r"fix: +sysctl")
    with case(report, fabric, "no /dev/net/tun"):
        lacking = ["unshare", "-Urm", "sh", "-c", "mount -t tmpfs none /dev/net && exec \"$@\"", "sh"]
        run_inside(fabric, lacking, "run", *NET, "--", "true").require(r"there is no /dev/net/tun", r"modprobe tun", code=1)
        run_inside(fabric, lacking, "doctor").require(r"warn +network of nodes +there is no /dev/net/tun")
    with case(report, fabric, "Ethernet ports have none"):
        with harness.Fabric(nodes=1, user=fabric.user, name="e", link_layer="ethernet") as other:
            other.run(["true"], more=NET).require(r"node0 has no InfiniBand port", code=3)


def run_inside(fabric, prefix, command, *words):
    fabric_words = ["--fabric", fabric.name] if command == "run" else []
    program = harness.Program([*fabric.user.prefix, *prefix, fabric.user.bin / "softib", command, *fabric_words, *words],
                              env=fabric.base_env, cwd=fabric.runtime)
    return fabric.end(program, 60)


def test_attach(report, fabric):
    if fabric.user.uid != 0:
        with report.case("attach needs root, and says so"):
            fabric.softib("ipoib", "attach", "--fabric", fabric.name).require(r"needs root", r"softib run --net", code=6)
        return
    with report.case("attach to a network namespace that is there, detach"):
        holder = harness.Program(["unshare", "-n", "sh", "-c", "echo up; read line"], stdin=subprocess.PIPE)
        holder.wait_for_text("up", 20)
        inside = ["nsenter", "-t", str(holder.pid), "-n"]
        where = ["--fabric", fabric.name, "--node", "1"]
        fabric.softib("ipoib", "attach", *where, "--netns", str(holder.pid)).require(r"node1 is attached")
        fabric.softib("ipoib", "attach", *where, "--netns", str(holder.pid)).require(r"attached already", code=10)
        run_plain([*inside, "ip", "-o", "addr", "show", "ib0"]).require(r"inet 10\.\S+\.2/24")
        fabric.run(["ping", "-c", "1", "-W", "5", "10" + default_address(fabric, 1)[3:]], 0, more=NET).require(r"1 received")
        fabric.run(["ip", "-o", "addr", "show", "ib0"], 1, more=NET).require(r"inet 10\.\S+\.2/24")
        fabric.softib("ipoib", "detach", *where).require(r"node1 is detached")
        run_plain([*inside, "ip", "link", "show", "ib0"]).require(code=1)
        fabric.softib("ipoib", "detach", *where).require(r"node1 is not attached", code=3)
        let_go(holder)
        expect_nothing_left(fabric)
    with report.case("attach to what is no network namespace"):
        fabric.softib("ipoib", "attach", "--fabric", fabric.name, "--netns", "no-such").require(r"/run/netns/no-such", code=3)
        fabric.softib("ipoib", "attach", "--fabric", fabric.name, "--netns", "../x").require(code=2)


def default_address(fabric, node):
    return fabric.state()["nodes"][node]["default_address"]


def run_plain(words):
    program = harness.Program(words)
    code = program.wait(20)
    return harness.Result(program, code, 0)


def test(report, user):
    with harness.Fabric(nodes=3, user=user, in_tree=False) as fabric:
        try:
            need_networks(fabric)
        except Skipped:
            test_missing(report, fabric)
            raise
        for part in (test_interfaces, test_ping, test_life, test_deaths, test_verbs, test_missing, test_attach):
            if report.wanted(part.__name__):
                part(report, fabric)
    if report.wanted("test_fabrics"):
        test_fabrics(report, user)


try:
    bridge_folder = use_bridge()
except Skipped as skip:
    print(f"skipped: {skip}")
    sys.exit(harness.SKIPPED)
try:
    harness.main("ipoib_net", test)
finally:
    shutil.rmtree(bridge_folder, ignore_errors=True)
