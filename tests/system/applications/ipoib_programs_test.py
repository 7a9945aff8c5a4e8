#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""More programs of the distribution over ib0 (`softib run --net`): ssh and scp, DHCP, mDNS, ss, mtr and traceroute
through a router, nginx under wrk and ab, MPI over TCP beside verbs; `ip link set` of a program's own ib0.

ipoib_programs_test.py [--as root|nobody] [--only REGEX] [--mode datagram|connected] [--tree]
"""
import contextlib
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness
from harness import Failed, need_program, wait_until
from support import mpi
from support.ipoib import MODE, MTU, SECONDS, Nodes

PROGRAMS = pathlib.Path(__file__).resolve().parents[1] / "programs"
PYTHON = "/usr/bin/python3"
SIZE = 20 << 20
REQUESTS = 2000
HERE, THERE = "198.18.0.", "198.18.1."  # networks on both sides of a router
LEASES = "192.0.2."
ACCOUNT = "softib-test"

# Another passwd for a program and its children: in it the user has a shell and a home.
WITH_PASSWD = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, MS_BIND, MS_REC, MS_PRIVATE = 0x20000, 0x1000, 0x4000, 0x40000
def check(result, what):
    if result: sys.exit(f"{what}: {os.strerror(ctypes.get_errno())}")
check(libc.unshare(CLONE_NEWNS), "unshare")
check(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None), "private mounts")
check(libc.mount(sys.argv[1].encode(), b"/etc/passwd", None, MS_BIND, None), "passwd")
os.execvp(sys.argv[2], sys.argv[2:])
"""
SSHD = """
Port {port}
AddressFamily any
HostKey {folder}/host
AuthorizedKeysFile {folder}/id.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
Subsystem sftp internal-sftp
"""
LEASE_SCRIPT = """#!/bin/sh
[ "$1" = bound ] || exit 0
ip addr add "$ip/$mask" dev "$interface" && echo "bound $ip by $serverid for $lease seconds, mtu $mtu"
"""
MDNS_SERVICE = """
import socket, sys
from zeroconf import IPVersion, ServiceInfo, Zeroconf
address = sys.argv[1]
family, version = (socket.AF_INET6, IPVersion.V6Only) if ":" in address else (socket.AF_INET, IPVersion.V4Only)
zeroconf = Zeroconf(interfaces=[address], ip_version=version)
zeroconf.register_service(ServiceInfo("_softib._tcp.local.", "it._softib._tcp.local.", port=4711, server="it.local.",
    addresses=[socket.inet_pton(family, address)], properties={f"key{n}": "x" * 100 for n in range(10)}))
print("registered", flush=True)
sys.stdin.read()
zeroconf.close()
"""
MDNS_BROWSER = """
import queue, sys
from zeroconf import IPVersion, ServiceBrowser, Zeroconf
version = IPVersion.V6Only if ":" in sys.argv[1] else IPVersion.V4Only
zeroconf = Zeroconf(interfaces=[sys.argv[1]], ip_version=version)
changes = queue.Queue()
def on_change(zeroconf, service_type, name, state_change): changes.put((name, state_change.name))
browser = ServiceBrowser(zeroconf, "_softib._tcp.local.", handlers=[on_change])
print(*changes.get(timeout=30))
info = zeroconf.get_service_info("_softib._tcp.local.", "it._softib._tcp.local.", timeout=20000)
print(info.port, info.server, *info.parsed_addresses(version), sum(len(one) for one in info.properties.values()))
print("known", flush=True)
print(*changes.get(timeout=30))
zeroconf.close()
"""
NGINX = """
daemon off; worker_processes 3; pid {folder}/nginx.pid; error_log stderr warn; {user}
events {{ worker_connections 256; }}
http {{
  access_log {folder}/access.log; sendfile on; keepalive_requests 100000;
  client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
  uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
  server {{ listen {port}; root {folder}; }}
}}
"""
# How mpirun starts its daemon at another node: the host, then a command line.
AGENT = """#!/bin/sh
node=${{1#node}}
shift
exec {softib} run --fabric {fabric} --node "$node" --net -- sh -c "$*"
"""


@contextlib.contextmanager
def ending(*programs):
    """Servers that end by SIGTERM with the block."""
    try:
        yield
        for program in programs:
            if not program.running():
                raise Failed(f"{program.describe()} ended:\n{harness.tail(program.text())}")
    finally:
        for program in programs:
            with contextlib.suppress(ProcessLookupError):
                os.kill(program.pid, signal.SIGTERM)
            program.wait(SECONDS)


def data_file(folder, name, size):
    path = folder / name
    path.write_bytes(harness.random.Random(20261129).randbytes(size))
    path.chmod(0o644)
    return path


def same(path, other):
    if harness.digest(path) != harness.digest(other):
        raise Failed(f"{path} ({path.stat().st_size} bytes) differs from {other} ({other.stat().st_size} bytes)")


def received_bytes(nodes, node):
    return int(nodes.output(["sh", "-c", "ip -s -j link show ib0"], node).split('"bytes":')[1].split(",")[0])


# -- ssh

def passwd_with_shell(user, folder):
    """The accounts of this machine, but the user is ACCOUNT, with a shell, and its home is the folder. sshd takes the
    account `nobody` of some machines for a locked one."""
    lines = pathlib.Path("/etc/passwd").read_text().splitlines()
    others = [line for line in lines if line.split(":")[2] != str(user.uid)]
    path = folder / "passwd"
    path.write_text("\n".join([f"{ACCOUNT}:x:{user.uid}:{user.uid}::{folder}:/bin/sh", *others]) + "\n")
    path.chmod(0o644)
    return path


def start_sshd(nodes, user, folder, words):
    if user.uid == 0:
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    for name in ("host", "id"):
        subprocess.run([*user.prefix, need_program("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", folder / name],
                       check=True, timeout=SECONDS)
    port = harness.free_port()
    config = folder / "sshd_config"
    config.write_text(SSHD.format(port=port, folder=folder))
    config.chmod(0o644)
    return port, nodes.serve([*words, need_program("sshd"), "-D", "-e", "-f", config], 0, port)


def test_ssh(report, nodes, user):
    if not report.wanted("ssh and scp"):
        return
    with report.case(f"ssh and scp ({MODE})"):
        need_program("ssh")
        folder = user.make_dir("softib-ssh-")
        script = folder / "with_passwd.py"
        script.write_text(WITH_PASSWD)
        script.chmod(0o644)
        alias = [PYTHON, script, passwd_with_shell(user, folder)]
        port, sshd = start_sshd(nodes, user, folder, alias)
        data = data_file(folder, "data", SIZE)
        options = ["-F", "none", "-i", folder / "id", "-o", "StrictHostKeyChecking=no", "-o", "BatchMode=yes",
                   "-o", f"UserKnownHostsFile={folder}/known"]
        server, six = nodes.ipv4(0), f"{nodes.link_local(0)}%ib0"
        with ending(sshd):
            ssh = ["ssh", *options, "-p", port]
            for address, sees in ((server, nodes.ipv4(1)), (six, f"{nodes.link_local(1)}%ib0")):
                command = "echo $SSH_CONNECTION; exit 3"
                nodes.run([*alias, *ssh, f"{ACCOUNT}@{address}", command], 1).require(f"^{sees} ", code=3)
            if user.uid == 0:  # sshd gives a terminal the group `tty`, which a user namespace does not have
                nodes.run([*alias, *ssh, "-tt", f"{ACCOUNT}@{server}", "tty"], 1).require("^/dev/pts/")
            pipe = f"cat {data} | {shlex.join(map(str, ssh))} {ACCOUNT}@{server} 'cat > {folder}/piped'"
            nodes.run([*alias, "sh", "-c", pipe], 1).require()
            same(folder / "piped", data)
            scp = [*alias, "scp", *options, "-P", port]
            nodes.run([*scp, data, f"{ACCOUNT}@{server}:{folder}/there"], 1).require()
            nodes.run([*scp, "-O", f"{ACCOUNT}@{server}:{folder}/there", folder / "back"], 1).require()
            same(folder / "back", data)


# -- DHCP

def has_address(nodes, node, prefix):
    return next((one["local"] for one in nodes.addresses(node) if one["local"].startswith(prefix)), None)


def test_dhcp(report, nodes, user):
    if not report.wanted("dnsmasq and udhcpc"):
        return
    with report.case(f"dnsmasq and udhcpc: leases, router advertisements ({MODE})"):
        server_program, client_program = need_program("dnsmasq"), need_program("udhcpc")
        folder = user.make_dir("softib-dhcp-")
        script = folder / "script"
        script.write_text(LEASE_SCRIPT)
        script.chmod(0o755)
        nodes.run(["sh", "-c", f"ip addr add {LEASES}1/24 dev ib0 && ip addr add fd00:77::1/64 dev ib0"], 0).require()
        leases = folder / "leases"
        server = nodes.start(
            [server_program, "--keep-in-foreground", "--conf-file=/dev/null", "--no-hosts", "--no-resolv", "--port=0",
             "--interface=ib0", "--except-interface=lo", f"--dhcp-leasefile={leases}", "--log-facility=-", "--log-dhcp",
             f"--dhcp-range={LEASES}100,{LEASES}120,1h", "--enable-ra", "--dhcp-range=fd00:77::,ra-only,64", "--pid-file",
             *(["--user=root"] if user.uid == 0 else [])], 0)
        server.wait_for_text("DHCP, IP range", SECONDS)
        with ending(server):
            got = []
            for node in (1, 2):
                client = [client_program, "-f", "-q", "-n", "-t", 10, "-T", 1, "-i", "ib0", "-s", script]
                nodes.run(client, node).require(rf"bound {LEASES}1[0-2]\d by {LEASES}1 for 3600 seconds")
                got.append(has_address(nodes, node, LEASES))
                # The client names itself after its port [RFC 4390 2.1].
                guid = nodes.interface(node)["address"][-23:]
                if not re.search(rf" {got[-1]} \S+ ff:\S+:{guid}$", leases.read_text(), re.MULTILINE):
                    raise Failed(f"the lease of node {node}, {got[-1]} for {guid}, is not in:\n{leases.read_text()}")
            if got[0] == got[1]:
                raise Failed(f"two nodes have the address {got[0]}")
            for node, address in ((1, f"{LEASES}1"), (1, got[1]), (2, got[0])):
                nodes.ping(node, address, "-I", has_address(nodes, node, LEASES)).require(" 0% packet loss")
            for node in (1, 2):
                wait_until(lambda node=node: has_address(nodes, node, "fd00:77:"), SECONDS,
                           f"an advertised address; dnsmasq says\n{harness.tail(server.text())}")
                nodes.ping(node, "fd00:77::1", "-6").require(" 0% packet loss")


# -- mDNS

def test_mdns(report, nodes):
    for service, browser in ((0, 1), (1, 0)):
        for family in ("224.0.0.251", "ff02::fb"):
            name = f"mDNS, node {service} to {browser}, {family}"
            if not report.wanted(name):
                continue
            with report.case(f"{name} ({MODE})"):
                check_mdns(nodes, service, browser, family)


def check_mdns(nodes, service, browser, family):
    if subprocess.run([PYTHON, "-c", "import zeroconf"], capture_output=True, check=False, timeout=SECONDS).returncode:
        raise harness.Skipped("python3-zeroconf is not installed (packages.txt)")
    of = nodes.link_local if ":" in family else nodes.ipv4
    announces = nodes.start([PYTHON, "-c", MDNS_SERVICE, of(service)], service, stdin=subprocess.PIPE)
    announces.wait_for_text("registered", SECONDS)
    looks = nodes.start([PYTHON, "-c", MDNS_BROWSER, of(browser)], browser)
    looks.wait_for_text("known", SECONDS)
    mgid = {"224.0.0.251": "ff12:401b:ffff::fb", "ff02::fb": "ff12:601b:ffff::fb"}[family]
    for node in (service, browser):
        group = next((one for one in nodes.interface(node)["groups"] if one["mgid"] == mgid), None)
        if group is None or (group["state"], group["membership"]) != ("joined", "full"):
            raise Failed(f"node {node} is no member of {mgid}: {group}")
    announces.process.stdin.close()
    nodes.fabric.end(announces, SECONDS).require()
    nodes.fabric.end(looks, SECONDS).require(r"^it\S+ Added$", rf"^4711 it.local. {of(service)} 1000$", r"^it\S+ Removed$")


# -- connections and ways

def test_ss(report, nodes):
    if not report.wanted("ss"):
        return
    with report.case(f"ss: a connection, its bytes, its segments ({MODE})"):
        need_program("socat")
        port, count = harness.free_port(), 1 << 20
        server = nodes.serve(["socat", "-u", f"TCP-LISTEN:{port}", "OPEN:/dev/null"], 0, port)
        client = nodes.start(["socat", "-u", "-", f"TCP:{nodes.ipv4(0)}:{port}"], 1, stdin=subprocess.PIPE)
        client.process.stdin.write(b"x" * count)
        client.process.stdin.flush()
        # Acknowledged are the SYN, too.
        wait_until(lambda: f"bytes_acked:{count + 1} " in nodes.output(["ss", "-Hltni", "state", "established"], 1), SECONDS,
                   "ss to show all bytes as acknowledged")
        for node, sport in ((0, f"sport = :{port}"), (1, f"dport = :{port}")):
            text = nodes.output(["ss", "-Htni", "state", "established", sport], node)
            if nodes.ipv4(0) not in text or nodes.ipv4(1) not in text:
                raise Failed(f"ss has another connection: {text}")
            # Segments have headers of IP and of TCP with time stamps.
            if f" pmtu:{MTU} " not in text or f" advmss:{MTU - 52} " not in text:
                raise Failed(f"ss has another MTU than {MTU}: {text}")
        if f"bytes_received:{count} " not in nodes.output(["ss", "-Htni", f"sport = :{port}"], 0):
            raise Failed("the server has other bytes")
        client.process.stdin.close()
        nodes.fabric.end(client, SECONDS).require()
        nodes.fabric.end(server, SECONDS).require()


def make_router(nodes):
    """Node 1 between two networks: node 0 in one, node 2 in the other."""
    nodes.run(["sh", "-c", "set -e; cd /proc/sys/net/ipv4; echo 1 > ip_forward; echo 0 > conf/all/send_redirects;"
               "echo 0 > conf/ib0/send_redirects;"
               f"ip addr add {HERE}1/24 dev ib0; ip addr add {THERE}1/24 dev ib0"], 1).require()
    for node, own, other in ((0, HERE, THERE), (2, THERE, HERE)):
        nodes.run(["sh", "-c", f"ip addr add {own}9/24 dev ib0 && ip route add {other}0/24 via {own}1 src {own}9"],
                  node).require()


def test_ways(report, nodes, user):
    ways = [("mtr", [], "mtr over a router"), ("mtr", ["--udp"], "mtr --udp over a router"),
            ("mtr", ["--tcp", "--port", "9"], "mtr --tcp over a router")]
    if not any(report.wanted(name) for *_, name in ways) and not report.wanted("traceroute, curl over a router"):
        return
    make_router(nodes)
    for program, options, name in ways:
        if report.wanted(name):
            with report.case(f"{name} ({MODE})"):
                shown = nodes.output([need_program(program), "-n", "-j", "-c", 3, *options, f"{THERE}9"], 0)
                hubs = json.loads(shown)["report"]["hubs"]
                if [hub["host"] for hub in hubs] != [f"{HERE}1", f"{THERE}9"] or any(hub["Loss%"] for hub in hubs):
                    raise Failed(f"mtr: {hubs}")
    if report.wanted("traceroute, curl over a router"):
        with report.case(f"traceroute, curl over a router ({MODE})"):
            nodes.run([need_program("busybox"), "traceroute", "-n", f"{THERE}9"], 0).require(
                rf"^ 1  {HERE}1  [\d.]+ ms", rf"^ 2  {THERE}9  [\d.]+ ms")
            with web_server(nodes, user, 2) as (port, folder):
                nodes.run(["curl", "-sS", "-o", folder / "got", f"http://{THERE}9:{port}/data"], 0).require()
                same(folder / "got", folder / "data")


# -- a web server

@contextlib.contextmanager
def web_server(nodes, user, node):
    program = need_program("nginx")
    folder = user.make_dir("softib-nginx-")
    data_file(folder, "data", SIZE)
    data_file(folder, "page", 100_000)
    port = harness.free_port()
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(folder=folder, port=port, user="user root;" if user.uid == 0 else ""))
    config.chmod(0o644)
    server = nodes.serve([program, "-c", config, "-p", folder, "-e", "stderr"], node, port)
    with ending(server):
        yield port, folder


def test_web(report, nodes, user):
    if report.wanted("nginx under ab"):
        with report.case(f"nginx under ab: a connection for each request ({MODE})") as remarks:
            with web_server(nodes, user, 0) as (port, folder):
                url, client = f"http://{nodes.ipv4(0)}:{port}/page", nodes.ipv4(1) + " "
                done = nodes.run([need_program("ab"), "-q", "-n", REQUESTS, "-c", 20, url], 1).require(
                    rf"^Complete requests: +{REQUESTS}$", r"^Failed requests: +0$", r"^Document Length: +100000 bytes$",
                    rf"^HTML transferred: +{REQUESTS * 100_000} bytes$")
                remarks.append(re.search(r"Requests per second: +(.*)", done.text).group(1))
                lines = (folder / "access.log").read_text().splitlines()
                good = [line for line in lines if line.startswith(client) and '" 200 100000 ' in line]
                if len(good) != REQUESTS:
                    raise Failed(f"nginx has served {len(good)} of {REQUESTS}; its log ends with\n{lines[-5:]}")
    if report.wanted("nginx under wrk"):
        with report.case(f"nginx under wrk: kept connections ({MODE})") as remarks:
            with web_server(nodes, user, 0) as (port, folder):
                url = f"http://{nodes.ipv4(0)}:{port}/page"
                done = nodes.run([need_program("wrk"), "-t", 2, "-c", 32, "-d", 3, url], 1).require(
                    forbid=("Socket errors", "Non-2xx"))
                count = int(re.search(r"(\d+) requests in", done.text).group(1))
                remarks.append(f"{count} requests")
                served = sum('" 200 ' in line for line in (folder / "access.log").read_text().splitlines())
                if not 32 < count <= served:
                    raise Failed(f"wrk has {count} answers, nginx has sent {served}")


# -- MPI

def test_mpi(report, nodes, user):
    kinds = (("TCP", ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "ib0"], {}),
             ("btl openib", mpi.OPENIB, mpi.OPENIB_ENV),
             ("pml ucx", ["--mca", "pml", "ucx", "-x", "UCX_TLS=rc_v,self"], {}))
    wanted = [kind for kind in kinds if report.wanted(f"OpenMPI, {kind[0]}")]
    if not wanted:
        return
    folder = user.make_dir("softib-mpi-")
    agent = folder / "agent"
    agent.write_text(AGENT.format(softib=user.bin / "softib", fabric=nodes.fabric.name))
    agent.chmod(0o755)
    for title, words, env in wanted:
        with report.case(f"OpenMPI, {title}: four ranks in the networks of two nodes ({MODE})") as remarks:
            need_program("mpirun.openmpi")
            for name in ("ring", "alltoall"):
                mpi.build_program("openmpi", PROGRAMS / f"{name}.c", folder / name)
                before = [received_bytes(nodes, node) for node in (0, 1)]
                job = [*mpi.OPENMPI, "--mca", "plm_rsh_agent", agent, "--mca", "oob_tcp_if_include", "ib0",
                       "-H", "node0:2,node1:2", *words, "-n", 4, folder / name]
                nodes.run(job, 0, seconds=240, env={**mpi.SETTINGS, **env}).require(rf"^{name} ok: 4 ranks")
                moved = [received_bytes(nodes, node) - one for node, one in enumerate(before)]
                remarks.append(f"{name}: {moved[0] >> 20} and {moved[1] >> 20} MiB over ib0")
                if (title == "TCP") != (min(moved) > 10 << 20):
                    raise Failed(f"{moved} bytes came over ib0")


# -- ip link

def test_mtu(report, nodes):
    if not report.wanted("ip link set ib0 mtu"):
        return
    with report.case(f"ip link set ib0 mtu ({MODE})"):
        address = nodes.ipv4(1)
        for node in (0, 1):
            nodes.run(["ip", "link", "set", "ib0", "mtu", "1500"], node).require()
        nodes.ping(0, address, "-M", "do", "-s", 1472).require(" 0% packet loss")
        nodes.ping(0, address, "-M", "do", "-s", 1473).require("message too long, mtu=1500", code=1)
        # The other one's is larger: its packets arrive nevertheless, as on hardware.
        nodes.run(["ip", "link", "set", "ib0", "mtu", str(MTU)], 0).require()
        nodes.ping(0, address, "-s", MTU - 28, "-M", "do").require(" 0% packet loss")
        nodes.run(["ip", "link", "set", "ib0", "mtu", str(MTU)], 1).require()
        nodes.ping(0, address, "-s", MTU - 28, "-M", "do").require(" 0% packet loss")


def test_down_and_up(report, nodes):
    if not report.wanted("ip link set ib0 down"):
        return
    with report.case(f"ip link set ib0 down, up ({MODE})"):
        address, six, before = nodes.ipv4(1), f"{nodes.link_local(1)}%ib0", nodes.addresses(1)
        nodes.ping(0, address).require(" 0% packet loss")
        nodes.run(["ip", "link", "set", "ib0", "down"], 1).require()
        nodes.ping(0, address, count=1).require("100% packet loss", code=1)
        nodes.ping(1, nodes.ipv4(0), count=1).require("Network is unreachable", code=2)
        nodes.run(["ip", "link", "set", "ib0", "up"], 1).require()
        wait_until(lambda: nodes.addresses(1) == before, SECONDS, "the addresses of ib0 to be those of before")
        wait_until(lambda: nodes.ping(0, address, count=1).code == 0, SECONDS, "a ping to come through")
        wait_until(lambda: nodes.ping(0, six, "-6", count=1).code == 0, SECONDS, "a ping of IPv6 to come through")


def test(report, user):
    with harness.Fabric(nodes=3, user=user) as fabric:
        nodes = Nodes(fabric).hold(0, 1, 2)
        test_down_and_up(report, nodes)
        test_mtu(report, nodes)
        test_ss(report, nodes)
        test_ssh(report, nodes, user)
        test_mdns(report, nodes)
        test_web(report, nodes, user)
        # OpenMPI takes one address of an interface for its only one, so it comes before those that give it more.
        test_mpi(report, nodes, user)
        test_dhcp(report, nodes, user)
        test_ways(report, nodes, user)


if __name__ == "__main__":
    harness.main("programs over IP over InfiniBand", test)
