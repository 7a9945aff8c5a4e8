// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The requests of al/cm.h: inputs, which the caller fills in, and outputs, which the communication
// manager does when the request has succeeded. Times are exponents n of 4.096 us * 2^n.
#pragma once

#include "verbs/control.h"
#include "verbs/gid.h"
#include "verbs/types.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace ib::al {

// As IRPs have them (Irp::code), on the file of a Cm.
enum class CmCode : std::uint32_t {
  Listen = 1,
  GetRequest,
  Connect,
  Establish,
  Accept,
  Reject,
  Delay,
  Disconnect,
  ConfirmDisconnect,
  WaitEvent,
  LoadPath,
  AnswerPath,
  PathMigrated,
  Query,
  Resolve,
  Respond,
  Destroy,
};
inline constexpr std::uint32_t kCmCodes = 17;

// A listener, a connection, or a request of a datagram service; of one Cm.
using CmHandle = std::uint32_t;  // 0: none

// Private data. Received data has the size of the message's field, filled with zeros.
struct CmData {
  std::uint32_t size = 0;
  std::array<std::uint8_t, 224> bytes{};

  std::span<const std::uint8_t> view() const {
    return std::span(bytes).first(std::min<std::size_t>(size, bytes.size()));
  }
  void put(std::span<const std::uint8_t> data) {
    size = static_cast<std::uint32_t>(std::min(data.size(), bytes.size()));
    std::copy_n(data.begin(), size, bytes.begin());
  }
};
// Bytes of private data that the messages have room for [IBA1 12.6].
namespace cm_room {
inline constexpr std::uint32_t kConnect = 92, kAccept = 196, kEstablish = 224, kReject = 148,
                               kDelay = 222, kDisconnect = 220, kConfirm = 224, kLoadPath = 168,
                               kAnswerPath = 148, kResolve = 216, kRespond = 136;
}

// From a port of the own HCA to another one.
struct CmPath {
  verbs::Gid sgid{};
  verbs::Gid dgid{};
  std::uint16_t slid = 0;
  std::uint16_t dlid = 0;  // 0: by the GIDs alone, as always on Ethernet
  std::uint16_t pkey = 0xffff;
  std::uint8_t port = 1;
  std::uint8_t sl = 0;
  std::uint32_t flow_label = 0;
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 0;  // above 1: packets have a global route
  std::uint8_t rate = 16;      // 100 Gb/s [IBA1 15.2.5.16]
  std::uint8_t packet_lifetime = 16;
  friend bool operator==(const CmPath&, const CmPath&) = default;
};

enum class CmServices : std::uint32_t { Connections, Datagrams, Both };

struct CmListenIn {
  std::uint64_t service_id = 0;
  std::uint64_t service_mask = ~std::uint64_t{0};  // bits that are compared
  CmServices services = CmServices::Connections;
  std::uint32_t port = 0;  // 0: any of the HCA
  // Requests of one remote port that may wait; 0: the most. Those of others have as many places
  // again.
  std::uint32_t backlog = 128;
  // A request only if its private data has this from `offset` on, in the bits of `mask`.
  std::uint32_t compare_size = 0;  // 0: any
  std::uint32_t offset = 0;
  std::array<std::uint8_t, 64> value{};
  std::array<std::uint8_t, 64> mask{};
};

struct CmHandleIn {
  CmHandle handle = 0;
};

// A REQ or a SIDR_REQ that came.
struct CmRequest {
  CmHandle handle = 0;  // of the connection, or of the request of a datagram service
  bool is_datagram = false;
  bool srq = false;
  bool flow_control = false;
  bool has_alternate = false;
  std::uint64_t service_id = 0;
  std::uint64_t remote_ca_guid = 0;
  std::uint32_t remote_qpn = 0;
  std::uint32_t remote_qkey = 0;
  std::uint32_t starting_psn = 0;
  verbs::QpType type = verbs::QpType::Rc;
  verbs::Mtu path_mtu = verbs::Mtu::B1024;
  std::uint8_t responder_resources = 0;  // as the requester sent them
  std::uint8_t initiator_depth = 0;
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry_count = 0;
  CmPath path;  // from here to the requester
  CmPath alternate;
  CmData data;
};

struct CmConnectIn {
  std::uint64_t service_id = 0;
  CmPath path;
  CmPath alternate;  // same P_Key and MTU
  bool has_alternate = false;
  bool srq = false;
  bool flow_control = true;
  bool peer_to_peer = false;  // both sides connect to each other [IBA1 12.9.6]
  verbs::QpType type = verbs::QpType::Rc;
  std::uint32_t qpn = 0;
  std::uint32_t qkey = 0;
  std::uint32_t starting_psn = 0;  // with which the other side begins to send
  verbs::Mtu path_mtu = verbs::Mtu::B1024;
  std::uint8_t responder_resources = 0;  // READs and atomics that the other side may have open
  std::uint8_t initiator_depth = 0;      // ... and this side
  std::uint8_t retry_count = 7;
  std::uint8_t rnr_retry_count = 7;
  std::uint8_t remote_response_timeout = 20;  // the other side answers within it
  std::uint8_t local_response_timeout = 20;   // this side does
  std::uint8_t max_retries = 15;              // of the REQ
  CmData data;
};

// The other side's answer: a REP, or a REJ (`reject_reason`), or its own REQ (peer to peer).
struct CmReply {
  CmHandle handle = 0;              // 0: it was rejected
  std::uint32_t reject_reason = 0;  // [IBA1 12.6.7.2]; 0: it was not
  bool is_request = false;          // a REQ: accept() or reject() is next
  bool srq = false;
  bool flow_control = false;
  std::uint8_t failover = 0;  // of the alternate path: 0 accepted, 1 not supported, 2 refused
  std::uint32_t remote_qpn = 0;
  std::uint32_t remote_qkey = 0;
  std::uint32_t starting_psn = 0;
  std::uint8_t responder_resources = 0;  // that the other side grants
  std::uint8_t initiator_depth = 0;
  std::uint8_t rnr_retry_count = 0;
  CmData data;
};

struct CmAcceptIn {
  CmHandle handle = 0;
  std::uint32_t qpn = 0;
  std::uint32_t qkey = 0;
  std::uint32_t starting_psn = 0;
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t rnr_retry_count = 7;
  std::uint8_t failover = 0;  // as in CmReply
  bool srq = false;
  bool flow_control = true;
  CmData data;
};

// Establish, Disconnect, ConfirmDisconnect; and Delay, with the time that is needed.
struct CmMessageIn {
  CmHandle handle = 0;
  std::uint32_t service_timeout = 0;  // Delay only
  CmData data;
};

struct CmRejectIn {
  CmHandle handle = 0;
  std::uint32_t reason = 28;  // by the consumer
  CmData info;                // additional reject information, at most 72 bytes
  CmData data;
};

struct CmLoadPathIn {
  CmHandle handle = 0;
  CmPath path;
  CmData data;
};
struct CmAnswerPathIn {
  CmHandle handle = 0;
  std::uint32_t status = 0;  // [IBA1 12.8.2.1]; 0: it is loaded
  CmData data;
};
// `status` as in CmAnswerPathIn.
struct CmPathAnswer {
  std::uint32_t status = 0;
  CmData data;
};

enum class CmEventKind : std::uint32_t {
  None,
  Established,    // the RTU came; that an Accept did not wait for
  Rejected,       // `reason`
  TimedOut,       // no RTU
  Delayed,        // the other side needs longer (MRA): `service_timeout`
  Disconnecting,  // DREQ: confirm_disconnect() is next
  Disconnected,   // DREP, or in another way: `by`
  TimeWaitEnded,  // the queue pair may be connected again
  PathOffered,    // LAP: `path`; answer_path() is next
  PathAnswered,   // APR that no LoadPath waited for: `reason` is the status
  PathTimedOut,
};
enum class CmEndedBy : std::uint32_t {
  Answer,   // DREP
  Crossed,  // both sides had sent DREQ
  Timeout,  // no answer
  Stale,    // the other side has used its queue pair for a new connection
};
struct CmEvent {
  CmEventKind kind = CmEventKind::None;
  std::uint32_t reason = 0;
  std::uint32_t service_timeout = 0;
  CmEndedBy by = CmEndedBy::Answer;
  CmPath path;
  CmData data;
};

struct CmQueryIn {
  CmHandle handle = 0;
  verbs::QpState state = verbs::QpState::Init;  // Init, Rtr or Rts: `attr` leads there
  std::uint32_t starting_psn = 0;               // that accept() is going to have; ignored after it
};
struct CmQueryOut {
  std::uint32_t mask = 0;  // verbs::qp_attr
  verbs::control::QpAttr attr;
  std::uint32_t local_comm_id = 0;
  std::uint32_t remote_comm_id = 0;
  bool is_established = false;
};

struct CmResolveIn {
  std::uint64_t service_id = 0;
  CmPath path;
  std::uint32_t response_timeout = 20;
  std::uint32_t max_retries = 15;
  CmData data;
};
struct CmRespondIn {
  CmHandle handle = 0;
  std::uint32_t status = 0;  // [IBA1 12.11.2.1]; 0: valid
  std::uint32_t qpn = 0;
  std::uint32_t qkey = 0;
  CmData data;
};
struct CmResolved {
  std::uint32_t status = 0;  // of the SIDR_REP
  std::uint32_t qpn = 0;
  std::uint32_t qkey = 0;
  CmData data;
};

}  // namespace ib::al
