# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A page in Debian's Chromium without a window, driven by its DevTools protocol over a pair of pipes: no driver
program, no port.

    with Browser(folder) as browser:
        page = browser.open("http://127.0.0.1:8080/")
        page.run("document.title")
"""
import json
import os
import select
import shutil
import subprocess
import time

import harness


class Browser:
    def __init__(self, folder):
        self.program = shutil.which("chromium") or shutil.which("chromium-browser")
        if self.program is None:
            raise harness.Skipped("chromium is not installed (packages.txt)")
        self.folder = folder
        self.process = None
        self.number = 0
        self.buffer = b""

    def __enter__(self):
        commands, self.commands = os.pipe()
        self.answers, answers = os.pipe()

        def take_pipes():  # Chromium reads commands from 3 and writes answers to 4
            os.dup2(commands, 10)
            os.dup2(answers, 11)
            os.dup2(10, 3)
            os.dup2(11, 4)

        words = [self.program, "--headless", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                 "--remote-debugging-pipe", f"--user-data-dir={self.folder}", "about:blank"]
        if os.getuid() == 0:
            words.insert(1, "--no-sandbox")
        env = {**os.environ, "HOME": str(self.folder)}
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, preexec_fn=take_pipes, close_fds=False, env=env)
        os.close(commands)
        os.close(answers)
        return self

    def __exit__(self, *_):
        os.close(self.commands)
        os.close(self.answers)
        self.process.kill()
        self.process.wait(30)

    def call(self, method, session=None, **parameters):
        """The result of a command; events that come before it are dropped."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + 30
        while True:
            answer = self.receive(deadline, method)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise harness.Failed(f"Chromium refuses {method}: {answer['error']}")
                return answer["result"]

    def receive(self, deadline, what):
        while b"\0" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.answers], [], [], left)[0]:
                raise harness.Failed(f"Chromium does not answer {what}")
            part = os.read(self.answers, 1 << 20)
            if not part:
                raise harness.Failed(f"Chromium ended during {what}")
            self.buffer += part
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def open(self, address):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        page.go(address)
        return page


class Page:
    def __init__(self, browser, session):
        self.browser, self.session = browser, session

    def go(self, address):
        self.browser.call("Page.navigate", self.session, url=address)
        harness.wait_until(lambda: self.run("location.href + document.readyState") == address + "complete", 20,
                           f"{address} to be loaded")

    def run(self, script):
        """The value of an expression in the page."""
        answer = self.browser.call("Runtime.evaluate", self.session, expression=script, returnByValue=True)
        if "exceptionDetails" in answer:
            raise harness.Failed(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait_for(self, script, seconds=15):
        return harness.wait_until(lambda: self.run(script), seconds, f"{script} in the page")

    def click(self, selector):
        """With the mouse, in the middle of an element."""
        x, y = self.run("(() => { const box = document.querySelector(" + json.dumps(selector) + ")"
                        ".getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()")
        for kind in ("mousePressed", "mouseReleased"):
            self.browser.call("Input.dispatchMouseEvent", self.session, type=kind, x=x, y=y, button="left",
                              clickCount=1)
