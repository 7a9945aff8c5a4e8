// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The sweeps of a manager: what comes after what. manager_smps.cpp has what it answers.
#include "sm/manager.h"

#include "sm/sweep/port_setup.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ib::sm {

namespace attribute = mad::smp_attribute;

Manager::Manager(const Settings& settings, std::uint32_t random)
    : settings_(settings),
      window_(settings.window, random),
      discovery_(subnet_, problems_),
      setup_(subnet_, settings_, problems_),
      election_(settings.priority, settings.sm_key) {}

void Manager::request_sweep(bool is_full) {
  (is_full ? wanted_.full : wanted_.light) = true;
}

void Manager::set_priority(std::uint8_t priority) {
  election_.set_priority(priority);
  wanted_.light = true;
}

void Manager::set_groups(std::vector<MulticastGroup> groups) {
  groups_ = std::move(groups);
  wanted_.tables = true;
}

bool Manager::is_settled() const {
  return phase_ == Phase::Idle && state() == SmState::Master && !wanted_.is_any() &&
         outbox_.empty() && generation_ != 0;
}

std::uint8_t Manager::service_level(std::uint32_t from, std::uint32_t to) const {
  const auto switch_of = [&](std::uint32_t index) {
    const Port& port = subnet_.port(index);
    const std::uint32_t node = subnet_.node_of(port).is_switch() || port.peer == kNone
                                   ? port.node
                                   : subnet_.port(port.peer).node;
    return std::ranges::lower_bound(node_of_, node) - node_of_.begin();
  };
  const auto a = static_cast<std::size_t>(switch_of(from));
  const auto b = static_cast<std::size_t>(switch_of(to));
  if (!engine_ || a >= node_of_.size() || b >= node_of_.size()) return 0;
  return engine_->service_level(static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b));
}

// --- Requests and their answers ---

std::optional<Outgoing> Manager::poll(Instant now) {
  for (;;) {
    if (!outbox_.empty()) {
      Outgoing out = outbox_.front();
      outbox_.pop_front();
      return out;
    }
    if (const auto due = window_.poll(now)) {
      if (due->again != nullptr) return Outgoing{*due->again};
      dispatch(*due->lost, nullptr, now);
      continue;
    }
    if (!window_.is_full()) {
      if (const auto request = next_request(now)) {
        if (auto out = send(*request, now)) return out;
        continue;
      }
    }
    if (!advance(now)) return std::nullopt;
  }
}

std::optional<Request> Manager::next_request(Instant /*now*/) {
  switch (phase_) {
    case Phase::Idle: return std::nullopt;
    case Phase::Discovering: return discovery_.next();
    case Phase::SettingUp: return setup_.next();
    case Phase::Asking: {
      if (to_ask_.empty()) return std::nullopt;
      Request request;
      request.attribute = attribute::kSmInfo;
      request.port = to_ask_.front();
      to_ask_.pop_front();
      return request;
    }
  }
  return std::nullopt;
}

// Nothing if no route is known.
std::optional<mad::Smp> Manager::smp_for(const Request& request) const {
  Route route;
  const bool has_route =
      request.port == kNone || (request.is_beyond ? subnet_.route_over(request.port, route)
                                                  : subnet_.route_to(request.port, route));
  if (!has_route) return std::nullopt;
  const std::uint64_t key =
      request.is_beyond ? settings_.m_key : key_for(subnet_, settings_, request.port);
  return directed_smp(request.method, request.attribute, request.modifier, key, route,
                      request.data);
}

// Without a route nobody can answer.
std::optional<Outgoing> Manager::send(const Request& request, Instant now) {
  if (const auto smp = smp_for(request)) return Outgoing{window_.open(request, *smp, now)};
  dispatch(request, nullptr, now);
  return std::nullopt;
}

void Manager::dispatch(const Request& request, const Answer* answer, Instant now) {
  if (request.attribute == attribute::kSmInfo) return on_sm_info(request, answer, now);
  if (phase_ == Phase::Discovering) {
    discovery_.on_answer(request, answer);
    if (!discovery_.take_rerouted()) return;
    return window_.redirect([&](const Request& each) { return smp_for(each); }, now);
  }
  if (phase_ == Phase::SettingUp) setup_.on_answer(request, answer);
}

std::optional<Instant> Manager::deadline() {
  const auto due = window_.deadline();
  const bool waits = phase_ == Phase::Idle && state() != SmState::NotActive;
  if (!waits) return due;
  return due ? std::min(*due, clock_.next) : clock_.next;
}

// --- Phases ---

// Returns whether there may be something to send now.
bool Manager::advance(Instant now) {
  switch (phase_) {
    case Phase::Idle: return begin_due(now);
    case Phase::Discovering:
      if (!discovery_.is_done()) return false;
      on_discovered(now);
      return true;
    case Phase::Asking:
      if (!to_ask_.empty() || !window_.is_empty()) return false;
      on_asked(now);
      return true;
    case Phase::SettingUp:
      if (!setup_.is_done()) return false;
      on_set_up(now);
      return true;
  }
  return false;
}

bool Manager::begin_due(Instant now) {
  if (!window_.is_empty() || state() == SmState::NotActive) return false;
  const bool is_due = now >= clock_.next;
  if (state() == SmState::Standby) {
    if (!is_due || clock_.is_polling) return false;
    clock_.is_polling = true;
    clock_.next = now + settings_.poll_interval;
    to_ask_.assign(1, election_.watched());
    phase_ = Phase::Asking;
    return true;
  }
  if (!is_due && !wanted_.is_any()) return false;
  const bool looks_everywhere = is_due || wanted_.full || wanted_.light || generation_ == 0;
  is_partial_ = !looks_everywhere && state() == SmState::Master;
  if (!is_partial_) {
    begin_sweep(is_due);
  } else if (!wanted_.switches.empty()) {
    begin_narrow();
  } else {
    begin_partial_setup();  // only groups are others
  }
  return true;
}

void Manager::begin_narrow() {
  election_.count_activity();
  discovery_.begin_narrow();
  for (const std::uint32_t node : std::exchange(wanted_.switches, {})) discovery_.look_at(node);
  phase_ = Phase::Discovering;
}

void Manager::begin_sweep(bool is_timed) {
  election_.count_activity();
  problems_.begin_round();
  const bool is_master = state() == SmState::Master;
  if (wanted_.full || !is_master || subnet_.own_port() == kNone) {
    is_anew_ = std::exchange(wanted_.anew, false);
    if (is_anew_) forget_writes();
    discovery_.begin_full();
    wanted_.full = false;
  } else {
    discovery_.begin_light(is_master);
    if (is_timed) discovery_.patrol();
    for (const std::uint32_t port : std::exchange(wanted_.ports, {})) {
      discovery_.recheck(port, false);
    }
    for (const std::uint32_t port : std::exchange(wanted_.doubtful, {})) {
      discovery_.recheck(port, true);
    }
  }
  wanted_.light = false;
  wanted_.switches.clear();
  phase_ = Phase::Discovering;
}

void Manager::forget_writes() {
  setup_.forget();
  wanted_.tables_then = true;
  for (std::uint32_t i = 0; i < subnet_.nodes().size(); ++i) subnet_.node(i).has_tables = false;
}

// After a cable was moved all is looked at once more, and written again: some of it may have come
// from, or gone to, another node.
void Manager::on_discovered(Instant now) {
  gone_ = subnet_.update_routes();
  const std::uint32_t own = subnet_.own_port();
  if (own == kNone || !subnet_.port(own).is_known) return rest(now, settings_.sweep_interval);
  election_.set_guid(subnet_.port(own).guid);
  if (discovery_.is_unclear()) wanted_.light = true;
  if (discovery_.has_moved()) return begin_anew(now);
  heard_.clear();
  to_ask_.clear();
  if (discovery_.is_narrow()) {
    std::ranges::copy_if(rivals_, std::back_inserter(heard_), [&](const Rival& rival) {
      return subnet_.is_served(subnet_.port(rival.port));
    });
  } else {
    const auto others = discovery_.managers();
    to_ask_.assign(others.begin(), others.end());
  }
  phase_ = Phase::Asking;
}

void Manager::begin_anew(Instant now) {
  wanted_.full = wanted_.anew = true;
  rest(now, Duration::zero());
}

// Whether another manager may have written what counts here: the own port tells, or one that was
// not a standby has gone or changed its state.
bool Manager::has_other_writer(const std::vector<Rival>& before) const {
  const Port& own = subnet_.port(subnet_.own_port());
  if (discovery_.has_other_writer()) return true;
  if (own.lid != 0 && (own.info.lid != own.lid || own.info.master_sm_lid != own.lid)) return true;
  return std::ranges::any_of(before, [&](const Rival& rival) {
    const SmState state = rival.info.state();
    if (state == SmState::Standby || state == SmState::NotActive) return false;
    const auto now = std::ranges::find(rivals_, rival.port, &Rival::port);
    return now == rivals_.end() || now->info.state() != state;
  });
}

void Manager::on_asked(Instant now) {
  if (clock_.is_polling) {  // of a standby
    clock_.is_polling = false;
    phase_ = Phase::Idle;
    return;
  }
  const std::vector<Rival> before = std::exchange(rivals_, std::exchange(heard_, {}));
  const bool was_master = state() == SmState::Master;
  const Decision decision = election_.on_discovered(rivals_);
  if (!was_master && state() == SmState::Master) forget_writes();
  const bool sets_up_again = was_master && decision.step == Step::SetUp && generation_ != 0;
  if (sets_up_again && !is_anew_ && has_other_writer(before)) return begin_anew(now);
  is_anew_ = false;
  follow(decision, now);
}

void Manager::follow(const Decision& decision, Instant now) {
  switch (decision.step) {
    case Step::SetUp:
      if (decision.lower_master != kNone)
        control(decision.lower_master, sm_control::kDiscover, now);
      return begin_setup();
    case Step::Wait: clock_.missed = 0; return rest(now, settings_.poll_interval);
    case Step::Sweep: wanted_.full = true; return rest(now, Duration::zero());
    case Step::HandOver:
      rest(now, settings_.poll_interval);
      wanted_.full = wanted_.light = false;
      return control(decision.port, sm_control::kHandover, now);
  }
}

// A Set(SMInfo) for another manager.
void Manager::control(std::uint32_t port, std::uint32_t modifier, Instant now) {
  Request request;
  request.method = mad::method::kSet;
  request.attribute = attribute::kSmInfo;
  request.modifier = modifier;
  request.port = port;
  request.data = own_info();
  if (auto out = send(request, now)) outbox_.push_back(*out);
}

void Manager::rest(Instant now, Duration pause) {
  phase_ = Phase::Idle;
  clock_.next = now + pause;
}

// Losses, and LIDs that come and go, are adapted to; for all else tables are filled again. Returns
// whether tables may have to change.
bool Manager::route() {
  std::vector<std::uint32_t> node_of = node_of_;
  Graph graph = make_graph(subnet_, true, node_of);
  graph.top_lid = std::max(graph.top_lid, graph_.top_lid);
  std::optional<GraphChange> change;
  if (node_of == node_of_) change = change_between(graph_, graph);
  graph_ = std::move(graph);
  if (change && !change->is_any && has_all_tables_) {
    return wanted_.tables_then || std::ranges::any_of(node_of_, [&](std::uint32_t i) {
             return subnet_.node(i).is_there && !subnet_.node(i).has_tables;
           });
  }
  adapt(change);
  return true;
}

bool Manager::route_touched() {
  std::vector<std::uint32_t> nodes = std::move(gone_);
  for (const std::uint32_t port : touched_) nodes.push_back(subnet_.port(port).node);
  std::ranges::sort(nodes);
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  const auto change = update_graph(subnet_, node_of_, nodes, graph_);
  const bool is_any = !change || change->is_any || !has_all_tables_;
  if (is_any) adapt(change);
  return is_any;
}

void Manager::adapt(const std::optional<GraphChange>& change) {
  stale_.clear();
  if (change && has_all_tables_ && engine_->adapt(*change, stale_)) return;
  stale_.clear();
  graph_ = make_graph(subnet_, false, node_of_);
  routing_reason_.clear();
  engine_ = choose_engine(settings_.routing, graph_, routing_reason_);
  has_all_tables_ = false;
}

// After a narrow sweep, which has found no port that may need a LID; nor do other groups make one.
void Manager::begin_partial_setup() {
  const bool has_looked = phase_ != Phase::Idle;
  touched_ = has_looked ? discovery_.touched() : std::vector<std::uint32_t>{};
  begin_stages(has_looked && route_touched(), &touched_);
}

void Manager::begin_setup() {
  if (is_partial_ && discovery_.is_narrow()) return begin_partial_setup();
  lids_.assign(subnet_, settings_.lmc, problems_);
  begin_stages(route(), nullptr);
}

void Manager::begin_stages(bool linear, const std::vector<std::uint32_t>* ports) {
  if (!routing_reason_.empty()) problems_.add({ProblemKind::Routing, 0, 0, routing_reason_});
  setup_.begin({.graph = &graph_,
                .engine = engine_.get(),
                .node_of = &node_of_,
                .groups = &groups_,
                .ports = ports,
                .stale = &stale_,
                .tables = linear || wanted_.tables,
                .linear_anew = !has_all_tables_,
                .has_looked = phase_ != Phase::Idle});
  stale_.clear();
  wanted_.tables = wanted_.tables_then = false;
  phase_ = Phase::SettingUp;
}

// Requests that failed are tried again, later and later; ports that may have changed in the
// meantime are read now.
void Manager::on_set_up(Instant now) {
  ++generation_;
  has_all_tables_ = true;
  if (!setup_.doubtful().empty()) wanted_.light = true;
  wanted_.ports.insert(wanted_.ports.end(), setup_.doubtful().begin(), setup_.doubtful().end());
  for (const std::uint32_t port : setup_.failed()) {
    const Port& at = subnet_.port(port);
    const Node& node = subnet_.node_of(at);
    const std::uint32_t before = node.is_switch() ? node.reached_by : at.peer;
    wanted_.ports.push_back(port);
    if (before != kNone) wanted_.doubtful.push_back(before);
    wanted_.tables_then = true;
  }
  constexpr Duration kFirstPause = std::chrono::seconds(1);
  if (setup_.failed().empty() && !discovery_.has_lost()) {
    clock_.pause = Duration::zero();
  } else {
    clock_.pause = std::min(settings_.sweep_interval, std::max(kFirstPause, 2 * clock_.pause));
  }
  const Instant before = clock_.next;
  rest(now, clock_.pause != Duration::zero() ? clock_.pause : settings_.sweep_interval);
  if (is_partial_) clock_.next = std::min(clock_.next, before);
}

}  // namespace ib::sm
