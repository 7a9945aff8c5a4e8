#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Pictures of a subnet: files of `softib topology -o`, and the page of --serve in a browser.

pictures_test.py [--as root|nobody] [--only REGEX]
"""

import contextlib
import html.parser
import json
import pathlib
import re
import signal
import socket
import sys
import urllib.error
import urllib.request
import xml.etree.ElementTree as xml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import Failed  # noqa: E402
from support.browser import Browser  # noqa: E402

HOSTILE = ("<script>a(1)</script>", "\"];b0--b1", "a'&<b>\\N")
SVG = "{http://www.w3.org/2000/svg}"


class Svg:
    """A picture that Python's XML parser takes, and what it draws."""

    def __init__(self, path):
        self.text = path.read_text(encoding="utf-8")
        self.root = xml.fromstring(self.text)

    def drawn(self, prefix):
        return {one.get("id"): one for one in self.root.iter(SVG + "g") if re.fullmatch(prefix + r"\d+", one.get("id", ""))}

    def lines(self, kind):
        return [one.find(SVG + "title").text for one in self.drawn("l").values() if kind in one.get("class").split()]

    def box(self, name):
        for one in self.drawn("b").values():
            texts = [text.text for text in one.iter(SVG + "text")]
            if texts[0] == name:
                return one.get("class").split(), texts
        raise Failed(f"no box {name} in the picture")


def picture(fabric, *options, name="net.svg", seconds=60):
    path = fabric.runtime / name
    fabric.softib("topology", "--fabric", fabric.name, "-o", str(path), *options, seconds=seconds).require()
    return path


def expect(found, wanted, what):
    if found != wanted:
        raise Failed(f"{what}: {found}, expected {wanted}")


def files(report, fabric):
    with report.case("an SVG has all elements and cables"):
        svg = Svg(picture(fabric))
        expect((len(svg.drawn("b")), len(svg.drawn("l"))), (24, 32), "boxes and lines")
        expect(len(svg.lines("active")), 32, "active links")
        if "LID" not in svg.box("node3")[1][1]:
            raise Failed(f"node3 says {svg.box('node3')}")
    with report.case("a cable that is down, and errors, are drawn"):
        fabric.softib("cable", "down", "--fabric", fabric.name, "switch-1-1:6").require()
        fabric.softib("cable", "errors", "--fabric", fabric.name, "node2:1", "--symbol", "100").require()
        svg = Svg(picture(fabric))
        down = svg.lines("down")
        if len(down) != 1 or "switch-2-1 port 2 - switch-1-1 port 6: down" not in down[0]:
            raise Failed(f"lines that are down: {down}")
        if not any("switch-1-0 port 3 - node2" in line for line in svg.lines("errors")):
            raise Failed(f"lines with errors: {svg.lines('errors')}")
        if "errors" not in svg.box("node2")[0]:
            raise Failed(f"node2 has the classes {svg.box('node2')[0]}")
    with report.case("the way of a pair is the one of softib path"):
        path = json.loads(fabric.softib("path", "--fabric", fabric.name, "node0", "node9", "--json").require().text)
        svg = Svg(picture(fabric, "--from", "node0", "--to", "node9"))
        expect(len(svg.lines("hop")), len(path["hops"]), "lines of the way")
        for hop in path["hops"]:
            ends = {(hop["from"], hop["out"]), (hop["to"], hop["in"])}
            if not any(all(f"{name} port {port}" in line for name, port in ends) for line in svg.lines("hop")):
                raise Failed(f"{hop} is not in {svg.lines('hop')}")
    with report.case("an HTML file is complete and refers to nothing else"):
        text = picture(fabric, name="net.html").read_text(encoding="utf-8")
        html.parser.HTMLParser().feed(text)
        for pattern in (r"https?:", r"\bsrc=", r"\bhref=", r"url\(", r"@import"):
            if re.search(pattern, text):
                raise Failed(f"{pattern} is in the page")
    with report.case("Graphviz reads the DOT file"):
        harness.need_program("dot")
        program = harness.Program(["dot", "-Tplain", str(picture(fabric, name="net.dot"))])
        result = fabric.end(program, 60).require()
        expect(len(re.findall(r"^node ", result.text, re.MULTILINE)), 24, "boxes")
    with report.case("without Graphviz the words name the package"):
        prefix = [harness.need_program(word) if word == "setpriv" else word for word in fabric.user.prefix]
        program = harness.Program([*prefix, fabric.user.bin / "softib", "topology", "--fabric", fabric.name, "-o", "x.svg"],
                                  env={**fabric.base_env, "PATH": "/nonexistent"}, cwd=fabric.runtime)
        fabric.end(program, 30).require("package graphviz", code=9)


def large(report, user):
    with report.case("648 HCAs are folded by leaves"), harness.Fabric(
            nodes=None, user=user, extra=["--topology", "fat-tree:levels=2,ports=36"]) as fabric:
        fabric.softib("cable", "down", "--fabric", fabric.name, "node20:1").require()
        svg = Svg(picture(fabric))
        expect(len(svg.drawn("b")), 90, "boxes")
        if "648 HCAs share 36 boxes" not in svg.text or "ports: 1 down, 17 active" not in svg.text:
            raise Failed("the picture does not say what is folded, or what is down in it")
    with report.case("8,192 HCAs are folded by pods"), harness.Fabric(
            nodes=None, user=user, extra=["--topology", "fat-tree:hcas=8192,ports=32"]) as fabric:
        svg = Svg(picture(fabric))
        expect(len(svg.drawn("b")), 97, "boxes")


def hostile(report, user):
    with report.case("names of strangers are text"), harness.Fabric(
            nodes=None, user=user, extra=["--topology", "star:3"]) as fabric:
        for name in HOSTILE:
            fabric.softib("switch", "add", "--fabric", fabric.name, name, "--ports", "4").require()
        svg = Svg(picture(fabric))
        for name in HOSTILE:
            svg.box(name)
        text = picture(fabric, name="net.html").read_text(encoding="utf-8")
        if "<script>a(1)" in text:
            raise Failed("a name is markup in the page")
        harness.need_program("dot")
        fabric.end(harness.Program(["dot", "-Tplain", str(picture(fabric, name="net.dot"))]), 60).require()


class Served:
    """A running `softib topology --serve`."""

    def __init__(self, fabric, *options):
        words = [*fabric.user.prefix, fabric.user.bin / "softib", "topology", "--fabric", fabric.name, "--serve", *options]
        self.program = harness.Program(words, env=fabric.base_env, cwd=fabric.runtime)
        fabric.programs.append(self.program)
        found = self.program.wait_for_text(r"http://127\.0\.0\.1:(\d+)/\?token=([0-9a-f]{32})", 30)
        self.address, self.port, self.token = found.group(0), int(found.group(1)), found.group(2)

    def status(self, path, host=None, method="GET"):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method=method)
        if host:
            request.add_header("Host", host)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)


def access(report, fabric):
    served = Served(fabric)
    with report.case("only the address with the token is served"):
        expect(served.status(f"/?token={served.token}"), 200, "with the token")
        expect(served.status("/"), 403, "without a token")
        expect(served.status(f"/?token={served.token[:-1]}x"), 403, "with another token")
        expect(served.status("/state.json"), 403, "the state without a token")
        expect(served.status(f"/?token={served.token}", host=f"evil.example:{served.port}"), 403, "for another name")
        expect(served.status(f"/?token={served.token}", method="POST"), 405, "to POST")
    with report.case("only the loopback is listened on"):
        table = pathlib.Path(f"/proc/{served.program.pid}/net/tcp").read_text(encoding="ascii")
        found = re.findall(rf"^\s*\d+: ([0-9A-F]{{8}}):{served.port:04X} \S+ 0A", table, re.MULTILINE)
        expect(found, ["0100007F"], "addresses")
    with report.case("a request without an end is refused at its limit"):
        with served.connect() as client:
            client.sendall(b"GET / HTTP/1.1\r\nX: ")
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                client.sendall(b"a" * 100_000)
            with contextlib.suppress(ConnectionResetError):
                answer = client.recv(100)
                if answer and not answer.startswith(b"HTTP/1.1 400"):
                    raise Failed(f"the answer begins with {answer}")
    with report.case("clients that say nothing keep nobody from the page") as remarks:
        silent = [served.connect() for _ in range(300)]
        # Those beyond the limit are turned away; the others after their time.
        harness.wait_until(lambda: reads(served), 40, "the page beside 300 silent clients")
        for client in silent:
            client.close()
        remarks.append(f"{memory_of(served.program.pid)} KiB")
    with report.case("it ends with the fabric, and with Ctrl-C"):
        other = Served(fabric)
        other.program.process.send_signal(signal.SIGINT)
        other.program.wait(20)
        fabric.softib("down", "--fabric", fabric.name, "--force").require()
        expect(served.program.wait(20), 0, "its exit code")


def reads(served):
    try:
        return served.status(f"/?token={served.token}") == 200
    except OSError:
        return False


def memory_of(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1))


def line_class(page, upper, port):
    """A script: the class of the line at that port of an element."""
    return (f"(() => [...document.querySelectorAll('#lines .line')].find(line => "
            f"line.querySelector('title').textContent.startsWith('{upper} port {port} - '))?.getAttribute('class'))()")


def live(report, fabric, user):
    served = Served(fabric)
    with Browser(user.make_dir("softib-browser-")) as browser:
        page = browser.open(served.address)
        with report.case("a page shows a link that goes down, and up") as remarks:
            page.wait_for("document.getElementById('news').textContent === 'live'")
            expect(page.run(line_class(page, "switch-2-0", 2)), "line active", "the class before")
            fabric.softib("cable", "down", "--fabric", fabric.name, "switch-2-0:2").require()
            page.wait_for(line_class(page, "switch-2-0", 2) + "?.startsWith('line down')")
            expect(page.run("document.getElementById('summary').textContent"),
                   "16 HCAs, 8 switches, 32 cables, 1 down", "the summary")
            fabric.softib("cable", "up", "--fabric", fabric.name, "switch-2-0:2").require()
            page.wait_for(line_class(page, "switch-2-0", 2) + "?.startsWith('line active')")
            remarks.append(page.run("document.querySelector('#lines .line title').textContent"))
        with report.case("a click shows the facts of an element"):
            box = page.run("[...document.querySelectorAll('.box')].find("
                           "box => box.querySelector('text').textContent === 'node5').id")
            page.click(f"#{box} .name")
            facts = page.wait_for("document.getElementById('facts').textContent")
            for text in ("node5 softib0", "0x0253460000050000", "switch-1-1 port 2", "active"):
                if text not in facts:
                    raise Failed(f"no {text!r} in {facts!r}")
        with report.case("a search finds programs and names"):
            page.run("(() => { const field = document.getElementById('search'); field.value = 'switch-2-3';"
                     "field.dispatchEvent(new Event('input')); })()")
            expect(page.run("[...document.querySelectorAll('[data-match] .name')].map(one => one.textContent)"),
                   ["switch-2-3"], "boxes that are found")
        with report.case("a new switch makes a new layout"):
            fabric.softib("switch", "add", "--fabric", fabric.name, "extra", "--ports", "4").require()
            page.wait_for("[...document.querySelectorAll('.box .name')].some(one => one.textContent === 'extra')")
        with report.case("a program appears at its node"):
            program = fabric.start(["ibv_rc_pingpong", "-d", "softib0", "-p", str(harness.free_port())], node=3)
            page.wait_for("[...document.querySelectorAll('.box')].some(box => "
                          "box.textContent.startsWith('node3') && box.textContent.includes('ibv_rc_pingpong'))")
            program.kill()
        with report.case("counters move"):
            for side in fabric.pair(["ibv_rc_pingpong", "-d", "softib0", "-n", "5000", "-s", "65536"]):
                side.require()
            page.wait_for("document.getElementById('hottest').textContent.includes('has carried')")
            wide = page.wait_for("Math.max(...[...document.querySelectorAll('#lines .wire')].map("
                                 "wire => Number(wire.getAttribute('stroke-width')))) >= 7")
            expect(wide, True, "the width of the hottest line")
        with report.case("when the fabric ends the page says so"):
            fabric.softib("down", "--fabric", fabric.name, "--force").require()
            page.wait_for("document.getElementById('news').textContent.startsWith('ended')", 30)


def test(report, user):
    harness.need_program("dot")
    tree = ["--topology", "fat-tree:hcas=16,ports=8"]
    with harness.Fabric(nodes=None, user=user, extra=tree) as fabric:
        files(report, fabric)
    hostile(report, user)
    large(report, user)
    with harness.Fabric(nodes=None, user=user, extra=["--topology", "star:4"]) as fabric:
        access(report, fabric)
    with report.case("the page in a browser"):
        with harness.Fabric(nodes=None, user=user, extra=tree) as fabric:
            live(report, fabric, user)


harness.main("pictures", test)
