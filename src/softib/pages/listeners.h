// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Programs that listen, for `softib wait`: over librdmacm and for streams, from the fabric's state,
// and over TCP, where perftest and ibv_rc_pingpong meet before they connect, from /proc.
#pragma once

#include "softib/pages/fabric_state.h"

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ib::softib {

struct Listener {
  std::uint16_t port = 0;
  std::string how;  // "TCP", "TCP, streams", "librdmacm"
  std::string program;
  pid_t pid = 0;       // 0: a driver of softibd
  std::string socket;  // of its fabric; empty: it does not run under softib
  std::string node;    // empty: not known
  // It runs under `--sockets`: soon it listens for streams, or over librdmacm, as well.
  bool is_switched = false;
  // Of a program that this user cannot look into, whose socket the kernel's table has.
  std::optional<std::uint32_t> other_user{};
};

// "ib_send_lat (pid 812)"
std::string name_of(const Listener& listener);

// Those in the state of a fabric: over librdmacm, and for streams.
std::vector<Listener> rdma_listeners(const Json& state, const std::string& socket);

// Processes of this user that listen over TCP, in any network namespace, and those of other users
// in this one. A process belongs to the fabric of its environment; one that has overwritten its
// environment, to the one that lists it in `state` as a client, if `socket` is that fabric's.
std::vector<Listener> tcp_listeners(const Json& state, const std::string& socket);

// The ports in a table of the kernel (/proc/net/tcp, tcp6) on which sockets listen, by inode.
struct ListeningSocket {
  std::uint64_t inode = 0;
  std::uint16_t port = 0;
  std::uint32_t uid = 0;
};
std::vector<ListeningSocket> listening_sockets(const std::string& table);

// Those of `sockets` that no process holds which could be looked into: they have the inodes `held`.
std::vector<Listener> listeners_of_others(const std::vector<ListeningSocket>& sockets,
                                          const std::set<std::uint64_t>& held);

// Whether `listener` is what `softib wait --listen PORT --node NODE` waits for.
struct Wanted {
  std::uint16_t port = 0;
  std::string socket;
  std::string node;  // empty: any
};
bool is_wanted(const Listener& listener, const Wanted& wanted);

// Why nobody was found: who listens on that port elsewhere, else on which ports this fabric
// listens. Lines that begin with two blanks.
std::string hint_of(const std::vector<Listener>& all, const Wanted& wanted);

}  // namespace ib::softib
