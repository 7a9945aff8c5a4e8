#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""fio's rdma engine, unmodified, between two nodes.

fio_test.py [--as root|nobody] [--only REGEX] [--link-layer ethernet]
"""
import json

import harness
from harness import Failed

ADDRESS = "127.77.0.1"
SECONDS = 60
SIZE = 8 << 20


def start(fabric, verb, size, block):
    """A receiver that listens, and the words of its sender."""
    port = harness.free_port()
    common = ["fio", "--thread", "--name=job", "--ioengine=rdma", f"--port={port}", f"--bs={block}", f"--size={size}",
              "--output-format=json"]
    receiver = fabric.start([*common, "--rw=read", "--iodepth=16"], 0)

    def listens():
        state = json.loads(fabric.softib("status", "--json", "--fabric", fabric.name).require().text)
        return any(one["state"] == "listening" and one["local"].endswith(f":{port}") for one in state["rdma_cm"])
    harness.wait_until(lambda: listens() or not receiver.running(), SECONDS, "the receiver to listen")
    return receiver, [*common, f"--hostname={ADDRESS}", f"--verb={verb}", "--rw=write", "--iodepth=1",
                      "--iodepth_batch_complete=1"]


def job(text):
    return json.loads(text[text.index("{"):text.rindex("}") + 1])["jobs"][0]


def test(report, user):
    harness.need_program("fio")
    with harness.Fabric(nodes=2, user=user) as fabric:
        for verb in ("write", "read", "send"):
            for block in (4096, 65536, 1 << 20):
                # fio connects without RNR retries: a sender may not overtake the receives that wait for it at first.
                size = 8 * block if verb == "send" else SIZE
                with report.case(f"fio, {verb}, blocks of {block} bytes"):
                    receiver, words = start(fabric, verb, size, block)
                    done = job(fabric.run(words, 1, SECONDS).require().text)
                    if done["error"] or done["write"]["io_bytes"] != size:
                        raise Failed(f"error {done['error']}, {done['write']['io_bytes']} bytes")
                    fabric.end(receiver, SECONDS).require()


if __name__ == "__main__":
    harness.main("fio", test)
