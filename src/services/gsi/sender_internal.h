// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// GsiSender: sends MADs from the ports that are open, and counts them.
#pragma once

#include "services/gsi/closed_ends_internal.h"
#include "services/gsi/gsi.h"
#include "services/gsi/nodes_internal.h"

#include <functional>

namespace ib::services {

class GsiSender {
 public:
  using OnSend = decltype(Gsi::Options::on_send);

  GsiSender(const GsiNodes& nodes, GsiClosedEnds& closed_ends, OnSend on_send,
            GsiCounters& counters)
      : nodes_(nodes),
        closed_ends_(closed_ends),
        on_send_(std::move(on_send)),
        counters_(counters) {}

  // DeviceRemoved also: the HCA of the port is not open. Else as PortQueue::send().
  Status send(const GsiAddress& to, const mad::Mad& mad);
  // The same for a MAD that may be lost: it is counted.
  void transmit(const GsiAddress& to, const mad::Mad& mad);
  void count_failure() { ++counters_.sends_failed; }

 private:
  Status put(PortQueue& port, const GsiAddress& to, const mad::Mad& mad);

  const GsiNodes& nodes_;
  GsiClosedEnds& closed_ends_;
  OnSend on_send_;
  GsiCounters& counters_;
};

}  // namespace ib::services
