// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connections: the connections of ids, both sides of the exchange with a peer and its end, and
// what becomes of ids when their port goes or changes.
#pragma once

#include "services/rdma_cm/addresses/port_table.h"
#include "services/rdma_cm/command/ucma_layout.h"
#include "services/rdma_cm/connector/connector.h"
#include "services/rdma_cm/service/arrival.h"
#include "services/rdma_cm/service/failure_trace.h"
#include "services/rdma_cm/service/id_table.h"

#include <cstdint>
#include <functional>
#include <unordered_map>

namespace ib::services::rdma_cm {

// The owner of the queue pair that has a number at an HCA, as the process `pid` sees it: it made or
// opened the queue pair, there is none, or it is another process's.
enum class QueuePairOwner : std::uint8_t { Caller, Nobody, Other };
using FindOwner =
    std::function<QueuePairOwner(const fabric::Hca& hca, std::uint32_t qpn, std::uint32_t pid)>;

class Connections final : private Connector::Handler {
 public:
  // Without `find_owner` each queue pair is the caller's.
  Connections(const fabric::Fabric& fabric, Connector& connector, const PortTable& ports,
              IdTable& ids, const FailureTrace& trace, FindOwner find_owner);
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;
  ~Connections() override { connector_.set_handler(nullptr); }

  // Commands of librdmacm.
  Error connect(Id& id, const ucma::ConnParam& param);
  Error accept(Id& id, std::uint64_t uid, const ucma::ConnParam& param);
  Error reject(Id& id, const ucma::Reject& in);
  Error disconnect(const Id& id);
  Error notify(Id& id, std::uint32_t event);

  Progress progress(const Id& id) const;
  // The id ends: the peer gets a message.
  void drop(const Id& id);

 private:
  // Connector::Handler
  void on_request(Endpoint endpoint, const fabric::Port& port,
                  const ConnectRequest& request) override;
  void on_datagram_request(Endpoint endpoint, const fabric::Port& port,
                           const DatagramRequest& request) override;
  void on_reply(Endpoint endpoint, const ConnectReply& reply) override;
  void on_datagram_reply(Endpoint endpoint, const DatagramReply& reply) override;
  void on_ready(Endpoint endpoint) override;
  void on_rejected(Endpoint endpoint, std::uint16_t reason, const Bytes& private_data) override;
  void on_unreachable(Endpoint endpoint, const Unanswered& message) override;
  void on_disconnected(Endpoint endpoint, bool timed_out) override;
  void on_timewait_over(Endpoint endpoint) override;
  void on_hca_gone(const fabric::Hca& hca) override;
  void on_ports_changed(const fabric::Hca& hca) override;

  Error check_queue_pair(const Id& id, std::string_view call, std::uint32_t qpn,
                         bool& has_queue_pair) const;
  Error connect_datagram(Id& id, const ucma::ConnParam& param);
  Error reply(Id& id, const ucma::ConnParam& param);
  Id* find(Endpoint endpoint) const;
  Id* find_listener(const Arrival& arrival) const;
  Id* add_connection(Id& listener, const Arrival& arrival, Endpoint endpoint,
                     const fabric::Port& port, const Path& path);

  const fabric::Fabric& fabric_;
  Connector& connector_;
  const PortTable& ports_;
  IdTable& ids_;
  const FailureTrace& trace_;
  FindOwner find_owner_;
  std::unordered_map<Endpoint, Id*> by_endpoint_;
};

}  // namespace ib::services::rdma_cm
