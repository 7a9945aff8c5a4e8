# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The same messages between two nodes without a switch, and between two at different leaves of a fat tree."""
import statistics

import measure
from harness import Fabric

# (title, perftest's words, column, whether less is better)
FIGURES = [
    ("ib_write_lat 8 B", "ib_write_lat -s 8 -n 20000", "typical", True),
    ("ib_write_lat 64 KiB", "ib_write_lat -s 65536 -n 5000", "typical", True),
    ("ib_send_lat 8 B", "ib_send_lat -s 8 -n 20000", "typical", True),
    ("ib_send_lat 64 KiB", "ib_send_lat -s 65536 -n 5000", "typical", True),
    ("ib_write_bw 8 B", "ib_write_bw -s 8 -n 500000", "mega_messages", False),
    ("ib_write_bw 64 KiB", "ib_write_bw -s 65536 -n 30000", "average", False),
    ("ib_send_bw 8 B", "ib_send_bw -s 8 -n 500000", "mega_messages", False),
    ("ib_send_bw 64 KiB", "ib_send_bw -s 65536 -n 30000", "average", False),
]
TOLERANCE = 0.03


def best(fabric, cores, words, column):
    """Of three runs, where disturbances make a run only slower; perftest's typical latency leaves them out itself."""
    runs = 1 if column == "typical" else 3
    return max(measure.perftest(fabric, cores, words.split(), column) for _ in range(runs))


def pairs(cores, rounds):
    """By title: (without a switch, across switches) of each round, one after the other; who comes first alternates."""
    taken = {title: [] for title, *_ in FIGURES}
    with Fabric(nodes=2, name="bench-near") as near, Fabric(nodes=2, name="bench-far", in_tree=True) as far:
        for number in range(rounds):
            for title, words, column, _ in FIGURES:
                order = (near, far) if number % 2 == 0 else (far, near)
                sample = {fabric.name: best(fabric, cores, words, column) for fabric in order}
                taken[title].append((sample[near.name], sample[far.name]))
    return taken


def print_pairs(taken):
    print(f"\n{'across switches':24} {'without':>14} {'across':>14}")
    for title, rounds in taken.items():
        without, across = (statistics.median(column) for column in zip(*rounds))
        print(f"{title:24} {without:14,.3f} {across:14,.3f}")


def judge(taken):
    """(what, tops, bottoms, relation, target) of each ratio."""
    for title, _, _, less_is_better in FIGURES:
        without, across = zip(*taken[title])
        bound = ("<=", 1 + TOLERANCE) if less_is_better else (">=", 1 - TOLERANCE)
        yield f"{title}, across switches / without", across, without, *bound
