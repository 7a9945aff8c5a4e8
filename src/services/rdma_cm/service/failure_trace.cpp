// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/rdma_cm/service/failure_trace.h"

#include "services/rdma_cm/addresses/places.h"
#include "services/rdma_cm/words/words.h"

#include <fmt/format.h>

#include <utility>

namespace ib::services::rdma_cm {
namespace {

std::string program_text(const FileOptions& program) {
  return fmt::format("{} (pid {})", program.program.empty() ? "a program" : program.program,
                     program.pid);
}

}  // namespace

void FailureTrace::report(const Id& id, std::string what, std::string_view why) const {
  if (!add_line_) return;
  const std::string& node = fabric_.nodes()[id.node].name;
  add_line_(fmt::format("{} on {}: {}{}", program_text(id.file->options), node, what, why), id.file,
            node);
}

void FailureTrace::report_foreign_command(File& file, std::uint32_t pid) const {
  if (!add_line_ || std::exchange(file.has_foreign_commands, true)) return;
  const std::string& node = fabric_.nodes()[file.options.node].name;
  add_line_(
      fmt::format("pid {} has written to an rdma_cm descriptor that {} on {} has opened: only "
                  "the process that opens one may use it, on Linux neither may its children "
                  "(EACCES)",
                  pid, program_text(file.options), node),
      &file, node);
}

// The id that has sent a request to `target` on the node `at`: its owner has the port of `origin`
// in the port table.
Id* FailureTrace::sender_of(const fabric::Node& at, PortSpace space, const EndpointAddress& origin,
                            const EndpointAddress& target) const {
  const fabric::Node* node = is_loopback(origin) ? &at : fabric_.find_node_by_address(origin.ip);
  if (node == nullptr) return nullptr;
  for (const auto& [number, owner] : ports_.owners(index_of(fabric_, *node), space, origin.port)) {
    if (number == PortOwner::kDriver) continue;
    Id& id = ids_.at(number);
    const EndpointAddress& wanted = id.destination;
    if (id.endpoint != 0 && wanted.ip == target.ip && wanted.port == target.port) return &id;
  }
  return nullptr;
}

Id* FailureTrace::sender_of(const Arrival& arrival) const {
  return sender_of(*arrival.node, arrival.space, arrival.origin(), arrival.target());
}

Id* FailureTrace::sender_of(const Id& request) const {
  return sender_of(fabric_.nodes()[request.node], request.port_space, request.destination,
                   request.source);
}

// "no listener for TCP port 7471 on node1 (127.77.0.2), wanted by rping (pid 811) at
// 127.77.0.1:40000; listening there: 7472 (rping, pid 812)"
void FailureTrace::report_no_listener(const Arrival& arrival) const {
  if (!add_line_) return;
  constexpr std::size_t kMostNamed = 8;
  Id* const sender = sender_of(arrival);
  if (sender != nullptr) sender->failure_is_told = true;
  std::string others;
  const auto listeners =
      ports_.listeners(index_of(fabric_, *arrival.node), arrival.space, kMostNamed);
  for (const PortOwner* owner : listeners) {
    const FileOptions& program = ids_.at(owner->id).file->options;
    others += fmt::format("{}{} ({}, pid {})", others.empty() ? "" : ", ", owner->address.port,
                          program.program, program.pid);
    if (!is_any(owner->address)) others += " at " + verbs::address_text(owner->address.ip);
  }
  add_line_(
      fmt::format("no listener for {} port {} on {} ({}), wanted by {}{}; listening there: {}",
                  name_of(arrival.space), arrival.target().port, arrival.node->name,
                  verbs::address_text(arrival.target().ip),
                  sender == nullptr ? "" : program_text(sender->file->options) + " at ",
                  place_text(fabric_, arrival.origin()), others.empty() ? "nobody" : others),
      sender == nullptr ? nullptr : sender->file, arrival.node->name);
}

void FailureTrace::report_no_room(const Arrival& arrival, const Id& listener,
                                  bool is_backlog_full) const {
  if (Id* const sender = sender_of(arrival)) sender->failure_is_told = true;
  const std::string refused = "; refused: " + place_text(fabric_, arrival.origin());
  if (is_backlog_full) {
    return report(
        listener,
        fmt::format("the backlog of {} port {} is full: {} requests wait until the "
                    "program takes them",
                    name_of(arrival.space), arrival.target().port, listener.requests.size()),
        refused);
  }
  report(listener,
         fmt::format("it has {} ids, the most that an event channel takes", IdTable::kMaxIdsOfFile),
         refused);
}

const fabric::Port* FailureTrace::peer_port_of(const Id& id) const {
  if (id.peer_port != nullptr || !id.path) return id.peer_port;
  return id.path->is_ethernet ? fabric_.graph().find_port(id.path->dgid)
                              : fabric_.graph().find_port(id.path->dlid);
}

// "rping (pid 812)", which listens where this id connects to; empty: nobody does.
std::string FailureTrace::listener_text(const Id& id) const {
  const fabric::Port* port = peer_port_of(id);
  if (port == nullptr || fabric_.hca_of(*port) == nullptr) return {};
  const fabric::Node& node = fabric_.node_of(*fabric_.hca_of(*port));
  const PortOwner* owner =
      ports_.find_listener(index_of(fabric_, node), id.port_space, id.destination);
  return owner == nullptr ? std::string() : program_text(ids_.at(owner->id).file->options);
}

void FailureTrace::report_no_answer(const Id& id, const Unanswered& message) const {
  const std::string peer = place_text(fabric_, id.destination);
  if (message.status != Status::Ok) {
    return report(id, fmt::format("cannot ask {} for a connection: {}", peer,
                                  message.status == Status::DeviceBusy
                                      ? "the queue pair has another one, maybe in time-wait"
                                      : status_text(message.status)));
  }
  const std::string what = fmt::format("{} does not answer {}: ", peer, message_text(message));
  if (id.port != nullptr) {
    const std::string obstacle = obstacle_text(fabric_, *id.port, peer_port_of(id));
    if (!obstacle.empty()) return report(id, what, obstacle);
  }
  const std::string listener = listener_text(id);
  if (message.was_delayed && !listener.empty()) {
    return report(id, what,
                  listener +
                      " has got it, but does not react; is it stopped, or does it not take "
                      "its events?");
  }
  report(id, what, "nothing is in the way now; was a port down, or an HCA asleep, meanwhile?");
}

void FailureTrace::report_refusal(const Id& id, const std::string& text) const {
  if (id.failure_is_told) return;
  const std::string listener = id.refusal.empty() ? listener_text(id) : std::string();
  report(id, fmt::format("{}{} {}", place_text(fabric_, id.destination),
                         listener.empty() ? "" : ", where " + listener + " listens,", text));
}

// The side that has no listener tells of a request that finds none; with AF_IB addresses it does
// not find the sender.
void FailureTrace::report_rejection(const Id& id, std::uint16_t reason) const {
  if (reason == rej::kInvalidServiceId && id.source.family == Family::Ib) return;
  const bool has_gone = is_passive(id) && sender_of(id) == nullptr;
  report_refusal(id, rejection_text(reason, has_gone ? "its program has ended, or destroyed the id"
                                                     : std::string_view(id.refusal)));
}

void FailureTrace::report_datagram_refusal(const Id& id, std::uint32_t status) const {
  if (status == sidr::kUnsupported && id.source.family == Family::Ib) return;
  report_refusal(id, datagram_refusal_text(status, id.refusal));
}

void FailureTrace::note_refusal(const Id& id, std::string_view how) const {
  Id* const sender = add_line_ ? sender_of(id) : nullptr;
  if (sender != nullptr) {
    sender->refusal = fmt::format("{} {}", program_text(id.file->options), how);
  }
}

void FailureTrace::note_end(const Id& id) const {
  const bool is_waited_for = !id.is_answered || id.connection.stage == Connection::Stage::RepSent;
  if (!is_passive(id) || !is_waited_for) return;
  if (id.file->is_closing) {
    note_refusal(id, "ended, or closed its event channel, before the connection was established");
  } else if (id.is_unread) {
    note_refusal(id, "destroyed its listener before it took the request");
  } else {
    note_refusal(id, "destroyed the id of the request before the connection was established");
  }
}

void FailureTrace::note_failed_accept(const Id& id) const {
  note_refusal(id, "has called rdma_accept, which failed");
}

void FailureTrace::report_private_data(const Id& id, std::string_view call, std::size_t size,
                                       std::size_t most) const {
  report(id, fmt::format("{} has {} bytes of private data, {} is the most here (EINVAL)", call,
                         size, most));
}

void FailureTrace::report_foreign_queue_pair(const Id& id, std::string_view call,
                                             std::uint32_t qpn) const {
  report(id,
         fmt::format("{} names queue pair {:#x}, which another process has (EINVAL)", call, qpn));
}

Error FailureTrace::report_address_in_use(const Id& id, Error error,
                                          const EndpointAddress& address) const {
  if (address.port == 0) {
    report(id, fmt::format("no {} port is free", name_of(id.port_space)));
    return error;
  }
  for (const auto& [number, owner] : ports_.owners(id.node, id.port_space, address.port)) {
    if (owner.id == id.number) continue;
    if (owner.id == PortOwner::kDriver) {
      report(id, fmt::format("{} port {} belongs to a driver, which listens on it",
                             name_of(id.port_space), address.port));
      break;
    }
    report(id, fmt::format("{} port {} belongs to {} already, {} {}", name_of(id.port_space),
                           address.port, program_text(ids_.at(owner.id).file->options),
                           owner.listens ? "which listens on" : "which has bound it to",
                           text_of(owner.address)));
    break;
  }
  return error;
}

}  // namespace ib::services::rdma_cm
