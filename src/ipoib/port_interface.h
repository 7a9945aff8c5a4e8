// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// PortInterface: one interface of a node: the engine (ulp/ipoib) between a TAP of the kernel, the
// queue pairs at a port and P_Key, and the services of softibd.
//
// Thread rule: one thread, that of the driver's loop. Inputs of the engine come from the loop and
// from callbacks of the ServiceChannel; its calls of Host are answered later, from the loop.
#pragma once

#include "ipoib/capture.h"
#include "ipoib/connections.h"
#include "ipoib/datagram_end.h"
#include "ipoib/station.h"
#include "ipoib/subnet_client.h"
#include "ipoib/transmitter.h"
#include "linux/net/node_network.h"
#include "ulp/ipoib/interface.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace ib::ipoib::driver {

struct InterfaceOptions {
  std::uint32_t number = 0;  // of the port on its node
  bool is_child = false;     // named after its P_Key
  bool connected_mode = false;
  std::uint64_t port_guid = 0;
  std::string capture;  // path of a capture file; empty: none
};

// Where to find the port and its P_Key now.
struct PortReading {
  PortState state;
  std::uint16_t pkey_index = 0;
  // The HCA sleeps: everything stays as it is, but nothing moves, and requests to it would wait.
  bool is_asleep = false;
};

// classes: allow(methods) the Host of its engine and the sinks of its services
// classes: allow(members) what an interface consists of
class PortInterface final : private Host, private SubnetClient::Sink, private Connections::Sink {
 public:
  static Result<std::unique_ptr<PortInterface>> create(os::net::NodeNetwork& network,
                                                       const Station& station,
                                                       const InterfaceOptions& options,
                                                       std::string& reason);
  PortInterface(const PortInterface&) = delete;
  PortInterface& operator=(const PortInterface&) = delete;
  ~PortInterface() override;

  const Station& station() const { return station_; }
  const std::string& name() const { return kernel_->name(); }
  int index() const { return kernel_->index(); }
  // As other interfaces see it, with the GID that the port has.
  HardwareAddressBytes address() const { return to_bytes(engine_->address()); }
  int tap() const { return kernel_->descriptor(); }
  bool connected_mode() const { return options_.connected_mode; }
  std::uint32_t mtu() const { return mtu_; }
  Snapshot snapshot() const { return engine_->snapshot(now_); }
  // Carrier, or none because the port is down: programs need not wait any longer.
  bool is_settled() const;

  // -- The loop's inputs. The time is that of the turn.
  void begin_turn(Instant now) { now_ = now; }
  void on_frames_wait() { frames_wait_ = true; }
  void read_frames();
  // Returns true if there may be more: the loop comes back without sleeping.
  bool poll_completions();
  void on_port(const PortReading& port);
  void on_port_event(PortEvent event) { engine_->on_port_event(event, now_); }
  void on_time();
  // Does what was put off inside of calls. Returns true if there is more.
  bool finish_turn();
  std::optional<Instant> next_deadline() const { return engine_->next_deadline(); }
  // Before the loop sleeps: completions wake it from now on.
  void arm();
  // The loop was woken by one of the completion queues.
  void on_completion_event(std::uint64_t queue);
  // Whether frames of the kernel are to be read: false while all buffers are in use.
  bool wants_frames() const { return transmitter_->has_buffer() && !port_.is_asleep; }
  // Its end does not take the kernel's interface away, only the carrier: as if the driver were
  // killed.
  void leave_to_kernel() { stays_ = true; }
  void check_queue_pairs() { broken_ = broken_ || (started_ && datagrams_->is_broken()); }

 private:
  static constexpr Duration kReopenAfter = std::chrono::seconds(1);

  PortInterface(os::net::NodeNetwork& network, const Station& station,
                const InterfaceOptions& options)
      : network_(network), station_(station), options_(options) {}
  Status make_objects(std::string& reason);
  Status make_kernel_interface(std::string& reason);
  void open_services();
  void reopen_later() { reopen_ = now_ + kReopenAfter; }
  void on_datagram(const user::Completion& completion);
  void on_connection_message(const user::Completion& completion);
  void on_failed_completion(const user::Completion& completion);
  bool take_receives();
  void reap_sends();
  void recover();
  void announce();
  void log(const std::string& line) { network_.log(name() + ": " + line); }

  // Host.
  bool deliver(const VirtioHeader& header, std::span<const std::byte> frame) override;
  void set_link(const LinkState& link) override;
  bool send_datagram(const AddressVector& to, Qpn qpn, Qkey qkey, const Outgoing& message) override;
  bool send_on_connection(ConnectionId connection, const Outgoing& message) override;
  bool takes_large(const HardwareAddress& to) override { return datagrams_->takes_large(to); }
  void query_path(RequestId id, const Gid& destination) override;
  void join(RequestId id, const JoinRequest& request) override;
  void leave(const Gid& mgid) override { subnet_->leave(mgid); }
  void attach(const Gid& mgid, Lid mlid) override;
  void detach(const Gid& mgid, Lid mlid) override;
  void connect(ConnectionId id, const ConnectRequest& request) override;
  void disconnect(ConnectionId id) override;
  void report(const Report& report) override;

  // SubnetClient::Sink.
  void on_subnet_open(const user::ServiceEnd& end) override;
  void on_path_answer(RequestId id, const Result<PathRecord>& answer) override;
  void on_join_answer(RequestId id, const Result<GroupParameters>& answer) override;
  void on_memberships_lost() override;
  void on_path_changed(const Gid& destination) override;

  // Connections::Sink.
  void on_connections_open(const user::ServiceEnd& end) override;
  void on_connected(ConnectionId id, std::span<const std::byte> private_data) override;
  void on_connection_lost(ConnectionId id, Status reason) override;
  Result<AcceptedConnection> on_connect_request(const IncomingConnection& request) override;

  void give_port();
  void stop_datagrams();
  void show_link();
  void capture_sent(const AddressVector& to, Qpn qpn, Qkey qkey, const Outgoing& message);
  void capture_datagram(const DatagramEnd::Received& received, const user::Completion& completion);
  void capture_connection(ConnectionId id, const Outgoing& message);
  void capture_connection(ConnectionId id, std::span<const std::byte> message) {
    capture_connection(id, Outgoing{{}, message, {}});
  }
  Capture::Route own_route() const;

  os::net::NodeNetwork& network_;
  Station station_;
  InterfaceOptions options_;
  Instant now_{};
  Objects objects_;
  std::unique_ptr<Transmitter> transmitter_;
  std::unique_ptr<DatagramEnd> datagrams_;
  std::unique_ptr<Connections> connections_;  // connected mode only
  std::unique_ptr<SubnetClient> subnet_;
  std::unique_ptr<Capture> capture_;
  std::unique_ptr<Interface> engine_;
  os::net::NodeInterface* kernel_ = nullptr;
  PortReading port_;
  std::optional<Instant> reopen_;  // the services, which could not be opened
  LinkState link_;                 // as the engine wants it
  std::uint32_t recoveries_ = 0;   // of the datagram queue pair
  std::optional<Instant> recovery_logged_;
  std::uint32_t mtu_ = 0;
  bool frames_wait_ = false;  // of the kernel
  bool stays_ = false;        // the kernel's interface, when this one ends
  bool started_ = false;      // the datagram queue pair
  bool drained_ = false;      // both completion queues, in this turn
  bool announce_ = false;     // the carrier has come
  bool broken_ = false;       // it is to be started again
  bool sends_armed_ = false;
  bool receives_armed_ = false;
};

}  // namespace ib::ipoib::driver
