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

# One program for both: each MPI has its own environment, and its own build of ring.c.
MPI_PROGRAM = """#!/bin/sh
exec /opt/mpi/ring.${OMPI_COMM_WORLD_RANK+openmpi}${PMI_RANK+mpich}
"""
PACKETS = """softib run --node 1 -- \\
  sed 's/^/packets of node1: /' /sys/class/infiniband/softib0/ports/1/counters/port_rcv_packets; """
# A command of each block of the README that is run, and what its output has. UCX names the HCA of each MPI job.
README = {
    "softib run -- ibv_devinfo": [],
    "softib doctor": [r"softib0", r"usec/iter", r"t_typical\[usec\]", r"^ping data: rdma-ping-2: ",
                      r"RDMA_CM_EVENT_REJECTED"],
    "softib up --topology": [r"^Switch\t4 ", r"^switch-1-0, 4 ports|\] switch-1-0\["],
    "softib run -- mpirun": [r"(?s)(softib0:1.*ring ok: 2 ranks.*){2}softib0:1.*ring ok: 4 ranks"],
    "echo 'require": [r"^hello$", r"listening +SDP .*:8000", r"^packets of node1: [1-9]"],
}
NOT_IN_ROOT = {"scripts/tour", "sudo"}  # of the sources; the installation, which make_root() does
# In the root: all that the README runs.
INCLUDE = ("ibverbs-providers,ibverbs-utils,perftest,rdmacm-utils,curl,nodejs,mpich,openmpi-bin,python3,"
           "opensm,infiniband-diags,graphviz")
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


def has_32_bit():
    """Whether the build has the libraries of 32-bit programs: its compiler makes such programs."""
    return (harness.BUILD / "32/lib").exists()


def make_packages(folder):
    if not (harness.BUILD / "CPackConfig.cmake").exists():
        raise Skipped(f"{harness.BUILD} has no CPackConfig.cmake")
    harness.need_program("dpkg-shlibdeps")
    # A folder without blanks for the packages, whatever the build folder is called.
    require(["cpack", "--config", harness.BUILD / "CPackConfig.cmake", "-B", folder])
    packages = sorted(folder.glob("*.deb"), key=lambda file: file.name.split("_"))
    names = [package.name.split("_")[0] for package in packages]
    if names != ["softib", "softib-dev", *(["softib-libs32"] if has_32_bit() else [])]:
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


def own_mirror():
    """The address of the first of these, for suites that have fewer parts than this machine's; None as above."""
    text = "\n".join(file.read_text(errors="replace") for file in own_sources(release_of("VERSION_CODENAME")) or [])
    found = re.search(r"^(?:URIs:|deb(?: \[[^]]*\])?) *(https?://\S+)", text, re.MULTILINE)
    return found.group(1) if found else None


def bare_root(folder, suite, options=(), mirror=None, seconds=350, variant="minbase"):
    """With apt and little else. From `mirror`, or from the sources of this machine with another suite. `options`: of
    mmdebstrap; `variant`: its name for what is in it."""
    harness.need_program("mmdebstrap")
    if why := container.why_not():
        raise Skipped(why)
    sources = own_sources(release_of("VERSION_CODENAME"))
    if sources is None:
        raise Skipped("apt has no source of this Debian")
    root = folder / "root"
    where = mirror
    if mirror is None:
        lines = [line for file in sources for line in file.read_text().splitlines(keepends=True)]
        where = folder / f"machine{sources[0].suffix}"
        where.write_text("".join(lines).replace(release_of("VERSION_CODENAME"), suite))
    # As a container engine does: minbase has no name for the loopback address.
    hosts = '--customize-hook=echo "127.0.0.1 localhost" > "$1/etc/hosts"'
    code, text = run(["mmdebstrap", f"--variant={variant}", hosts, *options, suite, root, where], seconds=seconds)
    if code and re.search(r"Could not (resolve|connect)|Failed to fetch|Temporary failure|apt-get update .*fail", text):
        raise Skipped("no mirror can be reached: " + harness.tail(text, 3))
    if code:
        raise Failed(f"mmdebstrap ended with {code}:\n{harness.tail(text, 40)}")
    root.chmod(0o755)
    return root


def make_root(folder, packages, suite, include=INCLUDE, options=(), mirror=None, seconds=350):
    """With the packages, and `include` of the distribution's."""
    install = ["--customize-hook=copy-in " + " ".join(map(str, packages)) + " /opt",
               '--customize-hook=chroot "$1" apt-get install -y --no-install-recommends '
               + " ".join(f"/opt/{package.name}" for package in packages)]
    return bare_root(folder, suite, [*options, f"--include={include}", *install], mirror, seconds)


def in_root(root, script, *patterns, old=False, seconds=60):
    return require(container.command(root, ["sh", "-c", script], old=old), *patterns, seconds=seconds)


def blocks():
    """The blocks of commands of the README, each with the output that it shows, as patterns."""
    for block in (harness.SOURCE / "README.md").read_text().split("```")[1::2]:
        if block.startswith("text\n"):  # a picture, or the output of another command
            continue
        lines = [line for line in block.splitlines() if line.strip()]
        if lines[0].startswith("$ "):
            shown = [line for line in lines if not line.startswith("$ ") and line.strip() != "..."]
            yield ([line[2:] for line in lines if line.startswith("$ ")],
                   [r"^\s*" + r"\s+".join(map(re.escape, line.split())) + "$" for line in shown])
        else:
            yield [line for line in lines if not line.startswith("export PATH=")], []


def add_mpi_program(root):
    folder = root / "opt/mpi"
    folder.mkdir(exist_ok=True)
    for kind in ("openmpi", "mpich"):
        require([harness.need_program(f"mpicc.{kind}"), "-O2", "-o", folder / f"ring.{kind}",
                 harness.SOURCE / "tests/system/programs/ring.c"])
    (folder / "program").write_text(MPI_PROGRAM)
    (folder / "program").chmod(0o755)


def run_block(root, lines, patterns):
    """By bash, since dash has no `kill %1` without a terminal."""
    text = "\n".join(lines)
    prepare = ""
    if "./program" in text:
        add_mpi_program(root)
        prepare = "cp /opt/mpi/program . && export UCX_LOG_LEVEL=info\n"
    # TCP inside the container would do as well for curl: the packets tell that it was not TCP.
    text = text.replace("kill %1", PACKETS + "kill %1")
    # rping 44 may end with 255 after its last ping (rdmacm_test.py has the reason).
    text = re.sub(r"(rping -c [^#\n]*[^#\n ])", r"\1 || [ $? = 255 ]", text)
    script = f"set -e\n{prepare}{text}\nwait\n"
    require(container.command(root, ["bash", "-c", script]), *patterns, seconds=90)


def readme(report, root):
    wanted = dict(README)
    for lines, shown in blocks():
        if all(line.split()[0] in NOT_IN_ROOT for line in lines):
            continue
        # Docker's default profile has no user namespaces; demo_test.py runs these commands.
        if any(" --net " in line for line in lines):
            continue
        with report.case(f"README: {lines[0].split('  ')[0]}"):
            start = next((start for start in wanted if lines[0].startswith(start)), None)
            if start is None:
                raise Failed(f"README.md has a block that this test does not know:\n{harness.tail(chr(10).join(lines))}")
            run_block(root, lines, shown + wanted.pop(start))
    with report.case("the README has each block that this test knows"):
        if wanted:
            raise Failed(f"not found: {list(wanted)}")


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
    readme(report, root)
    with report.case("manual pages, completions and unit are where programs look for them") as remarks:
        wanted = [root / "usr/lib/systemd/user/softib.service", root / "usr/lib/cmake/softib/softibConfig.cmake"]
        if (harness.SOURCE / "completions/softib.bash").exists():
            wanted.append(root / "usr/share/bash-completion/completions/softib")
        missing = [str(file) for file in wanted if not file.exists()]
        if missing:
            raise Failed(f"missing: {missing}")
        remarks.append(f"{len(wanted)} files")
    with report.case("32-bit programs see the virtual host") as remarks:
        if not has_32_bit():
            raise Skipped("the build has no libraries for them (g++-multilib)")
        source = harness.SOURCE / "tests/system/word32/wide_times.c"
        program = harness.build_program(root / "opt", source, "-m32", libraries=())
        try:
            subprocess.run([program], check=False, capture_output=True, timeout=60)
        except OSError as error:
            raise Skipped(f"this kernel runs no 32-bit programs ({error.strerror})") from None
        text = in_root(root, f"softib run -- /opt/{program.name} file && softib doctor", r"^0 rules broken$",
                       r"^ok +32-bit programs +/usr/lib/i386-linux-gnu/softib")
        remarks.append(re.search("time_t has .*", text).group())
    with report.case("the packages can be removed"):
        require(["chroot", root, "dpkg", "--purge", *(["softib-libs32"] if has_32_bit() else []), "softib-dev", "softib"])
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
        with report.case("cpack makes the packages") as remarks:
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
