#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Subnet management by hand, over /dev/infiniband/umad0: what the diagnostics of the distribution only read.

smp.py get ROUTE ATTRIBUTE MODIFIER
    Prints the attribute at the end of a directed route ("0", "0,1,3") in hexadecimal.
smp.py set ROUTE ATTRIBUTE MODIFIER BYTE=HEX[/MASK] ... [then ROUTE ATTRIBUTE ...]
    Reads it, writes these bytes (of one, MASK says which bits), sets it, and prints what is there then. The states of a
    PortInfo stay as they are unless given.
smp.py master GUID PRIORITY
    Is a subnet manager that answers SMInfo as a master, and does nothing else; until it is killed.
"""
import fcntl
import os
import struct
import sys

ENABLE_PKEY = 0x1b03
REGISTER = 0xc01c1b01
HEADER = struct.Struct("=IIIII4s4s2sBBBBBB16s4sH6x")  # struct ib_user_mad_hdr
MAD = 256
LID_ROUTED, DIRECTED = 0x01, 0x81
GET, SET, GET_RESPONSE = 1, 2, 0x81
PORT_INFO = 0x15
DATA = slice(64, 128)
QP0_KEY = bytes(4)
PERMISSIVE = b"\xff\xff"
MASTER = 3
TID = 0x1234


def open_umad():
    umad = os.open("/dev/infiniband/umad0", os.O_RDWR)
    fcntl.ioctl(umad, ENABLE_PKEY)
    return umad


def register(umad, mgmt_class, methods=(), qpn=0):
    masks = [0, 0, 0, 0]
    for method in methods:
        masks[method // 32] |= 1 << method % 32
    request = bytearray(struct.pack("=I4IBBB3sBx", 0, *masks, qpn, mgmt_class, 1, bytes(3), 0))
    fcntl.ioctl(umad, REGISTER, request)
    return struct.unpack_from("=I", request)[0]


def ask(umad, agent, route, method, attribute, modifier, data=bytes(64)):
    """Returns the status and the data of the answer."""
    hops = route[1:]
    mad = bytearray(MAD)
    struct.pack_into(">BBBBHBBQHxxI", mad, 0, 1, DIRECTED, 1, method, 0, 0, len(hops), TID, attribute, modifier)
    mad[32:36] = PERMISSIVE * 2
    mad[DATA] = data
    mad[129:129 + len(hops)] = bytes(hops)
    os.write(umad, HEADER.pack(agent, 0, 2000, 0, 0, bytes(4), QP0_KEY, PERMISSIVE, 0, 0, 0, 0, 0, 0, bytes(16), bytes(4),
                               0) + mad)
    answer = os.read(umad, HEADER.size + MAD)
    if status := struct.unpack_from("=I", answer, 4)[0]:
        sys.exit(f"no answer: {os.strerror(status)}")
    answer = answer[HEADER.size:]
    return struct.unpack_from(">H", answer, 4)[0] & 0x7fff, answer[DATA]


def exchange(umad, agent, words, is_set):
    """A Get, and perhaps a Set of what it says with some bytes changed."""
    route = [int(hop) for hop in words[0].split(",")]
    attribute, modifier = (int(word, 0) for word in words[1:3])
    status, data = ask(umad, agent, route, GET, attribute, modifier)
    if status == 0 and is_set:
        status, data = ask(umad, agent, route, SET, attribute, modifier, edited(attribute, data, words[3:]))
    print(data.hex())
    if status:
        sys.exit(f"status {status:#x}")


def edited(attribute, data, edits):
    data = bytearray(data)
    if attribute == PORT_INFO:
        data[32] &= 0xf0
        data[33] &= 0x0f
    for edit in edits:
        place, _, value = edit.partition("=")
        value, _, mask = value.partition("/")
        at, value = int(place), bytes.fromhex(value)
        if mask:
            value = bytes([data[at] & ~int(mask, 16) | value[0]])
        data[at:at + len(value)] = value
    return bytes(data)


def be_master(guid, priority):
    umad = open_umad()
    issm = os.open("/dev/infiniband/issm0", os.O_RDWR)
    for mgmt_class in (LID_ROUTED, DIRECTED):
        register(umad, mgmt_class, (GET, SET))
    print(f"master, issm is descriptor {issm}", flush=True)
    while True:
        request = bytearray(os.read(umad, HEADER.size + MAD))
        mad = memoryview(request)[HEADER.size:]
        mad[3] = GET_RESPONSE
        if mad[1] == DIRECTED:
            mad[4] |= 0x80  # on its way back
        mad[DATA] = struct.pack(">QQIBxxx", guid, 0, 1, priority << 4 | MASTER).ljust(64, b"\0")
        os.write(umad, request)


def main():
    command, *words = sys.argv[1:]
    if command == "master":
        be_master(int(words[0], 0), int(words[1]))
    umad = open_umad()
    agent = register(umad, DIRECTED)
    while words:
        end = words.index("then") if "then" in words else len(words)
        exchange(umad, agent, words[:end], command == "set")
        words = words[end + 1:]


if __name__ == "__main__":
    main()
