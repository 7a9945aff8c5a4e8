// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DirectConnector: a connector without a network: each message is a call that the executor makes
// later. For tests of the service, in virtual time; nothing is lost, and nobody times out.
#pragma once

#include "platform/executor.h"
#include "services/rdma_cm/connector.h"
#include "services/rdma_cm/places.h"

#include <unordered_map>

namespace ib::services::rdma_cm {

class DirectConnector final : public Connector {
 public:
  DirectConnector(platform::Executor& executor, const fabric::Fabric& fabric)
      : executor_(executor), fabric_(fabric) {}
  ~DirectConnector() override { *alive_ = false; }

  void set_handler(Handler* handler) override { handler_ = handler; }
  void prepare(const fabric::Node&) override {}
  Result<Endpoint> connect(const fabric::Port& from, const ConnectRequest& request) override;
  Result<Endpoint> connect(const fabric::Port& from, const DatagramRequest& request) override;
  Status reply(Endpoint endpoint, const ConnectReply& reply) override;
  Status reply(Endpoint endpoint, const DatagramReply& reply) override;
  Status make_ready(Endpoint endpoint) override;
  Status notify_established(Endpoint endpoint) override;
  Status reject(Endpoint endpoint, std::uint16_t reason, const Bytes& private_data) override;
  Status disconnect(Endpoint endpoint) override;
  void drop(Endpoint endpoint) override;

 private:
  static constexpr Duration kTimewait = std::chrono::seconds(1);
  enum class State : std::uint8_t { Asked, Answered, Ready, Disconnecting, Disconnected, Over };
  struct End {
    Endpoint peer = 0;
    State state = State::Asked;
    bool is_active = false;
    bool is_datagram = false;
  };
  // The peer of a path's port; nullptr: it is not there.
  const fabric::Port* arrive(const fabric::Port& from, Path& path) const;
  void later(std::function<void(Handler&)> work);
  End* find(Endpoint endpoint);
  void wait(Endpoint endpoint);

  platform::Executor& executor_;
  const fabric::Fabric& fabric_;
  Handler* handler_ = nullptr;
  std::unordered_map<Endpoint, End> ends_;
  std::unordered_map<Endpoint, std::unique_ptr<platform::Timer>> timers_;  // time-wait
  Endpoint last_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ib::services::rdma_cm
