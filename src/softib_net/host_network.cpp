// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Making and configuring interfaces; messages to and from softib-net.
#include "softib_net/host_network.h"

#include "base/buffers.h"
#include "linux/net/refusal.h"
#include "linux/process/client_handle.h"
#include "linux/server/server_message_io.h"
#include "softib_net/node_messages.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
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
  Interface(HostNetwork& network, Tap tap, int index)
      : network_(network), tap_(std::move(tap)), index_(index) {}

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

 private:
  HostNetwork& network_;
  Tap tap_;
  int index_;
  bool has_carrier_ = false;
};

HostNetwork::HostNetwork(NodeStart start, platform::NativeHandle channel, os::net::Netlink netlink)
    : start_(std::move(start)),
      channel_(std::move(channel)),
      netlink_(std::move(netlink)),
      lines_left_(kMostLogLines) {}

HostNetwork::~HostNetwork() = default;

Result<std::unique_ptr<HostNetwork>> HostNetwork::create(NodeStart start,
                                                         platform::NativeHandle channel,
                                                         std::string& reason) {
  auto netlink = os::net::Netlink::open();
  if (!netlink) {
    reason = "no socket for rtnetlink";
    return netlink.error();
  }
  std::unique_ptr<HostNetwork> self(
      new HostNetwork(std::move(start), std::move(channel), *std::move(netlink)));
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
  auto interface = std::make_unique<Interface>(*this, *std::move(tap), os::net::index_of(name));
  if (const Status status = configure(*interface, spec, reason); status != Status::Ok) {
    (void)interface->tap().discard();
    return status;
  }
  return interfaces_.emplace_back(std::move(interface)).get();
}

void HostNetwork::remove(NodeInterface& interface) {
  (void)interface.tap().discard();
  std::erase_if(interfaces_, [&](const auto& one) { return one.get() == &interface; });
}

Status HostNetwork::configure(const Interface& interface, const InterfaceSpec& spec,
                              std::string& reason) {
  // By itself the kernel would make a link-local address of the MAC address.
  const Status ipv6 = netlink_.change_link(interface.index(), {.keep_ipv6_unset = true});
  if (ipv6 != Status::Ok) log(interface.name() + ": no IPv6: " + netlink_.text());
  const Status changed =
      netlink_.change_link(interface.index(), {.up = true, .mtu = spec.mtu, .mac = spec.mac});
  if (changed != Status::Ok) return refuse(changed, interface.name(), reason);
  if (spec.port_guid != 0)
    IB_CHECK(add_address(interface, link_local_address(spec.port_guid), reason));
  if (spec.pkey != 0) return Status::Ok;
  for (const PlanEntry& entry : start_.plan) {
    if (entry.port != spec.port) continue;
    if (entry.kind == PlanKind::Address) {
      IB_CHECK(add_address(interface, prefix_of(entry), reason));
    } else if (entry.kind == PlanKind::OnLink) {
      const Status added =
          netlink_.add_route(interface.index(), prefix_of(entry), os::net::RouteKind::OnLink);
      const std::string what = "the route to " + text_of(prefix_of(entry));
      if (added != Status::Ok) return refuse(added, what, reason);
    }
  }
  return Status::Ok;
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
