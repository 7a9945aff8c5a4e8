#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Files of drivers that change while their drivers are loaded, and drivers that crash.

driver_files_test.py [--as root|nobody] [--only REGEX]      of the functions below
"""
import os
import shutil

import harness
from support.device_tree import daemon_pid, hca_of, require, softib, store_folder, write_store

CONFIG = """
drivers = "drivers"
ipoib = false
[[child]]
name = "test"
device_id = 'IBA\\Test'
"""
FOLDER = "test-bin/drivers"


def fabric_with(driver, folder, user, name):
    config = write_store(folder, user, CONFIG, {driver: (f"{FOLDER}/libtest_driver_{driver}.so", "IBA\\Test")})
    return harness.Fabric(nodes=1, user=user, name=name, extra=["--config", str(config)])


def child(fabric):
    return hca_of(fabric)["children"][0]


def updated(report, user):
    with report.case("the file of a loaded driver is written anew, as cp does it; then it is unloaded and loaded"):
        with store_folder(user) as folder, fabric_with("good", folder, user, "update") as fabric:
            require(child(fabric)["driver"] == "good", str(child(fabric)))
            pid = daemon_pid(fabric)
            module = folder / "drivers/libtest_driver_good.so"
            newer = (harness.BUILD / FOLDER / "libtest_driver_leaky.so").read_bytes()
            module.write_bytes(newer)  # in place: the same file, at first empty
            softib(fabric, "power", "sleep")
            softib(fabric, "power", "resume")
            softib(fabric, "driver", "unload", "good")
            softib(fabric, "driver", "load", "good")
            require(child(fabric)["state"] == "started", str(child(fabric)))
            require(daemon_pid(fabric) == pid, "softibd has died")
            # The new file's driver keeps a reference, the old one's did not.
            result = softib(fabric, "driver", "unload", "good", code=10)
            require("driver good still has 1 open of the access layer" in result.text, result.text)

    with report.case("a file that is empty or is no module is refused in words; the driver loads when it is right again"):
        with store_folder(user) as folder, fabric_with("good", folder, user, "wrong") as fabric:
            softib(fabric, "driver", "unload", "good")
            module = folder / "drivers/libtest_driver_good.so"
            right = module.read_bytes()
            for text, words in ((b"", "file too short"), (b"no module " * 20, "invalid ELF header")):
                module.write_bytes(text)
                result = softib(fabric, "driver", "load", "good", code=1)
                require(str(module) in result.text and words in result.text, result.text)
            module.unlink()
            result = softib(fabric, "driver", "load", "good", code=1)
            require(f"cannot open {module}: No such file" in result.text, result.text)
            module.write_bytes(right)
            shutil.chown(module, user.uid)
            os.chmod(module, 0o755)
            softib(fabric, "driver", "load", "good")
            require(child(fabric)["state"] == "started", str(child(fabric)))


def crashes(report, user):
    with report.case("a driver that crashes is named in the log, by status and by explain"):
        with store_folder(user) as folder, fabric_with("crashing", folder, user, "crash") as fabric:
            softib(fabric, "power", "sleep", code=7)
            named = f"SIGSEGV at address 0x0 in driver crashing ({folder}/drivers/libtest_driver_crashing.so + 0x"
            log = (fabric.runtime / "crash.log").read_text()
            require(f" C crashed: {named}" in log, log)
            for command, code in (("status", 5), ("explain", 0)):
                result = softib(fabric, command, code=code)
                require(named in result.text, f"softib {command}: {result.text}")
            softib(fabric, "down")
            softib(fabric, "up")
            softib(fabric, "down")
            result = softib(fabric, "status", code=5)
            require("crash" not in result.text.replace("crash.sock", "").replace('"crash"', "").replace(
                "--fabric crash", ""), f"of a fabric that went down in order: {result.text}")

    with report.case("a driver that drops a request: the assertion is in the log and in status, as is what it prints"):
        with store_folder(user) as folder, fabric_with("dropping", folder, user, "drop") as fabric:
            softib(fabric, "power", "sleep", code=7)
            log = (fabric.runtime / "drop.log").read_text()
            require(" I printed: the dropping driver is here\n" in log, log)
            result = softib(fabric, "status", code=5)
            require("SIGABRT" in result.text and "called by driver dropping" in result.text
                    and "assertion failed: irp_ == nullptr" in result.text, result.text)

    with report.case("one that crashes in a function of a library while the fabric comes up: only this start's log"):
        with harness.Fabric(nodes=1, user=user, name="ok") as fabric, store_folder(user) as folder:
            config = write_store(folder, user, CONFIG,
                                 {"starting": (f"{FOLDER}/libtest_driver_starting.so", "IBA\\Test")})
            (fabric.runtime / "start.log").write_text("the log of another start\n")
            shutil.chown(fabric.runtime / "start.log", user.uid)
            result = fabric.softib("up", "--fabric", "start", "--config", str(config))
            result.require(r"softibd started and crashed: SIGSEGV at address 0x\w+ in a library",
                           r"called by driver starting", code=7, forbid=["another start"])
            result = fabric.softib("status", "--fabric", "start").require(r"called by driver starting", code=5)


def test(report, user):
    for part in (updated, crashes):
        if report.wanted(part.__name__):
            part(report, user)


harness.main("driver files", test)
