#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Adapters that come, go and sleep under running, unmodified programs: the errors of the programs, and that softibd
survives.

devices_test.py [--as root|nobody] [--only REGEX]      of the functions below
"""
import json
import os
import pathlib
import re

import examples
import harness
from support.device_tree import (BUSY, NOT_FOUND, PING_CONFIG, daemon_pid, devices, hca_of, objects, ping_notes,
                                 pings_go_on, require, softib, store_folder, write_store)

FOREVER = "200000000"  # iterations of a pingpong that is meant to be interrupted


def watch(fabric, node=0):
    program = fabric.start(["ibv_asyncwatch"], node)
    program.wait_for_text(r"softib0: async event FD \d+", 20)
    return program


def messages(fabric):
    """Messages that node 1 has sent so far."""
    state = json.loads(softib(fabric, "status", "--json").text)
    return state["nodes"][1]["hcas"][0]["ports"][0]["counters"]["sent_messages"]


def pingpong(fabric):
    """Both sides of a pingpong that runs; the server is on node 0."""
    port = str(harness.free_port())
    words = ["ibv_rc_pingpong", "-p", port, "-n", FOREVER]
    before = messages(fabric)
    server = fabric.start(words, 0)
    harness.wait_until(lambda: harness.is_listening(server.pid, int(port)), 20, "the server to listen")
    client = fabric.start([*words, harness.HOST], 1)
    harness.wait_until(lambda: messages(fabric) > before + 1000, 20, "the pingpong to run")
    return server, client


def show(report, fabric):
    with report.case("devices and names are shown"):
        text = softib(fabric, "devices").text
        for pattern in (r"^ROOT\\SOFTIB\\0 +started", r"^    SOFTIB\\V\w+P\w+v\w+\\0253460000000000 +started +soft_hca \+ ib_bus",
                        r"^      IBA\\IPoIB\\0253460000000001-ffff-ipoib +no driver"):
            require(re.search(pattern, text, re.MULTILINE), f"no {pattern!r} in\n{text}")
        names = softib(fabric, "ls").text
        require(re.search(r"device +softib0 +node0/softib0 \(ib_bus\)", names), names)
        names = softib(fabric, "ls", "\\Device\\ibal", "--node", "1").text
        require("link       0253460000010000 -> \\Device\\softib0" in names, names)
        softib(fabric, "ls", "\\Nothing", code=NOT_FOUND)
        drivers = softib(fabric, "driver", "list").text
        require(re.search(r"^soft_hca +function +loaded +2 devices", drivers, re.MULTILINE), drivers)


LATE = """
import time
from pyverbs.device import Context, get_device_list
first = Context(name='softib0')
print('attached', flush=True)
deadline = time.monotonic() + 15
while not any(d.name == b'softib1' for d in get_device_list()):
    assert time.monotonic() < deadline, 'softib1 does not appear'
    time.sleep(0.05)  # tidy: allow(sleep) looks again until the deadline
second = Context(name='softib1')
assert second.query_port(1).state == 4 and first.query_port(1).state == 4
print('opened softib1')
"""


def remove_and_add(report, fabric):
    with report.case("hca remove: vetoed by its user, then done; hca add brings it back"):
        program = watch(fabric)
        result = softib(fabric, "hca", "remove", "softib0", code=BUSY)
        require(re.search(rf"in use by pid \d+ \(ibv_asyncwatch\) on node0", result.text), result.text)
        require(program.running(), "the program ended by a removal that was refused")
        program.kill()
        harness.wait_until(lambda: not hca_of(fabric)["open_files"], 20, "its file to be closed")
        softib(fabric, "hca", "remove", "softib0")
        fabric.run(["ibv_devices"]).require(forbid=[r"softib0"])
        fabric.run(["ibv_devinfo"]).require(r"No IB devices found", code=255)
        softib(fabric, "hca", "remove", "softib0", code=NOT_FOUND)
        softib(fabric, "hca", "add")
        fabric.run(["ibv_devinfo"]).require(r"hca_id:\s+softib0", r"state:\s+PORT_ACTIVE")
        for result in fabric.pair(["ibv_rc_pingpong"]):
            result.require(r"iters in")

    with report.case("hca add: one more than there were; a program that had attached before can open it"):
        late = fabric.start(["/usr/bin/python3", "-c", LATE], 1)
        late.wait_for_text("attached", 20)
        softib(fabric, "hca", "add", "softib1", "--node", "1")
        fabric.end(late, 20).require(r"opened softib1")
        fabric.run(["ibv_devices"], 1).require(r"softib0", r"softib1")
        fabric.run(["ibv_devinfo", "-d", "softib1"], 1).require(r"state:\s+PORT_ACTIVE")
        softib(fabric, "hca", "add", "softib1", "--node", "1", code=1)
        softib(fabric, "hca", "remove", "softib1", "--node", "1")


def eject(report, fabric):
    with report.case("hca eject under a pingpong: device fatal, errors, no hang; the next one works") as remarks:
        program = watch(fabric)
        server, client = pingpong(fabric)
        softib(fabric, "hca", "eject", "softib0")
        program.wait_for_text(r"event_type IBV_EVENT_DEVICE_FATAL", 20)
        for side in (server, client):
            result = fabric.end(side, 30)
            require(result.code not in (None, 0), f"{result.name} ended with {result.code}:\n{result.text}")
            require(result.code > 0, f"{result.name} was killed by signal {-result.code}:\n{result.text}")
            remarks.append(re.search(r"[^\n]*(status|error|Couldn't|Failed|completion)[^\n]*", result.text)[0][:60])
        program.kill()
        harness.wait_until(lambda: not devices(fabric)["leaving"], 20, "the ejected HCA to be forgotten")
        softib(fabric, "hca", "add")
        for result in fabric.pair(["ibv_rc_pingpong"]):
            result.require(r"iters in")


def port(report, fabric):
    with report.case("port down and up under a pingpong"):
        program = watch(fabric)
        softib(fabric, "port", "down")
        program.wait_for_text(r"event_type IBV_EVENT_PORT_ERR", 20)
        softib(fabric, "port", "up")
        program.wait_for_text(r"event_type IBV_EVENT_PORT_ACTIVE", 20)
        program.kill()


def power(report, fabric):
    with report.case("power sleep and resume under a pingpong: it waits and goes on"):
        program = watch(fabric)
        server, client = pingpong(fabric)
        softib(fabric, "power", "sleep", "--node", "0")
        program.wait_for_text(r"event_type IBV_EVENT_PORT_ERR", 20)
        require(hca_of(fabric)["power"] == "D3", "the HCA is not off")
        status = softib(fabric, "status", "--json").text

        before = messages(fabric)
        require("asleep" in status, f"no port is asleep in\n{status}")
        # Longer than the retry time of ibv_rc_pingpong (timeout 14, 7 retries: 0.54 s).
        with_delay = fabric.run(["sleep", "1.5"], 1)
        with_delay.require()
        require(messages(fabric) == before, "messages passed a sleeping HCA")
        for side in (server, client):
            require(side.running(), f"{side.describe()} did not survive sleep:\n{side.text()}")
        # A control request waits too.
        info = fabric.start(["ibv_devinfo"], 0)
        softib(fabric, "power", "sleep", "--node", "0", code=1)
        softib(fabric, "power", "resume", "--node", "0")
        program.wait_for_text(r"event_type IBV_EVENT_PORT_ACTIVE", 20)
        fabric.end(info, 20).require(r"state:\s+PORT_ACTIVE")
        harness.wait_until(lambda: messages(fabric) > before + 1000, 30, "the pingpong to go on")
        for side in (server, client):
            require(side.running(), f"{side.describe()} did not survive resume:\n{side.text()}")
            side.kill()
        program.kill()

    with report.case("all nodes hibernate and resume; a program that dies in its sleep leaves nothing"):
        server, client = pingpong(fabric)
        softib(fabric, "power", "hibernate")
        client.kill()
        softib(fabric, "power", "resume")
        result = fabric.end(server, 30)
        require(result.code not in (None, 0), f"{result.name} ended with {result.code}:\n{result.text}")
        state = harness.wait_until(lambda: (lambda s: s if not s["clients"] else None)(
            json.loads(softib(fabric, "status", "--json").text)), 20, "all clients to be gone")
        require(all(count == 0 for count in state["objects"].values()), f"objects are left: {state['objects']}")


def partition(report, fabric):
    with report.case("partition add and remove: event, P_Key table, device"):
        program = watch(fabric)
        softib(fabric, "partition", "add", "0x8001")
        program.wait_for_text(r"event_type IBV_EVENT_PKEY_CHANGE", 20)
        fabric.run(["cat", "/sys/class/infiniband/softib0/ports/1/pkeys/1"]).require(r"^0x8001$")
        require(any(c["id"].startswith("IBA\\IPoIBP\\0253460000000001-8001-i8001")
                    for c in hca_of(fabric)["children"]), "no device for the partition")
        softib(fabric, "partition", "add", "0x0001", "--name", "itwo", code=1)
        softib(fabric, "partition", "add", "zzz", code=2)
        softib(fabric, "partition", "remove", "0x8001")
        softib(fabric, "partition", "remove", "0x8001", code=NOT_FOUND)
        fabric.run(["cat", "/sys/class/infiniband/softib0/ports/1/pkeys/1"]).require(code=1)
        program.kill()


def partition_traffic(report, fabric):
    with report.case("partitions keep queue pairs apart: same P_Key, then another one") as remarks:
        harness.need_program("ib_write_bw")
        command = ["ib_write_bw", "-F", "-n", "100", "--pkey_index=1"]
        for node in ("0", "1"):
            softib(fabric, "partition", "add", "0x8001", "--node", node)
        for result in fabric.pair(command):
            result.require(r"BW average")
        softib(fabric, "partition", "remove", "0x8001", "--node", "1")
        softib(fabric, "partition", "add", "0x8002", "--node", "1")
        server, client = fabric.pair(command, server_ends=False)
        text = client.require(code=1).text
        remarks.append(re.search(r"[^\n]*[Ff]ail[^\n]*", text)[0][:60])
        trace = softib(fabric, "trace").text
        require("P_Key" in trace, f"the trace does not say why:\n{trace}")
        softib(fabric, "partition", "remove", "0x8001", "--node", "0")
        softib(fabric, "partition", "remove", "0x8002", "--node", "1")


def drivers(report, fabric):
    with report.case("driver unload: vetoed while in use, and by drivers that depend on it"):
        program = watch(fabric)
        result = softib(fabric, "driver", "unload", "ib_bus", code=BUSY)
        require("is in use by pid" in result.text, result.text)
        result = softib(fabric, "driver", "unload", "soft_hca", code=BUSY)
        require("ib_bus is loaded and depends on soft_hca" in result.text, result.text)
        softib(fabric, "driver", "unload", "nothing", code=NOT_FOUND)
        require(program.running(), "the program ended")
        program.kill()


CONFIG = """
drivers = "drivers"
ipoib = false
[[child]]
name = "test"
device_id = 'IBA\\Test'
description = "a third-party client"
[[partition]]
pkey = 0x8001
name = "i8001"
"""


def write_test_store(folder, user, serving="good"):
    """The test's modules; only the module `serving` has the child's id."""
    return write_store(folder, user, CONFIG, {
        name: (f"test-bin/drivers/libtest_driver_{name}.so", "IBA\\Test" if name == serving else "IBA\\Nothing")
        for name in ("good", "leaky", "silent")})


def ping_driver(report, user):
    with report.case("a driver uses the verbs: instances of examples/driver_ping ping over UD and RC"), \
            store_folder(user) as folder:
        config = write_store(folder, user, PING_CONFIG, {"ping": (examples.ready().driver_ping, "IBA\\Ping")})
        with harness.Fabric(nodes=3, user=user, name="ping", extra=["--config", str(config)]) as fabric:
            pings_go_on(fabric, 3, 2, broken=0)
            require(objects(fabric)["qp"] == 3 + 6, f"{objects(fabric)}: not the queue pairs of the drivers")
            softib(fabric, "hca", "eject", "--node", "node1", "softib0")
            pings_go_on(fabric, 2, 1)
            harness.wait_until(lambda: objects(fabric)["qp"] == 2 + 2, 20, "what belonged to the ejected one to go")
            softib(fabric, "hca", "add", "--node", "node1", "softib0")
            pings_go_on(fabric, 3, 2)
            # On request the driver releases the adapter; it opens it again if another client objects.
            program = watch(fabric, 2)
            softib(fabric, "hca", "remove", "--node", "node2", "softib0", code=BUSY)
            pings_go_on(fabric, 3, 2)
            program.kill()
            harness.wait_until(lambda: len(hca_of(fabric, 2)["open_files"]) == 1, 20, "its file to be closed")
            softib(fabric, "hca", "remove", "--node", "node2", "softib0")
            pings_go_on(fabric, 2, 1)
            softib(fabric, "hca", "add", "--node", "node2", "softib0")
            pings_go_on(fabric, 3, 2)

            softib(fabric, "power", "sleep")
            asleep = ping_notes(fabric)
            fabric.softib("status", "--fabric", fabric.name).require("asleep")
            require(ping_notes(fabric) == asleep, "pings passed sleeping HCAs")
            softib(fabric, "power", "resume")
            pings_go_on(fabric, 3, 2)
            require([note[5] for note in ping_notes(fabric)] == [note[5] for note in asleep], "sleep broke connections")

            softib(fabric, "port", "down", "--node", "node0")
            harness.wait_until(lambda: any(note[5] > was[5] for note, was in zip(ping_notes(fabric), asleep)), 20,
                               "the connections of a port that is down to break")
            softib(fabric, "port", "up", "--node", "node0")
            pings_go_on(fabric, 3, 2)

            # Pulled out in its sleep, when requests of the other drivers about it have to wait.
            softib(fabric, "power", "sleep")
            softib(fabric, "hca", "eject", "--node", "node1", "softib0")
            softib(fabric, "power", "resume")
            pings_go_on(fabric, 2, 1)

            softib(fabric, "driver", "unload", "ping")
            harness.wait_until(lambda: sum(objects(fabric).values()) == 0, 20, "the drivers' objects to go")
            require("driver_ping" not in pathlib.Path(f"/proc/{daemon_pid(fabric)}/maps").read_text(),
                    "the module is still mapped")
            softib(fabric, "driver", "load", "ping")
            pings_go_on(fabric, 2, 1)
            softib(fabric, "down")
            again = fabric.softib("down", "--fabric", fabric.name)
            require("dead softibd" not in again.text, "softibd did not end in order")


def echo_driver(report, user):
    with report.case("programs connect to a driver: rdma_client and examples/driver_echo"), store_folder(user) as folder:
        config = write_store(folder, user, PING_CONFIG.replace("Ping", "Echo").replace('"ping"', '"echo"'),
                             {"echo": (examples.ready().driver_echo, "IBA\\Echo")})
        with harness.Fabric(nodes=2, user=user, name="answers", extra=["--config", str(config)]) as fabric:
            def served():
                notes = [child.get("note", "") for node in (0, 1) for child in hca_of(fabric, node)["children"]]
                return sum(int(found.group(1)) for found in re.finditer(r"(\d+) in all", " ".join(notes)))
            harness.wait_until(lambda: "port 7471" in fabric.softib("devices", "--fabric", fabric.name).text, 40,
                               "the drivers to listen")
            shown = fabric.softib("connections", "--fabric", fabric.name).text
            require("driver echo" in shown and ":7471" in shown, f"softib connections does not show the driver: {shown}")
            harness.wait_until(lambda: "messages; registered" in
                               fabric.softib("devices", "--fabric", fabric.name).text, 40, "the service to be registered")
            rows = json.loads(fabric.softib("connections", "--json", "--fabric", fabric.name).text)
            require(rows and all((row["is_driver"], row["program"], row["state"], row["port_space"]) ==
                                 (True, "echo", "listening", "TCP") for row in rows), f"rows of drivers: {rows}")
            for count in (1, 2, 3):
                client = fabric.start(["rdma_client", "-s", "node1"], 0)
                harness.Result(client, client.wait(40), 40).require("rdma_client: end 0")
                harness.wait_until(lambda count=count: served() == count, 40, "the driver to count it")
            # The port is the driver's: no program of the node gets it.
            server = fabric.start(["rdma_server"], 1)
            server.wait(40)
            require("rdma_create_ep" in server.text(), f"rdma_server got the driver's port: {server.text()}")
            fabric.softib("trace", "--fabric", fabric.name).require("TCP port 7471 belongs to a driver", forbid=["RETRY_EXC"])
            softib(fabric, "driver", "unload", "echo")
            harness.wait_until(lambda: "echo" not in fabric.softib("status", "--fabric", fabric.name).text, 40,
                               "the driver's clients to go")
            server = fabric.start(["rdma_server"], 1)
            harness.wait_until(lambda: "rdma_server" in fabric.softib("connections", "--fabric", fabric.name).text, 40,
                               "rdma_server to listen")
            client = fabric.start(["rdma_client", "-s", "node1"], 0)
            harness.Result(client, client.wait(40), 40).require("rdma_client: end 0")


def modules(report, user):
    with report.case("a driver from the store serves a child from the configuration, goes and comes") as remarks:
        with store_folder(user) as folder:
            config = write_test_store(folder, user)
            with harness.Fabric(nodes=1, user=user, name="store", extra=["--config", str(config)]) as fabric:
                def child():
                    return hca_of(fabric)["children"][0]

                require(child()["id"] == "IBA\\Test\\0253460000000001-ffff-test", child()["id"])
                require((child()["state"], child()["driver"]) == ("started", "good"), str(child()))
                require(hca_of(fabric)["children"][1]["id"].startswith("IBA\\IPoIBP"), "no partition from the file")
                softib(fabric, "driver", "unload", "ib_bus", code=BUSY)
                softib(fabric, "power", "sleep")
                softib(fabric, "power", "resume")
                softib(fabric, "driver", "unload", "good")
                require(child()["state"] == "no driver", child()["state"])
                maps = pathlib.Path(f"/proc/{daemon_pid(fabric)}/maps").read_text()
                require("libtest_driver_good" not in maps, "the module is still mapped")
                softib(fabric, "driver", "load", "good")
                require(child()["state"] == "started", child()["state"])

                softib(fabric, "driver", "load", "leaky")
                result = softib(fabric, "driver", "unload", "leaky", code=BUSY)
                require("driver leaky still has 1 open of the access layer" in result.text, result.text)
                remarks.append(result.text.strip()[:70])
                for side in [fabric.run(["ibv_devinfo"])]:
                    side.require(r"PORT_ACTIVE")
                log = (fabric.runtime / "store.log").read_text()
                require("broken.json: it is no JSON object" in log, "the broken manifest is not in the log")

    with report.case("--verify: a reference that a driver keeps is found at the end, with its name and reason"):
        with store_folder(user) as folder:
            options = ["--config", str(write_test_store(folder, user)), "--verify"]
            with harness.Fabric(nodes=1, user=user, name="leak", extra=options) as fabric:
                softib(fabric, "driver", "load", "leaky")
                result = softib(fabric, "down", code=1)
                require("the verifier has found:\n  driver leaky still has 1 open of the access layer" in result.text,
                        result.text)

    with report.case("softib down ends a softibd whose driver does not answer; the log says why"):
        with store_folder(user) as folder:
            config = write_test_store(folder, user, serving="silent")
            with harness.Fabric(nodes=1, user=user, name="silent", extra=["--config", str(config)]) as fabric:
                require(hca_of(fabric)["children"][0]["driver"] == "silent", "the silent driver does not serve the child")
                softib(fabric, "down")
                log = (fabric.runtime / "silent.log").read_text()
                require("a driver does not answer a PnP or power request" in log, log)
                require(not (fabric.runtime / "silent.sock").exists(), "the socket is still there")

    with report.case("a configuration that is wrong is explained"):
        with store_folder(user) as folder:
            (folder / "fabric.toml").write_text("children = 1\n")
            os.chmod(folder / "fabric.toml", 0o644)
            with harness.Fabric(nodes=1, user=user, name="ok") as fabric:
                result = fabric.softib("up", "--fabric", "bad", "--config", str(folder / "fabric.toml"))
                result.require(r':1:1: top level: "children" is not known', code=2)


def shutdown(report, user):
    with report.case("power shutdown: devices go down in order, then softibd ends"):
        with harness.Fabric(nodes=1, user=user, name="down") as fabric:
            program = watch(fabric)
            softib(fabric, "power", "shutdown")
            program.wait_for_text(r"event_type IBV_EVENT_DEVICE_FATAL", 20)
            harness.wait_until(lambda: not (fabric.runtime / "down.sock").exists(), 20, "softibd to end")
            program.kill()


def test(report, user):
    shared = [part for part in (show, remove_and_add, port, partition, partition_traffic, drivers, power, eject)
              if report.wanted(part.__name__)]
    if shared:
        with harness.Fabric(nodes=2, user=user) as fabric:
            for part in shared:
                part(report, fabric)
    for part in (modules, ping_driver, echo_driver, shutdown):
        if report.wanted(part.__name__):
            part(report, user)


harness.main("devices", test)
