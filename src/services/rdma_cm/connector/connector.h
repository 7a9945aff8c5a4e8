// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connector: what the rdma_cm service needs of a communication manager [IBA1 chapter 12]: requests
// that go out and come in, each an endpoint from its first message to its end.
//
// The connector delivers every request for a service id of this service (ip_cm.h) on any port of
// the fabric; the service rejects what nobody listens to.
//
// Thread rule: the executor's thread, dispatch level. Events never come from inside a call.
#pragma once

#include "base/result.h"
#include "cm/waiting_room.h"
#include "fabric/model.h"
#include "services/rdma_cm/addresses/path.h"
#include "verbs/types.h"

#include <cstdint>
#include <vector>

namespace ib::services::rdma_cm {

using Endpoint = std::uint64_t;  // 0: none
using Bytes = std::vector<std::uint8_t>;

// Private data that a message has room for [IBA1 12.6].
inline constexpr std::size_t kReqPrivate = 92;
inline constexpr std::size_t kRepPrivate = 196;
inline constexpr std::size_t kRejPrivate = 148;
inline constexpr std::size_t kSidrReqPrivate = 216;
inline constexpr std::size_t kSidrRepPrivate = 136;

// Reasons of a REJ [IBA1 12.6.7.2].
namespace rej {
inline constexpr std::uint16_t kTimeout = 4;
inline constexpr std::uint16_t kInvalidServiceId = 8;
inline constexpr std::uint16_t kConsumerDefined = 28;
inline constexpr std::uint16_t kVendorOption = 35;
}  // namespace rej
// Statuses of a SIDR_REP [IBA1 12.11.2].
namespace sidr {
inline constexpr std::uint32_t kSuccess = 0;
inline constexpr std::uint32_t kUnsupported = 1;
inline constexpr std::uint32_t kRejected = 2;
}  // namespace sidr

struct ConnectRequest {
  std::uint64_t service_id = 0;
  Path path;        // from the sender to the receiver; of one that came in: from here to the sender
  cm::Peer sender;  // of one that came in: where its MAD came from, whatever the path says
  verbs::QpType qp_type = verbs::QpType::Rc;
  std::uint32_t qpn = 0;
  bool has_queue_pair = true;      // false: `qpn` is no queue pair's
  std::uint32_t starting_psn = 0;  // that the sender expects
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry_count = 0;
  bool flow_control = false;
  bool srq = false;
  Bytes private_data;
};
struct ConnectReply {
  std::uint32_t qpn = 0;
  bool has_queue_pair = true;
  std::uint32_t starting_psn = 0;
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t rnr_retry_count = 0;
  bool flow_control = false;
  bool srq = false;
  Bytes private_data;
};
struct DatagramRequest {
  std::uint64_t service_id = 0;
  Path path;
  cm::Peer sender;
  Bytes private_data;
};
struct DatagramReply {
  std::uint32_t status = sidr::kSuccess;
  std::uint32_t qpn = 0;
  std::uint32_t qkey = 0;
  Bytes private_data;
};

// A message without an answer so far, or at all.
struct Unanswered {
  enum class Kind : std::uint8_t { None, Req, Rep, SidrReq, Dreq };
  Kind kind = Kind::None;
  unsigned times_sent = 0;
  unsigned retries_left = 0;
  bool was_delayed = false;    // the peer has it, and needs longer (MRA)
  Status status = Status::Ok;  // why it was not sent at all
};

// How far the exchange of an endpoint is, for people.
struct Progress {
  const char* state = "";  // of the communication manager: "REQ sent"; "": it has none
  Unanswered waiting;
};

class Connector {
 public:
  class Handler {
   public:
    virtual ~Handler() = default;
    // `port`: where it came in.
    virtual void on_request(Endpoint endpoint, const fabric::Port& port,
                            const ConnectRequest& request) = 0;
    virtual void on_datagram_request(Endpoint endpoint, const fabric::Port& port,
                                     const DatagramRequest& request) = 0;
    virtual void on_reply(Endpoint endpoint, const ConnectReply& reply) = 0;
    virtual void on_datagram_reply(Endpoint endpoint, const DatagramReply& reply) = 0;
    virtual void on_ready(Endpoint endpoint) = 0;  // RTU
    virtual void on_rejected(Endpoint endpoint, std::uint16_t reason,
                             const Bytes& private_data) = 0;
    virtual void on_unreachable(Endpoint endpoint, const Unanswered& message) = 0;
    // DREQ or DREP came; `timed_out`: no answer to a DREQ.
    virtual void on_disconnected(Endpoint endpoint, bool timed_out) = 0;
    virtual void on_timewait_over(Endpoint endpoint) = 0;
    virtual void on_hca_gone(const fabric::Hca& hca) = 0;  // pulled out
    // The state or the addresses of one of its ports may be others.
    virtual void on_ports_changed(const fabric::Hca& hca) = 0;
  };

  virtual ~Connector() = default;
  virtual void set_handler(Handler* handler) = 0;
  // Programs of this node are about to use it.
  virtual void prepare(const fabric::Node& node) = 0;

  virtual Progress progress(Endpoint endpoint) const = 0;
  virtual Result<Endpoint> connect(const fabric::Port& from, const ConnectRequest& request) = 0;
  virtual Result<Endpoint> connect(const fabric::Port& from, const DatagramRequest& request) = 0;
  virtual Status reply(Endpoint endpoint, const ConnectReply& reply) = 0;
  virtual Status reply(Endpoint endpoint, const DatagramReply& reply) = 0;
  virtual Status make_ready(Endpoint endpoint) = 0;  // sends RTU
  // Data came before the RTU, or the RTU is lost. AlreadyExists: the connection is established.
  virtual Status notify_established(Endpoint endpoint) = 0;
  virtual Status reject(Endpoint endpoint, std::uint16_t reason, const Bytes& private_data) = 0;
  // Sends DREQ, or DREP if a DREQ came.
  virtual Status disconnect(Endpoint endpoint) = 0;
  // The end, in any state: the peer gets REJ or DREQ if it waits or is connected. No more events.
  virtual void drop(Endpoint endpoint) = 0;
};

}  // namespace ib::services::rdma_cm
