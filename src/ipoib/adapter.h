// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Adapter: one HCA of the node with its interfaces: one per port for the P_Key of index 0, and one
// child per further P_Key of the port's table. A child whose P_Key goes remains, without carrier.
//
// Thread rule: that of the driver's loop.
#pragma once

#include "ipoib/port_interface.h"
#include "linux/net/node_network.h"
#include "user/hca.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ib::ipoib::driver {

struct DriverOptions {
  bool connected_mode = false;
  std::string
      capture;  // a path without its end, "PATH.node0.ib0.pcap" for each interface; empty: none
};

class Adapter {
 public:
  struct Place {
    os::net::NodeNetwork& network;
    user::Process& process;
    user::ServiceChannel& services;
    const user::CompletionChannel& completions;
  };
  // `first_port`: the number of its port 1 among those of the node.
  static Result<std::unique_ptr<Adapter>> open(const Place& place, std::uint64_t guid,
                                               std::uint32_t first_port,
                                               const DriverOptions& options, std::string& reason);

  std::uint64_t guid() const { return hca_->info().ca.node_guid; }
  std::uint32_t file() const { return hca_->file(); }
  std::uint32_t ports() const { return hca_->attributes().port_count; }
  std::uint32_t first_port() const { return first_port_; }
  const std::string& name() const { return name_; }

  // Reads the port and its P_Keys, makes interfaces that are missing, and tells all of the port.
  void refresh(std::uint32_t port, Instant now);
  void refresh_all(Instant now);
  void on_event(const user::control::EventOut& event, Instant now);

  const std::vector<std::unique_ptr<PortInterface>>& interfaces() const { return interfaces_; }

 private:
  Adapter(const Place& place, std::unique_ptr<user::Hca> hca, std::uint32_t first_port,
          const DriverOptions& options)
      : place_(place), hca_(std::move(hca)), first_port_(first_port), options_(options) {}

  struct Port {
    bool is_infiniband = false;
    bool is_asleep = false;
    PortState state;  // has_pkey apart
    std::vector<std::uint16_t> pkeys;
  };
  Port read(std::uint32_t number);
  void add_missing(std::uint32_t number, const Port& port);
  void add(std::uint32_t number, const Port& port, Pkey pkey, bool is_child);
  void tell(std::uint32_t number, const Port& port, Instant now);
  void tell_event(std::uint32_t number, PortEvent event);

  Place place_;
  std::unique_ptr<user::Hca> hca_;
  std::string name_;
  std::uint32_t first_port_;
  DriverOptions options_;
  std::vector<std::unique_ptr<PortInterface>> interfaces_;
};

}  // namespace ib::ipoib::driver
