// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The consumer's side of the communication manager's calls: the contents of the messages that
// the engine sends. Spans are read during the call only.
#pragma once

#include "cm/reject_reason.h"
#include "cm/types.h"

#include <cstdint>
#include <optional>
#include <span>

namespace ib::cm {

using ByteSpan = std::span<const std::uint8_t>;

enum class ServiceKind : std::uint8_t {
  Connections,  // REQ
  Datagrams,    // SIDR_REQ
  Both
};

// The listener gets a request only if `(data & mask) == (value & mask)` holds for the private data
// from `offset` on. `mask` is empty (all bits) or as long as `value`.
struct PrivateDataCompare {
  std::uint8_t offset = 0;
  ByteSpan value{};
  ByteSpan mask{};
};

struct Listen {
  std::uint64_t service_id = 0;
  std::uint64_t service_mask = ~std::uint64_t{0};  // bits of the service ID that are compared
  std::optional<PrivateDataCompare> compare{};
  ServiceKind kind = ServiceKind::Both;
  std::uint8_t port = 0;  // 0: any port of the channel adapter
  // Requests of one remote port that may wait for the consumer's answer; 0: the largest. Of all
  // together up to twice as many (waiting_room.h).
  std::uint32_t backlog = 128;
  bool is_fallback = false;  // gets what no other listener gets
};

// REQ [IBA1 12.6.5].
struct ConnectRequest {
  std::uint64_t service_id = 0;
  Path primary{};
  std::optional<Path> alternate{};  // same P_Key and MTU as the primary
  Transport transport = Transport::Rc;
  std::uint32_t qpn = 0;
  bool has_queue_pair = true;  // false: `qpn` is a number only, which a queue pair may get later
  std::uint32_t qkey = 0;
  std::uint32_t starting_psn = 0;        // with which the other side begins to send
  std::uint8_t responder_resources = 0;  // RDMA READs and atomics that the other side may have open
  std::uint8_t initiator_depth = 0;      // ... that this side would like to have open
  std::uint8_t retry_count = 7;          // 3 bits; of the queue pairs
  std::uint8_t rnr_retry_count = 7;      // 3 bits
  verbs::Mtu path_mtu = verbs::Mtu::B1024;
  bool srq = false;
  bool flow_control = true;                      // end to end
  std::uint8_t remote_cm_response_timeout = 20;  // exponent; the other side answers within it
  std::uint8_t local_cm_response_timeout = 20;   // exponent; this side does
  std::uint8_t max_cm_retries = 15;              // 4 bits
  // Both sides send REQ [IBA1 12.9.6]: a REQ of the other side for this service meets this
  // connection, and one of the two becomes the passive side.
  bool peer_to_peer = false;
  VendorOptions vendor{};
  ByteSpan private_data{};
};

// REP [IBA1 12.6.8].
struct Reply {
  std::uint32_t qpn = 0;
  bool has_queue_pair = true;  // as of ConnectRequest
  std::uint32_t qkey = 0;
  std::uint32_t starting_psn = 0;
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t rnr_retry_count = 7;
  Failover failover = Failover::Accepted;  // of the alternate path in REQ
  bool srq = false;
  bool flow_control = true;
  VendorOptions vendor{};
  ByteSpan private_data{};
};

// REJ [IBA1 12.6.7].
struct Reject {
  RejectReason reason = RejectReason::ConsumerReject;
  ByteSpan info{};  // additional reject information, its meaning depends on the reason
  ByteSpan private_data{};
};

// APR [IBA1 12.8.2].
struct AlternatePathAnswer {
  AlternatePathStatus status = AlternatePathStatus::Loaded;
  ByteSpan info{};
  ByteSpan private_data{};
};

// SIDR_REQ [IBA1 12.11.1]. The retries and their time are the sender's own business.
struct SidrRequest {
  std::uint64_t service_id = 0;
  Path path{};                         // with the P_Key of the request
  std::uint8_t response_timeout = 20;  // exponent
  std::uint8_t max_retries = 15;
  ByteSpan private_data{};
};

// SIDR_REP [IBA1 12.11.2].
struct SidrReply {
  SidrStatus status = SidrStatus::Valid;
  std::uint32_t qpn = 0;
  std::uint32_t qkey = 0;
  VendorOptions vendor{};
  ByteSpan info{};
  ByteSpan private_data{};
};

}  // namespace ib::cm
