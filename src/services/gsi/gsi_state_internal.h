// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Gsi::State: the agents, the nodes that are open, and what is under way.
//   gsi.cpp       agents and nodes
//   requests.cpp  requests, their tries and their answers
//   transfers.cpp messages of several packets
//   dispatch.cpp  MADs that come
#pragma once

#include "io/irp_queue.h"
#include "mad/agent_table.h"
#include "mad/peer.h"
#include "mad/rmpp.h"
#include "mad/transactions.h"
#include "services/gsi/gsi.h"
#include "services/gsi/node_internal.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ib::services {

mad::Peer peer_of(std::uint32_t port, const al::MadAddress& remote);

std::string text_of(const al::MadAddress& address);  // "LID 3"

class Gsi::State final : public GsiNode::Owner {
 public:
  State(al::System& system, const fabric::Fabric& fabric, const Options& options);
  ~State() override;

  // gsi.cpp
  void ensure(std::string_view node, io::IrpRef irp);
  bool is_open(std::uint32_t port) const;
  std::vector<GsiPort> ports() const;
  void let_go(const fabric::Hca& hca, std::function<void()> done);
  void let_back(const fabric::Hca& hca);
  void close(io::IrpRef irp);
  Result<AgentId> add_agent(GsiAgent agent, std::string& reason);
  void remove_agent(AgentId agent);

  // requests.cpp
  Result<RequestId> request(AgentId agent, const GsiRequest& request, OnGsiAnswer on_answer);
  void request(AgentId agent, const GsiRequest& request, GsiAnswer& answer, io::IrpRef irp);
  void cancel(RequestId request);
  Status send(AgentId agent, const GsiAddress& to, std::span<const std::byte> message);
  std::uint64_t make_tid(AgentId agent) { return transactions_.make_id(agent); }
  Status respond(AgentId agent, const GsiAddress& to, std::span<const std::byte> message,
                 OnGsiSent on_sent);
  std::size_t under_way() const { return requests_.size() + rmpp_.sends() + rmpp_.receptions(); }

  GsiCounters counters;

 private:
  using AgentRef = std::shared_ptr<const GsiAgent>;  // it may be removed by its own callback

  // A request that waits for its answer.
  struct Request {
    GsiAddress to;
    std::vector<std::byte> message;  // with the id of the transaction
    std::uint64_t own_tid = 0;       // the agent's
    bool is_redirected = false;
    mad::Rmpp::Id sending = 0;    // if it is one of several packets
    mad::Rmpp::Id receiving = 0;  // its answer
    OnGsiAnswer on_answer;
    io::IrpQueue* irp = nullptr;  // of a request by IRP: empty if that was cancelled
  };

  // A message of several packets that is under way, or has come and lingers.
  struct Transfer {
    GsiAddress address;
    AgentId agent = 0;               // of a response that is sent
    mad::TransactionId request = 0;  // which is sent, or whose answer comes
    bool is_send = false;
    OnGsiSent on_sent;
  };

  // GsiNode::Owner
  void on_mad(std::uint32_t port, const al::MadAddress& from, const mad::Mad& mad) override;
  void on_port(const GsiPortEvent& event) override;
  void on_settled(GsiNode& node) override;
  void on_closed(GsiNode& node) override;

  struct Place {
    GsiNode* node = nullptr;    // null: it was never opened
    PortQueue* port = nullptr;  // null: its HCA is not open
  };
  Place find(std::uint32_t port) const;
  AgentRef find_agent(AgentId agent) const;
  // Runs `work` from the executor, unless the agent has been removed, or the request been
  // cancelled, by then.
  struct Later {
    AgentId agent = 0;
    mad::TransactionId request = 0;
    std::function<void()> work;
  };
  void later(AgentId agent, std::function<void()> work, mad::TransactionId request = 0);
  void run_later();
  void deliver(const GsiPortEvent& event);
  void fail_all_of(std::uint32_t port);
  void end_close();

  Status check(AgentId agent, const GsiAddress& to, std::span<const std::byte> message,
               bool is_response) const;
  void transmit(const GsiAddress& to, const mad::Mad& mad);
  Status put(PortQueue& port, const GsiAddress& to, const mad::Mad& mad);
  void drop(std::uint64_t& counter, const char* why, const GsiAddress& from,
            const mad::MadHeader& header);
  void transmit(mad::TransactionId id, const Request& request);
  void arm_timer();
  void on_timer();
  // The request is over; its callback is called here.
  void finish(mad::TransactionId id, Status status, std::string_view reason,
              const GsiMessage* answer);
  // The same, but the callback is called from the executor.
  void give_up(mad::TransactionId id, Status status, const std::string& reason);
  std::optional<Request> take_request(mad::TransactionId id);
  io::IrpQueue& irp_slot();

  static bool needs_rmpp(std::span<const std::byte> message);
  Status send_transfer(Transfer transfer, std::vector<std::byte> message, bool is_answered);
  void on_packet(const GsiAddress& from, const mad::MadHeader& header, const mad::Mad& mad);
  void run_transfers();
  void take_output(mad::Rmpp::Output& output);
  void report_sent(Transfer& transfer, Status status, const std::string& reason);
  void take_message(const GsiAddress& from, mad::TransactionId request,
                    std::span<const std::byte> bytes);
  void cancel_transfers(const Request& request);
  // Those that are no request's; Ok: without a word.
  void cancel_transfers_if(const std::function<bool(const Transfer&)>& condition, Status status,
                           const std::string& reason);

  void on_response(const GsiAddress& from, const mad::MadHeader& header,
                   std::span<const std::byte> bytes);
  void on_request(const GsiAddress& from, const mad::MadHeader& header,
                  std::span<const std::byte> bytes);
  void answer_class_port_info(const GsiAddress& to, const mad::ClassPortInfo& info,
                              std::span<const std::byte> request);
  void refuse(const GsiAddress& to, std::span<const std::byte> request, std::uint16_t status);
  bool follow_redirection(mad::TransactionId id, std::span<const std::byte> answer);

  al::System& system_;
  const fabric::Fabric& fabric_;
  decltype(Options::on_send) on_send_;
  decltype(Options::on_drop) on_drop_;
  io::DriverObject driver_{"softib services"};
  std::map<std::uint32_t, std::unique_ptr<GsiNode>> nodes_;  // by index
  std::map<std::uint32_t, io::IrpQueue> ensures_;            // by node; a queue stays
  mad::AgentTable table_;
  std::map<AgentId, AgentRef> agents_;
  mad::Transactions transactions_;
  std::unordered_map<mad::TransactionId, Request> requests_;
  mad::Rmpp rmpp_;
  std::map<mad::Rmpp::Id, Transfer> transfers_;
  const GsiAddress* source_ = nullptr;  // of the packet that has just come
  bool runs_transfers_ = false;
  // Requests by IRP are parked in a queue each. A queue is used again, but never destroyed: the
  // canceller of a request may still look at it.
  std::vector<std::unique_ptr<io::IrpQueue>> irp_slots_;
  std::vector<io::IrpQueue*> free_slots_;
  std::deque<Later> later_;
  std::unique_ptr<platform::Timer> later_timer_;
  std::unique_ptr<platform::Timer> timer_;
  std::optional<Instant> timer_due_;
  std::optional<io::IrpRef> close_;
  bool closed_ = false;  // or closing
};

}  // namespace ib::services
