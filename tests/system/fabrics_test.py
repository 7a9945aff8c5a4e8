#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Fabrics side by side on one machine: each has its own addresses, and programs of two fabrics do not meet over TCP.

fabrics_test.py [--as root|nobody] [--only REGEX]
"""
import contextlib
import os

import harness
from harness import Failed

SECONDS = 40
# Serves one client on all addresses of the machine, or on one.
SERVER = """
import socket, sys
server = socket.create_server((sys.argv[2], int(sys.argv[1])))
print("listens", flush=True)
client, _ = server.accept()
client.sendall(sys.argv[3].encode())
"""
# The text that the server sends, or the name of the error.
CLIENT = """
import errno, socket, sys
try:
    address = socket.getaddrinfo(sys.argv[2], int(sys.argv[1]), socket.AF_INET, socket.SOCK_STREAM)[0][4]
    if sys.argv[3] == "mapped":
        client = socket.socket(socket.AF_INET6)
        address = ("::ffff:" + address[0], address[1])
    else:
        client = socket.socket()
    client.settimeout(20)
    client.connect(address)
    print(client.recv(100).decode())
except OSError as error:
    print(errno.errorcode[error.errno])
"""
PYTHON = "/usr/bin/python3"


def addresses(fabric):
    return [node["addresses"][0]["ip"] for node in fabric.state()["nodes"]]


def serve(fabric, port, text, node=1, host=""):
    server = fabric.start([PYTHON, "-c", SERVER, port, host, text], node)
    server.wait_for_text("listens", SECONDS)
    return server


def reaches(fabric, port, expected, host="node1", how="plain"):
    said = fabric.run([PYTHON, "-c", CLIENT, port, host, how], 0, SECONDS).require().text.split()[-1]
    if said != expected:
        raise Failed(f"a client of {fabric.name} to {host} ({how}): {said}, not {expected}")


def meet(report, one, two, title):
    """Servers of `one`, clients of `two`."""
    with report.case(f"{title}: addresses of their own"):
        shared = set(addresses(one)) & set(addresses(two))
        if shared:
            raise Failed(f"both have {shared}")
    with report.case(f"{title}: a server on all addresses serves its own fabric only"):
        port = harness.free_port()
        server = serve(one, port, "one")
        for how in ("plain", "mapped"):
            reaches(two, port, "ECONNREFUSED", how=how)
        reaches(two, port, "ECONNREFUSED", host=addresses(one)[1])
        reaches(one, port, "one")
        one.end(server, SECONDS).require()
    with report.case(f"{title}: the port is free for the other fabric afterwards"):
        for fabric, text in ((two, "two"), (one, "one")):
            server = serve(fabric, port, text)
            reaches(fabric, port, text)
            fabric.end(server, SECONDS).require()
    with report.case(f"{title}: both have a server at one port of a node's address"):
        servers = [(fabric, serve(fabric, port, fabric.name + str(number), host="node1"))
                   for number, fabric in enumerate((one, two))]
        for number, (fabric, server) in enumerate(servers):
            reaches(fabric, port, fabric.name + str(number))
            fabric.end(server, SECONDS).require()
    with report.case(f"{title}: localhost is the machine's, and servers outside of softib serve all"):
        server = serve(one, port, "one")
        reaches(two, port, "one", host="localhost")
        one.end(server, SECONDS).require()
        outside = harness.Program([PYTHON, "-c", SERVER, port, "", "outside"])
        outside.wait_for_text("listens", SECONDS)
        try:
            reaches(two, port, "outside")
        finally:
            outside.kill()
    with report.case(f"{title}: ib_send_lat does not find the other one's server"):
        harness.need_program("ib_send_lat")
        port = harness.free_port()
        server = one.start(["ib_send_lat", "-p", port, "-n", 100], 1)
        harness.wait_until(lambda: harness.is_listening(server.pid, port) or not server.running(), SECONDS,
                           "ib_send_lat to listen")
        refused = two.run(["ib_send_lat", "-p", port, "-n", 100, "node1"], 0, SECONDS)
        if refused.code in (None, 0) or "Couldn't connect" not in refused.text:
            raise Failed(f"code {refused.code}: {refused.text}")
        one.run(["ib_send_lat", "-p", port, "-n", 100, "node1"], 0, SECONDS).require()
        one.end(server, SECONDS).require()


def many(report, user):
    with report.case("twenty fabrics of one user and one name have addresses of their own"):
        with contextlib.ExitStack() as stack:
            seen = [address for _ in range(20)
                    for address in addresses(stack.enter_context(harness.Fabric(nodes=2, user=user)))]
            if len(set(seen)) != len(seen):
                raise Failed(f"some have the same: {sorted(seen)}")
    with report.case("a fabric has the same addresses on every start"):
        found = []
        for _ in range(2):
            with harness.Fabric(nodes=2, user=user, name=f"stable{os.getpid()}") as fabric:
                found.append(addresses(fabric))
        if found[0] != found[1]:
            raise Failed(f"{found}")


def test(report, user):
    if report.wanted("meet"):
        with harness.Fabric(nodes=2, user=user) as one:
            with harness.Fabric(nodes=2, user=user) as two:
                meet(report, one, two, "one user, one name")
            with harness.Fabric(nodes=2, user=user, name="u") as two:
                meet(report, one, two, "one user, two names")
            if os.getuid() == 0 and user.uid != 0:
                with harness.Fabric(nodes=2, user=harness.User()) as two:
                    meet(report, one, two, "two users")
    if report.wanted("many"):
        many(report, user)


harness.main("fabrics", test)
