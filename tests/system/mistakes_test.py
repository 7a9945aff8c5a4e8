#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The mistakes of beginners (mistakes.c makes them), each with the line that `softib trace` must print: the refused
or failed call, the wrong value, and the right one."""
import json
import pathlib
import re
import shutil
import subprocess
import tempfile

import harness
from harness import Failed, Skipped

DROPPED = r"was dropped \(\w+\), although its completion says success: "
MISTAKES = {
    # ibv_post_*
    "send-in-reset":
        r"ibv_post_send of SEND .* refused: the queue pair is in RESET; ibv_modify_qp it to INIT, RTR and RTS",
    "send-in-init": r"ibv_post_send .* refused: the queue pair is in INIT",
    "send-in-rtr": r"ibv_post_send .* refused: the queue pair is in RTR",
    "recv-in-reset": r"ibv_post_recv .* refused: the queue pair is in RESET; ibv_modify_qp it to INIT",
    "recv-sges":
        r"ibv_post_recv .* refused: it has \d+ scatter/gather elements, the queue pair takes \d+; .* max_recv_sge",
    "recv-queue-full": r"ibv_post_recv .* refused: all \d+ places of the receive queue are taken; .* max_recv_wr",
    "recv-on-srq": r"ibv_post_recv .* refused: the queue pair has a shared receive queue; .* ibv_post_srq_recv",
    "send-sges":
        r"ibv_post_send .* refused: it has \d+ scatter/gather elements, the queue pair takes \d+; .* max_send_sge",
    "send-inline": r"ibv_post_send .* refused: it has \d+ bytes inline, the queue pair takes \d+; .* max_inline_data",
    "send-queue-full": r"ibv_post_send .* refused: all \d+ places of the send queue are taken; .* signaled",
    "ud-without-ah": r"ibv_post_send .* refused: a datagram needs an address handle",
    "ud-write": r"ibv_post_send of RDMA_WRITE .* refused: queue pairs of type UD do not have this operation",
    "uc-read": r"ibv_post_send of RDMA_READ .* refused: queue pairs of type UC do not have this operation",
    # Completions
    "no-receive": r"IBV_WC_RNR_RETRY_EXC_ERR: .* no receive posted .*; post receives before",
    "receive-too-small": r"IBV_WC_REM_INV_REQ_ERR .* room for 16 bytes; post larger receives",
    "receive-bad-lkey": r"IBV_WC_REM_OP_ERR .* look at the peer's ibv_post_recv",
    "lkey-unknown": r"IBV_WC_LOC_PROT_ERR: lkey 0x12345 .* names no memory region",
    "dereg-while-waiting":
        r"IBV_WC_LOC_PROT_ERR: the region of lkey 0x\w+ was deregistered while the request waited .*\(no_receive\)",
    "lkey-other-pd":
        r"IBV_WC_LOC_PROT_ERR: .* another protection domain .* register the memory with the queue pair's PD",
    "lkey-no-local-write": r"IBV_WC_LOC_PROT_ERR: .* register it with IBV_ACCESS_LOCAL_WRITE",
    "sge-out-of-range": r"IBV_WC_LOC_PROT_ERR: .* not inside the region of lkey .*, which is 0x\w+ to 0x\w+ \(8192 bytes\)",
    "rkey-unknown": r"IBV_WC_REM_ACCESS_ERR: rkey 0x12345 names no memory of the peer",
    "rkey-byte-order": r"IBV_WC_REM_ACCESS_ERR: rkey 0x\w+ names no memory of the peer",
    "rkey-other-pd": r"IBV_WC_REM_ACCESS_ERR: .* another protection domain than the peer's queue pair",
    "rkey-no-access": r"IBV_WC_REM_ACCESS_ERR: .* has access none; RDMA_WRITE needs IBV_ACCESS_REMOTE_WRITE",
    "rkey-out-of-range": r"IBV_WC_REM_ACCESS_ERR: .* not all inside the memory of rkey 0x\w+, which is 0x\w+ to 0x\w+ \(8192 bytes\)",
    "region-gone": r"IBV_WC_REM_ACCESS_ERR: .* deregistered or invalidated",
    "qp-access": r"IBV_WC_REM_\w+: the peer's queue pair allows none; RDMA_WRITE needs .* qp_access_flags",
    "atomic-alignment": r"IBV_WC_REM_INV_REQ_ERR: .* not a multiple of 8",
    "read-depth": r"max_rd_atomic here and max_dest_rd_atomic at the other side to 1 or more",
    "peer-not-ready": r"IBV_WC_RETRY_EXC_ERR: the peer's queue pair is in INIT .* RTR or RTS before",
    "peer-unknown": r"IBV_WC_RETRY_EXC_ERR: there is no queue pair 0x7ff",
    "cq-overrun": r"completion queue \d+ ran over",
    "peer-lid": r"IBV_WC_RETRY_EXC_ERR: no port of the fabric has LID 77; .*; the fabric has 1 \(node0, softib0, port 1\)",
    "peer-pkey": r"IBV_WC_RETRY_EXC_ERR: the P_Key is 0x8001 here and 0xffff at the receiving queue pair",
    # Messages that are dropped without an error
    "ud-qkey": DROPPED + r"the message has Q_Key 0x22, the receiving queue pair 0x11; set wr.ud.remote_qkey",
    "ud-pkey": DROPPED + r"the P_Key is 0x8001 here and 0xffff at the receiving queue pair",
    "ud-no-receive": DROPPED + r"there was no receive posted",
    "ud-too-few-receives": DROPPED + r"there was no receive posted",
    "ud-no-grh": DROPPED + r"the receive has room for 64 bytes, this message needs 104: 40 for the GRH",
    "ud-bad-receive": r"was dropped.*\(the peer's receive got IBV_WC_LOC_PROT_ERR\): .* look at the peer's ibv_post_recv",
    "ud-qpn": DROPPED + r"there is no UD queue pair 0x7ff at LID 1",
    "ud-lid": DROPPED + r"no port of the fabric has LID 77; .*; the fabric has 1 \(node0",
    "ud-to-rc": DROPPED + r"there is no UD queue pair 0x\w+ at LID 1",
    "ud-not-ready": DROPPED + r"the receiving queue pair is in INIT",
    "ud-repeated": DROPPED + r"the message has Q_Key 0x22",
    "uc-rkey": DROPPED + r"rkey 0x12345 names no memory of the peer",
    "uc-no-receive": DROPPED + r"there was no receive posted",
    "uc-not-ready": DROPPED + r"the receiving queue pair is in INIT",
    # Shared receive queues, ibv_wr_start .. ibv_wr_complete
    "srq-sges": r"SRQ 0x\w+\): ibv_post_srq_recv .* it has 64 scatter/gather elements, .* takes \d+; .* attr.max_sge",
    "srq-full": r"ibv_post_srq_recv .* refused: all \d+ places of the shared receive queue are taken; .* attr.max_wr",
    "ex-state": r"ibv_wr_complete of SEND \(wr_id 0x7\) was refused: the queue pair is in INIT",
    "ex-opcode": r"ibv_wr_complete of RDMA_READ .* refused: queue pairs of type UC do not have this operation",
    "ex-without-ah": r"ibv_wr_complete of SEND .* refused: a datagram needs an address handle",
    "ex-sges": r"ibv_wr_complete of SEND .* refused: it has 64 scatter/gather elements, the queue pair takes \d+;",
    "ex-inline": r"ibv_wr_complete of SEND .* refused: it has 4096 bytes inline, the queue pair takes \d+;",
    "ex-no-request": r"ibv_wr_complete was refused: a setter .* was called before a request was begun",
    "ex-too-long": r"ibv_wr_complete was refused: the batch has more than \d+ requests",
    "ex-no-room": r"ibv_wr_complete was refused: the batch has 5 requests, \d of \d+ places of the send queue are free",
    # Control
    "qp-too-long": r"ibv_create_qp refused: .*10000000",
    "qp-too-many-sges": r"ibv_create_qp refused: .*1000",
    "qp-inline": r"ibv_create_qp refused: .*1000000",
    "cq-too-long": r"ibv_create_cq refused: .*100000000",
    "reset-to-rts": r"ibv_modify_qp refused: .*RESET.*RTS",
    "init-without-port": r"ibv_modify_qp refused: .*PORT",
    "init-wrong-port": r"ibv_modify_qp refused: .*9",
    "init-wrong-pkey": r"ibv_modify_qp refused: .*999",
    "rtr-incomplete": r"ibv_modify_qp refused: .*DEST_QPN",
    "rts-before-rtr": r"ibv_modify_qp refused: .*INIT.*RTS",
    "pd-in-use": r"ibv_dealloc_pd refused: .*(region|queue)",
    "cq-in-use": r"ibv_destroy_cq refused: .*queue pair",
    "srq-in-use": r"ibv_destroy_srq refused: .*queue pair",
    "ah-wrong-port": r"ibv_create_ah refused: .*9",
    "multicast-rc": r"ibv_attach_mcast refused: .*",
}
# The number of times that a repeated mistake is made: the first ones are reported one by one, then their count as it
# doubles (verbs/report_count.h).
COUNTS = {"ud-repeated": 16}


def build(user):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise Skipped("there is no C compiler")
    folder = user.make_dir("softib-mistakes-")
    source = pathlib.Path(__file__).with_name("programs") / "mistakes.c"
    made = subprocess.run([compiler, "-O1", "-o", folder / "mistakes", source, "-libverbs"], timeout=60, capture_output=True,
                          text=True)
    if made.returncode != 0:
        raise Failed(made.stderr)
    (folder / "mistakes").chmod(0o755)
    return folder


def lines_of(fabric):
    text = fabric.softib("trace", "--json", "--fabric", fabric.name).require().text
    return [json.loads(line) for line in text.splitlines()]


def test(report, user):
    folder = build(user)
    with harness.Fabric(nodes=1, user=user) as fabric:
        fabric.softib("partition", "add", "0x8001", "--fabric", fabric.name).require()
        for name, pattern in MISTAKES.items():
            if not report.wanted(name):
                continue
            with report.case(name) as remarks:
                program = fabric.start([folder / "mistakes", name])
                fabric.end(program, 30).require()
                said = [line for line in lines_of(fabric) if line.get("pid") == program.pid]
                texts = [line["text"] for line in said]
                found = [text for text in texts if re.search(pattern, text)]
                if not found:
                    raise Failed(f"no line like {pattern!r} in {texts}")
                missing = {"number", "time", "kind", "node", "program"} - set(said[0])
                if missing:
                    raise Failed(f"{sorted(missing)} is missing in {said[0]}")
                if len(texts) > 1:
                    raise Failed(f"one mistake, {len(texts)} lines: {texts}")
                count = next(line for line in said if line["text"] == found[0]).get("count", 1)
                if count != COUNTS.get(name, count):
                    raise Failed(f"{found[0]!r} has the count {count}")
                remarks.append(f"{len(texts)} line(s)")


harness.main("mistakes", test)
