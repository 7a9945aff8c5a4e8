// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Events of the communication manager for its consumer: one struct for each, Event is one of them.
//
// An event of a connection is the last word about its state at that time; those of one connection
// come in order. Private data has the size of the message's field (types.h). Each kind names the
// event of Linux's ib_cm that it corresponds to.
#pragma once

#include "cm/reject_reason.h"
#include "cm/types.h"

#include <cstdint>
#include <optional>
#include <variant>

namespace ib::cm {

// REQ_RECEIVED. A new connection, `id`, waits for accept(), reject() or delay(); it has to be
// destroyed in any case. A peer-to-peer connection that became the passive side has no listener and
// has the ID of its connect(). The listener may have ended since.
struct RequestReceived {
  ConnectionId id{};
  std::optional<ListenerId> listener;
  std::uint64_t service_id = 0;
  std::uint32_t remote_comm_id = 0;
  std::uint64_t remote_ca_guid = 0;
  std::uint32_t remote_qpn = 0;
  std::uint32_t remote_qkey = 0;
  std::uint32_t starting_psn = 0;
  Transport transport = Transport::Rc;
  std::uint8_t responder_resources = 0;  // of the requester, as it sent them
  std::uint8_t initiator_depth = 0;
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry_count = 0;
  std::uint8_t remote_cm_response_timeout = 0;  // exponent; the time that this side has to answer
  std::uint8_t local_cm_response_timeout = 0;
  std::uint8_t max_cm_retries = 0;
  verbs::Mtu path_mtu = verbs::Mtu::B1024;
  bool srq = false;
  bool flow_control = false;
  bool peer_to_peer = false;
  Path primary;  // as this side sees it: sgid is this port
  std::optional<Path> alternate;
  VendorOptions vendor;
  MadAddress source;  // of the MAD
  PrivateData private_data;
};

// REP_RECEIVED. establish() or reject() is next.
struct ReplyReceived {
  ConnectionId id{};
  std::uint64_t remote_ca_guid = 0;
  std::uint32_t remote_qpn = 0;
  std::uint32_t remote_qkey = 0;
  std::uint32_t starting_psn = 0;
  std::uint8_t responder_resources = 0;  // that the other side grants
  std::uint8_t initiator_depth = 0;      // that the other side will use
  std::uint8_t target_ack_delay = 0;     // exponent
  std::uint8_t rnr_retry_count = 0;
  Failover failover = Failover::Accepted;
  bool srq = false;
  bool flow_control = false;
  VendorOptions vendor;
  MadAddress source;
  PrivateData private_data;
};

// RTU_RECEIVED, or USER_ESTABLISHED if data came first (then without private data).
struct Established {
  ConnectionId id{};
  bool by_data = false;
  PrivateData private_data;
};

enum class Message : std::uint8_t { Req = 0, Rep = 1, Other = 2 };  // as REJ and MRA number them

// REJ_RECEIVED. The connection is over, in time-wait or closed.
struct Rejected {
  ConnectionId id{};
  RejectReason reason{};
  Message message = Message::Req;  // that was rejected
  State was = State::ReqSent;      // when it came: one that is established can be rejected, too
  AdditionalInfo info;
  MadAddress source;
  PrivateData private_data;
};

// REQ_ERROR, REP_ERROR: no answer to REQ or REP in spite of all retries. The other side was told
// (REJ, reason timeout); the connection is over.
struct TimedOut {
  ConnectionId id{};
  Message message = Message::Req;
  unsigned times_sent = 0;
  bool was_delayed = false;  // an MRA had come: the other side has the message
};

// MRA_RECEIVED: the other side needs longer to answer.
struct Delayed {
  ConnectionId id{};
  Message message = Message::Req;  // Other: LAP
  std::uint8_t service_timeout = 0;
  PrivateData private_data;
};

// DREQ_RECEIVED. confirm_disconnect() is next.
struct DisconnectRequested {
  ConnectionId id{};
  PrivateData private_data;
};

// DREP_RECEIVED, DREQ_ERROR. In time-wait.
struct Disconnected {
  enum class By : std::uint8_t {
    Answer,   // DREP
    Crossed,  // both sides sent DREQ; private data is that of the other's
    Timeout,  // the other side did not answer
    Stale,    // the other side has sent a REQ for its queue pair of this connection: it lost the
              // connection
  };
  ConnectionId id{};
  By by = By::Answer;
  PrivateData private_data;
};

// TIMEWAIT_EXIT. The queue pair may be connected again.
struct TimeWaitEnded {
  ConnectionId id{};
};

// LAP_RECEIVED. answer_alternate_path() is next.
struct AlternatePathOffered {
  ConnectionId id{};
  Path path;  // as this side sees it
  PrivateData private_data;
};

// APR_RECEIVED.
struct AlternatePathAnswered {
  ConnectionId id{};
  AlternatePathStatus status{};
  AdditionalInfo info;
  PrivateData private_data;
};

// LAP_ERROR. The connection stays established with the alternate path that it had.
struct AlternatePathTimedOut {
  ConnectionId id{};
};

// SIDR_REQ_RECEIVED. answer_sidr() is next; destroy(SidrId) without it rejects.
struct SidrRequested {
  SidrId id{};
  ListenerId listener{};
  std::uint64_t service_id = 0;
  std::uint16_t pkey = 0;
  MadAddress source;
  PrivateData private_data;
};

// SIDR_REP_RECEIVED.
struct SidrAnswered {
  SidrId id{};
  SidrStatus status{};
  std::uint32_t qpn = 0;
  std::uint32_t qkey = 0;
  VendorOptions vendor;
  AdditionalInfo info;
  MadAddress source;
  PrivateData private_data;
};

// SIDR_REQ_ERROR.
struct SidrTimedOut {
  SidrId id{};
  unsigned times_sent = 0;
};

using Event = std::variant<RequestReceived, ReplyReceived, Established, Rejected, TimedOut, Delayed,
                           DisconnectRequested, Disconnected, TimeWaitEnded, AlternatePathOffered,
                           AlternatePathAnswered, AlternatePathTimedOut, SidrRequested,
                           SidrAnswered, SidrTimedOut>;

}  // namespace ib::cm
