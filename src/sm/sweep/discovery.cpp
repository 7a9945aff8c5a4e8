// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// First step of a sweep: each answer enters a node, a port or a link and leads to the next
// requests. The manager sets up what was found when none is left.
#include "sm/sweep/discovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ib::sm {
namespace {

namespace attribute = mad::smp_attribute;

bool has(const std::vector<bool>& set, std::uint32_t i) {
  return i < set.size() && set[i];
}
void put(std::vector<bool>& set, std::uint32_t i, bool value = true) {
  if (i >= set.size()) set.resize(std::size_t{i} + 1);
  set[i] = value;
}

}  // namespace

void Discovery::begin() {
  tasks_.clear();
  open_ = 0;
  is_met_.clear();
  is_probed_.clear();
  is_doubted_.clear();
  touched_.clear();
  far_ends_.clear();
  is_narrow_ = false;
  found_ = {};
}

void Discovery::begin_full() {
  begin();
  is_light_ = may_clear_ = false;
  lost_.clear();
  for (std::uint32_t i = 0; i < subnet_.ports().size(); ++i) {
    subnet_.disconnect(i);
    subnet_.port(i).is_silent = subnet_.port(i).is_known = false;
  }
  ask(attribute::kNodeInfo, kNone, 0, kProbe);
}

void Discovery::begin_light(bool may_clear) {
  begin();
  is_light_ = true;
  may_clear_ = may_clear;
  for (std::uint32_t i = 0; i < subnet_.nodes().size(); ++i) {
    const Node& node = subnet_.node(i);
    if (!node.is_there || !node.is_switch()) continue;
    ask(attribute::kNodeInfo, node.first_port, 0, kVerify);
    ask(attribute::kSwitchInfo, node.first_port);
  }
  for (std::uint32_t i = 0; i < subnet_.ports().size(); ++i) {
    if (subnet_.port(i).is_silent) recheck(i, false);
  }
  for (const Task& task : std::exchange(lost_, {})) {
    if (subnet_.node_of(subnet_.port(task.port)).is_there) tasks_.push_back(task);
  }
  recheck(subnet_.own_port(), false);
}

void Discovery::begin_narrow() {
  begin();
  is_light_ = is_narrow_ = may_clear_ = true;
  recheck(subnet_.own_port(), false);
}

// First the port that leads to it, so that the way there is known to be one.
void Discovery::look_at(std::uint32_t node) {
  const Node& at = subnet_.node(node);
  if (!at.is_there || !at.is_switch()) return;
  if (at.reached_by != kNone) recheck(at.reached_by, false);
  ask(attribute::kSwitchInfo, at.first_port);
}

// All of a small subnet; of a large one so many that their number does not count.
void Discovery::patrol() {
  constexpr std::size_t kFewest = 64;
  constexpr std::size_t kPart = 32;
  const std::size_t all = subnet_.ports().size();
  std::size_t left = std::max(kFewest, subnet_.nodes().size() / kPart);
  for (std::size_t i = 0; i < all && left > 0; ++i) {
    const std::uint32_t port = next_on_patrol_++ % static_cast<std::uint32_t>(all);
    Port& at = subnet_.port(port);
    if (!subnet_.is_end_port(at) || !subnet_.is_served(at)) continue;
    at.pkeys.clear();
    recheck(port, false);
    --left;
  }
}

void Discovery::recheck(std::uint32_t port, bool is_doubted) {
  const Node& node = subnet_.node_of(subnet_.port(port));
  if (!node.is_there) return;
  if (is_doubted) {
    if (has(is_doubted_, port)) return;
    put(is_doubted_, port);
    put(is_probed_, port, false);
  }
  ask(attribute::kPortInfo, port, subnet_.port(port).number);
}

std::vector<std::uint32_t> Discovery::managers() const {
  std::vector<std::uint32_t> found;
  for (std::uint32_t i = 0; i < subnet_.ports().size(); ++i) {
    const Port& port = subnet_.port(i);
    const bool is_one = i != subnet_.own_port() && (port.info.capability_mask & kIsSm) != 0;
    if (is_one && subnet_.is_end_port(port) && subnet_.is_served(port)) found.push_back(i);
  }
  return found;
}

void Discovery::ask(std::uint16_t attribute, std::uint32_t port, std::uint32_t modifier, Tag tag) {
  tasks_.push_back({port, modifier, attribute, tag});
}

void Discovery::ask_ports(std::uint32_t node) {
  const Node& of = subnet_.node(node);
  for (std::uint32_t i = 0; i < of.port_count; ++i) {
    ask(attribute::kPortInfo, of.first_port + i, i + of.first_number());
  }
}

std::optional<Request> Discovery::next() {
  look_at_far_ends();
  if (tasks_.empty()) return std::nullopt;
  const Task task = tasks_.front();
  tasks_.pop_front();
  Request request;
  request.attribute = task.attribute;
  request.port = task.port;
  request.modifier = task.modifier;
  request.tag = task.tag;
  request.is_beyond = task.tag == kProbe && task.port != kNone;
  if (task.tag == kClear) {
    request.method = mad::method::kSet;
    mad::SwitchInfo info = subnet_.node_of(subnet_.port(task.port)).switch_info;
    info.life_state_mapping |= mad::kPortStateChange;
    request.data = as_data(info);
  }
  ++open_;
  return request;
}

void Discovery::on_answer(const Request& request, const Answer* answer) {
  if (open_ > 0) --open_;
  if (answer == nullptr) return on_silence(request);
  if (answer->status != mad::mad_status::kOk) {
    return report(ProblemKind::Refused, request.port,
                  fmt::format("refuses Get of attribute {:#06x} with status {:#06x}",
                              request.attribute, answer->status));
  }
  switch (request.attribute) {
    case attribute::kNodeInfo: {
      const auto info = read<mad::NodeInfo>(answer->data);
      if (request.tag == kVerify) return verify(request.port, info);
      return request.port == kNone ? on_own_node(info) : meet(request.port, info);
    }
    case attribute::kNodeDescription:
      std::ranges::copy(answer->data,
                        subnet_.node_of(subnet_.port(request.port)).description.begin());
      return;
    case attribute::kSwitchInfo:
      if (request.tag == kClear) {
        subnet_.node_of(subnet_.port(request.port)).switch_info =
            read<mad::SwitchInfo>(answer->data);
        return ask_ports(subnet_.port(request.port).node);
      }
      return on_switch_info(request.port, read<mad::SwitchInfo>(answer->data));
    case attribute::kPortInfo: return on_port_info(request.port, read<mad::PortInfo>(answer->data));
    case attribute::kPkeyTable: return on_pkeys(request, answer->data);
    default: return;
  }
}

// --- Nodes ---

void Discovery::on_own_node(const mad::NodeInfo& info) {
  const std::uint32_t node = subnet_.add(info);
  const std::uint32_t port = subnet_.port_of(node, info.local_port);
  if (port == kNone) return;
  subnet_.set_own_port(port);
  subnet_.node(node).hops = 0;
  subnet_.node(node).reached_by = kNone;
  subnet_.set_guid(port, info.port_guid);
  read_node(node, port);
}

bool Discovery::is_fresh(std::uint32_t node) const {
  if (node == kNone || !subnet_.node(node).is_there) return true;
  return !is_light_ && !has(is_met_, node);
}

// The answer of what is at the other end of the cable of a port.
void Discovery::meet(std::uint32_t from, const mad::NodeInfo& info) {
  if (subnet_.port(from).peer != kNone) return;  // its other end was the first to find this one
  const std::uint32_t known = subnet_.find(info.node_guid);
  const bool is_new = is_fresh(known);
  const std::uint32_t node = is_new ? subnet_.add(info) : known;
  const std::uint32_t arrival = subnet_.port_of(node, info.local_port);
  if (arrival == kNone || (arrival != kNone && subnet_.port(arrival).number == 0)) {
    return report(ProblemKind::Refused, from,
                  fmt::format("leads to a node that says the SMP came by its port {}, of {}",
                              info.local_port, info.num_ports));
  }
  if (arrival == from) {
    subnet_.port(from).is_silent = true;
    return report(ProblemKind::Loop, from, "has a cable that leads back to itself");
  }
  if (!is_free(from, arrival)) return;
  if (has_moved(from, arrival)) found_.has_moved = true;
  subnet_.connect(from, arrival);
  Node& to = subnet_.node(node);
  const std::uint32_t end = to.is_switch() ? to.first_port : arrival;
  subnet_.set_guid(end, info.port_guid);
  if (!is_new) return read_again(node, arrival);
  to.reached_by = from;
  to.hops = static_cast<std::uint8_t>(subnet_.node_of(subnet_.port(from)).hops + 1);
  if (to.hops > mad::kMostHops) {
    report(ProblemKind::TooFar, from, "leads to nodes more than 63 hops away");
    subnet_.disconnect(from);
    subnet_.port(from).is_silent = true;
    return;
  }
  read_node(node, arrival);
}

// The route to a switch, which it was found by, leads elsewhere when a cable has been moved and
// another manager has used its ports since.
void Discovery::verify(std::uint32_t port, const mad::NodeInfo& info) {
  const Node& node = subnet_.node_of(subnet_.port(port));
  if (node.reached_by == kNone) return;
  const std::uint32_t arrival = subnet_.port(node.reached_by).peer;
  const bool is_same = info.node_guid == node.info.node_guid && arrival != kNone &&
                       info.local_port == subnet_.port(arrival).number;
  if (is_same) return;
  found_.has_moved = true;
  recheck(node.reached_by, true);
}

bool Discovery::has_moved(std::uint32_t from, std::uint32_t arrival) const {
  const auto led_to = [&](std::uint32_t port) { return subnet_.port(port).last_peer; };
  return (led_to(from) != kNone && led_to(from) != arrival) ||
         (led_to(arrival) != kNone && led_to(arrival) != from);
}

// Another port may lead to the same one for a moment, when a cable has been moved; or for always,
// when two nodes have the same GUID. The first one keeps it, if it still leads there.
bool Discovery::is_free(std::uint32_t from, std::uint32_t arrival) {
  const std::uint32_t other = subnet_.port(arrival).peer;
  if (other == kNone) {
    conflicts_.erase(from);
    return true;
  }
  subnet_.port(from).is_silent = true;  // the next light one looks again
  const auto [known, is_new] = conflicts_.try_emplace(from, other);
  if (is_new || known->second != other) {
    known->second = other;
    found_.is_unclear = true;
    recheck(other, true);
    return false;
  }
  report(ProblemKind::DuplicateGuid, from,
         fmt::format("leads to {}, as {} does: two nodes have the same GUID, and this one is left "
                     "out",
                     subnet_.name_of(subnet_.port(arrival)), subnet_.name_of(subnet_.port(other))));
  return false;
}

void Discovery::read_node(std::uint32_t node, std::uint32_t arrival) {
  put(is_met_, node);
  subnet_.port(arrival).pkeys.clear();
  ask(attribute::kNodeDescription, arrival);
  const Node& of = subnet_.node(node);
  if (!of.is_switch()) return ask(attribute::kPortInfo, arrival, subnet_.port(arrival).number);
  ask(attribute::kSwitchInfo, of.first_port);
  ask_ports(node);
}

// Of a node that was met before this port has found it.
void Discovery::read_again(std::uint32_t node, std::uint32_t arrival) {
  const Node& of = subnet_.node(node);
  if (!of.is_switch()) {
    subnet_.port(arrival).pkeys.clear();
    if (!is_light_) ask(attribute::kNodeDescription, arrival);
    return ask(attribute::kPortInfo, arrival, subnet_.port(arrival).number);
  }
  if (!is_light_) return;  // its ports are read anyway
  ask(attribute::kPortInfo, arrival, subnet_.port(arrival).number);
  ask(attribute::kPortInfo, of.first_port);
  ask(attribute::kSwitchInfo, of.first_port);
}

// A switch that has lost its power in the meantime has lost its tables.
void Discovery::on_switch_info(std::uint32_t port, const mad::SwitchInfo& info) {
  Node& node = subnet_.node_of(subnet_.port(port));
  if (node.has_tables && info.linear_top != node.switch_info.linear_top) {
    node.has_tables = false;
    if (is_light_) ask_ports(subnet_.port(port).node);
  }
  node.switch_info = info;
  touched_.push_back(port);
  if (!is_light_ || (info.life_state_mapping & mad::kPortStateChange) == 0) return;
  if (may_clear_) {
    ask(attribute::kSwitchInfo, port, 0, kClear);
  } else {
    ask_ports(subnet_.port(port).node);
  }
}

// --- Ports ---

void Discovery::notice_writer(std::uint32_t port, const mad::PortInfo& info) {
  const Port& at = subnet_.port(port);
  const std::uint16_t own = subnet_.port(subnet_.own_port()).lid;
  const bool was_ours = at.is_known && own != 0 && at.info.master_sm_lid == own;
  if (was_ours && info.master_sm_lid != own && info.master_sm_lid != 0) {
    found_.has_other_writer = true;
  }
}

void Discovery::on_port_info(std::uint32_t port, const mad::PortInfo& info) {
  Port& at = subnet_.port(port);
  if (is_light_ && subnet_.is_end_port(at)) notice_writer(port, info);
  at.info = info;
  at.is_known = true;
  touched_.push_back(port);
  if (at.peer != kNone) touched_.push_back(at.peer);
  Node& node = subnet_.node_of(at);
  if (node.is_switch() && at.number == 0) {
    if (node.has_tables && at.lid != info.lid) node.has_tables = false;
    return;
  }
  if (!node.is_switch() && at.pkeys.empty()) {
    for (std::uint32_t i = 0; i * mad::kPkeysPerBlock < node.info.partition_cap; ++i) {
      ask(attribute::kPkeyTable, port, i);
    }
  }
  if (node.is_switch() || port == subnet_.own_port()) follow_link(port);
}

void Discovery::follow_link(std::uint32_t port) {
  Port& at = subnet_.port(port);
  if (!at.is_up()) {
    at.is_silent = false;
    if (at.peer != kNone) lose_link(port);
    return;
  }
  const bool has_trained = is_light_ && state_of(at.info) == verbs::PortState::Init;
  if ((has_trained || has(is_doubted_, port)) && !has(is_probed_, port)) subnet_.disconnect(port);
  if (at.peer == kNone) probe(port);
}

// The other end of it has lost it as well, and may not be able to tell.
void Discovery::lose_link(std::uint32_t port) {
  const std::uint32_t peer = subnet_.port(port).peer;
  const bool is_way = subnet_.leads_on(port) || subnet_.leads_on(peer);
  subnet_.disconnect(port);
  if (has(is_probed_, peer)) {
    report(ProblemKind::DuplicateGuid, peer,
           fmt::format("leads to {}, which says that it has no link: two nodes have the same "
                       "GUID, or the link has just changed",
                       subnet_.name_of(subnet_.port(port))));
  }
  if (!is_light_) return;
  if (is_way) {
    subnet_.find_routes();
    found_.is_rerouted = true;
  }
  const std::uint32_t far_end = subnet_.port(peer).node;
  const bool is_new = std::ranges::find(far_ends_, far_end, &FarEnd::node) == far_ends_.end();
  if (is_narrow_ && subnet_.node(far_end).is_switch() && is_new) far_ends_.push_back({far_end});
}

// One that has no power is joined no longer when the ports that led to it were read, one after the
// other.
void Discovery::look_at_far_ends() {
  if (!tasks_.empty() || open_ != 0) return;
  for (const FarEnd& end : std::exchange(far_ends_, {})) {
    const Node& node = subnet_.node(end.node);
    if (!subnet_.has_whole_route(end.node)) continue;
    if (end.read_port == node.reached_by) {
      ask(attribute::kSwitchInfo, node.first_port);
    } else {
      far_ends_.push_back({end.node, node.reached_by});
      recheck(node.reached_by, false);
    }
  }
}

void Discovery::probe(std::uint32_t port) {
  if (has(is_probed_, port)) return;
  found_.has_probed = true;
  put(is_probed_, port);
  ask(attribute::kNodeInfo, port, 0, kProbe);
}

void Discovery::on_pkeys(const Request& request, const mad::SmpData& data) {
  Port& port = subnet_.port(request.port);
  const auto block = read<std::array<Be16, mad::kPkeysPerBlock>>(data);
  const std::size_t most = subnet_.node_of(port).info.partition_cap;
  const std::size_t first = request.modifier * block.size();
  const std::size_t last = std::min(most, first + block.size());
  if (port.pkeys.size() < last) port.pkeys.resize(last);
  for (std::size_t i = first; i < last; ++i) port.pkeys[i] = block[i - first];
}

// --- What goes wrong ---

void Discovery::on_silence(const Request& request) {
  if (request.port == kNone) return;
  Port& port = subnet_.port(request.port);
  if (request.tag == kProbe) {
    port.is_silent = true;
    return report(ProblemKind::Silent, request.port,
                  "has a link, and what is behind it does not answer: it may be protected by the "
                  "M_Key of another manager");
  }
  if (request.attribute == attribute::kPkeyTable) {
    port.pkeys.clear();  // the whole table is read again
    lost_.push_back({request.port, port.number, attribute::kPortInfo, kRead});
  } else {
    lost_.push_back(
        {request.port, request.modifier, request.attribute, static_cast<Tag>(request.tag)});
  }
  report(ProblemKind::Silent, request.port, "does not answer any longer");
  const Node& node = subnet_.node_of(port);
  const std::uint32_t before = node.is_switch() ? node.reached_by : port.peer;
  if (before != kNone) recheck(before, true);
}

void Discovery::report(ProblemKind kind, std::uint32_t port, std::string text) {
  if (port == kNone) return;
  const Port& at = subnet_.port(port);
  problems_.add({kind, subnet_.node_of(at).guid(), at.number,
                 fmt::format("{} {}", subnet_.name_of(at), text)});
}

}  // namespace ib::sm
