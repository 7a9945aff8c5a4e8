// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Building requests of rtnetlink, and reading the kernel's answers.
#include "linux/net/netlink.h"

#include "base/assert.h"
#include "base/buffers.h"
#include "linux/process/client_handle.h"

#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

namespace ib::os::net {
namespace {

constexpr std::size_t kMostRequest = 512;
constexpr std::size_t kMostAnswer = 8192;

constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + NLMSG_ALIGNTO - 1) & ~std::size_t{NLMSG_ALIGNTO - 1};
}

std::span<const std::byte> address_bytes(const verbs::Gid& ip) {
  const auto all = std::as_bytes(std::span(ip));
  return verbs::is_ipv4(ip) ? all.subspan(verbs::kIpv4InGid) : all;
}

std::uint8_t family_of(const IpPrefix& prefix) {
  return prefix.is_ipv4() ? AF_INET : AF_INET6;
}

}  // namespace

// A message with its attributes, in a buffer that holds any of the requests here.
class Netlink::Request {
 public:
  template <class Body>
  Request(std::uint16_t type, std::uint16_t flags, const Body& body) {
    header_.nlmsg_type = type;
    header_.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | NLM_F_ACK | flags);
    append(bytes_of(body));
  }

  void add(std::uint16_t type, std::span<const std::byte> value) {
    const rtattr attribute{static_cast<std::uint16_t>(sizeof(rtattr) + value.size()), type};
    append(bytes_of(attribute), value);
  }
  template <class Value>
  void add_value(std::uint16_t type, const Value& value) {
    add(type, bytes_of(value));
  }
  // An attribute that holds those which are added until close().
  std::size_t open(std::uint16_t type) {
    const std::size_t at = length_;
    add(static_cast<std::uint16_t>(type | NLA_F_NESTED), {});
    return at;
  }
  void close(std::size_t at) {
    const auto length = static_cast<std::uint16_t>(length_ - at);
    std::memcpy(buffer_.data() + at, &length, sizeof length);  // rtattr::rta_len
  }

  std::span<const std::byte> finish(std::uint32_t sequence) {
    header_.nlmsg_len = static_cast<std::uint32_t>(length_);
    header_.nlmsg_seq = sequence;
    std::memcpy(buffer_.data(), &header_, sizeof header_);
    return std::span(buffer_).first(length_);
  }

 private:
  void append(std::span<const std::byte> first, std::span<const std::byte> second = {}) {
    IB_ASSERT(length_ + aligned(first.size() + second.size()) <= buffer_.size());
    std::memcpy(buffer_.data() + length_, first.data(), first.size());
    if (!second.empty())
      std::memcpy(buffer_.data() + length_ + first.size(), second.data(), second.size());
    length_ += aligned(first.size() + second.size());
  }

  nlmsghdr header_{};
  std::array<std::byte, kMostRequest> buffer_{};
  std::size_t length_ = aligned(sizeof(nlmsghdr));
};

Result<platform::NativeHandle> watch_rtnetlink(std::uint32_t groups) {
  platform::NativeHandle socket =
      own_descriptor(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
  if (!socket.valid()) return no_descriptor(errno);
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = groups;
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (::bind(socket.get(), generic, sizeof address) != 0) return Status::IoError;
  return socket;
}

Result<Netlink> Netlink::open() {
  platform::NativeHandle socket =
      own_descriptor(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket.valid()) return no_descriptor(errno);
  const int on = 1;  // without it the kernel gives a number alone
  (void)::setsockopt(socket.get(), SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof on);
  return Netlink(std::move(socket));
}

Status Netlink::change_link(int index, const LinkChange& change) {
  ifinfomsg body{};
  body.ifi_family = AF_UNSPEC;
  body.ifi_index = index;
  if (change.up) {
    body.ifi_change = IFF_UP;
    body.ifi_flags = *change.up ? unsigned{IFF_UP} : 0u;
  }
  Request request(RTM_NEWLINK, 0, body);
  if (change.mtu) request.add_value(IFLA_MTU, change.mtu->bytes);
  if (change.mac) request.add(IFLA_ADDRESS, std::as_bytes(std::span(*change.mac)));
  if (change.keep_ipv6_unset) {
    const std::size_t all = request.open(IFLA_AF_SPEC);
    const std::size_t ipv6 = request.open(AF_INET6);
    request.add_value(IFLA_INET6_ADDR_GEN_MODE, std::uint8_t{IN6_ADDR_GEN_MODE_NONE});
    request.close(ipv6);
    request.close(all);
  }
  return exchange(request);
}

Status Netlink::delete_link(int index) {
  ifinfomsg body{};
  body.ifi_index = index;
  Request request(RTM_DELLINK, 0, body);
  return exchange(request);
}

Status Netlink::add_address(int index, const IpPrefix& address) {
  ifaddrmsg body{};
  body.ifa_family = family_of(address);
  body.ifa_prefixlen = static_cast<std::uint8_t>(address.bits);
  body.ifa_index = static_cast<unsigned>(index);
  body.ifa_scope = RT_SCOPE_UNIVERSE;
  const std::span<const std::byte> ip = address_bytes(address.ip);
  Request request(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, body);
  request.add(IFA_LOCAL, ip);
  request.add(IFA_ADDRESS, ip);
  if (address.is_ipv4()) {
    verbs::Gid broadcast = network_of(address).ip;
    for (std::uint32_t bit = address.bits; bit < 32; ++bit) {
      std::uint8_t& byte = broadcast[verbs::kIpv4InGid + bit / 8];
      byte = static_cast<std::uint8_t>(byte | (0x80u >> (bit % 8)));
    }
    if (address.bits < 31) request.add(IFA_BROADCAST, address_bytes(broadcast));
  } else {
    request.add_value(IFA_FLAGS, std::uint32_t{IFA_F_NODAD});
  }
  const Status status = exchange(request);
  return error_ == EEXIST ? Status::Ok : status;
}

Status Netlink::add_route(int index, const IpPrefix& network, RouteKind kind) {
  const bool on_link = kind == RouteKind::OnLink;
  rtmsg body{};
  body.rtm_family = family_of(network);
  body.rtm_dst_len = static_cast<std::uint8_t>(network.bits);
  // The local table has 127.0.0.0/8, and is looked at before the main one.
  body.rtm_table = on_link ? RT_TABLE_MAIN : RT_TABLE_LOCAL;
  body.rtm_protocol = RTPROT_STATIC;
  body.rtm_scope = on_link ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE;
  body.rtm_type = on_link ? RTN_UNICAST : RTN_UNREACHABLE;
  Request request(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, body);
  const IpPrefix whole = network_of(network);
  request.add(RTA_DST, address_bytes(whole.ip));
  if (on_link) request.add_value(RTA_OIF, static_cast<std::uint32_t>(index));
  const Status status = exchange(request);
  return error_ == EEXIST ? Status::Ok : status;
}

Status Netlink::exchange(Request& request) {
  error_ = 0;
  text_.clear();
  const std::uint32_t sequence = ++sequence_;
  const std::span<const std::byte> bytes = request.finish(sequence);
  ssize_t sent = 0;
  do {
    sent = ::send(socket_.get(), bytes.data(), bytes.size(), 0);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) return fail(errno);
  return read_answer(sequence);
}

// With NETLINK_EXT_ACK attributes follow the error, and the request itself unless it is capped.
Status Netlink::read_answer(std::uint32_t sequence) {
  alignas(nlmsghdr) std::array<std::byte, kMostAnswer> buffer{};
  for (;;) {
    const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(errno);
    nlmsghdr header{};
    nlmsgerr answer{};
    const auto size = static_cast<std::size_t>(got);
    if (size < sizeof header + sizeof answer) return fail(EPROTO);
    std::memcpy(&header, buffer.data(), sizeof header);
    if (header.nlmsg_seq != sequence || header.nlmsg_type != NLMSG_ERROR) continue;
    std::memcpy(&answer, buffer.data() + sizeof header, sizeof answer);
    if (answer.error == 0) return Status::Ok;
    if ((header.nlmsg_flags & NLM_F_ACK_TLVS) != 0) {
      std::size_t at = sizeof header + sizeof answer;
      if ((header.nlmsg_flags & NLM_F_CAPPED) == 0 && answer.msg.nlmsg_len >= sizeof answer.msg)
        at += aligned(answer.msg.nlmsg_len) - sizeof answer.msg;
      rtattr attribute{};
      while (at + sizeof attribute <= size) {
        std::memcpy(&attribute, buffer.data() + at, sizeof attribute);
        if (attribute.rta_len < sizeof attribute || attribute.rta_len > size - at) break;
        if (attribute.rta_type == NLMSGERR_ATTR_MSG) {
          const auto* chars = reinterpret_cast<const char*>(buffer.data() + at + sizeof attribute);
          text_.assign(chars, ::strnlen(chars, attribute.rta_len - sizeof attribute));
        }
        at += aligned(attribute.rta_len);
      }
    }
    return fail(-answer.error);
  }
}

Status Netlink::fail(int error) {
  error_ = error;
  switch (error) {
    case EPERM:
    case EACCES: return Status::AccessDenied;
    case EEXIST: return Status::AlreadyExists;
    case ENODEV: return Status::NotFound;
    case EINVAL: return Status::InvalidParameter;
    case EAFNOSUPPORT:
    case EOPNOTSUPP: return Status::NotSupported;
    default: return Status::IoError;
  }
}

int index_of(const std::string& name) {
  return static_cast<int>(::if_nametoindex(name.c_str()));
}

}  // namespace ib::os::net
