// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Ping: a client of the access layer on one port. Every kPeriod it sends a ping to each other
// instance, over UD and over an RC connection to that one, and answers theirs.
//
// Instances find each other out of band: all are in the same softibd and on its executor's thread,
// so they are in a list of this module and call each other. Each is named by a number, never by a
// pointer, since it may be gone at any time.
//
// An RC connection is made by the younger instance: it makes a queue pair and offers its address;
// the older one makes its own, connects it and answers; the younger connects and begins. When it
// breaks, or an instance leaves, both ends are destroyed, and the younger one tries again.
#pragma once

#include "endpoint.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace ping {

class Ping {
 public:
  static constexpr const char* kName = "ping";
  using Where = std::map<std::string, std::string>;  // io::DeviceIds::properties of the child

  Ping(ib::io::DriverObject& driver, ib::al::System& system, Where where);
  Ping(const Ping&) = delete;
  Ping& operator=(const Ping&) = delete;

  void begin();
  // Everything goes with the file on the HCA; then `done`. Once, or again when that is over.
  void end(std::function<void()> done);
  std::string note() const;

 private:
  static constexpr auto kPeriod = std::chrono::milliseconds(20);
  struct Connection {
    std::unique_ptr<Endpoint> endpoint;
    enum class State { Making, Up, Leaving } state = State::Making;
  };
  struct Count {
    std::uint64_t answered = 0;  // pings of others
    std::uint64_t answers = 0;   // to its own
    void note(const std::string& text) {
      if (text == "ping") ++answered;
      if (text == "pong") ++answers;
    }
  };

  static Ping* find(std::uint64_t number);
  void ready();
  void tick();
  void take();
  void take_datagram(const ib::hca::Completion& got);
  void take_message(const ib::hca::Completion& got);

  // The messages between instances.
  void offer(std::uint64_t younger, const Address& its);
  void accepted(std::uint64_t older, const Address& its);
  void left(std::uint64_t other) { drop(other); }

  void make(std::uint64_t other, std::function<void()> made);
  void connect(std::uint64_t other, const Address& its);
  void drop(std::uint64_t other);
  bool is_making(std::uint64_t other) const;
  Address address_of(const Endpoint& endpoint) const { return {port_.lid, endpoint.qpn()}; }

  std::uint64_t number_;  // of this instance, larger than those before
  ib::al::System& system_;
  Where where_;
  ib::al::Al al_;
  ib::al::Ca ca_;
  Requests requests_;
  std::string problem_;
  std::unique_ptr<ib::platform::Timer> timer_;

  control::PortIn port_in_;
  control::PortAttr port_;
  ib::al::Pd pd_;
  ib::al::Cq cq_;
  std::unique_ptr<Endpoint> datagrams_;
  std::map<std::uint64_t, Connection> connections_;  // by the number of the other instance
  Count ud_;
  Count rc_;
  std::uint64_t broken_ = 0;  // connections, by an error
};

}  // namespace ping
