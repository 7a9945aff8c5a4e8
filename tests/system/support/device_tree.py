# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""For tests that change devices and drivers: queries of the tree, driver stores, examples/driver_ping."""
import contextlib
import json
import os
import re
import shutil

import harness
from harness import Failed

BUSY = 10
NOT_FOUND = 3


def require(condition, text):
    if not condition:
        raise Failed(text)


def softib(fabric, *words, code=0):
    return fabric.softib(*words, "--fabric", fabric.name).require(code=code)


def devices(fabric):
    return json.loads(softib(fabric, "devices", "--json").text)


def status(fabric):
    return json.loads(softib(fabric, "status", "--json").text)


def objects(fabric):
    return status(fabric)["objects"]


def daemon_pid(fabric):
    return status(fabric)["pid"]


def hca_of(fabric, node=0):
    children = devices(fabric)["tree"]["children"][node]["children"]
    return children[0] if children else None


PING_CONFIG = """
drivers = "drivers"
ipoib = false
[[child]]
name = "ping"
device_id = 'IBA\\Ping'
"""


@contextlib.contextmanager
def store_folder(user):
    folder = user.make_dir("softib-store-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_store(folder, user, config, drivers):
    """A configuration with a driver store. drivers: name -> (file, maybe below the build folder; id of its devices)."""
    store = folder / "drivers"
    store.mkdir()
    for name, (file, device_id) in drivers.items():
        source = harness.BUILD / file
        if not source.exists():
            raise harness.Skipped(f"{source} is not built")
        shutil.copy(source, store / source.name)
        os.chmod(store / source.name, 0o755)
        (store / f"{name}.json").write_text(json.dumps(
            {"name": name, "kind": "function", "hardware_ids": [device_id], "depends": ["ib_bus"],
             "module": source.name}))
    (store / "broken.json").write_text("{")
    (folder / "fabric.toml").write_text(config)
    for path in (store, *store.iterdir(), folder / "fabric.toml"):
        os.chown(path, user.uid, -1)
    return folder / "fabric.toml"


PING_NOTE = re.compile(r"UD (\d+) pings answered, (\d+) answers; RC (\d+) pings answered, (\d+) answers; "
                       r"(\d+) connected, (\d+) broken")


def ping_notes(fabric):
    """Of each instance of examples/driver_ping: UD and RC pings answered, answers; connections up, broken."""
    notes = [child.get("note", "") for node in devices(fabric)["tree"]["children"] for hca in node["children"]
             for child in hca["children"]]
    found = [PING_NOTE.fullmatch(note) for note in notes]
    require(all(found), f"the drivers say {notes}")
    return [tuple(map(int, match.groups())) for match in found]


def pings_go_on(fabric, instances, connected, broken=None):
    """Waits until each instance has this many connections and both sends and answers pings over both transports."""
    def instances_are_up():
        notes = ping_notes(fabric)
        return notes if len(notes) == instances and all(note[4] == connected for note in notes) else None

    before = harness.wait_until(instances_are_up, 20, f"{instances} instances with {connected} connections each")

    def all_counts_grew():
        return all(new > old for note, was in zip(ping_notes(fabric), before) for new, old in zip(note[:4], was[:4]))

    if instances > 1:
        harness.wait_until(all_counts_grew, 20, f"more pings than {before}")
    if broken is not None:
        require([note[5] for note in before] == [broken] * instances, f"connections broke: {before}")
