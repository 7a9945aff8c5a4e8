// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// HcaCm: the engine of an HCA: what goes out, what has come and for which consumer it is, and when
// the next thing is due.
#include "services/cm/cm_service.h"
#include "services/cm/gsi_forms.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

namespace ib::services {
namespace {

constexpr Duration kFullRetry = std::chrono::milliseconds(1);
// MADs that wait for room; the communication manager sends again what is lost.
constexpr std::size_t kMostUnsent = 16384;

cm::Config config_of(const fabric::Hca& hca, std::uint64_t seed, const cm::Limits& limits) {
  cm::Config config;
  config.ca_guid = hca.node_guid;
  config.seed = seed;
  config.limits = limits;
  return config;
}

CmConsumer* find(const std::unordered_map<std::uint32_t, CmConsumer*>& map, std::uint32_t id) {
  const auto at = map.find(id);
  return at == map.end() ? nullptr : at->second;
}

// The IDs in `map` of this consumer.
std::vector<std::uint32_t> ids_of(const std::unordered_map<std::uint32_t, CmConsumer*>& map,
                                  const CmConsumer& consumer) {
  std::vector<std::uint32_t> ids;
  for (const auto& [id, owner] : map) {
    if (owner == &consumer) ids.push_back(id);
  }
  return ids;
}

}  // namespace

HcaCm::HcaCm(CmService& service, const fabric::Hca& hca, std::uint64_t seed)
    : service_(service), hca_(hca), engine_(config_of(hca, seed, service.limits_)) {
  set_ports();
}

Instant HcaCm::now() const {
  return service_.executor_.now();
}

void HcaCm::set_ports() {
  for (const fabric::Port& port : hca_.ports) {
    cm::PortFacts facts;
    facts.number = static_cast<std::uint8_t>(port.number);
    facts.lid = port.is_ethernet() ? 0 : port.lid;
    for (const fabric::GidEntry& entry : port.gids) {
      if (!verbs::is_zero(entry.gid)) facts.gids.push_back(entry.gid);
    }
    engine_.set_port(facts);
  }
}

Result<cm::ListenerId> HcaCm::listen(CmConsumer& consumer, const cm::Listen& listen) {
  const Result<cm::ListenerId> made = engine_.listen(listen);
  if (made) listeners_[static_cast<std::uint32_t>(*made)] = &consumer;
  return made;
}

Result<cm::ConnectionId> HcaCm::connect(CmConsumer& consumer, const cm::ConnectRequest& request) {
  const Result<cm::ConnectionId> made = engine_.connect(request, now());
  if (made) connections_[static_cast<std::uint32_t>(*made)] = &consumer;
  pump();
  return made;
}

Result<cm::SidrId> HcaCm::resolve_sidr(CmConsumer& consumer, const cm::SidrRequest& request) {
  const Result<cm::SidrId> made = engine_.resolve_sidr(request, now());
  if (made) datagrams_[static_cast<std::uint32_t>(*made)] = &consumer;
  pump();
  return made;
}

void HcaCm::destroy(cm::ListenerId id) {
  listeners_.erase(static_cast<std::uint32_t>(id));
  engine_.destroy(id);
}

void HcaCm::destroy(cm::ConnectionId id) {
  connections_.erase(static_cast<std::uint32_t>(id));
  engine_.destroy(id, now());
  pump();
}

void HcaCm::destroy(cm::SidrId id) {
  datagrams_.erase(static_cast<std::uint32_t>(id));
  engine_.destroy(id, now());
  pump();
}

void HcaCm::forget(const CmConsumer& consumer) {
  for (const std::uint32_t id : ids_of(listeners_, consumer)) destroy(cm::ListenerId{id});
  for (const std::uint32_t id : ids_of(connections_, consumer)) destroy(cm::ConnectionId{id});
  for (const std::uint32_t id : ids_of(datagrams_, consumer)) destroy(cm::SidrId{id});
}

void HcaCm::receive(const mad::Mad& mad, const cm::MadAddress& from) {
  const cm::Counters before = engine_.counters();
  engine_.receive(mad, from, now());
  const std::optional<CmDrop> dropped = drop_of(before, engine_.counters());
  if (dropped) service_.drops_.count(service_.fabric_, hca_, *dropped, mad, from);
  pump();
}

// After each call of the engine. A consumer that calls here from on_event() is served by the loop
// that is running.
void HcaCm::pump() {
  if (std::exchange(is_pumping_, true)) return;
  while (auto event = engine_.poll_event()) deliver(*event);
  is_pumping_ = false;
  send_mads();
  auto due = engine_.deadline();
  if (!unsent_.empty()) {
    const Instant soon = now() + kFullRetry;
    due = due ? std::min(*due, soon) : soon;
  }
  wake_at(due);
}

// A timer that expires early, or in vain, does no harm, and setting it is a system call: it stands
// while nothing is due before it.
void HcaCm::wake_at(std::optional<Instant> due) {
  if (!due || (timer_ != nullptr && timer_due_ <= *due)) return;
  timer_due_ = *due;
  timer_ = service_.executor_.at(timer_due_, [this] {
    const std::unique_ptr<platform::Timer> running = std::move(timer_);
    engine_.on_time(now());
    pump();
  });
}

// A request is its listener's, which may have ended; the rest belongs to the owner of its ID.
void HcaCm::deliver(const cm::Event& event) {
  std::visit(
      [&](const auto& one) {
        using Kind = std::decay_t<decltype(one)>;
        constexpr bool kIsSidr = std::is_same_v<decltype(one.id), cm::SidrId>;
        auto& owners = kIsSidr ? datagrams_ : connections_;
        const auto id = static_cast<std::uint32_t>(one.id);
        CmConsumer* consumer = find(owners, id);
        if constexpr (std::is_same_v<Kind, cm::SidrRequested>) {
          consumer = find(listeners_, static_cast<std::uint32_t>(one.listener));
        } else if constexpr (std::is_same_v<Kind, cm::RequestReceived>) {
          if (one.listener) consumer = find(listeners_, static_cast<std::uint32_t>(*one.listener));
        } else {
          if (consumer != nullptr) consumer->on_event(*this, event);
          return;
        }
        if (consumer == nullptr) return destroy(one.id);
        owners[id] = consumer;
        consumer->on_event(*this, event);
      },
      event);
}

void HcaCm::send_mads() {
  while (auto mad = engine_.poll_mad()) {
    if (unsent_.size() < kMostUnsent) unsent_.push_back(*mad);
  }
  while (!unsent_.empty()) {
    if (send(unsent_.front()) == Status::LimitExceeded) return;
    unsent_.pop_front();  // what cannot be sent is lost, as on a link that is down
  }
}

Status HcaCm::send(const cm::OutgoingMad& mad) {
  if (mad.to.port == 0 || mad.to.port > hca_.ports.size()) return Status::InvalidParameter;
  const fabric::Port& port = hca_.ports[mad.to.port - 1u];
  const std::uint32_t index = service_.fabric_.graph().index_of(port);
  return service_.gsi_.send(service_.agent_, to_gsi(mad.to, port, index), mad.mad);
}

}  // namespace ib::services
