// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/trace/explain.h"

#include "drivers/trace/code_name.h"
#include "verbs/explanation.h"
#include "verbs/ip_trouble.h"
#include "verbs/post_refusal.h"

#include <gtest/gtest.h>

#include <set>

namespace ib::drivers {
namespace {

using verbs::WcStatus;
using verbs::WrOpcode;
using verbs::control::Cause;
using verbs::control::TraceErrorIn;

const Party kSelf{"node0", "softib0", "ib_write_bw", 4711, 0x20011, verbs::QpType::Rc};
const Party kPeer{"node1", "softib0", "", 4712, 0x40012, verbs::QpType::Rc};

TraceErrorIn error(WrOpcode opcode, WcStatus status, Cause cause, std::uint64_t detail = 0) {
  TraceErrorIn in;
  in.peer_qpn = kPeer.qpn;
  in.opcode = opcode;
  in.status = status;
  in.cause = cause;
  in.detail = detail;
  in.wr_id = 7;
  in.address = 0x7f0000001000;
  in.length = 4096;
  in.key = 0x1234;
  return in;
}

TEST(Explain, NamesBothEndsTheRequestTheCauseAndTheRemedy) {
  EXPECT_EQ(
      explain_error(error(WrOpcode::RdmaWrite, WcStatus::RemAccessErr, Cause::RemoteKeyAccess,
                          verbs::access::kLocalWrite | verbs::access::kRemoteRead),
                    kSelf, kPeer),
      "ib_write_bw (pid 4711, node0, softib0, QP 0x20011): RDMA_WRITE of 4096 bytes (wr_id 0x7, "
      "remote address 0x7f0000001000, rkey 0x1234) over RC to process (pid 4712, node1, "
      "softib0, QP 0x40012) failed with IBV_WC_REM_ACCESS_ERR: the region of rkey 0x1234 has "
      "access LOCAL_WRITE, REMOTE_READ; RDMA_WRITE needs IBV_ACCESS_REMOTE_WRITE.");
}

TEST(Explain, SaysWhatThePeersReceiveGot) {
  TraceErrorIn in = error(WrOpcode::Send, WcStatus::RemInvReqErr, Cause::RemoteLength, 1024);
  in.peer_status = WcStatus::LocLenErr;
  EXPECT_EQ(
      explain_error(in, kSelf, std::nullopt),
      "ib_write_bw (pid 4711, node0, softib0, QP 0x20011): SEND of 4096 bytes (wr_id 0x7) over "
      "RC to QP 0x40012 failed with IBV_WC_REM_INV_REQ_ERR (the peer's receive got "
      "IBV_WC_LOC_LEN_ERR): the peer's receive has room for 1024 bytes; post larger receives "
      "there (UD: 40 bytes more, for the GRH).");
}

TEST(Explain, ADeadPeerIsNamedByPid) {
  const std::string text =
      explain_error(error(WrOpcode::Send, WcStatus::RetryExcErr, Cause::PeerProcessGone, 4712),
                    kSelf, std::nullopt);
  EXPECT_NE(text.find("the peer's process, pid 4712, has ended"), std::string::npos) << text;
}

TEST(Explain, EveryCauseHasItsOwnSentence) {
  std::set<std::string> sentences;
  std::set<std::string> names;
  for (std::uint32_t cause = 1; cause <= static_cast<std::uint32_t>(Cause::WayMtu); ++cause) {
    const std::string text = explain_error(
        error(WrOpcode::RdmaRead, WcStatus::GeneralErr, static_cast<Cause>(cause)), kSelf, kPeer);
    EXPECT_EQ(text.find("no further detail"), std::string::npos) << cause;
    EXPECT_TRUE(sentences.insert(text).second) << text;
    EXPECT_TRUE(names.insert(verbs::cause_name(static_cast<Cause>(cause))).second) << cause;
  }
}

TEST(Explain, ARefusedPostHasItsValueAndWhatWouldBeRight) {
  using verbs::control::PostRefusal;
  const auto text = [](PostRefusal why, std::uint64_t detail, std::uint64_t length) {
    TraceErrorIn in = error(WrOpcode::Send, WcStatus::Success, static_cast<Cause>(why), detail);
    in.length = length;
    return explain_error(in, kSelf, std::nullopt);
  };
  EXPECT_EQ(
      text(PostRefusal::SendInline, 64, 300),
      "ib_write_bw (pid 4711, node0, softib0, QP 0x20011): ibv_post_send of SEND (wr_id 0x7) was "
      "refused: it has 300 bytes inline, the queue pair takes 64; create it with a larger "
      "max_inline_data, or leave out IBV_SEND_INLINE.");
  std::set<std::string> sentences;
  for (std::uint32_t i = 0; i < verbs::control::kPostRefusalCount; ++i) {
    const std::string said =
        text(static_cast<PostRefusal>(verbs::control::kFirstPostRefusal + i), 1, 2);
    EXPECT_NE(said.find("was refused: "), std::string::npos) << said;
    EXPECT_TRUE(sentences.insert(said).second) << said;
  }
}

TEST(Explain, AnInterfaceOfIpNamesWhatItCannotReachAndWhy) {
  using verbs::control::IpTrouble;
  TraceErrorIn in = error(WrOpcode::Send, WcStatus::Success,
                          static_cast<Cause>(static_cast<std::uint32_t>(IpTrouble::PathRefused)),
                          static_cast<std::uint64_t>(Status::NotFound));
  in.address = 0xfe80000000000000;
  in.wr_id = 0x0253460000010001;
  PeerPlace place;
  place.target = "node1, softib0, port 1";
  EXPECT_EQ(explain_error(in, kSelf, std::nullopt, place),
            "ib_write_bw (pid 4711, node0, softib0, QP 0x20011): IP over InfiniBand cannot reach "
            "fe80::253:4600:1:1 (node1, softib0, port 1): the subnet administrator has no path "
            "there (not found).");
  std::set<std::string> sentences;
  in.address = in.wr_id = in.detail = 0;
  in.key = 0x8001;
  in.cause = static_cast<Cause>(static_cast<std::uint32_t>(IpTrouble::PkeyMissing));
  EXPECT_EQ(explain_error(in, kSelf, std::nullopt, place),
            "ib_write_bw (pid 4711, node0, softib0, QP 0x20011): IP over InfiniBand has no carrier "
            "(node1, softib0, port 1): its port does not have P_Key 0x8001 any more (`softib "
            "partition add 0x8001`).");
  for (std::uint32_t i = 0; i < verbs::control::kIpTroubleCount; ++i) {
    in.cause = static_cast<Cause>(verbs::control::kFirstIpTrouble + i);
    const std::string said = explain_error(in, kSelf, std::nullopt);
    EXPECT_NE(said.find("IP over InfiniBand has no carrier: "), std::string::npos) << said;
    EXPECT_TRUE(sentences.insert(said).second) << said;
  }
}

TEST(Explain, ARefusalOfABatchNamesTheCallThatGaveIt) {
  using verbs::control::PostRefusal;
  TraceErrorIn in = error(WrOpcode::RdmaRead, WcStatus::Success, Cause::None, 2);
  in.cause = static_cast<Cause>(static_cast<std::uint32_t>(PostRefusal::SendState) |
                                verbs::control::kRefusedInBatch);
  EXPECT_EQ(explain_error(in, kSelf, std::nullopt),
            "ib_write_bw (pid 4711, node0, softib0, QP 0x20011): ibv_wr_complete of RDMA_READ "
            "(wr_id 0x7) was refused: the queue pair is in RTR; ibv_modify_qp it to INIT, RTR and "
            "RTS first.");
}

TEST(Explain, ADroppedDatagramHasBothSidesValues) {
  Party self = kSelf;
  Party peer = kPeer;
  self.type = peer.type = verbs::QpType::Ud;
  const auto text = [&](Cause cause, std::uint64_t detail) {
    TraceErrorIn in = error(WrOpcode::Send, WcStatus::Success, cause, detail);
    in.length = 64;
    return explain_error(in, self, peer);
  };
  EXPECT_EQ(
      text(Cause::QkeyMismatch, 0x2200000011),
      "ib_write_bw (pid 4711, node0, softib0, QP 0x20011): SEND of 64 bytes (wr_id 0x7) over "
      "UD to process (pid 4712, node1, softib0, QP 0x40012) was dropped (qkey_mismatch), "
      "although its completion says success: the message has Q_Key 0x22, the receiving queue pair "
      "0x11; set wr.ud.remote_qkey to the qkey that the receiver gave to ibv_modify_qp.");
  EXPECT_NE(text(Cause::PkeyMismatch, 0x800100008002).find("0x8001 here and 0x8002 at"),
            std::string::npos);
  EXPECT_NE(text(Cause::RemoteLength, 64).find("room for 64 bytes, this message needs 104"),
            std::string::npos);
}

TEST(Explain, AnUnknownLidComesWithThoseThatThereAre) {
  const TraceErrorIn in = error(WrOpcode::Send, WcStatus::RetryExcErr, Cause::PeerUnknown, 77);
  const std::string text =
      explain_error(in, kSelf, std::nullopt, {false, "", "1 (node0, softib0, port 1)"});
  EXPECT_NE(text.find("no port of the fabric has LID 77;"), std::string::npos) << text;
  EXPECT_NE(text.find("; the fabric has 1 (node0, softib0, port 1)."), std::string::npos) << text;
}

TEST(Explain, AQueuePairThatIsItsOwnPeerIsNotNamedAsAnother) {
  TraceErrorIn in = error(WrOpcode::Send, WcStatus::RetryExcErr, Cause::PsnMismatch, 0x100000002);
  in.peer_qpn = kSelf.qpn;
  const std::string text = explain_error(in, kSelf, kSelf);
  EXPECT_NE(text.find("over RC to itself failed with"), std::string::npos) << text;
  EXPECT_NE(text.find("; it has its own QP number as its peer's: if that is not meant, both sides "
                      "have to exchange their numbers, and to be on the same fabric."),
            std::string::npos)
      << text;
}

TEST(Explain, APortBesideTheCableIsNotReached) {
  const TraceErrorIn in = error(WrOpcode::Send, WcStatus::RetryExcErr, Cause::PeerUnknown, 3);
  const std::string text =
      explain_error(in, kSelf, std::nullopt, {false, "", "", "node2, softib0, port 1"});
  EXPECT_NE(text.find("LID 3 is that of node2, softib0, port 1, to which no way leads from here"),
            std::string::npos)
      << text;
}

TEST(Explain, OverEthernetThePeerIsSoughtByGid) {
  Party self = kSelf;
  TraceErrorIn in = error(WrOpcode::Send, WcStatus::RetryExcErr, Cause::PeerUnknown);
  EXPECT_NE(explain_error(in, self, std::nullopt, {true, "10.0.0.2", ""})
                .find("no queue pair 0x40012 at GID 10.0.0.2 that is connected to this one; check "
                      "that both sides exchanged QP number and GID of"),
            std::string::npos);
  // softibd does not see the address handle of a datagram.
  self.type = verbs::QpType::Ud;
  in.status = WcStatus::Success;
  const std::string lost = explain_error(in, self, std::nullopt, {true, "", ""});
  EXPECT_NE(lost.find("no UD queue pair 0x40012 at the GID of its address handle; check that the "
                      "peer's QP number and GID are of"),
            std::string::npos)
      << lost;
  in.detail = 3;
  EXPECT_NE(explain_error(in, self, std::nullopt).find("no UD queue pair 0x40012 at LID 3;"),
            std::string::npos);
}

TEST(Explain, ARegionThatWentWhileItsRequestWaitedIsNoUnknownKey) {
  const auto text = [](Cause waited_for) {
    return explain_error(error(WrOpcode::Send, WcStatus::LocProtErr, Cause::LocalKeyUnknown,
                               static_cast<std::uint64_t>(waited_for)),
                         kSelf, std::nullopt);
  };
  EXPECT_NE(text(Cause::NoReceive).find("waited for the peer (no_receive)"), std::string::npos);
  EXPECT_NE(text(Cause::None).find("names no memory region"), std::string::npos);
}

TEST(Explain, NonsenseFromAClientIsStillASentence) {
  TraceErrorIn in =
      error(static_cast<WrOpcode>(99), static_cast<WcStatus>(77), static_cast<Cause>(1234));
  const std::string text = explain_error(in, kSelf, kPeer);
  EXPECT_NE(text.find("an unknown operation"), std::string::npos) << text;
  EXPECT_NE(text.find("no further detail is known"), std::string::npos) << text;
}

}  // namespace
}  // namespace ib::drivers
