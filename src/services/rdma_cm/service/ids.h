// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The state of the rdma_cm service: open files, ids, events that wait for their program, and
// memberships of multicast groups. Plain data; service.h has the rules.
#pragma once

#include "base/time.h"
#include "fabric/model.h"
#include "services/rdma_cm/addresses/endpoint_address.h"
#include "services/rdma_cm/addresses/path.h"
#include "services/rdma_cm/addresses/routes.h"
#include "services/rdma_cm/command/ucma_layout.h"
#include "services/rdma_cm/connector/connector.h"
#include "services/rdma_cm/connector/ip_cm.h"

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace ib::services::rdma_cm {

struct Id;
struct File;

// Of an id, for its program.
struct PendingEvent {
  Id* id = nullptr;             // counts it as reported
  Id* request = nullptr;        // ConnectRequest: the new id
  std::uint32_t multicast = 0;  // of MulticastJoin and MulticastError
  ucma::EventOut out;

  const Id& about() const { return request != nullptr ? *request : *id; }
};

// How one client is offered the next event with the answer to a command: both sides share a word,
// so that either the client has the event or it is still here.
class EventOffer {
 public:
  // Returns false if another event is offered already.
  virtual bool offer(std::uint32_t number) = 0;
  // Ends the offer. Returns false if the client has taken the event.
  virtual bool withdraw() = 0;

 protected:
  ~EventOffer() = default;
};

struct FileOptions {
  std::uint32_t node = 0;
  std::uint32_t pid = 0;
  std::string program;  // for people
  // There are events now, and were none before: Service::give_notice() shall follow in a moment.
  std::function<void()> on_events;
};

// One open /dev/infiniband/rdma_cm.
struct File {
  std::uint32_t number = 0;
  FileOptions options;
  std::list<PendingEvent> events;
  std::set<std::uint32_t> ids;
  // Due: on_events was called. Given: the program was not told yet that the events are gone.
  enum class Notice : std::uint8_t { None, Due, Given } notice = Notice::None;
  std::function<void()> waiter;  // Service::await_event()
  EventOffer* offer = nullptr;   // of the first event
  bool offer_drains = false;     // who takes that takes the notice, too
};

enum class IdState : std::uint8_t {
  Idle,
  AddrBound,
  AddrResolved,
  RouteQuery,
  RouteResolved,
  Connect,
  Disconnect,
  Listen,
  DeviceRemoval,
};

// The connection of an id as its queue pair needs it.
struct Connection {
  enum class Stage : std::uint8_t {
    None,
    ReqSent,
    ReqReceived,
    RepSent,
    RepReceived,
    Established,
    Over,
  };
  Stage stage = Stage::None;
  std::uint32_t remote_qpn = 0;
  std::uint32_t send_psn = 0;
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry_count = 0;
};

struct Id {
  std::uint32_t number = 0;
  File* file = nullptr;
  std::uint32_t node = 0;
  std::uint64_t uid = 0;  // 0: of a request that the program has not accepted
  PortSpace space = PortSpace::Tcp;
  PortSpace port_space = PortSpace::Tcp;  // of its port; an IB id may have one of another space
  verbs::QpType qp_type = verbs::QpType::Rc;
  IdState state = IdState::Idle;
  EndpointAddress source;
  EndpointAddress destination;
  bool has_port = false;                    // in the port table, under `source`
  const fabric::Port* port = nullptr;       // nullptr: a wildcard, or not resolved
  bool has_moved = false;                   // the source is at another port by now, or nowhere
  const fabric::Port* peer_port = nullptr;  // of a resolved destination
  std::optional<Path> path;                 // of a resolved route, or of a request
  cm::Peer sender;                          // of a request
  std::unique_ptr<Routes::Share> question;  // while the route is being resolved
  Endpoint endpoint = 0;
  Connection connection;

  bool reuse = false;
  bool af_only = false;
  std::uint8_t tos = 0;
  std::optional<std::uint8_t> ack_timeout;

  std::uint32_t psn = 0;   // at which the peer begins to send
  std::uint32_t qkey = 0;  // of datagrams; 0: none was agreed on
  std::uint32_t qp_num = 0;
  bool srq = false;
  cm::WaitingRoom requests;      // of a listener: that wait to be reported
  std::uint32_t backlog = 0;     // of one remote port
  Instant since{};               // it was made
  bool failure_is_told = false;  // the trace has the reason already: by the other side
  std::uint32_t events_reported = 0;
  std::uint32_t events_pending = 0;
  std::set<std::uint32_t> multicasts;
};

struct Membership {
  std::uint32_t number = 0;
  Id* id = nullptr;
  std::uint64_t uid = 0;
  verbs::Gid mgid{};
  std::unique_ptr<Routes::Share> share{};
  std::uint32_t events_reported = 0;
};

}  // namespace ib::services::rdma_cm
