#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""clang_tidy.py <build folder> [path ...]   Runs clang-tidy over our sources (or those under the paths).

A file that was clean is not checked again until it, a header of ours it can reach, its compile command, or
.clang-tidy changes: the verdicts are kept in build/tidy_cache by the hash of all that.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = ROOT / "build" / "tidy_cache"
TIDY = "clang-tidy-14"
INCLUDE = re.compile(rb'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
UNKNOWN_TO_CLANG = {"-fno-gnu-unique", "-Werror"}
# The static analyser takes most of the time and finds nothing in tests, since macros hide their paths.
TEST_CHECKS = ("-clang-analyzer-*,-performance-*,-readability-function-*,-bugprone-unchecked-optional-access,"
               "-bugprone-implicit-widening-of-multiplication-result")


def is_test(path):
    return path.stem.endswith(("_test", "_fuzz", "_bench")) or path.parts[len(ROOT.parts)] in ("tests", "bench", "examples")


def closure(path, known):
    """Returns `path` and every header of ours that it can reach, conditions ignored."""
    seen, todo = set(), [path]
    while todo:
        at = todo.pop()
        if at in seen:
            continue
        seen.add(at)
        if at not in known:
            content = at.read_bytes()
            nearby = (at.parent, ROOT / "src", ROOT / "include", ROOT)
            found = ((folder / name.decode()).resolve() for name in INCLUDE.findall(content) for folder in nearby)
            known[at] = (hashlib.sha256(content).digest(), [header for header in found if header.is_file()])
        todo += known[at][1]
    return sorted(seen)


def clean_command(entry):
    words = [w for w in shlex.split(entry["command"]) if w not in UNKNOWN_TO_CLANG]
    while words and words[0].endswith("ccache"):
        words.pop(0)
    return words


def key(path, words, known, version):
    digest = hashlib.sha256(version + (ROOT / ".clang-tidy").read_bytes() + str((is_test(path), TEST_CHECKS)).encode())
    skip = 0
    for word in words:  # the place of the object file does not matter
        if skip or word in {"-o", "-MF", "-MT", "-c"}:
            skip = 0 if skip else word != "-c"
            continue
        digest.update(word.encode() + b"\0")
    for file in closure(path, known):
        digest.update(str(file).encode() + known[file][0])
    return digest.hexdigest()


def check(path, database):
    command = [TIDY, "--quiet", "-p", database, "--extra-arg=-Wno-unknown-warning-option"]
    if is_test(path):
        command.append("--checks=" + TEST_CHECKS)
    done = subprocess.run([*command, str(path)], capture_output=True, text=True)
    return done.returncode, done.stdout + ("" if done.returncode == 0 else done.stderr)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if not shutil.which(TIDY):
        print(f"{TIDY} is not installed (scripts/setup installs it)")
        return 77
    build = pathlib.Path(sys.argv[1]).resolve()
    under = [pathlib.Path(p).resolve() for p in sys.argv[2:]] or [ROOT]
    entries = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        if path.is_relative_to(ROOT / "build") or path.is_relative_to(build) or not path.is_file():
            continue
        if any(path.is_relative_to(u) for u in under):
            entries[path] = entry
    version = subprocess.run([TIDY, "--version"], check=True, capture_output=True).stdout
    CACHE.mkdir(parents=True, exist_ok=True)
    known, todo = {}, []
    for path, entry in sorted(entries.items()):
        words = clean_command(entry)
        verdict = CACHE / key(path, words, known, version)
        if verdict.exists():
            os.utime(verdict)
        else:
            todo.append((path, verdict, {"directory": entry["directory"], "file": str(path), "arguments": words}))
    print(f"clang-tidy: {len(entries)} files, {len(todo)} to check", flush=True)
    bad, from_ = 0, time.monotonic()
    with tempfile.TemporaryDirectory() as database, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        (pathlib.Path(database) / "compile_commands.json").write_text(json.dumps([e for _, _, e in todo]))
        running = {pool.submit(check, path, database): (path, verdict) for path, verdict, _ in todo}
        for number, future in enumerate(concurrent.futures.as_completed(running), 1):
            path, verdict = running[future]
            code, text = future.result()
            print(f"[{number}/{len(todo)}] {path.relative_to(ROOT)}{'' if code == 0 else ': FAILED'}", flush=True)
            if code == 0:
                verdict.touch()
            else:
                bad += 1
                print(text, flush=True)
    for old in CACHE.iterdir():
        if old.stat().st_mtime < time.time() - 30 * 86400:
            old.unlink(missing_ok=True)
    print(f"clang-tidy: {bad} files with complaints, {time.monotonic() - from_:.0f} s")
    return bool(bad)


sys.exit(main())
