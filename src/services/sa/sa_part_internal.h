// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Common to the parts of GsiSaClient. The objects that they hand out name their entry by its
// ticket; an event finds nothing if the object was destroyed before it is delivered.
#pragma once

#include "platform/executor.h"
#include "sa/client/outgoing.h"
#include "services/sa/sa_deliveries.h"
#include "services/sa/sa_transport.h"
#include "services/sa/sa_words.h"

#include <cstddef>
#include <functional>
#include <span>
#include <string_view>
#include <utility>

namespace ib::services {

// All of it outlives the part.
struct SaSurroundings {
  const fabric::Fabric& fabric;
  const FabricTopology& topology;
  platform::Executor& executor;
  SaTransport& transport;
  SaDeliveries& deliveries;

  SaOutcome explain(const sa::Outcome& outcome, std::string_view what) const {
    return explain_outcome(fabric, topology, outcome, what);
  }
};

// The object that a caller gets: runs `end` when it is destroyed.
template <class Base>
class SaHandle : public Base {
 public:
  explicit SaHandle(std::function<void()> end) : end_(std::move(end)) {}
  SaHandle(const SaHandle&) = delete;
  SaHandle& operator=(const SaHandle&) = delete;
  ~SaHandle() override { end_(); }

 private:
  std::function<void()> end_;
};

// Sends what an engine of sa/client/ wants to send.
template <class Engine>
class SaPump {
 public:
  SaPump(Engine& engine, SaTransport& transport) : engine_(engine), transport_(transport) {}

  // Returns false from inside itself, for an answer that came at once: the loop outside sees what
  // it brought.
  template <class OnAnswer>
  bool run(OnAnswer on_answer) {
    if (is_running_) return false;
    is_running_ = true;
    while (auto out = engine_.poll_outgoing()) {
      const sa::Operation operation = out->operation;
      transport_.send(*std::move(out), [operation, on_answer](const sa::Outcome& outcome,
                                                              std::span<const std::byte> record) {
        on_answer(operation, outcome, record);
      });
    }
    is_running_ = false;
    return true;
  }

 private:
  Engine& engine_;
  SaTransport& transport_;
  bool is_running_ = false;
};

}  // namespace ib::services
