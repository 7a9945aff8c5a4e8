// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The part of the control interface (verbs/control.h) that carries connections [IBA1 chapter 12]:
// codes and buffers of a file of the communication manager (verbs/services/open_service.h). Drivers
// have the same requests (al/cm.h). Fixed layout, the same on 32 and 64 bit. Times are exponents n
// of 4.096 us * 2^n. Fields that say nothing about their range are checked where they are used.
#pragma once

#include "verbs/control_buffers.h"
#include "verbs/control_layout.h"
#include "verbs/gid.h"
#include "verbs/services/flag.h"
#include "verbs/types.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace ib::verbs::control {

// Codes of a file that ServiceCode::Open has opened with ServiceKind::Cm; al/cm.h says what they
// do.
enum class CmCode : std::uint32_t {
  Listen = 144,
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
constexpr Flag is_cm(std::uint32_t code) {
  return code >= static_cast<std::uint32_t>(CmCode::Listen) &&
         code <= static_cast<std::uint32_t>(CmCode::Destroy);
}

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
  Gid sgid{};
  Gid dgid{};
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
  std::uint32_t reserved = 0;
};

struct CmHandleIn {
  CmHandle handle = 0;
};

// A REQ or a SIDR_REQ that came.
struct CmRequest {
  CmHandle handle = 0;  // of the connection, or of the request of a datagram service
  Flag is_datagram = false;
  Flag srq = false;
  Flag flow_control = false;
  Flag has_alternate = false;
  std::uint64_t service_id = 0;
  std::uint64_t remote_ca_guid = 0;
  std::uint32_t remote_qpn = 0;
  std::uint32_t remote_qkey = 0;
  std::uint32_t starting_psn = 0;
  QpType type = QpType::Rc;
  Mtu path_mtu = Mtu::B1024;
  std::uint8_t responder_resources = 0;  // as the requester sent them
  std::uint8_t initiator_depth = 0;
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry_count = 0;
  CmPath path;  // from here to the requester
  CmPath alternate;
  CmData data;
  std::uint32_t reserved = 0;
};

struct CmConnectIn {
  std::uint64_t service_id = 0;
  CmPath path;
  CmPath alternate;  // same P_Key and MTU
  Flag has_alternate = false;
  Flag srq = false;
  Flag flow_control = true;
  Flag peer_to_peer = false;  // both sides connect to each other [IBA1 12.9.6]
  QpType type = QpType::Rc;
  std::uint32_t qpn = 0;
  std::uint32_t qkey = 0;
  std::uint32_t starting_psn = 0;  // with which the other side begins to send
  Mtu path_mtu = Mtu::B1024;
  std::uint8_t responder_resources = 0;  // READs and atomics that the other side may have open
  std::uint8_t initiator_depth = 0;      // ... and this side
  std::uint8_t retry_count = 7;
  std::uint8_t rnr_retry_count = 7;
  std::uint8_t remote_response_timeout = 20;  // the other side answers within it
  std::uint8_t local_response_timeout = 20;   // this side does
  std::uint8_t max_retries = 15;              // of the REQ
  std::uint8_t reserved = 0;
  CmData data;
  std::uint32_t reserved2 = 0;
};

// The other side's answer: a REP, or a REJ (`reject_reason`), or its own REQ (peer to peer).
struct CmReply {
  CmHandle handle = 0;              // 0: it was rejected
  std::uint32_t reject_reason = 0;  // [IBA1 12.6.7.2]; 0: it was not
  Flag is_request = false;          // a REQ: accept() or reject() is next
  Flag srq = false;
  Flag flow_control = false;
  std::uint8_t failover = 0;  // of the alternate path: 0 accepted, 1 not supported, 2 refused
  std::uint32_t remote_qpn = 0;
  std::uint32_t remote_qkey = 0;
  std::uint32_t starting_psn = 0;
  std::uint8_t responder_resources = 0;  // that the other side grants
  std::uint8_t initiator_depth = 0;
  std::uint8_t rnr_retry_count = 0;
  std::uint8_t reserved = 0;
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
  Flag srq = false;
  Flag flow_control = true;
  std::uint16_t reserved = 0;
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
  QpState state = QpState::Init;   // Init, Rtr or Rts: `attr` leads there
  std::uint32_t starting_psn = 0;  // that accept() is going to have; ignored after it
};
struct CmQueryOut {
  std::uint32_t mask = 0;  // qp_attr
  QpAttr attr;
  std::uint32_t local_comm_id = 0;
  std::uint32_t remote_comm_id = 0;
  Flag is_established = false;
  std::array<std::uint8_t, 3> reserved{};
};

struct CmResolveIn {
  std::uint64_t service_id = 0;
  CmPath path;
  std::uint32_t response_timeout = 20;
  std::uint32_t max_retries = 15;
  CmData data;
  std::uint32_t reserved = 0;
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

IB_SIZE(CmData, 228);
IB_FIELD(CmData, size, 0, 4);
IB_FIELD(CmData, bytes, 4, 224);
IB_SIZE(CmPath, 48);
IB_FIELD(CmPath, sgid, 0, 16);
IB_FIELD(CmPath, dgid, 16, 16);
IB_FIELD(CmPath, slid, 32, 2);
IB_FIELD(CmPath, dlid, 34, 2);
IB_FIELD(CmPath, pkey, 36, 2);
IB_FIELD(CmPath, port, 38, 1);
IB_FIELD(CmPath, sl, 39, 1);
IB_FIELD(CmPath, flow_label, 40, 4);
IB_FIELD(CmPath, traffic_class, 44, 1);
IB_FIELD(CmPath, hop_limit, 45, 1);
IB_FIELD(CmPath, rate, 46, 1);
IB_FIELD(CmPath, packet_lifetime, 47, 1);
IB_SIZE(CmListenIn, 168);
IB_FIELD(CmListenIn, service_id, 0, 8);
IB_FIELD(CmListenIn, service_mask, 8, 8);
IB_FIELD(CmListenIn, services, 16, 4);
IB_FIELD(CmListenIn, port, 20, 4);
IB_FIELD(CmListenIn, backlog, 24, 4);
IB_FIELD(CmListenIn, compare_size, 28, 4);
IB_FIELD(CmListenIn, offset, 32, 4);
IB_FIELD(CmListenIn, value, 36, 64);
IB_FIELD(CmListenIn, mask, 100, 64);
IB_FIELD(CmListenIn, reserved, 164, 4);
IB_SIZE(CmHandleIn, 4);
IB_FIELD(CmHandleIn, handle, 0, 4);
IB_SIZE(CmRequest, 376);
IB_FIELD(CmRequest, handle, 0, 4);
IB_FIELD(CmRequest, is_datagram, 4, 1);
IB_FIELD(CmRequest, srq, 5, 1);
IB_FIELD(CmRequest, flow_control, 6, 1);
IB_FIELD(CmRequest, has_alternate, 7, 1);
IB_FIELD(CmRequest, service_id, 8, 8);
IB_FIELD(CmRequest, remote_ca_guid, 16, 8);
IB_FIELD(CmRequest, remote_qpn, 24, 4);
IB_FIELD(CmRequest, remote_qkey, 28, 4);
IB_FIELD(CmRequest, starting_psn, 32, 4);
IB_FIELD(CmRequest, type, 36, 4);
IB_FIELD(CmRequest, path_mtu, 40, 4);
IB_FIELD(CmRequest, responder_resources, 44, 1);
IB_FIELD(CmRequest, initiator_depth, 45, 1);
IB_FIELD(CmRequest, retry_count, 46, 1);
IB_FIELD(CmRequest, rnr_retry_count, 47, 1);
IB_FIELD(CmRequest, path, 48, 48);
IB_FIELD(CmRequest, alternate, 96, 48);
IB_FIELD(CmRequest, data, 144, 228);
IB_FIELD(CmRequest, reserved, 372, 4);
IB_SIZE(CmConnectIn, 368);
IB_FIELD(CmConnectIn, service_id, 0, 8);
IB_FIELD(CmConnectIn, path, 8, 48);
IB_FIELD(CmConnectIn, alternate, 56, 48);
IB_FIELD(CmConnectIn, has_alternate, 104, 1);
IB_FIELD(CmConnectIn, srq, 105, 1);
IB_FIELD(CmConnectIn, flow_control, 106, 1);
IB_FIELD(CmConnectIn, peer_to_peer, 107, 1);
IB_FIELD(CmConnectIn, type, 108, 4);
IB_FIELD(CmConnectIn, qpn, 112, 4);
IB_FIELD(CmConnectIn, qkey, 116, 4);
IB_FIELD(CmConnectIn, starting_psn, 120, 4);
IB_FIELD(CmConnectIn, path_mtu, 124, 4);
IB_FIELD(CmConnectIn, responder_resources, 128, 1);
IB_FIELD(CmConnectIn, initiator_depth, 129, 1);
IB_FIELD(CmConnectIn, retry_count, 130, 1);
IB_FIELD(CmConnectIn, rnr_retry_count, 131, 1);
IB_FIELD(CmConnectIn, remote_response_timeout, 132, 1);
IB_FIELD(CmConnectIn, local_response_timeout, 133, 1);
IB_FIELD(CmConnectIn, max_retries, 134, 1);
IB_FIELD(CmConnectIn, reserved, 135, 1);
IB_FIELD(CmConnectIn, data, 136, 228);
IB_FIELD(CmConnectIn, reserved2, 364, 4);
IB_SIZE(CmReply, 256);
IB_FIELD(CmReply, handle, 0, 4);
IB_FIELD(CmReply, reject_reason, 4, 4);
IB_FIELD(CmReply, is_request, 8, 1);
IB_FIELD(CmReply, srq, 9, 1);
IB_FIELD(CmReply, flow_control, 10, 1);
IB_FIELD(CmReply, failover, 11, 1);
IB_FIELD(CmReply, remote_qpn, 12, 4);
IB_FIELD(CmReply, remote_qkey, 16, 4);
IB_FIELD(CmReply, starting_psn, 20, 4);
IB_FIELD(CmReply, responder_resources, 24, 1);
IB_FIELD(CmReply, initiator_depth, 25, 1);
IB_FIELD(CmReply, rnr_retry_count, 26, 1);
IB_FIELD(CmReply, reserved, 27, 1);
IB_FIELD(CmReply, data, 28, 228);
IB_SIZE(CmAcceptIn, 252);
IB_FIELD(CmAcceptIn, handle, 0, 4);
IB_FIELD(CmAcceptIn, qpn, 4, 4);
IB_FIELD(CmAcceptIn, qkey, 8, 4);
IB_FIELD(CmAcceptIn, starting_psn, 12, 4);
IB_FIELD(CmAcceptIn, responder_resources, 16, 1);
IB_FIELD(CmAcceptIn, initiator_depth, 17, 1);
IB_FIELD(CmAcceptIn, rnr_retry_count, 18, 1);
IB_FIELD(CmAcceptIn, failover, 19, 1);
IB_FIELD(CmAcceptIn, srq, 20, 1);
IB_FIELD(CmAcceptIn, flow_control, 21, 1);
IB_FIELD(CmAcceptIn, reserved, 22, 2);
IB_FIELD(CmAcceptIn, data, 24, 228);
IB_SIZE(CmMessageIn, 236);
IB_FIELD(CmMessageIn, handle, 0, 4);
IB_FIELD(CmMessageIn, service_timeout, 4, 4);
IB_FIELD(CmMessageIn, data, 8, 228);
IB_SIZE(CmRejectIn, 464);
IB_FIELD(CmRejectIn, handle, 0, 4);
IB_FIELD(CmRejectIn, reason, 4, 4);
IB_FIELD(CmRejectIn, info, 8, 228);
IB_FIELD(CmRejectIn, data, 236, 228);
IB_SIZE(CmLoadPathIn, 280);
IB_FIELD(CmLoadPathIn, handle, 0, 4);
IB_FIELD(CmLoadPathIn, path, 4, 48);
IB_FIELD(CmLoadPathIn, data, 52, 228);
IB_SIZE(CmAnswerPathIn, 236);
IB_FIELD(CmAnswerPathIn, handle, 0, 4);
IB_FIELD(CmAnswerPathIn, status, 4, 4);
IB_FIELD(CmAnswerPathIn, data, 8, 228);
IB_SIZE(CmPathAnswer, 232);
IB_FIELD(CmPathAnswer, status, 0, 4);
IB_FIELD(CmPathAnswer, data, 4, 228);
IB_SIZE(CmEvent, 292);
IB_FIELD(CmEvent, kind, 0, 4);
IB_FIELD(CmEvent, reason, 4, 4);
IB_FIELD(CmEvent, service_timeout, 8, 4);
IB_FIELD(CmEvent, by, 12, 4);
IB_FIELD(CmEvent, path, 16, 48);
IB_FIELD(CmEvent, data, 64, 228);
IB_SIZE(CmQueryIn, 12);
IB_FIELD(CmQueryIn, handle, 0, 4);
IB_FIELD(CmQueryIn, state, 4, 4);
IB_FIELD(CmQueryIn, starting_psn, 8, 4);
IB_SIZE(CmQueryOut, 136);
IB_FIELD(CmQueryOut, mask, 0, 4);
IB_FIELD(CmQueryOut, attr, 4, 120);
IB_FIELD(CmQueryOut, local_comm_id, 124, 4);
IB_FIELD(CmQueryOut, remote_comm_id, 128, 4);
IB_FIELD(CmQueryOut, is_established, 132, 1);
IB_FIELD(CmQueryOut, reserved, 133, 3);
IB_SIZE(CmResolveIn, 296);
IB_FIELD(CmResolveIn, service_id, 0, 8);
IB_FIELD(CmResolveIn, path, 8, 48);
IB_FIELD(CmResolveIn, response_timeout, 56, 4);
IB_FIELD(CmResolveIn, max_retries, 60, 4);
IB_FIELD(CmResolveIn, data, 64, 228);
IB_FIELD(CmResolveIn, reserved, 292, 4);
IB_SIZE(CmRespondIn, 244);
IB_FIELD(CmRespondIn, handle, 0, 4);
IB_FIELD(CmRespondIn, status, 4, 4);
IB_FIELD(CmRespondIn, qpn, 8, 4);
IB_FIELD(CmRespondIn, qkey, 12, 4);
IB_FIELD(CmRespondIn, data, 16, 228);
IB_SIZE(CmResolved, 240);
IB_FIELD(CmResolved, status, 0, 4);
IB_FIELD(CmResolved, qpn, 4, 4);
IB_FIELD(CmResolved, qkey, 8, 4);
IB_FIELD(CmResolved, data, 12, 228);

}  // namespace ib::verbs::control
