// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/trace/explain.h"

#include "drivers/trace/code_name.h"
#include "drivers/trace/words.h"
#include "verbs/explanation.h"
#include "verbs/qp_state.h"

#include <fmt/format.h>

#include <algorithm>

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
    case WrOpcode::AtomicWrite:
    case WrOpcode::Flush: return true;
    case WrOpcode::Send:
    case WrOpcode::SendWithImm:
    case WrOpcode::SendWithInv:
    case WrOpcode::LocalInv:
    case WrOpcode::BindMw: return false;
  }
  return false;
}

std::string request_of(const TraceErrorIn& e) {
  std::string text =
      fmt::format("{} of {} bytes (wr_id {:#x}", opcode_name(e.opcode), e.length, e.wr_id);
  if (touches_remote_memory(e.opcode)) {
    text += fmt::format(", remote address {:#x}, rkey {:#x}", e.address, e.key);
  }
  return text + ')';
}

const char* needed_access(WrOpcode opcode) {
  switch (opcode) {
    case WrOpcode::RdmaRead: return "IBV_ACCESS_REMOTE_READ";
    case WrOpcode::AtomicCmpSwap:
    case WrOpcode::AtomicFetchAdd: return "IBV_ACCESS_REMOTE_ATOMIC";
    case WrOpcode::Flush:
      return "IBV_ACCESS_FLUSH_GLOBAL (for persistence IBV_ACCESS_FLUSH_PERSISTENT, which no "
             "region "
             "of softib has)";
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
         return fmt::format(
             "the region of lkey {:#x} was deregistered while the request waited for the peer "
             "({}); destroy the queue pair or take the completion first. A program that is about "
             "to end need not mind",
             e.key, verbs::cause_name(static_cast<Cause>(e.detail)));
       }
       return fmt::format(
           "lkey {:#x} of a scatter/gather element (address {:#x}) names no memory region of this "
           "process; use the lkey of a region that is still registered",
           e.key, e.address);
     }},
    {Cause::LocalKeyOtherPd,
     [](const TraceErrorIn& e) -> std::string {
       return fmt::format(
           "lkey {:#x} belongs to another protection domain than the queue pair; register the "
           "memory with the queue pair's PD",
           e.key);
     }},
    {Cause::LocalKeyAccess,
     [](const TraceErrorIn& e) -> std::string {
       return fmt::format(
           "the region of lkey {:#x} has access {}, but the result is written to it; register it "
           "with IBV_ACCESS_LOCAL_WRITE",
           e.key, access_names(e.detail));
     }},
    {Cause::LocalKeyRange,
     [](const TraceErrorIn& e) -> std::string {
       return fmt::format(
           "a scatter/gather element at {:#x} is not inside the region of lkey {:#x}, which has {} "
           "bytes; check address and length",
           e.address, e.key, e.detail);
     }},
    {Cause::LocalPieces,
     [](const TraceErrorIn& e) -> std::string {
       return fmt::format(
           "its scatter/gather elements touch more than {} pieces of memory (ranges of physical "
           "regions); use fewer or longer ranges",
           e.detail);
     }},
    {Cause::LocalMemoryGone,
     [](const TraceErrorIn& e) -> std::string {
       return fmt::format(
           "the memory at {:#x} of its own was registered, but is not mapped any more, or not for "
           "this: it called munmap(), free() or mprotect() before ibv_dereg_mr()",
           e.detail);
     }},
    {Cause::LocalLength,
     [](const TraceErrorIn& e) -> std::string {
       return fmt::format(
           "the message is too long or too short for this operation ({} bytes); a UD message may "
           "have as many as the path MTU, an atomic has 8",
           e.detail);
     }},
    {Cause::ReadDepth,
     [](const TraceErrorIn&) -> std::string {
       return "reads, atomics and flushes are switched off on one side: set max_rd_atomic here and "
              "max_dest_rd_atomic at the other side to 1 or more when the queue pairs are "
              "connected";
     }},
    {Cause::WindowBind,
     [](const TraceErrorIn& e) -> std::string {
       return fmt::format(
           "the memory window cannot be bound like this ({:#x}): the region needs "
           "IBV_ACCESS_MW_BIND, the same PD, the whole range, local write for remote write or "
           "atomics, and persistence for persistent flushes; a type 2 window must be invalidated "
           "first",
           e.detail);
     }},
    {Cause::RemoteKeyUnknown,
     [](const TraceErrorIn& e) -> std::string {
       return fmt::format(
           "rkey {:#x} names no memory of the peer: it never did, or was deregistered or "
           "invalidated meanwhile; check what was sent to whom, and keep the region registered "
           "until the request has completed",
           e.key);
     }},
    {Cause::RemoteKeyOtherPd,
     [](const TraceErrorIn& e) -> std::string {
       return fmt::format(
           "rkey {:#x} belongs to another protection domain than the peer's queue pair; the peer "
           "has to register the memory with the PD of that queue pair",
           e.key);
     }},
    {Cause::RemoteKeyAccess,
     [](const TraceErrorIn& e) -> std::string {
       return fmt::format("the region of rkey {:#x} has access {}; {} needs {}", e.key,
                          access_names(e.detail), opcode_name(e.opcode), needed_access(e.opcode));
     }},
    {Cause::RemoteKeyRange,
     [](const TraceErrorIn& e) -> std::string {
       return fmt::format(
           "bytes {:#x} to {:#x} are not all inside the memory of rkey {:#x}; check remote address "
           "and length",
           e.address, e.address + e.length, e.key);
     }},
    {Cause::RemoteQpAccess,
     [](const TraceErrorIn& e) -> std::string {
       return fmt::format(
           "the peer's queue pair allows {}; {} needs {} in its qp_access_flags (modify to INIT)",
           access_names(e.detail), opcode_name(e.opcode), needed_access(e.opcode));
     }},
    {Cause::RemoteAlignment,
     [](const TraceErrorIn& e) -> std::string {
       return fmt::format("remote address {:#x} is not a multiple of 8, which atomics need",
                          e.address);
     }},
    {Cause::RemoteLength,
     [](const TraceErrorIn& e) -> std::string {
       return fmt::format(
           "the peer's receive has room for {} bytes; post larger receives there (UD: 40 bytes "
           "more, for the GRH)",
           e.detail);
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
       return fmt::format(
           "the peer's queue pair is in {} and did not answer within timeout * retry_cnt; it has "
           "to be in RTR or RTS before this side sends",
           qp_state_name(static_cast<verbs::QpState>(e.detail)));
     }},
    {Cause::PeerProcessGone,
     [](const TraceErrorIn& e) -> std::string {
       return fmt::format("the peer's process, pid {}, has ended", e.detail);
     }},
    {Cause::PortDown,
     [](const TraceErrorIn&) -> std::string {
       return "a port on the way is down; `softib status` shows which, `softib port up` brings it "
              "back";
     }},
    {Cause::MemoryGone,
     [](const TraceErrorIn& e) -> std::string {
       return fmt::format(
           "the memory at {:#x} was registered, but is not mapped any more, or not for this: its "
           "owner called munmap(), free() or mprotect() before it deregistered it",
           e.address);
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
       return fmt::format(
           "the XRC domain of the receiving queue pair has no shared receive queue {:#x}; check "
           "that both sides exchanged its number, and that it was created in the domain of that "
           "queue pair",
           e.detail);
     }},
    {Cause::PkeyMismatch,
     [](const TraceErrorIn& e) -> std::string {
       if (e.detail >> 32 == 0)
         return fmt::format("its pkey_index {} names no P_Key of the port", e.detail);
       return fmt::format(
           "the P_Key is {:#x} here and {:#x} at the receiving queue pair: they have to be equal "
           "but for the top bit, which at least one must have; choose pkey_index on both sides "
           "(modify to INIT)",
           e.detail >> 32, e.detail & 0xffffffff);
     }},
    {Cause::PsnMismatch,
     [](const TraceErrorIn& e) -> std::string {
       return fmt::format(
           "sq_psn here is {}, rq_psn of the peer's queue pair is {}; they have to be equal, so "
           "each side takes the other's sq_psn for its rq_psn",
           e.detail >> 32, e.detail & 0xffffffff);
     }},
    {Cause::MtuMismatch,
     [](const TraceErrorIn& e) -> std::string {
       return fmt::format(
           "path_mtu is {} bytes here and {} at the peer's queue pair, and the message needs more "
           "than one packet; set the same path_mtu on both sides (modify to RTR)",
           e.detail >> 32, e.detail & 0xffffffff);
     }},
    {Cause::RemoteInvalidate,
     [](const TraceErrorIn& e) -> std::string {
       return fmt::format(
           "key {:#x}, which the message is to invalidate, is of no type 2 window that is bound to "
           "the peer's queue pair; its receive failed and it answers no more",
           e.detail);
     }},
    {Cause::QkeyMismatch,
     [](const TraceErrorIn& e) -> std::string {
       return fmt::format(
           "the message has Q_Key {:#x}, the receiving queue pair {:#x}; set wr.ud.remote_qkey to "
           "the qkey that the receiver gave to ibv_modify_qp",
           e.detail >> 32, e.detail & 0xffffffff);
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
    return fmt::format(
        "the receive has room for {} bytes, this message needs {}: 40 for the GRH, which every UD "
        "receive has in front, and {} of data; post receives of that size",
        e.detail, e.length + 40, e.length);
  }
  if (e.cause == Cause::PeerNotReady) {
    return fmt::format(
        "the receiving queue pair is in {}; it has to be in RTR or RTS before the other side sends",
        qp_state_name(static_cast<verbs::QpState>(e.detail)));
  }
  return {};
}

// The GID of a datagram is in its address handle, which softibd does not see.
std::string unknown_peer(const TraceErrorIn& e, verbs::QpType type, const PeerPlace& place) {
  const std::string at = place.is_ethernet
                             ? "GID " + (place.gid.empty() ? "of its address handle" : place.gid)
                             : fmt::format("LID {}", e.detail);
  if (!place.others.empty()) {
    return fmt::format("no port of the fabric has {}; {}; the fabric has {}", at,
                       place.is_ethernet
                           ? "ah_attr.grh.dgid has to be a GID of the peer's port, as "
                             "ibv_query_gid says it there"
                           : "ah_attr.dlid has to be the LID of the peer's port, as "
                             "ibv_query_port says it there",
                       place.others);
  }
  if (!place.unreached.empty()) {
    return fmt::format(
        "{} is that of {}, to which no way leads from here: a port with a cable reaches the other "
        "end of the cable, and only that one reaches it; [[link]] of the configuration file says "
        "which ports have cables, and `softib status`",
        at, place.unreached);
  }
  const char* kind = place.is_ethernet ? "GID" : "LID";
  if (type == verbs::QpType::Ud) {
    return fmt::format(
        "there is no UD queue pair {:#x} at {}; check that the peer's QP number and {} are of "
        "this very queue pair, and that it has not been destroyed",
        e.peer_qpn, place.is_ethernet ? "the " + at : at, kind);
  }
  return fmt::format(
      "there is no queue pair {:#x}{} that is connected to this one; check that both sides "
      "exchanged QP number and {} of these very queue pairs, and that the peer has not destroyed "
      "its own",
      e.peer_qpn, place.gid.empty() ? "" : " at " + at, kind);
}

// Names the bytes that are outside, and the memory.
std::string outside(const TraceErrorIn& e, const KeyRange& range) {
  const std::string memory = range.length == 0
                                 ? fmt::format("{:#x} (0 bytes)", range.first)
                                 : fmt::format("{:#x} to {:#x} ({} bytes)", range.first,
                                               range.first + range.length - 1, range.length);
  if (e.cause == Cause::LocalKeyRange) {
    return fmt::format(
        "a scatter/gather element at {:#x} is not inside the region of lkey {:#x}, which is {}; "
        "check address and length",
        e.address, e.key, memory);
  }
  return fmt::format(
      "bytes {:#x} to {:#x} are not all inside the memory of rkey {:#x}, which is {}; check remote "
      "address and length",
      e.address, e.address + std::max<std::uint64_t>(e.length, 1) - 1, e.key, memory);
}

std::string cause_of(const TraceErrorIn& e) {
  for (const Sentence& sentence : kSentences) {
    if (sentence.cause == e.cause) return sentence.text(e);
  }
  return "no further detail is known";
}

}  // namespace

std::string access_names(std::uint64_t flags) {
  const auto name = [flags](std::uint32_t bit, const char* text) {
    return (flags & bit) != 0 ? text : "";
  };
  const std::string names = list(name(verbs::access::kLocalWrite, "LOCAL_WRITE"),
                                 name(verbs::access::kRemoteWrite, "REMOTE_WRITE"),
                                 name(verbs::access::kRemoteRead, "REMOTE_READ"),
                                 name(verbs::access::kRemoteAtomic, "REMOTE_ATOMIC"),
                                 name(verbs::access::kMwBind, "MW_BIND"),
                                 name(verbs::access::kFlushGlobal, "FLUSH_GLOBAL"));
  return names.empty() ? "none" : names;
}

std::string name_of(const Party& party) {
  return fmt::format("{} (pid {}, {}, {}{}{:#x})",
                     party.program.empty() ? "process" : party.program, party.pid, party.node,
                     party.hca, party.is_srq ? ", SRQ " : ", QP ", party.qpn);
}

std::string explain_error(const TraceErrorIn& e, const Party& self,
                          const std::optional<Party>& peer, const PeerPlace& place,
                          const std::optional<KeyRange>& range) {
  if (const std::string trouble = explain_ip_trouble(e, place.target); !trouble.empty()) {
    return fmt::format("{}: {}.", name_of(self), trouble);
  }
  if (const std::string refusal = explain_refusal(e); !refusal.empty()) {
    return fmt::format("{}: {}.", name_of(self), refusal);
  }
  std::string text =
      fmt::format("{}: {} over {}", name_of(self), request_of(e), qp_type_name(self.type));
  const bool to_itself = peer && !self.is_srq && peer->qpn == self.qpn;
  if (to_itself) {
    text += " to itself";
  } else if (peer) {
    text += fmt::format(" to {}", name_of(*peer));
  } else if (e.peer_qpn != 0) {
    text += fmt::format(" to QP {:#x}", e.peer_qpn);
  }
  const bool lost = e.status == verbs::WcStatus::Success;
  if (lost) {
    text += fmt::format(" was dropped ({}), although its completion says success",
                        verbs::cause_name(e.cause));
  } else {
    text += fmt::format(" failed with {}", verbs::wc_status_name(e.status));
  }
  if (e.peer_status != verbs::WcStatus::Success) {
    text += fmt::format(" (the peer's receive got {})", verbs::wc_status_name(e.peer_status));
  }
  std::string why = lost ? drop_of(e, self.type) : "";
  if (e.cause == Cause::PeerUnknown) why = unknown_peer(e, self.type, place);
  if (verbs::control::is_of_way(e.cause)) why = explain_way(e, place.way_end);
  const bool is_range = e.cause == Cause::LocalKeyRange || e.cause == Cause::RemoteKeyRange;
  if (is_range && range) why = outside(e, *range);
  if (why.empty()) why = cause_of(e);
  if (to_itself) {
    why +=
        "; it has its own QP number as its peer's: if that is not meant, both sides have to "
        "exchange their numbers, and to be on the same fabric";
  }
  return fmt::format("{}: {}.", text, why);
}

}  // namespace ib::drivers
