# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Large subnets: the time until one is up, that of `softib run` at its last node, and softibd's memory. Part of
bench/run."""
import json
import statistics
import time

import measure
from harness import Fabric

# HCAs: topology. The largest has all that the unicast LIDs allow beside its switches.
SUBNETS = {648: "fat-tree:hcas=648,ports=36", 8192: "fat-tree:hcas=8192,ports=36",
           41000: "fat-tree:hcas=41000,ports=64"}


def figures(rounds):
    """HCAs -> seconds until it is up, seconds of each `softib run -- true`, bytes of softibd after them."""
    return {hcas: one(hcas, topology, rounds) for hcas, topology in SUBNETS.items()}


def one(hcas, topology, rounds):
    start = time.monotonic()
    with Fabric(nodes=None, name="bench-subnet", link_layer=None, extra=["--topology", topology]) as fabric:
        up = time.monotonic() - start
        runs = [fabric.run(["true"], node=hcas - 1).require().seconds for _ in range(rounds)]
        return {"up_s": up, "run_s": runs, "bytes": sum(measure.memory((), pid_of(fabric)).values())}


def pid_of(fabric):
    """That of softibd; `softib status` would fill its heap with text about all nodes."""
    fabrics = json.loads(fabric.softib("list", "--json").require().text)["fabrics"]
    return next(one["pid"] for one in fabrics if one["fabric"] == fabric.name)


def print_figures(rows):
    print("\nsubnets: HCAs, s until up, s of `softib run -- true`, MiB of softibd")
    for hcas, row in rows.items():
        print(f"  {hcas:6,} {row['up_s']:8.2f} {statistics.median(row['run_s']):8.3f} {row['bytes'] / 2**20:8.0f}")


def judge(rows):
    """Rows for bench/run: what, value, relation, target."""
    hcas = max(rows)
    yield f"{hcas:,} HCAs: s until they are up", rows[hcas]["up_s"], "<=", 30.0
    yield f"{hcas:,} HCAs: s of `softib run`", statistics.median(rows[hcas]["run_s"]), "<=", 0.2
    yield f"{hcas:,} HCAs: GiB of softibd", rows[hcas]["bytes"] / 2**30, "<=", 1.5
