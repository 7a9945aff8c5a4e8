// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/diagnostics/explain.h"

#include "drivers/diagnostics/code_name.h"
#include "drivers/diagnostics/say.h"
#include "verbs/qp_state.h"

namespace ib::drivers {
namespace {

using verbs::WrOpcode;
using verbs::control::Cause;
using verbs::control::TraceErrorIn;

bool touches_remote_memory(WrOpcode opcode) {
  switch (opcode) {
    case WrOpcode::RdmaWrite:
    case WrOpcode::RdmaWriteWithImm:
    case WrOpcode::RdmaRead:
    case WrOpcode::AtomicCmpSwap:
    case WrOpcode::AtomicFetchAdd:
    case WrOpcode::AtomicWrite: return true;
    case WrOpcode::Send:
    case WrOpcode::SendWithImm:
    case WrOpcode::SendWithInv:
    case WrOpcode::LocalInv:
    case WrOpcode::BindMw: return false;
  }
  return false;
}

std::string request_of(const TraceErrorIn& e) {
  std::string text = say(opcode_name(e.opcode), " of ", e.length, " bytes (wr_id ", hex(e.wr_id));
  if (touches_remote_memory(e.opcode)) {
    text += say(", remote address ", hex(e.address), ", rkey ", hex(e.key));
  }
  return text + ')';
}

// "REMOTE_READ, REMOTE_WRITE"; "none"
std::string access_names(std::uint64_t flags) {
  const auto name = [flags](std::uint32_t bit, const char* text) {
    return (flags & bit) != 0 ? text : "";
  };
  const std::string names = list(name(verbs::access::kLocalWrite, "LOCAL_WRITE"),
                                 name(verbs::access::kRemoteWrite, "REMOTE_WRITE"),
                                 name(verbs::access::kRemoteRead, "REMOTE_READ"),
                                 name(verbs::access::kRemoteAtomic, "REMOTE_ATOMIC"),
                                 name(verbs::access::kMwBind, "MW_BIND"));
  return names.empty() ? "none" : names;
}

const char* needed_access(WrOpcode opcode) {
  switch (opcode) {
    case WrOpcode::RdmaRead: return "IBV_ACCESS_REMOTE_READ";
    case WrOpcode::AtomicCmpSwap:
    case WrOpcode::AtomicFetchAdd: return "IBV_ACCESS_REMOTE_ATOMIC";
    case WrOpcode::RdmaWrite:
    case WrOpcode::RdmaWriteWithImm:
    case WrOpcode::AtomicWrite:
    case WrOpcode::Send:
    case WrOpcode::SendWithImm:
    case WrOpcode::SendWithInv:
    case WrOpcode::LocalInv:
    case WrOpcode::BindMw: return "IBV_ACCESS_REMOTE_WRITE";
  }
  return "access";
}

// Why, and what to do. A test sees to it that no cause is missing.
struct Sentence {
  Cause cause;
  std::string (*text)(const TraceErrorIn&);
};
constexpr Sentence kSentences[] = {
    {Cause::LocalKeyUnknown,
     [](const TraceErrorIn& e) -> std::string {
       if (e.detail != 0) {
         return say("the region of lkey ", hex(e.key),
                    " was deregistered while the request waited for the peer (",
                    cause_name(static_cast<Cause>(e.detail)),
                    "); destroy the queue pair or take the completion first. A program that is "
                    "about to end need not mind");
       }
       return say(
           "lkey ", hex(e.key), " of a scatter/gather element (address ", hex(e.address),
           ") names no memory region of this process; use the lkey of a region that is still "
           "registered");
     }},
    {Cause::LocalKeyOtherPd,
     [](const TraceErrorIn& e) -> std::string {
       return say("lkey ", hex(e.key),
                  " belongs to another protection domain than the queue pair; "
                  "register the memory with the queue pair's PD");
     }},
    {Cause::LocalKeyAccess,
     [](const TraceErrorIn& e) -> std::string {
       return say("the region of lkey ", hex(e.key), " has access ", access_names(e.detail),
                  ", but the result is written to it; register it with IBV_ACCESS_LOCAL_WRITE");
     }},
    {Cause::LocalKeyRange,
     [](const TraceErrorIn& e) -> std::string {
       return say("a scatter/gather element at ", hex(e.address),
                  " is not inside the region of lkey ", hex(e.key), ", which has ", e.detail,
                  " bytes; check address and length");
     }},
    {Cause::LocalPieces,
     [](const TraceErrorIn& e) -> std::string {
       return say("its scatter/gather elements touch more than ", e.detail,
                  " pieces of memory (ranges of physical regions); use fewer or longer ranges");
     }},
    {Cause::LocalMemoryGone,
     [](const TraceErrorIn& e) -> std::string {
       return say("the memory at ", hex(e.detail),
                  " of its own was registered, but is not mapped any more, or not for this: it "
                  "called munmap(), free() or mprotect() before ibv_dereg_mr()");
     }},
    {Cause::LocalLength,
     [](const TraceErrorIn& e) -> std::string {
       return say("the message is too long or too short for this operation (", e.detail,
                  " bytes); a UD message may have as many as the path MTU, an atomic has 8");
     }},
    {Cause::ReadDepth,
     [](const TraceErrorIn&) -> std::string {
       return "reads and atomics are switched off on one side: set max_rd_atomic here and "
              "max_dest_rd_atomic at the other side to 1 or more when the queue pairs are "
              "connected";
     }},
    {Cause::WindowBind,
     [](const TraceErrorIn& e) -> std::string {
       return say("the memory window cannot be bound like this (", hex(e.detail),
                  "): the region needs IBV_ACCESS_MW_BIND, the same PD, the whole range, and local "
                  "write for remote write or atomics; a type 2 window must be invalidated first");
     }},
    {Cause::RemoteKeyUnknown,
     [](const TraceErrorIn& e) -> std::string {
       return say(
           "rkey ", hex(e.key),
           " names no memory of the peer: it never did, or was "
           "deregistered or invalidated meanwhile; check what was sent to whom, and keep the "
           "region registered until the request has completed");
     }},
    {Cause::RemoteKeyOtherPd,
     [](const TraceErrorIn& e) -> std::string {
       return say("rkey ", hex(e.key),
                  " belongs to another protection domain than the peer's queue "
                  "pair; the peer has to register the memory with the PD of that queue pair");
     }},
    {Cause::RemoteKeyAccess,
     [](const TraceErrorIn& e) -> std::string {
       return say("the region of rkey ", hex(e.key), " has access ", access_names(e.detail), "; ",
                  opcode_name(e.opcode), " needs ", needed_access(e.opcode));
     }},
    {Cause::RemoteKeyRange,
     [](const TraceErrorIn& e) -> std::string {
       return say("bytes ", hex(e.address), " to ", hex(e.address + e.length),
                  " are not all inside the memory of rkey ", hex(e.key),
                  "; check remote address and length");
     }},
    {Cause::RemoteQpAccess,
     [](const TraceErrorIn& e) -> std::string {
       return say("the peer's queue pair allows ", access_names(e.detail), "; ",
                  opcode_name(e.opcode), " needs ", needed_access(e.opcode),
                  " in its qp_access_flags (modify to INIT)");
     }},
    {Cause::RemoteAlignment,
     [](const TraceErrorIn& e) -> std::string {
       return say("remote address ", hex(e.address), " is not a multiple of 8, which atomics need");
     }},
    {Cause::RemoteLength,
     [](const TraceErrorIn& e) -> std::string {
       return say("the peer's receive has room for ", e.detail,
                  " bytes; post larger receives there "
                  "(UD: 40 bytes more, for the GRH)");
     }},
    {Cause::RemoteReceiveKey,
     [](const TraceErrorIn&) -> std::string {
       return "the receive that the peer had posted names memory that it may not use (its own "
              "lkey, "
              "range or access is wrong); look at the peer's ibv_post_recv";
     }},
    {Cause::NoReceive,
     [](const TraceErrorIn&) -> std::string {
       return "the peer had no receive posted for longer than rnr_retry allows; post receives "
              "before "
              "the other side sends, or set rnr_retry to 7 (wait for ever)";
     }},
    {Cause::PeerNotReady,
     [](const TraceErrorIn& e) -> std::string {
       return say(
           "the peer's queue pair is in ", qp_state_name(static_cast<verbs::QpState>(e.detail)),
           " and did not answer within timeout * retry_cnt; it has to be in RTR or RTS before "
           "this side sends");
     }},
    {Cause::PeerUnknown,
     [](const TraceErrorIn& e) -> std::string {
       return say(
           "there is no queue pair ", hex(e.peer_qpn),
           " that is connected to this one; check "
           "that both sides exchanged QP number and LID of these very queue pairs, and that the "
           "peer has not destroyed its own");
     }},
    {Cause::PeerProcessGone,
     [](const TraceErrorIn& e) -> std::string {
       return say("the peer's process, pid ", e.detail, ", has ended");
     }},
    {Cause::PortDown,
     [](const TraceErrorIn&) -> std::string {
       return "a port on the way is down; `softib status` shows which, `softib port up` brings it "
              "back";
     }},
    {Cause::MemoryGone,
     [](const TraceErrorIn& e) -> std::string {
       return say("the memory at ", hex(e.address),
                  " was registered, but is not mapped any more, or not for this: its owner called "
                  "munmap(), free() or mprotect() before it deregistered it");
     }},
    {Cause::CqOverflow,
     [](const TraceErrorIn&) -> std::string {
       return "a completion queue is full: its owner must poll it more often, or create it with at "
              "least as many entries as requests can be outstanding on all its queue pairs";
     }},
    {Cause::QpFlushed,
     [](const TraceErrorIn&) -> std::string {
       return "the queue pair was in ERROR already; an earlier line tells what broke it";
     }},
    {Cause::XrcReceiveQueue,
     [](const TraceErrorIn& e) -> std::string {
       return say("the XRC domain of the receiving queue pair has no shared receive queue ",
                  hex(e.detail),
                  "; check that both sides exchanged its number, and that it was created in the "
                  "domain of that queue pair");
     }},
    {Cause::PkeyMismatch,
     [](const TraceErrorIn& e) -> std::string {
       if (e.detail >> 32 == 0)
         return say("its pkey_index ", e.detail, " names no P_Key of the port");
       return say("the P_Key is ", hex(e.detail >> 32), " here and ", hex(e.detail & 0xffffffff),
                  " at the receiving queue pair: they have to be equal but for the top bit, which "
                  "at least one must have; choose pkey_index on both sides (modify to INIT)");
     }},
    {Cause::PsnMismatch,
     [](const TraceErrorIn& e) -> std::string {
       return say("sq_psn here is ", e.detail >> 32, ", rq_psn of the peer's queue pair is ",
                  e.detail & 0xffffffff,
                  "; they have to be equal, so each side takes the other's sq_psn for its rq_psn");
     }},
    {Cause::MtuMismatch,
     [](const TraceErrorIn& e) -> std::string {
       return say("path_mtu is ", e.detail >> 32, " bytes here and ", e.detail & 0xffffffff,
                  " at the peer's queue pair, and the message needs more than one packet; set the "
                  "same path_mtu on both sides (modify to RTR)");
     }},
    {Cause::RemoteInvalidate,
     [](const TraceErrorIn& e) -> std::string {
       return say("key ", hex(e.detail),
                  ", which the message is to invalidate, is of no type 2 window that is bound to "
                  "the peer's queue pair; its receive failed and it answers no more");
     }},
    {Cause::QkeyMismatch,
     [](const TraceErrorIn& e) -> std::string {
       return say("the message has Q_Key ", hex(e.detail >> 32), ", the receiving queue pair ",
                  hex(e.detail & 0xffffffff),
                  "; set wr.ud.remote_qkey to the qkey that the receiver gave to ibv_modify_qp");
     }},
    {Cause::HcaAsleep,
     [](const TraceErrorIn&) -> std::string {
       return "an HCA on the way sleeps; `softib power resume` wakes it";
     }},
    {Cause::HcaRemoved,
     [](const TraceErrorIn&) -> std::string {
       return "an HCA on the way was removed; `softib devices` shows what is left";
     }},
};

// A dropped message of a UD or UC queue pair, where that is another matter than for RC; else empty.
std::string drop_of(const TraceErrorIn& e, verbs::QpType type) {
  const bool datagram = type == verbs::QpType::Ud;
  if (e.cause == Cause::NoReceive) {
    return "there was no receive posted, and one that never posted any is not waited for, others "
           "for a second; post receives before the other side sends, and again as they complete";
  }
  if (e.cause == Cause::RemoteLength && datagram) {
    return say("the receive has room for ", e.detail, " bytes, this message needs ", e.length + 40,
               ": 40 for the GRH, which every UD receive has in front, and ", e.length,
               " of data; post receives of that size");
  }
  if (e.cause == Cause::PeerUnknown && datagram) {
    return say("there is no UD queue pair ", hex(e.peer_qpn), " at LID ", e.detail,
               "; check that the peer's QP number and LID are of this very queue pair, and that it "
               "has not been destroyed");
  }
  if (e.cause == Cause::PeerNotReady) {
    return say("the receiving queue pair is in ",
               qp_state_name(static_cast<verbs::QpState>(e.detail)),
               "; it has to be in RTR or RTS before the other side sends");
  }
  return {};
}

std::string unknown_lid(const TraceErrorIn& e, const std::string& lids) {
  return say(
      "no port of the fabric has LID ", e.detail,
      "; ah_attr.dlid has to be the LID of the peer's port, as ibv_query_port says it there; "
      "the fabric has ",
      lids);
}

std::string cause_of(const TraceErrorIn& e) {
  for (const Sentence& sentence : kSentences) {
    if (sentence.cause == e.cause) return sentence.text(e);
  }
  return "no further detail is known";
}

}  // namespace

std::string name_of(const Party& party) {
  return say(party.program.empty() ? "process" : party.program, " (pid ", party.pid, ", ",
             party.node, ", ", party.hca, party.is_srq ? ", SRQ " : ", QP ", hex(party.qpn), ')');
}

std::string explain_error(const TraceErrorIn& e, const Party& self,
                          const std::optional<Party>& peer, const std::string& lids) {
  if (const std::string refusal = explain_refusal(e); !refusal.empty()) {
    return say(name_of(self), ": ", refusal, '.');
  }
  std::string text = say(name_of(self), ": ", request_of(e), " over ", qp_type_name(self.type));
  if (peer) {
    text += say(" to ", name_of(*peer));
  } else if (e.peer_qpn != 0) {
    text += say(" to QP ", hex(e.peer_qpn));
  }
  const bool lost = e.status == verbs::WcStatus::Success;
  if (lost) {
    text += say(" was dropped (", cause_name(e.cause), "), although its completion says success");
  } else {
    text += say(" failed with ", wc_status_name(e.status));
  }
  if (e.peer_status != verbs::WcStatus::Success) {
    text += say(" (the peer's receive got ", wc_status_name(e.peer_status), ')');
  }
  std::string why = lost ? drop_of(e, self.type) : "";
  if (!lids.empty()) why = unknown_lid(e, lids);
  return say(text, ": ", why.empty() ? cause_of(e) : why, '.');
}

}  // namespace ib::drivers
