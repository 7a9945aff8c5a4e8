#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The package, as it was built here, in a fresh root of another Debian, whose rdma-core is another: that Debian's own
programs, every function of the extended interface to post, and that Debian's own suite of rdma-core, as uid 65534 in
an unprivileged container.

distributions_test.py [--suite SUITE] [--whole] [--only REGEX] [--write-docs]
--suite: trixie if absent. --whole: also rsockets, and OpenMPI over the UCX or libfabric of that Debian. --write-docs:
puts what was found into the table of docs/packages.md, if it was whole.
"""
import collections
import json
import pathlib
import re
import shlex
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness
import packages_test as packages
from harness import Failed, Skipped
from support import mpi

WHOLE = "--whole" in sys.argv
INCLUDE = ("ibverbs-providers,ibverbs-utils,perftest,rdmacm-utils,python3,python3-pyverbs,iproute2" + (",openmpi-bin" if WHOLE else ""))
# A snapshot of a suite that is not released may be older than its release file allows.
OPTIONS = ["--aptopt=Acquire::Check-Valid-Until \"false\""]
NOT_GENERIC = "test_(mlx5|efa|cuda)"
LEAST_PASSES = 135
DOCUMENT = harness.SOURCE / "docs/packages.md"
TABLE = re.compile(r"(<!-- distributions_test.py --write-docs -->\n)(.*?)(<!-- end -->)", re.DOTALL)
HEAD = ["| distribution | rdma-core | private ABI | pingpongs | perftest | `ibv_wr_*` | rping | rdma-core's suite | rsockets "
        "| OpenMPI |", "|---|---|---|---|---|---|---|---|---|---|"]
# Of suites of other versions: what cannot pass, and why.
KNOWN = {
    r"test_device\.DMTest\.test_multi_process_alloc_dm":
        "Python 3.14 starts processes by a server, and the suite's objects cannot be sent there",
}

PAIR = """
set -e
softib up --nodes 2 > up.log
pair() {{  # pair PORT SERVER CLIENT [EXIT CODE THAT IS FINE TOO]
  softib run --node 0 -- $2 > server.log 2>&1 & server=$!
  softib wait --node 0 --listen $1
  code=0
  softib run --node 1 -- $3 > client.log 2>&1 || code=$?
  [ $code = 0 ] || [ $code = "$4" ] || {{ cat client.log server.log; exit 1; }}
  wait $server || {{ cat server.log; exit 1; }}
  echo "done: $2"
}}
{pairs}
softib down
"""
PINGPONGS = ["ibv_rc_pingpong", "ibv_uc_pingpong", "ibv_ud_pingpong -s 1024", "ibv_srq_pingpong", "ibv_rc_pingpong -N",
             "ibv_rc_pingpong -e"]
PERFTEST = [f"{program} -c {transport} -n 200" for program, transports in (
    ("ib_send_lat", ("RC", "UC", "UD", "XRC")), ("ib_write_bw", ("RC", "UC", "XRC")), ("ib_read_lat", ("RC",)),
    ("ib_atomic_bw", ("RC",))) for transport in transports]
STREAMS = [f"{program} -S {size} -C 20 -T v" for program in ("rstream", "riostream") for size in (64, 65536)]
# Each rank on the next node. UCX names its device and transport.
MPI = """
set -e
softib up --nodes 2 > up.log
export UCX_LOG_LEVEL=info
softib run -- mpirun --oversubscribe --bind-to none {way} -n 2 softib run --node auto -- /opt/ring > log 2>&1 ||
  {{ tail -n 60 log; exit 1; }}
cat log
for node in 0 1; do
  softib run --node $node -- cat /sys/class/infiniband/softib0/ports/1/counters/port_rcv_packets | sed 's/^/packets: /'
done
mpirun --version; softib down
"""
PYVERBS = r"""
cp -r /usr/share/doc/rdma-core/tests . && gunzip -f tests/*.gz && cp /opt/driver.py .
softib up --nodes 1 > up.log
first='import json,sys; print(json.load(sys.stdin)["nodes"][0]["addresses"][0]["ip"])'
SOFTIB_TEST_ADDRESS=$(softib status --json | python3 -c "$first")
export SOFTIB_TEST_ADDRESS
names=$(python3 -B tests/run_tests.py --list-tests 2>/dev/null | grep -E '^tests\.' | grep -vE 'NOT_GENERIC')
softib run -- timeout 60 python3 -B driver.py results tests/run_tests.py --dev softib0 --port 1 $names > log 2>&1
tail -n 3 log; softib down; echo results; cat results
""".replace("NOT_GENERIC", NOT_GENERIC)


def doctor(root):
    """The distribution, the release of rdma-core, its private ABI."""
    text = packages.in_root(root, "softib doctor", r"softib can run here")
    name = re.search(r"distribution +(.*?)\s*$", text, re.MULTILINE).group(1)
    found = re.search(r"libibverbs +rdma-core (\S+), private ABI (\d+)", text)
    if not found:
        raise Failed(text)
    return name, *found.groups()


def pairs(root, lines, seconds=60):
    return packages.in_root(root, PAIR.format(pairs="\n".join(lines)), seconds=seconds)


def every_wr(root, release):
    program = harness.build_program(root / "opt", harness.SOURCE / "tests/system/programs/every_wr.c")
    has_flush = float(release) >= 45
    packages.in_root(root, f"softib run -- /opt/{program.name} {'flush' if has_flush else ''}", r"^0 rules broken$")
    return "each"


def open_mpi(root):
    """OpenMPI's version, and over what its ranks on two nodes reached each other: UCX or, where that has no part for
    InfiniBand (1.23 of sid), libfabric. Not over shared memory, which `softib run` turns off: see the packets."""
    mpi.build_program("openmpi", harness.SOURCE / "tests/system/programs/ring.c", root / "opt/ring")
    patterns = [r"^ring ok", r"(?s)^packets: [1-9]\d{3}.*^packets: [1-9]\d{3}"]
    if any(root.glob("usr/lib/*/ucx/libuct_ib.so*")):
        library, way = "UCX", ["--mca", "pml", "ucx"]
        patterns.append(r"tag\(rc_verbs/softib0:1")
    else:
        library, way = "libfabric", mpi.OFI
    text = packages.in_root(root, MPI.format(way=shlex.join(way)), *patterns, seconds=120)
    return re.search(r"^mpirun \(Open MPI\) (\S+)", text, re.MULTILINE).group(1) + f" over {library}"


def pyverbs(root, remarks):
    shutil.copy(harness.SOURCE / "tests/system/pyverbs_suite/driver.py", root / "opt")
    text = packages.in_root(root, PYVERBS, seconds=100)
    outcomes = {}
    for line in text.partition("\nresults\n")[2].splitlines():
        entry = json.loads(line)
        outcomes[entry["test"].removeprefix("tests.")] = entry
    count = collections.Counter(entry["what"] for entry in outcomes.values())
    known = [name for name, entry in outcomes.items() if entry["what"] not in ("passed", "skipped")
             and any(re.fullmatch(one, name) for one in KNOWN)]
    bad = [f"{name}: {entry['what']}\n{harness.tail(entry['reason'], 8)}" for name, entry in outcomes.items()
           if entry["what"] not in ("passed", "skipped") and name not in known]
    result = f"{count['passed']} passed, {count['skipped']} skipped, {len(known)} cannot pass"
    remarks.append(result)
    if bad or count["passed"] < LEAST_PASSES:
        raise Failed("\n".join([result, *bad]) if outcomes else harness.tail(text))
    return result


def use(report, root):
    """The row of the table."""
    row = []
    with report.case("softib doctor names the distribution, rdma-core and its private ABI") as remarks:
        row += doctor(root)
        remarks.append(", ".join(row))
    with report.case("ibv_devinfo"):
        packages.in_root(root, "softib run -- ibv_devinfo", r"hca_id:\s+softib0", r"PORT_ACTIVE")
    with report.case("pingpongs"):
        pairs(root, [f'pair 18515 "{one}" "{one} node0"' for one in PINGPONGS])
        row.append("RC, UC, UD, SRQ")
    with report.case("perftest"):
        pairs(root, [f'pair 18515 "{one}" "{one} node0"' for one in PERFTEST], seconds=90)
        row.append("RC, UC, UD, XRC")
    with report.case("every function of the extended interface to post"):
        row.append(every_wr(root, row[1]))
    with report.case("rping"):
        # rping 44 may end with 255 after its last ping (rdmacm_test.py has the reason).
        pairs(root, ['pair 7174 "rping -s -C 3" "rping -c -a node0 -v -C 3" 255'])
        row.append("yes")
    with report.case("rdma-core's own suite") as remarks:
        row.append(pyverbs(root, remarks))
    if WHOLE:
        with report.case("rsockets"):
            pairs(root, [f'pair 7471 "{one}" "{one} -s node0"' for one in STREAMS], seconds=90)
            row.append("rstream, riostream")
        with report.case("OpenMPI") as remarks:
            row.append(open_mpi(root))
            remarks.append(row[-1])
    return row


def write_docs(row):
    """Replaces the row of the distribution, or adds one."""
    text = DOCUMENT.read_text()
    rows = {line.split("|")[1].strip(): line for line in TABLE.search(text).group(2).splitlines()[len(HEAD):]}
    rows[row[0]] = "| " + " | ".join(row) + " |"
    table = "\n".join([*HEAD, *(rows[name] for name in sorted(rows))]) + "\n"
    DOCUMENT.write_text(TABLE.sub(lambda found: found.group(1) + table + found.group(3), text))


def main():
    report = harness.Report("other distributions")
    suite = sys.argv[sys.argv.index("--suite") + 1] if "--suite" in sys.argv else "trixie"
    folder = pathlib.Path(tempfile.mkdtemp(prefix="softib-distribution-"))
    folder.chmod(0o755)
    root = None
    row = []
    try:
        with report.case(f"the package installs in a fresh root ({suite})"):
            built = packages.make_packages(folder / "packages")
            if not built:
                raise Skipped("no package")
            root = packages.make_root(folder, built[:1], suite, INCLUDE, OPTIONS, packages.own_mirror(),
                                      1200 if WHOLE else 350)
        if root is not None:
            row = use(report, root)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if "--write-docs" in sys.argv and len(row) == HEAD[0].count("|") - 1:
        write_docs(row)
    sys.exit(report.finish())


if __name__ == "__main__":
    main()
