// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Gsi::State: the parts of Gsi, and the time at which one of them has something to do.
#pragma once

#include "services/gsi/agents_internal.h"
#include "services/gsi/closed_ends_internal.h"
#include "services/gsi/dispatch_internal.h"
#include "services/gsi/gsi.h"
#include "services/gsi/nodes_internal.h"
#include "services/gsi/requests_internal.h"
#include "services/gsi/sender_internal.h"
#include "services/gsi/transfers_internal.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ib::services {

// classes: allow(members) the parts of Gsi, one each
class Gsi::State final : private GsiReceiver {
 public:
  State(al::System& system, const fabric::Fabric& fabric, const Options& options);
  ~State() override;

  // As in Gsi.
  void ensure(std::string_view node, io::IrpRef irp);
  bool is_open(std::uint32_t port) const;
  GsiNodes& nodes() { return nodes_; }
  void let_back(const fabric::Hca& hca) {
    if (GsiFirst* first = dispatch_.first(); first != nullptr && !closed_) {
      first->on_removal_over(hca);
    }
    nodes_.let_back(hca);
  }
  void close(io::IrpRef irp);
  Result<AgentId> add_agent(GsiAgent agent, std::string& reason);
  void remove_agent(AgentId agent);
  void set_first(GsiFirst* first) { dispatch_.set_first(first); }
  Status transmit(const GsiAddress& to, const mad::Mad& mad) {
    return closed_ ? Status::InvalidState : sender_.send(to, mad);
  }
  Result<RequestId> request(AgentId agent, const GsiRequest& request, OnGsiAnswer on_answer);
  void request(AgentId agent, const GsiRequest& request, GsiAnswer& answer, io::IrpRef irp);
  void cancel(RequestId request);
  Status send(AgentId agent, const GsiAddress& to, std::span<const std::byte> message);
  std::uint64_t make_tid(AgentId agent) { return requests_.make_tid(agent); }
  Status respond(AgentId agent, const GsiAddress& to, std::span<const std::byte> message,
                 OnGsiSent on_sent);
  const GsiCounters& counters() const { return counters_; }
  std::size_t under_way() const { return requests_.size() + transfers_.size(); }

 private:
  // GsiReceiver
  void on_mad(std::uint32_t port, const al::MadAddress& from, const mad::Mad& mad) override;
  void on_port(const GsiPortEvent& event) override;

  Status check(AgentId agent, const GsiAddress& to, std::span<const std::byte> message,
               bool is_response) const;
  void arm_timer();
  void on_timer();
  void end_close();

  platform::Executor& executor_;
  GsiCounters counters_;
  GsiNodes nodes_;
  GsiAgents agents_;
  GsiClosedEnds closed_ends_;
  GsiSender sender_;
  GsiTransfers transfers_;
  GsiRequests requests_;
  GsiDispatch dispatch_;
  std::unique_ptr<platform::Timer> timer_;
  std::optional<Instant> timer_due_;
  std::optional<io::IrpRef> close_;
  bool closed_ = false;  // or closing
};

}  // namespace ib::services
