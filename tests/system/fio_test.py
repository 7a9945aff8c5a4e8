#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""fio's rdma engine, unmodified, between two nodes.

fio_test.py [--as root|nobody] [--only REGEX] [--link-layer ethernet]

The receiver's job has rw=read and no verb of its own, the sender's rw=write; the engine refuses random and mixed jobs.
The receiver's fio checks the data of `verb=send`. With the other verbs it sees no requests, and fio skips the sender's
verification, since the engine is for one direction (FIO_UNIDIR). So here the buffers of both are files: blocks with
checksums are written, or read, to or from buffers of the receiver that the engine draws at random, and fio's psync
engine verifies what arrived.
A failed request ends no job of fio 3.33: its engine reports the completion, and waits for another
(fio_rdmaio_getevents). softib has to see that the completion comes.
"""
import json
import os
import signal

import harness
from harness import Failed

ADDRESS = harness.ADDRESSES[0]
SECONDS = 60
SIZE = 8 << 20
DEPTH = 16


def start(fabric, verb, size, block, receives=(), sends=()):
    """A receiver that listens, and the words of its sender; each with options of its own."""
    port = harness.free_port()
    common = ["fio", "--thread", "--name=job", "--ioengine=rdma", f"--port={port}", f"--bs={block}", f"--size={size}",
              "--output-format=json"]
    receiver = fabric.start([*common, "--rw=read", f"--iodepth={DEPTH}", *receives], 0)

    def listens():
        return any(one["local"].endswith(f":{port}") for one in fabric.ids(state="listening"))
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
    receiver, words = start(fabric, "send", 8 * block, block, ["--verb=recv", "--verify=crc32c"],
                            ["--verify=crc32c", "--do_verify=0"])
    fabric.run(words, 1, SECONDS).require()
    done = job(fabric.end(receiver, SECONDS).require(forbid=("verify:",)).text)
    if done["read"]["io_bytes"] != 8 * block:
        raise Failed(f"{done['read']['io_bytes']} bytes verified")


def verifies_in_vain(fabric):
    """Blocks without checksums: the receiver does look at what arrives."""
    receiver, words = start(fabric, "send", 8 * 4096, 4096, ["--verify=crc32c"])
    fabric.run(words, 1, SECONDS).require()
    fabric.end(receiver, SECONDS).require("verify: bad", code=1)


def file_for(fabric, name, data):
    """A file of the programs' user, which may be the memory of a job."""
    path = fabric.runtime / name
    path.write_bytes(data)
    os.chown(path, fabric.user.uid, -1)
    return path


def psync(fabric, path, block, *options):
    return fabric.run(["fio", "--thread", "--name=job", "--ioengine=psync", f"--filename={path}", f"--bs={block}",
                       f"--size={DEPTH * block}", "--verify=crc32c", "--output-format=json", *options], 0, SECONDS)


def blocks_of(data, block):
    """By their place in the file, which the header of each has. Buffers that were not used have none."""
    blocks = [data[at:at + block] for at in range(0, len(data), block)]
    return {int.from_bytes(one[16:24], "little"): one for one in blocks if any(one)}


def verify_arrived(fabric, arrived, sent, block, spoil=False):
    """Blocks that went to the same buffer are overwritten; those that were sent stand for them."""
    arrived, sent = blocks_of(arrived, block), blocks_of(sent, block)
    if len(sent) != DEPTH or len(arrived) < DEPTH // 4 or not arrived.keys() <= sent.keys():
        raise Failed(f"of {len(sent)} blocks arrived those of {sorted(arrived)}")
    if spoil:
        place, one = arrived.popitem()
        arrived[place] = one[:-1] + bytes([one[-1] ^ 1])
    whole = {**sent, **arrived}
    path = file_for(fabric, "arrived", b"".join(whole[place] for place in sorted(whole)))
    done = psync(fabric, path, block, "--rw=read")
    if spoil:
        done.require("verify failed", code=1)
    elif job(done.require(forbid=("verify:",)).text)["read"]["io_bytes"] != DEPTH * block:
        raise Failed(f"not all blocks were verified:\n{harness.tail(done.text)}")


def writes_verified(fabric, block, spoil=False):
    memory, sent = (file_for(fabric, name, bytes(DEPTH * block)) for name in ("memory", "sent"))
    receiver, words = start(fabric, "write", DEPTH * block, block, [f"--mem=mmapshared:{memory}"],
                            [f"--mem=mmapshared:{sent}", f"--iodepth={DEPTH}", "--verify=crc32c", "--do_verify=0"])
    fabric.run(words, 1, SECONDS).require()
    fabric.end(receiver, SECONDS).require()
    verify_arrived(fabric, memory.read_bytes(), sent.read_bytes(), block, spoil)


def reads_verified(fabric, block):
    memory, read = (file_for(fabric, name, bytes(DEPTH * block)) for name in ("memory", "read"))
    psync(fabric, memory, block, "--rw=write", "--do_verify=0").require()
    receiver, words = start(fabric, "read", DEPTH * block, block, [f"--mem=mmapshared:{memory}"],
                            [f"--mem=mmapshared:{read}", f"--iodepth={DEPTH}"])
    fabric.run(words, 1, SECONDS).require()
    fabric.end(receiver, SECONDS).require()
    verify_arrived(fabric, read.read_bytes(), memory.read_bytes(), block)


def refuses_random(fabric):
    """The engine refuses these jobs before it connects."""
    for kind, words in (("randwrite", ["--hostname", ADDRESS]), ("randread", [])):
        fabric.run(["fio", "--name=job", "--ioengine=rdma", f"--port={harness.free_port()}", f"--rw={kind}", "--size=4k",
                    *words], 1, SECONDS).require("RDMA network IO can't be random", code=1)


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
        yield f"fio, write, blocks of {block} bytes, verified in the receiver's memory", writes_verified, (block,)
        yield f"fio, read, blocks of {block} bytes, verified in the sender's memory", reads_verified, (block,)
    yield "fio, write: a bit that differs is found", writes_verified, (4096, True)
    yield "fio: random jobs are refused by fio", refuses_random, ()
    yield "fio, send: a receiver that verifies fails with other bytes", verifies_in_vain, ()
    for verb in ("write", "read"):
        for victim in ("receiver", "sender"):
            yield f"fio, {verb}: kill -9 of the {victim} in the middle", dies, (verb, victim)


def test(report, user):
    harness.need_program("fio")
    report.may_take_some(2)
    with harness.Fabric(nodes=2, user=user, config=harness.WITH_ADDRESSES) as fabric:
        for name, body, words in cases():
            if report.wanted(name):
                with report.case(name):
                    body(fabric, *words)


if __name__ == "__main__":
    harness.main("fio", test)
