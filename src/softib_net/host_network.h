// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// HostNetwork: the interfaces of a node in the network namespace of its process, with the addresses
// and routes of the plan that came with the first program.
//
// When somebody sets an interface down, the kernel takes its routes and all IPv6 addresses. It
// makes a link-local address again when the interface comes up, but none of a port's GUID; so this
// is done here, as a network manager would.
#pragma once

#include "linux/net/link_watch.h"
#include "linux/net/netlink.h"
#include "linux/net/node_network.h"
#include "softib_net/node_main.h"

#include <memory>
#include <string>
#include <vector>

namespace ib::softib_net {

// "ib0", "ib0.8001".
std::string interface_name(std::uint32_t port, std::uint16_t pkey);
// fe80::/64 with the interface identifier of a port [RFC 4391 8].
os::net::IpPrefix link_local_address(std::uint64_t port_guid);

class HostNetwork final : public os::net::NodeNetwork {
 public:
  ~HostNetwork() override;
  // `channel`: to softib-net.
  static Result<std::unique_ptr<HostNetwork>> create(NodeStart start,
                                                     platform::NativeHandle channel,
                                                     std::string& reason);

  const os::net::NodePlace& place() const override { return start_.place; }
  Result<os::net::NodeInterface*> add(const os::net::InterfaceSpec& spec,
                                      std::string& reason) override;
  void remove(os::net::NodeInterface& interface) override;
  void report_ready() override;
  int events() const override { return events_.get(); }
  os::net::NodeEvent take_event() override;
  void send_report(std::string_view json) override;
  void log(std::string_view line) override;

 private:
  class Interface;

  // Addresses and routes that an interface gets.
  enum class Share {
    Everything,    // in the beginning
    WhatWasTaken,  // by the kernel when it was set down; IPv4 addresses stay, or a user took them
  };

  HostNetwork(NodeStart start, platform::NativeHandle channel, os::net::Netlink netlink,
              os::net::LinkWatch links);
  Status join_events(std::string& reason);
  Status configure(const Interface& interface, std::string& reason);
  Status add_addresses(const Interface& interface, Share share, std::string& reason);
  void keep_ipv6_unset(const Interface& interface);
  void follow_links();
  Status add_address(const Interface& interface, const os::net::IpPrefix& address,
                     std::string& reason);
  Status refuse(Status status, const std::string& what, std::string& reason) const;

  NodeStart start_;
  platform::NativeHandle channel_;
  os::net::Netlink netlink_;
  os::net::LinkWatch links_;
  platform::NativeHandle events_;  // epoll: the channel and the links
  std::vector<std::unique_ptr<Interface>> interfaces_;
  unsigned lines_left_;
};

}  // namespace ib::softib_net
