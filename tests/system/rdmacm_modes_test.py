#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The modes of the programs of rdmacm-utils: address families and formats, port spaces, queue pairs, ways to wait; over
cables, in network namespaces, with as much data and as many connections as people try.

rdmacm_modes_test.py [--as root|nobody] [--only REGEX] [--link-layer ethernet]     REGEX: of the parts' names, in test()
"""
import os
import pathlib
import random
import shutil

import harness
import rdmacm_test
from harness import Failed, Skipped
from rdmacm_test import SECONDS, SERVER, connect, leaves_nothing, start_server

CONFIG = rdmacm_test.CONFIG + """[[node]]
name = "node2"
addresses = ["127.77.0.3", "fd00:77::3"]
"""
CABLES = """[[link]]
ports = ["node0/softib0/1", "node1/softib0/1"]
"""
MIB = 1 << 20
POLLHUP = 16
RSTREAM_PORT = 7471
# Those of `rstream -S all`; of Ethernet ports every fourth.
STREAM_SIZES = [64, *(size for power in range(7, 23) for size in (1 << power, 3 << power - 1))]
STREAM_SIZES = STREAM_SIZES[::4 if harness.ETHERNET else 1]
# Each way of calls with each size, combined ways with some; always verified (v).
STREAM_WAYS = {"rstream": ("a", "b", "n", "r"), "riostream": ("a", "b", "n")}
if harness.ETHERNET:  # of InfiniBand ports in all_sizes()
    STREAM_WAYS = {name: ("", *ways) for name, ways in STREAM_WAYS.items()}
COMBINED_WAYS = {"rstream": ("an", "ar", "br", "nr", "bn", "abnr"), "riostream": ("an", "bn", "abn")}
COMBINED_SIZES = (64, 96 << 10, 6 * MIB)
# librspreload's, for servers that fork. If it is another user's, the server cannot open it and stays on TCP, and its
# client waits without end.
SEMAPHORE = pathlib.Path("/dev/shm/sem.rsocket_fork")


def gid(fabric, node):
    state = fabric.state()
    return state["nodes"][node]["hcas"][0]["ports"][0]["gids"][0]["gid"]


def gids(fabric, report):
    """AF_IB addresses; librdmacm uses the commands for them also with IP addresses, once it has seen that they work."""
    own = gid(fabric, 1)
    server = gid(fabric, 0)
    for name, options in (("ucmatose", ["-c", "4", "-C", "10"]), ("ucmatose", ["-P", "ib", "-c", "4", "-C", "10"]),
                          ("udaddy", ["-c", "4", "-C", "10"]), ("rstream", ["-S", "4096", "-C", "20", "-T", "v"]),
                          ("riostream", ["-S", "4096", "-C", "20", "-T", "v"])):
        with report.case(f"{name} -f gid {' '.join(options)}"):
            if harness.ETHERNET:
                raise Skipped("GIDs are addresses of InfiniBand ports")
            words = [name, "-f", "gid", *options]
            connect(fabric, [*words, "-b", server], [*words, "-b", own, "-s", server])
    with report.case("a GID that no port has"):
        if harness.ETHERNET:
            raise Skipped("GIDs are addresses of InfiniBand ports")
        client = fabric.run(["ucmatose", "-f", "gid", "-s", "fe80::77", "-b", own, "-c", "1"], 1, SECONDS)
        if client.code is None or "ROUTE_ERROR" not in client.text:
            raise Failed(f"{client.text}")
        fabric.softib("trace", "--fabric", fabric.name).require("no InfiniBand port has this GID")
    leaves_nothing(fabric)


def spaces(fabric, report):
    address = SERVER[4]
    for options in (["-P", "ib"], ["-m"], ["-t", "4"], ["-a", "15"], ["-S", "65536", "-C", "3"]):
        with report.case(f"ucmatose {' '.join(options)}"):
            words = ["ucmatose", "-c", "3", *(["-C", "10"] if "-C" not in options else []), *options]
            connect(fabric, [*words, "-b", address], [*words, "-s", address])
    for options in (["-p", "0x2"], ["-P", "ipoib"], ["-S", "2000"]):
        with report.case(f"udaddy {' '.join(options)}"):
            connect(fabric, ["udaddy", "-b", address, "-c", "2", "-C", "10", *options],
                    ["udaddy", "-s", address, "-c", "2", "-C", "10", *options])
    for options in (["-q"], ["-S", "65535"], ["-S", "23", "-d"], ["-I", "127.77.0.2"]):
        with report.case(f"rping {' '.join(options)}"):
            own = [word for word in options if options[0] != "-I"]
            connect(fabric, ["rping", "-s", "-a", address, "-C", "10", "-V", *own],
                    ["rping", "-c", "-a", address, "-C", "10", "-V", *options])
    for kind, title in (("r", "RC"), ("x", "XRC")):
        with report.case(f"rdma_xserver and rdma_xclient, {title}"):
            connect(fabric, ["rdma_xserver", "-c", kind], ["rdma_xclient", "-s", address, "-c", kind])
    leaves_nothing(fabric)


def groups(fabric, report):
    addresses = ("127.77.0.1", "127.77.0.2", "127.77.0.3")
    for title, options in (("IPv4", ["-m", "239.77.1.1"]), ("IPv6", ["-m", "ff0e::77"]),
                           ("port space IPoIB", ["-p", "0x2", "-m", "239.77.1.2"]),
                           ("a sender that is no receiver", ["-m", "239.77.1.3"])):
        with report.case(f"mckey on three nodes, {title}"):
            own = [address if "." in options[-1] else f"fd00:77::{node + 1}" for node, address in enumerate(addresses)]
            words = ["mckey", *options, "-C", "5"]
            receivers = [fabric.start(["stdbuf", "-oL", *words, "-b", own[node]], node) for node in (0, 1)]
            for receiver in receivers:
                receiver.wait_for_text("joined dgid", SECONDS)
            only = ["-o"] if title.startswith("a sender") else []
            fabric.run([*words, *only, "-s", "-b", own[2]], 2, SECONDS).require()
            for receiver in receivers:
                fabric.end(receiver, SECONDS).require()
    leaves_nothing(fabric)


def fork_mode(fabric):
    """A server that forks for its client uses calls of sockets, which the preload library of librdmacm turns into
    rsockets after the fork. The two sides connect by TCP first."""
    library = next(pathlib.Path("/usr/lib").glob("*/rsocket/librspreload.so"), None)
    if library is None:
        raise Skipped("librspreload.so is not installed (librdmacm1)")

    try:
        SEMAPHORE.unlink(missing_ok=True)
    except PermissionError as error:
        raise Skipped(f"{SEMAPHORE} is another user's") from error

    def received():
        counter = "/sys/class/infiniband/softib0/ports/1/counters/port_rcv_packets"
        return int(fabric.run(["cat", counter], 0).require().text)

    env = {"LD_PRELOAD": str(library), "RDMAV_FORK_SAFE": "1"}
    words = ["rstream", "-S", "100000", "-C", "20", "-T", "v"]
    before = received()
    server = fabric.start([*words, "-T", "f", "-b", SERVER[4]], 0, env=env)
    harness.wait_until(lambda: harness.is_listening(server.pid, RSTREAM_PORT) or not server.running(), SECONDS,
                       "rstream to listen")
    fabric.run([*words, "-T", "s", "-s", SERVER[4]], 1, SECONDS, env=env).require(r"^custom +97k +20 ")
    fabric.end(server, SECONDS).require(r"^custom +97k +20 ")
    SEMAPHORE.unlink(missing_ok=True)
    if received() == before:
        raise Failed("node0 has received no packet: the data went over TCP")


def streams(fabric, report):
    for name, kinds in (("rstream", "abnrv"), ("riostream", "abnv")):
        for options in (*([kind] for kind in kinds), ["b", "v"], ["a", "v"]):
            with report.case(f"{name} -T {' -T '.join(options)}"):
                words = [name, "-S", "100000", "-C", "20"]
                for option in options:
                    words += ["-T", option]
                server = start_server(fabric, [*words, "-b", SERVER[4]])
                client = fabric.run([*words, "-s", SERVER[4]], 1, SECONDS)
                # It takes the end of its peer for an error, also if there are data left to read.
                client.require(code=client.code if name == "rstream" and client.code == POLLHUP else 0)
                fabric.end(server, SECONDS).require()
    with report.case("rstream -T f -T v, over librspreload"):
        fork_mode(fabric)
    with report.case("rstream -k, IPv6"):
        connect(fabric, ["rstream", "-S", "1000", "-C", "5", "-k", "30", "-b", SERVER[6]],
                ["rstream", "-S", "1000", "-C", "5", "-k", "30", "-s", SERVER[6]])
    leaves_nothing(fabric)


def stream(fabric, name, ways, size):
    """A program prints its line if all that it has received is right. Listening comes before the head of the lines."""
    line = r"^custom +\S+ +4 +1 "
    words = ["stdbuf", "-oL", name, "-S", size, "-C", "4", *(word for way in (*ways, "v") for word in ("-T", way))]
    server = fabric.start([*words, "-b", SERVER[4]], 0)
    server.wait_for_text("usec/xfer", SECONDS)
    client = fabric.run([*words, "-s", SERVER[4]], 1, SECONDS)
    if client.code == POLLHUP and name == "rstream" and "a" in ways:  # as in streams()
        client.require(code=POLLHUP)
    else:
        client.require(line)
    fabric.end(server, SECONDS).require(line)


def all_sizes(fabric, report):
    """As they are without other options, but 100,000 exchanges of a small size, in which both sides spin: beside other
    programs they take six times as long, so this part has a place of its own (tests/system/CMakeLists.txt)."""
    for name in ("rstream", "riostream"):
        with report.case(f"{name} -S all"):
            connect(fabric, [name, "-S", "all"], [name, "-s", SERVER[4], "-S", "all"], seconds=120)


def sizes(fabric, report):
    some = sorted(random.sample(STREAM_SIZES, 8)) if harness.SOME else STREAM_SIZES
    for name in ("rstream", "riostream"):
        for ways in STREAM_WAYS[name]:
            with report.case(f"{name} {f'-T {ways} ' if ways else ''}-T v, {len(some)} sizes of 64 bytes to 6 MiB"):
                for size in some:
                    stream(fabric, name, ways, size)
        for ways in COMBINED_WAYS[name]:
            with report.case(f"{name} -T {' -T '.join((*ways, 'v'))}, 64 bytes, 96 KiB, 6 MiB"):
                for size in COMBINED_SIZES:
                    stream(fabric, name, ways, size)
        # One size: librdmacm's server sees its client after 5 s.
        with report.case(f"{name} -T a -T b -T v"):
            stream(fabric, name, "ab", COMBINED_SIZES[1])
    leaves_nothing(fabric)


def amounts(fabric, report):
    with report.case("cmtime, 1000 connections"):
        connect(fabric, ["cmtime", "-c", "1000"], ["cmtime", "-s", SERVER[4], "-c", "1000"], server_code=None,
                seconds=120)
    mib = 256 if harness.SOME else 1024
    with report.case(f"rcopy of {mib} MiB"):
        if shutil.disk_usage(fabric.runtime).free < 3 << 30:
            raise Skipped(f"{fabric.runtime} has no 3 GiB left")
        source, target = fabric.runtime / "source", fabric.runtime / "target"
        block = os.urandom(MIB)
        with open(source, "wb") as file:
            for number in range(mib):
                file.write(number.to_bytes(8, "little") + block[8:])
        source.chmod(0o644)
        connect(fabric, ["rcopy"], ["rcopy", source, f"{SERVER[4]}:{target}"], server_code=None, seconds=300)
        same = harness.digest(source) == harness.digest(target)
        source.unlink()
        target.unlink()
        if not same:
            raise Failed("the copy differs")
    leaves_nothing(fabric)


def cables(user, report):
    """The two ends of a cable are a subnet of their own, with its administrator; so are the nodes without one."""
    with harness.Fabric(nodes=4, user=user, config=CABLES) as fabric:
        for server, client in ((0, 1), (1, 0), (2, 3)):
            with report.case(f"rping from node{client} to node{server}, of which 0 and 1 have a cable"):
                connect(fabric, ["rping", "-s", "-C", "5"], ["rping", "-c", "-a", f"node{server}", "-C", "5"],
                        (server, client))
        with report.case("mckey over a cable"):
            address = fabric.state()
            own = [node["addresses"][0]["ip"] for node in address["nodes"]]
            words = ["mckey", "-m", "239.77.2.1", "-C", "5"]
            receiver = fabric.start(["stdbuf", "-oL", *words, "-b", own[0]], 0)
            receiver.wait_for_text("joined dgid", SECONDS)
            fabric.run([*words, "-s", "-b", own[1]], 1, SECONDS).require()
            fabric.end(receiver, SECONDS).require()
        with report.case("from a cable nobody else is reached"):
            if harness.ETHERNET:
                raise Skipped("Ethernet ports need no route: the request is repeated for more than a minute")
            server = start_server(fabric, ["rping", "-s", "-C", "5"], 2)
            client = fabric.run(["rping", "-c", "-a", "node2", "-C", "5"], 0, SECONDS)
            if client.code in (0, None):
                raise Failed(f"rping ended with {client.code}:\n{client.text}")
            server.kill()
        leaves_nothing(fabric)


def udpong(user, report):
    """udpong finds its peer by UDP packets of the kernel, so its nodes need addresses of the kernel's networks."""
    import node_names_test  # noqa: PLC0415 - its namespaces
    for options in ([], ["-T", "e"], ["-T", "a"], ["-T", "b"], ["-T", "n"]):
        with report.case(f"udpong {' '.join(options)} in two network namespaces"):
            harness.need_program("udpong")
            if user.uid != 0:
                raise Skipped("only root can join two network namespaces")
            if harness.ETHERNET:
                raise Skipped("rsockets make address handles without a GID for datagrams, which no RoCE adapter takes")
            with harness.Fabric(nodes=2, user=user) as fabric, node_names_test.two_networks() as inside:
                server = fabric.start(["udpong", "-b", "10.231.0.1", *options], 0, before=inside[0])
                holder = inside[0][2]
                harness.wait_until(lambda p=holder, s=server: harness.has_udp_port(p, 7174) or not s.running(), SECONDS,
                                   "udpong to have its port")
                client = fabric.run(["udpong", "-s", "10.231.0.1", "-C", "100", "-S", "512", *options], 1, SECONDS,
                                    before=inside[1])
                client.require(r"custom +512")
                server.kill()


def test(report, user):
    harness.need_program("rping")
    parts = [part for part in (gids, spaces, groups, streams, all_sizes, sizes, amounts) if report.wanted(part.__name__)]
    if parts:
        with harness.Fabric(nodes=3, user=user, config=CONFIG) as fabric:
            for part in parts:
                part(fabric, report)
    for part in (cables, udpong):
        if report.wanted(part.__name__):
            part(user, report)


if __name__ == "__main__":
    harness.main("rdmacm_modes", test)
