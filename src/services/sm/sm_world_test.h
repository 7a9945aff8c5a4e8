// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A fabric with subnet managers at some of its ports, in virtual time: SMPs go by the fabric's
// subnet management interface, and get lost; agents send their traps.
#pragma once

#include "fabric/cables.h"
#include "fabric/management/smi.h"
#include "fabric/management/subnet_test.h"
#include "fabric/port_states.h"
#include "mad/header.h"
#include "sa/records/notice.h"
#include "services/smi/traps.h"
#include "sm/manager.h"

#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace ib::services::test {

struct Seat {
  std::uint32_t port = 0;  // in the graph of the fabric
  std::unique_ptr<sm::Manager> manager;
};

class World : private fabric::Smi::Receiver {
 public:
  explicit World(const std::string& preset, unsigned seed = 0)
      : fabric(fabric::test::make_subnet(preset, fabric::SubnetManagement::Programs)),
        random(seed) {
    smi.set_receiver(this);
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World() override = default;

  fabric::Graph& graph() { return fabric.graph(); }
  fabric::Port& port_of_node(std::size_t node) { return fabric.nodes()[node].hcas[0].ports[0]; }
  unsigned roll(std::size_t sides) { return static_cast<unsigned>(random() % sides); }

  sm::Manager& add_manager(std::size_t node, const sm::Settings& settings = {}) {
    fabric::Port& port = port_of_node(node);
    seats.push_back({graph().index_of(port), std::make_unique<sm::Manager>(
                                                 settings, static_cast<std::uint32_t>(random()))});
    fabric.set_capabilities(port, port.capability_mask | fabric::kIsSm);
    on_changes({{seats.back().port, fabric::change::kCapabilities, verbs::PortState::Nop}});
    return *seats.back().manager;
  }
  // It dies. Its port has no IsSM any longer, as when the file of its program is closed.
  void remove_manager(std::size_t seat) {
    fabric::Port& port = *graph().port(seats[seat].port);
    fabric.set_capabilities(port, port.capability_mask & ~fabric::kIsSm);
    seats.erase(seats.begin() + static_cast<std::ptrdiff_t>(seat));
  }

  // Changes of the fabric that come by themselves.
  void change(const std::function<void(fabric::PortChanges&)>& what) {
    fabric::PortChanges changes;
    what(changes);
    on_changes(changes);
  }
  void flap(fabric::Port& port) {
    change([&](auto& changes) { fabric::lose_link(fabric, port, changes); });
    change([&](auto& changes) { fabric::train(fabric, port, changes); });
  }

  // Until all has happened that happens before `end`; or `is_done`.
  void run_until(Instant end, const std::function<bool()>& is_done = {}) {
    for (;;) {
      while (work()) {
        if (is_done && is_done()) return;
      }
      if (is_done && is_done()) return;
      Instant next = end;
      for (Seat& seat : seats) {
        if (const auto due = seat.manager->deadline()) next = std::min(next, *due);
      }
      for (const auto& [tid, trap] : traps) next = std::min(next, trap.next);
      if (next >= end) {
        now = end;
        return;
      }
      now = std::max(now, next);
    }
  }
  void run_for(Duration time) { run_until(now + time); }
  // Returns whether the manager has set the subnet up in this time.
  bool settle(const sm::Manager& manager, Duration most = std::chrono::seconds(60)) {
    run_until(now + most, [&] { return manager.is_settled(); });
    return manager.is_settled();
  }

  fabric::Fabric fabric;
  std::mt19937 random;
  Instant now{};
  unsigned loss = 0;                          // of 1000 SMPs
  std::function<bool(const mad::Smp&)> drop;  // of those that managers send
  std::vector<Seat> seats;
  std::map<std::uint32_t, std::size_t> sent;  // requests by method and attribute
  std::size_t bad_keys = 0;

  std::size_t traps_under_way() const { return traps.size(); }
  std::size_t sent_of(std::uint8_t method, std::uint16_t attribute) const {
    const auto found = sent.find(std::uint32_t{method} << 16 | attribute);
    return found != sent.end() ? found->second : 0;
  }
  std::size_t sets() const {
    std::size_t count = 0;
    for (const auto& [what, number] : sent) {
      if (what >> 16 == mad::method::kSet) count += number;
    }
    return count;
  }

 private:
  struct Trap {
    std::uint32_t port = 0;
    mad::Mad mad{};
    Instant next{};
    int left = 10;
  };

  // One SMP of each manager, and the traps that are due. Returns whether something was done.
  bool work() {
    bool has_worked = send_traps();
    for (std::size_t i = 0; i < seats.size(); ++i) {
      const auto out = seats[i].manager->poll(now);
      if (!out) continue;
      has_worked = true;
      const auto& header = out->smp.header;
      if (!mad::is_response(header.method)) {
        ++sent[std::uint32_t{header.method} << 16 | header.attribute];
      }
      if (is_lost() || (drop && drop(out->smp))) continue;
      fabric::PacketLids lids;
      if (out->lid != mad::kPermissiveLid) lids = {graph().port(seats[i].port)->lid, out->lid};
      smi.send(seats[i].port, lids, std::bit_cast<mad::Mad>(out->smp));
    }
    return has_worked;
  }

  bool send_traps() {
    bool has_sent = false;
    std::vector<std::uint64_t> over;
    std::vector<Trap> due;
    for (auto& [tid, trap] : traps) {
      if (trap.next > now) continue;
      if (trap.left-- == 0 || graph().port(trap.port)->sm_lid == 0) {
        over.push_back(tid);
        continue;
      }
      trap.next = now + std::chrono::seconds(1);
      due.push_back(trap);
    }
    for (const std::uint64_t tid : over) traps.erase(tid);
    for (const Trap& trap : due) {
      has_sent = true;
      if (is_lost()) continue;
      const fabric::Port& from = *graph().port(trap.port);
      smi.send(trap.port, {from.lid, from.sm_lid}, trap.mad);
    }
    return has_sent;
  }

  bool is_lost() { return loss != 0 && roll(1000) < loss; }

  bool on_smp(std::uint32_t port, const fabric::PacketLids& lids, const mad::Mad& mad) override {
    const auto smp = std::bit_cast<mad::Smp>(mad);
    if (smp.header.method == mad::method::kTrapRepress) {
      return traps.erase(smp.header.transaction_id) != 0;
    }
    for (Seat& seat : seats) {
      if (seat.port != port) continue;
      return is_lost() || seat.manager->on_smp(smp, lids.source, now);
    }
    return false;
  }
  void on_bad_key(std::uint32_t, const fabric::PacketLids&, const mad::Mad&) override {
    ++bad_keys;
  }

  void raise(const fabric::Port& from, const sa::Notice& notice) {
    if (from.sm_lid == 0 || from.lid == 0) return;
    const std::uint64_t tid = ++last_tid;
    traps[tid] = {graph().index_of(from), trap_smp(notice, tid), now};
  }
  void on_changes(const fabric::PortChanges& changes) {
    for (const fabric::PortChange& change : changes) {
      const fabric::Port& port = *graph().port(change.port);
      const bool is_link =
          (change.what & fabric::change::kState) != 0 &&
          (change.before == verbs::PortState::Down || port.state == verbs::PortState::Down ||
           port.state == verbs::PortState::Init);
      const fabric::Port& sender = graph().end_port_of(port);
      if (is_link && graph().element_of(port).is_switch()) {
        raise(sender, link_state_notice(sender.lid));
      }
      if ((change.what & fabric::change::kCapabilities) != 0) {
        raise(port, sa::capability_notice(port.lid, port.gid(), port.capability_mask));
      }
    }
  }

  std::map<std::uint64_t, Trap> traps;
  std::uint64_t last_tid = 0;
  fabric::Smi smi{fabric,
                  {.now = [this] { return now; },
                   .on_changes = [this](const fabric::PortChanges& more) { on_changes(more); }}};
};

}  // namespace ib::services::test
