// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reading RTM_NEWLINK messages, several of which may be in one datagram.
#include "linux/net/link_watch.h"

#include "linux/net/netlink.h"

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

// Takes a piece of a message from `bytes`: its head, whose `length` counts the head too, and its
// body. The next one begins at a multiple of four. Returns false at the end, or if it is cut short.
template <class Head, class Length>
bool take_piece(std::span<const std::byte>& bytes, Length Head::*length, Head& head,
                std::span<const std::byte>& body) {
  if (bytes.size() < sizeof head) return false;
  std::memcpy(&head, bytes.data(), sizeof head);
  const std::size_t size = head.*length;
  if (size < sizeof head || size > bytes.size()) return false;
  body = bytes.first(size).subspan(sizeof head);
  bytes = bytes.subspan(std::min(bytes.size(), (size + 3) & ~std::size_t{3}));
  return true;
}

LinkMtu mtu_of(std::span<const std::byte> attributes) {
  rtattr head{};
  std::span<const std::byte> value;
  LinkMtu mtu{};
  while (take_piece(attributes, &rtattr::rta_len, head, value)) {
    if (head.rta_type != IFLA_MTU || value.size() != sizeof mtu.bytes) continue;
    std::memcpy(&mtu.bytes, value.data(), sizeof mtu.bytes);
    break;
  }
  return mtu;
}

void read_messages(std::span<const std::byte> bytes, std::vector<LinkWatch::Change>& changes) {
  nlmsghdr head{};
  std::span<const std::byte> body;
  while (take_piece(bytes, &nlmsghdr::nlmsg_len, head, body)) {
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
  auto socket = watch_rtnetlink(RTMGRP_LINK);
  if (!socket) return socket.error();
  return LinkWatch(*std::move(socket));
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
