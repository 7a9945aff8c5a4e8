# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Runs rdma-core's tests/run_tests.py as it is, and writes the outcome of each test as a line of JSON, at once,
so that a crash does not take the results with it:  driver.py RESULTS run_tests.py [its arguments ...]"""
import faulthandler
import inspect
import json
import os
import runpy
import sys
import unittest

# The tests of librdmacm look for the address of a device at its network interface, which InfiniBand ports do not have
# here: there is no IPoIB. That of Ethernet ports is the loopback interface, whose first address is that of no port.
# They get the address of the node.
ADDRESS = os.environ.get("SOFTIB_TEST_ADDRESS")
results = open(sys.argv[1], "a", buffering=1, encoding="utf-8")
faulthandler.enable()


def record(test, what, reason=""):
    print(json.dumps({"test": test.id(), "what": what, "reason": reason}), file=results, flush=True)


def asks_the_kernel(test):
    """Newer suites find the network interface of a port with iproute2's `rdma`, so by netlink, which softib does not
    answer. They accept ports that have none."""
    name = getattr(test, "get_net_name", None)
    return name is not None and "port" in inspect.signature(name).parameters


class Recorder(unittest.TextTestResult):
    def startTest(self, test):
        record(test, "started")
        if asks_the_kernel(test):
            test.get_net_name = lambda device, port=None: None
        if ADDRESS and test.id().startswith("tests.test_rdmacm."):
            test._get_ip_mac = lambda device, port, index: test.args.append([device, port, index, ADDRESS, None])
        super().startTest(test)

    def addSuccess(self, test):
        record(test, "passed")
        super().addSuccess(test)

    def addFailure(self, test, err):
        record(test, "failed", self._exc_info_to_string(err, test))
        super().addFailure(test, err)

    def addError(self, test, err):
        record(test, "error", self._exc_info_to_string(err, test))
        super().addError(test, err)

    def addSkip(self, test, reason):
        record(test, "skipped", reason)
        super().addSkip(test, reason)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            record(test, "failed", f"{subtest.id()}: {self._exc_info_to_string(err, test)}")
        super().addSubTest(test, subtest, err)


unittest.TextTestRunner.resultclass = Recorder
sys.argv = sys.argv[2:]
sys.path.insert(0, sys.argv[0].rsplit("/", 1)[0])
runpy.run_path(sys.argv[0], run_name="__main__")
