// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CmConnector: the connector over the communication managers of the HCAs (services/cm/). A request
// waits until the nodes of both ends have their queue pairs 1.
//
// Thread rule: the executor's thread, dispatch level.
#pragma once

#include "services/cm/cm_service.h"
#include "services/rdma_cm/connector/connector.h"

#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

namespace ib::services::rdma_cm {

std::vector<std::uint64_t> ip_services();

class CmConnector final : public Connector, private CmConsumer {
 public:
  // Listens, on every HCA, to these service IDs, as far as kServicePortMask leaves them: those of
  // the IP service by default.
  explicit CmConnector(CmService& service, std::vector<std::uint64_t> services = ip_services());
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
  struct End {
    HcaCm* manager = nullptr;
    bool is_datagram = false;
    std::uint32_t id = 0;  // of the engine; 0: not begun
    bool has_begun = false;
  };
  // The endpoints of an HCA, by the engine's IDs.
  struct Endpoints {
    std::unordered_map<std::uint32_t, Endpoint> connections;
    std::unordered_map<std::uint32_t, Endpoint> datagrams;
  };

  void on_manager(HcaCm& manager) override;
  void on_event(HcaCm& manager, const cm::Event& event) override;
  void on_hca_gone(const fabric::Hca& hca) override;
  void on_ports_changed(const fabric::Hca& hca) override;

  Endpoint add(HcaCm& manager, bool is_datagram);
  void bind(Endpoint endpoint, std::uint32_t id);
  End* find(Endpoint endpoint);
  Result<Endpoint> begin(const fabric::Port& from, const Path& path, bool is_datagram,
                         std::function<Result<std::uint32_t>(HcaCm&)> send);
  Status act(Endpoint endpoint,
             const std::function<Status(cm::Engine&, cm::ConnectionId, Instant)>& call);

  void later(std::function<void(Handler&)> work);
  void delay(HcaCm& manager, cm::ConnectionId id);
  void take(HcaCm& manager, const cm::RequestReceived& event);
  void take(HcaCm& manager, const cm::ReplyReceived& event);
  void take(HcaCm& manager, const cm::SidrRequested& event);
  void take(HcaCm& manager, const cm::SidrAnswered& event);
  void take(HcaCm& manager, const cm::Rejected& event);
  Endpoint of(const HcaCm& manager, cm::ConnectionId id) const;
  Endpoint of(const HcaCm& manager, cm::SidrId id) const;

  CmService& service_;
  std::vector<std::uint64_t> services_;
  Handler* handler_ = nullptr;
  std::map<const HcaCm*, Endpoints> endpoints_;
  std::unordered_map<Endpoint, End> ends_;
  Endpoint last_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ib::services::rdma_cm
