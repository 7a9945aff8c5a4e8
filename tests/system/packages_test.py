#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The Debian packages: built from the release build, examined by lintian, installed in a fresh root file system of
this machine's Debian, and used there as an unprivileged container would (support/container.py).

packages_test.py [--suite SUITE] [--only REGEX]      another SUITE, by hand: that of Debian 13 is `trixie`
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import harness
from harness import Failed, Skipped
from support import container

SEEN = r"softib0"
# Server and client; the client is retried until the server listens.
PINGPONG = """
softib run -- ibv_rc_pingpong > server.log 2>&1 & server=$!
tries=0
until softib run -- ibv_rc_pingpong 127.0.0.1 > client.log 2>&1; do
  tries=$((tries + 1)); [ $tries -lt 300 ] || { cat client.log server.log; exit 1; }
done
wait $server && cat client.log && softib doctor
"""


def run(words, seconds=120, **more):
    try:
        done = subprocess.run([str(word) for word in words], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False, timeout=seconds, **more)
    except subprocess.TimeoutExpired as late:
        said = (late.stdout or b"").decode(errors="replace")
        raise Failed(f"{words[0]} did not end in {seconds} s:\n{harness.tail(said)}") from late
    return done.returncode, done.stdout


def require(words, *patterns, seconds=120, code=0, **more):
    got, text = run(words, seconds, **more)
    if got != code:
        raise Failed(f"{' '.join(map(str, words))} ended with {got}:\n{harness.tail(text, 40)}")
    for pattern in patterns:
        if not re.search(pattern, text, re.MULTILINE):
            raise Failed(f"{' '.join(map(str, words))}: no {pattern!r} in\n{harness.tail(text, 40)}")
    return text


def make_packages(folder):
    if not (harness.BUILD / "CPackConfig.cmake").exists():
        raise Skipped(f"{harness.BUILD} has no CPackConfig.cmake")
    harness.need_program("dpkg-shlibdeps")
    # A folder without blanks for the packages, whatever the build folder is called.
    require(["cpack", "--config", harness.BUILD / "CPackConfig.cmake", "-B", folder])
    packages = sorted(folder.glob("*.deb"), key=lambda file: file.name.split("_"))
    names = [package.name.split("_")[0] for package in packages]
    if names != ["softib", "softib-dev"]:
        raise Failed(f"cpack made {names}")
    return packages


def lint(packages, remarks):
    harness.need_program("lintian")
    code, text = run(["lintian", "--fail-on", "error,warning", *packages],
                     env={**os.environ, "LC_ALL": "C.UTF-8"})
    findings = [line for line in text.splitlines() if re.match(r"[EW]: ", line)]
    manuals = list((harness.SOURCE / "docs/man").glob("*.1"))
    if not manuals:  # nothing to install
        remarks.append("this tree has no manual pages")
        findings = [line for line in findings if "no-manual-page" not in line]
    if findings or code not in (0, 2):
        raise Failed("lintian:\n" + harness.tail(text, 40))


def refuse_prefix(folder):
    """A path that LD_PRELOAD cannot name is refused at installation, before anything is copied."""
    for prefix in (folder / "with blank", folder / "with:colon"):
        code, text = run(["cmake", "--install", harness.BUILD, "--prefix", prefix])
        if code == 0 or "Choose another --prefix" not in text or (prefix / "bin").exists():
            raise Failed(f"installing in {prefix} ended with {code}:\n{harness.tail(text)}")


def check_unit(packages, folder):
    """The user unit, with the programs where this test has unpacked them."""
    harness.need_program("systemd-analyze")
    root = folder / "unpacked"
    require(["dpkg-deb", "-x", packages[0], root])
    unit = root / "usr/lib/systemd/user/softib.service"
    text = unit.read_text()
    if "ExecStart=/usr/bin/softibd " not in text:
        raise Failed(f"the unit does not start /usr/bin/softibd:\n{text}")
    unit.write_text(text.replace("/usr/bin/", f"{root}/usr/bin/"))
    said = require(["systemd-analyze", "--user", "--man=no", "verify", unit],
                   env={**os.environ, "XDG_RUNTIME_DIR": str(folder)})
    if unit.name in said:
        raise Failed(said)


def own_sources(suite):
    """The apt sources of this machine; None if mmdebstrap cannot use any."""
    files = [pathlib.Path("/etc/apt/sources.list"), *sorted(pathlib.Path("/etc/apt/sources.list.d").glob("*"))]
    found = [file for file in files if file.suffix in (".list", ".sources") and file.is_file() and
             re.search(rf"^(deb|Suites:).*\b{suite}\b", file.read_text(errors="replace"), re.MULTILINE)]
    return found or None


def release_of(name):
    match = re.search(rf"^{name}=(\S+)$", pathlib.Path("/etc/os-release").read_text(), re.MULTILINE)
    return match.group(1) if match else ""


def make_root(folder, packages, suite):
    harness.need_program("mmdebstrap")
    if why := container.why_not():
        raise Skipped(why)
    sources = own_sources(release_of("VERSION_CODENAME"))
    if sources is None:
        raise Skipped("apt has no source of this Debian")
    root = folder / "root"
    lines = [line for file in sources for line in file.read_text().splitlines(keepends=True)]
    copied = folder / f"machine{sources[0].suffix}"
    copied.write_text("".join(lines).replace(release_of("VERSION_CODENAME"), suite))
    # As a container engine does: minbase has no name for the loopback address.
    hooks = ['--customize-hook=echo "127.0.0.1 localhost" > "$1/etc/hosts"',
             "--customize-hook=copy-in " + " ".join(map(str, packages)) + " /opt",
             '--customize-hook=chroot "$1" apt-get install -y --no-install-recommends '
             + " ".join(f"/opt/{package.name}" for package in packages)]
    code, text = run(["mmdebstrap", "--variant=minbase", "--include=ibverbs-providers,ibverbs-utils,perftest,rdmacm-utils",
                      *hooks, suite, root, copied], seconds=280)
    if code and re.search(r"Could not (resolve|connect)|Failed to fetch|Temporary failure|apt-get update .*fail", text):
        raise Skipped("no mirror can be reached: " + harness.tail(text, 3))
    if code:
        raise Failed(f"mmdebstrap ended with {code}:\n{harness.tail(text, 40)}")
    root.chmod(0o755)
    return root


def in_root(root, script, *patterns, old=False, seconds=60):
    return require(container.command(root, ["sh", "-c", script], old=old), *patterns, seconds=seconds)


def five_minutes():
    """The commands of the README, as a script."""
    text = (harness.SOURCE / "README.md").read_text()
    section = text.split("## Five minutes", 1)[1].split("```")[1]
    lines = [line for line in section.splitlines() if line.strip() and not line.startswith("export PATH=")]
    return "set -e\n" + "\n".join(lines) + "\nwait\n"


def use(report, root):
    with report.case("as uid 65534, under Docker's default system calls") as remarks:
        text = in_root(root, PINGPONG, r"usec/iter", r"userfaultfd +none .*seccomp", r"process_vm_readv +works")
        remarks.append(re.search(r"\S+ usec/iter", text).group())
    with report.case("the same, on a kernel where these exclude process_vm_*") as remarks:
        text = in_root(root, PINGPONG, r"usec/iter", r"process_vm_readv +not possible", old=True)
        remarks.append(re.search(r"\S+ usec/iter", text).group())
    with report.case("large transfers, both directions"):
        for old in (False, True):
            in_root(root, PINGPONG.replace("ibv_rc_pingpong", "ibv_rc_pingpong -s 1048576 -n 50 -c"), r"usec/iter",
                    old=old)
    with report.case("the commands of the README"):
        in_root(root, five_minutes(), SEEN, seconds=90)
    with report.case("manual pages, completions and unit are where programs look for them") as remarks:
        wanted = [root / "usr/lib/systemd/user/softib.service", root / "usr/lib/cmake/softib/softibConfig.cmake"]
        if (harness.SOURCE / "completions/softib.bash").exists():
            wanted.append(root / "usr/share/bash-completion/completions/softib")
        missing = [str(file) for file in wanted if not file.exists()]
        if missing:
            raise Failed(f"missing: {missing}")
        remarks.append(f"{len(wanted)} files")
    with report.case("the packages can be removed"):
        require(["chroot", root, "dpkg", "--purge", "softib-dev", "softib"])
        left = [path for path in root.rglob("*softib*") if not path.is_relative_to(root / "opt")
                and not path.is_relative_to(root / "var/log")]
        if left:
            raise Failed(f"left: {left}")


def main():
    report = harness.Report("packages")
    suite = sys.argv[sys.argv.index("--suite") + 1] if "--suite" in sys.argv else release_of("VERSION_CODENAME")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="softib-packages-"))
    folder.chmod(0o755)
    packages = root = None
    try:
        with report.case("cpack makes two packages") as remarks:
            packages = make_packages(folder / "packages")
            remarks += [f"{package.name} {package.stat().st_size >> 10} KiB" for package in packages]
        if packages is not None:
            with report.case("lintian has neither errors nor warnings") as remarks:
                lint(packages, remarks)
            with report.case("a prefix that LD_PRELOAD cannot name is refused"):
                refuse_prefix(folder)
            with report.case("systemd takes the user unit"):
                check_unit(packages, folder)
            with report.case(f"they install in a fresh root ({suite})"):
                root = make_root(folder, packages, suite)
        if root is not None:
            use(report, root)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(report.finish())


if __name__ == "__main__":
    main()
