#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""uvloop_echo.py PORT [SERVER CONNECTIONS]: an echo server of asyncio over uvloop, or its client."""
import asyncio
import os
import sys

import uvloop

SIZE = 1 << 17


async def echo(reader, writer):
    print(writer.get_extra_info("peername"), flush=True)
    while part := await reader.read(40_000):
        writer.write(part)
        await writer.drain()
    writer.close()


async def serve(port):
    async with await asyncio.start_server(echo, "0.0.0.0", port) as server:
        await server.serve_forever()


async def one(address, port):
    reader, writer = await asyncio.open_connection(address, port)
    data = os.urandom(SIZE)
    writer.write(data)
    writer.write_eof()
    got = await reader.read()
    writer.close()
    await writer.wait_closed()
    return got == data


async def connect(port, address, count):
    right = await asyncio.gather(*(one(address, port) for _ in range(count)))
    print(f"all right: {sum(right)}")


uvloop.install()
if len(sys.argv) == 2:
    asyncio.run(serve(int(sys.argv[1])))
else:
    asyncio.run(connect(int(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
