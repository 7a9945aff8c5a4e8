// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CmConnector: the connector over the communication manager's engine, one for each HCA, whose MADs
// the GSI carries. An HCA has one from the first request on that it sends or gets; a request waits
// until the nodes of both ends have their queue pairs 1.
//
// Thread rule: the executor's thread, dispatch level.
#pragma once

#include "cm/engine.h"
#include "io/irp.h"
#include "platform/executor.h"
#include "services/gsi/gsi.h"
#include "services/rdma_cm/connector.h"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

namespace ib::services::rdma_cm {

class CmConnector final : public Connector {
 public:
  CmConnector(platform::Executor& executor, const fabric::Fabric& fabric, Gsi& gsi,
              std::function<std::uint32_t()> random);
  CmConnector(const CmConnector&) = delete;
  CmConnector& operator=(const CmConnector&) = delete;
  ~CmConnector() override;

  void set_handler(Handler* handler) override { handler_ = handler; }
  void prepare(const fabric::Node& node) override;
  Progress progress(Endpoint endpoint) const override;
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
  // The engine of an HCA, and what it wants done.
  struct Manager {
    const fabric::Hca* hca = nullptr;
    std::unique_ptr<cm::Engine> engine;
    std::unique_ptr<platform::Timer> timer;
    std::deque<cm::OutgoingMad> unsent;  // the queue of the port was full
    std::unordered_map<std::uint32_t, Endpoint> connections;
    std::unordered_map<std::uint32_t, Endpoint> datagrams;
  };
  struct End {
    Manager* manager = nullptr;
    bool is_datagram = false;
    std::uint32_t id = 0;  // of the engine; 0: not begun
    bool has_begun = false;
  };
  // Opening the queue pairs 1 of a node, and who waits for it.
  struct Opening {
    io::Irp irp;
    CmConnector* connector = nullptr;
    bool is_under_way = false;
    bool is_open = false;
    std::vector<std::function<void()>> waiting;
  };

  Manager& manager_of(const fabric::Port& port);
  void set_ports(Manager& manager);
  void when_open(const fabric::Node& node, std::function<void()> then);
  static void opened(io::Irp& irp, void* context);
  Endpoint add(Manager& manager, bool is_datagram);
  void bind(Endpoint endpoint, std::uint32_t id);
  End* find(Endpoint endpoint);
  Result<Endpoint> begin(const fabric::Port& from, const Path& path, bool is_datagram,
                         std::function<Result<std::uint32_t>(Manager&)> send);
  Status act(Endpoint endpoint, const std::function<Status(Manager&, cm::ConnectionId)>& call);
  const fabric::Node* peer_of(const Path& path) const;

  void on_message(const GsiMessage& message);
  void on_port(const GsiPortEvent& event);
  void pump(Manager& manager);
  void send_mads(Manager& manager);
  Status send(const Manager& manager, const cm::OutgoingMad& mad);
  void later(std::function<void(Handler&)> work);
  void deliver(Manager& manager, cm::Event event);
  void delay(Manager& manager, cm::ConnectionId id);
  void take(Manager& manager, const cm::RequestReceived& event);
  void take(Manager& manager, const cm::ReplyReceived& event);
  void take(Manager& manager, const cm::SidrRequested& event);
  void take(Manager& manager, const cm::SidrAnswered& event);
  void take(Manager& manager, const cm::Rejected& event);
  Endpoint of(const Manager& manager, cm::ConnectionId id) const;
  Endpoint of(const Manager& manager, cm::SidrId id) const;

  platform::Executor& executor_;
  const fabric::Fabric& fabric_;
  Gsi& gsi_;
  std::function<std::uint32_t()> random_;
  AgentId agent_ = 0;
  Handler* handler_ = nullptr;
  std::map<std::uint32_t, Manager> managers_;  // by index of the HCA
  std::map<const fabric::Node*, Opening> openings_;
  std::unordered_map<Endpoint, End> ends_;
  Endpoint last_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ib::services::rdma_cm
