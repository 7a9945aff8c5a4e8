// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From an open HCA to its interfaces: what its ports are is read from device memory at each event,
// and told to the interfaces, which are made for P_Keys that have none yet.
#include "ipoib/adapter.h"

#include "hca/layout/arena.h"
#include "sa/records/selector.h"
#include "sa/server/partitions.h"
#include "verbs/gid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace ib::ipoib::driver {

namespace {}  // namespace

Result<std::unique_ptr<Adapter>> Adapter::open(const Place& place, std::uint64_t guid,
                                               std::uint32_t first_port,
                                               const DriverOptions& options, std::string& reason) {
  auto hca = place.process.open_hca(guid);
  if (!hca) {
    reason = user::last_reason();
    return hca.error();
  }
  std::unique_ptr<Adapter> made(new Adapter(place, *std::move(hca), first_port, options));
  made->name_ = made->hca_->info().ca.name.data();
  return made;
}

// From device memory: a request would wait while the HCA sleeps.
Adapter::Port Adapter::read(std::uint32_t number) {
  Port port;
  const std::uint32_t index = hca_->info().first_port + number - 1;
  const hca::PortEntry* const entry = place_.process.arena().port(index);
  if (entry == nullptr ||
      entry->link_layer.load(std::memory_order_relaxed) != verbs::LinkLayer::InfiniBand) {
    return port;
  }
  port.is_infiniband = true;
  const verbs::PortState state = entry->state.load(std::memory_order_acquire);
  port.is_asleep = state == hca::kPortAsleep;
  port.state.active = state == verbs::PortState::Active;
  port.state.lid = Lid{std::uint16_t(entry->lid)};
  port.state.mtu = static_cast<MtuCode>(entry->mtu.load(std::memory_order_relaxed));
  port.state.gid.bytes = verbs::Gid(entry->gids[0]);
  for (const auto& pkey : entry->pkeys) {
    port.pkeys.push_back(pkey.load(std::memory_order_relaxed));
  }
  if (!port.state.active) return port;
  if (const auto attributes = hca_->query_port(number)) {
    port.state.rate = sa::rate_of((*attributes).active_width, (*attributes).active_speed);
  }
  return port;
}

void Adapter::refresh_all(Instant now) {
  for (std::uint32_t number = 1; number <= ports(); ++number) refresh(number, now);
}

void Adapter::refresh(std::uint32_t number, Instant now) {
  const Port port = read(number);
  if (!port.is_infiniband) return;
  add_missing(number, port);
  tell(number, port, now);
}

void Adapter::add_missing(std::uint32_t number, const Port& port) {
  std::vector<std::uint16_t> seen;
  for (const std::uint16_t pkey : port.pkeys) {
    const bool known = std::any_of(seen.begin(), seen.end(), [pkey](auto other) {
      return sa::is_same_partition(pkey, other);
    });
    if (!sa::is_valid_pkey(pkey) || known) continue;
    const bool is_child = !seen.empty() || pkey != port.pkeys.front();
    seen.push_back(pkey);
    const bool there =
        std::any_of(interfaces_.begin(), interfaces_.end(), [&](const auto& interface) {
          return interface->station().port == number &&
                 sa::is_same_partition(static_cast<std::uint16_t>(interface->station().pkey), pkey);
        });
    if (!there) add(number, port, Pkey{pkey}, is_child);
  }
}

void Adapter::add(std::uint32_t number, const Port& port, Pkey pkey, bool is_child) {
  Station station{place_.process, *hca_, place_.services, place_.completions, number, pkey};
  InterfaceOptions options;
  options.number = first_port_ + number - 1;
  options.is_child = is_child;
  options.connected_mode = options_.connected_mode;
  options.port_guid = verbs::interface_of(port.state.gid.bytes);
  options.capture = options_.capture;
  std::string reason;
  auto made = PortInterface::create(place_.network, station, options, reason);
  if (made) {
    interfaces_.push_back(*std::move(made));
    return;
  }
  place_.network.log(fmt::format("no interface for {} port {}, P_Key {:#06x}: {}", name_, number,
                                 static_cast<std::uint16_t>(pkey), reason));
}

void Adapter::tell(std::uint32_t number, const Port& port, Instant now) {
  for (const auto& interface : interfaces_) {
    if (interface->station().port != number) continue;
    PortReading reading;
    reading.state = port.state;
    reading.is_asleep = port.is_asleep;
    const auto found = std::find(port.pkeys.begin(), port.pkeys.end(),
                                 static_cast<std::uint16_t>(interface->station().pkey));
    reading.state.has_pkey = found != port.pkeys.end();
    if (reading.state.has_pkey) {
      reading.pkey_index = static_cast<std::uint16_t>(found - port.pkeys.begin());
    }
    interface->begin_turn(now);
    interface->on_port(reading);
  }
}

void Adapter::tell_event(std::uint32_t number, PortEvent event) {
  for (const auto& interface : interfaces_) {
    if (interface->station().port == number) interface->on_port_event(event);
  }
}

void Adapter::on_event(const user::control::EventOut& event, Instant now) {
  using verbs::EventType;
  switch (event.type) {
    case EventType::PortActive:
    case EventType::PortErr:
    case EventType::LidChange:
    case EventType::PkeyChange:
    case EventType::GidChange: return refresh(event.index, now);
    case EventType::SmChange:
      refresh(event.index, now);
      return tell_event(event.index, PortEvent::SubnetManagerChanged);
    case EventType::ClientReregister:
      refresh(event.index, now);
      return tell_event(event.index, PortEvent::ClientReregister);
    case EventType::EventsLost: return refresh_all(now);
    // Queue pairs in error are found by their completions, or by a look at their state.
    case EventType::QpFatal:
    case EventType::QpReqErr:
    case EventType::QpAccessErr:
      for (const auto& interface : interfaces_) interface->check_queue_pairs();
      return;
    case EventType::CqErr:
    case EventType::CommEst:
    case EventType::SqDrained:
    case EventType::PathMig:
    case EventType::PathMigErr:
    case EventType::DeviceFatal:
    case EventType::SrqErr:
    case EventType::SrqLimitReached:
    case EventType::QpLastWqeReached:
    case EventType::Completion:
    case EventType::CaAdded:
    case EventType::CaRemoved:
    case EventType::Attention: return;
  }
}

}  // namespace ib::ipoib::driver
