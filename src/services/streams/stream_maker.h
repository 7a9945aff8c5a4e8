// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// StreamMaker: makes streams: HCAs, path, TCP, the ends, and the connection of the communication
// manager, whose REQ and REP carry Hello and HelloAck. It has both sides of that, but each uses
// only what has come in messages.
//
//   Preparing -> Making -> Connecting -> Open
//
// Thread rule: the executor's thread, dispatch level.
#pragma once

#include "al/system.h"
#include "platform/stream_host.h"
#include "services/rdma_cm/addresses/routes.h"
#include "services/rdma_cm/connector/connector.h"
#include "services/streams/stream_hcas.h"
#include "services/streams/stream_table.h"

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace ib::services {

class StreamMaker final : private rdma_cm::Connector::Handler {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void on_refused_tcp(const StreamListeners::Key& listener) = 0;  // nobody listens there
    virtual void on_made(Stream& stream) = 0;                               // it is Open
    // Not Open yet: it is to be given up.
    virtual void on_failed(Stream& stream, Status status, const std::string& reason) = 0;
    // Open: somebody else has ended its connection.
    virtual void on_lost(Stream& stream) = 0;
    virtual void on_gone(const fabric::Hca& hca) = 0;
  };
  struct Parts {
    al::System& system;
    StreamTable& table;
    StreamHcas& hcas;
    rdma_cm::Connector& connector;
    rdma_cm::Routes& routes;
    platform::StreamHost& host;
  };
  StreamMaker(const Parts& parts, std::function<std::uint32_t()> random, Owner& owner);
  StreamMaker(const StreamMaker&) = delete;
  StreamMaker& operator=(const StreamMaker&) = delete;
  ~StreamMaker() override { parts_.connector.set_handler(nullptr); }

  // `stream` has its way, its TCP socket, and its Connect.
  void begin(Stream& stream);
  // Ends the connection of a stream that ends. `in_order`: the second end answers the DREQ of the
  // first.
  void disconnect(Stream& stream, bool in_order);
  // The end of softibd: no message is waited for.
  void close();
  // Gives up those that take too long.
  void look_at_time();
  bool is_busy() const { return !making_.empty(); }

 private:
  void prepare(Stream& stream, std::uint32_t end);
  void ask_path(Stream& stream);
  void knock(Stream& stream);
  void make_ends(Stream& stream);
  void on_end_made(Stream& stream, std::uint32_t end, Status status);
  Status set_up(Stream& stream);
  void request(Stream& stream);
  void reply(Stream& stream, std::uint32_t receive_psn);
  void fail(Stream& stream, Status status, const std::string& reason);
  // `number`: of a stream that may have ended. Returns nullptr if it is not in this stage.
  Stream* find(std::uint64_t number, Stream::Stage stage) const;
  Stream* of(rdma_cm::Endpoint endpoint) const;
  void add_endpoint(Stream& stream, std::uint32_t end, rdma_cm::Endpoint endpoint);
  bool has_left(rdma_cm::Endpoint endpoint);

  // rdma_cm::Connector::Handler
  void on_request(rdma_cm::Endpoint endpoint, const fabric::Port& port,
                  const rdma_cm::ConnectRequest& request) override;
  void on_datagram_request(rdma_cm::Endpoint endpoint, const fabric::Port& port,
                           const rdma_cm::DatagramRequest& request) override;
  void on_reply(rdma_cm::Endpoint endpoint, const rdma_cm::ConnectReply& reply) override;
  void on_datagram_reply(rdma_cm::Endpoint, const rdma_cm::DatagramReply&) override {}
  void on_ready(rdma_cm::Endpoint endpoint) override;
  void on_rejected(rdma_cm::Endpoint endpoint, std::uint16_t reason,
                   const rdma_cm::Bytes& private_data) override;
  void on_unreachable(rdma_cm::Endpoint endpoint, const rdma_cm::Unanswered& message) override;
  void on_disconnected(rdma_cm::Endpoint endpoint, bool timed_out) override;
  void on_timewait_over(rdma_cm::Endpoint endpoint) override { has_left(endpoint); }
  void on_hca_gone(const fabric::Hca& hca) override { owner_.on_gone(hca); }
  void on_ports_changed(const fabric::Hca&) override {}

  Parts parts_;
  std::function<std::uint32_t()> random_;
  Owner& owner_;
  std::set<std::uint64_t> making_;
  std::unordered_map<std::uint32_t, Stream*> by_qpn_;  // whose REQ is on its way
  std::unordered_map<rdma_cm::Endpoint, Stream*> by_endpoint_;
  std::unordered_set<rdma_cm::Endpoint> leaving_;  // wait for the DREQ of their peers
};

}  // namespace ib::services
