// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reading RTM_NEWLINK messages, several of which may be in one datagram.
#include "linux/net/link_watch.h"

#include "linux/process/client_handle.h"

#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>

namespace ib::os::net {
namespace {

// The kernel makes datagrams of this size at most.
constexpr std::size_t kMostMessage = 32768;

// A piece of a message: `Head` says how long it is, the next one begins at a multiple of four.
template <class Head>
std::span<const std::byte> take_piece(std::span<const std::byte>& bytes, Head& head,
                                      std::size_t length) {
  const auto piece = bytes.first(length).subspan(sizeof head);
  bytes = bytes.subspan(std::min(bytes.size(), (length + 3) & ~std::size_t{3}));
  return piece;
}

LinkMtu mtu_of(std::span<const std::byte> attributes) {
  rtattr head{};
  while (attributes.size() >= sizeof head) {
    std::memcpy(&head, attributes.data(), sizeof head);
    if (head.rta_len < sizeof head || head.rta_len > attributes.size()) break;
    const auto value = take_piece(attributes, head, head.rta_len);
    LinkMtu mtu{};
    if (head.rta_type != IFLA_MTU || value.size() != sizeof mtu.bytes) continue;
    std::memcpy(&mtu.bytes, value.data(), sizeof mtu.bytes);
    return mtu;
  }
  return {};
}

void read_messages(std::span<const std::byte> bytes, std::vector<LinkWatch::Change>& changes) {
  nlmsghdr head{};
  while (bytes.size() >= sizeof head) {
    std::memcpy(&head, bytes.data(), sizeof head);
    if (head.nlmsg_len < sizeof head || head.nlmsg_len > bytes.size()) return;
    const auto body = take_piece(bytes, head, head.nlmsg_len);
    ifinfomsg info{};
    if (head.nlmsg_type != RTM_NEWLINK || body.size() < sizeof info) continue;
    std::memcpy(&info, body.data(), sizeof info);
    // IPv6 and bridges have messages of their own, of another family.
    if (info.ifi_family != AF_UNSPEC) continue;
    changes.push_back({.index = info.ifi_index,
                       .up = (info.ifi_flags & IFF_UP) != 0,
                       .mtu = mtu_of(body.subspan(sizeof info))});
  }
}

}  // namespace

Result<LinkWatch> LinkWatch::open() {
  platform::NativeHandle socket =
      own_descriptor(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
  if (!socket.valid()) return no_descriptor(errno);
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = RTMGRP_LINK;
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (::bind(socket.get(), generic, sizeof address) != 0) return Status::IoError;
  return LinkWatch(std::move(socket));
}

std::optional<std::vector<LinkWatch::Change>> LinkWatch::take() {
  std::vector<Change> changes;
  bool all = true;
  alignas(nlmsghdr) std::array<std::byte, kMostMessage> buffer;
  for (;;) {
    const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (got >= 0) {
      read_messages(std::span(buffer).first(static_cast<std::size_t>(got)), changes);
    } else if (errno == ENOBUFS) {
      all = false;
    } else if (errno != EINTR) {
      break;
    }
  }
  if (!all) return std::nullopt;
  return changes;
}

}  // namespace ib::os::net
