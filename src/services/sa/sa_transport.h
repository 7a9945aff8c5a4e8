// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SaTransport: sends requests of the client's engines from the ports that they name to the subnet
// administrator that these ports name (PortInfo.MasterSMLID), as MADs over Gsi. It opens the nodes
// of the ports at both ends when they are first needed.
//
// Thread rule: the executor's thread, dispatch level.
#pragma once

#include "fabric/model.h"
#include "io/irp.h"
#include "platform/executor.h"
#include "sa/client/outgoing.h"
#include "services/gsi/gsi.h"
#include "services/sa/sa_service.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ib::services {

class SaTransport {
 public:
  // `record`: the attribute of the answer, valid during the call.
  using OnAnswer =
      std::function<void(const sa::Outcome& outcome, std::span<const std::byte> record)>;

  SaTransport(Gsi& gsi, SaService& service, const fabric::Fabric& fabric,
              platform::Executor& executor)
      : gsi_(gsi), service_(service), fabric_(fabric), executor_(executor) {}
  SaTransport(const SaTransport&) = delete;
  SaTransport& operator=(const SaTransport&) = delete;
  ~SaTransport() = default;

  // The agent that sends them; to be called before the first.
  void set_agent(AgentId agent) { agent_ = agent; }

  // Ok, or why the port cannot send: it is none of the fabric's InfiniBand ports, or out of
  // service.
  Status check(const verbs::Gid& port_gid, std::string& reason) const;
  // Calls back once unless it is cancelled. Returns its number, or 0 if that has happened already.
  std::uint64_t send(sa::Outgoing outgoing, OnAnswer on_answer);
  void cancel(std::uint64_t number);
  // Ends those of a port that is out of service.
  void end_of(const verbs::Gid& port_gid, const sa::Outcome& outcome);

 private:
  struct Pending {
    sa::Outgoing outgoing;
    OnAnswer on_answer;
    RequestId request = 0;  // 0: waits for its node, which may be asleep, for so long:
    std::unique_ptr<platform::Timer> limit{};
  };
  // A node whose opening is under way, or over.
  struct Opening {
    SaTransport* owner = nullptr;
    io::Irp irp{};
    bool is_over = false;
    std::vector<std::uint64_t> waiting{};
  };

  Opening& open_node(std::string_view name);
  static void opened(io::Irp& irp, void* context);
  void transmit(std::uint64_t number);
  void wait_for(Opening& opening, std::uint64_t number);
  void finish(std::uint64_t number, const sa::Outcome& outcome, std::span<const std::byte> record);

  Gsi& gsi_;
  SaService& service_;
  const fabric::Fabric& fabric_;
  platform::Executor& executor_;
  AgentId agent_ = 0;
  std::map<std::uint64_t, Pending> pending_;
  std::map<std::string, std::unique_ptr<Opening>, std::less<>> nodes_;
  std::uint64_t last_ = 0;
};

}  // namespace ib::services
