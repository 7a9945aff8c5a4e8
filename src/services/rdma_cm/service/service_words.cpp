// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The lines that the service leaves in the trace. A refusal is told once: by the side that refuses,
// which has the reason, or else by the one that is refused.
#include "services/rdma_cm/addresses/places.h"
#include "services/rdma_cm/service/service.h"
#include "services/rdma_cm/words/words.h"

#include <fmt/format.h>

namespace ib::services::rdma_cm {
namespace {

std::string program_text(const FileOptions& program) {
  return fmt::format("{} (pid {})", program.program.empty() ? "a program" : program.program,
                     program.pid);
}

}  // namespace

void Service::trace(const Id& id, std::string what, std::string_view why) const {
  if (!options_.trace) return;
  const std::string& node = fabric_.nodes()[id.node].name;
  options_.trace(fmt::format("{} on {}: {}{}", program_text(id.file->options), node, what, why),
                 id.file, node);
}

// The id that has sent the request: its owner has the port in the port table.
Id* Service::sender_of(const Arrival& arrival) {
  const fabric::Node* node = fabric_.find_node_by_address(arrival.origin().ip);
  if (is_loopback(arrival.origin())) node = arrival.node;
  if (node == nullptr) return nullptr;
  for (const PortOwner& owner :
       ports_.owners(index_of(fabric_, *node), arrival.space, arrival.origin().port)) {
    if (owner.id == PortOwner::kDriver) continue;
    Id& id = *ids_.at(owner.id);
    if (id.endpoint != 0 && id.destination == arrival.target()) return &id;
  }
  return nullptr;
}

// "no listener for TCP port 7471 on node1 (127.77.0.2), wanted by rping (pid 811) at
// 127.77.0.1:40000; listening there: 7472 (rping, pid 812)"
void Service::report_no_listener(const Arrival& arrival) {
  if (!options_.trace) return;
  constexpr std::size_t kMostNamed = 8;
  Id* const sender = sender_of(arrival);
  if (sender != nullptr) sender->failure_is_told = true;
  std::string others;
  const auto listeners =
      ports_.listeners(index_of(fabric_, *arrival.node), arrival.space, kMostNamed);
  for (const PortOwner* owner : listeners) {
    const FileOptions& program = ids_.at(owner->id)->file->options;
    others += fmt::format("{}{} ({}, pid {})", others.empty() ? "" : ", ", owner->address.port,
                          program.program, program.pid);
    if (!is_any(owner->address)) others += " at " + verbs::address_text(owner->address.ip);
  }
  options_.trace(
      fmt::format("no listener for {} port {} on {} ({}), wanted by {}{}; listening there: {}",
                  name_of(arrival.space), arrival.target().port, arrival.node->name,
                  verbs::address_text(arrival.target().ip),
                  sender == nullptr ? "" : program_text(sender->file->options) + " at ",
                  place_text(fabric_, arrival.origin()), others.empty() ? "nobody" : others),
      sender == nullptr ? nullptr : sender->file, arrival.node->name);
}

void Service::report_full(const Arrival& arrival, const Id& listener, bool is_full) {
  if (Id* const sender = sender_of(arrival)) sender->failure_is_told = true;
  const std::string refused = "; refused: " + place_text(fabric_, arrival.origin());
  if (is_full) {
    return trace(
        listener,
        fmt::format("the backlog of {} port {} is full: {} requests wait until the "
                    "program takes them",
                    name_of(arrival.space), arrival.target().port, listener.requests.size()),
        refused);
  }
  trace(listener, fmt::format("it has {} ids, the most that an event channel takes", kMaxIdsOfFile),
        refused);
}

const fabric::Port* Service::peer_port_of(const Id& id) const {
  if (id.peer_port != nullptr || !id.path) return id.peer_port;
  return id.path->is_ethernet ? fabric_.graph().find_port(id.path->dgid)
                              : fabric_.graph().find_port(id.path->dlid);
}

// "rping (pid 812)", which listens where this id connects to; empty: nobody does.
std::string Service::listener_text(const Id& id) const {
  const fabric::Port* port = peer_port_of(id);
  if (port == nullptr) return {};
  const fabric::Node& node = fabric_.node_of(*fabric_.hca_of(*port));
  const PortOwner* owner =
      ports_.find_listener(index_of(fabric_, node), id.port_space, id.destination);
  return owner == nullptr ? std::string() : program_text(ids_.at(owner->id)->file->options);
}

void Service::report_no_answer(const Id& id, const Unanswered& message) {
  const std::string peer = place_text(fabric_, id.destination);
  if (message.status != Status::Ok) {
    return trace(id, fmt::format("cannot ask {} for a connection: {}", peer,
                                 message.status == Status::DeviceBusy
                                     ? "the queue pair has another one, maybe in time-wait"
                                     : status_text(message.status)));
  }
  const std::string what = fmt::format("{} does not answer {}: ", peer, message_text(message));
  if (id.port != nullptr) {
    const std::string obstacle = obstacle_text(fabric_, *id.port, peer_port_of(id));
    if (!obstacle.empty()) return trace(id, what, obstacle);
  }
  const std::string listener = listener_text(id);
  if (message.was_delayed && !listener.empty()) {
    return trace(id, what,
                 listener +
                     " has got it, but does not react; is it stopped, or does it not take "
                     "its events?");
  }
  trace(id, what, "nothing is in the way now; was a port down, or an HCA asleep, meanwhile?");
}

void Service::report_refusal(const Id& id, const std::string& text) {
  if (id.failure_is_told) return;
  const std::string listener = listener_text(id);
  trace(id, fmt::format("{}{} {}", place_text(fabric_, id.destination),
                        listener.empty() ? "" : ", where " + listener + " listens,", text));
}

void Service::report_private_data(const Id& id, std::string_view call, std::size_t size,
                                  std::size_t most) const {
  trace(id, fmt::format("{} has {} bytes of private data, {} is the most here (EINVAL)", call, size,
                        most));
}

// A port that another id has; `error` goes on to the program.
Error Service::address_in_use(const Id& id, Error error, const EndpointAddress& address) const {
  if (address.port == 0) {
    trace(id, fmt::format("no {} port is free", name_of(id.port_space)));
    return error;
  }
  for (const PortOwner& owner : ports_.owners(id.node, id.port_space, address.port)) {
    if (owner.id == id.number) continue;
    if (owner.id == PortOwner::kDriver) {
      trace(id, fmt::format("{} port {} belongs to a driver, which listens on it",
                            name_of(id.port_space), address.port));
      break;
    }
    trace(id, fmt::format("{} port {} belongs to {} already, {} {}", name_of(id.port_space),
                          address.port, program_text(ids_.at(owner.id)->file->options),
                          owner.listens ? "which listens on" : "which has bound it to",
                          text_of(owner.address)));
    break;
  }
  return error;
}

}  // namespace ib::services::rdma_cm
