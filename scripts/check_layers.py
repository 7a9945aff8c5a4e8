#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Fails when a file under src/ includes or uses something its layer may not (layers.txt), or when no
CMakeLists.txt lists it."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SRC = ROOT / "src"
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SYSTEM = re.compile(r"^(sys/|netinet/|arpa/|net/|linux/|infiniband/|rdma/|asio|spdlog/|unistd\.h|fcntl\.h|"
                    r"poll\.h|dirent\.h|dlfcn\.h|sched\.h|signal\.h|csignal|time\.h|ctime|pthread\.h|"
                    r"thread|future|fstream|iostream|filesystem|windows\.h|liburing\.h)")
LOCKS = re.compile(r"^(mutex|shared_mutex|condition_variable|semaphore|latch|barrier|stop_token)$")
FORBIDDEN = {"pure": (SYSTEM, LOCKS), "locked": (SYSTEM,), "system": ()}
CLOCK = re.compile(r"\b(steady|system|high_resolution)_clock::now\b|\brandom_device\b|\bgetenv\s*\(")
COMMENT = re.compile(r"//.*")


def read_layers(path):
    layers = {}
    for line in path.read_text().splitlines():
        words = line.split("#")[0].split()
        if not words:
            continue
        name, kind, *allowed = words
        if kind not in FORBIDDEN:
            sys.exit(f"layers.txt: {name}: unknown kind '{kind}'; use one of {', '.join(FORBIDDEN)}")
        unknown = [a for a in allowed if a not in layers]
        if unknown:  # a layer may name only earlier ones, so the table has no cycle
            sys.exit(f"layers.txt: {name} names {unknown} before they are defined")
        layers[name] = (kind, {name, *allowed})
    return layers


def listed_files():
    """Returns every path that a CMakeLists.txt under src/ names."""
    listed = set()
    for lists in SRC.rglob("CMakeLists.txt"):
        text = re.sub(r"#.*", "", lists.read_text())
        listed.update((lists.parent / word).resolve() for word in re.findall(r"[\w./+-]+", text))
    return listed


def complaints_about(path, layer, kind, allowed):
    is_test = path.stem.endswith(("_test", "_fuzz", "_bench"))
    for number, line in enumerate(path.read_text().splitlines(), 1):
        where = f"{path.relative_to(ROOT)}:{number}"
        if "tidy: allow(layers)" in line:
            continue
        match = INCLUDE.match(line)
        if match:
            quote, target = match.groups()
            if quote == '"' and target.split("/")[0] not in allowed:
                yield f"{where}: {layer} may not include {target} (layers.txt: {' '.join(sorted(allowed))})"
            if quote == "<" and not is_test and any(f.match(target) for f in FORBIDDEN[kind]):
                yield f"{where}: {layer} is {kind} and may not include <{target}>; ask through platform/"
        elif kind != "system" and not is_test:
            match = CLOCK.search(COMMENT.sub("", line))
            if match:
                yield f"{where}: {layer} is {kind} and may not use {match.group()}; have the caller pass the value in"


def complaints(layers):
    listed = listed_files()
    for path in sorted(SRC.rglob("*")):
        if path.suffix not in {".h", ".cpp"}:
            continue
        layer = path.relative_to(SRC).parts[0]
        if layer not in layers:
            yield f"{path.relative_to(ROOT)}: folder '{layer}' is not in layers.txt"
            continue
        if path not in listed:
            yield f"{path.relative_to(ROOT)}: no CMakeLists.txt lists it; list it or delete it"
        yield from complaints_about(path, layer, *layers[layer])


found = list(complaints(read_layers(ROOT / "layers.txt")))
print("\n".join(found) or "layers: ok")
sys.exit(bool(found))
