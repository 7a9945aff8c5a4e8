// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/rdma_cm/service/listing.h"

#include "services/rdma_cm/service/ids.h"
#include "services/rdma_cm/words/words.h"

#include <fmt/format.h>

#include <string_view>
#include <unordered_map>

namespace ib::services::rdma_cm {
namespace {

const char* text_of(IdState state, Connection::Stage stage) {
  switch (state) {
    case IdState::Idle: return "idle";
    case IdState::AddrBound: return "bound";
    case IdState::AddrResolved: return "address resolved";
    case IdState::RouteQuery: return "resolving the route";
    case IdState::RouteResolved: return "route resolved";
    case IdState::Connect: break;
    case IdState::Disconnect: return "disconnected";
    case IdState::Listen: return "listening";
    case IdState::DeviceRemoval: return "its HCA is gone";
  }
  switch (stage) {
    case Connection::Stage::None: return "connecting";  // datagrams
    case Connection::Stage::ReqSent: return "REQ sent";
    case Connection::Stage::ReqReceived: return "REQ received";
    case Connection::Stage::RepSent: return "REP sent";
    case Connection::Stage::RepReceived: return "REP received";
    case Connection::Stage::Established: return "established";
    case Connection::Stage::Over: return "over";
  }
  return "";
}

std::string waits_for_peer(const Progress& progress) {
  const Unanswered& message = progress.waiting;
  if (message.kind == Unanswered::Kind::None) return {};
  return fmt::format(
      "{}, {}", message_text(message),
      message.was_delayed ? "the peer has it and needs longer" : "no answer of the peer yet");
}

// The program of a request that has come must take its event first.
std::string waits_for_program(const Id& id) {
  return id.is_unread ? "its program to take the request" : "its program to accept or reject";
}

std::string waits_for(const Id& id, const Progress& progress) {
  if (id.state == IdState::RouteQuery) return "the subnet administrator's answer";
  if (id.state == IdState::Disconnect) return waits_for_peer(progress);
  if (id.state != IdState::Connect) return {};
  switch (id.connection.stage) {
    case Connection::Stage::ReqReceived: return waits_for_program(id);
    case Connection::Stage::RepReceived: return "its program to finish (rdma_accept)";
    case Connection::Stage::None:
      if (id.uid == 0) return waits_for_program(id);
      break;
    case Connection::Stage::ReqSent:
      if (progress.state[0] == '\0') return "queue pairs 1 of both nodes";
      break;
    case Connection::Stage::RepSent:
    case Connection::Stage::Established:
    case Connection::Stage::Over: break;
  }
  return waits_for_peer(progress);
}

// The same for both ends of a connection, but for the order: from the view of the first.
std::string ends_key(std::string_view space, const EndpointAddress& own,
                     const EndpointAddress& other) {
  return fmt::format("{} {} {}", space, text_of(own), text_of(other));
}
std::string qpn_key(std::uint32_t own, std::uint32_t other) {
  return fmt::format("QP {:x} {:x}", own, other);
}

// Both numbers are there once the exchange is over; addresses are there from the beginning.
std::string key_of(const Listing& one, bool of_other_end) {
  if (one.qpn != 0 && one.peer_qpn != 0) {
    return of_other_end ? qpn_key(one.peer_qpn, one.qpn) : qpn_key(one.qpn, one.peer_qpn);
  }
  if (one.peer.family == Family::None) return {};
  return of_other_end ? ends_key(one.space, one.peer, one.local)
                      : ends_key(one.space, one.local, one.peer);
}

}  // namespace

void find_other_ends(std::vector<Listing>& all) {
  std::unordered_map<std::string, std::size_t> by_key;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Listing& one = all[i];
    by_key.emplace(key_of(one, false), i);
    if (one.peer.family != Family::None) {
      by_key.emplace(ends_key(one.space, one.local, one.peer), i);
    }
  }
  by_key.erase("");
  for (std::size_t i = 0; i < all.size(); ++i) {
    Listing& one = all[i];
    auto found = by_key.find(key_of(one, true));
    if (found == by_key.end() && one.peer.family != Family::None) {
      found = by_key.find(ends_key(one.space, one.peer, one.local));
    }
    if (found != by_key.end() && found->second != i) one.other_end = found->second;
  }
}

Listing listing_of(const Id& id, Progress progress) {
  Listing one;
  one.id = id.number;
  one.node = id.node;
  one.pid = id.file->options.pid;
  one.program = id.file->options.program;
  one.space = name_of(id.space);
  one.state = text_of(id.state, id.connection.stage);
  one.qp_type = id.qp_type;
  one.local = id.source;
  one.peer = id.destination;
  const bool is_active = !is_passive(id) && id.destination.family != Family::None;
  one.service_id = service_id(id.space, is_active ? id.destination.port : id.source.port);
  one.port = id.port;
  one.qpn = id.qp_num;
  one.peer_qpn = id.connection.remote_qpn;
  one.progress = progress;
  one.waits_for = waits_for(id, one.progress);
  if (id.state == IdState::Listen) {
    one.backlog = id.backlog;
    one.backlog_used = id.requests.size();
  }
  one.events_waiting = static_cast<std::uint32_t>(id.events.size());
  return one;
}

}  // namespace ib::services::rdma_cm
