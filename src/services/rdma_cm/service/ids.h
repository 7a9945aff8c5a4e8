// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The state of the rdma_cm service: open files, their ids, and the ids' memberships of multicast
// groups. Plain data; service.h has the rules.
#pragma once

#include "base/time.h"
#include "fabric/model.h"
#include "services/rdma_cm/addresses/ip_cm.h"
#include "services/rdma_cm/addresses/path.h"
#include "services/rdma_cm/addresses/routes.h"
#include "services/rdma_cm/command/endpoint_address.h"
#include "services/rdma_cm/command/ucma_layout.h"
#include "services/rdma_cm/connector/connector.h"
#include "services/rdma_cm/service/event_queue.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace ib::services::rdma_cm {

struct FileOptions {
  std::uint32_t node = 0;
  std::uint32_t pid = 0;
  std::string program;              // for people
  std::function<void()> on_events;  // of its EventQueue
};

// One open /dev/infiniband/rdma_cm.
struct File {
  File(std::uint32_t its_number, FileOptions its_options)
      : number(its_number),
        options(std::move(its_options)),
        events(std::exchange(options.on_events, nullptr)) {}

  std::uint32_t number;
  FileOptions options;
  EventQueue events;
  std::set<std::uint32_t> ids;
  bool is_closing = false;
  bool has_foreign_commands = false;  // the trace has a line about it
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
  std::uint16_t pkey = 0;                   // of the interface of the ends; 0: they have none
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
  bool is_answered = false;      // a request: accepted or rejected
  std::string refusal;           // why a REJ is on its way that no program has sent; for people
  // A request whose event is queued in the file: its program has no name for it yet.
  bool is_unread = false;
  std::uint32_t events_reported = 0;
  std::set<std::uint64_t> events;  // in the queue of its file: by their numbers there
  std::set<std::uint32_t> multicasts;
};

// A request that came in; it has no port of its own.
inline bool is_passive(const Id& id) {
  return !id.has_port && id.endpoint != 0;
}

struct Membership {
  std::uint32_t number = 0;
  Id* id = nullptr;
  std::uint64_t uid = 0;
  verbs::Gid mgid{};
  std::unique_ptr<Routes::Share> share{};
  std::uint32_t events_reported = 0;
};

}  // namespace ib::services::rdma_cm
