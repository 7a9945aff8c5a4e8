// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Second step of a sweep: one request after the other, in three stages, each of which ends when all
// its answers are there.
#include "sm/sweep/setup.h"

#include "sm/sweep/port_setup.h"

#include <fmt/format.h>

#include <algorithm>

namespace ib::sm {
namespace {

namespace attribute = mad::smp_attribute;

constexpr std::uint32_t kReregistered = 1;  // tag of a Set(PortInfo)

std::uint8_t life_time(const mad::SwitchInfo& info) {
  return info.life_state_mapping >> 3;
}

}  // namespace

Setup::Setup(Subnet& subnet, const Settings& settings, Problems& problems)
    : subnet_(subnet), settings_(settings), problems_(problems), tables_(subnet) {
  if (settings.partitions) pkeys_.emplace(*settings.partitions);
}

void Setup::forget() {
  is_registered_.clear();
  enforced_.clear();
  tables_.forget_all();
}

void Setup::begin(const Plan& plan) {
  plan_ = plan;
  run_ = {};
  run_.stage = Stage::Addresses;
  failed_.clear();
  doubtful_.clear();
  is_registered_.resize(subnet_.ports().size());
  if (!plan_.tables) return;
  tables_.plan({.graph = plan_.graph,
                .engine = plan_.engine,
                .node_of = plan_.node_of,
                .groups = plan_.groups,
                .is_new_graph = plan_.linear_anew,
                .has_looked = plan_.has_looked});
  if (plan_.stale != nullptr) tables_.renew(*plan_.stale);
  plan_.stale = nullptr;
}

std::size_t Setup::places() const {
  if (run_.stage == Stage::Tables) return plan_.tables ? plan_.graph->size() : 0;
  return plan_.ports != nullptr ? plan_.ports->size() : subnet_.ports().size();
}

std::optional<Request> Setup::next() {
  while (run_.ready.empty()) {
    if (run_.stage == Stage::Done) return std::nullopt;
    if (run_.next < places()) {
      visit(run_.next++);
      continue;
    }
    if (run_.open != 0) return std::nullopt;  // the next stage builds on this one
    run_.stage = static_cast<Stage>(static_cast<int>(run_.stage) + 1);
    run_.next = 0;
  }
  Request request = run_.ready.front();
  run_.ready.pop_front();
  ++run_.open;
  return request;
}

void Setup::visit(std::uint32_t place) {
  if (run_.stage == Stage::Tables) return tables_.compare(place, plan_.linear_anew, run_.ready);
  const std::uint32_t index = plan_.ports != nullptr ? (*plan_.ports)[place] : place;
  if (run_.stage == Stage::Addresses) return visit_port(index);
  const Port& port = subnet_.port(index);
  if (port.peer == kNone || !subnet_.node_of(port).is_there || !port.is_known) return;
  if (const auto info = active_set(port)) {
    set(index, attribute::kPortInfo, port.number, as_data(*info));
  }
}

void Setup::set(std::uint32_t port, std::uint16_t attribute, std::uint32_t modifier,
                const mad::SmpData& data) {
  Request request;
  request.method = mad::method::kSet;
  request.attribute = attribute;
  request.modifier = modifier;
  request.port = port;
  request.data = data;
  run_.ready.push_back(request);
}

// --- Addresses ---

void Setup::visit_port(std::uint32_t index) {
  const Port& port = subnet_.port(index);
  if (!subnet_.node_of(port).is_there || !port.is_known) return;
  if (!subnet_.is_end_port(port)) {
    if (port.peer == kNone || !port.is_up()) return;
    std::optional<bool> enforces;
    if (pkeys_) {
      enforces = pkeys_->separates() && !subnet_.node_of(subnet_.port(port.peer)).is_switch();
    }
    if (enforces == true) visit_enforcement(index);
    if (const auto info = link_set(subnet_, port, enforces)) {
      set(index, attribute::kPortInfo, port.number, as_data(*info));
    }
    return;
  }
  if (port.lid == 0) return;
  const bool reregister = !is_registered_[index];
  if (const auto info = end_port_set(subnet_, settings_, port, reregister)) {
    set(index, attribute::kPortInfo, port.number, as_data(*info));
    run_.ready.back().tag = kReregistered;
  }
  if (subnet_.node_of(port).is_switch()) {
    visit_switch(index);
  } else if (pkeys_) {
    visit_pkeys(index);
  }
}

// The LinearFDBTop of the switch, and its PortStateChange, which may tell of changes that came
// after its ports were read.
void Setup::visit_switch(std::uint32_t index) {
  const mad::SwitchInfo& now = subnet_.node_of(subnet_.port(index)).switch_info;
  if (now.linear_cap == 0) return;  // it could not be read so far
  mad::SwitchInfo info = now;
  const std::uint16_t top = std::min<std::uint16_t>(
      plan_.graph->top_lid, static_cast<std::uint16_t>(std::max<int>(now.linear_cap, 1) - 1));
  if (top < plan_.graph->top_lid) {
    problems_.add({ProblemKind::Routing, subnet_.node_of(subnet_.port(index)).guid(), 0,
                   fmt::format("the table of {} has room for {} LIDs, and the highest is {}",
                               subnet_.name_of(subnet_.port(index)), std::uint16_t{now.linear_cap},
                               plan_.graph->top_lid)});
  }
  info.linear_top = top;
  info.life_state_mapping =
      static_cast<std::uint8_t>(settings_.packet_life_time << 3 | (now.life_state_mapping & 7));
  const bool has_changed = (now.life_state_mapping & mad::kPortStateChange) != 0;
  if (top == now.linear_top && life_time(info) == life_time(now) && !has_changed) return;
  set(index, attribute::kSwitchInfo, 0, as_data(info));
  if (!has_changed) return;
  const Node& node = subnet_.node_of(subnet_.port(index));
  for (std::uint32_t i = node.first_port + 1; i < node.first_port + node.port_count; ++i) {
    // The answer of a Set, which ports in state Init get, has the state as it is then.
    if (state_of(subnet_.port(i).info) != verbs::PortState::Init) doubtful_.push_back(i);
  }
}

void Setup::set_pkey_blocks(std::uint32_t port, std::uint32_t modifier_base,
                            const std::vector<std::uint16_t>& before,
                            const std::vector<std::uint16_t>& after) {
  constexpr std::size_t kBlock = mad::kPkeysPerBlock;
  for (std::size_t first = 0; first < after.size(); first += kBlock) {
    std::array<Be16, kBlock> block{};
    bool is_same = before.size() == after.size();
    for (std::size_t i = first; i < std::min(first + kBlock, after.size()); ++i) {
      block[i - first] = after[i];
      is_same = is_same && before[i] == after[i];
    }
    if (is_same) continue;
    set(port, attribute::kPkeyTable, modifier_base | static_cast<std::uint32_t>(first / kBlock),
        as_data(block));
  }
}

void Setup::visit_pkeys(std::uint32_t index) {
  const Port& port = subnet_.port(index);
  const auto table = pkeys_->table_of(subnet_, port, problems_);
  set_pkey_blocks(index, 0, port.pkeys, table);
}

// A port of a switch passes on only P_Keys of the channel adapter at its other end.
void Setup::visit_enforcement(std::uint32_t index) {
  const Port& port = subnet_.port(index);
  const std::size_t most = subnet_.node_of(port).switch_info.enforcement_cap;
  std::vector<std::uint16_t> keys = pkeys_->of(subnet_, subnet_.port(port.peer));
  if (keys.size() > most) {
    problems_.add({ProblemKind::Partitions, subnet_.node_of(port).guid(), port.number,
                   fmt::format("{} enforces {} partitions at most, not {}", subnet_.name_of(port),
                               most, keys.size())});
  }
  keys.resize(most);
  std::vector<std::uint16_t>& written = enforced_[index];
  set_pkey_blocks(index, std::uint32_t{port.number} << 16, written, keys);
  written = std::move(keys);
}

// --- Answers ---

void Setup::on_answer(const Request& request, const Answer* answer) {
  if (run_.open > 0) --run_.open;
  const bool is_table = request.attribute == attribute::kLinearForwarding ||
                        request.attribute == attribute::kMulticastForwarding ||
                        request.attribute == attribute::kSlToVlTable;
  const bool has_taken_table = is_table && tables_.on_answer(request, answer);
  if (answer == nullptr || answer->status != mad::mad_status::kOk ||
      (is_table && !has_taken_table)) {
    return on_failure(request, answer);
  }
  take_answer(request, answer->data);
}

void Setup::take_answer(const Request& request, const mad::SmpData& data) {
  Port& port = subnet_.port(request.port);
  switch (request.attribute) {
    case attribute::kPortInfo:
      port.info = read<mad::PortInfo>(data);
      if (request.tag == kReregistered) is_registered_[request.port] = true;
      // The link has gone while its port was set up.
      if (port.peer != kNone && !port.is_up() && !subnet_.is_end_port(port)) {
        doubtful_.push_back(request.port);
      }
      return;
    case attribute::kSwitchInfo:
      subnet_.node_of(port).switch_info = read<mad::SwitchInfo>(data);
      return;
    case attribute::kPkeyTable: {
      if (subnet_.node_of(port).is_switch()) return;
      const auto block = read<std::array<Be16, mad::kPkeysPerBlock>>(data);
      const std::size_t first = std::size_t{request.modifier} * block.size();
      for (std::size_t i = 0; i < block.size() && first + i < port.pkeys.size(); ++i) {
        port.pkeys[first + i] = block[i];
      }
      return;
    }
    default: return;
  }
}

void Setup::on_failure(const Request& request, const Answer* answer) {
  const Port& port = subnet_.port(request.port);
  failed_.push_back(request.port);
  if (request.attribute == attribute::kPkeyTable) enforced_.erase(request.port);
  const std::string name = subnet_.name_of(port);
  const std::uint64_t guid = subnet_.node_of(port).guid();
  if (answer == nullptr && has_hidden_key(subnet_.keeper_of(port))) {
    problems_.add({ProblemKind::ForeignKey, guid, port.number,
                   fmt::format("{} is protected by the M_Key of another manager", name)});
  } else if (answer == nullptr) {
    problems_.add(
        {ProblemKind::Unanswered, guid, port.number,
         fmt::format("{} does not answer Set of attribute {:#06x}", name, request.attribute)});
  } else {
    problems_.add({ProblemKind::Refused, guid, port.number,
                   fmt::format("{} does not take Set of attribute {:#06x} with modifier {:#x}: "
                               "status {:#06x}",
                               name, request.attribute, request.modifier, answer->status)});
  }
}

}  // namespace ib::sm
