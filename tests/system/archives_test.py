#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The packages for other distributions: the tar.gz, which runs where it is unpacked and whose script installs it in an
image that has nothing, and the RPMs. That they run on the oldest distributions, by the symbols that they want.

archives_test.py [--suite SUITE]      another Debian or Ubuntu for the image, by hand
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import harness
import packages_test
from harness import Failed, Skipped
from packages_test import require

CHECK = harness.SOURCE / "scripts/check_shared_library.py"


def cpack(generator, folder):
    if not (harness.BUILD / "CPackConfig.cmake").exists():
        raise Skipped(f"{harness.BUILD} has no CPackConfig.cmake")
    require(["cpack", "--config", harness.BUILD / "CPackConfig.cmake", "-G", generator, "-B", folder])
    return sorted(folder.glob("softib*.rpm" if generator == "RPM" else "softib*.tar.gz"))


def unpack(archive, folder):
    require(["tar", "xzf", archive, "-C", folder])
    (top,) = [path for path in folder.iterdir() if path.is_dir()]
    if f"{top.name}.tar.gz" != archive.name:
        raise Failed(f"{archive.name} unpacks to {top.name}")
    return top


def binaries(top):
    found = [path for path in top.rglob("*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]
    if len(found) < 5:
        raise Failed(f"{top} has only {[path.name for path in found]}")
    return found


def devinfo(program, runtime):
    env = {"PATH": "/usr/bin:/bin", "SOFTIB_RUNTIME_DIR": str(runtime)}
    try:
        require([program, "run", "--", "ibv_devinfo"], r"^hca_id:\s+softib0$", env=env)
    finally:
        packages_test.run([program, "down", "--all", "--force"], env=env)


def check_word_sizes(top, runtime):
    """Of any distribution: $LIB is one of these folders."""
    if not packages_test.has_32_bit():
        raise Skipped("the build has no libraries for 32-bit programs (g++-multilib)")
    bits = {}
    for folder in ("lib64", "lib/x86_64-linux-gnu", "lib", "lib32", "lib/i386-linux-gnu"):
        library = top / folder / "softib/libsoftib_preload.so"
        bits[folder] = {1: 32, 2: 64}[library.read_bytes()[4]]
    if list(bits.values()) != [64, 64, 32, 32, 32]:
        raise Failed(f"{bits}")
    require([top / "bin/softib", "doctor"], rf"^ok +32-bit programs +{top}/lib/i386-linux-gnu/softib",
            env={"PATH": "/usr/bin:/bin", "SOFTIB_RUNTIME_DIR": str(runtime)})
    return bits


def install_by_hand(top, folder):
    prefix = folder / "prefix"
    for _ in range(2):  # also over itself
        require([top / "install", "--no-packages", "--prefix", prefix], r"^softib can run here")
    if left := [path.name for path in (prefix / "lib").iterdir() if path.name != "softib"]:
        raise Failed(f"left in lib: {left}")
    devinfo(prefix / "bin/softib", folder / "r2")
    require([top / "install", "--prefix", folder / "with blank"], "LD_PRELOAD", code=2)
    require([top / "install", "--prefix", "relative"], "begins with /", code=2)
    require([top / "install", "--wrong"], 'unknown word "--wrong"', code=2)
    require([top / "install", "--help"], r"^install \[--prefix DIR\]")


def install_in_image(root, archive):
    shutil.copy(archive, root / "opt")
    if (pathlib.Path("/etc/resolv.conf")).exists():
        shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    command = f"cd /opt && tar xzf {archive.name} && softib-*/install --tools && rm -r softib-*"
    # The namespaces are those of the mounts that a container engine makes.
    require(["unshare", "--mount", "--pid", "--fork", "sh", "-c",
             f"mount -t proc proc '{root}/proc' && mount --rbind /dev '{root}/dev' && exec chroot '{root}' sh -c '{command}'"],
            r"^softib can run here", seconds=300)
    # As CI uses it: another user, no capability, Docker's default system calls.
    packages_test.in_root(root, packages_test.PINGPONG, r"usec/iter")


def check_rpms(packages, folder):
    names = [package.name for package in packages]
    wanted = [rf"softib-[0-9.]+-1\.{os.uname().machine}\.rpm", r"softib-devel-[0-9.]+-1\.noarch\.rpm"]
    if packages_test.has_32_bit():
        wanted.append(r"softib-libs32-[0-9.]+-1\.x86_64\.rpm")
        require(["rpm", "-qpl", packages[-1]], r"^/usr/lib/softib/libsoftib_preload\.so$")
        require(["rpm", "-qp", "--requires", packages[-1]], r"^softib = ", r"GLIBC_2\.34\)$")
    if len(names) != len(wanted) or not all(map(re.fullmatch, wanted, names)):
        raise Failed(f"cpack made {names}")
    files = require(["rpm", "-qpl", packages[0]], r"^/usr/bin/softibd$", r"^/usr/lib64/softib/libsoftib_preload\.so$",
                    r"^/usr/share/man/man1/softib\.1\.gz$", r"^/usr/share/zsh/site-functions/_softib$",
                    r"^/usr/lib/systemd/user/softib\.service$")
    for wrong in ("linux-gnu", "vendor-completions", "build-id", "changelog"):
        if wrong in files:
            raise Failed(f"{names[0]} has {wrong}:\n{files}")
    require(["rpm", "-qp", "--requires", packages[0]], r"^libibverbs >= 36$", r"GLIBC_2\.34\)")
    require(["rpm", "-qp", "--requires", packages[1]], r"^softib = ")
    root = folder / "rpm"
    require(["rpm", "--root", root, "--nodeps", "--noscripts", "-i", *packages])
    return root


def main():
    report = harness.Report("archives")
    suite = (sys.argv[sys.argv.index("--suite") + 1] if "--suite" in sys.argv
             else packages_test.release_of("VERSION_CODENAME"))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="softib-archives-"))
    folder.chmod(0o755)
    archive = top = rpms = None
    try:
        with report.case("cpack makes a tar.gz") as remarks:
            (archive,) = cpack("TGZ", folder / "tgz")
            remarks.append(f"{archive.name} {archive.stat().st_size >> 10} KiB")
        if archive is not None:
            with report.case("it runs where it is unpacked"):
                (folder / "unpacked").mkdir()
                top = unpack(archive, folder / "unpacked")
                devinfo(top / "bin/softib", folder / "r1")
            with report.case("each loader finds the libraries of its word size") as remarks:
                remarks.append(check_word_sizes(top, folder / "r1"))
            with report.case("from glibc 2.34 and gcc 11's libstdc++ on"):
                require([sys.executable, CHECK, "--programs", *binaries(top)])
            with report.case("its script installs it, twice, and refuses what cannot be"):
                install_by_hand(top, folder)
            with report.case(f"its script installs it in an image that has nothing ({suite})"):
                install_in_image(packages_test.bare_root(folder, suite), archive)
        with report.case("cpack makes the RPMs") as remarks:
            harness.need_program("rpmbuild")
            rpms = cpack("RPM", folder / "rpms")
            remarks += [f"{package.name} {package.stat().st_size >> 10} KiB" for package in rpms]
        if rpms is not None:
            with report.case("they have their files where RPM distributions look, and run"):
                root = check_rpms(rpms, folder)
                devinfo(root / "usr/bin/softib", folder / "r3")
    finally:
        subprocess.run(["rm", "-rf", "--one-file-system", folder], check=False)
    sys.exit(report.finish())


if __name__ == "__main__":
    main()
