#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Samples of counters by hand, over /dev/infiniband/umad0: perfquery only reads PortSamplesControl.

samples.py set LID PORT START INTERVAL TAG SELECT ...
    Sets PortSamplesControl: ticks until the sample begins and ticks that it lasts, and what its counters count. Prints
    tag and status of the answer, or why it was refused.
samples.py result LID
    Prints PortSamplesResult and PortSamplesResultExtended.
"""
import os
import struct
import sys

from smp import GET, HEADER, MAD, SET, open_umad, register

PERF, GMP_KEY = 4, bytes.fromhex("80010000")
CONTROL, RESULT, RESULT_EXTENDED = 0x10, 0x11, 0x1e
DATA, COUNTERS = 64, 15


def ask(umad, agent, lid, method, attribute, data=b""):
    """Returns the status and the data of the answer."""
    mad = bytearray(MAD)
    struct.pack_into(">BBBBHHQHHI", mad, 0, 1, PERF, 1, method, 0, 0, 0x5a, attribute, 0, 0)
    mad[DATA:DATA + len(data)] = data
    os.write(umad, HEADER.pack(agent, 0, 2000, 3, 0, b"\0\0\0\1", GMP_KEY, struct.pack(">H", lid), 0, 0, 0, 0, 0, 0, bytes(16),
                               bytes(4), 0) + mad)
    answer = os.read(umad, HEADER.size + MAD)
    if status := struct.unpack_from("=I", answer, 4)[0]:
        sys.exit(f"no answer: {os.strerror(status)}")
    answer = answer[HEADER.size:]
    return struct.unpack_from(">H", answer, 4)[0], answer[DATA:]


def set_control(umad, agent, lid, port, start, interval, tag, *select):
    control = bytearray(80)
    control[1] = port
    struct.pack_into(">IIH", control, 28, start, interval, tag)
    struct.pack_into(f">{len(select)}H", control, 38, *select)
    status, data = ask(umad, agent, lid, SET, CONTROL, control)
    if status:
        print(f"refused: status {status:#x}")
    else:
        print(f"tag {struct.unpack_from('>H', data, 36)[0]}, status {data[11]}")


def print_result(umad, agent, lid):
    for attribute, bits, place, letter in ((RESULT, 32, 4, "I"), (RESULT_EXTENDED, 64, 8, "Q")):
        _, data = ask(umad, agent, lid, GET, attribute)
        counters = struct.unpack_from(f">{COUNTERS}{letter}", data, place)
        print(f"tag {struct.unpack_from('>H', data)[0]}, status {data[3]}, {bits} bits: {' '.join(map(str, counters))}")


command, *numbers = sys.argv[1:]
file = open_umad()
{"set": set_control, "result": print_result}[command](file, register(file, PERF, qpn=1), *(int(number) for number in numbers))
