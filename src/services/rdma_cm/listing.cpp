// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The ids of all programs, for people and tools.
#include "services/rdma_cm/service.h"

#include <algorithm>

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

}  // namespace

std::vector<Listing> Service::list() const {
  std::vector<Listing> all;
  all.reserve(ids_.size());
  for (const auto& [number, id] : ids_) {
    Listing one;
    one.id = number;
    one.node = id->node;
    one.pid = id->file->options.pid;
    one.program = id->file->options.program;
    one.space = name_of(id->space);
    one.state = text_of(id->state, id->connection.stage);
    one.local = id->source;
    one.peer = id->destination;
    one.events_waiting = id->events_pending;
    all.push_back(std::move(one));
  }
  std::sort(all.begin(), all.end(), [](const Listing& a, const Listing& b) { return a.id < b.id; });
  return all;
}

}  // namespace ib::services::rdma_cm
