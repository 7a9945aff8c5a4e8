// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// GsiRequests: requests that wait for their answers, and their tries.
#pragma once

#include "mad/transactions.h"
#include "platform/executor.h"
#include "services/gsi/agents_internal.h"
#include "services/gsi/gsi.h"
#include "services/gsi/irp_slots_internal.h"
#include "services/gsi/sender_internal.h"
#include "services/gsi/transfers_internal.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ib::services {

class GsiRequests {
 public:
  GsiRequests(platform::Executor& executor, const fabric::Fabric& fabric, GsiAgents& agents,
              GsiSender& sender, GsiTransfers& transfers, std::uint64_t seed)
      : executor_(executor),
        fabric_(fabric),
        agents_(agents),
        sender_(sender),
        transfers_(transfers),
        transactions_({}, static_cast<std::uint32_t>(seed)) {}

  // Gsi::request(), of a message that is one of the agent's.
  Result<RequestId> begin(AgentId agent, const GsiRequest& request, OnGsiAnswer on_answer);
  // The same by IRP: its canceller may come at any time, from then on.
  Result<RequestId> begin(AgentId agent, const GsiRequest& request, GsiAnswer& answer,
                          io::IrpRef& irp);
  void cancel(RequestId request);
  std::uint64_t make_tid(AgentId agent) { return transactions_.make_id(agent); }

  bool is_awaited(const GsiAddress& from, const mad::MadHeader& header) const;
  // The answer of one that is awaited. A redirection is followed once.
  void on_answer(mad::TransactionId id, const GsiMessage& answer);
  // The request is over; its callback is called here.
  void finish(mad::TransactionId id, Status status, std::string_view reason,
              const GsiMessage* answer);
  // The same, but the callback is called from the executor.
  void give_up(mad::TransactionId id, Status status, const std::string& reason);
  void give_up_all(Status status, const std::string& reason);
  void give_up_all_of_port(std::uint32_t port, Status status, const std::string& reason);
  // They end without a call, except those by IRP.
  void cancel_all_of_agent(AgentId agent);

  // While parts of the request are being sent, or of its answer come, nothing is due.
  void suspend(mad::TransactionId id) { transactions_.suspend(id); }
  void resume(mad::TransactionId id) { transactions_.resume(id, executor_.now()); }
  // Sends again what is due, and ends what has had all its tries.
  void run();
  std::optional<Instant> next_deadline() const { return transactions_.next_deadline(); }

  std::size_t size() const { return requests_.size(); }

 private:
  struct Request {
    GsiAddress to;
    std::vector<std::byte> message;  // with the id of the transaction
    std::uint64_t own_tid = 0;       // the agent's
    bool is_redirected = false;
    OnGsiAnswer on_answer;
    io::IrpQueue* irp = nullptr;  // of a request by IRP: empty if that was cancelled
  };

  void transmit(mad::TransactionId id, const Request& request);
  bool follow_redirection(mad::TransactionId id, std::span<const std::byte> answer);
  std::optional<Request> take(mad::TransactionId id);

  platform::Executor& executor_;
  const fabric::Fabric& fabric_;
  GsiAgents& agents_;
  GsiSender& sender_;
  GsiTransfers& transfers_;
  mad::Transactions transactions_;
  std::unordered_map<mad::TransactionId, Request> requests_;
  IrpSlots irp_slots_;
};

}  // namespace ib::services
