// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connections: the connected mode of an interface [RFC 4755]: RC queue pairs that share one receive
// queue of the longest messages, made and ended by user::Cm.
//
// A connection has a queue pair from connect() or its acceptance on. It ends in two steps, since
// messages that have arrived are still in the completion queue: its queue pair goes to Error, and
// tidy() destroys it once both completion queues were empty.
// Thread rule: that of the ServiceChannel.
#pragma once

#include "ipoib/registered_memory.h"
#include "ipoib/station.h"
#include "ipoib/transmitter.h"
#include "ulp/ipoib/interface.h"
#include "user/services/cm.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <unordered_map>
#include <vector>

namespace ib::ipoib::driver {

// classes: allow(members) the objects of its queue pairs, and tables of what is under way
class Connections {
 public:
  static constexpr std::uint32_t kReceives = 128;
  static constexpr std::uint32_t kSends = 64;  // of one connection

  class Sink {
   public:
    virtual ~Sink() = default;
    virtual void on_connections_open(const user::ServiceEnd& end) = 0;
    virtual void on_connected(ConnectionId id, std::span<const std::byte> private_data) = 0;
    virtual void on_connection_lost(ConnectionId id, Status reason) = 0;
    virtual Result<AcceptedConnection> on_connect_request(const IncomingConnection& request) = 0;
  };

  static Result<std::unique_ptr<Connections>> create(const Station& station, const Objects& objects,
                                                     Transmitter& transmitter, Sink& sink);
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;
  ~Connections();

  // Answered by Sink::on_connections_open, unless it fails at once. Then peers can connect.
  Status open(Qpn datagrams);
  void set_port(const PortState& port, std::uint16_t pkey_index);

  // Host::connect() and the others. A connection that cannot be begun is lost in deliver().
  void connect(ConnectionId id, const ConnectRequest& request);
  void disconnect(ConnectionId id);
  bool send(ConnectionId id, const Outgoing& message);
  std::uint32_t peer_qpn(ConnectionId id) const;  // 0: not known

  // -- Completions.
  // Those of receives have this bit in their wr_id.
  static constexpr std::uint64_t kReceiveBit = std::uint64_t{1} << 63;
  struct Received {
    ConnectionId id{};
    Message message;
  };
  std::optional<Received> read(const user::Completion& completion);
  void post_receive(std::uint64_t wr_id);
  // A send or a receive of this queue pair has failed.
  void on_error(std::uint32_t qpn);

  bool has_losses() const { return !lost_.empty(); }
  void deliver();
  // Both completion queues were found empty.
  void tidy();

 private:
  enum class Phase { Connecting, Accepting, Established };
  struct Connection {
    ConnectionId id{};
    std::unique_ptr<user::QueuePair> queue_pair;
    user::control::CmHandle handle = 0;  // 0: the answer to connect() is not here
    Phase phase = Phase::Connecting;
    std::uint32_t psn = 0;
    std::uint32_t peer_qpn = 0;
  };
  using Then = std::function<void(Connection&)>;

  Connections(const Station& station, const Objects& objects, Transmitter& transmitter, Sink& sink,
              std::unique_ptr<RegisteredMemory> memory,
              std::unique_ptr<user::SharedReceiveQueue> receives);
  std::span<std::byte> buffer(std::uint64_t wr_id) const;
  Connection* find(ConnectionId id);
  Result<std::unique_ptr<user::QueuePair>> new_queue_pair();
  user::control::CmPath path_of(const ConnectRequest& request) const;
  Status begin(ConnectionId id, const ConnectRequest& request);
  void on_reply(ConnectionId id, const user::ServiceEnd& end, const user::control::CmReply& reply);
  void establish(Connection& connection, const user::control::CmData& data);
  void listen(Qpn datagrams);
  void await_request(user::control::CmHandle listener);
  void on_request(const user::control::CmRequest& request);
  Status accept(const user::control::CmRequest& request, const AcceptedConnection& accepted);
  void on_accepted(ConnectionId id, const user::ServiceEnd& end);
  // Moves the queue pair with the attributes of the communication manager, to Rtr and on to Rts.
  void move(ConnectionId id, verbs::QpState state, Then then);
  void watch(ConnectionId id);
  void lose(ConnectionId id, Status reason);
  void forget(ConnectionId id);
  std::uint32_t new_psn() { return random_() & 0xffffffu; }

  Station station_;
  const Objects& objects_;
  Transmitter& transmitter_;
  Sink& sink_;
  std::unique_ptr<RegisteredMemory> memory_;
  std::unique_ptr<user::SharedReceiveQueue> receives_;
  user::Cm cm_;
  PortState port_;
  std::uint16_t pkey_index_ = 0;
  std::minstd_rand random_;
  std::unordered_map<std::uint32_t, Connection> connections_;      // by ConnectionId
  std::unordered_map<std::uint32_t, ConnectionId> of_queue_pair_;  // by its number
  std::vector<std::unique_ptr<user::QueuePair>> dying_;
  std::vector<std::pair<ConnectionId, Status>> lost_;  // to be delivered
  user::SendWqe request_;
};

}  // namespace ib::ipoib::driver
