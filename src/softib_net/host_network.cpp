// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Making and configuring interfaces; messages to and from softib-net.
#include "softib_net/host_network.h"

#include "base/buffers.h"
#include "linux/net/refusal.h"
#include "linux/process/client_handle.h"
#include "linux/server/server_message_io.h"
#include "softib_net/node_messages.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace ib::softib_net {

using os::net::InterfaceSpec;
using os::net::IpPrefix;
using os::net::LinkMtu;
using os::net::NodeEvent;
using os::net::NodeInterface;
using os::net::Tap;
using softib::PlanEntry;
using softib::PlanKind;

namespace {

// A driver that goes wrong does not fill the disk.
constexpr unsigned kMostLogLines = 1000;
// As many as an HCA has ports and partitions, and more than a program looks at.
constexpr std::size_t kMostInterfaces = 256;

IpPrefix prefix_of(const PlanEntry& entry) {
  return {entry.ip, entry.bits};
}

}  // namespace

std::string interface_name(std::uint32_t port, std::uint16_t pkey) {
  return pkey == 0 ? fmt::format("ib{}", port) : fmt::format("ib{}.{:04x}", port, pkey);
}

IpPrefix link_local_address(std::uint64_t port_guid) {
  constexpr std::uint64_t kPrefix = 0xfe80ull << 48;
  // A modified EUI-64 has the universal/local bit of the EUI-64 turned over [RFC 4291 appendix A].
  constexpr std::uint64_t kUniversal = 0x02ull << 56;
  return {verbs::make_gid(kPrefix, port_guid ^ kUniversal), 64};
}

class HostNetwork::Interface final : public NodeInterface {
 public:
  Interface(HostNetwork& network, Tap tap, const InterfaceSpec& spec)
      : network_(network),
        tap_(std::move(tap)),
        spec_(spec),
        index_(os::net::index_of(tap_.name())),
        can_have_ipv6_(spec.mtu.bytes >= os::net::kLeastIpv6Mtu.bytes) {}

  const Tap& tap() const override { return tap_; }
  int index() const override { return index_; }
  Status set_carrier(bool on) override {
    IB_CHECK(tap_.set_carrier(on));
    has_carrier_ = on;
    return Status::Ok;
  }
  bool has_carrier() const override { return has_carrier_; }
  Status set_mtu(LinkMtu mtu) override {
    return network_.netlink_.change_link(index_, {.mtu = mtu});
  }

  const InterfaceSpec& spec() const { return spec_; }
  // Returns whether it can have IPv6 again.
  bool on_change(bool can_have_ipv6) {
    return !std::exchange(can_have_ipv6_, can_have_ipv6) && can_have_ipv6;
  }

 private:
  HostNetwork& network_;
  Tap tap_;
  InterfaceSpec spec_;
  int index_;
  bool can_have_ipv6_;
  bool has_carrier_ = false;
};

HostNetwork::HostNetwork(NodeStart start, platform::NativeHandle channel, os::net::Netlink netlink,
                         os::net::LinkWatch links)
    : start_(std::move(start)),
      channel_(std::move(channel)),
      netlink_(std::move(netlink)),
      links_(std::move(links)),
      lines_left_(kMostLogLines) {}

HostNetwork::~HostNetwork() = default;

Result<std::unique_ptr<HostNetwork>> HostNetwork::create(NodeStart start,
                                                         platform::NativeHandle channel,
                                                         std::string& reason) {
  auto netlink = os::net::Netlink::open();
  auto links = os::net::LinkWatch::open();
  if (!netlink || !links) {
    reason = "no socket for rtnetlink";
    return netlink ? links.error() : netlink.error();
  }
  std::unique_ptr<HostNetwork> self(new HostNetwork(std::move(start), std::move(channel),
                                                    *std::move(netlink), *std::move(links)));
  IB_CHECK(self->join_events(reason));
  // Not in a namespace of others, whose loopback addresses are theirs.
  if (!self->start_.keeps_interfaces) return self;
  for (const PlanEntry& entry : self->start_.plan) {
    if (entry.kind != PlanKind::Unreachable) continue;
    const Status added =
        self->netlink_.add_route(0, prefix_of(entry), os::net::RouteKind::Unreachable);
    if (added != Status::Ok) {
      return self->refuse(added, "the route to " + text_of(prefix_of(entry)), reason);
    }
  }
  return self;
}

Status HostNetwork::join_events(std::string& reason) {
  events_ = os::own_descriptor(::epoll_create1(EPOLL_CLOEXEC));
  for (const int descriptor : {channel_.get(), links_.descriptor()}) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (::epoll_ctl(events_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0) continue;
    reason = fmt::format("epoll: {}", std::strerror(errno));
    return Status::IoError;
  }
  return Status::Ok;
}

Result<NodeInterface*> HostNetwork::add(const InterfaceSpec& spec, std::string& reason) {
  const std::string name = interface_name(spec.port, spec.pkey);
  if (spec.mtu.bytes < os::net::kLeastMtu.bytes || spec.mtu.bytes > os::net::kMaxMtu.bytes) {
    reason = fmt::format("{}: an MTU of {} bytes; it can have {} to {}", name, spec.mtu.bytes,
                         os::net::kLeastMtu.bytes, os::net::kMaxMtu.bytes);
    return Status::InvalidParameter;
  }
  if (interfaces_.size() == kMostInterfaces) {
    reason = fmt::format("a node has at most {} interfaces", kMostInterfaces);
    return Status::LimitExceeded;
  }
  auto tap = Tap::create({.name = name, .persist = start_.keeps_interfaces}, reason);
  if (!tap) return tap.error();
  auto interface = std::make_unique<Interface>(*this, *std::move(tap), spec);
  if (const Status status = configure(*interface, reason); status != Status::Ok) {
    (void)interface->tap().discard();
    return status;
  }
  follow_links();  // what was done here is none of its changes
  return interfaces_.emplace_back(std::move(interface)).get();
}

void HostNetwork::remove(NodeInterface& interface) {
  (void)interface.tap().discard();
  std::erase_if(interfaces_, [&](const auto& one) { return one.get() == &interface; });
}

Status HostNetwork::configure(const Interface& interface, std::string& reason) {
  keep_ipv6_unset(interface);
  const InterfaceSpec& spec = interface.spec();
  const Status changed =
      netlink_.change_link(interface.index(), {.up = true, .mtu = spec.mtu, .mac = spec.mac});
  if (changed != Status::Ok) return refuse(changed, interface.name(), reason);
  return add_addresses(interface, Share::Everything, reason);
}

// By itself the kernel would make a link-local address of the MAC address.
void HostNetwork::keep_ipv6_unset(const Interface& interface) {
  const Status ipv6 = netlink_.change_link(interface.index(), {.keep_ipv6_unset = true});
  if (ipv6 != Status::Ok) log(interface.name() + ": no IPv6: " + netlink_.text());
}

Status HostNetwork::add_addresses(const Interface& interface, Share share, std::string& reason) {
  const InterfaceSpec& spec = interface.spec();
  if (spec.port_guid != 0)
    IB_CHECK(add_address(interface, link_local_address(spec.port_guid), reason));
  if (spec.pkey != 0) return Status::Ok;
  for (const PlanEntry& entry : start_.plan) {
    if (entry.port != spec.port) continue;
    const IpPrefix prefix = prefix_of(entry);
    if (entry.kind == PlanKind::Address) {
      if (share == Share::WhatWasTaken && prefix.is_ipv4()) continue;
      IB_CHECK(add_address(interface, prefix, reason));
    } else if (entry.kind == PlanKind::OnLink) {
      const Status added =
          netlink_.add_route(interface.index(), prefix, os::net::RouteKind::OnLink);
      if (added != Status::Ok) return refuse(added, "the route to " + text_of(prefix), reason);
    }
  }
  return Status::Ok;
}

void HostNetwork::follow_links() {
  const auto changes = links_.take();
  const auto give_back = [this](const Interface& interface) {
    keep_ipv6_unset(interface);
    std::string reason;
    if (add_addresses(interface, Share::WhatWasTaken, reason) != Status::Ok) log(reason);
  };
  // All may have been down and up.
  if (!changes) {
    for (const auto& interface : interfaces_) give_back(*interface);
    return;
  }
  for (const os::net::LinkWatch::Change& change : *changes) {
    for (const auto& interface : interfaces_) {
      if (interface->index() != change.index) continue;
      if (interface->on_change(change.can_have_ipv6())) give_back(*interface);
    }
  }
}

// A kernel without IPv6, or one where it is off, has a network without it.
Status HostNetwork::add_address(const Interface& interface, const IpPrefix& address,
                                std::string& reason) {
  const Status added = netlink_.add_address(interface.index(), address);
  if (added == Status::Ok) return Status::Ok;
  const std::string what = fmt::format("{}, address {}", interface.name(), text_of(address));
  const Status refused = refuse(added, what, reason);
  if (address.is_ipv4()) return refused;
  log(std::exchange(reason, {}));
  return Status::Ok;
}

Status HostNetwork::refuse(Status status, const std::string& what, std::string& reason) const {
  const os::net::Refusal refusal{os::net::Step::Interface, netlink_.error()};
  reason = what + ": " + describe(refusal);
  if (!netlink_.text().empty()) reason += " (" + netlink_.text() + ")";
  return status;
}

void HostNetwork::report_ready() {
  (void)os::send_message(channel_.get(), node_message(Say::Ready), {});
}

NodeEvent HostNetwork::take_event() {
  follow_links();
  std::array<std::byte, 64> buffer{};
  os::ServerMessage message;
  switch (os::receive_message(channel_.get(), buffer, message)) {
    case os::Transfer::WouldBlock: return NodeEvent::None;
    case os::Transfer::Ended: return NodeEvent::Stop;
    case os::Transfer::Done: break;
  }
  const auto said = parse_node_message(message.bytes);
  return said && said->say == Say::WantReport ? NodeEvent::Report : NodeEvent::Stop;
}

// As a file: it may be of any length.
void HostNetwork::send_report(std::string_view json) {
  std::array<platform::NativeHandle, 2> handles;
  handles[0] = os::own_descriptor(::memfd_create("softib-ipoib", MFD_CLOEXEC));
  while (handles[0].valid() && !json.empty()) {
    const ssize_t written = ::write(handles[0].get(), json.data(), json.size());
    if (written <= 0) break;
    json.remove_prefix(static_cast<std::size_t>(written));
  }
  (void)os::send_message(channel_.get(), node_message(Say::Report), handles);
}

void HostNetwork::log(std::string_view line) {
  if (lines_left_ == 0) return;
  --lines_left_;
  (void)os::send_message(channel_.get(), node_message(Say::Log, line), {});
  if (lines_left_ == 0) {
    (void)os::send_message(channel_.get(), node_message(Say::Log, "says no more: too many lines"),
                           {});
  }
}

}  // namespace ib::softib_net
