#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""MADs from and to each LID of a port, in a class of vendors.

path_bits.py serve
    Prints from which LID each request came and the path bits of the own LID that it came to, and answers it.
path_bits.py send LID PATH_BITS
    Sends a request from the LID of the own port with these path bits; prints LID and path bits of the answer.
"""
import os
import struct
import sys

from smp import HEADER, MAD, open_umad, register

VENDOR_CLASS, GET, GET_RESPONSE, TID, ATTRIBUTE = 0x0a, 0x01, 0x81, 0x77, 0x10
GSI_KEY, QP1 = bytes((0x80, 1, 0, 0)), bytes((0, 0, 0, 1))


def send(umad, agent, lid, path_bits, mad, qpn=QP1, timeout_ms=2000):
    os.write(umad, HEADER.pack(agent, 0, timeout_ms, 0, 0, qpn, GSI_KEY, lid, 0, path_bits, 0, 0, 0, 0, bytes(16), bytes(4),
                               0) + mad)


def receive(umad):
    """Bytes: agent, sender's queue pair, sender's LID, path bits; and the MAD."""
    message = os.read(umad, HEADER.size + MAD)
    agent, status, _, _, _, qpn, _, lid, _, path_bits = HEADER.unpack_from(message)[:10]
    if status:
        sys.exit(f"no answer: {os.strerror(status)}")
    return agent, qpn, lid, path_bits, message[HEADER.size:]


def main():
    umad = open_umad()
    if sys.argv[1] == "serve":
        agent = register(umad, VENDOR_CLASS, (GET,), qpn=1)
        print("ready", flush=True)
        while True:
            _, qpn, lid, path_bits, mad = receive(umad)
            print(f"from {int.from_bytes(lid, 'big')} to path bits {path_bits}", flush=True)
            answer = bytearray(mad)
            answer[3] = GET_RESPONSE
            send(umad, agent, lid, path_bits, answer, qpn, 0)
    agent = register(umad, VENDOR_CLASS, qpn=1)
    mad = bytearray(MAD)
    struct.pack_into(">BBBBHHQHxxI", mad, 0, 1, VENDOR_CLASS, 1, GET, 0, 0, TID, ATTRIBUTE, 0)
    send(umad, agent, int(sys.argv[2]).to_bytes(2, "big"), int(sys.argv[3]), mad)
    _, _, lid, path_bits, _ = receive(umad)
    print(f"from {int.from_bytes(lid, 'big')} to path bits {path_bits}")


main()
