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


PART = "part"


def read_layers(path):
    """Returns the layers, and the parts of layers: what each may include."""
    layers, parts = {}, {}
    for line in path.read_text().splitlines():
        words = line.split("#")[0].split()
        if not words:
            continue
        name, kind, *allowed = words
        if kind not in {PART, *FORBIDDEN}:
            sys.exit(f"layers.txt: {name}: unknown kind '{kind}'; use one of {', '.join(FORBIDDEN)} or {PART}")
        if kind == PART and name.split("/")[0] != list(layers)[-1]:
            sys.exit(f"layers.txt: {name} stands below another layer than its own")
        unknown = [a for a in allowed if a not in (parts if kind == PART else layers)]
        if unknown:  # a layer may name only earlier ones, so the table has no cycle
            sys.exit(f"layers.txt: {name} names {unknown} before they are defined")
        if kind == PART:
            parts[name] = set(allowed)
        else:
            layers[name] = (kind, {name, *allowed})
    return layers, parts


def listed_files():
    """Returns every path that a CMakeLists.txt under src/ names."""
    listed = set()
    for lists in SRC.rglob("CMakeLists.txt"):
        text = re.sub(r"#.*", "", lists.read_text())
        listed.update((lists.parent / word).resolve() for word in re.findall(r"[\w./+-]+", text))
    return listed


def is_test_file(path):
    return path.stem.endswith(("_test", "_fuzz", "_bench")) or "test" in path.parent.parts


def part_of(file, parts):
    """Returns the innermost part that a file (a path under src/) is in, or nothing."""
    return next((str(folder) for folder in file.parents if str(folder) in parts), None)


def complaints_about_parts(path, layer, parts):
    own = part_of(path.relative_to(SRC), parts)
    divided = any(part.startswith(f"{layer}/") for part in parts)
    if is_test_file(path) or not divided:
        return
    if own is None:
        if path.parent != SRC / layer:
            yield f"{path.relative_to(ROOT)}: folder '{path.parent.relative_to(SRC)}' is not in layers.txt"
        return
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        other = part_of(pathlib.Path(match.group(2)), parts) if match and match.group(1) == '"' else None
        if other is None or other.split("/")[0] != layer or other == own or other in parts[own]:
            continue
        if not other.startswith(f"{own}/") and not own.startswith(f"{other}/"):
            yield (f"{path.relative_to(ROOT)}:{number}: {own} may not include {match.group(2)} "
                   f"(layers.txt: {' '.join(sorted(parts[own])) or 'nothing of its layer'})")


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


def complaints(layers, parts):
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
        yield from complaints_about_parts(path, layer, parts)


found = list(complaints(*read_layers(ROOT / "layers.txt")))
print("\n".join(found) or "layers: ok")
sys.exit(bool(found))
