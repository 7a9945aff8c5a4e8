#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""gRPC: grpc_programs.py PORT serves, grpc_programs.py PORT HOST is the client: single calls and streams, over a
channel of its own each time."""
import concurrent.futures
import sys

import grpc

CHANNELS, MESSAGES, SECONDS = 4, 50, 20
ECHO, TURN = "/softib.test/Echo", "/softib.test/Turn"


class Handler(grpc.GenericRpcHandler):
    def service(self, handler_call_details):
        if handler_call_details.method == ECHO:
            return grpc.unary_unary_rpc_method_handler(lambda request, call: call.peer().encode() + b" " + request)
        if handler_call_details.method == TURN:
            return grpc.stream_stream_rpc_method_handler(lambda requests, call: (one[::-1] for one in requests))
        return None


def serve(port):
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(4), handlers=(Handler(),))
    server.add_insecure_port(f"0.0.0.0:{port}")
    server.start()
    server.wait_for_termination()


def call(port, host):
    for number in range(CHANNELS):
        with grpc.insecure_channel(f"{host}:{port}") as channel:
            body = b"%d" % number * (100_000 * number)
            peer, _, echo = channel.unary_unary(ECHO)(body, timeout=SECONDS).partition(b" ")
            assert echo == body
            print(peer.decode())
            sent = [b"%d bytes" % (number * 7919) * 1000 for number in range(MESSAGES)]
            assert list(channel.stream_stream(TURN)(iter(sent), timeout=SECONDS)) == [one[::-1] for one in sent]
    print("all right")


if __name__ == "__main__":
    (call if len(sys.argv) > 2 else serve)(*sys.argv[1:])
