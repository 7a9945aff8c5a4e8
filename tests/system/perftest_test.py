#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""perftest, unmodified: every operation, transport and mode that its options offer an InfiniBand device.

perftest_test.py [--as root|nobody] [--link-layer ethernet] [--only REGEX] [--list] [--every-size]

-a takes a minute each, since perftest measures the processor's clock again for each of its sizes; without
--every-size it is run for the combinations of ALL_SIZES only.
"""
import sys

import harness
from harness import Failed
from support import perftest

TRANSPORTS = {"send": ("RC", "UC", "UD", "XRC"), "write": ("RC", "UC", "XRC"), "read": ("RC", "XRC"),
              "atomic": ("RC", "XRC")}
# A multiple of 100: perftest counts each completion as 100 messages (--cq-mod), the last one of a queue pair too, and
# with -q it ends, or hangs, when the sum is reached although a queue pair has messages left to send. Also of 8,
# for -l 8.
ITERATIONS = {"bw": 600, "lat": 200}
EVENTS = ("ib_send_bw", "ib_send_lat", "ib_read_bw", "ib_read_lat", "ib_atomic_bw", "ib_atomic_lat")
ALL_SIZES = {0: (("ib_send_bw", "RC"), ("ib_send_bw", "UD"), ("ib_write_lat", "RC"), ("ib_read_bw", "RC")),
             65534: (("ib_send_bw", "RC"),)}  # by uid
# Connected by librdmacm, for which perftest refuses UC and XRC.
BY_CM = [("send", "RC", ""), ("send", "RC", "-e"), ("send", "UD", ""), ("write", "RC", ""), ("read", "RC", ""),
         ("atomic", "RC", "")]
BY_CM_BW = [("send", "RC", "-q 4"), ("send", "RC", "-b"), ("write", "RC", "-b -q 4"), ("send", "UD", "-b"),
            ("send", "RC", "-z")]
LARGEST = {"RC": 23, "UC": 23, "XRC": 23, "UD": 12}  # -a ends at 2^23, for UD at the path MTU


def cases():
    """(program, transport, options)"""
    yield from cm_cases()
    for operation, transports in TRANSPORTS.items():
        for kind in ("bw", "lat"):
            program = f"ib_{operation}_{kind}"
            for transport in transports:
                yield from cases_of(program, operation, kind, transport)


def cm_cases():
    for kind, rows in (("bw", BY_CM + BY_CM_BW), ("lat", BY_CM)):
        for operation, transport, options in rows:
            yield f"ib_{operation}_{kind}", transport, f"-R {options}".strip()


def ethernet_cases():
    """Over Ethernet perftest takes the GID of -x; without it, the one that it finds best."""
    yield from cm_cases()
    for operation, transports in TRANSPORTS.items():
        for kind in ("bw", "lat"):
            for transport in transports:
                program = f"ib_{operation}_{kind}"
                yield program, transport, ""
                yield program, transport, "-x 1"
                if transport in ("RC", "UD"):
                    yield program, transport, "-x 0 -e" if program in EVENTS else "-x 0"
                if kind == "bw" and transport == "UD":
                    yield program, transport, "-x 1 -b"
                    yield program, transport, "-x 1 --use-srq -q 8"


def cases_of(program, operation, kind, transport):
    def case(options):
        return program, transport, options

    yield case("")
    if operation in ("send", "write"):
        yield case("-s 32 -I 64")
        yield case("-s 1 -I 0")
    if program in EVENTS:
        yield case("-e")
    if operation != "atomic":
        yield case("-a -n 30")
    if kind == "bw":
        yield case("-b")
        yield case("-q 8")
        yield case("--report_gbits")
        yield case("-b -q 8")
        if program in EVENTS:
            yield case("-e -q 8 -b")
    if transport in ("RC", "UD"):
        yield case("-D 1")
    if operation == "send" and transport in ("RC", "UC", "UD"):
        yield case("--use-srq")
        if kind == "bw":
            yield case("--use-srq -q 8")
    if transport == "RC":
        yield case("--use_old_post_send")
        if operation != "atomic":
            yield case("--odp")
        if kind == "bw":
            yield case("-Q 1")
            yield case("-l 8 -q 2")
            yield case("-t 1")
        if operation == "atomic":
            yield case("-A CMP_AND_SWAP")
        if operation in ("read", "atomic"):
            yield case("-o 1")
        if operation == "send":
            yield case("-r 1 -s 64" if kind == "lat" else "-r 8 -s 64")
        if kind == "lat":
            yield case("-H -n 20")


def command(program, transport, options):
    words = [program, "-F", "-d", "softib0", "-c", transport, *options.split()]
    if "-n " not in options and "-D" not in options:
        words += ["-n", str(ITERATIONS[program.rsplit("_", 1)[1]])]
    if in_cycles(program, options):
        words += ["-C"]
    return words


def in_cycles(program, options):
    """Whether a latency is printed in cycles, for which perftest does not measure the clock at its end (0.2 s on each
    side). Microseconds: without options, and if it prints averages of a duration."""
    return program.endswith("_lat") and bool(options) and "-D" not in options


def check_rows(rows, text, transport, options):
    if not rows:
        raise Failed(f"no result line:\n{harness.tail(text)}")
    if options.startswith("-a"):
        sizes = [row["bytes"] for row in rows]
        expected = [2 ** i for i in range(1, LARGEST[transport] + 1)]
        if sizes != expected:
            raise Failed(f"results for the sizes {sizes}, expected {expected}")
    for row in rows:
        if not perftest.is_measured(row) or row["iterations"] <= 0:
            raise Failed(f"not a result: {row}")


def summary(program, options, rows):
    last = rows[-1]
    if program.endswith("_lat"):
        return f"{last.get('typical', last['average']):9.2f} {'cycles' if in_cycles(program, options) else 'us'}"
    unit = "Gb/s" if "--report_gbits" in options else "MB/s"
    return f"{last['average']:9.1f} {unit}"


def pair_by_cm(fabric, words, seconds):
    """Both sides, which meet by librdmacm (-R)."""
    return fabric.pair(words, seconds=seconds, host="node0", listens=fabric.listens_by_cm)


def run_case(fabric, program, transport, options, remarks):
    harness.need_program(program)
    # With -a perftest measures the clock of the processor, by spinning, for each of its sizes.
    seconds = 300 if options.startswith("-a") else 90
    words = command(program, transport, options)
    pair = pair_by_cm if options.startswith("-R") else harness.Fabric.pair
    _, client, rows = perftest.run(lambda: pair(fabric, words, seconds=seconds))
    check_rows(rows, client.text, transport, options)
    remarks.append(summary(program, options, rows))


def test(report, user):
    every_size = "--every-size" in sys.argv
    if report.only is None:
        report.may_take_some(3)
    harness.forget_xrc_domain()
    with harness.Fabric(nodes=2, user=user) as fabric:
        for program, transport, options in ethernet_cases() if harness.ETHERNET else cases():
            if options.startswith("-a") and not every_size and (program, transport) not in ALL_SIZES.get(user.uid, ALL_SIZES[0]):
                continue
            name = f"{program} {transport} {options}".strip()
            if report.wanted(name):
                with report.case(name) as remarks:
                    run_case(fabric, program, transport, options, remarks)


if "--list" in sys.argv:
    for each in ethernet_cases() if harness.ETHERNET else cases():
        print(" ".join(command(*each)))
    sys.exit(0)
harness.main("perftest", test)
