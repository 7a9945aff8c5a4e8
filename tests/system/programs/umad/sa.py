#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Requests to the subnet administrator that no program of the distribution makes, over /dev/infiniband/umad0.

sa.py multi SM_LID SOURCES DESTINATIONS [MOST]
    GetMulti of MultiPathRecord between GIDs, separated by commas. Prints a line "SLID DLID" for each path.
sa.py status SM_LID METHOD ATTRIBUTE [MASK [HEX]]
    Prints the status of the answer to a request with these components and this record.
"""
import fcntl
import os
import socket
import struct
import sys

from smp import ENABLE_PKEY, HEADER, MAD, REGISTER, open_umad

SA_CLASS, SA_VERSION = 3, 2
GET_MULTI, MULTI_PATH = 0x14, 0x3a
NUMB_PATH, SGID_COUNT, DGID_COUNT = 1 << 6, 1 << 19, 1 << 20
SECONDS = 10
QP1_KEY = bytes.fromhex("80010000")
RMPP_AT, SA_AT, DATA_AT = 24, 36, 56
PATH_SIZE, LIDS_AT = 64, 40
ANSWER = 1 << 20
TID = 0x1234


def register(umad):
    request = bytearray(struct.pack("=I4IBBB3sBx", 0, 0, 0, 0, 0, 1, SA_CLASS, SA_VERSION, bytes(3), 1))
    fcntl.ioctl(umad, REGISTER, request)
    return struct.unpack_from("=I", request)[0]


def rmpp_header(length):
    """Of a message of one segment: DATA, active, first and last."""
    return struct.pack(">BBBBII", 1, 1, 0xff, 0, 1, length)


def ask(sm_lid, method, attribute, mask, record=b""):
    """Returns the status and what is behind the headers of the answer. GetMulti is a transfer in both directions."""
    umad = open_umad()
    agent = register(umad)
    mad = bytearray(MAD)
    struct.pack_into(">BBBBHHQHxxI", mad, 0, 1, SA_CLASS, SA_VERSION, method, 0, 0, TID, attribute, 0)
    if method == GET_MULTI:
        mad[RMPP_AT:SA_AT] = rmpp_header(DATA_AT - SA_AT + len(record))
    struct.pack_into(">QHHQ", mad, SA_AT, 0, 0, 0, mask)
    mad[DATA_AT:DATA_AT + len(record)] = record
    os.write(umad, HEADER.pack(agent, 0, SECONDS * 1000, 0, 0, struct.pack(">I", 1), QP1_KEY, struct.pack(">H", sm_lid),
                               0, 0, 0, 0, 0, 0, bytes(16), bytes(4), 0) + mad)
    answer = os.read(umad, HEADER.size + ANSWER)
    if status := struct.unpack_from("=I", answer, 4)[0]:
        sys.exit(f"no answer: {os.strerror(status)}")
    answer = answer[HEADER.size:]
    return struct.unpack_from(">H", answer, 4)[0], answer[DATA_AT:]


def multi(sm_lid, sources, destinations, most=None):
    gids = [socket.inet_pton(socket.AF_INET6, gid) for gid in (*sources, *destinations)]
    record = bytearray(24)
    record[5] = most or 0
    record[15], record[16] = len(sources), len(destinations)
    mask = SGID_COUNT | DGID_COUNT | (NUMB_PATH if most else 0)
    status, data = ask(sm_lid, GET_MULTI, MULTI_PATH, mask, bytes(record) + b"".join(gids))
    if status:
        sys.exit(f"status {status:#x}")
    for at in range(0, len(data) - PATH_SIZE + 1, PATH_SIZE):
        dlid, slid = struct.unpack_from(">HH", data, at + LIDS_AT)
        if slid:
            print(slid, dlid)


def main():
    command, sm_lid, *words = sys.argv[1:]
    if command == "multi":
        sources, destinations = (word.split(",") for word in words[:2])
        multi(int(sm_lid), sources, destinations, *(int(word) for word in words[2:]))
        return
    numbers = [int(word, 0) for word in words[:3]]
    print(f"{ask(int(sm_lid), *numbers[:2], *(numbers[2:] or [0]), bytes.fromhex(''.join(words[3:])))[0]:#x}")


if __name__ == "__main__":
    main()
