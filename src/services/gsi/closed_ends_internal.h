// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// GsiClosedEnds: the ends of MADs where nobody has queue pair 1: switches, and HCAs whose node
// nobody has opened. The agents of the element answer there; no node is opened for that.
#pragma once

#include "al/system.h"
#include "fabric/management/gmp_agents.h"
#include "fabric/model.h"
#include "mad/header.h"
#include "services/gsi/gsi.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

namespace ib::services {

class GsiClosedEnds {
 public:
  // An answer, from the executor, as a MAD that has come to the queue pair of the port.
  using OnMad =
      std::function<void(std::uint32_t port, const al::MadAddress& from, const mad::Mad& mad)>;

  // Without agents there are no such ends: what goes there is lost.
  GsiClosedEnds(const al::System& system, const fabric::Fabric& fabric, fabric::GmpAgents* agents,
                OnMad on_mad)
      : system_(system), fabric_(fabric), agents_(agents), on_mad_(std::move(on_mad)) {}

  // Returns false if the end has a queue pair 1, or nobody has the address.
  bool take(const GsiAddress& to, const mad::Mad& mad);

 private:
  struct Arrival {
    std::uint32_t port = 0;
    al::MadAddress from;
    mad::Mad mad{};
  };

  const fabric::Port* find_end(const fabric::Port& from, const al::MadAddress& to) const;
  bool is_closed(const fabric::Port& end) const;
  void arrive();

  const al::System& system_;
  const fabric::Fabric& fabric_;
  fabric::GmpAgents* agents_;
  OnMad on_mad_;
  std::deque<Arrival> arrivals_;
  std::unique_ptr<platform::Timer> timer_;
};

}  // namespace ib::services
