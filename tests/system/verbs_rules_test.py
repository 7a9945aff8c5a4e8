#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Builds and runs verbs_rules.c: the rules of libibverbs, from its manual pages and from adapters.

verbs_rules_test.py [--as root|nobody] [--only REGEX]
"""
import os
import shutil
import subprocess
import tempfile

import harness
from harness import Failed


def build(directory):
    compiler = harness.need_program("cc")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs/verbs_rules.c")
    program = os.path.join(directory, "verbs_rules")
    done = subprocess.run([compiler, "-O2", "-Wall", "-Wextra", "-Werror", "-o", program, source, "-libverbs"],
                          timeout=60, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"cc verbs_rules.c:\n{done.stderr}")
    return program


def test(report, user):
    directory = tempfile.mkdtemp(prefix="softib-rules-")
    os.chmod(directory, 0o755)
    try:
        with harness.Fabric(nodes=1, user=user) as fabric:
            with report.case("verbs_rules") as remarks:
                done = fabric.run([build(directory)]).require(r"^0 rules broken$")
                remarks.append(done.text.splitlines()[0])
    finally:
        shutil.rmtree(directory)


harness.main("verbs rules", test)
