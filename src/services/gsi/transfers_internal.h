// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// GsiTransfers: messages of several packets (RMPP) that are under way: requests, their answers, and
// requests that come.
#pragma once

#include "mad/rmpp.h"
#include "mad/transactions.h"
#include "platform/executor.h"
#include "services/gsi/agents_internal.h"
#include "services/gsi/gsi.h"
#include "services/gsi/sender_internal.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace ib::services {

class GsiTransfers {
 public:
  class Handler {
   public:
    virtual ~Handler() = default;
    // Of a request: all of it was sent; a part of its answer has come; it, or its answer, failed.
    virtual void on_request_sent(mad::TransactionId request) = 0;
    virtual void on_answer_begins(mad::TransactionId request) = 0;
    virtual void on_request_failed(mad::TransactionId request, Status status,
                                   const std::string& reason) = 0;
    // Whole messages. An answer is that of `request`.
    virtual void on_answer(mad::TransactionId request, const GsiMessage& answer) = 0;
    virtual void on_request(const GsiMessage& request) = 0;
  };

  GsiTransfers(platform::Executor& executor, GsiAgents& agents, GsiSender& sender,
               const mad::Rmpp::Options& options)
      : executor_(executor), agents_(agents), sender_(sender), rmpp_(options) {}

  void set_handler(Handler& handler) { handler_ = &handler; }

  Status send_request(mad::TransactionId request, const GsiAddress& to,
                      std::vector<std::byte> message);
  // Of the agent; `on_sent` may be empty.
  Status send_response(AgentId agent, const GsiAddress& to, std::vector<std::byte> message,
                       OnGsiSent on_sent);
  // A packet of a message, or about one. It may begin one if `may_begin`.
  void on_packet(const GsiAddress& from, const mad::MadHeader& header, const mad::Mad& mad,
                 bool may_begin);
  // Sends what is due. Not from inside itself: a callback may begin or end a transfer.
  void run();
  std::optional<Instant> next_deadline() const { return rmpp_.next_deadline(); }

  // Those of a request that is over.
  void cancel(mad::TransactionId request);
  // Those that are no request's: their `on_sent` is called, but not that of an agent that goes.
  void cancel_all(Status status, const std::string& reason);
  void cancel_all_of_port(std::uint32_t port, Status status, const std::string& reason);
  void cancel_all_of_agent(AgentId agent);

  std::size_t size() const { return rmpp_.sends() + rmpp_.receptions(); }

 private:
  // A message that is under way, or has come and lingers.
  struct Transfer {
    GsiAddress address;
    AgentId agent = 0;               // of a response that is sent
    mad::TransactionId request = 0;  // which is sent, or whose answer comes
    bool is_send = false;
    OnGsiSent on_sent;
  };
  struct OfRequest {
    mad::Rmpp::Id sending = 0;
    mad::Rmpp::Id receiving = 0;  // its answer
  };

  Status send(Transfer transfer, std::vector<std::byte> message, bool is_answered);
  void take_output(mad::Rmpp::Output& output);
  void take_message(const GsiAddress& from, mad::TransactionId request,
                    std::span<const std::byte> bytes);
  void report_sent(Transfer& transfer, Status status, const std::string& reason);
  // Ok: without a word.
  void cancel_if(const std::function<bool(const Transfer&)>& condition, Status status,
                 const std::string& reason);

  platform::Executor& executor_;
  GsiAgents& agents_;
  GsiSender& sender_;
  Handler* handler_ = nullptr;
  mad::Rmpp rmpp_;
  std::map<mad::Rmpp::Id, Transfer> transfers_;
  std::unordered_map<mad::TransactionId, OfRequest> of_requests_;
  const GsiAddress* source_ = nullptr;  // of the packet that has just come
  bool runs_ = false;
};

}  // namespace ib::services
