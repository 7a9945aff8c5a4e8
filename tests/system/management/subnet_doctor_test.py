#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""`softib doctor --subnet`: subnets that are in order, and faults of several kinds, made by softib's commands and by
SMPs of tests/system/programs/umad/smp.py. The findings, one by one: src/fabric/health/examine_test.cpp.

subnet_doctor_test.py [--as root|nobody] [--only REGEX]
"""
import json
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import harness
from harness import Failed
from subnet_test import OPENSM, SECONDS, all_active, end_ports, subnet

PROGRAM = pathlib.Path(__file__).resolve().parents[1] / "programs/umad/smp.py"
TREE = "fat-tree:levels=2,ports=4"  # 8 adapters, 6 switches, 16 cables
FAULTY, NOT_UP = 1, 5
LEAF, LINEAR, BLOCK = "0,1", 0x19, 64


def examine(fabric, *patterns, code=0, forbid=()):
    fabric.softib("doctor", "--fabric", fabric.name).require(*patterns, code=code, forbid=forbid)
    return json.loads(fabric.softib("doctor", "--subnet", "--json", "--fabric", fabric.name).require(code=code).text)


def in_order(report, user):
    with report.case("a tree is in order"), subnet(user, TREE) as fabric:
        found = examine(fabric, "^checked: 8 adapters, 6 switches, 16 cables, 1 subnet$",
                        r"^  56 ways of data .*: all arrive$", "^  28 pairs of ports, for a common partition$", "^no fault$",
                        forbid=("fault:", "warn"))
        if found["faults"] or found["findings"] or found["checked"]["ways"] != 56:
            raise Failed(found)
    with report.case("the network without cables"), harness.Fabric(nodes=3, user=user) as fabric:
        examine(fabric, "^  3 ports without a cable: the ideal network joins them", "^no fault$")
        fabric.softib("doctor", "--subnet", "--fabric", "other").require("is not up", code=NOT_UP)


def faults(report, user):
    with subnet(user, TREE) as fabric:
        with report.case("a port that is down"):
            fabric.softib("port", "down", "--node", 3, "--fabric", fabric.name).require()
            found = examine(fabric, "^FAULT ports: port 1 of node3 softib0$", "it is down: somebody has disabled it", "^1 fault$",
                            r"^  42 ways .*: all arrive$", code=FAULTY)
            if [each["check"] for each in found["findings"]] != ["ports"]:
                raise Failed(found)
            fabric.softib("port", "up", "--node", 3, "--fabric", fabric.name).require()
            examine(fabric, "^no fault$")
        with report.case("a switch without power"):
            fabric.softib("switch", "down", "switch-1-0", "--fabric", fabric.name).require()
            examine(fabric, "^FAULT ports: switch-1-0$", "it has no power", code=FAULTY)
            fabric.softib("switch", "up", "switch-1-0", "--fabric", fabric.name).require()
            examine(fabric, "^no fault$")
    with report.case("credit loops of a torus"), subnet(user, "torus:5x1", "--sm", "direct") as fabric:
        found = examine(fabric, r"^warn  credit loops: port \d+ of ", "5 channels wait for each other in a circle",
                        "^no fault, 2 warnings$")
        if {each["severity"] for each in found["findings"]} != {"warning"}:
            raise Failed(found)


def faults_of_managers(report, user):
    """softib keeps out, and OpenSM has configured the subnet and gone: who changes a table has it for himself."""
    with subnet(user, TREE, "--sm", "none") as fabric:
        with report.case("no subnet manager"):
            examine(fabric, "^FAULT managers: ", "its link is up, and it is in state Init: no data", "^  0 ways ", code=FAULTY)
        folder = fabric.user.make_dir("subnet-doctor-")
        program = folder / "smp.py"
        shutil.copyfile(PROGRAM, program)
        program.chmod(0o755)
        paths = [f"OSM_TMP_DIR={folder}", f"OSM_CACHE_DIR={folder}"]
        fabric.run(["env", *paths, OPENSM, "-o", "-f", folder / "opensm.log"]).require()
        harness.wait_until(lambda: all_active(fabric), SECONDS, "all ports to be active")
        with report.case("the tables of OpenSM"):
            examine(fabric, r"^  56 ways .*: all arrive$", "^1 fault$", code=FAULTY)  # it has gone
        with report.case("a LID without an entry"):
            lid = end_ports(fabric)[7]["lid"]
            place, block = lid % BLOCK, lid // BLOCK
            before = fabric.run(["python3", program, "get", LEAF, LINEAR, block]).require().text.strip()
            fabric.run(["python3", program, "set", LEAF, LINEAR, block, f"{place}=ff"]).require()
            examine(fabric, "^FAULT ways: ", rf"its table has no port for LID {lid}: 2 ways are cut off", r"ways .*: 2 cut off$",
                    code=FAULTY)
            fabric.run(["python3", program, "set", LEAF, LINEAR, block, f"{place}={before[2 * place:2 * place + 2]}"]).require()
            examine(fabric, r"ways .*: all arrive$", code=FAULTY)


def test(report, user):
    for part in (in_order, faults, faults_of_managers):
        part(report, user)


harness.main("subnet doctor", test)
