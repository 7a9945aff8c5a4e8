#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""fio's rdma engine, unmodified, between two nodes.

fio_test.py [--as root|nobody] [--only REGEX] [--link-layer ethernet]

The receiver's fio checks the data of `verb=send`; with the other verbs it sees no data, and the engine
cannot read back.
A failed request ends no job of fio 3.33: its engine reports the completion, and waits for another
(fio_rdmaio_getevents). softib has to see that the completion comes.
"""
import json
import os
import signal

import harness
from harness import Failed

ADDRESS = "127.77.0.1"
SECONDS = 60
SIZE = 8 << 20


def start(fabric, verb, size, block, receives=(), sends=()):
    """A receiver that listens, and the words of its sender; each with options of its own."""
    port = harness.free_port()
    common = ["fio", "--thread", "--name=job", "--ioengine=rdma", f"--port={port}", f"--bs={block}", f"--size={size}",
              "--output-format=json"]
    receiver = fabric.start([*common, "--rw=read", "--iodepth=16", *receives], 0)

    def listens():
        state = json.loads(fabric.softib("status", "--json", "--fabric", fabric.name).require().text)
        return any(one["state"] == "listening" and one["local"].endswith(f":{port}") for one in state["rdma_cm"])
    harness.wait_until(lambda: listens() or not receiver.running(), SECONDS, "the receiver to listen")
    return receiver, [*common, f"--hostname={ADDRESS}", f"--verb={verb}", "--rw=write", "--iodepth=1",
                      "--iodepth_batch_complete=1", *sends]


def job(text):
    return json.loads(text[text.index("{"):text.rindex("}") + 1])["jobs"][0]


def transfers(fabric, verb, block):
    # fio connects without RNR retries: a sender may not overtake the receives that wait for it at first.
    size = 8 * block if verb == "send" else SIZE
    receiver, words = start(fabric, verb, size, block)
    done = job(fabric.run(words, 1, SECONDS).require().text)
    if done["error"] or done["write"]["io_bytes"] != size:
        raise Failed(f"error {done['error']}, {done['write']['io_bytes']} bytes")
    fabric.end(receiver, SECONDS).require()


def verifies(fabric, block):
    receiver, words = start(fabric, "send", 8 * block, block, ["--verify=crc32c"], ["--verify=crc32c", "--do_verify=0"])
    fabric.run(words, 1, SECONDS).require()
    done = job(fabric.end(receiver, SECONDS).require(forbid=("verify:",)).text)
    if done["read"]["io_bytes"] != 8 * block:
        raise Failed(f"{done['read']['io_bytes']} bytes verified")


def verifies_in_vain(fabric):
    """Blocks without checksums: the receiver does look at what arrives."""
    receiver, words = start(fabric, "send", 8 * 4096, 4096, ["--verify=crc32c"])
    fabric.run(words, 1, SECONDS).require()
    fabric.end(receiver, SECONDS).require("verify: bad", code=1)


def packets(fabric):
    """Of the sender's port: the receiver's does not count what the sender writes to it and reads from it."""
    names = [f"/sys/class/infiniband/softib0/ports/1/counters/port_{way}_packets" for way in ("rcv", "xmit")]
    return sum(int(line) for line in fabric.run(["cat", *names], 1).require().text.split())


def dies(fabric, verb, victim):
    forever = ["--time_based", "--runtime=1000"]
    receiver, words = start(fabric, verb, SIZE, 65536, forever, forever)
    sender = fabric.start(words, 1)
    before = packets(fabric)
    harness.wait_until(lambda: packets(fabric) > before + 1000 or not sender.running(), SECONDS, "blocks to be sent")
    dead, other = (receiver, sender) if victim == "receiver" else (sender, receiver)
    os.killpg(dead.pid, signal.SIGKILL)
    if victim == "receiver":
        other.wait_for_text(r"cq completion status \d+", SECONDS)
        other.kill()
    elif fabric.end(other, SECONDS).code is None:
        raise Failed(f"{other.describe()} did not notice:\n{harness.tail(other.text())}")
    dead.kill()


def cases():
    for verb in ("write", "read", "send"):
        for block in (4096, 65536, 1 << 20):
            yield f"fio, {verb}, blocks of {block} bytes", transfers, (verb, block)
    for block in (4096, 65536, 1 << 20):
        yield f"fio, send, blocks of {block} bytes, verified by the receiver", verifies, (block,)
    yield "fio, send: a receiver that verifies fails with other bytes", verifies_in_vain, ()
    for verb in ("write", "read"):
        for victim in ("receiver", "sender"):
            yield f"fio, {verb}: kill -9 of the {victim} in the middle", dies, (verb, victim)


def test(report, user):
    harness.need_program("fio")
    with harness.Fabric(nodes=2, user=user) as fabric:
        for name, body, words in cases():
            if report.wanted(name):
                with report.case(name):
                    body(fabric, *words)


if __name__ == "__main__":
    harness.main("fio", test)
